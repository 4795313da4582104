//! Tests of the interpreter against values computed by hand.
use smallvec::smallvec;

use super::*;
use crate::expr::{Inst, Level};
use crate::kernel::Fused;
use crate::op::{AttentionAttrs, ConvAttrs, PoolAttrs, SliceAxis, WindowAxis, word_from_f64, word_from_int};
use crate::{
    Affine, BufId, BufSpec, Elementwise, Expr, Kernel, Launch, Load, NodeId, OutputSpec, Place, Program, ReduceOp, ScanOp, ScatterOp, Store,
};

const F: DType = DType::F32;

fn floats(dims: &[usize], v: &[f64]) -> Tensor {
    Tensor::from_f64(F, dims, v)
}

fn ints(dims: &[usize], v: &[i128]) -> Tensor {
    Tensor::from_ints(DType::I64, dims, v)
}

/// Runs one op on inputs; `stated` is the result's type where the operands don't determine it. Returns all results.
fn eval(op: Op, inputs: &[Tensor], stated: Option<(&[usize], DType)>) -> Result<Vec<Tensor>, String> {
    let mut g = Graph::new();
    let x: Vec<NodeId> = inputs.iter().map(|t| g.input(&t.dims, t.dtype)).collect();
    let types: Vec<(&[usize], DType)> = inputs.iter().map(|t| (&t.dims[..], t.dtype)).collect();
    let count = crate::infer::result_count(&op, &types);
    let n = match stated {
        Some((dims, dtype)) => g.add_as(op, &x, dims, dtype),
        None => g.add(op, &x),
    }
    .unwrap();
    g.outputs.push(n);
    for i in 1..count {
        let r = g.get(n, i as u32).unwrap();
        g.outputs.push(r);
    }
    run(&g, inputs, &[])
}

#[track_caller]
fn check(op: Op, inputs: &[Tensor], stated: Option<(&[usize], DType)>, expected: &[&[f64]]) {
    let out = eval(op.clone(), inputs, stated).unwrap();
    assert_eq!(out.len(), expected.len(), "{}", op.name());
    for (t, e) in out.iter().zip(expected) {
        let same = t.len() == e.len() && t.floats().iter().zip(*e).all(|(a, b)| a == b || (a - b).abs() < 1e-6 || (a.is_nan() && b.is_nan()));
        assert!(same, "{}: {:?} is not {e:?}", op.name(), t.floats());
    }
}

#[test]
fn elementwise_rows_broadcast_scalars_and_wrap() {
    let e = Op::Elementwise;
    check(e(Elementwise::Add), &[floats(&[2], &[1.0, 2.0]), floats(&[], &[0.5])], None, &[&[1.5, 2.5]]);
    let bytes = |v: &[i128]| Tensor::from_ints(DType::U8, &[v.len()], v);
    check(e(Elementwise::Sub), &[bytes(&[3, 200]), bytes(&[5, 100])], None, &[&[254.0, 100.0]]);
    let truth = Tensor::from_ints(DType::Bool, &[2], &[1, 0]);
    check(e(Elementwise::Not), core::slice::from_ref(&truth), None, &[&[0.0, 1.0]]);
    check(e(Elementwise::Where), &[truth, floats(&[2], &[1.0, f64::NAN]), floats(&[2], &[f64::NAN, 2.0])], None, &[&[1.0, 2.0]]);
    check(e(Elementwise::Lt), &[floats(&[2], &[1.0, f64::NAN]), floats(&[2], &[2.0, 2.0])], None, &[&[1.0, 0.0]]);
}

#[test]
fn rounding_after_every_op_differs_from_the_exact_result() {
    let mut g = Graph::new();
    let x = g.input(&[1], DType::F16);
    let y = g.add(Op::Elementwise(Elementwise::Mul), &[x, x]).unwrap();
    let z = g.add(Op::Elementwise(Elementwise::Sub), &[y, y]).unwrap();
    let w = g.add(Op::Elementwise(Elementwise::Add), &[z, y]).unwrap();
    g.outputs = vec![w];
    let input = [Tensor::from_f64(DType::F16, &[1], &[300.0])];
    assert!(run(&g, &input, &[]).unwrap()[0].floats()[0].is_nan());
    assert_eq!(run_with(&g, &input, &[], Options { round_every_op: false }).unwrap()[0].floats(), [f64::INFINITY]);
}

