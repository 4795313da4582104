//! Zero below a threshold, the identity above.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`ThresholdedRelu`].
#[derive(Config, Debug)]
pub struct ThresholdedReluConfig {
    /// The threshold α. Default: 1.
    #[config(default = 1.0)]
    pub alpha: f64,
}

/// `x` where `x > α`, else 0.
///
/// ```
/// use kiln_nn::activation::ThresholdedReluConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([0.5], &Device::default());
/// let output: f32 = ThresholdedReluConfig::new().init().forward(input).into_scalar();
/// assert!((output - 0.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct ThresholdedRelu {
    /// The threshold α.
    pub alpha: f64,
}

impl ThresholdedReluConfig {
    /// The activation.
    pub fn init(&self) -> ThresholdedRelu {
        ThresholdedRelu { alpha: self.alpha }
    }
}

impl ThresholdedRelu {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::thresholded_relu(input, self.alpha)
    }
}

inline_display!(ThresholdedRelu, layer, content => content
    .add("alpha", &layer.alpha));
