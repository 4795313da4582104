//! Squared for small errors, linear for large ones.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;

/// Configuration of a [`HuberLoss`].
#[derive(Config, Debug)]
pub struct HuberLossConfig {
    /// Where the loss becomes linear; positive.
    pub delta: f32,
}

/// `(x - y)² / 2` up to `δ`, then `δ · (|x - y| - δ / 2)`. Huber 1964.
///
/// ```
/// use kiln_nn::loss::{HuberLossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = HuberLossConfig::new(1.0).init();
/// let x = Tensor::<1>::from_floats([0.0, 0.0], &device);
/// let y = Tensor::<1>::from_floats([1.0, 3.0], &device);
/// let value: f32 = loss.forward(x, y, Reduction::Mean).into_scalar();
/// assert!((value - 1.5).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct HuberLoss {
    /// Where the loss becomes linear.
    pub delta: f32,
    /// What the linear part lacks to continue the squared one: `δ² / 2`.
    pub lin_bias: f32,
}

impl HuberLossConfig {
    /// The loss.
    ///
    /// # Panics
    ///
    /// When delta is not positive.
    #[track_caller]
    pub fn init(&self) -> HuberLoss {
        assert!(self.delta > 0.0, "huber loss: delta must be positive, got {}", self.delta);
        HuberLoss { delta: self.delta, lin_bias: self.delta * self.delta * 0.5 }
    }
}

impl HuberLoss {
    /// The reduced loss, `[1]`, of the predictions for the targets, of the same shape.
    #[track_caller]
    pub fn forward<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(predictions, targets))
    }

    /// The loss of each element.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>) -> Tensor<D> {
        self.forward_residuals(predictions - targets)
    }

    /// The loss of each difference.
    pub fn forward_residuals<const D: usize>(&self, residuals: Tensor<D>) -> Tensor<D> {
        let delta = f64::from(self.delta);
        let size = residuals.clone().abs();
        let far = size.clone().greater_elem(delta);
        let linear = size * delta - f64::from(self.lin_bias);
        (residuals.square() * 0.5).mask_where(far, linear)
    }
}

inline_display!(HuberLoss, loss, content => content
    .add("delta", &loss.delta));
