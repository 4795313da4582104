//! Convolutions and their gradients with every option, and their epilogues.
use kiln_ir::dims::channels_last;
use kiln_ir::interp::{self, Scalar, Tensor};
use kiln_ir::op::ConvAttrs;
use kiln_ir::{DType, Elementwise, Graph, MatmulPrecision, Op};
use smallvec::SmallVec;

use kiln_cuda::steps::Chip;

use crate::emulator;
use crate::oracle::{Draw, check_on, check_within};

/// One geometry: sizes of x, outputs, kernel, and the attributes.
struct Case<'a> {
    x: &'a [usize],
    outputs: usize,
    kernel: &'a [usize],
    stride: &'a [usize],
    dilation: &'a [usize],
    padding: &'a [(usize, usize)],
    groups: usize,
}

/// The three products of a geometry.
#[track_caller]
fn check_case(draw: &mut Draw, dtype: DType, case: &Case<'_>) {
    check_case_on(&Chip::of(80), draw, dtype, case);
}

#[track_caller]
fn check_case_on(chip: &Chip, draw: &mut Draw, dtype: DType, case: &Case<'_>) {
    check_order(chip, draw, dtype, case, false);
    if !draw.leaves_out() {
        check_order(chip, draw, dtype, case, true);
    }
}

/// The three products with channels second or last.
#[track_caller]
fn check_order(chip: &Chip, draw: &mut Draw, dtype: DType, case: &Case<'_>, last: bool) {
    let n = case.kernel.len();
    let order = |dims: &[usize]| if last { channels_last(dims) } else { dims.into() };
    let x_dims = order(case.x);
    let attrs = ConvAttrs {
        stride: SmallVec::from_slice(case.stride),
        dilation: SmallVec::from_slice(case.dilation),
        padding: SmallVec::from_slice(case.padding),
        groups: case.groups,
        channels_last: last,
    };
    let w: Vec<usize> = [case.outputs, case.x[1] / case.groups].iter().chain(case.kernel).copied().collect();
    let w = order(&w);
    let range = (-1.0, 1.0);
    let mut g = Graph::new();
    let (x, weight) = (g.input(&x_dims, dtype), g.input(&w, dtype));
    let y = g.add(Op::Conv(attrs.clone()), &[x, weight]).unwrap();
    g.outputs = vec![y];
    let out = g.node(y).dims.clone();
    assert_eq!(out.len(), n + 2);
    let (tx, tw, tdy) = (draw.tensor(dtype, &x_dims, range), draw.tensor(dtype, &w, range), draw.tensor(dtype, &out, range));
    check_on(chip, &g, &[tx.clone(), tw.clone()], &[], 10.0);
    let mut g = Graph::new();
    let (dy, weight) = (g.input(&out, dtype), g.input(&w, dtype));
    let dx = g.add_as(Op::ConvInputGrad(attrs.clone()), &[dy, weight], &x_dims, dtype).unwrap();
    g.outputs = vec![dx];
    check_on(chip, &g, &[tdy.clone(), tw], &[], 10.0);
    let mut g = Graph::new();
    let (x, dy) = (g.input(&x_dims, dtype), g.input(&out, dtype));
    let dw = g.add_as(Op::ConvWeightGrad(attrs), &[x, dy], &w, dtype).unwrap();
    g.outputs = vec![dw];
    check_on(chip, &g, &[tx, tdy], &[], 20.0);
}

