//! The logistic loss of two classes.

use kiln_module::module::Module;
use kiln_tensor::{Tensor, activation};

use super::Reduction;

/// `ln(1 + e^(-y · x))` for targets `y` of 1 or -1.
///
/// ```
/// use kiln_nn::loss::{Reduction, SoftMarginLoss};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let x = Tensor::<1>::zeros([2], &device);
/// let y = Tensor::<1>::from_floats([1.0, -1.0], &device);
/// let loss: f32 = SoftMarginLoss::new().forward(x, y, Reduction::Mean).into_scalar();
/// assert!((loss - 2f32.ln()).abs() < 1e-6);
/// ```
#[derive(Module, Debug)]
pub struct SoftMarginLoss;

impl Default for SoftMarginLoss {
    fn default() -> Self {
        Self::new()
    }
}

impl SoftMarginLoss {
    /// The loss.
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    /// The reduced loss, `[1]`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, logits: Tensor<D>, targets: Tensor<D>, reduction: Reduction) -> Tensor<1> {
        reduction.apply(self.forward_no_reduction(logits, targets))
    }

    /// The loss of each element.
    #[track_caller]
    pub fn forward_no_reduction<const D: usize>(&self, logits: Tensor<D>, targets: Tensor<D>) -> Tensor<D> {
        activation::log_sigmoid(logits * targets).neg()
    }
}
