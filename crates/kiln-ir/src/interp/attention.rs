//! Scaled-dot-product attention of the interpreter, by its formula, and its gradient.
use alloc::vec::Vec;

use super::value::{Scalar, Tensor, round};
use crate::DType;
use crate::op::AttentionAttrs;

/// Sizes and optional operands of one attention.
struct Scores<'a> {
    attrs: AttentionAttrs,
    q: &'a Tensor,
    k: &'a Tensor,
    mask: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
}

/// Flat index of `[b, h, t, s]` in a tensor that broadcasts to it.
fn broadcast_at(x: &Tensor, at: [usize; 4]) -> usize {
    let lead = 4 - x.dims.len();
    (0..x.dims.len()).fold(0, |a, d| a * x.dims[d] + if x.dims[d] == 1 { 0 } else { at[lead + d] })
}

/// Flat index of an element of a 4-axis tensor.
fn at4(x: &Tensor, i: [usize; 4]) -> usize {
    super::structural::flat(&x.dims, &i)
}

impl<'a> Scores<'a> {
    fn new(attrs: &AttentionAttrs, x: &[&'a Tensor], extra: usize) -> Self {
        let mask = if attrs.has_mask { Some(x[extra]) } else { None };
        let bias = if attrs.has_bias { Some(x[extra + attrs.has_mask as usize]) } else { None };
        Scores { attrs: *attrs, q: x[0], k: x[1], mask, bias }
    }

    /// Key head of a query head.
    fn group(&self, h: usize) -> usize {
        h / (self.q.dims[1] / self.k.dims[1])
    }

    /// The score of query `t` and key `s` (minus infinity where masked) and the derivative of the soft cap there.
    fn score(&self, [b, h, t, s]: [usize; 4]) -> (f64, f64) {
        let (queries, keys) = (self.q.dims[2], self.k.dims[2]);
        let hidden = (self.attrs.causal && s + queries > t + keys) || self.mask.is_some_and(|m| m.get(broadcast_at(m, [b, h, t, s])).int() != 0);
        if hidden {
            return (f64::NEG_INFINITY, 0.0);
        }
        let mut sum = 0.0;
        for d in 0..self.q.dims[3] {
            sum += self.q.get(at4(self.q, [b, h, t, d])).float() * self.k.get(at4(self.k, [b, self.group(h), s, d])).float();
        }
        let mut score = sum * f64::from_bits(self.attrs.scale);
        let (cap, mut slope) = (f64::from_bits(self.attrs.softcap), 1.0);
        if cap != 0.0 {
            let r = libm::tanh(score / cap);
            score = cap * r;
            slope = 1.0 - r * r;
        }
        if let Some(bias) = self.bias {
            score += bias.get(broadcast_at(bias, [b, h, t, s])).float();
        }
        (score, slope)
    }
}

fn for_each_row(dims: &[usize], mut f: impl FnMut(usize, usize, usize)) {
    for b in 0..dims[0] {
        for h in 0..dims[1] {
            for t in 0..dims[2] {
                f(b, h, t);
            }
        }
    }
}

/// [`crate::Op::Attention`]: output and log of the row sums.
pub fn attention(attrs: &AttentionAttrs, x: &[&Tensor]) -> (Tensor, Tensor) {
    let scores = Scores::new(attrs, x, 3);
    let (q, v) = (x[0], x[2]);
    let (keys, width) = (v.dims[2], v.dims[3]);
    let mut out = Tensor::zeros(q.dtype, &[q.dims[0], q.dims[1], q.dims[2], width]);
    let acc = if q.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let mut lse = Tensor::zeros(acc, &q.dims[..3]);
    let mut row = 0;
    for_each_row(&q.dims, |b, h, t| {
        let s: Vec<f64> = (0..keys).map(|s| scores.score([b, h, t, s]).0).collect();
        let max = s.iter().fold(f64::NEG_INFINITY, |m, s| if s.is_nan() || m.is_nan() { f64::NAN } else { m.max(*s) });
        // Weights have the computing precision, and a weight of zero is a factor like any other: `0 * inf` is NaN.
        let shift = if max == f64::NEG_INFINITY { 0.0 } else { max };
        let e: Vec<f64> = s.iter().map(|s| round(acc, libm::exp(s - shift))).collect();
        let sum: f64 = e.iter().sum();
        lse.set(row, Scalar::Float(if sum == 0.0 { f64::NEG_INFINITY } else { shift + libm::log(sum) }));
        let by = if sum == 0.0 { 0.0 } else { 1.0 / sum };
        for d in 0..width {
            let weigh = |total: f64, (s, e): (usize, &f64)| total + e * v.get(at4(v, [b, scores.group(h), s, d])).float();
            let total = e.iter().enumerate().fold(0.0, weigh);
            out.set(row * width + d, Scalar::Float(total * by));
        }
        row += 1;
    });
    (out, lse)
}

/// [`crate::Op::AttentionGrad`]: gradients of q, k and v.
pub fn attention_grad(attrs: &AttentionAttrs, x: &[&Tensor]) -> (Tensor, Tensor, Tensor) {
    let scores = Scores::new(attrs, x, 6);
    let [q, k, v, out, lse, dout] = [x[0], x[1], x[2], x[3], x[4], x[5]];
    let scale = f64::from_bits(attrs.scale);
    let (keys, width) = (v.dims[2], v.dims[3]);
    let (mut dq, mut dk, mut dv) = (Tensor::zeros(q.dtype, &q.dims), Tensor::zeros(k.dtype, &k.dims), Tensor::zeros(v.dtype, &v.dims));
    let add = |t: &mut Tensor, i: usize, v: f64| t.set(i, Scalar::Float(t.get(i).float() + v));
    let mut row = 0;
    for_each_row(&q.dims, |b, h, t| {
        let g = scores.group(h);
        let value = |x: &Tensor, d: usize| x.get(row * width + d).float();
        let delta: f64 = (0..width).map(|d| value(out, d) * value(dout, d)).sum();
        let log_sum = lse.get(row).float();
        for s in 0..keys {
            let (score, slope) = scores.score([b, h, t, s]);
            if score == f64::NEG_INFINITY || log_sum == f64::NEG_INFINITY {
                continue;
            }
            let p = libm::exp(score - log_sum);
            let mut dp = 0.0;
            for d in 0..width {
                let at = at4(v, [b, g, s, d]);
                dp += value(dout, d) * v.get(at).float();
                add(&mut dv, at, p * value(dout, d));
            }
            let ds = p * (dp - delta) * slope * scale;
            for d in 0..q.dims[3] {
                let (qi, ki) = (at4(q, [b, h, t, d]), at4(k, [b, g, s, d]));
                add(&mut dq, qi, ds * k.get(ki).float());
                add(&mut dk, ki, ds * q.get(qi).float());
            }
        }
        row += 1;
    });
    (dq, dk, dv)
}
