//! Reductions, and running reductions. A reduced axis keeps size 1; a reduction of everything has shape `[1]`.

use alloc::vec::Vec;

use super::Tensor;
use super::kind::{Basic, Bool, Float, Int, Numeric, Ordered};
use super::view::distinct_axes;
use crate::raw::RawTensor;
use crate::shape::AsIndex;

fn all_axes(raw: &RawTensor) -> Vec<usize> {
    (0..raw.rank()).collect()
}

#[track_caller]
pub(super) fn dot(x: &RawTensor, y: &RawTensor) -> RawTensor {
    assert!(x.dims() == y.dims(), "dot: sizes differ: lhs {:?}, rhs {:?}", x.dims(), y.dims());
    x.mul(y).sum(&[0])
}

/// The positions of extrema, in the device's integer type.
pub(super) fn indices<const D: usize>(raw: &RawTensor) -> Tensor<D, Int> {
    let dtype = crate::DType::from(raw.device().settings().int_dtype);
    Tensor::from_raw(raw.cast(dtype.into()))
}

impl<const D: usize, K: Numeric> Tensor<D, K> {
    /// Sum of all elements, 0 of none. Half floats accumulate in `f32`; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.sum().into_scalar::<f32>(), 10.0);
    /// ```
    #[track_caller]
    pub fn sum(self) -> Tensor<1, K> {
        Tensor::from_raw(self.raw.sum_all().reshape(&[1]))
    }

    /// Sum along an axis, which keeps size 1; 0 of nothing.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.sum_dim(1).try_to_vec_as::<i32>().unwrap(), [3, 7]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn sum_dim<I: AsIndex>(self, dim: I) -> Self {
        self.sum_dims(&[dim])
    }

    /// Sum along several axes, which keep size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<3>::ones([2, 3, 4], &Device::default());
    /// let y = x.sum_dims(&[0, -1]);
    /// assert_eq!(y.dims(), [1, 3, 1]);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [8, 8, 8]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist or is named twice.
    #[track_caller]
    pub fn sum_dims<I: AsIndex>(self, dims: &[I]) -> Self {
        Self::from_raw(self.raw.sum(&distinct_axes("sum", dims, self.raw.dims())))
    }

    /// Sum along several axes, which are removed.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<3>::ones([2, 3, 4], &Device::default());
    /// assert_eq!(x.sum_dims_squeeze::<1, _>(&[0, 2]).dims(), [3]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist or is named twice, or the result is not of rank `D2`.
    #[track_caller]
    pub fn sum_dims_squeeze<const D2: usize, I: AsIndex>(self, dims: &[I]) -> Tensor<D2, K> {
        let axes = distinct_axes("sum", dims, self.raw.dims());
        let kept = (0..D).filter(|axis| !axes.contains(axis)).map(|axis| self.raw.dims()[axis]).collect();
        Self::from_raw(self.raw.sum(&axes)).view_as("sum", kept)
    }

    /// Mean of all elements; NaN of none. Integers truncate.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.mean().into_scalar::<f32>(), 2.5);
    /// ```
    #[track_caller]
    pub fn mean(self) -> Tensor<1, K> {
        Tensor::from_raw(self.raw.mean_all().reshape(&[1]))
    }

    /// Mean along an axis, which keeps size 1; NaN of nothing.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.mean_dim(0).try_to_vec_as::<f32>().unwrap(), [2.0, 3.0]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn mean_dim<I: AsIndex>(self, dim: I) -> Self {
        self.mean_dims(&[dim])
    }

    /// Mean along several axes, which keep size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.mean_dims(&[0, 1]).try_to_vec_as::<f32>().unwrap(), [2.5]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist or is named twice.
    #[track_caller]
    pub fn mean_dims<I: AsIndex>(self, dims: &[I]) -> Self {
        Self::from_raw(self.raw.mean(&distinct_axes("mean", dims, self.raw.dims())))
    }

    /// Product of all elements, 1 of none; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([2, 3, 4], &Device::default());
    /// assert_eq!(x.prod().into_scalar::<f32>(), 24.0);
    /// ```
    #[track_caller]
    pub fn prod(self) -> Tensor<1, K> {
        Tensor::from_raw(self.raw.prod(&all_axes(&self.raw)).reshape(&[1]))
    }

    /// Product along an axis, which keeps size 1; 1 of nothing.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.prod_dim(1).try_to_vec_as::<i32>().unwrap(), [2, 12]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn prod_dim<I: AsIndex>(self, dim: I) -> Self {
        self.prod_dims(&[dim])
    }

    /// Product along several axes, which keep size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.prod_dims(&[0, 1]).try_to_vec_as::<i32>().unwrap(), [24]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist or is named twice.
    #[track_caller]
    pub fn prod_dims<I: AsIndex>(self, dims: &[I]) -> Self {
        Self::from_raw(self.raw.prod(&distinct_axes("prod", dims, self.raw.dims())))
    }

    /// Running sum along an axis; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2, 3], &Device::default());
    /// assert_eq!(x.cumsum(0).try_to_vec_as::<i32>().unwrap(), [1, 3, 6]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn cumsum<I: AsIndex>(self, dim: I) -> Self {
        Self::from_raw(self.raw.cumsum(self.axis("cumsum", dim)))
    }

    /// Running product along an axis; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2, 3], &Device::default());
    /// assert_eq!(x.cumprod(0).try_to_vec_as::<i32>().unwrap(), [1, 2, 6]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn cumprod<I: AsIndex>(self, dim: I) -> Self {
        Self::from_raw(self.raw.cumprod(self.axis("cumprod", dim)))
    }
}

