//! The kernels that come from templates compile for every architecture: gather, scatter, scan, sort, pools, convolutions and attention.
use kiln_cuda::convolution::Shape;
use kiln_cuda::render::{padding, render};
use kiln_cuda::steps::Chip;
use kiln_ir::kernel::ConvMode;
use kiln_ir::op::{AttentionAttrs, ConvAttrs, PoolAttrs};
use kiln_ir::{BufId, DType, Graph, MatmulPrecision, Op, ScanOp, ScatterOp};
use smallvec::smallvec;

use crate::nvrtc::{all_compile, is_here};
use crate::oracle::program;

/// Compiles every step of a graph's kernels, and returns how many there were.
#[track_caller]
fn check(graph: &Graph, sm: u32) -> usize {
    let program = program(graph, true);
    let mut count = 0;
    for kernel in program.kernels() {
        let steps = render(kernel, &program, &Chip::of(sm)).unwrap();
        all_compile(&steps, sm);
        count += steps.steps.len();
    }
    count
}

fn indexing(dtype: DType) -> Graph {
    let mut g = Graph::new();
    let (x, i, v) = (g.input(&[300, 40], dtype), g.input(&[70, 40], DType::I32), g.input(&[70, 40], dtype));
    let y = g.add(Op::Gather { axis: 0 }, &[x, i]).unwrap();
    let mut outputs = vec![y];
    for op in [ScatterOp::Assign, ScatterOp::Add, ScatterOp::Max] {
        outputs.push(g.add(Op::Scatter { axis: 0, op }, &[x, i, v]).unwrap());
    }
    let long = g.input(&[9000], dtype);
    let sorted = g.add(Op::Sort { axis: 0, descending: true }, &[long]).unwrap();
    let order = g.get(sorted, 1).unwrap();
    outputs.extend([sorted, order]);
    if dtype != DType::Bool {
        outputs.push(g.add(Op::Scan { op: ScanOp::Sum, axis: 0 }, &[long]).unwrap());
        outputs.push(g.add(Op::Scan { op: ScanOp::Max, axis: 0 }, &[x]).unwrap());
    }
    g.outputs = outputs;
    g
}

fn planes(dtype: DType) -> Graph {
    let pool = PoolAttrs {
        kernel: smallvec![3, 2],
        stride: smallvec![2, 2],
        dilation: smallvec![1, 2],
        padding: smallvec![(1, 1), (0, 1)],
        count_include_pad: true,
        ceil_mode: false,
        channels_last: false,
    };
    let conv = ConvAttrs { stride: smallvec![2, 1], dilation: smallvec![1, 1], padding: smallvec![(1, 1), (1, 0)], groups: 1, channels_last: false };
    let mut g = Graph::new();
    let x = g.input(&[2, 16, 18, 18], dtype);
    let max = g.add(Op::MaxPool(pool.clone()), &[x]).unwrap();
    let places = g.get(max, 1).unwrap();
    let mean = g.add(Op::AvgPool(pool.clone()), &[x]).unwrap();
    let out = g.node(max).dims.clone();
    let dy = g.input(&out, dtype);
    let dmax = g.add_as(Op::MaxPoolGrad(pool.clone()), &[dy, places], &[2, 16, 18, 18], dtype).unwrap();
    let dmean = g.add_as(Op::AvgPoolGrad(pool), &[dy], &[2, 16, 18, 18], dtype).unwrap();
    let w = g.input(&[24, 16, 3, 3], dtype);
    let y = g.add(Op::Conv(conv.clone()), &[x, w]).unwrap();
    let out = g.node(y).dims.clone();
    let dy = g.input(&out, dtype);
    let dx = g.add_as(Op::ConvInputGrad(conv.clone()), &[dy, w], &[2, 16, 18, 18], dtype).unwrap();
    let dw = g.add_as(Op::ConvWeightGrad(conv), &[x, dy], &[24, 16, 3, 3], dtype).unwrap();
    let pointwise =
        ConvAttrs { stride: smallvec![1, 1], dilation: smallvec![1, 1], padding: smallvec![(0, 0), (0, 0)], groups: 1, channels_last: false };
    let square = g.input(&[4, 136, 8, 16], dtype);
    let dsquare = g.input(&[4, 72, 8, 16], dtype);
    let dpoint = g.add_as(Op::ConvWeightGrad(pointwise), &[square, dsquare], &[72, 136, 1, 1], dtype).unwrap();
    g.outputs = vec![max, places, mean, dmax, dmean, y, dx, dw, dpoint];
    g
}

