//! Which convolutions the library takes, and what runs around them.
use kiln_compiler::{Options, compile_with};
use kiln_cuda::lowered::{Lowered, Work};
use kiln_cuda::steps::Chip;
use kiln_ir::dims::channels_last;
use kiln_ir::interp::{self, Scalar, Tensor};
use kiln_ir::op::ConvAttrs;
use kiln_ir::{DType, Elementwise, Graph, Limits, MatmulPrecision, Op, Program};
use smallvec::SmallVec;

use crate::oracle::{Draw, compare};
use crate::{emulator, gpu};

/// A convolution of bf16 with an activation.
fn program(conv_epilogues: &'static [DType]) -> Program {
    let mut g = Graph::new();
    let (x, w) = (g.input(&[2, 8, 6, 6], DType::BF16), g.input(&[16, 8, 3, 3], DType::BF16));
    let attrs = ConvAttrs {
        stride: SmallVec::from_slice(&[1, 1]),
        dilation: SmallVec::from_slice(&[1, 1]),
        padding: SmallVec::from_slice(&[(1, 1), (1, 1)]),
        groups: 1,
        channels_last: false,
    };
    let y = g.add(Op::Conv(attrs), &[x, w]).unwrap();
    let y = g.add(Op::Elementwise(Elementwise::Tanh), &[y]).unwrap();
    g.outputs = vec![y];
    let limits = Limits { parallelism: 264, epilogues: true, conv_epilogues, short_conv_epilogues: 0, channels_last: &[DType::BF16] };
    compile_with(&g, &limits, &Options::default())
}

fn families(lowered: &Lowered) -> Vec<String> {
    let name = |w: &Work| match w {
        Work::Convolution(c) => format!("library, workspace {}", c.workspace.is_some()),
        Work::Launch { source, .. } => source.entry.clone(),
        _ => "other".into(),
    };
    lowered.works().map(name).filter(|n| n.starts_with("library") || n.starts_with("conv")).collect()
}

#[test]
fn the_library_takes_a_convolution_and_its_epilogue_follows() {
    for conv_epilogues in [&[][..], &DType::ALL] {
        let program = program(conv_epilogues);
        let mut asked = 0;
        let mut probe = |shape: &kiln_cuda::convolution::Shape| {
            asked += 1;
            assert!(shape.attrs.channels_last && shape.dtype == DType::BF16);
            assert_eq!((&shape.x[..], &shape.y[..]), (&[2, 8, 6, 6][..], &[2, 16, 6, 6][..]));
            Some(1000)
        };
        let lowered = Lowered::new(&program, &Chip::of(90), false, Some(&mut probe)).unwrap();
        assert_eq!(families(&lowered), ["library, workspace true"]);
        assert_eq!(asked, 1);
    }
}

#[test]
fn what_the_library_cannot_do_runs_on_own_kernels() {
    let lowered = Lowered::new(&program(&DType::ALL), &Chip::of(90), false, Some(&mut |_| None)).unwrap();
    assert!(lowered.works().all(|w| matches!(w, Work::Launch { .. })), "{:?}", families(&lowered));
    assert!(families(&lowered).iter().any(|f| f.starts_with("conv")), "{:?}", families(&lowered));
}

#[test]
fn uneven_padding_and_full_precision_stay_with_own_kernels() {
    let lowered = |dtype: DType, padding: &[(usize, usize)], precision| {
        let mut g = Graph::new();
        let (x, w) = (g.input(&[2, 40, 6, 6], dtype), g.input(&[70, 40, 3, 3], dtype));
        let y = g.add(Op::Conv(padded(&[1, 1], &[1, 1], padding, 1)), &[x, w]).unwrap();
        g.outputs = vec![y];
        let limits = Limits { channels_last: &[DType::BF16], ..Chip::of(90).limits() };
        let program = compile_with(&g, &limits, &Options::default());
        let chip = Chip { precision, ..Chip::of(90) };
        families(&Lowered::new(&program, &chip, false, Some(&mut |_| Some(0))).unwrap())
    };
    use MatmulPrecision::{High, Highest};
    let even = [(1, 1), (0, 0)];
    assert_eq!(lowered(DType::BF16, &even, Highest), ["library, workspace false"]);
    assert_eq!(lowered(DType::F32, &even, High), ["library, workspace false"]);
    assert_eq!(lowered(DType::F32, &even, Highest)[0], "conv_tf32");
    let uneven = [(1, 1), (0, 1)];
    assert_eq!(lowered(DType::F32, &uneven, High)[0], "conv_tf32");
    let own = lowered(DType::BF16, &uneven, Highest);
    assert!(own.iter().all(|f| f.starts_with("conv")), "{own:?}");
}

