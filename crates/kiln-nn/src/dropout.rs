//! Random zeroing of units while training.

use kiln_module::config::Config;
use kiln_module::module::{Flag, Module, Param};
use kiln_tensor::{Distribution, Tensor};

/// Configuration of a [`Dropout`] layer.
#[derive(Config, Debug)]
pub struct DropoutConfig {
    /// The probability that a unit is zeroed.
    pub prob: f64,
}

/// Zeroes each element with probability `prob` while training, and scales the others by `1 / (1 - prob)`.
///
/// It acts only if its training flag is on and the input takes part in autodiff, and is the identity otherwise.
/// Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".
///
/// ```
/// use kiln_nn::DropoutConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let dropout = DropoutConfig::new(0.5).init();
/// let input = Tensor::<1>::ones([100], &Device::default());
/// // Without autodiff there is no training.
/// assert_eq!(dropout.forward(input).sum().into_scalar::<f32>(), 100.0);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Dropout {
    /// The probability that a unit is zeroed.
    pub prob: f64,
    /// On while training.
    pub training: Param<Flag>,
}

impl DropoutConfig {
    /// A dropout layer.
    ///
    /// # Panics
    ///
    /// When the probability is not in `[0, 1]`.
    #[track_caller]
    pub fn init(&self) -> Dropout {
        assert!((0.0..=1.0).contains(&self.prob), "dropout: the probability must be in [0, 1], got {}", self.prob);
        Dropout { prob: self.prob, training: Param::from_bool(true) }
    }
}

impl Dropout {
    /// Drops elements of `input`, of any shape.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        if self.prob == 0.0 || !self.training.is_enabled() || !input.is_autodiff() {
            return input;
        }
        if self.prob == 1.0 {
            return input.mul_scalar(0.0);
        }
        let keep = 1.0 - self.prob;
        let mask = input.random_like(Distribution::Bernoulli(keep));
        input * mask * (1.0 / keep)
    }
}

inline_display!(Dropout, layer, content => content.add("prob", &layer.prob));
