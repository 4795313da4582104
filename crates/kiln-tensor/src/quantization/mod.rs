//! Quantization: the schemes by which floats are stored in a few bits.

mod config;
mod scheme;

pub use config::{QuantAcc, QuantConfig, QuantPropagation};
pub use scheme::{BlockScale, BlockSize, QPARAM_ALIGN, QuantMode, QuantScheme, QuantStore, QuantValue, ScaleDtype};
