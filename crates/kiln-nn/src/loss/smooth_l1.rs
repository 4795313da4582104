//! Squared for small errors, absolute for large ones.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{AsIndex, Tensor};

use super::Reduction;

/// Configuration of a [`SmoothL1Loss`].
#[derive(Config, Debug)]
pub struct SmoothL1LossConfig {
    /// Where the loss becomes linear; zero for the absolute error. Default: 1.
    #[config(default = 1.0)]
    pub beta: f32,
}

/// `(x - y)² / (2 β)` up to `β`, then `|x - y| - β / 2`.
///
/// ```
/// use kiln_nn::loss::{SmoothL1LossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = SmoothL1LossConfig::new().init();
/// let x = Tensor::<1>::from_floats([0.0, 0.0], &device);
/// let y = Tensor::<1>::from_floats([1.0, 3.0], &device);
/// let value: f32 = loss.forward_with_reduction(x, y, Reduction::Mean).into_scalar();
/// assert!((value - 1.5).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct SmoothL1Loss {
    /// Where the loss becomes linear; zero for the absolute error.
    pub beta: f32,
}

impl SmoothL1LossConfig {
    /// The loss.
    ///
    /// # Panics
    ///
    /// When beta is negative.
    #[track_caller]
    pub fn init(&self) -> SmoothL1Loss {
        assert!(self.beta >= 0.0, "smooth l1 loss: beta must not be negative, got {}", self.beta);
        SmoothL1Loss { beta: self.beta }
    }
}

impl SmoothL1Loss {
    /// The loss of each element.
    #[track_caller]
    pub fn forward<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>) -> Tensor<D> {
        let beta = f64::from(self.beta);
        let difference = predictions - targets;
        let size = difference.clone().abs();
        if beta == 0.0 {
            return size;
        }
        let far = size.clone().greater_equal_elem(beta);
        (difference.square() * (0.5 / beta)).mask_where(far, size - 0.5 * beta)
    }

    /// The reduced loss, `[1]`.
    #[track_caller]
    pub fn forward_with_reduction<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward(predictions, targets))
    }

    /// The mean over the given axes, which keep size one.
    #[track_caller]
    pub fn forward_reduce_dims<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>, dims: &[impl AsIndex]) -> Tensor<D> {
        self.forward(predictions, targets).mean_dims(dims)
    }
}

inline_display!(SmoothL1Loss, loss, content => content
    .add("beta", &loss.beta));
