//! Quantization: the schemes by which floats are stored in a few bits.

mod scheme;

pub use scheme::{BlockScale, BlockSize, QPARAM_ALIGN, QuantMode, QuantScheme, QuantStore, QuantValue, ScaleDtype};
