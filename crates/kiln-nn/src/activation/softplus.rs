//! A smooth rectified linear unit.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`Softplus`].
#[derive(Config, Debug)]
pub struct SoftplusConfig {
    /// The sharpness β. Default: 1.
    #[config(default = 1.0)]
    pub beta: f64,
    /// Where the function is taken to be linear. Default: 20.
    #[config(default = 20.0)]
    pub threshold: f64,
}

/// `ln(1 + e^(β x)) / β`, and `x` where `β x` is above the threshold.
///
/// ```
/// use kiln_nn::activation::SoftplusConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([0.0], &Device::default());
/// let output: f32 = SoftplusConfig::new().init().forward(input).into_scalar();
/// assert!((output - 0.693_147_2).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Softplus {
    /// The sharpness β.
    pub beta: f64,
    /// Where the function is taken to be linear.
    pub threshold: f64,
}

impl SoftplusConfig {
    /// The activation.
    pub fn init(&self) -> Softplus {
        Softplus { beta: self.beta, threshold: self.threshold }
    }
}

impl Softplus {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::softplus_with_threshold(input, self.beta, self.threshold)
    }
}

inline_display!(Softplus, layer, content => content
    .add("beta", &layer.beta)
    .add("threshold", &layer.threshold));
