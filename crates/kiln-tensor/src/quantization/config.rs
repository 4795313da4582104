//! `QuantConfig`: how a device quantizes tensors when nothing else is said.

use serde::{Deserialize, Serialize};

use super::QuantScheme;

/// How a device quantizes tensors when nothing else is said.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct QuantConfig {
    /// How quantized tensors are represented.
    pub scheme: QuantScheme,
    /// Whether results of quantized tensors are quantized.
    pub propagation: QuantPropagation,
}

impl QuantConfig {
    /// This scheme and this propagation.
    pub fn new(scheme: QuantScheme, propagation: QuantPropagation) -> Self {
        QuantConfig { scheme, propagation }
    }
}

/// Whether the result of an op on quantized tensors is quantized.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum QuantPropagation {
    /// It is, by the scheme of the operands.
    Propagate,
    /// It is not: it has the float type that the op computes in.
    #[default]
    Inhibit,
}

/// The float type in which products of quantized values are added up.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum QuantAcc {
    /// 32-bit float.
    #[default]
    F32,
    /// 16-bit float.
    F16,
    /// 16-bit float with the exponent range of `F32`.
    BF16,
}
