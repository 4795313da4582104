//! The exponential linear unit.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

/// Configuration of [`Elu`].
#[derive(Config, Debug)]
pub struct EluConfig {
    /// The scale α of the negative part. Default: 1.
    #[config(default = 1.0)]
    pub alpha: f64,
}

/// `x` for positive `x`, else `α · (eˣ - 1)`.
///
/// ```
/// use kiln_nn::activation::EluConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let input = Tensor::<1>::from_floats([-1.0], &Device::default());
/// let output: f32 = EluConfig::new().init().forward(input).into_scalar();
/// assert!((output - (-0.632_120_6)).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Elu {
    /// The scale α of the negative part.
    pub alpha: f64,
}

impl EluConfig {
    /// The activation.
    pub fn init(&self) -> Elu {
        Elu { alpha: self.alpha }
    }
}

impl Elu {
    /// Applies the function to each element.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::elu(input, self.alpha)
    }
}

inline_display!(Elu, layer, content => content
    .add("alpha", &layer.alpha));
