//! Zero around the origin, the identity elsewhere.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`HardShrink`].
#[derive(Config, Debug)]
pub struct HardShrinkConfig {
    /// The half width λ of the zero part. Default: 0.5.
    #[config(default = 0.5)]
    pub lambda: f64,
}

/// `x` where `|x| > λ`, else 0.
///
/// ```
/// use kiln_nn::activation::HardShrinkConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([0.4], &Device::default());
/// let output: f32 = HardShrinkConfig::new().init().forward(input).into_scalar();
/// assert!((output - 0.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct HardShrink {
    /// The half width λ of the zero part.
    pub lambda: f64,
}

impl HardShrinkConfig {
    /// The activation.
    pub fn init(&self) -> HardShrink {
        HardShrink { lambda: self.lambda }
    }
}

impl HardShrink {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::hard_shrink(input, self.lambda)
    }
}

inline_display!(HardShrink, layer, content => content
    .add("lambda", &layer.lambda));
