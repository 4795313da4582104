//! Zero around the origin, continuous elsewhere.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`SoftShrink`].
#[derive(Config, Debug)]
pub struct SoftShrinkConfig {
    /// The half width λ of the zero part. Default: 0.5.
    #[config(default = 0.5)]
    pub lambda: f64,
}

/// `x - λ` where `x > λ`, `x + λ` where `x < -λ`, else 0.
///
/// ```
/// use kiln_nn::activation::SoftShrinkConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([2.0], &Device::default());
/// let output: f32 = SoftShrinkConfig::new().init().forward(input).into_scalar();
/// assert!((output - 1.5).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SoftShrink {
    /// The half width λ of the zero part.
    pub lambda: f64,
}

impl SoftShrinkConfig {
    /// The activation.
    pub fn init(&self) -> SoftShrink {
        SoftShrink { lambda: self.lambda }
    }
}

impl SoftShrink {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::soft_shrink(input, self.lambda)
    }
}

inline_display!(SoftShrink, layer, content => content
    .add("lambda", &layer.lambda));