#[test]
fn convolutions_match_for_every_geometry() {
    let mut draw = Draw(41);
    let cases = [
        Case { x: &[2, 3, 7, 8], outputs: 4, kernel: &[3, 3], stride: &[1, 1], dilation: &[1, 1], padding: &[(1, 1), (1, 1)], groups: 1 },
        Case { x: &[2, 4, 9, 7], outputs: 6, kernel: &[2, 3], stride: &[2, 1], dilation: &[1, 2], padding: &[(0, 1), (2, 1)], groups: 2 },
        Case { x: &[1, 3, 20], outputs: 3, kernel: &[5], stride: &[3], dilation: &[2], padding: &[(4, 1)], groups: 3 },
        Case {
            x: &[1, 2, 4, 5, 6],
            outputs: 3,
            kernel: &[2, 2, 3],
            stride: &[1, 2, 1],
            dilation: &[1, 1, 1],
            padding: &[(0, 0), (1, 0), (1, 1)],
            groups: 1,
        },
        Case { x: &[2, 16, 4, 4], outputs: 8, kernel: &[1, 1], stride: &[1, 1], dilation: &[1, 1], padding: &[(0, 0), (0, 0)], groups: 1 },
        Case { x: &[3, 8, 8, 8], outputs: 16, kernel: &[1, 1], stride: &[2, 2], dilation: &[1, 1], padding: &[(0, 0), (0, 0)], groups: 2 },
    ];
    for (n, case) in cases.iter().enumerate() {
        for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64] {
            if dtype == DType::BF16 || n % 2 == dtype.size() / 4 % 2 {
                check_case(&mut draw, dtype, case);
            }
        }
    }
}

#[test]
fn convolutions_span_tiles_and_parts_of_sums() {
    let mut draw = Draw(42);
    let wide = Case { x: &[2, 40, 12, 12], outputs: 136, kernel: &[3, 3], stride: &[1, 1], dilation: &[1, 1], padding: &[(1, 1), (1, 1)], groups: 1 };
    check_case(&mut draw, DType::BF16, &wide);
    let strided = Case { stride: &[2, 2], outputs: 72, ..wide };
    check_case(&mut draw, DType::F32, &strided);
    let pointwise = Case { x: &[2, 136, 8, 16], kernel: &[1, 1], padding: &[(0, 0), (0, 0)], ..wide };
    check_case(&mut draw, DType::F16, &pointwise);
}

#[test]
fn convolutions_of_half_floats_go_channels_last() {
    let mut draw = Draw(45);
    let base = Case { x: &[2, 16, 9, 7], outputs: 24, kernel: &[3, 3], stride: &[1, 1], dilation: &[1, 1], padding: &[(1, 1), (1, 1)], groups: 1 };
    check_case(&mut draw, DType::BF16, &base);
    check_case(
        &mut draw,
        DType::F16,
        &Case { stride: &[2, 1], dilation: &[1, 2], padding: &[(0, 1), (2, 1)], groups: 2, x: &[3, 32, 9, 8], outputs: 16, ..base },
    );
    check_case(&mut draw, DType::BF16, &Case { x: &[1, 72, 6, 6], outputs: 136, stride: &[2, 2], ..base });
    // Places that meet the same kernel elements are taken together.
    check_case(&mut draw, DType::BF16, &Case { x: &[4, 8, 16, 16], outputs: 32, stride: &[2, 2], ..base });
    check_case(
        &mut draw,
        DType::F16,
        &Case { x: &[2, 8, 16, 16], outputs: 32, kernel: &[1, 1], padding: &[(0, 0), (0, 0)], stride: &[2, 1], ..base },
    );
    check_case(&mut draw, DType::BF16, &Case { x: &[4, 8, 5, 5], outputs: 8, kernel: &[1, 1], padding: &[(0, 0), (0, 0)], stride: &[2, 2], ..base });
    let line = Case { x: &[2, 8, 300], outputs: 8, kernel: &[3], stride: &[1], dilation: &[1], padding: &[(1, 1)], groups: 1 };
    check_case(&mut draw, DType::BF16, &line);
}

