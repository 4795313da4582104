//! Transformers.

mod decoder;
mod encoder;
mod parts;
mod pwff;

pub use decoder::{
    TransformerDecoder, TransformerDecoderAutoregressiveCache, TransformerDecoderConfig, TransformerDecoderInput, TransformerDecoderLayer,
    TransformerDecoderLayerAutoregressiveCache,
};
pub use encoder::{
    TransformerEncoder, TransformerEncoderAutoregressiveCache, TransformerEncoderConfig, TransformerEncoderInput, TransformerEncoderLayer,
    TransformerEncoderLayerAutoregressiveCache,
};
pub use pwff::{PositionWiseFeedForward, PositionWiseFeedForwardConfig};
