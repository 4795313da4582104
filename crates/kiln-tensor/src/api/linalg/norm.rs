//! Norms of vectors along axes, which keep size 1. Without axes, each element is its own vector.

use kiln_ir::Elementwise::{Ge, Ne};

use crate::api::Tensor;
use crate::api::kind::{Numeric, Ordered};
use crate::api::view::distinct_axes;
use crate::element::ElementConversion;
use crate::raw::RawTensor;
use crate::shape::AsIndex;

/// A norm of vectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norm {
    /// The number of elements that are not zero.
    L0,
    /// The sum of the absolute values.
    L1,
    /// The Euclidean length.
    L2,
    /// The largest absolute value; there is none of an axis without elements.
    LInf,
    /// The smallest absolute value; there is none of an axis without elements.
    LNegInf,
    /// `sum(|x|^p)^(1 / p)`.
    Lp(f64),
}

impl Norm {
    /// The exponent `p` of the norm.
    ///
    /// ```
    /// use kiln_tensor::linalg::Norm;
    /// assert_eq!(Norm::LInf.to_exponent(), f64::INFINITY);
    /// ```
    pub fn to_exponent(self) -> f64 {
        match self {
            Self::L0 => 0.0,
            Self::L1 => 1.0,
            Self::L2 => 2.0,
            Self::LInf => f64::INFINITY,
            Self::LNegInf => f64::NEG_INFINITY,
            Self::Lp(p) => p,
        }
    }
}

impl From<f64> for Norm {
    fn from(p: f64) -> Self {
        match p {
            0.0 => Self::L0,
            1.0 => Self::L1,
            2.0 => Self::L2,
            f64::INFINITY => Self::LInf,
            f64::NEG_INFINITY => Self::LNegInf,
            p => Self::Lp(p),
        }
    }
}

impl From<f32> for Norm {
    fn from(p: f32) -> Self {
        Self::from(f64::from(p))
    }
}

impl From<i32> for Norm {
    fn from(p: i32) -> Self {
        Self::from(f64::from(p))
    }
}

impl From<u32> for Norm {
    fn from(p: u32) -> Self {
        Self::from(f64::from(p))
    }
}

/// A norm along several axes.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::vector_norm_dims};
/// let x = Tensor::<2>::from_data([[3.0, 0.0], [0.0, -4.0]], &Device::default());
/// assert_eq!(vector_norm_dims(x, 2, &[0, 1]).into_scalar::<f32>(), 5.0);
/// ```
///
/// # Panics
/// When an axis does not exist or is named twice.
#[track_caller]
pub fn vector_norm_dims<const D: usize, I: AsIndex>(x: Tensor<D>, norm: impl Into<Norm>, dims: &[I]) -> Tensor<D> {
    let axes = distinct_axes("vector_norm", dims, x.raw.dims());
    Tensor::from_raw(of(&x.raw, norm.into(), &axes))
}

/// A norm along an axis.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::{Norm, vector_norm}};
/// let x = Tensor::<1>::from_data([3.0, -4.0], &Device::default());
/// assert_eq!(vector_norm(x.clone(), Norm::L1, 0).into_scalar::<f32>(), 7.0);
/// assert_eq!(vector_norm(x, f64::INFINITY, 0).into_scalar::<f32>(), 4.0);
/// ```
///
/// # Panics
/// When the axis does not exist.
#[track_caller]
pub fn vector_norm<const D: usize>(x: Tensor<D>, norm: impl Into<Norm>, dim: impl AsIndex) -> Tensor<D> {
    vector_norm_dims(x, norm, &[dim])
}

/// `sum(|x|^p)^(1 / p)` along several axes.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::lp_norm_dims};
/// let x = Tensor::<2>::from_data([[1.0, 2.0], [2.0, 4.0]], &Device::default());
/// assert_eq!(lp_norm_dims(x, 1.0, &[0, 1]).into_scalar::<f32>(), 9.0);
/// ```
///
/// # Panics
/// When an axis does not exist or is named twice.
#[track_caller]
pub fn lp_norm_dims<const D: usize, I: AsIndex>(x: Tensor<D>, p: f64, dims: &[I]) -> Tensor<D> {
    vector_norm_dims(x, p, dims)
}

/// `sum(|x|^p)^(1 / p)` along an axis.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::lp_norm};
/// let x = Tensor::<1>::from_data([1.0, 2.0, 2.0], &Device::default());
/// assert!((lp_norm(x, 3.0, 0).into_scalar::<f32>() - 17f32.cbrt()).abs() < 1e-5);
/// ```
///
/// # Panics
/// When the axis does not exist.
#[track_caller]
pub fn lp_norm<const D: usize>(x: Tensor<D>, p: f64, dim: impl AsIndex) -> Tensor<D> {
    vector_norm(x, p, dim)
}