impl<const D: usize, K: Ordered> Tensor<D, K> {
    /// Largest element; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// assert_eq!(x.max().into_scalar::<f32>(), 4.0);
    /// ```
    ///
    /// # Panics
    /// When there are no elements.
    #[track_caller]
    pub fn max(self) -> Tensor<1, K> {
        Tensor::from_raw(self.raw.max(&all_axes(&self.raw)).reshape(&[1]))
    }

    /// Maximum along an axis, which keeps size 1; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// assert_eq!(x.max_dim(1).try_to_vec_as::<i32>().unwrap(), [2, 4]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn max_dim<I: AsIndex>(self, dim: I) -> Self {
        self.max_dims(&[dim])
    }

    /// Maximum along several axes, which keep size 1; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// assert_eq!(x.max_dims(&[0, 1]).try_to_vec_as::<i32>().unwrap(), [4]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist, is named twice or is empty.
    #[track_caller]
    pub fn max_dims<I: AsIndex>(self, dims: &[I]) -> Self {
        Self::from_raw(self.raw.max(&distinct_axes("max", dims, self.raw.dims())))
    }

    /// Maximum along an axis, and its position: the first of several, the first NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// let (values, indices) = x.max_dim_with_indices(1);
    /// assert_eq!(values.try_to_vec_as::<i32>().unwrap(), [2, 4]);
    /// assert_eq!(indices.try_to_vec_as::<i32>().unwrap(), [1, 0]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn max_dim_with_indices<I: AsIndex>(self, dim: I) -> (Self, Tensor<D, Int>) {
        let axis = self.axis("max_dim", dim);
        (Self::from_raw(self.raw.max(&[axis])), indices(&self.raw.argmax(axis)))
    }

    /// Position of the maximum along an axis: the first of several, the first NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// assert_eq!(x.argmax(1).try_to_vec_as::<i32>().unwrap(), [1, 0]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn argmax(self, dim: impl AsIndex) -> Tensor<D, Int> {
        indices(&self.raw.argmax(self.axis("argmax", dim)))
    }

    /// Smallest element; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// assert_eq!(x.min().into_scalar::<f32>(), 1.0);
    /// ```
    ///
    /// # Panics
    /// When there are no elements.
    #[track_caller]
    pub fn min(self) -> Tensor<1, K> {
        Tensor::from_raw(self.raw.min(&all_axes(&self.raw)).reshape(&[1]))
    }

    /// Minimum along an axis, which keeps size 1; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// assert_eq!(x.min_dim(0).try_to_vec_as::<i32>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn min_dim<I: AsIndex>(self, dim: I) -> Self {
        self.min_dims(&[dim])
    }

    /// Minimum along several axes, which keep size 1; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [4, 3]], &Device::default());
    /// assert_eq!(x.min_dims(&[0, 1]).try_to_vec_as::<i32>().unwrap(), [1]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist, is named twice or is empty.
    #[track_caller]
    pub fn min_dims<I: AsIndex>(self, dims: &[I]) -> Self {
        Self::from_raw(self.raw.min(&distinct_axes("min", dims, self.raw.dims())))
    }

    /// Minimum along an axis, and its position: the first of several, the first NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, 1, 2], &Device::default());
    /// let (value, index) = x.min_dim_with_indices(0);
    /// assert_eq!((value.into_scalar::<i32>(), index.into_scalar::<i32>()), (1, 1));
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn min_dim_with_indices<I: AsIndex>(self, dim: I) -> (Self, Tensor<D, Int>) {
        let axis = self.axis("min_dim", dim);
        (Self::from_raw(self.raw.min(&[axis])), indices(&self.raw.argmin(axis)))
    }

    /// Position of the minimum along an axis: the first of several, the first NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, 1, 2], &Device::default());
    /// assert_eq!(x.argmin(0).into_scalar::<i32>(), 1);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn argmin(self, dim: impl AsIndex) -> Tensor<D, Int> {
        indices(&self.raw.argmin(self.axis("argmin", dim)))
    }

    /// Largest absolute value; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, -4, 2], &Device::default());
    /// assert_eq!(x.max_abs().into_scalar::<f32>(), 4.0);
    /// ```
    ///
    /// # Panics
    /// When there are no elements.
    #[track_caller]
    pub fn max_abs(self) -> Tensor<1, K> {
        self.abs().max()
    }

    /// Largest absolute value along an axis, which keeps size 1; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[3, -4], [1, 2]], &Device::default());
    /// assert_eq!(x.max_abs_dim(1).try_to_vec_as::<i32>().unwrap(), [4, 2]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn max_abs_dim<I: AsIndex>(self, dim: I) -> Self {
        self.abs().max_dim(dim)
    }

    /// Largest absolute value along several axes, which keep size 1. Without axes, the absolute values.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[3, -4], [1, 2]], &Device::default());
    /// assert_eq!(x.max_abs_dims(&[0, 1]).try_to_vec_as::<i32>().unwrap(), [4]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist, is named twice or is empty.
    #[track_caller]
    pub fn max_abs_dims<I: AsIndex>(self, dims: &[I]) -> Self {
        self.abs().max_dims(dims)
    }

    /// Running maximum along an axis; NaN from the first NaN on.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 3, 2], &Device::default());
    /// assert_eq!(x.cummax(0).try_to_vec_as::<i32>().unwrap(), [1, 3, 3]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn cummax<I: AsIndex>(self, dim: I) -> Self {
        Self::from_raw(self.raw.cummax(self.axis("cummax", dim)))
    }

    /// Running minimum along an axis; NaN from the first NaN on.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([3, 1, 2], &Device::default());
    /// assert_eq!(x.cummin(0).try_to_vec_as::<i32>().unwrap(), [3, 1, 1]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn cummin<I: AsIndex>(self, dim: I) -> Self {
        Self::from_raw(self.raw.cummin(self.axis("cummin", dim)))
    }
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// Whether any element is true or not zero; false of none.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([0, 2], &Device::default());
    /// assert!(x.any().into_scalar::<bool>());
    /// ```
    #[track_caller]
    pub fn any(self) -> Tensor<1, Bool> {
        Tensor::from_raw(self.raw.any(&all_axes(&self.raw)).reshape(&[1]))
    }

    /// Whether any element along an axis is true or not zero; the axis keeps size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[0, 2], [0, 0]], &Device::default());
    /// assert_eq!(x.any_dim(1).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn any_dim(self, dim: impl AsIndex) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.any(&[self.axis("any_dim", dim)]))
    }

    /// Whether all elements are true or not zero; true of none.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([0, 2], &Device::default());
    /// assert!(!x.all().into_scalar::<bool>());
    /// ```
    #[track_caller]
    pub fn all(self) -> Tensor<1, Bool> {
        Tensor::from_raw(self.raw.all(&all_axes(&self.raw)).reshape(&[1]))
    }

    /// Whether all elements along an axis are true or not zero; the axis keeps size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [0, 3]], &Device::default());
    /// assert_eq!(x.all_dim(1).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn all_dim(self, dim: impl AsIndex) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.all(&[self.axis("all_dim", dim)]))
    }
}

