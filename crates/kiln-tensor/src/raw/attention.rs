//! Scaled-dot-product attention.
use kiln_ir::op::AttentionAttrs;
use kiln_ir::{Dims, Elementwise, Op};
use smallvec::SmallVec;

use super::{RawTensor, apply_results};
use crate::trace::Operand;

/// Options of attention.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AttentionOptions {
    /// Factor on the scores; `1 / sqrt(d)` if not given.
    pub scale: Option<f64>,
    /// Bound `c` of `c * tanh(score / c)`.
    pub softcap: Option<f64>,
    /// Whether query `i` sees keys `0 ..= i + (s - t)` only.
    pub causal: bool,
}

/// What attention is composed of.
pub(crate) struct AttentionParts {
    /// How much each query `t` takes of each key `s`: `[b, h, t, s]`.
    pub weights: RawTensor,
    /// The keys of each query head.
    pub keys: RawTensor,
    /// The values of each query head.
    pub values: RawTensor,
    /// The scores after a soft-cap.
    pub capped: Option<RawTensor>,
}

impl RawTensor {
    /// Attention of queries `[b, h, t, d]` over keys `[b, g, s, d]` and values `[b, g, s, e]`, where `g` divides `h`. `mask` (true: masked) and `bias` are broadcast
    /// to the scores `[b, h, t, s]`. A fully masked row gives 0.
    ///
    /// The scores are not materialised, except when a gradient for `bias` is asked for.
    #[track_caller]
    pub fn attention(&self, k: &RawTensor, v: &RawTensor, mask: Option<&RawTensor>, bias: Option<&RawTensor>, o: AttentionOptions) -> RawTensor {
        if bias.is_some_and(|b| b.tape.is_some()) {
            return self.attention_composed(k, v, mask, bias, o);
        }
        let attrs = AttentionAttrs {
            scale: self.attention_scale(o).to_bits(),
            softcap: o.softcap.unwrap_or(0.0).to_bits(),
            causal: o.causal,
            has_mask: mask.is_some(),
            has_bias: bias.is_some(),
        };
        let mut operands: SmallVec<[Operand<'_>; 5]> = SmallVec::new();
        operands.extend([self, k, v].map(Operand::Tensor));
        operands.extend(mask.into_iter().chain(bias).map(Operand::Tensor));
        let [out, _lse] = apply_results(Op::Attention(attrs), &operands);
        out
    }

    fn attention_scale(&self, o: AttentionOptions) -> f64 {
        let d = self.dims().last().copied().unwrap_or(1).max(1);
        o.scale.unwrap_or_else(|| 1.0 / libm::sqrt(d as f64))
    }

    /// The same from matrix products and a softmax.
    #[track_caller]
    pub fn attention_composed(
        &self,
        k: &RawTensor,
        v: &RawTensor,
        mask: Option<&RawTensor>,
        bias: Option<&RawTensor>,
        o: AttentionOptions,
    ) -> RawTensor {
        let parts = self.attention_weights(k, v, mask, bias, o);
        parts.weights.matmul(&parts.values)
    }

    /// The weights of the values, and what they were computed from.
    #[track_caller]
    pub(crate) fn attention_weights(
        &self,
        k: &RawTensor,
        v: &RawTensor,
        mask: Option<&RawTensor>,
        bias: Option<&RawTensor>,
        o: AttentionOptions,
    ) -> AttentionParts {
        let (q, h) = (self, self.dims()[1]);
        let groups = k.dims()[1];
        if q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || groups == 0 || h % groups != 0 {
            panic!("attention: q {:?}, k {:?}, v {:?}: needs four axes, and key heads that divide the query heads", q.dims(), k.dims(), v.dims());
        }
        let [qs, ks, vs] = [q, k, v].map(RawTensor::dims);
        if qs[0] != ks[0] || ks[..3] != vs[..3] || qs[3] != ks[3] {
            panic!("attention: q {qs:?}, k {ks:?}, v {vs:?}: needs [b, h, t, d], [b, g, s, d], [b, g, s, e]");
        }
        // Each key head serves neighbouring query heads.
        let spread = |x: &RawTensor| {
            if groups == h {
                return x.clone();
            }
            let mut dims = Dims::from_slice(x.dims());
            dims.insert(2, h / groups);
            let wide = x.unsqueeze(2).expand(&dims);
            wide.reshape(&[x.dims()[0], h, x.dims()[2], x.dims()[3]])
        };
        let (keys, values) = (spread(k), spread(v));
        let mut scores = q.with_constant(Elementwise::Mul, self.attention_scale(o)).matmul(&keys.transpose());
        let softcap = o.softcap.filter(|c| *c != 0.0);
        if let Some(c) = softcap {
            scores = scores.with_constant(Elementwise::Div, c).tanh().with_constant(Elementwise::Mul, c);
        }
        let capped = softcap.map(|_| scores.clone());
        if let Some(b) = bias {
            scores = scores.add(b);
        }
        if let Some(m) = mask {
            scores = scores.fill_constant(m, f64::NEG_INFINITY);
        }
        if o.causal {
            let (t, s) = (scores.dims()[2], scores.dims()[3]);
            let hidden = RawTensor::diagonal(&self.device().without_autodiff(), [t, s], s as i64 - t as i64, Elementwise::Gt);
            scores = scores.fill_constant(&hidden, f64::NEG_INFINITY);
        }
        AttentionParts { weights: scores.masked_softmax(3), keys, values, capped }
    }
}