/// The tensor divided by its norm along an axis, or by `eps` where the norm is smaller.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::vector_normalize};
/// let x = Tensor::<1>::from_data([3.0, 4.0], &Device::default());
/// assert_eq!(vector_normalize(x, 2, 0, 1e-9).try_to_vec_as::<f32>().unwrap(), [0.6, 0.8]);
/// ```
///
/// # Panics
/// When the axis does not exist.
#[track_caller]
pub fn vector_normalize<const D: usize, E: ElementConversion>(x: Tensor<D>, norm: impl Into<Norm>, dim: impl AsIndex, eps: E) -> Tensor<D> {
    let length = vector_norm(x.clone(), norm, dim).clamp_min(eps);
    x / length
}

/// The number of elements along several axes that are not zero.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::l0_norm_dims};
/// let x = Tensor::<2>::from_data([[1.0, 0.0], [2.0, 4.0]], &Device::default());
/// assert_eq!(l0_norm_dims(x, &[0, 1]).into_scalar::<f32>(), 3.0);
/// ```
///
/// # Panics
/// When an axis does not exist or is named twice.
#[track_caller]
pub fn l0_norm_dims<const D: usize, K, I: AsIndex>(x: Tensor<D, K>, dims: &[I]) -> Tensor<D, K>
where
    K: Numeric,
{
    Tensor::from_raw(of(&x.raw, Norm::L0, &distinct_axes("l0_norm", dims, x.raw.dims())))
}

/// The number of elements along an axis that are not zero.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::l0_norm};
/// let x = Tensor::<1>::from_data([1.0, 0.0, 2.0], &Device::default());
/// assert_eq!(l0_norm(x, 0).into_scalar::<f32>(), 2.0);
/// ```
///
/// # Panics
/// When the axis does not exist.
#[track_caller]
pub fn l0_norm<const D: usize, K>(x: Tensor<D, K>, dim: impl AsIndex) -> Tensor<D, K>
where
    K: Numeric,
{
    l0_norm_dims(x, &[dim])
}

/// The sum of the absolute values along several axes.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, linalg::l1_norm_dims};
/// let x = Tensor::<2, Int>::from_data([[1, -2], [3, 0]], &Device::default());
/// assert_eq!(l1_norm_dims(x, &[0, 1]).into_scalar::<i32>(), 6);
/// ```
///
/// # Panics
/// When an axis does not exist or is named twice.
#[track_caller]
pub fn l1_norm_dims<const D: usize, K, I: AsIndex>(x: Tensor<D, K>, dims: &[I]) -> Tensor<D, K>
where
    K: Numeric,
{
    Tensor::from_raw(of(&x.raw, Norm::L1, &distinct_axes("l1_norm", dims, x.raw.dims())))
}

/// The sum of the absolute values along an axis.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::l1_norm};
/// let x = Tensor::<1>::from_data([1.0, -2.0], &Device::default());
/// assert_eq!(l1_norm(x, 0).into_scalar::<f32>(), 3.0);
/// ```
///
/// # Panics
/// When the axis does not exist.
#[track_caller]
pub fn l1_norm<const D: usize, K>(x: Tensor<D, K>, dim: impl AsIndex) -> Tensor<D, K>
where
    K: Numeric,
{
    l1_norm_dims(x, &[dim])
}

/// The Euclidean length along several axes. Its gradient at zero is 0.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::l2_norm_dims};
/// let x = Tensor::<2>::from_data([[3e30, 4e30]], &Device::default());
/// assert_eq!(l2_norm_dims(x, &[0, 1]).into_scalar::<f32>(), 5e30);
/// ```
///
/// # Panics
/// When an axis does not exist or is named twice.
#[track_caller]
pub fn l2_norm_dims<const D: usize, I: AsIndex>(x: Tensor<D>, dims: &[I]) -> Tensor<D> {
    vector_norm_dims(x, Norm::L2, dims)
}

/// The Euclidean length along an axis. Its gradient at zero is 0.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::l2_norm};
/// let x = Tensor::<1>::from_data([3.0, 4.0], &Device::default());
/// assert_eq!(l2_norm(x, 0).into_scalar::<f32>(), 5.0);
/// ```
///
/// # Panics
/// When the axis does not exist.
#[track_caller]
pub fn l2_norm<const D: usize>(x: Tensor<D>, dim: impl AsIndex) -> Tensor<D> {
    vector_norm(x, Norm::L2, dim)
}

