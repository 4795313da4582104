//! Comparisons, limits, and tests of special values.

use super::Tensor;
use super::kind::{Basic, Bool, Float, Ordered};
use crate::element::{Element, ElementConversion, Scalar};
use crate::raw::RawTensor;

/// The relative tolerance of [`Tensor::is_close`] when none is given.
pub const DEFAULT_RTOL: f64 = 1e-5;
/// The absolute tolerance of [`Tensor::is_close`] when none is given.
pub const DEFAULT_ATOL: f64 = 1e-8;

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// Whether elements are equal, broadcast. Infinities of one sign are equal; NaN equals nothing.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2], &device);
    /// let y = Tensor::<1>::from_data([1, 3], &device);
    /// assert_eq!(x.equal(y).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn equal(self, other: Self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.eq(&other.raw))
    }

    /// Whether elements differ, broadcast. NaN differs from everything.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2], &device);
    /// let y = Tensor::<1>::from_data([1, 3], &device);
    /// assert_eq!(x.not_equal(y).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn not_equal(self, other: Self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.ne(&other.raw))
    }

    /// Whether each element equals a scalar.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.equal_scalar(2).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    #[track_caller]
    pub fn equal_scalar<E: Element>(self, other: E) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.eq_scalar(Scalar::new(other, &self.dtype())))
    }

    /// Whether each element differs from a scalar.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.not_equal_scalar(2).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    #[track_caller]
    pub fn not_equal_scalar<E: Element>(self, other: E) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.ne_scalar(Scalar::new(other, &self.dtype())))
    }

    /// Whether each element equals a scalar: the same as [`equal_scalar`](Self::equal_scalar).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.equal_elem(2).int().try_to_vec_as::<i32>().unwrap(), [0, 1]);
    /// ```
    #[track_caller]
    pub fn equal_elem<E: Element>(self, other: E) -> Tensor<D, Bool> {
        self.equal_scalar(other)
    }

    /// Whether each element differs from a scalar: the same as [`not_equal_scalar`](Self::not_equal_scalar).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.not_equal_elem(2).int().try_to_vec_as::<i32>().unwrap(), [1, 0]);
    /// ```
    #[track_caller]
    pub fn not_equal_elem<E: Element>(self, other: E) -> Tensor<D, Bool> {
        self.not_equal_scalar(other)
    }
}

impl<const D: usize, K: Ordered> Tensor<D, K> {
    /// Whether elements are greater than the other's, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2], &device);
    /// let y = Tensor::<1>::from_data([1, 1], &device);
    /// assert_eq!(x.greater(y).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn greater(self, other: Self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.gt(&other.raw))
    }

    /// Whether elements are greater than the other's or equal, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([0, 1], &device);
    /// let y = Tensor::<1>::from_data([1, 1], &device);
    /// assert_eq!(x.greater_equal(y).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn greater_equal(self, other: Self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.ge(&other.raw))
    }

    /// Whether elements are less than the other's, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([0, 1], &device);
    /// let y = Tensor::<1>::from_data([1, 1], &device);
    /// assert_eq!(x.lower(y).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn lower(self, other: Self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.lt(&other.raw))
    }

    /// Whether elements are less than the other's or equal, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2], &device);
    /// let y = Tensor::<1>::from_data([1, 1], &device);
    /// assert_eq!(x.lower_equal(y).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn lower_equal(self, other: Self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.le(&other.raw))
    }

    /// Whether each element is greater than a scalar.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.greater_scalar(1).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    #[track_caller]
    pub fn greater_scalar<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.gt_scalar(self.scalar(other)))
    }

    /// Whether each element is greater than a scalar or equal to it.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.greater_equal_scalar(2).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    #[track_caller]
    pub fn greater_equal_scalar<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.ge_scalar(self.scalar(other)))
    }

    /// Whether each element is less than a scalar.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.lower_scalar(2).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    #[track_caller]
    pub fn lower_scalar<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.lt_scalar(self.scalar(other)))
    }

    /// Whether each element is less than a scalar or equal to it.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.lower_equal_scalar(1).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    #[track_caller]
    pub fn lower_equal_scalar<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.le_scalar(self.scalar(other)))
    }

    /// Whether each element is greater than a scalar: the same as [`greater_scalar`](Self::greater_scalar).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.greater_elem(1).int().try_to_vec_as::<i32>().unwrap(), [0, 1]);
    /// ```
    #[track_caller]
    pub fn greater_elem<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        self.greater_scalar(other)
    }

    /// Whether each element is at least a scalar: the same as [`greater_equal_scalar`](Self::greater_equal_scalar).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.greater_equal_elem(1).int().try_to_vec_as::<i32>().unwrap(), [1, 1]);
    /// ```
    #[track_caller]
    pub fn greater_equal_elem<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        self.greater_equal_scalar(other)
    }

    /// Whether each element is less than a scalar: the same as [`lower_scalar`](Self::lower_scalar).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.lower_elem(2).int().try_to_vec_as::<i32>().unwrap(), [1, 0]);
    /// ```
    #[track_caller]
    pub fn lower_elem<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        self.lower_scalar(other)
    }

    /// Whether each element is at most a scalar: the same as [`lower_equal_scalar`](Self::lower_equal_scalar).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.lower_equal_elem(1).int().try_to_vec_as::<i32>().unwrap(), [1, 0]);
    /// ```
    #[track_caller]
    pub fn lower_equal_elem<E: ElementConversion>(self, other: E) -> Tensor<D, Bool> {
        self.lower_equal_scalar(other)
    }

    /// The larger of two elements, broadcast; NaN if either is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 5], &device);
    /// let y = Tensor::<1>::from_data([2, 3], &device);
    /// assert_eq!(x.max_pair(y).try_to_vec_as::<i32>().unwrap(), [2, 5]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn max_pair(self, other: Self) -> Self {
        Self::from_raw(self.raw.max_pair(&other.raw))
    }

    /// The smaller of two elements, broadcast; NaN if either is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 5], &device);
    /// let y = Tensor::<1>::from_data([2, 3], &device);
    /// assert_eq!(x.min_pair(y).try_to_vec_as::<i32>().unwrap(), [1, 3]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn min_pair(self, other: Self) -> Self {
        Self::from_raw(self.raw.min_pair(&other.raw))
    }

    /// Elements limited to `min..=max`; NaN stays NaN. When `min` exceeds `max`, the result is `max`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-2, 0, 9], &Device::default());
    /// assert_eq!(x.clamp(-1, 3).try_to_vec_as::<i32>().unwrap(), [-1, 0, 3]);
    /// ```
    #[track_caller]
    pub fn clamp<E: ElementConversion>(self, min: E, max: E) -> Self {
        let (min, max) = (self.scalar(min), self.scalar(max));
        Self::from_raw(self.raw.clamp(Some(min), Some(max)))
    }

    /// Elements of at least `min`; NaN stays NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-2, 9], &Device::default());
    /// assert_eq!(x.clamp_min(0).try_to_vec_as::<i32>().unwrap(), [0, 9]);
    /// ```
    #[track_caller]
    pub fn clamp_min<E: ElementConversion>(self, min: E) -> Self {
        Self::from_raw(self.raw.clamp(Some(self.scalar(min)), None))
    }

    /// Elements of at most `max`; NaN stays NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-2, 9], &Device::default());
    /// assert_eq!(x.clamp_max(0).try_to_vec_as::<i32>().unwrap(), [-2, 0]);
    /// ```
    #[track_caller]
    pub fn clamp_max<E: ElementConversion>(self, max: E) -> Self {
        Self::from_raw(self.raw.clamp(None, Some(self.scalar(max))))
    }
}

