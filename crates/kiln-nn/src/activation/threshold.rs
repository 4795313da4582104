//! A value below a threshold, the identity above.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`Threshold`].
#[derive(Config, Debug)]
pub struct ThresholdConfig {
    /// The threshold.
    pub threshold: f64,
    /// The value below.
    pub value: f64,
}

/// `x` where `x > threshold`, else `value`.
///
/// ```
/// use kiln_nn::activation::ThresholdConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = ThresholdConfig::new(2.0, 5.0).init().forward(input).into_scalar();
/// assert!((output - 5.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Threshold {
    /// The threshold.
    pub threshold: f64,
    /// The value below.
    pub value: f64,
}

impl ThresholdConfig {
    /// The activation.
    pub fn init(&self) -> Threshold {
        Threshold { threshold: self.threshold, value: self.value }
    }
}

impl Threshold {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::threshold(input, self.threshold, self.value)
    }
}

inline_display!(Threshold, layer, content => content
    .add("threshold", &layer.threshold)
    .add("value", &layer.value));