#[test]
fn convolutions_of_few_channels_keep_what_a_place_meets() {
    let mut draw = Draw(47);
    let base = Case { x: &[3, 1, 12, 11], outputs: 32, kernel: &[3, 3], stride: &[1, 1], dilation: &[1, 1], padding: &[(0, 0), (0, 0)], groups: 1 };
    // One multiprocessor: sums are cut into few parts, and outputs stay together.
    for multiprocessors in [1, 132] {
        let chip = Chip { multiprocessors, ..Chip::of(90) };
        check_case_on(&chip, &mut draw, DType::F32, &base);
        check_case_on(&chip, &mut draw, DType::BF16, &Case { x: &[1, 3, 9, 40], outputs: 70, stride: &[2, 1], padding: &[(1, 2), (0, 1)], ..base });
    }
    check_case(
        &mut draw,
        DType::F64,
        &Case { x: &[2, 2, 17, 33], outputs: 13, kernel: &[2, 3], dilation: &[2, 1], padding: &[(1, 1), (2, 0)], ..base },
    );
    check_case(&mut draw, DType::F16, &Case { x: &[2, 6, 20, 9], outputs: 9, kernel: &[3, 2], padding: &[(1, 1), (1, 0)], groups: 3, ..base });
    // Long enough for several parts of a sum.
    check_case(&mut draw, DType::F32, &Case { x: &[5, 4, 31, 33], outputs: 10, kernel: &[2, 2], padding: &[(1, 0), (0, 1)], ..base });
}

#[test]
fn convolutions_of_32_bit_floats_run_on_tensor_cores() {
    let mut draw = Draw(48);
    let base = Case { x: &[2, 24, 12, 11], outputs: 32, kernel: &[3, 3], stride: &[1, 1], dilation: &[1, 1], padding: &[(1, 1), (1, 1)], groups: 1 };
    // One multiprocessor: whole sums and wide tiles.
    for multiprocessors in [1, 132] {
        let chip = Chip { multiprocessors, ..Chip::of(80) };
        check_case_on(&chip, &mut draw, DType::F32, &base);
        check_case_on(&chip, &mut draw, DType::F32, &Case { x: &[1, 40, 9, 14], outputs: 70, stride: &[2, 1], padding: &[(0, 1), (2, 1)], ..base });
    }
    let chip = Chip::of(90);
    check_case_on(&chip, &mut draw, DType::F32, &Case { x: &[3, 64, 7, 5], outputs: 80, dilation: &[2, 1], groups: 2, ..base });
    check_case_on(
        &chip,
        &mut draw,
        DType::F32,
        &Case { x: &[2, 33, 50], outputs: 40, kernel: &[4], stride: &[3], dilation: &[1], padding: &[(2, 0)], ..base },
    );
}

#[test]
fn convolutions_on_tensor_cores_are_as_exact_as_plain_ones() {
    let dims = ([2usize, 64, 10, 10], [64usize, 64, 3, 3]);
    let attrs = ConvAttrs {
        stride: SmallVec::from_slice(&[1, 1]),
        dilation: SmallVec::from_slice(&[1, 1]),
        padding: SmallVec::from_slice(&[(1, 1), (1, 1)]),
        groups: 1,
        channels_last: false,
    };
    let mut g = Graph::new();
    let (x, w) = (g.input(&dims.0, DType::F32), g.input(&dims.1, DType::F32));
    g.outputs = vec![g.add(Op::Conv(attrs), &[x, w]).unwrap()];
    let program = crate::oracle::program(&g, true);
    let mut draw = Draw(49);
    let mut inputs = [draw.tensor(DType::F32, &dims.0, (-1.0, 1.0)), draw.tensor(DType::F32, &dims.1, (-1.0, 1.0))];
    let run = |inputs: &[Tensor], chip: &Chip| match crate::gpu::device() {
        Some(gpu) => Some(crate::gpu::run(gpu, &program, inputs, &[], 1).unwrap()),
        None if emulator::available() => Some(emulator::run(&program, inputs, &[], chip).unwrap()),
        None => None,
    };
    let error = |inputs: &[Tensor], chip: &Chip| {
        let want = &interp::run_with(&g, inputs, &[], interp::Options { round_every_op: false }).unwrap()[0];
        let got = Tensor::from_bytes(DType::F32, &want.dims, &run(inputs, chip)?[0]);
        let square = |f: &dyn Fn(usize) -> f64| (0..want.len()).map(|i| f(i).powi(2)).sum::<f64>().sqrt();
        Some(square(&|i| got.get(i).float() - want.get(i).float()) / square(&|i| want.get(i).float()))
    };
    let Some(full) = error(&inputs, &Chip::of(80)) else { return };
    assert!(full < 3e-7, "relative error {full}");
    if crate::gpu::device().is_none() {
        let high = error(&inputs, &Chip { precision: MatmulPrecision::High, ..Chip::of(80) }).unwrap();
        assert!((1e-5..1e-3).contains(&high), "factors of 11 bits have an error of {high}");
    }
    // What isn't finite stays what it is, wherever a window meets it.
    for (tensor, at, v) in [(0, 77, f64::INFINITY), (0, 5000, f64::NEG_INFINITY), (1, 900, f64::NAN)] {
        inputs[tensor].set(at, Scalar::Float(v));
    }
    if let Some(got) = run(&inputs, &Chip::of(80)) {
        let want = interp::run_with(&g, &inputs, &[], interp::Options { round_every_op: false }).unwrap();
        crate::oracle::compare("with infinities", &program, &got, &want, 10.0);
    }
}

