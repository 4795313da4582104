//! Dots and convolutions.
use kiln_ir::op::ConvAttrs;
use kiln_ir::{DType, Elementwise, Graph, Op};
use smallvec::SmallVec;

use super::layouts::{Layout, starts};
use crate::oracle::{Draw, check_within};

/// Sizes of a batch on both sides, rows, columns and the summed size.
type Sizes = (&'static [usize], &'static [usize], usize, usize, usize);

const DOTS: [Sizes; 9] = [
    (&[], &[], 5, 7, 9),
    (&[], &[], 1, 40, 33),
    (&[], &[], 40, 1, 33),
    (&[3], &[3], 17, 35, 20),
    (&[3], &[1], 6, 8, 5),
    (&[1, 4], &[2, 1], 3, 33, 2),
    (&[], &[], 70, 66, 130),
    (&[2], &[2], 4, 5, 0),
    (&[], &[], 0, 5, 3),
];

#[test]
fn dots_match_in_every_dtype_and_layout() {
    let mut draw = Draw(61);
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Bool) {
        for (lhs_batch, rhs_batch, m, n, k) in DOTS {
            for layouts in 0..4 {
                let [a, b] = [[0, 0], [1, 0], [0, 1], [3, 2]][layouts];
                let mut g = Graph::new();
                let mut inputs = Vec::new();
                let range = if dtype.is_float() { (-1.0, 1.0) } else { (-12.0, 13.0) };
                let dims = |batch: &[usize], r: usize, c: usize| -> Vec<usize> { batch.iter().copied().chain([r, c]).collect() };
                let x = Layout::ALL[a].operand(&mut g, &mut draw, dtype, &dims(lhs_batch, m, k), range, &mut inputs);
                let y = Layout::ALL[b].operand(&mut g, &mut draw, dtype, &dims(rhs_batch, k, n), range, &mut inputs);
                let z = g.add(Op::Dot, &[x, y]).unwrap();
                g.outputs = vec![z];
                check_within(&g, &inputs, &starts(&g), 4.0);
            }
        }
    }
}

#[test]
fn dots_take_prologues_and_epilogues() {
    let mut draw = Draw(62);
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32, DType::I8] {
        for (lhs_batch, rhs_batch, m, n, k) in DOTS {
            let mut g = Graph::new();
            let mut inputs = Vec::new();
            let range = if dtype.is_float() { (-1.0, 1.0) } else { (-12.0, 13.0) };
            let dims = |batch: &[usize], r: usize, c: usize| -> Vec<usize> { batch.iter().copied().chain([r, c]).collect() };
            let x = Layout::Transposed.operand(&mut g, &mut draw, dtype, &dims(lhs_batch, m, k), range, &mut inputs);
            let y = Layout::Contiguous.operand(&mut g, &mut draw, dtype, &dims(rhs_batch, k, n), range, &mut inputs);
            let x = g.add(Op::Elementwise(Elementwise::Abs), &[x]).unwrap();
            let y2 = g.add(Op::Elementwise(Elementwise::Mul), &[y, y]).unwrap();
            let z = g.add(Op::Dot, &[x, y2]).unwrap();
            let out = g.node(z).dims.clone();
            let bias = Layout::Broadcast.operand(&mut g, &mut draw, dtype, &out, range, &mut inputs);
            let z = g.add(Op::Elementwise(Elementwise::Add), &[z, bias]).unwrap();
            let zero = g.constant(dtype, 0);
            let relu = g.add(Op::Elementwise(Elementwise::Max), &[z, zero]).unwrap();
            g.outputs = vec![relu];
            check_within(&g, &inputs, &starts(&g), 20.0);
            g.outputs = vec![relu, z];
            check_within(&g, &inputs, &starts(&g), 20.0);
        }
    }
}

#[test]
fn infinities_meet_zeros_in_sums() {
    use kiln_ir::interp::{Scalar, Tensor};
    let mut g = Graph::new();
    let (x, y) = (g.input(&[3, 4], DType::F32), g.input(&[4, 5], DType::F32));
    let z = g.add(Op::Dot, &[x, y]).unwrap();
    g.outputs = vec![z];
    let mut b = Tensor::from_f64(DType::F32, &[4, 5], &[1.0; 20]);
    b.set(7, Scalar::Float(f64::INFINITY));
    check_within(&g, &[Tensor::zeros(DType::F32, &[3, 4]), b], &[], 1.0);
}