#[test]
fn views_rename_elements() {
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let one = core::slice::from_ref(&x);
    check(Op::Permute(smallvec![1, 0]), one, None, &[&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]]);
    check(Op::Reshape, one, Some((&[3, 2], F)), &[&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]);
    check(Op::Expand, &[floats(&[2, 1], &[1.0, 2.0])], Some((&[2, 2, 2], F)), &[&[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]]);
    let w = WindowAxis { axis: 1, size: 2, stride: 1, dilation: 1 };
    check(Op::Window(smallvec![w]), one, None, &[&[1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0]]);
    check(Op::Fold(smallvec![w]), &[floats(&[2, 2, 2], &[1.0; 8])], Some((&[2, 3], F)), &[&[1.0, 2.0, 1.0, 1.0, 2.0, 1.0]]);
    let back = SliceAxis { axis: 1, step: -2 };
    let start = ints(&[], &[2]);
    check(Op::Slice(smallvec![back]), &[x.clone(), start.clone()], Some((&[2, 2], F)), &[&[3.0, 1.0, 6.0, 4.0]]);
    check(Op::Update(smallvec![back]), &[x.clone(), floats(&[2, 2], &[9.0, 8.0, 7.0, 6.0]), start], None, &[&[8.0, 2.0, 9.0, 6.0, 5.0, 7.0]]);
    let e = eval(Op::Slice(smallvec![SliceAxis { axis: 0, step: 1 }]), &[x, ints(&[], &[1])], Some((&[2, 3], F)));
    assert_eq!(e.unwrap_err(), "slice: element 2 of axis 0 of [2, 3]");
}

#[test]
fn regions_are_placed() {
    let x = floats(&[2], &[1.0, 2.0]);
    check(Op::Pad(smallvec![(1, 2)]), &[x.clone(), floats(&[], &[9.0])], None, &[&[9.0, 1.0, 2.0, 9.0, 9.0]]);
    check(Op::Concat { axis: 0 }, &[x.clone(), floats(&[0], &[]), x], None, &[&[1.0, 2.0, 1.0, 2.0]]);
    check(Op::Iota { axis: 1 }, &[], Some((&[2, 3], DType::I32)), &[&[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]]);
}

#[test]
fn reductions_know_nan_ties_and_empty_axes() {
    let nan = f64::NAN;
    let x = floats(&[2, 3], &[3.0, nan, nan, 4.0, 5.0, 5.0]);
    let r = |op, axes| Op::Reduce { op, axes };
    let one = core::slice::from_ref(&x);
    check(r(ReduceOp::Max, 2), one, None, &[&[nan, 5.0]]);
    check(r(ReduceOp::ArgMax, 2), one, None, &[&[1.0, 1.0]]);
    check(r(ReduceOp::ArgMin, 2), one, None, &[&[1.0, 0.0]]);
    check(r(ReduceOp::ArgMax, 3), one, None, &[&[1.0]]);
    check(r(ReduceOp::Sum, 1), &[floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])], None, &[&[4.0, 6.0]]);
    check(r(ReduceOp::Prod, 2), &[floats(&[2, 0], &[])], None, &[&[1.0, 1.0]]);
    let truth = Tensor::from_ints(DType::Bool, &[2, 2], &[1, 0, 1, 1]);
    check(r(ReduceOp::All, 2), core::slice::from_ref(&truth), None, &[&[0.0, 1.0]]);
    check(r(ReduceOp::Any, 2), &[truth], None, &[&[1.0, 1.0]]);
}

#[test]
fn scans_run_along_their_axis() {
    let x = floats(&[3, 2], &[1.0, 2.0, 3.0, f64::NAN, 2.0, 5.0]);
    check(Op::Scan { op: ScanOp::Sum, axis: 1 }, &[floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0])], None, &[&[1.0, 3.0, 3.0, 7.0]]);
    check(Op::Scan { op: ScanOp::Max, axis: 0 }, core::slice::from_ref(&x), None, &[&[1.0, 2.0, 3.0, f64::NAN, 3.0, f64::NAN]]);
    check(Op::Scan { op: ScanOp::Prod, axis: 0 }, &[ints(&[3], &[2, 3, 4])], None, &[&[2.0, 6.0, 24.0]]);
    check(Op::Scan { op: ScanOp::Min, axis: 0 }, &[ints(&[3], &[2, 3, 1])], None, &[&[2.0, 2.0, 1.0]]);
}

