//! Reading and writing at indices and where masks hold.

use alloc::vec::Vec;

use kiln_ir::ScatterOp;

use super::Tensor;
use super::kind::{Basic, Bool, Int};
use super::options::IndexingUpdateOp;
use super::view::of_rank;
use crate::element::{ElementConversion, Scalar};
use crate::raw::{RawTensor, SliceRange};
use crate::shape::AsIndex;

impl From<IndexingUpdateOp> for ScatterOp {
    fn from(op: IndexingUpdateOp) -> Self {
        match op {
            IndexingUpdateOp::Assign => Self::Assign,
            IndexingUpdateOp::Add => Self::Add,
            IndexingUpdateOp::Mul => Self::Mul,
            IndexingUpdateOp::Min => Self::Min,
            IndexingUpdateOp::Max => Self::Max,
        }
    }
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// Whole slices of an axis, picked by indices.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4], [5, 6]], &device);
    /// let rows = Tensor::<1, Int>::from_data([2, 0, 2], &device);
    /// assert_eq!(x.select(0, rows).try_to_vec_as::<i32>().unwrap(), [5, 6, 1, 2, 5, 6]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist. An index out of range is an error of the device when the result is read.
    #[track_caller]
    pub fn select(self, dim: impl AsIndex, indices: Tensor<1, Int>) -> Self {
        Self::from_raw(self.raw.select(self.axis("select", dim), &indices.raw))
    }

    /// The tensor with whole slices of an axis, picked by indices, combined with values.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor, IndexingUpdateOp};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2, 3], &device);
    /// let at = Tensor::<1, Int>::from_data([2, 2], &device);
    /// let y = x.select_assign(0, at, Tensor::<1>::from_data([10, 20], &device), IndexingUpdateOp::Add);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [1, 2, 33]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or the values do not have the shape of the picked slices.
    #[track_caller]
    pub fn select_assign(self, dim: impl AsIndex, indices: Tensor<1, Int>, values: Tensor<D, K>, update: IndexingUpdateOp) -> Self {
        let axis = self.axis("select_assign", dim);
        Self::from_raw(self.raw.select_assign(axis, &indices.raw, &values.raw, update.into()))
    }

    /// Slices of an axis picked by indices of any rank: the axis is replaced by the axes of the indices.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([10, 20, 30], &device);
    /// let at = Tensor::<2, Int>::from_data([[0, 2], [1, 1]], &device);
    /// let y: Tensor<2> = x.take::<2, 2>(0, at);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [10, 30, 20, 20]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist, or `DO` is not `D - 1 + DI`.
    #[track_caller]
    pub fn take<const DI: usize, const DO: usize>(self, dim: impl AsIndex, indices: Tensor<DI, Int>) -> Tensor<DO, K> {
        let axis = self.axis("take", dim);
        assert!(
            DO + 1 == D + DI,
            "take: rank {D} and indices of rank {DI} do not give rank {DO}: tensor {:?}, indices {:?}",
            self.raw.dims(),
            indices.raw.dims()
        );
        Tensor::from_raw(take(&self.raw, axis, &indices.raw))
    }

    /// `value` where the mask holds, else this tensor's element: a choice, so that NaN and infinities of the other side do not show. All are
    /// broadcast.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2], &device);
    /// let mask = Tensor::<1, Bool>::from_data([true, false], &device);
    /// let y = x.mask_where(mask, Tensor::from_data([8, 9], &device));
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [8, 2]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast, or types or devices differ.
    #[track_caller]
    pub fn mask_where(self, mask: Tensor<D, Bool>, value: Self) -> Self {
        Self::from_raw(self.raw.mask_where(&mask.raw, &value.raw))
    }

    /// One value where the mask holds, else this tensor's element.
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([f32::NAN, 2.0], &device);
    /// let y = x.clone().mask_fill(x.is_nan(), 0);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [0, 2]);
    /// ```
    ///
    /// # Panics
    /// When the shapes do not broadcast.
    #[track_caller]
    pub fn mask_fill<E: ElementConversion>(self, mask: Tensor<D, Bool>, value: E) -> Self {
        let value = Scalar::new(value, &self.dtype());
        Self::from_raw(self.raw.mask_fill(&mask.raw, value))
    }

    /// The elements where the mask holds, in row-major order. Reads the mask, because the result's size depends on it.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 5], [7, 2]], &Device::default());
    /// let large = x.clone().greater_scalar(2);
    /// assert_eq!(x.mask_select(large).try_to_vec_as::<i32>().unwrap(), [5, 7]);
    /// ```
    ///
    /// # Panics
    /// When the mask does not broadcast to the tensor's shape, or the device fails.
    #[track_caller]
    pub fn mask_select(self, mask: Tensor<D, Bool>) -> Tensor<1, K> {
        let (dims, held) = (self.raw.dims(), mask.raw.dims());
        assert!(
            kiln_ir::dims::broadcast(dims, held).is_some_and(|both| both[..] == *dims),
            "mask_select: tensor {dims:?}, mask {held:?}: the mask does not broadcast"
        );
        let mask: Tensor<D, Bool> = mask.expand(self.shape());
        let at = super::boolean::true_positions(&mask.raw);
        let at: Vec<i64> = at.into_iter().map(|position| position as i64).collect();
        let device = self.raw.device().without_autodiff();
        let at = RawTensor::from_slice(&device, &[at.len()], kiln_ir::DType::I64, &at);
        Tensor::from_raw(self.raw.reshape(&[self.raw.numel()]).select(0, &at))
    }

