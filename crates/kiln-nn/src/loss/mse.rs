//! Mean squared error.

use kiln_module::module::Module;
use kiln_tensor::Tensor;

use super::Reduction;

/// `(x - y)²`.
///
/// ```
/// use kiln_nn::loss::{MseLoss, Reduction};
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let x = Tensor::<1>::from_floats([1.0, 2.0], &device);
/// let y = Tensor::<1>::from_floats([1.0, 4.0], &device);
/// let loss: f32 = MseLoss::new().forward(x, y, Reduction::Mean).into_scalar();
/// assert_eq!(loss, 2.0);
/// ```
#[derive(Module, Debug)]
pub struct MseLoss;

impl Default for MseLoss {
    fn default() -> Self {
        Self::new()
    }
}

impl MseLoss {
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
        (logits - targets).square()
    }
}
