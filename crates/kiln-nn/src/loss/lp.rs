//! A power of the absolute error.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{AsIndex, Tensor};

use super::Reduction;

/// Configuration of a [`LpLoss`].
#[derive(Config, Debug)]
pub struct LpLossConfig {
    /// The power; positive.
    pub p: f64,
}

/// `|x - y|ᵖ`.
///
/// ```
/// use kiln_nn::loss::{LpLossConfig, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let loss = LpLossConfig::new(3.0).init();
/// let x = Tensor::<1>::from_floats([0.0, 1.0], &device);
/// let y = Tensor::<1>::from_floats([2.0, 1.0], &device);
/// let value: f32 = loss.forward(x, y, Reduction::Mean).into_scalar();
/// assert!((value - 4.0).abs() < 1e-5);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LpLoss {
    /// The power; positive.
    pub p: f64,
}

impl LpLossConfig {
    /// The absolute error.
    #[must_use]
    pub fn l1() -> LpLoss {
        LpLoss { p: 1.0 }
    }

    /// The squared error.
    #[must_use]
    pub fn l2() -> LpLoss {
        LpLoss { p: 2.0 }
    }

    /// The loss.
    ///
    /// # Panics
    ///
    /// When the power is not positive.
    #[track_caller]
    pub fn init(&self) -> LpLoss {
        assert!(self.p > 0.0, "lp loss: the power must be positive, got {}", self.p);
        LpLoss { p: self.p }
    }
}

impl LpLoss {
    /// The reduced loss, `[1]`, of the predictions for the targets, of the same shape.
    #[track_caller]
    pub fn forward<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(predictions, targets))
    }

    /// The loss of each element.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>) -> Tensor<D> {
        let size = (predictions - targets).abs();
        if self.p == 1.0 {
            size
        } else if self.p == 2.0 {
            size.square()
        } else {
            size.powf_scalar(self.p)
        }
    }

    /// The mean over the given axes, which keep size one.
    #[track_caller]
    pub fn forward_reduce_dims<const D: usize>(&self, predictions: Tensor<D>, targets: Tensor<D>, dims: &[impl AsIndex]) -> Tensor<D> {
        self.forward_no_reduction(predictions, targets).mean_dims(dims)
    }
}

inline_display!(LpLoss, loss, content => content
    .add("p", &loss.p));