#[test]
fn dots_sum_products_over_broadcast_batches() {
    let x = floats(&[2, 1, 2], &[1.0, 2.0, 3.0, 4.0]);
    let y = floats(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    check(Op::Dot, &[x, y], None, &[&[7.0, 10.0, 15.0, 22.0]]);
    check(Op::Dot, &[floats(&[2, 0], &[]), floats(&[0, 1], &[])], None, &[&[0.0, 0.0]]);
    check(Op::Dot, &[floats(&[1, 1], &[0.0]), floats(&[1, 1], &[f64::INFINITY])], None, &[&[f64::NAN]]);
    let wide = |v| Tensor::from_ints(DType::I8, &[1, 1], &[v]);
    check(Op::Dot, &[wide(100), wide(3)], None, &[&[44.0]]);
}

fn conv_attrs() -> ConvAttrs {
    ConvAttrs { stride: smallvec![2], dilation: smallvec![1], padding: smallvec![(1, 0)], groups: 1, channels_last: false }
}

#[test]
fn convolution_and_its_gradients_are_adjoint() {
    let x = floats(&[1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let w = floats(&[1, 1, 3], &[1.0, 10.0, 100.0]);
    // Windows [0, 1, 2] and [2, 3, 4].
    check(Op::Conv(conv_attrs()), &[x.clone(), w.clone()], None, &[&[210.0, 432.0]]);
    let dy = floats(&[1, 1, 2], &[1.0, 2.0]);
    check(Op::ConvInputGrad(conv_attrs()), &[dy.clone(), w], Some((&[1, 1, 4], F)), &[&[10.0, 100.0 + 2.0, 20.0, 200.0]]);
    check(Op::ConvWeightGrad(conv_attrs()), &[x, dy], Some((&[1, 1, 3], F)), &[&[4.0, 7.0, 10.0]]);
    let grouped = ConvAttrs { stride: smallvec![1], dilation: smallvec![1], padding: smallvec![(0, 0)], groups: 2, channels_last: false };
    check(Op::Conv(grouped), &[floats(&[1, 2, 1], &[2.0, 3.0]), floats(&[2, 1, 1], &[10.0, 100.0])], None, &[&[20.0, 300.0]]);
}

#[test]
fn convolutions_with_their_channels_last_are_those_of_turned_operands() {
    let attrs = ConvAttrs { stride: smallvec![1], dilation: smallvec![1], padding: smallvec![(0, 0)], groups: 1, channels_last: true };
    // Two channels of length 3: [1, 2, 3] and [4, 5, 6]; one output of kernel [1, 10] and [100, 1000].
    let (x, w) = (floats(&[1, 3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]), floats(&[1, 2, 2], &[1.0, 100.0, 10.0, 1000.0]));
    check(Op::Conv(attrs.clone()), &[x.clone(), w.clone()], None, &[&[5421.0, 6532.0]]);
    let dy = floats(&[1, 2, 1], &[1.0, 2.0]);
    let dx = [1.0, 100.0, 10.0 + 2.0, 1000.0 + 200.0, 20.0, 2000.0];
    check(Op::ConvInputGrad(attrs.clone()), &[dy.clone(), w], Some((&[1, 3, 2], F)), &[&dx]);
    check(Op::ConvWeightGrad(attrs), &[x, dy], Some((&[1, 2, 2], F)), &[&[5.0, 14.0, 8.0, 17.0]]);
    let pool = PoolAttrs { channels_last: true, padding: smallvec![(0, 0)], ..pool_attrs(true, false) };
    let x = floats(&[1, 4, 2], &[1.0, -1.0, 3.0, -3.0, 5.0, -5.0, 2.0, -2.0]);
    check(Op::MaxPool(pool), &[x], None, &[&[3.0, -1.0, 5.0, -2.0], &[1.0, 0.0, 2.0, 3.0]]);
}

fn pool_attrs(include: bool, ceil: bool) -> PoolAttrs {
    PoolAttrs {
        kernel: smallvec![2],
        stride: smallvec![2],
        dilation: smallvec![1],
        padding: smallvec![(1, 0)],
        count_include_pad: include,
        ceil_mode: ceil,
        channels_last: false,
    }
}

#[test]
fn pools_pad_count_and_index() {
    let x = floats(&[1, 1, 4], &[-1.0, 5.0, 5.0, 2.0]);
    let one = core::slice::from_ref(&x);
    // Windows [pad, -1], [5, 5], and in ceil mode [2, beyond].
    check(Op::MaxPool(pool_attrs(true, false)), one, None, &[&[-1.0, 5.0], &[0.0, 1.0]]);
    check(Op::AvgPool(pool_attrs(true, true)), one, None, &[&[-0.5, 5.0, 2.0]]);
    check(Op::AvgPool(pool_attrs(false, false)), one, None, &[&[-1.0, 5.0]]);
    let dy = floats(&[1, 1, 2], &[4.0, 6.0]);
    check(Op::MaxPoolGrad(pool_attrs(true, false)), &[dy.clone(), ints(&[1, 1, 2], &[0, 1])], Some((&[1, 1, 4], F)), &[&[4.0, 6.0, 0.0, 0.0]]);
    check(Op::AvgPoolGrad(pool_attrs(true, false)), &[dy], Some((&[1, 1, 4], F)), &[&[2.0, 3.0, 3.0, 0.0]]);
}

#[test]
fn gather_and_scatter_follow_indices_and_refuse_bad_ones() {
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(Op::Gather { axis: 1 }, &[x.clone(), ints(&[2, 2], &[2, 0, 1, 1])], None, &[&[3.0, 1.0, 5.0, 5.0]]);
    let scatter = |op| Op::Scatter { axis: 1, op };
    let operands = [x.clone(), ints(&[2, 2], &[0, 0, 2, 1]), floats(&[2, 2], &[10.0, 20.0, 30.0, -40.0])];
    check(scatter(ScatterOp::Add), &operands, None, &[&[31.0, 2.0, 3.0, 4.0, -35.0, 36.0]]);
    check(scatter(ScatterOp::Assign), &operands, None, &[&[20.0, 2.0, 3.0, 4.0, -40.0, 30.0]]);
    check(scatter(ScatterOp::Min), &operands, None, &[&[1.0, 2.0, 3.0, 4.0, -40.0, 6.0]]);
    let e = eval(Op::Gather { axis: 1 }, &[x, ints(&[2, 1], &[0, 3])], None);
    assert_eq!(e.unwrap_err(), "gather: index 3 is out of range for axis 1 of size 3");
}

#[test]
fn sort_is_stable_with_nan_last_or_first() {
    let x = floats(&[5], &[2.0, f64::NAN, -0.0, 0.0, 1.0]);
    let one = core::slice::from_ref(&x);
    check(Op::Sort { axis: 0, descending: false }, one, None, &[&[0.0, 0.0, 1.0, 2.0, f64::NAN], &[2.0, 3.0, 4.0, 0.0, 1.0]]);
    check(Op::Sort { axis: 0, descending: true }, one, None, &[&[f64::NAN, 2.0, 1.0, 0.0, 0.0], &[1.0, 0.0, 4.0, 2.0, 3.0]]);
}

fn attention_attrs() -> AttentionAttrs {
    AttentionAttrs { scale: 1.0f64.to_bits(), softcap: 0.0f64.to_bits(), causal: false, has_mask: false, has_bias: false }
}

#[test]
fn attention_weighs_values_by_softmax() {
    let q = floats(&[1, 1, 2, 1], &[0.0, 1.0]);
    let k = floats(&[1, 1, 2, 1], &[0.0, 3.0f64.ln()]);
    let v = floats(&[1, 1, 2, 1], &[1.0, 5.0]);
    let x = [q, k, v];
    check(Op::Attention(attention_attrs()), &x, None, &[&[3.0, 4.0], &[2.0f64.ln(), 4.0f64.ln()]]);
    check(Op::Attention(AttentionAttrs { causal: true, ..attention_attrs() }), &x, None, &[&[1.0, 4.0], &[0.0, 4.0f64.ln()]]);
    let masked = AttentionAttrs { has_mask: true, ..attention_attrs() };
    let mask = Tensor::from_ints(DType::Bool, &[2, 2], &[1, 1, 0, 1]);
    check(Op::Attention(masked), &[x[0].clone(), x[1].clone(), x[2].clone(), mask], None, &[&[0.0, 1.0], &[f64::NEG_INFINITY, 0.0]]);
}

#[test]
fn attention_gradient_matches_finite_differences() {
    let draw = |n: usize, salt: usize| -> Vec<f64> { (0..n).map(|i| ((i * 37 + salt * 101) % 23) as f64 / 23.0 - 0.5).collect() };
    let d = DType::F64;
    // Two query heads share one key head; soft cap, causal and bias together.
    let attrs = AttentionAttrs { softcap: 0.8f64.to_bits(), scale: 0.7f64.to_bits(), causal: true, has_mask: false, has_bias: true };
    let shapes: [&[usize]; 4] = [&[1, 2, 3, 2], &[1, 1, 4, 2], &[1, 1, 4, 3], &[2, 3, 4]];
    let x: Vec<Tensor> = shapes.iter().enumerate().map(|(k, s)| Tensor::from_f64(d, s, &draw(crate::dims::numel(s), k))).collect();
    let dout = Tensor::from_f64(d, &[1, 2, 3, 3], &draw(18, 9));
    let forward = |x: &[Tensor]| eval(Op::Attention(attrs), x, None).unwrap();
    let loss = |x: &[Tensor]| -> f64 { forward(x)[0].floats().iter().zip(dout.floats()).map(|(a, b)| a * b).sum() };
    let results = forward(&x);
    let operands = [x[0].clone(), x[1].clone(), x[2].clone(), results[0].clone(), results[1].clone(), dout.clone(), x[3].clone()];
    let grads = eval(Op::AttentionGrad(attrs), &operands, None).unwrap();
    for (which, grad) in grads.iter().enumerate() {
        for i in 0..grad.len() {
            let moved = |by: f64| {
                let mut x = x.clone();
                let v = x[which].get(i).float() + by;
                x[which].set(i, Scalar::Float(v));
                loss(&x)
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - grad.get(i).float()).abs() < 1e-8, "operand {which}, element {i}: {slope} and {:?}", grad.get(i));
        }
    }
}

#[test]
fn random_numbers_follow_their_seed() {
    let mut g = Graph::new();
    let seed = g.arg(DType::U64);
    let u = g.add_as(Op::Random(RandomKind::Uniform), &[seed], &[3], F).unwrap();
    let b = g.add_as(Op::Random(RandomKind::Bits), &[seed], &[3], DType::I64).unwrap();
    let n = g.add_as(Op::Random(RandomKind::Normal), &[seed], &[3], DType::F64).unwrap();
    g.outputs = vec![u, b, n];
    let out = run(&g, &[], &[42]).unwrap();
    for i in 0..3 {
        assert_eq!(out[0].floats()[i], philox::uniform_f32(42, i as u64) as f64);
        assert_eq!(out[1].ints()[i], philox::word(42, i as u64, 0) as i128);
        assert_eq!(out[2].floats()[i], philox::normal_f64(42, i as u64));
    }
}

#[test]
fn constants_args_and_casts_are_read_as_words() {
    let mut g = Graph::new();
    let a = g.arg(F);
    let c = g.constant(DType::I32, word_from_int(DType::I32, -7));
    let f = g.constant(DType::F16, word_from_f64(DType::F16, 0.1));
    let i = g.add_as(Op::Cast, &[a], &[], DType::I8).unwrap();
    g.outputs = vec![a, c, f, i];
    let out = run(&g, &[], &[word_from_f64(F, 300.7)]).unwrap();
    assert_eq!(out[0].floats(), [300.7f32 as f64]);
    assert_eq!(out[1].ints(), [-7]);
    assert_eq!(out[2].floats(), [value::round(DType::F16, 0.1)]);
    assert_eq!(out[3].ints(), [127]);
}

fn affine(coeffs: &[isize]) -> Affine {
    Affine { coeffs: coeffs.into(), ..Affine::zero(0) }
}

fn row_softmax(shared: bool) -> Program {
    // One row kernel over [2, 3]: exp(x - max) / sum, in place when `shared`.
    let mut e = Expr::default();
    e.loads.push(Load { buf: BufId(0), index: affine(&[3, 1]), bounds: vec![] });
    let x = e.push(Inst::Load(0), F, Level::Full);
    let max = e.push(Inst::Reduce(ReduceOp::Max, x), F, Level::Kept);
    let d = e.push(Inst::Op(Elementwise::Sub, smallvec![x, max]), F, Level::Full);
    let p = e.push(Inst::Op(Elementwise::Exp, smallvec![d]), F, Level::Full);
    let sum = e.push(Inst::Reduce(ReduceOp::Sum, p), F, Level::Kept);
    let y = e.push(Inst::Op(Elementwise::Div, smallvec![p, sum]), F, Level::Full);
    e.stores.push(Store { buf: BufId(1), index: affine(&[3, 1]), value: y });
    e.stores.push(Store { buf: BufId(2), index: affine(&[1, 0]), value: sum });
    let spec = |place, len| BufSpec { dtype: F, len, place };
    Program {
        bufs: vec![spec(Place::Input(0), 6), spec(Place::Output(0), 6), spec(Place::Output(1), 2)],
        inputs: 1,
        outputs: vec![if shared { OutputSpec::Donated(0) } else { OutputSpec::New(24) }, OutputSpec::New(8)],
        args: 0,
        launches: vec![Launch { kernels: vec![Kernel::Fused(Fused { dims: smallvec![2, 3], kept: 1, expr: e })] }],
        arena: 0,
    }
}

#[test]
fn a_row_kernel_runs_its_phases_in_place_or_not() {
    let x = floats(&[2, 3], &[0.0, 2.0f64.ln(), 0.0, 1000.0, 1000.0, 1000.0]);
    for shared in [false, true] {
        let out = run_program(&row_softmax(shared), &[x.to_bytes()], &[]).unwrap();
        let y = Tensor::from_bytes(F, &[6], &out[0]).floats();
        for (a, b) in y.iter().zip([0.25, 0.5, 0.25, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]) {
            assert!((a - b).abs() < 1e-6);
        }
        assert_eq!(Tensor::from_bytes(F, &[2], &out[1]).floats(), [2.0, 3.0]);
    }
}

#[test]
fn a_plan_that_overwrites_what_is_still_read_is_refused() {
    let mut p = row_softmax(true);
    // The row sums would land in the row being read.
    p.bufs[2].place = Place::Input(0);
    let e = run_program(&p, &[vec![0; 24]], &[]).unwrap_err();
    assert!(e.contains("at one place"), "{e}");
    let mut p = row_softmax(true);
    let Kernel::Fused(f) = &mut p.launches[0].kernels[0] else { unreachable!() };
    f.expr.loads[0].index = affine(&[0, 1]);
    let e = run_program(&p, &[vec![0; 24]], &[]).unwrap_err();
    assert!(e.contains("overwrites buffer 0"), "{e}");
}

#[test]
fn kernels_of_a_launch_must_not_meet() {
    let copy = |from, to| Kernel::Copy { from: BufId(from), to: BufId(to) };
    let spec = |place| BufSpec { dtype: F, len: 2, place };
    let mut p = Program {
        bufs: vec![spec(Place::Input(0)), spec(Place::Arena(0)), spec(Place::Output(0))],
        inputs: 1,
        outputs: vec![OutputSpec::New(8)],
        args: 0,
        launches: vec![Launch { kernels: vec![copy(0, 1)] }, Launch { kernels: vec![copy(1, 2)] }],
        arena: 64,
    };
    let input = floats(&[2], &[1.0, 2.0]).to_bytes();
    assert_eq!(run_program(&p, core::slice::from_ref(&input), &[]).unwrap(), core::slice::from_ref(&input));
    let second = p.launches.pop().unwrap();
    p.launches[0].kernels.extend(second.kernels);
    assert!(run_program(&p, &[input], &[]).unwrap_err().contains("while kernel 1 reads"));
}
