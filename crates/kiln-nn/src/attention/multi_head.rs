//! Multi-head attention.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module};
use kiln_tensor::{Bool, Device, Tensor};

use super::heads::{Weighing, join, split};
use crate::activation::Gelu;
use crate::cache::TensorCache;
use crate::initializer::default_initializer;
use crate::{Dropout, DropoutConfig, Linear, LinearConfig};

/// Configuration of [`MultiHeadAttention`].
#[derive(Config, Debug)]
pub struct MultiHeadAttentionConfig {
    /// The size of the vectors.
    pub d_model: usize,
    /// The number of heads, a divisor of `d_model`.
    pub n_heads: usize,
    /// The probability that a weight is dropped while training. Default: 0.1.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// The score of a hidden position; above -1,000 it keeps some weight. Default: -1e4.
    #[config(default = -1.0e4)]
    pub min_float: f64,
    /// Whether a head may attend to nothing (softmax with one more zero score). Default: false.
    #[config(default = false)]
    pub quiet_softmax: bool,
    /// How the linear layers start. Default: uniform in `±1 / √d_model`.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
    /// Whether the keys have a bias. Default: true.
    #[config(default = true)]
    pub key_bias: bool,
    /// Whether the values have a bias. Default: true.
    #[config(default = true)]
    pub value_bias: bool,
    /// Whether the queries have a bias. Default: true.
    #[config(default = true)]
    pub query_bias: bool,
    /// Whether the output has a bias. Default: true.
    #[config(default = true)]
    pub output_bias: bool,
}

/// Several attentions side by side, each over its part of linear maps of the inputs.
///
/// Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762).
///
/// ```
/// use kiln_nn::attention::{MhaInput, MultiHeadAttentionConfig, generate_autoregressive_mask};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let attention = MultiHeadAttentionConfig::new(8, 2).init(&device);
/// let mask = generate_autoregressive_mask(1, 5, &device);
/// let input = MhaInput::self_attn(Tensor::ones([1, 5, 8], &device)).mask_attn(mask);
/// assert_eq!(attention.forward(input).context.dims(), [1, 5, 8]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct MultiHeadAttention {
    /// The map to queries.
    pub query: Linear,
    /// The map to keys.
    pub key: Linear,
    /// The map to values.
    pub value: Linear,
    /// The map of the joined heads.
    pub output: Linear,
    /// Drops weights while training.
    pub dropout: Dropout,
    /// Kept for records and code of earlier versions; attention does not use it.
    pub activation: Gelu,
    /// The size of the vectors.
    pub d_model: usize,
    /// The number of heads.
    pub n_heads: usize,
    /// The size of a head's vectors.
    pub d_k: usize,
    /// The score of a hidden position.
    pub min_float: f64,
    /// Whether a head may attend to nothing.
    pub quiet_softmax: bool,
}

/// The input of [`MultiHeadAttention`].
#[derive(Clone, Debug)]
pub struct MhaInput {
    query: Tensor<3>,
    key: Tensor<3>,
    value: Tensor<3>,
    mask_pad: Option<Tensor<2, Bool>>,
    mask_attn: Option<Tensor<3, Bool>>,
}

impl MhaInput {
    /// A sequence `[batch, length, d_model]` that attends to itself.
    pub fn self_attn(tensor: Tensor<3>) -> Self {
        Self::new(tensor.clone(), tensor.clone(), tensor)
    }

    /// Queries `[batch, queries, d_model]`, keys and values `[batch, keys, d_model]`.
    pub fn new(query: Tensor<3>, key: Tensor<3>, value: Tensor<3>) -> Self {
        Self { query, key, value, mask_pad: None, mask_attn: None }
    }

    /// Hides keys: `[batch, keys]`, true hides.
    #[must_use]
    pub fn mask_pad(mut self, mask_pad: Tensor<2, Bool>) -> Self {
        self.mask_pad = Some(mask_pad);
        self
    }

    /// Hides keys from queries: `[batch, queries, keys]`, true hides.
    #[must_use]
    pub fn mask_attn(mut self, mask_attn: Tensor<3, Bool>) -> Self {
        self.mask_attn = Some(mask_attn);
        self
    }
}

/// The output of [`MultiHeadAttention`].
#[derive(Clone, Debug)]
pub struct MhaOutput {
    /// What each query attended to, `[batch, heads, queries, keys]`. With a cache: of the new queries only.
    pub weights: Tensor<4>,
    /// The result, `[batch, queries, d_model]`.
    pub context: Tensor<3>,
}

/// Keys, values and results of earlier positions.
#[derive(Clone, Debug)]
pub struct MhaCache {
    key: TensorCache<4>,
    value: TensorCache<4>,
    output: TensorCache<3>,
    /// Whether keys and values are those of another sequence that does not grow.
    cross: bool,
}

