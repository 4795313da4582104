//! What only integer tensors have: bits, and grids of coordinates.

use super::Tensor;
use super::kind::{Float, Int, Kind};
use crate::device::Device;
use crate::dtype::DType;
use crate::element::ElementConversion;
use crate::raw::RawTensor;
use crate::shape::Shape;

impl<const D: usize> Tensor<D, Int> {
    /// The elements in the device's float type.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([1, -2], &Device::default());
    /// assert_eq!(x.float().try_to_vec_as::<f32>().unwrap(), [1.0, -2.0]);
    /// ```
    #[track_caller]
    pub fn float(self) -> Tensor<D, Float> {
        let dtype: DType = Kind::Float.default_dtype(&self.device().settings());
        Tensor::from_raw(self.raw.cast_to(dtype))
    }

    /// The coordinates of every element of a shape; the last axis holds them.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x: Tensor<3, Int> = Tensor::<2, Int>::cartesian_grid([2, 2], &Device::default());
    /// assert_eq!(x.try_to_vec_as::<i32>().unwrap(), [0, 0, 0, 1, 1, 0, 1, 1]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or `D2` is not `D + 1`.
    #[track_caller]
    pub fn cartesian_grid<S: Into<Shape>, const D2: usize>(shape: S, device: &Device) -> Tensor<D2, Int> {
        cartesian_grid::<S, D, D2>(shape, device)
    }

    /// Each element times itself; integers wrap.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([2, -3], &Device::default());
    /// assert_eq!(x.square().try_to_vec_as::<i32>().unwrap(), [4, 9]);
    /// ```
    #[track_caller]
    pub fn square(self) -> Self {
        Self::from_raw(self.raw.square())
    }

    /// Bits that both have, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([0b1100], &device);
    /// let y = Tensor::<1, Int>::from_data([0b1010], &device);
    /// assert_eq!(x.bitwise_and(y).into_scalar::<i32>(), 0b1000);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn bitwise_and(self, other: Self) -> Self {
        Self::from_raw(self.raw.and(&other.raw))
    }

    /// Bits that at least one has, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([0b1100], &device);
    /// let y = Tensor::<1, Int>::from_data([0b1010], &device);
    /// assert_eq!(x.bitwise_or(y).into_scalar::<i32>(), 0b1110);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn bitwise_or(self, other: Self) -> Self {
        Self::from_raw(self.raw.or(&other.raw))
    }

    /// Bits that exactly one has, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([0b1100], &device);
    /// let y = Tensor::<1, Int>::from_data([0b1010], &device);
    /// assert_eq!(x.bitwise_xor(y).into_scalar::<i32>(), 0b0110);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn bitwise_xor(self, other: Self) -> Self {
        Self::from_raw(self.raw.xor(&other.raw))
    }

    /// Every bit changed.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([5], &Device::default());
    /// assert_eq!(x.bitwise_not().into_scalar::<i32>(), -6);
    /// ```
    #[track_caller]
    pub fn bitwise_not(self) -> Self {
        Self::from_raw(self.raw.not())
    }

    /// Bits that both each element and a scalar have.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([0b1100], &Device::default());
    /// assert_eq!(x.bitwise_and_scalar(0b1010).into_scalar::<i32>(), 0b1000);
    /// ```
    #[track_caller]
    pub fn bitwise_and_scalar(self, other: impl ElementConversion) -> Self {
        Self::from_raw(self.raw.and_scalar(self.scalar(other)))
    }

    /// Bits that each element or a scalar has.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([0b1100], &Device::default());
    /// assert_eq!(x.bitwise_or_scalar(0b1010).into_scalar::<i32>(), 0b1110);
    /// ```
    #[track_caller]
    pub fn bitwise_or_scalar(self, other: impl ElementConversion) -> Self {
        Self::from_raw(self.raw.or_scalar(self.scalar(other)))
    }

    /// Bits that exactly one of each element and a scalar has.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([0b1100], &Device::default());
    /// assert_eq!(x.bitwise_xor_scalar(0b1010).into_scalar::<i32>(), 0b0110);
    /// ```
    #[track_caller]
    pub fn bitwise_xor_scalar(self, other: impl ElementConversion) -> Self {
        Self::from_raw(self.raw.xor_scalar(self.scalar(other)))
    }

    /// Bits moved to the left by the other's elements, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([3], &device);
    /// let n = Tensor::<1, Int>::from_data([2], &device);
    /// assert_eq!(x.bitwise_left_shift(n).into_scalar::<i32>(), 12);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn bitwise_left_shift(self, other: Self) -> Self {
        Self::from_raw(self.raw.shl(&other.raw))
    }

    /// Bits moved to the right by the other's elements, broadcast; the sign of signed integers stays.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Int>::from_data([-8], &device);
    /// let n = Tensor::<1, Int>::from_data([1], &device);
    /// assert_eq!(x.bitwise_right_shift(n).into_scalar::<i32>(), -4);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn bitwise_right_shift(self, other: Self) -> Self {
        Self::from_raw(self.raw.shr(&other.raw))
    }

    /// Bits moved to the left.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([3], &Device::default());
    /// assert_eq!(x.bitwise_left_shift_scalar(2).into_scalar::<i32>(), 12);
    /// ```
    #[track_caller]
    pub fn bitwise_left_shift_scalar(self, other: impl ElementConversion) -> Self {
        Self::from_raw(self.raw.shl_scalar(self.scalar(other)))
    }

    /// Bits moved to the right; the sign of signed integers stays.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::from_data([-8], &Device::default());
    /// assert_eq!(x.bitwise_right_shift_scalar(1).into_scalar::<i32>(), -4);
    /// ```
    #[track_caller]
    pub fn bitwise_right_shift_scalar(self, other: impl ElementConversion) -> Self {
        Self::from_raw(self.raw.shr_scalar(self.scalar(other)))
    }
}

/// The coordinates of every element of a shape of rank `D`; the last axis holds them.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, cartesian_grid};
/// let x: Tensor<3, Int> = cartesian_grid::<_, 2, 3>([1, 3], &Device::default());
/// assert_eq!(x.try_to_vec_as::<i32>().unwrap(), [0, 0, 0, 1, 0, 2]);
/// ```
///
/// # Panics
/// When the shape is not of rank `D`, or `D2` is not `D + 1`.
#[track_caller]
pub fn cartesian_grid<S: Into<Shape>, const D: usize, const D2: usize>(shape: S, device: &Device) -> Tensor<D2, Int> {
    let shape = shape.into();
    assert!(shape.rank() == D && D2 == D + 1 && D > 0, "cartesian_grid: a grid of shape {shape} has rank {}, not {D2}", shape.rank() + 1);
    let dtype: DType = Kind::Int.default_dtype(&device.locked_settings());
    let axes: alloc::vec::Vec<_> = (0..D).map(|axis| RawTensor::iota(device, &shape, dtype.into(), axis).unsqueeze(D)).collect();
    Tensor::from_raw(RawTensor::cat(&axes, D))
}
