//! The negative log likelihood of counts.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;

/// Configuration of a [`PoissonNllLoss`].
#[derive(Config, Debug)]
pub struct PoissonNllLossConfig {
    /// Whether the predictions are the logarithms of the rates. Default: true.
    #[config(default = true)]
    pub log_input: bool,
    /// Whether the term that depends on the target alone is added, in Stirling's approximation. Default: false.
    #[config(default = false)]
    pub full: bool,
    /// Added to rates before the logarithm. Default: 1e-8.
    #[config(default = 1e-8)]
    pub eps: f64,
}

/// `eˣ - y · x` for log rates `x`, or `x - y · ln(x + eps)` for rates.
///
/// ```
/// use kiln_nn::loss::{PoissonNllLossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = PoissonNllLossConfig::new().init();
/// let x = Tensor::<1>::from_floats([0.0], &device);
/// let y = Tensor::<1>::from_floats([2.0], &device);
/// let value: f32 = loss.forward(x, y, Reduction::Mean).into_scalar();
/// assert!((value - 1.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PoissonNllLoss {
    /// Whether the predictions are the logarithms of the rates.
    pub log_input: bool,
    /// Whether the term that depends on the target alone is added, in Stirling's approximation.
    pub full: bool,
    /// Added to rates before the logarithm.
    pub eps: f64,
}

impl PoissonNllLossConfig {
    /// The loss.
    pub fn init(&self) -> PoissonNllLoss {
        PoissonNllLoss { log_input: self.log_input, full: self.full, eps: self.eps }
    }
}

impl PoissonNllLoss {
    /// The reduced loss, `[1]`, of the predictions for the targets, of the same shape.
    #[track_caller]
    pub fn forward<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(predictions, targets))
    }

    /// The loss of each element.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>) -> Tensor<D> {
        let losses = if self.log_input {
            predictions.clone().exp() - targets.clone() * predictions
        } else {
            predictions.clone() - targets.clone() * (predictions + self.eps).log()
        };
        if !self.full {
            return losses;
        }
        let small = targets.clone().lower_equal_elem(1.0);
        let count = targets.mask_fill(small.clone(), 1.0);
        let log = count.clone().log();
        let circle = (count.clone() * (2.0 * core::f64::consts::PI)).log() * 0.5;
        losses + (count.clone() * log - count + circle).mask_fill(small, 0.0)
    }
}

inline_display!(PoissonNllLoss, loss, content => content
    .add("log_input", &loss.log_input)
    .add("full", &loss.full)
    .add("eps", &loss.eps));