/// The largest absolute value along several axes; NaN if any is NaN.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::max_abs_norm_dims};
/// let x = Tensor::<2>::from_data([[3.0, -4.0]], &Device::default());
/// assert_eq!(max_abs_norm_dims(x, &[0, 1]).into_scalar::<f32>(), 4.0);
/// ```
///
/// # Panics
/// When an axis does not exist, is named twice or is empty.
#[track_caller]
pub fn max_abs_norm_dims<const D: usize, K, I: AsIndex>(x: Tensor<D, K>, dims: &[I]) -> Tensor<D, K>
where
    K: Ordered,
{
    x.max_abs_dims(dims)
}

/// The largest absolute value along an axis; NaN if any is NaN.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::max_abs_norm};
/// let x = Tensor::<1>::from_data([3.0, -4.0], &Device::default());
/// assert_eq!(max_abs_norm(x, 0).into_scalar::<f32>(), 4.0);
/// ```
///
/// # Panics
/// When the axis does not exist or is empty.
#[track_caller]
pub fn max_abs_norm<const D: usize, K>(x: Tensor<D, K>, dim: impl AsIndex) -> Tensor<D, K>
where
    K: Ordered,
{
    x.max_abs_dim(dim)
}

/// The smallest absolute value along several axes; NaN if any is NaN.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::min_abs_norm_dims};
/// let x = Tensor::<2>::from_data([[3.0, -4.0]], &Device::default());
/// assert_eq!(min_abs_norm_dims(x, &[0, 1]).into_scalar::<f32>(), 3.0);
/// ```
///
/// # Panics
/// When an axis does not exist, is named twice or is empty.
#[track_caller]
pub fn min_abs_norm_dims<const D: usize, K, I: AsIndex>(x: Tensor<D, K>, dims: &[I]) -> Tensor<D, K>
where
    K: Ordered,
{
    x.abs().min_dims(dims)
}

/// The smallest absolute value along an axis; NaN if any is NaN.
///
/// ```
/// use kiln_tensor::{Device, Tensor, linalg::min_abs_norm};
/// let x = Tensor::<1>::from_data([3.0, -4.0], &Device::default());
/// assert_eq!(min_abs_norm(x, 0).into_scalar::<f32>(), 3.0);
/// ```
///
/// # Panics
/// When the axis does not exist or is empty.
#[track_caller]
pub fn min_abs_norm<const D: usize, K>(x: Tensor<D, K>, dim: impl AsIndex) -> Tensor<D, K>
where
    K: Ordered,
{
    x.abs().min_dim(dim)
}

#[track_caller]
fn of(x: &RawTensor, norm: Norm, axes: &[usize]) -> RawTensor {
    if axes.is_empty() {
        return match norm {
            Norm::L0 => x.with_constant(Ne, 0.0).cast(x.dtype()),
            Norm::L1 | Norm::L2 | Norm::LInf | Norm::LNegInf | Norm::Lp(_) => x.abs(),
        };
    }
    let none = axes.iter().any(|axis| x.dims()[*axis] == 0);
    if none && norm.to_exponent() > 0.0 && norm != Norm::LInf {
        return x.sum(axes);
    }
    assert!(!none || norm == Norm::L0, "vector_norm: {norm:?} of no elements: shape {:?}, axes {axes:?}", x.dims());
    match norm {
        Norm::L0 => x.with_constant(Ne, 0.0).cast(x.dtype()).sum(axes),
        Norm::L1 => x.abs().sum(axes),
        Norm::L2 => x.norm2(axes),
        Norm::LInf => x.abs().max(axes),
        Norm::LNegInf => x.abs().min(axes),
        Norm::Lp(p) => {
            // The largest value is taken out, so that powers of large vectors do not overflow.
            let top = x.untracked().abs().max(axes);
            let usable = top.with_constant(kiln_ir::Elementwise::Gt, 0.0).and(&top.is_inf().not());
            let top = RawTensor::ones(&x.device().without_autodiff(), top.dims(), top.dtype()).mask_where(&usable, &top);
            let scaled = x.abs().div(&top).powf_scalar(p).sum(axes);
            if p >= 1.0 {
                // The slope of the root at 0 is infinite; that of the norm is 0.
                let zero = scaled.untracked().with_constant(Ge, f64::MIN_POSITIVE).not();
                let root = scaled.fill_constant(&zero, 1.0).powf_scalar(1.0 / p);
                return root.fill_constant(&zero, 0.0).mul(&top);
            }
            scaled.powf_scalar(1.0 / p).mul(&top)
        }
    }
}
