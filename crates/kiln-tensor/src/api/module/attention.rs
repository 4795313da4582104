//! Scaled-dot-product attention.

use crate::api::Tensor;
use crate::api::kind::Bool;
use crate::api::options::AttentionModuleOptions;
use crate::raw::AttentionOptions;

impl From<AttentionModuleOptions> for AttentionOptions {
    fn from(options: AttentionModuleOptions) -> Self {
        Self { scale: options.scale, softcap: options.softcap, causal: options.is_causal }
    }
}

/// `softmax(q @ kᵀ * scale + bias) @ v` for queries `[batch, heads, n, d]`, keys `[batch, groups, m, d]` and values `[batch, groups, m, e]`:
/// `[batch, heads, n, e]`. The number of groups divides the number of heads. `mask` (true: hidden) and `attn_bias` are broadcast to
/// `[batch, heads, n, m]`. The scores are not kept in memory. A query that sees nothing has weights of 0 and gives 0.
///
/// The result is that of the product of weights and values, as in [`attention_fallback`]: a hidden score counts for nothing whatever `query` and `key` hold there, but
/// its weight of 0 is a factor of its value, so an infinity or NaN in `value` gives NaN also where it is hidden, as in PyTorch. (NVIDIA GPUs don't read whole blocks of
/// keys that causal order hides, as PyTorch's fused forms don't: there such a value gives NaN to some of the earlier queries only.)
///
/// T. Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness", 2022.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::attention, ops::AttentionModuleOptions};
/// let device = Device::default();
/// let q = Tensor::<4>::zeros([1, 1, 1, 2], &device);
/// let k = Tensor::<4>::ones([1, 1, 2, 2], &device);
/// let v = Tensor::<4>::from_data([[[[1.0], [3.0]]]], &device);
/// let y = attention(q, k, v, None, None, AttentionModuleOptions::default());
/// assert_eq!(y.into_scalar::<f32>(), 2.0);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    attn_bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    let (mask, bias) = (mask.as_ref().map(Tensor::as_raw), attn_bias.as_ref().map(Tensor::as_raw));
    Tensor::from_raw(query.raw.attention(&key.raw, &value.raw, mask, bias, options.into()))
}

/// [`attention`] made of matrix products and a softmax, with the scores in memory.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::attention_fallback, ops::AttentionModuleOptions};
/// let device = Device::default();
/// let q = Tensor::<4>::zeros([1, 1, 1, 2], &device);
/// let v = Tensor::<4>::from_data([[[[1.0], [3.0]]]], &device);
/// let y = attention_fallback(q, Tensor::ones([1, 1, 2, 2], &device), v, None, None, AttentionModuleOptions::default());
/// assert_eq!(y.into_scalar::<f32>(), 2.0);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn attention_fallback(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: Option<Tensor<4, Bool>>,
    attn_bias: Option<Tensor<4>>,
    options: AttentionModuleOptions,
) -> Tensor<4> {
    let (mask, bias) = (mask.as_ref().map(Tensor::as_raw), attn_bias.as_ref().map(Tensor::as_raw));
    Tensor::from_raw(query.raw.attention_composed(&key.raw, &value.raw, mask, bias, options.into()))
}
