//! Root-mean-square normalisation.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::{Device, Tensor};

/// Configuration of [`RmsNorm`].
#[derive(Config, Debug)]
pub struct RmsNormConfig {
    /// The size of the vectors.
    pub d_model: usize,
    /// Added to the mean square. Default: 1e-5.
    #[config(default = 1e-5)]
    pub epsilon: f64,
}

/// Divides each vector along the last axis by its root mean square: `x / √(mean(x²) + ε) · γ`.
///
/// Zhang and Sennrich 2019, [arXiv:1910.07467](https://arxiv.org/abs/1910.07467).
///
/// ```
/// use kiln_nn::RmsNormConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let norm = RmsNormConfig::new(2).init(&device);
/// let output = norm.forward(Tensor::<2>::from_floats([[5.0, 5.0]], &device));
/// assert!((output.max().into_scalar::<f32>() - 1.0).abs() < 1e-4);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct RmsNorm {
    /// The scale γ, `[d_model]`.
    pub gamma: Param<Tensor<1>>,
    /// Added to the mean square.
    pub epsilon: f64,
}

impl RmsNormConfig {
    /// A layer with parameters on `device`.
    ///
    /// # Panics
    ///
    /// When epsilon is not positive.
    #[track_caller]
    pub fn init(&self, device: &Device) -> RmsNorm {
        assert!(self.epsilon > 0.0, "rms norm: epsilon must be positive, got {}", self.epsilon);
        RmsNorm { gamma: Initializer::Ones.init([self.d_model], device), epsilon: self.epsilon }
    }
}

impl RmsNorm {
    /// Normalises `[.., d_model]`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let size = self.gamma.lazy_shape()[0];
        let shape = x.dims();
        assert!(shape.last() == Some(&size), "rms norm: the input has shape {shape:?}, the layer normalises vectors of size {size}");
        let rms = (x.clone().square().mean_dim(D - 1) + self.epsilon).sqrt();
        x / rms * self.gamma.val().unsqueeze()
    }
}

inline_display!(RmsNorm, layer, content => content
    .add("d_model", &layer.gamma.lazy_shape()[0])
    .add("epsilon", &layer.epsilon));
