//! Additive noise while training.

use kiln_module::config::Config;
use kiln_module::module::{Flag, Module, Param};
use kiln_tensor::{Distribution, Tensor};

/// Configuration of a [`GaussianNoise`] layer.
#[derive(Config, Debug)]
pub struct GaussianNoiseConfig {
    /// The standard deviation of the noise.
    pub std: f64,
}

/// Adds normal noise of mean zero while training; the identity otherwise.
///
/// ```
/// use kiln_nn::GaussianNoiseConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let noise = GaussianNoiseConfig::new(0.1).init();
/// let input = Tensor::<1>::ones([8], &Device::default());
/// assert_eq!(noise.forward(input).sum().into_scalar::<f32>(), 8.0);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct GaussianNoise {
    /// The standard deviation of the noise.
    pub std: f64,
    /// On while training.
    pub training: Param<Flag>,
}

impl GaussianNoiseConfig {
    /// A noise layer.
    ///
    /// # Panics
    ///
    /// When the standard deviation is negative.
    #[track_caller]
    pub fn init(&self) -> GaussianNoise {
        assert!(self.std >= 0.0, "gaussian noise: the standard deviation must not be negative, got {}", self.std);
        GaussianNoise { std: self.std, training: Param::from_bool(true) }
    }
}

impl GaussianNoise {
    /// Adds noise to `input`, of any shape.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        if self.std == 0.0 || !self.training.is_enabled() || !input.is_autodiff() {
            return input;
        }
        let noise = input.random_like(Distribution::Normal(0.0, self.std));
        input + noise
    }
}

inline_display!(GaussianNoise, layer, content => content.add("std", &layer.std));
