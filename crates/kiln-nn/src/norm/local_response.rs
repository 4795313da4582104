//! Local response normalisation.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;
use kiln_tensor::ops::PadMode;

/// Configuration of [`LocalResponseNorm`].
#[derive(Config, Debug)]
pub struct LocalResponseNormConfig {
    /// The number of neighbouring channels.
    pub size: usize,
    /// The weight of the mean square. Default: 1e-4.
    #[config(default = 0.0001)]
    pub alpha: f64,
    /// The exponent. Default: 0.75.
    #[config(default = 0.75)]
    pub beta: f64,
    /// The constant term. Default: 1.
    #[config(default = 1.0)]
    pub k: f64,
}

/// Divides each element by `(k + α / size · Σ x²)^β`, summed over `size` neighbouring channels, of which the larger half
/// comes before.
///
/// Krizhevsky et al. 2012, "ImageNet Classification with Deep Convolutional Neural Networks".
///
/// ```
/// use kiln_nn::LocalResponseNormConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let norm = LocalResponseNormConfig::new(3).init();
/// let input = Tensor::<4>::ones([1, 8, 2, 2], &Device::default());
/// assert_eq!(norm.forward(input).dims(), [1, 8, 2, 2]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LocalResponseNorm {
    size: usize,
    alpha: f64,
    beta: f64,
    k: f64,
}

impl LocalResponseNormConfig {
    /// The layer.
    ///
    /// # Panics
    ///
    /// When the size is zero.
    #[track_caller]
    pub fn init(&self) -> LocalResponseNorm {
        assert!(self.size > 0, "local response norm: the size must be positive");
        LocalResponseNorm { size: self.size, alpha: self.alpha, beta: self.beta, k: self.k }
    }
}

impl LocalResponseNorm {
    /// Normalises `[batch, channels, ..]`.
    ///
    /// # Panics
    ///
    /// When the rank is below two.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        assert!(D >= 2, "local response norm: needs rank 2 or more, got {D}");
        let shape = input.dims();
        let (before, after) = (self.size / 2, (self.size - 1) / 2);
        let mut padding = [(0, 0); D];
        padding[1] = (before, after);
        let squares = input.clone().square().pad(padding, PadMode::Constant(0.0));
        let sum = (1..self.size).fold(squares.clone().narrow(1, 0, shape[1]), |sum, offset| sum + squares.clone().narrow(1, offset, shape[1]));
        let scale = (sum * (self.alpha / self.size as f64) + self.k).powf_scalar(self.beta);
        input / scale
    }
}

inline_display!(LocalResponseNorm, layer, content => content
    .add("size", &layer.size)
    .add("alpha", &layer.alpha)
    .add("beta", &layer.beta)
    .add("k", &layer.k));
