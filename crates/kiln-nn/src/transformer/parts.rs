//! What layers of the encoder and of the decoder are made of, and in which order a part normalises.

use kiln_module::module::Initializer;
use kiln_tensor::{Device, Tensor};

use super::{PositionWiseFeedForward, PositionWiseFeedForwardConfig, TransformerDecoderConfig, TransformerEncoderConfig};
use crate::activation::ActivationConfig;
use crate::attention::{MultiHeadAttention, MultiHeadAttentionConfig};
use crate::cache::TensorCache;
use crate::{LayerNorm, LayerNormConfig};

/// The settings that both stacks have.
pub(super) struct Parts<'a> {
    d_model: usize,
    d_ff: usize,
    n_heads: usize,
    dropout: f64,
    quiet_softmax: bool,
    initializer: &'a Initializer,
    activation: &'a ActivationConfig,
    layer_norm_eps: f64,
}

macro_rules! parts_of {
    ($($config:ty),*) => {$(
        impl<'a> From<&'a $config> for Parts<'a> {
            fn from(config: &'a $config) -> Self {
                Self {
                    d_model: config.d_model,
                    d_ff: config.d_ff,
                    n_heads: config.n_heads,
                    dropout: config.dropout,
                    quiet_softmax: config.quiet_softmax,
                    initializer: &config.initializer,
                    activation: &config.activation,
                    layer_norm_eps: config.layer_norm_eps,
                }
            }
        }
    )*};
}

parts_of!(TransformerEncoderConfig, TransformerDecoderConfig);

impl Parts<'_> {
    #[track_caller]
    pub(super) fn attention(&self, device: &Device) -> MultiHeadAttention {
        MultiHeadAttentionConfig::new(self.d_model, self.n_heads)
            .with_initializer(self.initializer.clone())
            .with_dropout(self.dropout)
            .with_quiet_softmax(self.quiet_softmax)
            .init(device)
    }

    pub(super) fn feed_forward(&self, device: &Device) -> PositionWiseFeedForward {
        PositionWiseFeedForwardConfig::new(self.d_model, self.d_ff)
            .with_initializer(self.initializer.clone())
            .with_dropout(self.dropout)
            .with_activation(self.activation.clone())
            .init(device)
    }

    pub(super) fn norm(&self, device: &Device) -> LayerNorm {
        LayerNormConfig::new(self.d_model).with_epsilon(self.layer_norm_eps).init(device)
    }
}

/// The normalisation of a part: of its input if it comes first, else of its result.
pub(super) struct Norm<'a> {
    pub(super) norm: &'a LayerNorm,
    pub(super) first: bool,
}

impl Norm<'_> {
    pub(super) fn before(&self, x: Tensor<3>) -> Tensor<3> {
        if self.first { self.norm.forward(x) } else { x }
    }

    pub(super) fn after(&self, x: Tensor<3>) -> Tensor<3> {
        if self.first { x } else { self.norm.forward(x) }
    }

    /// [`before`](Self::before), for a sequence that grows.
    pub(super) fn before_cached(&self, x: Tensor<3>, cache: &mut TensorCache<3>) -> Tensor<3> {
        if self.first { cache.extend(x, |x| self.norm.forward(x)) } else { x }
    }

    /// [`after`](Self::after), for a sequence that grows.
    pub(super) fn after_cached(&self, x: Tensor<3>, cache: &mut TensorCache<3>) -> Tensor<3> {
        if self.first { x } else { cache.extend(x, |x| self.norm.forward(x)) }
    }
}
