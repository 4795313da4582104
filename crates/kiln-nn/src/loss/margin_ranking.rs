//! Wants one of two values to be larger.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;

/// Configuration of a [`MarginRankingLoss`].
#[derive(Config, Debug)]
pub struct MarginRankingLossConfig {
    /// The difference that the values should have. Default: 0.
    #[config(default = 0.0)]
    pub margin: f64,
}

/// `max(-y · (x₁ - x₂) + margin, 0)`: the first value should be larger for `y = 1`, the second for `y = -1`.
///
/// ```
/// use kiln_nn::loss::{MarginRankingLossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = MarginRankingLossConfig::new().init();
/// let first = Tensor::<1>::from_floats([1.0], &device);
/// let second = Tensor::<1>::from_floats([3.0], &device);
/// let target = Tensor::<1>::from_floats([1.0], &device);
/// let value: f32 = loss.forward(first, second, target, Reduction::Mean).into_scalar();
/// assert_eq!(value, 2.0);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct MarginRankingLoss {
    /// The difference that the values should have.
    pub margin: f64,
}

impl MarginRankingLossConfig {
    /// The loss.
    pub fn init(&self) -> MarginRankingLoss {
        MarginRankingLoss { margin: self.margin }
    }
}

impl MarginRankingLoss {
    /// The reduced loss, `[1]`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, first: Tensor<D>, second: Tensor<D>, target: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(first, second, target))
    }

    /// The loss of each pair.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, first: Tensor<D>, second: Tensor<D>, target: Tensor<D>) -> Tensor<D> {
        ((second - first) * target + self.margin).clamp_min(0.0)
    }
}

inline_display!(MarginRankingLoss, loss, content => content.add("margin", &loss.margin));
