//! Attention layers, their masks and caches.

mod cross;
mod heads;
mod mask;
mod multi_head;

pub use cross::{CrossAttention, CrossAttentionCache, CrossAttentionConfig};
pub use mask::{GeneratePaddingMask, SeqLengthOption, generate_autoregressive_mask, generate_padding_mask};
pub use multi_head::{MhaCache, MhaInput, MhaOutput, MultiHeadAttention, MultiHeadAttentionConfig};
