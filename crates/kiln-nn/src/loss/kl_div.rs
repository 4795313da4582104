//! The Kullback-Leibler divergence.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;

/// Configuration of a [`KLDivLoss`].
#[derive(Config, Debug)]
pub struct KLDivLossConfig {
    /// Whether the targets are log probabilities. Default: false.
    #[config(default = false)]
    pub log_target: bool,
}

/// `y · (ln y - x)`, where the predictions `x` are log probabilities and the targets `y` probabilities (or their logarithms).
///
/// ```
/// use kiln_nn::loss::{KLDivLossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = KLDivLossConfig::new().init();
/// let x = Tensor::<1>::from_floats([-0.693_147_2], &device);
/// let y = Tensor::<1>::from_floats([1.0], &device);
/// let value: f32 = loss.forward(x, y, Reduction::Mean).into_scalar();
/// assert!((value - 0.693_147_2).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct KLDivLoss {
    /// Whether the targets are log probabilities.
    pub log_target: bool,
}

impl KLDivLossConfig {
    /// The loss.
    pub fn init(&self) -> KLDivLoss {
        KLDivLoss { log_target: self.log_target }
    }
}

impl KLDivLoss {
    /// The reduced loss, `[1]`, of the predictions for the targets, of the same shape.
    #[track_caller]
    pub fn forward<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(predictions, targets))
    }

    /// The loss of each element.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>) -> Tensor<D> {
        if self.log_target {
            targets.clone().exp() * (targets - predictions)
        } else {
            // y ln y is zero at zero.
            let zero = targets.clone().lower_equal_elem(0.0);
            let log = targets.clone().mask_fill(zero, 1.0).log();
            targets * (log - predictions)
        }
    }
}

inline_display!(KLDivLoss, loss, content => content
    .add("log_target", &loss.log_target));
