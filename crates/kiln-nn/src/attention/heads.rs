//! Attention over heads: what all attention layers share.

use kiln_tensor::ops::AttentionModuleOptions;
use kiln_tensor::{Bool, Tensor, activation, module};

use crate::Dropout;

/// How scores become weights.
pub(super) struct Weighing<'a> {
    pub(super) dropout: &'a Dropout,
    pub(super) min_float: f64,
    pub(super) quiet_softmax: bool,
}

/// Splits `[batch, length, heads · size]` into `[batch, heads, length, size]`.
pub(super) fn split(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, length, features] = x.dims();
    x.reshape([batch, length, heads, features / heads]).swap_dims(1, 2)
}

/// Joins `[batch, heads, length, size]` to `[batch, length, heads · size]`.
pub(super) fn join(x: Tensor<4>) -> Tensor<3> {
    let [batch, heads, length, size] = x.dims();
    x.swap_dims(1, 2).reshape([batch, length, heads * size])
}

/// A hidden score from here down leaves no weight: beside any other score its exponential is zero. One above is a score among others.
const HIDDEN: f64 = -1e3;

impl Weighing<'_> {
    /// Context `[batch, heads, queries, size]` and weights `[batch, heads, queries, keys]`, with scores divided by `√size`.
    ///
    /// Where nothing happens to the weights on the way, the context comes from the fused operation, which never holds
    /// the scores; the weights are recorded beside it and computed only if somebody keeps them.
    #[track_caller]
    pub(super) fn attend(&self, query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, mask: Option<Tensor<4, Bool>>) -> (Tensor<4>, Tensor<4>) {
        let drops = self.dropout.prob > 0.0 && self.dropout.training.is_enabled() && query.is_autodiff();
        let plain = mask.is_none() || self.min_float <= HIDDEN;
        let fused = (!drops && !self.quiet_softmax && plain)
            .then(|| module::attention(query.clone(), key.clone(), value.clone(), mask.clone(), None, AttentionModuleOptions::default()));
        let weights = self.weights(query, key, mask);
        match fused {
            Some(context) => (context, weights),
            None => (self.dropout.forward(weights.clone()).matmul(value), weights),
        }
    }

    fn weights(&self, query: Tensor<4>, key: Tensor<4>, mask: Option<Tensor<4, Bool>>) -> Tensor<4> {
        let [batch, heads, queries, size] = query.dims();
        let keys = key.dims()[2];
        let scale = 1.0 / libm::sqrt(size as f64);
        let scores = query.matmul(key.swap_dims(2, 3)) * scale;
        let mask = mask.map(|mask| mask.expand([batch, heads, queries, keys]));
        let scores = match &mask {
            Some(mask) => scores.mask_fill(mask.clone(), self.min_float),
            None => scores,
        };
        let weights = if self.quiet_softmax { activation::quiet_softmax(scores, 3) } else { activation::softmax(scores, 3) };
        match mask {
            // A row without any visible key attends to nothing.
            Some(mask) if self.min_float <= HIDDEN => weights.mask_fill(mask, 0.0),
            _ => weights,
        }
    }
}