impl<const D: usize> Tensor<D, Float> {
    /// Whether elements are equal or differ by at most `atol + rtol * |other|`. Infinities of one sign are close; NaN is close to nothing.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1.0, 2.0, f32::INFINITY], &device);
    /// let y = Tensor::<1>::from_data([1.000001, 2.1, f32::INFINITY], &device);
    /// assert_eq!(x.is_close(y, None, None).try_to_vec_as::<bool>().unwrap(), [true, false, true]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn is_close(self, other: Self, rtol: Option<f64>, atol: Option<f64>) -> Tensor<D, Bool> {
        Tensor::from_raw(is_close(&self.raw, &other.raw, rtol.unwrap_or(DEFAULT_RTOL), atol.unwrap_or(DEFAULT_ATOL)))
    }

    /// Whether all elements are close; see [`is_close`](Self::is_close). Reads the result.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert!(x.clone().all_close(x.clone() + 1e-6, None, None));
    /// assert!(!x.clone().all_close(x + 0.1, None, None));
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, types or devices differ, or the device fails.
    #[track_caller]
    pub fn all_close(self, other: Self, rtol: Option<f64>, atol: Option<f64>) -> bool {
        self.is_close(other, rtol, atol).all().into_scalar()
    }

    /// Whether each element is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, f32::NAN], &Device::default());
    /// assert_eq!(x.is_nan().try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    #[track_caller]
    pub fn is_nan(self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.is_nan())
    }

    /// Whether any element is NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, f32::NAN], &Device::default());
    /// assert!(x.contains_nan().into_scalar::<bool>());
    /// ```
    #[track_caller]
    pub fn contains_nan(self) -> Tensor<1, Bool> {
        self.is_nan().any()
    }

    /// Whether each element is infinite.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, f32::NEG_INFINITY], &Device::default());
    /// assert_eq!(x.is_inf().try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    #[track_caller]
    pub fn is_inf(self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.is_inf())
    }

    /// Whether each element is neither infinite nor NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, f32::NAN, f32::INFINITY], &Device::default());
    /// assert_eq!(x.is_finite().try_to_vec_as::<bool>().unwrap(), [true, false, false]);
    /// ```
    #[track_caller]
    pub fn is_finite(self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.abs().with_constant(kiln_ir::Elementwise::Lt, f64::INFINITY))
    }
}

#[track_caller]
fn is_close(x: &RawTensor, y: &RawTensor, rtol: f64, atol: f64) -> RawTensor {
    let allowed = y.abs().mul_scalar(rtol).add_scalar(atol);
    // An infinite difference is not close even when the tolerance is infinite too.
    let difference = x.sub(y).abs();
    let finite = difference.with_constant(kiln_ir::Elementwise::Lt, f64::INFINITY);
    difference.le(&allowed).and(&finite).or(&x.eq(y))
}
