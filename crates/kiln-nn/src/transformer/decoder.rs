//! The transformer decoder.

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

/// Configuration of a [`TransformerDecoder`].
#[derive(Config, Debug)]
pub struct TransformerDecoderConfig {
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

/// A stack of layers of self-attention, attention to a memory, and feed-forward parts.
///
/// Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762).
///
/// ```
/// use kiln_nn::transformer::{TransformerDecoderConfig, TransformerDecoderInput};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let decoder = TransformerDecoderConfig::new(8, 16, 2, 2).init(&device);
/// let target = Tensor::ones([1, 5, 8], &device);
/// let memory = Tensor::ones([1, 7, 8], &device);
/// assert_eq!(decoder.forward(TransformerDecoderInput::new(target, memory)).dims(), [1, 5, 8]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
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

/// The input of a [`TransformerDecoder`], and of its layers.
#[derive(Debug)]
pub struct TransformerDecoderInput {
    target: Tensor<3>,
    target_mask_pad: Option<Tensor<2, Bool>>,
    target_mask_attn: Option<Tensor<3, Bool>>,
    memory: Tensor<3>,
    memory_mask_pad: Option<Tensor<2, Bool>>,
    memory_mask_attn: Option<Tensor<3, Bool>>,
}

impl TransformerDecoderInput {
    /// A target `[batch, length, d_model]` and the memory `[batch, memory length, d_model]` it attends to.
    pub fn new(target: Tensor<3>, memory: Tensor<3>) -> Self {
        Self { target, target_mask_pad: None, target_mask_attn: None, memory, memory_mask_pad: None, memory_mask_attn: None }
    }

    /// Hides positions of the memory: `[batch, memory length]`, true hides.
    #[must_use]
    pub fn memory_mask_pad(mut self, mask_pad: Tensor<2, Bool>) -> Self {
        self.memory_mask_pad = Some(mask_pad);
        self
    }

    /// Hides the memory from positions of the target: `[batch, length, memory length]`, true hides.
    #[must_use]
    pub fn memory_mask_attn(mut self, mask_attn: Tensor<3, Bool>) -> Self {
        self.memory_mask_attn = Some(mask_attn);
        self
    }

    /// Hides positions of the target: `[batch, length]`, true hides.
    #[must_use]
    pub fn target_mask_pad(mut self, mask_pad: Tensor<2, Bool>) -> Self {
        self.target_mask_pad = Some(mask_pad);
        self
    }

    /// Hides the target from its positions: `[batch, length, length]`, true hides.
    #[must_use]
    pub fn target_mask_attn(mut self, mask_attn: Tensor<3, Bool>) -> Self {
        self.target_mask_attn = Some(mask_attn);
        self
    }

    fn self_input(&self, x: Tensor<3>) -> MhaInput {
        masked(MhaInput::self_attn(x), &self.target_mask_pad, &self.target_mask_attn)
    }

    fn cross_input(&self, x: Tensor<3>) -> MhaInput {
        let memory = self.memory.clone();
        masked(MhaInput::new(x, memory.clone(), memory), &self.memory_mask_pad, &self.memory_mask_attn)
    }
}

fn masked(input: MhaInput, mask_pad: &Option<Tensor<2, Bool>>, mask_attn: &Option<Tensor<3, Bool>>) -> MhaInput {
    let input = match mask_pad {
        Some(mask) => input.mask_pad(mask.clone()),
        None => input,
    };
    match mask_attn {
        Some(mask) => input.mask_attn(mask.clone()),
        None => input,
    }
}

/// A layer of a [`TransformerDecoder`].
#[derive(Module, Debug)]
pub struct TransformerDecoderLayer {
    /// The attention to the memory.
    pub cross_attn: MultiHeadAttention,
    /// The self-attention.
    pub self_attn: MultiHeadAttention,
    /// The feed-forward part.
    pub pwff: PositionWiseFeedForward,
    /// The normalisation between the self-attention and that to the memory.
    pub norm_1: LayerNorm,
    /// The normalisation between the attention to the memory and the feed-forward part.
    pub norm_2: LayerNorm,
    /// The normalisation at the end, or at the start if norms come first.
    pub norm_3: LayerNorm,
    /// Drops units of the parts' results while training.
    pub dropout: Dropout,
    /// Whether a part normalises its input instead of its output.
    pub norm_first: bool,
}

/// What a [`TransformerDecoderLayer`] knows of earlier positions.
#[derive(Clone, Debug)]
pub struct TransformerDecoderLayerAutoregressiveCache {
    /// Of the attention to the memory.
    pub cross_attn: MhaCache,
    /// Of the self-attention.
    pub self_attn: MhaCache,
    /// Of the feed-forward part.
    pub pwff: TensorCache<3>,
    /// Of the first normalisation.
    pub norm_1: TensorCache<3>,
    /// Of the second.
    pub norm_2: TensorCache<3>,
    /// Of the third.
    pub norm_3: TensorCache<3>,
}

impl TransformerDecoderLayerAutoregressiveCache {
    /// A cache of nothing yet.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            cross_attn: MhaCache::autoregressive_cross_attention(),
            self_attn: MhaCache::autoregressive(),
            pwff: TensorCache::empty(),
            norm_1: TensorCache::empty(),
            norm_2: TensorCache::empty(),
            norm_3: TensorCache::empty(),
        }
    }
}

