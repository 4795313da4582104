//! The transformer encoder.

use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module};
use kiln_tensor::{Bool, Device, Tensor};

use super::PositionWiseFeedForward;
use super::parts::{Norm, Parts};
use crate::activation::ActivationConfig;
use crate::attention::{MhaCache, MhaInput, MultiHeadAttention};
use crate::cache::TensorCache;
use crate::initializer::default_initializer;
use crate::{Dropout, DropoutConfig, LayerNorm};

/// Configuration of a [`TransformerEncoder`].
#[derive(Config, Debug)]
pub struct TransformerEncoderConfig {
    /// The size of the vectors.
    pub d_model: usize,
    /// The size of the hidden vectors of the feed-forward parts.
    pub d_ff: usize,
    /// The number of attention heads.
    pub n_heads: usize,
    /// The number of layers.
    pub n_layers: usize,
    /// The probability that a unit is dropped while training. Default: 0.1.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// Whether a part normalises its input instead of its output. Default: false.
    #[config(default = false)]
    pub norm_first: bool,
    /// Whether a head may attend to nothing. Default: false.
    #[config(default = false)]
    pub quiet_softmax: bool,
    /// How the linear layers start. Default: uniform in `±1 / √fan-in`.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
    /// The activation of the feed-forward parts. Default: GELU.
    #[config(default = ActivationConfig::Gelu)]
    pub activation: ActivationConfig,
    /// Added to the variance in the layer norms. Default: 1e-5.
    #[config(default = 1e-5)]
    pub layer_norm_eps: f64,
}

/// A stack of layers of self-attention and feed-forward parts.
///
/// Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762).
///
/// ```
/// use kiln_nn::transformer::{TransformerEncoderConfig, TransformerEncoderInput};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let encoder = TransformerEncoderConfig::new(8, 16, 2, 2).init(&device);
/// let input = TransformerEncoderInput::new(Tensor::ones([1, 5, 8], &device));
/// assert_eq!(encoder.forward(input).dims(), [1, 5, 8]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// The size of the vectors.
    pub d_model: usize,
    /// The size of the hidden vectors of the feed-forward parts.
    pub d_ff: usize,
    /// The number of attention heads.
    pub n_heads: usize,
    /// The number of layers.
    pub n_layers: usize,
    /// The probability that a unit is dropped while training.
    pub dropout: f64,
    /// Whether a part normalises its input instead of its output.
    pub norm_first: bool,
    /// Whether a head may attend to nothing.
    pub quiet_softmax: bool,
}

/// The input of a [`TransformerEncoder`].
#[derive(Debug)]
pub struct TransformerEncoderInput {
    tensor: Tensor<3>,
    mask_pad: Option<Tensor<2, Bool>>,
    mask_attn: Option<Tensor<3, Bool>>,
}

impl TransformerEncoderInput {
    /// A sequence `[batch, length, d_model]`.
    pub fn new(tensor: Tensor<3>) -> Self {
        Self { tensor, mask_pad: None, mask_attn: None }
    }

    /// Hides positions: `[batch, length]`, true hides.
    #[must_use]
    pub fn mask_pad(mut self, mask_pad: Tensor<2, Bool>) -> Self {
        self.mask_pad = Some(mask_pad);
        self
    }

    /// Hides positions from positions: `[batch, length, length]`, true hides.
    #[must_use]
    pub fn mask_attn(mut self, mask_attn: Tensor<3, Bool>) -> Self {
        self.mask_attn = Some(mask_attn);
        self
    }
}

/// A layer of a [`TransformerEncoder`].
#[derive(Module, Debug)]
pub struct TransformerEncoderLayer {
    /// The self-attention.
    pub mha: MultiHeadAttention,
    /// The feed-forward part.
    pub pwff: PositionWiseFeedForward,
    /// The normalisation between attention and feed-forward part.
    pub norm_1: LayerNorm,
    /// The normalisation at the end, or at the start if norms come first.
    pub norm_2: LayerNorm,
    /// Drops units of both parts' results while training.
    pub dropout: Dropout,
    /// Whether a part normalises its input instead of its output.
    pub norm_first: bool,
}

/// What a [`TransformerEncoderLayer`] knows of earlier positions.
#[derive(Clone, Debug)]
pub struct TransformerEncoderLayerAutoregressiveCache {
    /// Of the attention.
    pub mha: MhaCache,
    /// Of the feed-forward part.
    pub pwff: TensorCache<3>,
    /// Of the first normalisation.
    pub norm_1: TensorCache<3>,
    /// Of the second.
    pub norm_2: TensorCache<3>,
}

impl TransformerEncoderLayerAutoregressiveCache {
    /// A cache of nothing yet.
    #[must_use]
    pub fn empty() -> Self {
        Self { mha: MhaCache::autoregressive(), pwff: TensorCache::empty(), norm_1: TensorCache::empty(), norm_2: TensorCache::empty() }
    }
}

/// What a [`TransformerEncoder`] knows of earlier positions.
#[derive(Clone, Debug)]
pub struct TransformerEncoderAutoregressiveCache {
    layers: Vec<TransformerEncoderLayerAutoregressiveCache>,
}

