//! The continuously differentiable exponential linear unit.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`Celu`].
#[derive(Config, Debug)]
pub struct CeluConfig {
    /// The scale α of the negative part. Default: 1.
    #[config(default = 1.0)]
    pub alpha: f64,
}

/// `max(x, 0) + min(α · (e^(x / α) - 1), 0)`.
///
/// ```
/// use kiln_nn::activation::CeluConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([-1.0], &Device::default());
/// let output: f32 = CeluConfig::new().init().forward(input).into_scalar();
/// assert!((output - (-0.632_120_6)).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Celu {
    /// The scale α of the negative part.
    pub alpha: f64,
}

impl CeluConfig {
    /// The activation.
    pub fn init(&self) -> Celu {
        Celu { alpha: self.alpha }
    }
}

impl Celu {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::celu(input, self.alpha)
    }
}

inline_display!(Celu, layer, content => content
    .add("alpha", &layer.alpha));