impl MhaCache {
    /// A cache for a sequence that attends to itself and grows.
    #[must_use]
    pub fn autoregressive() -> Self {
        Self { key: TensorCache::empty(), value: TensorCache::empty(), output: TensorCache::empty(), cross: false }
    }

    /// A cache for a growing sequence that attends to another, fixed one.
    #[must_use]
    pub fn autoregressive_cross_attention() -> Self {
        Self { cross: true, ..Self::autoregressive() }
    }
}

impl MultiHeadAttentionConfig {
    /// A layer with parameters on `device`.
    ///
    /// # Panics
    ///
    /// When the size is no multiple of the number of heads.
    #[track_caller]
    pub fn init(&self, device: &Device) -> MultiHeadAttention {
        assert!(
            self.n_heads > 0 && self.d_model.is_multiple_of(self.n_heads),
            "multi-head attention: d_model {} is no multiple of {} heads",
            self.d_model,
            self.n_heads
        );
        let linear = |bias| LinearConfig::new(self.d_model, self.d_model).with_bias(bias).with_initializer(self.initializer.clone()).init(device);
        MultiHeadAttention {
            query: linear(self.query_bias),
            key: linear(self.key_bias),
            value: linear(self.value_bias),
            output: linear(self.output_bias),
            dropout: DropoutConfig::new(self.dropout).init(),
            activation: Gelu::new(),
            d_model: self.d_model,
            n_heads: self.n_heads,
            d_k: self.d_model / self.n_heads,
            min_float: self.min_float,
            quiet_softmax: self.quiet_softmax,
        }
    }
}

impl MultiHeadAttention {
    /// Attends from each query to all keys.
    #[track_caller]
    pub fn forward(&self, input: MhaInput) -> MhaOutput {
        let mask = mask_of(input.mask_pad, input.mask_attn);
        let query = split(self.query.forward(input.query), self.n_heads);
        let key = split(self.key.forward(input.key), self.n_heads);
        let value = split(self.value.forward(input.value), self.n_heads);
        let (context, weights) = self.weighing().attend(query, key, value, mask);
        MhaOutput { weights, context: self.output.forward(join(context)) }
    }

    /// The same for a sequence that grows: `input` holds all positions so far, only those that the cache does not know
    /// are computed, and the context of all is returned. It equals [`MultiHeadAttention::forward`] under an
    /// autoregressive mask.
    ///
    /// # Panics
    ///
    /// When the input is shorter than what the cache knows.
    #[track_caller]
    pub fn forward_cache(&self, input: MhaInput, cache: &mut MhaCache) -> MhaOutput {
        let length = input.query.dims()[1];
        let known = cache.output.len(1);
        assert!(known <= length, "multi-head attention: the cache knows {known} positions, the input has {length}");
        let new = length - known;
        let query = input.query.narrow(1, known, new);
        let query = split(self.query.forward(query), self.n_heads);
        let (key, value) = if cache.cross {
            let (key, value) = (input.key, input.value);
            (
                cache.key.get_or_insert_with(|| split(self.key.forward(key), self.n_heads)),
                cache.value.get_or_insert_with(|| split(self.value.forward(value), self.n_heads)),
            )
        } else {
            let key = self.key.forward(input.key.narrow(1, known, new));
            let value = self.value.forward(input.value.narrow(1, known, new));
            (cache.key.append(split(key, self.n_heads), 2), cache.value.append(split(value, self.n_heads), 2))
        };
        let mask_attn = input.mask_attn.map(|mask| mask.narrow(1, known, new));
        let mask = mask_of(input.mask_pad, mask_attn);
        let (context, weights) = self.weighing().attend(query, key, value, mask);
        let context = self.output.forward(join(context));
        MhaOutput { weights, context: cache.output.append(context, 1) }
    }

    fn weighing(&self) -> Weighing<'_> {
        Weighing { dropout: &self.dropout, min_float: self.min_float, quiet_softmax: self.quiet_softmax }
    }
}

/// Both masks as one, `[batch, 1, queries or 1, keys]`.
fn mask_of(pad: Option<Tensor<2, Bool>>, attn: Option<Tensor<3, Bool>>) -> Option<Tensor<4, Bool>> {
    let pad = pad.map(|mask| {
        let [batch, keys] = mask.dims();
        mask.reshape([batch, 1, 1, keys])
    });
    let attn = attn.map(|mask| mask.unsqueeze_dim::<4>(1));
    match (pad, attn) {
        (Some(pad), Some(attn)) => {
            let shape = attn.dims();
            Some(pad.expand(shape).bool_or(attn))
        }
        (pad, attn) => pad.or(attn),
    }
}

inline_display!(MultiHeadAttention, layer, content => content
    .add("d_model", &layer.d_model)
    .add("n_heads", &layer.n_heads)
    .add("d_k", &layer.d_k)
    .add("dropout", &layer.dropout.prob)
    .add("min_float", &layer.min_float)
    .add("quiet_softmax", &layer.quiet_softmax));
