//! What only float tensors have: rounding, powers, cross products, sampling of classes.

use super::Tensor;
use super::kind::{Float, Int, Kind};
use crate::device::Device;
use crate::dtype::DType;
use crate::element::ElementConversion;
use crate::raw::{RawTensor, SliceRange};
use crate::shape::AsIndex;

impl<const D: usize> Tensor<D, Float> {
    /// Remainder of the division that truncates, with the sign of the dividend, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([-5.0, 5.0], &device);
    /// let y = Tensor::<1>::from_data([3.0, -3.0], &device);
    /// assert_eq!(x.fmod(y).try_to_vec_as::<f32>().unwrap(), [-2.0, 2.0]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn fmod(self, other: Self) -> Self {
        Self::from_raw(self.raw.fmod(&other.raw))
    }

    /// Remainder of the division by a scalar that truncates, with the sign of the dividend.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-5.0, 5.0], &Device::default());
    /// assert_eq!(x.fmod_scalar(3.0).try_to_vec_as::<f32>().unwrap(), [-2.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn fmod_scalar(self, scalar: f32) -> Self {
        Self::from_raw(self.raw.fmod_scalar(scalar))
    }

    /// The integer part of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-1.7, 1.7], &Device::default());
    /// assert_eq!(x.trunc().try_to_vec_as::<f32>().unwrap(), [-1.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn trunc(self) -> Self {
        Self::from_raw(self.raw.trunc())
    }

    /// The nearest integer of each element; of two, the even one.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([0.5, 1.5, -1.2], &Device::default());
    /// assert_eq!(x.round().try_to_vec_as::<f32>().unwrap(), [0.0, 2.0, -1.0]);
    /// ```
    #[track_caller]
    pub fn round(self) -> Self {
        Self::from_raw(self.raw.round())
    }

    /// The largest integer not above each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-1.2, 1.7], &Device::default());
    /// assert_eq!(x.floor().try_to_vec_as::<f32>().unwrap(), [-2.0, 1.0]);
    /// ```
    #[track_caller]
    pub fn floor(self) -> Self {
        Self::from_raw(self.raw.floor())
    }

    /// The smallest integer not below each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-1.2, 1.7], &Device::default());
    /// assert_eq!(x.ceil().try_to_vec_as::<f32>().unwrap(), [-1.0, 2.0]);
    /// ```
    #[track_caller]
    pub fn ceil(self) -> Self {
        Self::from_raw(self.raw.ceil())
    }

    /// The error function of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData, Tolerance};
    /// let x = Tensor::<1>::from_data([0.0, 1.0], &Device::default());
    /// let expected = TensorData::from([0.0, 0.8427008]);
    /// x.erf().into_data().assert_approx_eq::<f32>(&expected, Tolerance::rel_abs(1e-6, 1e-6));
    /// ```
    #[track_caller]
    pub fn erf(self) -> Self {
        Self::from_raw(self.raw.erf())
    }

    /// `sqrt(x² + y²)` without overflow, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([3.0, 5.0], &device);
    /// let y = Tensor::<1>::from_data([4.0, 12.0], &device);
    /// assert_eq!(x.hypot(y).try_to_vec_as::<f32>().unwrap(), [5.0, 13.0]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn hypot(self, other: Self) -> Self {
        Self::from_raw(self.raw.hypot(&other.raw))
    }

    /// `1 / x` of each element.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([2.0, -4.0], &Device::default());
    /// assert_eq!(x.recip().try_to_vec_as::<f32>().unwrap(), [0.5, -0.25]);
    /// ```
    #[track_caller]
    pub fn recip(self) -> Self {
        Self::from_raw(self.raw.recip())
    }

    /// Degrees as radians.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([180.0], &Device::default());
    /// assert!((x.deg2rad().into_scalar::<f32>() - std::f32::consts::PI).abs() < 1e-6);
    /// ```
    #[track_caller]
    pub fn deg2rad(self) -> Self {
        Self::from_raw(self.raw.scale_by(core::f64::consts::PI / 180.0))
    }

    /// Radians as degrees.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([std::f32::consts::PI], &Device::default());
    /// assert!((x.rad2deg().into_scalar::<f32>() - 180.0).abs() < 1e-4);
    /// ```
    #[track_caller]
    pub fn rad2deg(self) -> Self {
        Self::from_raw(self.raw.scale_by(180.0 / core::f64::consts::PI))
    }

    /// The integer part of each element, in the device's integer type; too large ones saturate, NaN becomes 0.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([-1.7, f32::NAN], &Device::default());
    /// assert_eq!(x.int().try_to_vec_as::<i64>().unwrap(), [-1, 0]);
    /// ```
    #[track_caller]
    pub fn int(self) -> Tensor<D, Int> {
        let dtype: DType = Kind::Int.default_dtype(&self.device().settings());
        Tensor::from_raw(self.raw.cast_to(dtype))
    }

    /// Each element to the power at its place in `other`, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([4.0, 2.0], &device);
    /// let y = Tensor::<1>::from_data([0.5, 3.0], &device);
    /// assert_eq!(x.powf(y).try_to_vec_as::<f32>().unwrap(), [2.0, 8.0]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn powf(self, other: Self) -> Self {
        Self::from_raw(self.raw.pow(&other.raw))
    }

    /// Each element to a power.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([4.0, 9.0], &Device::default());
    /// assert_eq!(x.powf_scalar(0.5).try_to_vec_as::<f32>().unwrap(), [2.0, 3.0]);
    /// ```
    #[track_caller]
    pub fn powf_scalar<E: ElementConversion>(self, other: E) -> Self {
        Self::from_raw(self.raw.powf_scalar(other.elem()))
    }

    /// The cross product along an axis of size 3; the other axes are broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 0, 0], &device);
    /// let y = Tensor::<1>::from_data([0, 1, 0], &device);
    /// assert_eq!(x.cross(y, 0).try_to_vec_as::<i32>().unwrap(), [0, 0, 1]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is not of size 3, or the shapes do not broadcast.
    #[track_caller]
    pub fn cross<Dim: AsIndex>(self, other: Tensor<D, Float>, dim: Dim) -> Tensor<D, Float> {
        Self::from_raw(cross(&self.raw, &other.raw, self.axis("cross", dim)))
    }

    /// Draws classes: the last axis holds weights, which need not add up to 1, and becomes `num_samples` classes drawn by them.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let weights = Tensor::<2>::from_data([[0.0, 1.0], [5.0, 0.0]], &Device::default());
    /// assert_eq!(weights.categorical(3).try_to_vec_as::<i32>().unwrap(), [1, 1, 1, 0, 0, 0]);
    /// ```
    ///
    /// # Panics
    /// When the last axis is empty.
    #[track_caller]
    pub fn categorical(self, num_samples: usize) -> Tensor<D, Int> {
        super::reduction::indices(&categorical(&self.raw, num_samples))
    }
}

