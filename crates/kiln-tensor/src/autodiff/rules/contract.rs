//! Gradients of matrix products, convolutions, pools and attention.
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::Op;
use kiln_ir::op::{AttentionAttrs, ConvAttrs, PoolAttrs};
use smallvec::SmallVec;

use super::Backward;
use crate::raw::{RawTensor, apply, apply_as, apply_results};
use crate::trace::Operand;

/// `dy bᵀ` and `aᵀ dy`, summed over batch axes that were broadcast.
pub(super) fn dot(b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let lhs = b.wants(0).then(|| b.dy.dot(&b.value(1).transpose()).sum_to(b.dims(0)));
    let rhs = b.wants(1).then(|| b.value(0).transpose().dot(b.dy).sum_to(b.dims(1)));
    vec![lhs, rhs]
}

/// `Conv(x, w)`.
pub(super) fn conv(attrs: &ConvAttrs, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let dx = b.wants(0).then(|| input_grad(attrs, b.dy, &b.value(1), b.dims(0)));
    let dw = b.wants(1).then(|| weight_grad(attrs, &b.value(0), b.dy, b.dims(1)));
    vec![dx, dw]
}

/// `ConvInputGrad(y, w)`: the convolution turned round.
pub(super) fn conv_input_grad(attrs: &ConvAttrs, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let dy = b.wants(0).then(|| forward(attrs, b.dy, &b.value(1)));
    let dw = b.wants(1).then(|| weight_grad(attrs, b.dy, &b.value(0), b.dims(1)));
    vec![dy, dw]
}

/// `ConvWeightGrad(x, y)`.
pub(super) fn conv_weight_grad(attrs: &ConvAttrs, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let dx = b.wants(0).then(|| input_grad(attrs, &b.value(1), b.dy, b.dims(0)));
    let dy = b.wants(1).then(|| forward(attrs, &b.value(0), b.dy));
    vec![dx, dy]
}

fn forward(attrs: &ConvAttrs, x: &RawTensor, w: &RawTensor) -> RawTensor {
    apply(Op::Conv(attrs.clone()), &[Operand::Tensor(x), Operand::Tensor(w)])
}

fn input_grad(attrs: &ConvAttrs, dy: &RawTensor, w: &RawTensor, dims: &[usize]) -> RawTensor {
    apply_as(Op::ConvInputGrad(attrs.clone()), &[Operand::Tensor(dy), Operand::Tensor(w)], dims, dy.dtype())
}

fn weight_grad(attrs: &ConvAttrs, x: &RawTensor, dy: &RawTensor, dims: &[usize]) -> RawTensor {
    apply_as(Op::ConvWeightGrad(attrs.clone()), &[Operand::Tensor(x), Operand::Tensor(dy)], dims, dy.dtype())
}

/// Each maximum's gradient goes where it came from.
pub(super) fn max_pool(attrs: &PoolAttrs, b: &Backward<'_>) -> RawTensor {
    apply_as(Op::MaxPoolGrad(attrs.clone()), &[Operand::Tensor(b.dy), Operand::Tensor(&b.extra())], b.dims(0), b.dtype(0))
}

/// The gradient of that: a read at the indices.
pub(super) fn max_pool_grad(b: &Backward<'_>) -> RawTensor {
    let index = b.value(1);
    let (n, c) = (index.dims()[0], index.dims()[1]);
    let plane = |x: &RawTensor| x.reshape(&[n, c, x.dims()[2..].iter().product()]);
    plane(b.dy).gather(2, &plane(&index)).reshape(b.dims(0))
}

/// Each mean's gradient is spread over its window.
pub(super) fn avg_pool(attrs: &PoolAttrs, b: &Backward<'_>) -> RawTensor {
    apply_as(Op::AvgPoolGrad(attrs.clone()), &[Operand::Tensor(b.dy)], b.dims(0), b.dtype(0))
}

/// The gradient of that: the mean again.
pub(super) fn avg_pool_grad(attrs: &PoolAttrs, b: &Backward<'_>) -> RawTensor {
    apply(Op::AvgPool(attrs.clone()), &[Operand::Tensor(b.dy)])
}

/// One op gives all three gradients.
pub(super) fn attention(attrs: &AttentionAttrs, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let values: SmallVec<[RawTensor; 5]> = (0..b.step.saved.len()).map(|i| b.value(i)).collect();
    let (out, lse) = (b.output(), b.extra());
    let mut operands: SmallVec<[Operand<'_>; 8]> = values[..3].iter().map(Operand::Tensor).collect();
    operands.extend([&out, &lse, b.dy].map(Operand::Tensor));
    operands.extend(values[3..].iter().map(Operand::Tensor));
    let [dq, dk, dv] = apply_results(Op::AttentionGrad(*attrs), &operands);
    let mut grads = vec![b.wants(0).then_some(dq), b.wants(1).then_some(dk), b.wants(2).then_some(dv)];
    grads.resize(b.step.saved.len(), None);
    grads
}
