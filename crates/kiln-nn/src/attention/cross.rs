//! Attention to a context of another size.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Bool, Device, Tensor};

use super::heads::{Weighing, join, split};
use crate::cache::TensorCache;
use crate::{Dropout, DropoutConfig, Linear, LinearConfig};

/// Configuration of [`CrossAttention`].
#[derive(Config, Debug)]
pub struct CrossAttentionConfig {
    /// The size of the queries' vectors.
    pub d_model: usize,
    /// The size of the context's vectors.
    pub d_context: usize,
    /// The number of heads.
    pub n_heads: usize,
    /// The number of heads that keys and values have, a divisor of `n_heads`: each is shared by several.
    pub n_heads_kv: usize,
    /// The size of a head's vectors.
    pub d_head: usize,
    /// The probability that a weight is dropped while training. Default: 0.1.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// The score of a hidden position; above -1,000 it keeps some weight. Default: -1e4.
    #[config(default = -1.0e4)]
    pub min_float: f64,
    /// Whether a head may attend to nothing. Default: false.
    #[config(default = false)]
    pub quiet_softmax: bool,
}

/// Attends from a sequence to a context, with keys and values shared between heads.
///
/// Grouped queries: Ainslie et al. 2023, [arXiv:2305.13245](https://arxiv.org/abs/2305.13245).
///
/// ```
/// use kiln_nn::attention::CrossAttentionConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let attention = CrossAttentionConfig::new(8, 6, 4, 2, 3).init(&device);
/// let query = Tensor::ones([1, 5, 8], &device);
/// let context = Tensor::ones([1, 7, 6], &device);
/// assert_eq!(attention.forward(query, context, None).dims(), [1, 5, 8]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct CrossAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    dropout: Dropout,
    n_heads: usize,
    n_heads_kv: usize,
    d_head: usize,
    min_float: f64,
    quiet_softmax: bool,
}

/// Keys and values of a context.
#[derive(Clone, Debug)]
pub struct CrossAttentionCache {
    /// The keys, `[batch, heads, length, size]`.
    pub k: TensorCache<4>,
    /// The values, `[batch, heads, length, size]`.
    pub v: TensorCache<4>,
}

impl CrossAttentionCache {
    /// A cache of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { k: TensorCache::empty(), v: TensorCache::empty() }
    }
}

impl Default for CrossAttentionCache {
    fn default() -> Self {
        Self::new()
    }
}

impl CrossAttentionConfig {
    /// A layer with parameters on `device`.
    ///
    /// # Panics
    ///
    /// When the heads are no multiple of the heads of keys and values.
    #[track_caller]
    pub fn init(&self, device: &Device) -> CrossAttention {
        assert!(
            self.n_heads_kv > 0 && self.n_heads.is_multiple_of(self.n_heads_kv),
            "cross attention: {} heads are no multiple of {} heads of keys and values",
            self.n_heads,
            self.n_heads_kv
        );
        let inner = self.n_heads * self.d_head;
        let shared = self.n_heads_kv * self.d_head;
        CrossAttention {
            query: LinearConfig::new(self.d_model, inner).init(device),
            key: LinearConfig::new(self.d_context, shared).init(device),
            value: LinearConfig::new(self.d_context, shared).init(device),
            output: LinearConfig::new(inner, self.d_model).init(device),
            dropout: DropoutConfig::new(self.dropout).init(),
            n_heads: self.n_heads,
            n_heads_kv: self.n_heads_kv,
            d_head: self.d_head,
            min_float: self.min_float,
            quiet_softmax: self.quiet_softmax,
        }
    }
}

impl CrossAttention {
    /// Attends from `query`, `[batch, queries, d_model]`, to `context`, `[batch, keys, d_context]`; `mask`,
    /// `[batch, keys]`, hides keys where true.
    #[track_caller]
    pub fn forward(&self, query: Tensor<3>, context: Tensor<3>, mask: Option<Tensor<2, Bool>>) -> Tensor<3> {
        self.forward_cache(query, context, mask, &mut CrossAttentionCache::new())
    }

    /// The same with keys and values of the context kept in `cache` after the first call.
    #[track_caller]
    pub fn forward_cache(&self, query: Tensor<3>, context: Tensor<3>, mask: Option<Tensor<2, Bool>>, cache: &mut CrossAttentionCache) -> Tensor<3> {
        let heads = self.n_heads_kv;
        let key = cache.k.get_or_insert_with(|| split(self.key.forward(context.clone()), heads));
        let value = cache.v.get_or_insert_with(|| split(self.value.forward(context), heads));
        let query = split(self.query.forward(query), self.n_heads);
        let mask = mask.map(|mask| {
            let [batch, keys] = mask.dims();
            mask.reshape([batch, 1, 1, keys])
        });
        let weighing = Weighing { dropout: &self.dropout, min_float: self.min_float, quiet_softmax: self.quiet_softmax };
        let (context, _) = weighing.attend(query, self.shared(key), self.shared(value), mask);
        self.output.forward(join(context))
    }

    /// Gives each group of heads its copy, as a view.
    fn shared(&self, x: Tensor<4>) -> Tensor<4> {
        let group = self.n_heads / self.n_heads_kv;
        if group == 1 {
            return x;
        }
        let [batch, heads, length, size] = x.dims();
        x.unsqueeze_dim::<5>(2).expand([batch, heads, group, length, size]).reshape([batch, heads * group, length, size])
    }
}

inline_display!(CrossAttention, layer, content => content
    .add("n_heads", &layer.n_heads)
    .add("n_heads_kv", &layer.n_heads_kv)
    .add("d_head", &layer.d_head)
    .add("dropout", &layer.dropout.prob)
    .add("min_float", &layer.min_float)
    .add("quiet_softmax", &layer.quiet_softmax));