    /// As [`mask_select`](Self::mask_select).
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, Tensor, read_sync};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// let mask = Tensor::<1, Bool>::from_data([false, true], &Device::default());
    /// assert_eq!(read_sync(x.mask_select_async(mask)).try_to_vec_as::<f32>().unwrap(), [2.0]);
    /// ```
    ///
    /// # Panics
    /// When the mask does not broadcast to the tensor's shape, or the device fails.
    pub async fn mask_select_async(self, mask: Tensor<D, Bool>) -> Tensor<1, K> {
        self.mask_select(mask)
    }

    /// Elements at indices along an axis: `out[.., i, ..] = self[.., indices[.., i, ..], ..]`. The other axes of the indices may be shorter.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
    /// let at = Tensor::<2, Int>::from_data([[1], [0]], &device);
    /// assert_eq!(x.gather(1, at).try_to_vec_as::<i32>().unwrap(), [2, 3]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or another axis of the indices is longer. An index out of range is an error of the device when the result is read.
    #[track_caller]
    pub fn gather(self, dim: impl AsIndex, indices: Tensor<D, Int>) -> Self {
        let axis = self.axis("gather", dim);
        let ranges = shared_part("gather", &self.raw, axis, &indices.raw);
        Self::from_raw(self.raw.slice(&ranges).gather(axis, &indices.raw))
    }

    /// The tensor with values combined at indices along an axis. The other axes of the indices may be shorter.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor, IndexingUpdateOp};
    /// let device = Device::default();
    /// let x = Tensor::<2>::zeros([2, 2], &device);
    /// let at = Tensor::<2, Int>::from_data([[1, 1], [0, 0]], &device);
    /// let y = x.scatter(1, at, Tensor::from_data([[1, 2], [3, 4]], &device), IndexingUpdateOp::Add);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [0, 3, 7, 0]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist, another axis of the indices is longer, or indices and values have different shapes.
    #[track_caller]
    pub fn scatter(self, dim: impl AsIndex, indices: Tensor<D, Int>, values: Self, update: IndexingUpdateOp) -> Self {
        let axis = self.axis("scatter", dim);
        let ranges = shared_part("scatter", &self.raw, axis, &indices.raw);
        let part = self.raw.slice(&ranges).scatter(axis, &indices.raw, &values.raw, update.into());
        Self::from_raw(if ranges.is_empty() { part } else { self.raw.slice_assign(&ranges, &part) })
    }

    /// The tensor with slices combined at coordinates: the last axis of `indices` holds positions of the first axes.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor, IndexingUpdateOp};
    /// let device = Device::default();
    /// let x = Tensor::<2>::zeros([2, 2], &device);
    /// let at = Tensor::<2, Int>::from_data([[0, 1], [1, 0]], &device);
    /// let y = x.scatter_nd(at, Tensor::<1>::from_data([5, 6], &device), IndexingUpdateOp::Assign);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [0, 5, 6, 0]);
    /// ```
    ///
    /// # Panics
    /// When there are more coordinates than axes, or the values do not have the shape of the picked slices.
    #[track_caller]
    pub fn scatter_nd<const M: usize, const DV: usize>(self, indices: Tensor<M, Int>, values: Tensor<DV, K>, update: IndexingUpdateOp) -> Self {
        Self::from_raw(self.raw.scatter_nd(&indices.raw, &values.raw, update.into()))
    }

    /// Slices at coordinates: the last axis of `indices` holds positions of the first axes.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &device);
    /// let at = Tensor::<2, Int>::from_data([[1, 0], [0, 1]], &device);
    /// let y: Tensor<1> = x.gather_nd(at);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [3, 2]);
    /// ```
    ///
    /// # Panics
    /// When there are more coordinates than axes, or the result is not of rank `DV`.
    #[track_caller]
    pub fn gather_nd<const M: usize, const DV: usize>(self, indices: Tensor<M, Int>) -> Tensor<DV, K> {
        of_rank("gather_nd", self.raw.gather_nd(&indices.raw), &self.raw)
    }
}

/// The part of the tensor that indices along an axis reach: on the other axes, as many positions as the indices have.
#[track_caller]
fn shared_part(op: &str, x: &RawTensor, axis: usize, indices: &RawTensor) -> Vec<SliceRange> {
    let mut ranges = Vec::new();
    for (other, (&size, &reached)) in x.dims().iter().zip(indices.dims()).enumerate() {
        if other != axis && reached != size {
            assert!(reached < size, "{op}: axis {other} of the indices is too long: tensor {:?}, indices {:?}", x.dims(), indices.dims());
            ranges.push(SliceRange::new(other, 0, reached));
        }
    }
    ranges
}

#[track_caller]
fn take(x: &RawTensor, axis: usize, indices: &RawTensor) -> RawTensor {
    let mut dims = x.dims()[..axis].to_vec();
    dims.extend_from_slice(indices.dims());
    dims.extend_from_slice(&x.dims()[axis + 1..]);
    x.select(axis, &indices.reshape(&[indices.numel()])).reshape(&dims)
}