fn attention(dtype: DType, queries: usize, width: usize, every: bool) -> Graph {
    let attrs = AttentionAttrs {
        scale: 0.125f64.to_bits(),
        softcap: if every { 20.0f64.to_bits() } else { 0 },
        causal: true,
        has_mask: every,
        has_bias: every,
    };
    let mut g = Graph::new();
    let q = g.input(&[2, 4, queries, width], dtype);
    let (k, v) = (g.input(&[2, 2, 300, width], dtype), g.input(&[2, 2, 300, width], dtype));
    let extra: Vec<_> = if every { vec![g.input(&[queries, 300], DType::Bool), g.input(&[4, queries, 300], dtype)] } else { Vec::new() };
    let out = g.add(Op::Attention(attrs), &[&[q, k, v][..], &extra].concat()).unwrap();
    let lse = g.get(out, 1).unwrap();
    let dout = g.input(&[2, 4, queries, width], dtype);
    let dq = g.add(Op::AttentionGrad(attrs), &[&[q, k, v, out, lse, dout][..], &extra].concat()).unwrap();
    let (dk, dv) = (g.get(dq, 1).unwrap(), g.get(dq, 2).unwrap());
    g.outputs = vec![out, lse, dq, dk, dv];
    g
}

#[test]
fn kernels_by_index_and_along_axes_compile_for_every_dtype() {
    if !is_here() {
        return;
    }
    for (n, dtype) in DType::ALL.into_iter().enumerate() {
        assert!(check(&indexing(dtype), [80, 90, 100][n % 3]) > 5, "{dtype}");
    }
}

#[test]
fn kernels_over_planes_compile_for_every_architecture() {
    if !is_here() {
        return;
    }
    for sm in [80, 90, 100] {
        for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
            assert!(check(&planes(dtype), sm) > 8, "{dtype}");
        }
    }
}

#[test]
fn attention_compiles_for_every_architecture() {
    if !is_here() {
        return;
    }
    for sm in [80, 90, 100] {
        for (dtype, queries, width, every) in [
            (DType::BF16, 200, 128, false),
            (DType::F16, 200, 64, true),
            (DType::BF16, 200, 256, false),
            (DType::F32, 70, 40, true),
            (DType::F64, 70, 40, false),
            (DType::BF16, 1, 128, false),
        ] {
            assert!(check(&attention(dtype, queries, width, every), sm) >= 4, "{dtype} {width}");
        }
    }
}

#[test]
fn what_follows_a_library_s_convolution_compiles_for_every_architecture() {
    if !is_here() {
        return;
    }
    for (n, dtype) in [DType::F16, DType::BF16, DType::F32, DType::F64].into_iter().enumerate() {
        for mode in [ConvMode::Forward, ConvMode::WeightGrad] {
            let attrs = ConvAttrs {
                stride: smallvec![2, 1],
                dilation: smallvec![1, 2],
                padding: smallvec![(1, 1), (1, 0)],
                groups: 1,
                channels_last: n % 2 == 0,
            };
            let (x, w, y) = (smallvec![2, 4, 9, 9], smallvec![8, 4, 3, 3], smallvec![2, 8, 5, 6]);
            let shape = Shape { mode, attrs, x, w, y, dtype, precision: MatmulPrecision::Highest };
            for sm in [80, 90, 100] {
                let steps = padding::render(&shape, BufId(0), BufId(1), &Chip::of(sm));
                assert_eq!(steps.steps.len(), 1);
                all_compile(&steps, sm);
            }
        }
    }
}
