//! Normalisations.

use crate::api::Tensor;

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta` for each channel of `[batch, channels, ..]`, with given statistics.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::batch_norm};
/// let device = Device::default();
/// let one = |x: f32| Tensor::<1>::from_data([x], &device);
/// let x = Tensor::<2>::from_data([[5.0]], &device);
/// assert_eq!(batch_norm(x, one(2.0), one(1.0), one(3.0), one(4.0), 0.0).into_scalar::<f32>(), 3.0);
/// ```
///
/// # Panics
/// When a parameter does not have one element for each channel.
#[track_caller]
pub fn batch_norm<const D: usize>(
    input: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    mean: Tensor<1>,
    variance: Tensor<1>,
    epsilon: f64,
) -> Tensor<D> {
    Tensor::from_raw(input.raw.batch_norm(&gamma.raw, &beta.raw, &mean.raw, &variance.raw, epsilon))
}

/// What [`batch_norm_train`] gives.
pub struct BatchNormTrainOutput<const D: usize> {
    /// The normalised input.
    pub output: Tensor<D>,
    /// The mean of each channel. Not tracked.
    pub mean: Tensor<1>,
    /// The variance of each channel, with denominator `n`. Not tracked.
    pub variance: Tensor<1>,
}

/// [`batch_norm`] with the statistics of the batch itself.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::batch_norm_train};
/// let device = Device::default();
/// let x = Tensor::<2>::from_data([[1.0], [3.0]], &device);
/// let result = batch_norm_train(x, Tensor::ones([1], &device), Tensor::zeros([1], &device), 0.0);
/// assert_eq!(result.output.try_to_vec_as::<f32>().unwrap(), [-1.0, 1.0]);
/// assert_eq!(result.mean.into_scalar::<f32>(), 2.0);
/// ```
///
/// # Panics
/// When a parameter does not have one element for each channel.
#[track_caller]
pub fn batch_norm_train<const D: usize>(input: Tensor<D>, gamma: Tensor<1>, beta: Tensor<1>, epsilon: f64) -> BatchNormTrainOutput<D> {
    let normalized = input.raw.batch_norm_train(&gamma.raw, &beta.raw, epsilon);
    BatchNormTrainOutput {
        output: Tensor::from_raw(normalized.output),
        mean: Tensor::from_raw(normalized.mean),
        variance: Tensor::from_raw(normalized.var),
    }
}

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta` over the last axis.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::layer_norm};
/// let device = Device::default();
/// let x = Tensor::<2>::from_data([[1.0, 3.0]], &device);
/// let y = layer_norm(x, Tensor::ones([2], &device), None, 0.0);
/// assert_eq!(y.try_to_vec_as::<f32>().unwrap(), [-1.0, 1.0]);
/// ```
///
/// # Panics
/// When a parameter does not have the size of the last axis.
#[track_caller]
pub fn layer_norm<const D: usize>(input: Tensor<D>, gamma: Tensor<1>, beta: Option<Tensor<1>>, epsilon: f64) -> Tensor<D> {
    Tensor::from_raw(input.raw.layer_norm(&gamma.raw, beta.as_ref().map(Tensor::as_raw), epsilon))
}
