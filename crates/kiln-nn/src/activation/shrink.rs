//! Zero around the origin, moved towards it elsewhere.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`Shrink`].
#[derive(Config, Debug)]
pub struct ShrinkConfig {
    /// The half width λ of the zero part. Default: 0.5.
    #[config(default = 0.5)]
    pub lambda: f64,
    /// The distance that the rest is moved. Default: 0.5.
    #[config(default = 0.5)]
    pub bias: f64,
}

/// `x - bias` where `x > λ`, `x + bias` where `x < -λ`, else 0.
///
/// ```
/// use kiln_nn::activation::ShrinkConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([2.0], &Device::default());
/// let output: f32 = ShrinkConfig::new().init().forward(input).into_scalar();
/// assert!((output - 1.5).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Shrink {
    /// The half width λ of the zero part.
    pub lambda: f64,
    /// The distance that the rest is moved.
    pub bias: f64,
}

impl ShrinkConfig {
    /// The activation.
    pub fn init(&self) -> Shrink {
        Shrink { lambda: self.lambda, bias: self.bias }
    }
}

impl Shrink {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::shrink(input, self.lambda, self.bias)
    }
}

inline_display!(Shrink, layer, content => content
    .add("lambda", &layer.lambda)
    .add("bias", &layer.bias));
