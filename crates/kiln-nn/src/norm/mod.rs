//! Normalisations.

mod batch;
mod group;
mod instance;
mod layer;
mod local_response;
mod normalization;
mod rms;

pub use batch::{BatchNorm, BatchNormConfig};
pub use group::{GroupNorm, GroupNormConfig};
pub use instance::{InstanceNorm, InstanceNormConfig};
pub use layer::{LayerNorm, LayerNormConfig};
pub use local_response::{LocalResponseNorm, LocalResponseNormConfig};
pub use normalization::{Normalization, NormalizationConfig};
pub use rms::{RmsNorm, RmsNormConfig};
