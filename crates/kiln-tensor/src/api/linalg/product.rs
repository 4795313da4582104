//! Products of vectors and matrices, diagonals and traces.

use alloc::vec::Vec;

use crate::api::Tensor;
use crate::api::kind::{Basic, Numeric};
use crate::raw::{RawTensor, SliceRange};
use crate::shape::AsIndex;

/// The cosine of the angle between vectors along an axis, which keeps size 1; each length counts as at least `eps` (1e-8 by default).
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::cosine_similarity};
/// let device = Device::default();
/// let x = Tensor::<1>::from_data([3.0, 0.0], &device);
/// let y = Tensor::<1>::from_data([3.0, 4.0], &device);
/// assert_eq!(cosine_similarity(x, y, 0, None).into_scalar::<f32>(), 0.6);
/// ```
///
/// # Panics
/// When the axis does not exist or the shapes do not broadcast.
#[track_caller]
pub fn cosine_similarity<const D: usize>(x1: Tensor<D>, x2: Tensor<D>, dim: impl AsIndex, eps: Option<f64>) -> Tensor<D> {
    let axis = x1.axis("cosine_similarity", dim);
    Tensor::from_raw(cosine(&x1.raw, &x2.raw, axis, eps.unwrap_or(1e-8)))
}

#[track_caller]
fn cosine(x: &RawTensor, y: &RawTensor, axis: usize, eps: f64) -> RawTensor {
    let length = |x: &RawTensor| x.norm2(&[axis]).with_constant(kiln_ir::Elementwise::Max, eps);
    x.mul(y).sum(&[axis]).div(&length(x).mul(&length(y)))
}

/// The main diagonals of the last two axes, which become one: `[.., m, n]` → `[.., min(m, n)]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::diag};
/// let x = Tensor::<2>::from_data([[1, 2, 3], [4, 5, 6]], &Device::default());
/// let y: Tensor<1> = diag(x);
/// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [1, 5]);
/// ```
///
/// # Panics
/// When the rank is below 2 or `DO` is not `D - 1`.
#[track_caller]
pub fn diag<const D: usize, const DO: usize, K>(tensor: Tensor<D, K>) -> Tensor<DO, K>
where
    K: Basic,
{
    assert!(D >= 2 && DO + 1 == D, "diag: the diagonals of rank {D} are not of rank {DO}: shape {:?}", tensor.raw.dims());
    Tensor::from_raw(diagonal(&tensor.raw))
}

/// The diagonal of an `m × n` matrix is every `(n + 1)`-th of its elements.
#[track_caller]
pub(super) fn diagonal(x: &RawTensor) -> RawTensor {
    let rank = x.rank();
    let (m, n) = (x.dims()[rank - 2], x.dims()[rank - 1]);
    let mut flat: Vec<usize> = x.dims()[..rank - 2].to_vec();
    flat.push(m * n);
    x.reshape(&flat).slice(&[SliceRange { axis: rank - 2, start: 0, len: m.min(n), step: n as isize + 1 }])
}

/// The sum of the main diagonals of the last two axes: the other axes stay; a single matrix gives shape `[1]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::trace};
/// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
/// assert_eq!(trace::<2, 1>(x).into_scalar::<f32>(), 5.0);
/// ```
///
/// # Panics
/// When the rank is below 2, or `DO` is not `D - 2` (1 for a matrix).
#[track_caller]
pub fn trace<const D: usize, const DO: usize>(tensor: Tensor<D>) -> Tensor<DO> {
    assert!(D >= 2, "trace: needs at least two axes: shape {:?}", tensor.raw.dims());
    Tensor::from_raw(batch_shaped::<DO>(&diagonal(&tensor.raw).sum(&[D - 2]), &tensor.raw.dims()[..D - 2]))
}

/// One value for each matrix, in the shape of the batch; a single matrix may give shape `[1]`.
#[track_caller]
pub(super) fn batch_shaped<const DO: usize>(values: &RawTensor, batch: &[usize]) -> RawTensor {
    if batch.is_empty() && DO == 1 { values.reshape(&[1]) } else { values.reshape(batch) }
}

/// The product of matrices `[.., m, n]` and vectors `[.., n]`: `[.., m]`. Leading axes are broadcast.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::matvec};
/// let device = Device::default();
/// let matrix = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
/// let vector = Tensor::<1>::from_data([1, 10], &device);
/// assert_eq!(matvec(matrix, vector).try_to_vec_as::<i32>().unwrap(), [21, 43]);
/// ```
///
/// # Panics
/// When the sizes do not fit, or `DM` is not `DV + 1` or 2.
#[track_caller]
pub fn matvec<const DM: usize, const DV: usize, K>(matrix: Tensor<DM, K>, vector: Tensor<DV, K>) -> Tensor<DV, K>
where
    K: Numeric,
{
    assert!(DM >= 2 && DM <= DV + 1, "matvec: matrices of rank {DM} and vectors of rank {DV}: {:?}, {:?}", matrix.raw.dims(), vector.raw.dims());
    Tensor::from_raw(matrix.raw.matmul(&vector.raw.unsqueeze(DV)).squeeze(DV))
}

/// The products of all pairs of elements along the last axis: `[.., m]` and `[.., n]` → `[.., m, n]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::outer};
/// let device = Device::default();
/// let x = Tensor::<1>::from_data([1, 2], &device);
/// let y = Tensor::<1>::from_data([3, 4], &device);
/// let z: Tensor<2> = outer(x, y);
/// assert_eq!(z.try_to_vec_as::<i32>().unwrap(), [3, 4, 6, 8]);
/// ```
///
/// # Panics
/// When the other axes do not broadcast or `R` is not `D + 1`.
#[track_caller]
pub fn outer<const D: usize, const R: usize, K>(lhs: Tensor<D, K>, rhs: Tensor<D, K>) -> Tensor<R, K>
where
    K: Numeric,
{
    outer_dim(lhs, rhs, -1)
}

/// The products of all pairs of elements along an axis, which becomes two.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::outer_dim};
/// let x = Tensor::<2>::from_data([[1], [2]], &Device::default());
/// let z: Tensor<3> = outer_dim(x.clone(), x, 0);
/// assert_eq!(z.dims(), [2, 2, 1]);
/// ```
///
/// # Panics
/// When the axis does not exist, the other axes do not broadcast, or `R` is not `D + 1`.
#[track_caller]
pub fn outer_dim<const D: usize, const R: usize, Dim: AsIndex, K>(lhs: Tensor<D, K>, rhs: Tensor<D, K>, dim: Dim) -> Tensor<R, K>
where
    K: Numeric,
{
    let axis = lhs.axis("outer", dim);
    assert!(R == D + 1, "outer: rank {D} becomes {}, not {R}: shape {:?}", D + 1, lhs.raw.dims());
    Tensor::from_raw(lhs.raw.unsqueeze(axis + 1).mul(&rhs.raw.unsqueeze(axis)))
}
