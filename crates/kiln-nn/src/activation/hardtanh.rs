//! The identity between two bounds.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`Hardtanh`].
#[derive(Config, Debug)]
pub struct HardtanhConfig {
    /// The lower bound. Default: -1.
    #[config(default = -1.0)]
    pub min_val: f64,
    /// The upper bound. Default: 1.
    #[config(default = 1.0)]
    pub max_val: f64,
}

/// `min(max(x, min_val), max_val)`.
///
/// ```
/// use kiln_nn::activation::HardtanhConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([3.0], &Device::default());
/// let output: f32 = HardtanhConfig::new().init().forward(input).into_scalar();
/// assert!((output - 1.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Hardtanh {
    /// The lower bound.
    pub min_val: f64,
    /// The upper bound.
    pub max_val: f64,
}

impl HardtanhConfig {
    /// The activation.
    pub fn init(&self) -> Hardtanh {
        Hardtanh { min_val: self.min_val, max_val: self.max_val }
    }
}

impl Hardtanh {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::hardtanh(input, self.min_val, self.max_val)
    }
}

inline_display!(Hardtanh, layer, content => content
    .add("min_val", &layer.min_val)
    .add("max_val", &layer.max_val));
