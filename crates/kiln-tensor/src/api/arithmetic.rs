//! Arithmetic of floats and integers.

use super::Tensor;
use super::kind::{Bool, Numeric};
use super::options::{IntoPadding, PadMode};
use crate::element::{ElementConversion, Scalar};

impl<const D: usize, K: Numeric> Tensor<D, K> {
    pub(super) fn scalar<E: ElementConversion>(&self, value: E) -> Scalar {
        Scalar::new(value, &self.dtype())
    }

    /// Sum, broadcast; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
    /// let row = Tensor::<2>::from_data([[10, 20]], &device);
    /// assert_eq!(x.add(row).try_to_vec_as::<i32>().unwrap(), [11, 22, 13, 24]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn add(self, other: Self) -> Self {
        Self::from_raw(self.raw.add(&other.raw))
    }

    /// Sum with a scalar; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.add_scalar(0.5).try_to_vec_as::<f32>().unwrap(), [1.5, 2.5]);
    /// ```
    #[track_caller]
    pub fn add_scalar<E: ElementConversion>(self, other: E) -> Self {
        Self::from_raw(self.raw.add_scalar(self.scalar(other)))
    }

    /// Difference, broadcast; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([5, 7], &device);
    /// let y = Tensor::<1>::from_data([1, 2], &device);
    /// assert_eq!(x.sub(y).try_to_vec_as::<i32>().unwrap(), [4, 5]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn sub(self, other: Self) -> Self {
        Self::from_raw(self.raw.sub(&other.raw))
    }

    /// Difference with a scalar; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.sub_scalar(1).try_to_vec_as::<i32>().unwrap(), [0, 1]);
    /// ```
    #[track_caller]
    pub fn sub_scalar<E: ElementConversion>(self, other: E) -> Self {
        Self::from_raw(self.raw.sub_scalar(self.scalar(other)))
    }

    /// Quotient, broadcast; integers truncate towards zero.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([7, -7], &device);
    /// let y = Tensor::<1, Int>::from_data([2, 2], &device);
    /// assert_eq!(x.div(y).try_to_vec_as::<i32>().unwrap(), [3, -3]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn div(self, other: Self) -> Self {
        Self::from_raw(self.raw.div(&other.raw))
    }

    /// Quotient by a scalar; integers truncate towards zero.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.div_scalar(4).try_to_vec_as::<f32>().unwrap(), [0.25, 0.5]);
    /// ```
    #[track_caller]
    pub fn div_scalar<E: ElementConversion>(self, other: E) -> Self {
        Self::from_raw(self.raw.div_scalar(self.scalar(other)))
    }

    /// Remainder of the floor division, with the sign of the divisor, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([-3, 3], &device);
    /// let y = Tensor::<1, Int>::from_data([2, -2], &device);
    /// assert_eq!(x.remainder(y).try_to_vec_as::<i32>().unwrap(), [1, -1]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn remainder(self, other: Self) -> Self {
        Self::from_raw(self.raw.rem(&other.raw))
    }

    /// Remainder of the floor division by a scalar, with its sign.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-1.5, 3.5], &Device::default());
    /// assert_eq!(x.remainder_scalar(2).try_to_vec_as::<f32>().unwrap(), [0.5, 1.5]);
    /// ```
    #[track_caller]
    pub fn remainder_scalar<E: ElementConversion>(self, other: E) -> Self {
        Self::from_raw(self.raw.rem_scalar(self.scalar(other)))
    }

    /// Product of elements, broadcast; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([2, 3], &device);
    /// let y = Tensor::<1>::from_data([4, 5], &device);
    /// assert_eq!(x.mul(y).try_to_vec_as::<i32>().unwrap(), [8, 15]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn mul(self, other: Self) -> Self {
        Self::from_raw(self.raw.mul(&other.raw))
    }

    /// Product with a scalar; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2], &Device::default());
    /// assert_eq!(x.mul_scalar(1.5).try_to_vec_as::<f32>().unwrap(), [1.5, 3.0]);
    /// ```
    #[track_caller]
    pub fn mul_scalar<E: ElementConversion>(self, other: E) -> Self {
        Self::from_raw(self.raw.mul_scalar(self.scalar(other)))
    }

    /// Each element with the other sign; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, -2], &Device::default());
    /// assert_eq!(x.neg().try_to_vec_as::<i32>().unwrap(), [-1, 2]);
    /// ```
    #[allow(clippy::should_implement_trait)]
    #[track_caller]
    pub fn neg(self) -> Self {
        Self::from_raw(self.raw.neg())
    }

    /// -1, 0 or 1 by the sign of each element; NaN stays NaN.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-2.5, 0.0, 9.0], &Device::default());
    /// assert_eq!(x.sign().try_to_vec_as::<f32>().unwrap(), [-1.0, 0.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn sign(self) -> Self {
        Self::from_raw(self.raw.sign())
    }

    /// Absolute value of each element; of the smallest integer, itself.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-2.5, 1.0], &Device::default());
    /// assert_eq!(x.abs().try_to_vec_as::<f32>().unwrap(), [2.5, 1.0]);
    /// ```
    #[track_caller]
    pub fn abs(self) -> Self {
        Self::from_raw(self.raw.abs())
    }

    /// Each element to the whole power at its place in `other`, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([2, 3], &device);
    /// let n = Tensor::<1, Int>::from_data([10, 2], &device);
    /// assert_eq!(x.powi(n).try_to_vec_as::<i32>().unwrap(), [1024, 9]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn powi(self, other: Self) -> Self {
        Self::from_raw(self.raw.powi(&other.raw))
    }

    /// Each element to a whole power; the exponent is truncated to an integer.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([2.0, -3.0], &Device::default());
    /// assert_eq!(x.powi_scalar(3).try_to_vec_as::<f32>().unwrap(), [8.0, -27.0]);
    /// ```
    #[track_caller]
    pub fn powi_scalar<E: ElementConversion>(self, other: E) -> Self {
        Self::from_raw(self.raw.powi_scalar(other.elem()))
    }

    /// Whether each element is not zero.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([0.0, 0.5], &Device::default());
    /// assert_eq!(x.bool().try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    #[track_caller]
    pub fn bool(self) -> Tensor<D, Bool> {
        Tensor::from_raw(self.raw.cast(kiln_ir::DType::Bool))
    }

    /// Matrix product over the last two axes, `[.., m, k] x [.., k, n] -> [.., m, n]`; the others are broadcast. Tensors of rank 1 have their
    /// dot product.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
    /// let y = Tensor::<2>::from_data([[1], [10]], &device);
    /// assert_eq!(x.matmul(y).try_to_vec_as::<i32>().unwrap(), [21, 43]);
    /// ```
    ///
    /// # Panics
    /// When inner sizes differ, the other axes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn matmul(self, other: Self) -> Self {
        if D == 1 {
            let dot = super::reduction::dot(&self.raw, &other.raw);
            return Self::from_raw(dot);
        }
        Self::from_raw(self.raw.matmul(&other.raw))
    }

    /// Zeros below a diagonal of the last two axes: 0 is the main diagonal, positive ones lie above it.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::ones([2, 2], &Device::default());
    /// assert_eq!(x.triu(0).try_to_vec_as::<i32>().unwrap(), [1, 1, 0, 1]);
    /// ```
    ///
    /// # Panics
    /// When the rank is below 2.
    #[track_caller]
    pub fn triu(self, diagonal: i64) -> Self {
        Self::from_raw(self.raw.triu(diagonal))
    }

    /// Zeros above a diagonal of the last two axes: 0 is the main diagonal, positive ones lie above it.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::ones([2, 2], &Device::default());
    /// assert_eq!(x.tril(-1).try_to_vec_as::<i32>().unwrap(), [0, 0, 1, 0]);
    /// ```
    ///
    /// # Panics
    /// When the rank is below 2.
    #[track_caller]
    pub fn tril(self, diagonal: i64) -> Self {
        Self::from_raw(self.raw.tril(diagonal))
    }

    /// A border added to the last axes. See [`IntoPadding`] for the amounts and [`PadMode`] for what fills it; a number pads with itself.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, ops::PadMode};
    /// let x = Tensor::<1>::from_data([1, 2, 3], &Device::default());
    /// let y = x.clone().pad([(1, 2)], 0);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [0, 1, 2, 3, 0, 0]);
    /// let z = x.pad([(2, 0)], PadMode::Reflect);
    /// assert_eq!(z.try_to_vec_as::<i32>().unwrap(), [3, 2, 1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When more axes are named than there are, or a mode needs more elements than an axis has.
    #[track_caller]
    pub fn pad(self, padding: impl IntoPadding<D>, mode: impl Into<PadMode>) -> Self {
        let padding = padding.into_padding();
        Self::from_raw(match mode.into() {
            PadMode::Constant(value) => self.raw.pad_constant(&padding, self.scalar(value)),
            PadMode::Reflect => self.raw.pad_reflect(&padding),
            PadMode::Edge => self.raw.pad_edge(&padding),
        })
    }
}

impl<K: Numeric> Tensor<1, K> {
    /// The dot product, of shape `[1]`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2], &device);
    /// let y = Tensor::<1>::from_data([3, 4], &device);
    /// assert_eq!(x.dot(y).into_scalar::<f32>(), 11.0);
    /// ```
    ///
    /// # Panics
    /// When the sizes, types or devices differ.
    #[track_caller]
    pub fn dot(self, other: Self) -> Self {
        Self::from_raw(super::reduction::dot(&self.raw, &other.raw))
    }
}