/// The three products of a geometry beside a library that leaves the padding out, with factors that aren't finite here and there.
#[track_caller]
fn check_padding(dtype: DType, last: bool, case: (&[usize], &[usize], ConvAttrs)) {
    let (x_dims, w_dims, attrs) = case;
    let attrs = ConvAttrs { channels_last: last, ..attrs };
    let order = |dims: &[usize]| if last { channels_last(dims) } else { dims.into() };
    let mut draw = Draw(7);
    let mut tensor = |dims: &[usize], odd: &[(usize, f64)]| {
        let mut t = draw.tensor(dtype, dims, (-1.0, 1.0));
        odd.iter().for_each(|(i, v)| t.set(i % t.len(), Scalar::Float(*v)));
        t
    };
    let graph = |op: Op, a: &[usize], b: &[usize], out: Option<&[usize]>| {
        let mut g = Graph::new();
        let (a, b) = (g.input(a, dtype), g.input(b, dtype));
        let y = match out {
            None => g.add(op, &[a, b]),
            Some(dims) => g.add_as(op, &[a, b], dims, dtype),
        };
        g.outputs = vec![y.unwrap()];
        g
    };
    let (x_dims, w_dims) = (order(x_dims), order(w_dims));
    let forward = graph(Op::Conv(attrs.clone()), &x_dims, &w_dims, None);
    let y_dims = forward.node(forward.outputs[0]).dims.clone();
    let odd = [(0, f64::INFINITY), (5, f64::NAN), (11, f64::NEG_INFINITY)];
    let (x, w) = (tensor(&x_dims, &[]), tensor(&w_dims, &odd));
    check_beside(&forward, &[x.clone(), w]);
    let weight = graph(Op::ConvWeightGrad(attrs.clone()), &x_dims, &y_dims, Some(&w_dims));
    for at in [0, 3, 17, 29] {
        check_beside(&weight, &[x.clone(), tensor(&y_dims, &[(at, f64::INFINITY)])]);
    }
    check_beside(&weight, &[x.clone(), tensor(&y_dims, &[])]);
    // Where a gradient of x has no product, the library and own kernels multiply zeros of their own, so that its weight is finite here.
    let input = graph(Op::ConvInputGrad(attrs), &y_dims, &w_dims, Some(&x_dims));
    check_beside(&input, &[tensor(&y_dims, &[]), tensor(&w_dims, &[])]);
}

#[track_caller]
fn check_beside(graph: &Graph, inputs: &[Tensor]) {
    let expected = interp::run(graph, inputs, &[]).unwrap();
    let limits = Limits { parallelism: 264, epilogues: true, conv_epilogues: &[], short_conv_epilogues: 0, channels_last: &[] };
    let program = compile_with(graph, &limits, &Options::default());
    let got = match gpu::device() {
        Some(gpu) => gpu::run(gpu, &program, inputs, &[], 1).unwrap(),
        None if emulator::available() => emulator::run_with(&program, inputs, &[], &Chip::of(90), Some(&mut |_| Some(0))).unwrap(),
        None => return,
    };
    compare("beside a library", &program, &got, &expected, 10.0);
}

fn padded(stride: &[usize], dilation: &[usize], padding: &[(usize, usize)], groups: usize) -> ConvAttrs {
    let all = SmallVec::from_slice;
    ConvAttrs { stride: all(stride), dilation: all(dilation), padding: SmallVec::from_slice(padding), groups, channels_last: false }
}

#[test]
fn what_is_not_finite_meets_the_padding() {
    for (n, dtype) in [DType::F32, DType::BF16, DType::F64, DType::F16].into_iter().enumerate() {
        let last = n % 2 == 1;
        check_padding(dtype, last, (&[2, 2, 5, 6], &[3, 2, 3, 3], padded(&[1, 1], &[1, 1], &[(1, 1), (1, 1)], 1)));
        check_padding(dtype, !last, (&[1, 4, 7, 6], &[4, 2, 2, 3], padded(&[2, 1], &[1, 2], &[(0, 2), (2, 1)], 2)));
    }
    check_padding(DType::F32, false, (&[2, 2, 9], &[2, 2, 4], padded(&[3], &[2], &[(5, 4)], 1)));
    check_padding(DType::F32, true, (&[1, 2, 3, 4, 3], &[2, 2, 2, 3, 2], padded(&[1, 2, 1], &[1, 1, 2], &[(1, 0), (1, 1), (0, 2)], 1)));
    // Every window lies outside with some element, and one axis has no padding at all.
    check_padding(DType::F32, false, (&[1, 1, 2, 4], &[2, 1, 5, 1], padded(&[1, 1], &[1, 1], &[(3, 3), (0, 0)], 1)));
}

/// A product and a convolution, and how the libraries are told to compute them.
fn precisions(dtype: DType, precision: MatmulPrecision) -> Vec<MatmulPrecision> {
    let mut g = Graph::new();
    let (a, b) = (g.input(&[256, 256], dtype), g.input(&[256, 256], dtype));
    let product = g.add(Op::Dot, &[a, b]).unwrap();
    let (x, w) = (g.input(&[2, 8, 6, 6], dtype), g.input(&[16, 8, 3, 3], dtype));
    let y = g.add(Op::Conv(padded(&[1, 1], &[1, 1], &[(1, 1), (1, 1)], 1)), &[x, w]).unwrap();
    g.outputs = vec![product, y];
    let limits = Limits { parallelism: 264, epilogues: true, conv_epilogues: &[], short_conv_epilogues: 0, channels_last: &[] };
    let program = compile_with(&g, &limits, &Options::default());
    let chip = Chip { precision, ..Chip::of(90) };
    let lowered = Lowered::new(&program, &chip, true, Some(&mut |_| Some(0))).unwrap();
    let of = |w: &Work| match w {
        Work::Product(p) => Some(p.precision),
        Work::Convolution(c) => Some(c.shape.precision),
        _ => None,
    };
    lowered.works().filter_map(of).collect()
}

#[test]
fn only_32_bit_floats_may_be_rounded_and_only_where_it_is_asked_for() {
    use MatmulPrecision::{High, Highest};
    // In full precision the convolution is none of the library's.
    assert_eq!(precisions(DType::F32, Highest), [Highest]);
    assert_eq!(precisions(DType::F32, High), [High, High]);
    for dtype in [DType::F64, DType::BF16] {
        assert_eq!(precisions(dtype, High), [Highest, Highest]);
    }
}