impl<const D: usize> Tensor<D, Float> {
    /// Variance along an axis with denominator `n - 1`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2, 3, 4], &Device::default());
    /// assert!((x.var(0).into_scalar::<f32>() - 5.0 / 3.0).abs() < 1e-6);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn var<I: AsIndex>(self, dim: I) -> Self {
        self.var_mean(dim).0
    }

    /// Variance along an axis with denominator `n`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2, 3, 4], &Device::default());
    /// assert_eq!(x.var_bias(0).into_scalar::<f32>(), 1.25);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn var_bias<I: AsIndex>(self, dim: I) -> Self {
        self.var_mean_bias(dim).0
    }

    /// Variance along an axis with denominator `n - 1`, and mean.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 3], &Device::default());
    /// let (var, mean) = x.var_mean(0);
    /// assert_eq!((var.into_scalar::<f32>(), mean.into_scalar::<f32>()), (2.0, 2.0));
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn var_mean<I: AsIndex>(self, dim: I) -> (Self, Self) {
        let (var, mean) = self.raw.var_mean(&[self.axis("var_mean", dim)], 1);
        (Self::from_raw(var), Self::from_raw(mean))
    }

    /// Variance along an axis with denominator `n`, and mean.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 3], &Device::default());
    /// let (var, mean) = x.var_mean_bias(0);
    /// assert_eq!((var.into_scalar::<f32>(), mean.into_scalar::<f32>()), (1.0, 2.0));
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn var_mean_bias<I: AsIndex>(self, dim: I) -> (Self, Self) {
        let (var, mean) = self.raw.var_mean(&[self.axis("var_mean", dim)], 0);
        (Self::from_raw(var), Self::from_raw(mean))
    }

    /// Median along an axis, the lower of the two middle elements; NaN if any is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([5, 1, 4, 2], &Device::default());
    /// assert_eq!(x.median(0).into_scalar::<f32>(), 2.0);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn median<I: AsIndex>(self, dim: I) -> Self {
        self.median_with_indices(dim).0
    }

    /// Median along an axis, and its position; see [`median`](Self::median).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([5, 1, 4], &Device::default());
    /// let (value, index) = x.median_with_indices(0);
    /// assert_eq!((value.into_scalar::<f32>(), index.into_scalar::<i32>()), (4.0, 2));
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is empty.
    #[track_caller]
    pub fn median_with_indices<I: AsIndex>(self, dim: I) -> (Self, Tensor<D, Int>) {
        let axis = self.axis("median", dim);
        let (values, positions) = median(&self.raw, axis);
        (Self::from_raw(values), indices(&positions))
    }

    /// Covariance matrix of the columns along an axis, with denominator `n - correction_factor`: the axis and the first one are exchanged, and
    /// the last two axes hold observations and variables.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1.0, 2.0, 3.0], [1.0, 0.0, -1.0]], &Device::default());
    /// assert_eq!(x.cov(1, 1).try_to_vec_as::<f32>().unwrap(), [1.0, -1.0, -1.0, 1.0]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or the rank is below 2.
    #[track_caller]
    pub fn cov<I: AsIndex>(self, dim: I, correction_factor: usize) -> Tensor<D, Float> {
        let axis = self.axis("cov", dim);
        Self::from_raw(cov(&self.raw, axis, correction_factor))
    }
}

#[track_caller]
fn median(x: &RawTensor, axis: usize) -> (RawTensor, RawTensor) {
    let n = x.dims()[axis];
    assert!(n > 0, "median: axis {axis} is empty: shape {:?}", x.dims());
    let (values, positions) = x.sort(axis, false);
    let middle = |t: &RawTensor| t.narrow(axis, (n - 1) / 2, 1);
    // NaN is sorted last, so one look tells whether there is any.
    let last = values.narrow(axis, n - 1, 1);
    let nan = last.is_nan();
    (middle(&values).mask_where(&nan, &last), middle(&positions).mask_where(&nan, &x.argmax(axis)))
}

#[track_caller]
fn cov(x: &RawTensor, axis: usize, correction: usize) -> RawTensor {
    assert!(x.rank() >= 2, "cov: needs at least two axes: shape {:?}", x.dims());
    let n = x.dims()[axis] as f64;
    let centered = x.sub(&x.mean(&[axis])).swap_dims(axis, 0);
    centered.transpose().matmul(&centered).div_scalar(n - correction as f64)
}
