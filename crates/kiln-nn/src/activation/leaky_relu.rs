//! The rectified linear unit with a slope below zero.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`LeakyRelu`].
#[derive(Config, Debug)]
pub struct LeakyReluConfig {
    /// The slope below zero. Default: 0.01.
    #[config(default = 0.01)]
    pub negative_slope: f64,
}

/// `x` for positive `x`, else `slope · x`.
///
/// ```
/// use kiln_nn::activation::LeakyReluConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([-1.0], &Device::default());
/// let output: f32 = LeakyReluConfig::new().init().forward(input).into_scalar();
/// assert!((output - (-0.01)).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LeakyRelu {
    /// The slope below zero.
    pub negative_slope: f64,
}

impl LeakyReluConfig {
    /// The activation.
    pub fn init(&self) -> LeakyRelu {
        LeakyRelu { negative_slope: self.negative_slope }
    }
}

impl LeakyRelu {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::leaky_relu(input, self.negative_slope)
    }
}

inline_display!(LeakyRelu, layer, content => content
    .add("negative_slope", &layer.negative_slope));