impl TransformerEncoderConfig {
    /// An encoder with parameters on `device`.
    #[track_caller]
    pub fn init(&self, device: &Device) -> TransformerEncoder {
        TransformerEncoder {
            layers: (0..self.n_layers).map(|_| TransformerEncoderLayer::new(self, device)).collect(),
            d_model: self.d_model,
            d_ff: self.d_ff,
            n_heads: self.n_heads,
            n_layers: self.n_layers,
            dropout: self.dropout,
            norm_first: self.norm_first,
            quiet_softmax: self.quiet_softmax,
        }
    }
}

impl TransformerEncoder {
    /// Encodes a sequence.
    #[track_caller]
    pub fn forward(&self, input: TransformerEncoderInput) -> Tensor<3> {
        let TransformerEncoderInput { tensor, mask_pad, mask_attn } = input;
        self.layers.iter().fold(tensor, |x, layer| layer.forward(x, mask_pad.clone(), mask_attn.clone()))
    }

    /// The same for a sequence that grows: `input` holds all positions so far, and only those that the cache does not
    /// know are computed. It equals [`TransformerEncoder::forward`] under an autoregressive mask.
    #[track_caller]
    pub fn forward_autoregressive_inference(&self, input: TransformerEncoderInput, cache: &mut TransformerEncoderAutoregressiveCache) -> Tensor<3> {
        let TransformerEncoderInput { tensor, mask_pad, mask_attn } = input;
        self.layers
            .iter()
            .zip(&mut cache.layers)
            .fold(tensor, |x, (layer, cache)| layer.forward_autoregressive_inference(x, mask_pad.clone(), mask_attn.clone(), cache))
    }

    /// A cache for [`TransformerEncoder::forward_autoregressive_inference`].
    pub fn new_autoregressive_cache(&self) -> TransformerEncoderAutoregressiveCache {
        TransformerEncoderAutoregressiveCache { layers: self.layers.iter().map(|_| TransformerEncoderLayerAutoregressiveCache::empty()).collect() }
    }
}

impl TransformerEncoderLayer {
    /// A layer with parameters on `device`.
    #[track_caller]
    pub fn new(config: &TransformerEncoderConfig, device: &Device) -> Self {
        let parts = Parts::from(config);
        Self {
            mha: parts.attention(device),
            pwff: parts.feed_forward(device),
            norm_1: parts.norm(device),
            norm_2: parts.norm(device),
            dropout: DropoutConfig::new(config.dropout).init(),
            norm_first: config.norm_first,
        }
    }

    /// Maps `[batch, length, d_model]` to the same shape; true in a mask hides.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>, mask_pad: Option<Tensor<2, Bool>>, mask_attn: Option<Tensor<3, Bool>>) -> Tensor<3> {
        let [of_attention, of_feed] = self.norms();
        let attended = self.mha.forward(mha_input(of_attention.before(input.clone()), mask_pad, mask_attn));
        let x = of_attention.after(input + self.dropout.forward(attended.context));
        let fed = self.pwff.forward(of_feed.before(x.clone()));
        of_feed.after(x + self.dropout.forward(fed))
    }

    /// The same for a sequence that grows.
    #[track_caller]
    pub fn forward_autoregressive_inference(
        &self,
        input: Tensor<3>,
        mask_pad: Option<Tensor<2, Bool>>,
        mask_attn: Option<Tensor<3, Bool>>,
        cache: &mut TransformerEncoderLayerAutoregressiveCache,
    ) -> Tensor<3> {
        let [of_attention, of_feed] = self.norms();
        let normed = of_attention.before_cached(input.clone(), &mut cache.norm_2);
        let attended = self.mha.forward_cache(mha_input(normed, mask_pad, mask_attn), &mut cache.mha);
        let x = of_attention.after_cached(input + attended.context, &mut cache.norm_2);
        let fed = cache.pwff.extend(x.clone(), |x| self.pwff.forward(of_feed.before(x)));
        of_feed.after_cached(x + fed, &mut cache.norm_1)
    }

    /// The normalisations of the attention and of the feed-forward part. Which is which depends on their place, as in Burn's records: each is applied to
    /// the same sum in both orders, after one part and before the next.
    fn norms(&self) -> [Norm<'_>; 2] {
        let order = if self.norm_first { [&self.norm_2, &self.norm_1] } else { [&self.norm_1, &self.norm_2] };
        order.map(|norm| Norm { norm, first: self.norm_first })
    }
}

fn mha_input(x: Tensor<3>, mask_pad: Option<Tensor<2, Bool>>, mask_attn: Option<Tensor<3, Bool>>) -> MhaInput {
    let input = MhaInput::self_attn(x);
    let input = match mask_pad {
        Some(mask) => input.mask_pad(mask),
        None => input,
    };
    match mask_attn {
        Some(mask) => input.mask_attn(mask),
        None => input,
    }
}

inline_display!(TransformerEncoder, layer, content => content
    .add("d_model", &layer.d_model)
    .add("d_ff", &layer.d_ff)
    .add("n_heads", &layer.n_heads)
    .add("n_layers", &layer.n_layers)
    .add("dropout", &layer.dropout)
    .add("norm_first", &layer.norm_first)
    .add("quiet_softmax", &layer.quiet_softmax));
