//! Kiln's layers, losses and initializers.
//!
//! Each layer is a plain struct with a config: `LinearConfig::new(2, 3).init(&device)` makes a [`Linear`]. A layer is one
//! file with its config, documentation, example and tests; losses are in [`loss`], activation functions in [`activation`].
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
extern crate self as kiln_nn;

#[macro_use]
mod inline_display;

pub mod activation;
pub mod attention;
pub mod cache;
pub mod conv;
pub mod interpolate;
pub mod loss;
pub mod norm;
pub mod pool;
pub mod transformer;

mod cosine_similarity;
mod dropout;
mod embedding;
mod fold;
mod identity;
mod initializer;
mod linear;
mod noise;
mod padding;
mod pairwise_distance;
mod pixel_shuffle;
mod pixel_unshuffle;
mod pos_encoding;
mod rnn;
mod rope;
mod unfold;

pub use rnn::{basic, gru, lstm};

pub use activation::{
    Celu, CeluConfig, Elu, EluConfig, GLU, Gelu, HardShrink, HardShrinkConfig, HardSigmoid, HardSigmoidConfig, LeakyRelu, LeakyReluConfig, PRelu,
    PReluConfig, Relu, Selu, Shrink, ShrinkConfig, Sigmoid, SoftShrink, SoftShrinkConfig, Softplus, SoftplusConfig, Softsign, SwiGlu, SwiGluConfig,
    Tanh, ThresholdedRelu, ThresholdedReluConfig,
};
pub use cosine_similarity::{CosineSimilarity, CosineSimilarityConfig};
pub use dropout::{Dropout, DropoutConfig};
pub use embedding::{Embedding, EmbeddingConfig};
pub use fold::{Fold4d, Fold4dConfig};
pub use identity::Identity;
pub use kiln_module::module::Initializer;
pub use linear::{Linear, LinearConfig, LinearLayout};
pub use noise::{GaussianNoise, GaussianNoiseConfig};
pub use norm::{
    BatchNorm, BatchNormConfig, GroupNorm, GroupNormConfig, InstanceNorm, InstanceNormConfig, LayerNorm, LayerNormConfig, LocalResponseNorm,
    LocalResponseNormConfig, RmsNorm, RmsNormConfig,
};
pub use padding::{PaddingConfig1d, PaddingConfig2d, PaddingConfig3d};
pub use pairwise_distance::{PairwiseDistance, PairwiseDistanceConfig};
pub use pixel_shuffle::{PixelShuffle, PixelShuffleConfig};
pub use pixel_unshuffle::{PixelUnshuffle, PixelUnshuffleConfig};
pub use pos_encoding::{PositionalEncoding, PositionalEncodingConfig, generate_sinusoids};
pub use rnn::{
    BiGru, BiGruConfig, BiLstm, BiLstmConfig, BiRnn, BiRnnConfig, GateController, Gru, GruConfig, Lstm, LstmConfig, LstmState,
    OptionalInitialLstmState, Rnn, RnnConfig, RnnState,
};
pub use rope::{RotaryEncoding, RotaryEncodingConfig};
pub use unfold::{Unfold4d, Unfold4dConfig};

/// All layers under one path.
pub mod modules {
    pub use crate::{
        CosineSimilarity, CosineSimilarityConfig, Dropout, DropoutConfig, Embedding, EmbeddingConfig, Fold4d, Fold4dConfig, GaussianNoise,
        GaussianNoiseConfig, Identity, Linear, LinearConfig, LinearLayout, PairwiseDistance, PairwiseDistanceConfig, PixelShuffle,
        PixelShuffleConfig, PixelUnshuffle, PixelUnshuffleConfig, PositionalEncoding, PositionalEncodingConfig, RotaryEncoding, RotaryEncodingConfig,
        Unfold4d, Unfold4dConfig,
    };
    pub use crate::{activation, attention, basic, cache, conv, gru, interpolate, lstm, norm, pool, transformer};
}