#[test]
fn convolutions_without_products_are_zero() {
    let mut draw = Draw(43);
    let base = Case { x: &[2, 0, 5, 5], outputs: 3, kernel: &[3, 3], stride: &[1, 1], dilation: &[1, 1], padding: &[(1, 1), (1, 1)], groups: 1 };
    check_case(&mut draw, DType::F32, &base);
    check_case(&mut draw, DType::BF16, &Case { x: &[0, 2, 5, 5], ..base });
}

#[test]
fn bias_activation_and_residual_are_part_of_the_kernel() {
    let mut draw = Draw(44);
    for dtype in [DType::F32, DType::BF16] {
        let attrs = ConvAttrs {
            stride: SmallVec::from_slice(&[1, 1]),
            dilation: SmallVec::from_slice(&[1, 1]),
            padding: SmallVec::from_slice(&[(1, 1), (1, 1)]),
            groups: 1,
            channels_last: false,
        };
        let mut g = Graph::new();
        let (x, w, bias, residual) =
            (g.input(&[2, 3, 6, 6], dtype), g.input(&[5, 3, 3, 3], dtype), g.input(&[1, 5, 1, 1], dtype), g.input(&[2, 5, 6, 6], dtype));
        let y = g.add(Op::Conv(attrs), &[x, w]).unwrap();
        let b = g.add_as(Op::Expand, &[bias], &[2, 5, 6, 6], dtype).unwrap();
        let y = g.add(Op::Elementwise(Elementwise::Add), &[y, b]).unwrap();
        let y = g.add(Op::Elementwise(Elementwise::Tanh), &[y]).unwrap();
        let y = g.add(Op::Elementwise(Elementwise::Add), &[y, residual]).unwrap();
        g.outputs = vec![y];
        let program = crate::oracle::program(&g, true);
        assert_eq!(program.kernels().count(), 1, "{}", kiln_compiler::print::print(&program));
        let inputs = [&[2, 3, 6, 6][..], &[5, 3, 3, 3], &[1, 5, 1, 1], &[2, 5, 6, 6]].map(|d| draw.tensor(dtype, d, (-1.0, 1.0)));
        check_within(&g, &inputs, &[], 10.0);
    }
}

#[test]
fn convolutions_of_half_floats_run_on_warpgroups() {
    let mut draw = Draw(46);
    let chip = Chip { multiprocessors: 4, ..Chip::of(90) };
    let base = Case { x: &[2, 16, 9, 9], outputs: 24, kernel: &[3, 3], stride: &[1, 1], dilation: &[1, 1], padding: &[(1, 1), (1, 1)], groups: 1 };
    check_case_on(&chip, &mut draw, DType::BF16, &base);
    check_case_on(&chip, &mut draw, DType::F16, &Case { x: &[1, 72, 14, 14], outputs: 136, stride: &[2, 1], dilation: &[1, 2], ..base });
    let pointwise = Case { x: &[2, 72, 8, 16], outputs: 136, kernel: &[1, 1], padding: &[(0, 0), (0, 0)], ..base };
    check_case_on(&chip, &mut draw, DType::F16, &pointwise);
    check_case_on(&chip, &mut draw, DType::BF16, &Case { x: &[2, 128, 8, 16], outputs: 64, groups: 2, ..pointwise });
}