#[track_caller]
fn cross(x: &RawTensor, y: &RawTensor, axis: usize) -> RawTensor {
    assert!(x.dims()[axis] == 3 && y.dims()[axis] == 3, "cross: axis {axis} is not of size 3: lhs {:?}, rhs {:?}", x.dims(), y.dims());
    let part = |t: &RawTensor, i: usize| t.slice(&[SliceRange::new(axis, i % 3, 1)]);
    let component = |i: usize| part(x, i + 1).mul(&part(y, i + 2)).sub(&part(x, i + 2).mul(&part(y, i + 1)));
    RawTensor::cat(&[component(0), component(1), component(2)], axis)
}

#[track_caller]
fn categorical(weights: &RawTensor, samples: usize) -> RawTensor {
    let axis = weights.rank() - 1;
    let classes = weights.dims()[axis];
    assert!(classes > 0, "categorical: there are no classes: shape {:?}", weights.dims());
    let weights = weights.cast(if weights.dtype() == kiln_ir::DType::F64 { kiln_ir::DType::F64 } else { kiln_ir::DType::F32 });
    let device: Device = weights.device().without_autodiff();
    let bounds = weights.cumsum(axis);
    let total = bounds.narrow(axis, classes - 1, 1);
    let mut dims = weights.dims().to_vec();
    dims[axis] = samples;
    let draws = RawTensor::random_uniform(&device, &dims, weights.dtype(), 0.0, 1.0).mul(&total);
    // The class is the number of bounds that the draw has reached; rounding may reach the last one too, which is no class.
    let reached = bounds.unsqueeze(axis).le(&draws.unsqueeze(axis + 1)).cast(RawTensor::INDEX);
    let mut flat = dims.clone();
    flat[axis] = samples;
    // A draw of the total itself falls to the last class with weight: the first position of the total.
    let last = bounds.ge(&total).cast(kiln_ir::DType::I8).argmax(axis);
    reached.sum(&[axis + 1]).reshape(&flat).min_pair(&last)
}