#[test]
fn convolutions_and_gradients_match_for_every_geometry() {
    let mut draw = Draw(63);
    for round in 0..90 {
        let n = 1 + round % 3;
        let dtype = [DType::F32, DType::F64, DType::F16, DType::BF16][round / 3 % 4];
        let groups = [1, 1, 2, 3][draw.below(4)];
        let (inside, outside) = (1 + draw.below(3), 1 + draw.below(3));
        let mut pick = |from: usize, count: usize| -> SmallVec<[usize; 3]> { (0..n).map(|_| from + draw.below(count)).collect() };
        let (kernel, stride, dilation, size) = (pick(1, 3), pick(1, 2), pick(1, 2), pick(6, 6));
        let padding = (0..n).map(|_| (draw.below(3), draw.below(3))).collect();
        let attrs = ConvAttrs { stride, dilation, padding, groups, channels_last: false };
        let x_dims: Vec<usize> = [2, inside * groups].into_iter().chain(size).collect();
        let w_dims: Vec<usize> = [outside * groups, inside].into_iter().chain(kernel).collect();
        let mut g = Graph::new();
        let (x, w) = (g.input(&x_dims, dtype), g.input(&w_dims, dtype));
        let y = g.add(Op::Conv(attrs.clone()), &[x, w]).unwrap();
        let y_dims = g.node(y).dims.clone();
        let dy = g.input(&y_dims, dtype);
        let dx = g.add_as(Op::ConvInputGrad(attrs.clone()), &[dy, w], &x_dims, dtype).unwrap();
        let dw = g.add_as(Op::ConvWeightGrad(attrs), &[x, dy], &w_dims, dtype).unwrap();
        let bias = g.input(&[w_dims[0]], dtype);
        let mut shape = vec![1; n + 2];
        shape[1] = w_dims[0];
        let bias = g.add_as(Op::Reshape, &[bias], &shape, dtype).unwrap();
        let bias = g.add_as(Op::Expand, &[bias], &y_dims, dtype).unwrap();
        let sum = g.add(Op::Elementwise(Elementwise::Add), &[y, bias]).unwrap();
        let act = g.add(Op::Elementwise(Elementwise::Tanh), &[sum]).unwrap();
        g.outputs = if round % 2 == 0 { vec![y, dx, dw] } else { vec![act, dx, dw] };
        let shapes: [&[usize]; 4] = [&x_dims, &w_dims, &y_dims, &w_dims[..1]];
        let inputs: Vec<_> = shapes.iter().map(|d| draw.tensor(dtype, d, (-1.0, 1.0))).collect();
        check_within(&g, &inputs, &[], 20.0);
    }
}

#[test]
fn convolutions_take_epilogues_that_walk_their_axes_apart() {
    let mut draw = Draw(64);
    for stride in [1, 2] {
        let attrs = ConvAttrs {
            stride: SmallVec::from_slice(&[stride, 1]),
            dilation: SmallVec::from_slice(&[1, 1]),
            padding: SmallVec::from_slice(&[(1, 1), (1, 1)]),
            groups: 1,
            channels_last: false,
        };
        let mut g = Graph::new();
        let mut inputs = Vec::new();
        let (x_dims, w_dims) = ([2, 3, 7, 6], [4, 3, 3, 3]);
        let x = Layout::Contiguous.operand(&mut g, &mut draw, DType::F32, &x_dims, (-1.0, 1.0), &mut inputs);
        let w = Layout::Contiguous.operand(&mut g, &mut draw, DType::F32, &w_dims, (-1.0, 1.0), &mut inputs);
        let y = g.add(Op::Conv(attrs.clone()), &[x, w]).unwrap();
        let y_dims = g.node(y).dims.clone();
        // A residual stored with height and width exchanged.
        let residual = Layout::Transposed.operand(&mut g, &mut draw, DType::F32, &y_dims, (-1.0, 1.0), &mut inputs);
        let sum = g.add(Op::Elementwise(Elementwise::Add), &[y, residual]).unwrap();
        let dx = g.add_as(Op::ConvInputGrad(attrs.clone()), &[residual, w], &x_dims, DType::F32).unwrap();
        let moved = Layout::Transposed.operand(&mut g, &mut draw, DType::F32, &x_dims, (-1.0, 1.0), &mut inputs);
        let dx = g.add(Op::Elementwise(Elementwise::Mul), &[dx, moved]).unwrap();
        let dw = g.add_as(Op::ConvWeightGrad(attrs), &[x, residual], &w_dims, DType::F32).unwrap();
        let turned = Layout::Transposed.operand(&mut g, &mut draw, DType::F32, &w_dims, (-1.0, 1.0), &mut inputs);
        let dw = g.add(Op::Elementwise(Elementwise::Sub), &[dw, turned]).unwrap();
        g.outputs = vec![sum, dx, dw];
        check_within(&g, &inputs, &[], 20.0);
    }
}
