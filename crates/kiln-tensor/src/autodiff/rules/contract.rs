//! Gradients of matrix products, convolutions, pools and attention.
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::Elementwise::{Add, Div, Mul};
use kiln_ir::Op;
use kiln_ir::op::{AttentionAttrs, ConvAttrs, PoolAttrs};
use smallvec::SmallVec;

use super::Backward;
use crate::raw::{AttentionOptions, RawTensor, apply, apply_as, apply_results};
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

/// One op gives all three gradients; gradients that are tracked themselves are composed of ordinary ops.
pub(super) fn attention(attrs: &AttentionAttrs, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    if b.tracked.is_some() {
        return composed_attention(attrs, b);
    }
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

/// With `P = softmax(S)` and `out = P V`: `dV = Pᵀ dy`, `dS = P (dy Vᵀ - rowsum(dy Vᵀ P))`, and from there to the factors of the scores.
fn composed_attention(attrs: &AttentionAttrs, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let (q, k, v) = (b.value(0), b.value(1), b.value(2));
    let rest = |i: usize| b.value(i).without_autodiff();
    let mask = attrs.has_mask.then(|| rest(3));
    let bias = attrs.has_bias.then(|| rest(3 + attrs.has_mask as usize));
    let (scale, softcap) = (f64::from_bits(attrs.scale), f64::from_bits(attrs.softcap));
    let options = AttentionOptions { scale: Some(scale), softcap: Some(softcap), causal: attrs.causal };
    let parts = q.attention_weights(&k, &v, mask.as_ref(), bias.as_ref(), options);
    let p = &parts.weights;
    let dp = b.dy.matmul(&parts.values.transpose());
    let mut ds = p.mul(&dp.sub(&p.mul(&dp).sum(&[3])));
    if let Some(capped) = &parts.capped {
        // d/ds c tanh(s / c) = 1 - tanh²(s / c)
        ds = ds.mul(&capped.with_constant(Div, softcap).square().neg().with_constant(Add, 1.0));
    }
    let ds = ds.with_constant(Mul, scale);
    // Query heads that share a key head add up.
    let gather = |x: RawTensor, like: &RawTensor| {
        let (h, g) = (x.dims()[1], like.dims()[1]);
        let (n, s, d) = (x.dims()[0], x.dims()[2], x.dims()[3]);
        if h == g { x } else { x.reshape(&[n, g, h / g, s, d]).sum(&[2]).reshape(like.dims()) }
    };
    let mut grads = vec![
        b.wants(0).then(|| ds.matmul(&parts.keys)),
        b.wants(1).then(|| gather(ds.transpose().matmul(&q), &k)),
        b.wants(2).then(|| gather(p.transpose().matmul(b.dy), &v)),
    ];
    grads.resize(b.step.saved.len(), None);
    grads
}