/// What a [`TransformerDecoder`] knows of earlier positions.
#[derive(Clone, Debug)]
pub struct TransformerDecoderAutoregressiveCache {
    layers: Vec<TransformerDecoderLayerAutoregressiveCache>,
}

impl TransformerDecoderConfig {
    /// A decoder with parameters on `device`.
    #[track_caller]
    pub fn init(&self, device: &Device) -> TransformerDecoder {
        TransformerDecoder {
            layers: (0..self.n_layers).map(|_| TransformerDecoderLayer::new(self, device)).collect(),
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

impl TransformerDecoder {
    /// Decodes a target.
    #[track_caller]
    pub fn forward(&self, input: TransformerDecoderInput) -> Tensor<3> {
        self.layers.iter().fold(input, |input, layer| layer.forward(input)).target
    }

    /// The same for a target that grows: `input` holds all positions so far, and only those that the cache does not know
    /// are computed. It equals [`TransformerDecoder::forward`] under an autoregressive mask of the target.
    #[track_caller]
    pub fn forward_autoregressive_inference(&self, input: TransformerDecoderInput, cache: &mut TransformerDecoderAutoregressiveCache) -> Tensor<3> {
        self.layers.iter().zip(&mut cache.layers).fold(input, |input, (layer, cache)| layer.forward_autoregressive_inference(input, cache)).target
    }

    /// A cache for [`TransformerDecoder::forward_autoregressive_inference`].
    pub fn new_autoregressive_cache(&self) -> TransformerDecoderAutoregressiveCache {
        TransformerDecoderAutoregressiveCache { layers: self.layers.iter().map(|_| TransformerDecoderLayerAutoregressiveCache::empty()).collect() }
    }
}

impl TransformerDecoderLayer {
    /// A layer with parameters on `device`.
    #[track_caller]
    pub fn new(config: &TransformerDecoderConfig, device: &Device) -> Self {
        let parts = Parts::from(config);
        Self {
            cross_attn: parts.attention(device),
            self_attn: parts.attention(device),
            pwff: parts.feed_forward(device),
            norm_1: parts.norm(device),
            norm_2: parts.norm(device),
            norm_3: parts.norm(device),
            dropout: DropoutConfig::new(config.dropout).init(),
            norm_first: config.norm_first,
        }
    }

    /// Decodes the target of `input`; the rest is passed on.
    #[track_caller]
    pub fn forward(&self, mut input: TransformerDecoderInput) -> TransformerDecoderInput {
        let [of_self, of_cross, of_feed] = self.norms();
        let x = input.target.clone();
        let attended = self.self_attn.forward(input.self_input(of_self.before(x.clone()))).context;
        let x = of_self.after(x + self.dropout.forward(attended));
        let attended = self.cross_attn.forward(input.cross_input(of_cross.before(x.clone()))).context;
        let x = of_cross.after(x + self.dropout.forward(attended));
        let fed = self.pwff.forward(of_feed.before(x.clone()));
        input.target = of_feed.after(x + self.dropout.forward(fed));
        input
    }

    /// The same for a target that grows.
    #[track_caller]
    pub fn forward_autoregressive_inference(
        &self,
        mut input: TransformerDecoderInput,
        cache: &mut TransformerDecoderLayerAutoregressiveCache,
    ) -> TransformerDecoderInput {
        let [of_self, of_cross, of_feed] = self.norms();
        let x = input.target.clone();
        let normed = of_self.before_cached(x.clone(), &mut cache.norm_1);
        let attended = self.self_attn.forward_cache(input.self_input(normed), &mut cache.self_attn);
        let x = of_self.after_cached(x + attended.context, &mut cache.norm_1);
        let normed = of_cross.before_cached(x.clone(), &mut cache.norm_2);
        let attended = self.cross_attn.forward_cache(input.cross_input(normed), &mut cache.cross_attn);
        let x = of_cross.after_cached(x + attended.context, &mut cache.norm_2);
        let fed = cache.pwff.extend(x.clone(), |x| self.pwff.forward(of_feed.before(x)));
        input.target = of_feed.after_cached(x + fed, &mut cache.norm_3);
        input
    }

    /// The normalisations of the self-attention, the attention to the memory and the feed-forward part; as in the encoder, which is which depends on
    /// their place.
    fn norms(&self) -> [Norm<'_>; 3] {
        let (between_1, between_2, outer) = (&self.norm_1, &self.norm_2, &self.norm_3);
        let order = if self.norm_first { [outer, between_1, between_2] } else { [between_1, between_2, outer] };
        order.map(|norm| Norm { norm, first: self.norm_first })
    }
}

inline_display!(TransformerDecoder, layer, content => content
    .add("d_model", &layer.d_model)
    .add("d_ff", &layer.d_ff)
    .add("n_heads", &layer.n_heads)
    .add("n_layers", &layer.n_layers)
    .add("dropout", &layer.dropout)
    .add("norm_first", &layer.norm_first)
    .add("quiet_softmax", &layer.quiet_softmax));
