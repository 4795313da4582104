//! A piecewise linear approximation of the logistic function.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`HardSigmoid`].
#[derive(Config, Debug)]
pub struct HardSigmoidConfig {
    /// The slope α. Default: 0.2.
    #[config(default = 0.2)]
    pub alpha: f64,
    /// The value β at zero. Default: 0.5.
    #[config(default = 0.5)]
    pub beta: f64,
}

/// `min(max(α · x + β, 0), 1)`.
///
/// ```
/// use kiln_nn::activation::HardSigmoidConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([1.0], &Device::default());
/// let output: f32 = HardSigmoidConfig::new().init().forward(input).into_scalar();
/// assert!((output - 0.7).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct HardSigmoid {
    /// The slope α.
    pub alpha: f64,
    /// The value β at zero.
    pub beta: f64,
}

impl HardSigmoidConfig {
    /// The activation.
    pub fn init(&self) -> HardSigmoid {
        HardSigmoid { alpha: self.alpha, beta: self.beta }
    }
}

impl HardSigmoid {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::hard_sigmoid(input, self.alpha, self.beta)
    }
}

inline_display!(HardSigmoid, layer, content => content
    .add("alpha", &layer.alpha)
    .add("beta", &layer.beta));
