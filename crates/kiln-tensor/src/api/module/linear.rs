//! Linear maps and tables of vectors.

use crate::api::Tensor;
use crate::api::kind::Int;

/// `input @ weight + bias` over the last axis: `[.., in]`, `[in, out]`, `[out]` → `[.., out]`. A tensor of rank 1 is one row.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::linear};
/// let device = Device::default();
/// let x = Tensor::<1>::from_data([1, 2], &device);
/// let weight = Tensor::<2>::from_data([[3], [4]], &device);
/// let y = linear(x, weight, Some(Tensor::from_data([0.5], &device)));
/// assert_eq!(y.try_to_vec_as::<f32>().unwrap(), [11.5]);
/// ```
///
/// # Panics
/// When the sizes do not fit, or types or devices differ.
#[track_caller]
pub fn linear<const D: usize>(input: Tensor<D>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<D> {
    Tensor::from_raw(input.raw.linear(&weight.raw, bias.as_ref().map(Tensor::as_raw)))
}

/// Rows of a table `[n, width]` at indices `[batch, length]`: `[batch, length, width]`.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, module::embedding};
/// let device = Device::default();
/// let table = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
/// let rows = embedding(table, Tensor::<2, Int>::from_data([[1, 0]], &device));
/// assert_eq!(rows.try_to_vec_as::<i32>().unwrap(), [3, 4, 1, 2]);
/// ```
///
/// # Panics
/// When devices differ. An index out of range is an error of the device when the result is read.
#[track_caller]
pub fn embedding(weights: Tensor<2>, indices: Tensor<2, Int>) -> Tensor<3> {
    Tensor::from_raw(weights.raw.embedding(&indices.raw))
}
