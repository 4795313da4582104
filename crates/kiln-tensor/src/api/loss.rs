//! Losses on logits.

use super::Tensor;
use crate::raw::RawTensor;

/// The mean cross entropy between logits `[.., classes]` and target probabilities of the same shape: shape `[1]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, loss::cross_entropy_with_logits};
/// let device = Device::default();
/// let logits = Tensor::<2>::zeros([3, 2], &device);
/// let targets = Tensor::<2>::from_data([[1, 0], [0, 1], [1, 0]], &device);
/// let loss = cross_entropy_with_logits(logits, targets);
/// assert!((loss.into_scalar::<f32>() - 2f32.ln()).abs() < 1e-6);
/// ```
///
/// # Panics
/// When the shapes differ.
#[track_caller]
pub fn cross_entropy_with_logits<const D: usize>(logits: Tensor<D>, target_probs: Tensor<D>) -> Tensor<1> {
    Tensor::from_raw(cross_entropy(&logits.raw, &target_probs.raw))
}

#[track_caller]
fn cross_entropy(logits: &RawTensor, targets: &RawTensor) -> RawTensor {
    assert!(logits.dims() == targets.dims(), "cross_entropy_with_logits: shapes differ: logits {:?}, targets {:?}", logits.dims(), targets.dims());
    let axis = logits.rank() - 1;
    logits.log_softmax(axis).mul(targets).sum(&[axis]).mean_all().neg().reshape(&[1])
}
