//! Boolean tensors: logic, masks of matrices, and where they are true.

use alloc::vec::Vec;

use super::Tensor;
use super::kind::{Bool, Float, Int, Kind};
use crate::device::Device;
use crate::dtype::DType;
use crate::raw::RawTensor;
use crate::shape::Shape;

impl<const D: usize> Tensor<D, Bool> {
    /// Ones and zeros of the device's integer type.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let x = Tensor::<1, Bool>::from_data([true, false], &Device::default());
    /// assert_eq!(x.int().try_to_vec_as::<i64>().unwrap(), [1, 0]);
    /// ```
    #[track_caller]
    pub fn int(self) -> Tensor<D, Int> {
        let dtype: DType = Kind::Int.default_dtype(&self.device().settings());
        Tensor::from_raw(self.raw.cast_to(dtype))
    }

    /// Ones and zeros of the device's float type.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let x = Tensor::<1, Bool>::from_data([true, false], &Device::default());
    /// assert_eq!(x.float().try_to_vec_as::<f32>().unwrap(), [1.0, 0.0]);
    /// ```
    #[track_caller]
    pub fn float(self) -> Tensor<D, Float> {
        let dtype: DType = Kind::Float.default_dtype(&self.device().settings());
        Tensor::from_raw(self.raw.cast_to(dtype))
    }

    /// Where the tensor is false.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let x = Tensor::<1, Bool>::from_data([true, false], &Device::default());
    /// assert_eq!((!x).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    #[track_caller]
    pub fn bool_not(self) -> Self {
        Self::from_raw(self.raw.not())
    }

    /// Where both are true, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Bool>::from_data([true, true], &device);
    /// let y = Tensor::<1, Bool>::from_data([true, false], &device);
    /// assert_eq!((x & y).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast or devices differ.
    #[track_caller]
    pub fn bool_and(self, rhs: Tensor<D, Bool>) -> Tensor<D, Bool> {
        Self::from_raw(self.raw.and(&rhs.raw))
    }

    /// Where at least one is true, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Bool>::from_data([true, false], &device);
    /// let y = Tensor::<1, Bool>::from_data([false, false], &device);
    /// assert_eq!((x | y).try_to_vec_as::<bool>().unwrap(), [true, false]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast or devices differ.
    #[track_caller]
    pub fn bool_or(self, rhs: Tensor<D, Bool>) -> Tensor<D, Bool> {
        Self::from_raw(self.raw.or(&rhs.raw))
    }

    /// Where exactly one is true, broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1, Bool>::from_data([true, true], &device);
    /// let y = Tensor::<1, Bool>::from_data([true, false], &device);
    /// assert_eq!((x ^ y).try_to_vec_as::<bool>().unwrap(), [false, true]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast or devices differ.
    #[track_caller]
    pub fn bool_xor(self, rhs: Tensor<D, Bool>) -> Tensor<D, Bool> {
        Self::from_raw(self.raw.xor(&rhs.raw))
    }

    /// The positions of the true elements: one tensor for each axis. Reads the tensor, because the size depends on it.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let x = Tensor::<2, Bool>::from_data([[true, false], [false, true]], &Device::default());
    /// let axes = x.nonzero();
    /// assert_eq!(axes[1].clone().try_to_vec_as::<i32>().unwrap(), [0, 1]);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    #[track_caller]
    pub fn nonzero(self) -> Vec<Tensor<1, Int>> {
        let at = coordinates(&self.raw);
        (0..D).map(|axis| Tensor::from_data(column(&at, axis, D).as_slice(), &self.device())).collect()
    }

    /// As [`nonzero`](Self::nonzero).
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor, read_sync};
    /// let x = Tensor::<1, Bool>::from_data([false, true], &Device::default());
    /// assert_eq!(read_sync(x.nonzero_async())[0].try_to_vec_as::<i32>().unwrap(), [1]);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    pub async fn nonzero_async(self) -> Vec<Tensor<1, Int>> {
        self.nonzero()
    }

    /// The positions of the true elements: one row for each, one column for each axis. Reads the tensor, because the size depends on it.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let x = Tensor::<2, Bool>::from_data([[true, false], [false, true]], &Device::default());
    /// assert_eq!(x.argwhere().try_to_vec_as::<i32>().unwrap(), [0, 0, 1, 1]);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    #[track_caller]
    pub fn argwhere(self) -> Tensor<2, Int> {
        let at = coordinates(&self.raw);
        let rows = at.len() / D.max(1);
        Tensor::from_data(crate::TensorData::new(at, [rows, D]), &self.device())
    }

    /// As [`argwhere`](Self::argwhere).
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor, read_sync};
    /// let x = Tensor::<1, Bool>::from_data([false, true], &Device::default());
    /// assert_eq!(read_sync(x.argwhere_async()).dims(), [1, 1]);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    pub async fn argwhere_async(self) -> Tensor<2, Int> {
        self.argwhere()
    }

    /// The mask of what `triu` sets to zero: true below the diagonal `column - row = offset` of the last two axes.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let mask = Tensor::<2, Bool>::triu_mask([2, 2], 0, &Device::default());
    /// assert_eq!(mask.try_to_vec_as::<bool>().unwrap(), [false, false, true, false]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or `D` is below 2.
    #[track_caller]
    pub fn triu_mask<S: Into<Shape>>(shape: S, offset: i64, device: &Device) -> Self {
        Self::from_raw(RawTensor::below_diagonal(device, &shape.into(), offset))
    }

    /// The mask of what `tril` sets to zero: true above the diagonal `column - row = offset` of the last two axes.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let mask = Tensor::<2, Bool>::tril_mask([2, 2], 0, &Device::default());
    /// assert_eq!(mask.try_to_vec_as::<bool>().unwrap(), [false, true, false, false]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or `D` is below 2.
    #[track_caller]
    pub fn tril_mask<S: Into<Shape>>(shape: S, offset: i64, device: &Device) -> Self {
        Self::from_raw(RawTensor::above_diagonal(device, &shape.into(), offset))
    }

    /// The mask of what lies off the diagonal `column - row = offset` of the last two axes.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let mask = Tensor::<2, Bool>::diag_mask([2, 2], 0, &Device::default());
    /// assert_eq!(mask.try_to_vec_as::<bool>().unwrap(), [false, true, true, false]);
    /// ```
    ///
    /// # Panics
    /// When the shape is not of rank `D`, or `D` is below 2.
    #[track_caller]
    pub fn diag_mask<S: Into<Shape>>(shape: S, offset: i64, device: &Device) -> Self {
        Self::from_raw(RawTensor::off_diagonal(device, &shape.into(), offset))
    }
}

/// The row-major positions of the true elements.
#[track_caller]
pub(super) fn true_positions(mask: &RawTensor) -> Vec<usize> {
    match mask.to_bytes() {
        Ok(bytes) => bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(position, _)| position).collect(),
        Err(error) => panic!("nonzero: a mask of shape {:?} cannot be read: {error}", mask.dims()),
    }
}

/// The coordinates of the true elements, one after the other.
#[track_caller]
fn coordinates(mask: &RawTensor) -> Vec<i64> {
    let dims = mask.dims();
    let mut at = Vec::new();
    for position in true_positions(mask) {
        let row = at.len();
        at.resize(row + dims.len(), 0);
        let mut rest = position;
        for axis in (0..dims.len()).rev() {
            at[row + axis] = (rest % dims[axis]) as i64;
            rest /= dims[axis];
        }
    }
    at
}

fn column(rows: &[i64], axis: usize, width: usize) -> Vec<i64> {
    rows.iter().skip(axis).step_by(width).copied().collect()
}
