//! Parts of tensors: slices, splits, and joining them again.

use alloc::vec::Vec;
use core::iter::FusedIterator;
use core::ops::Range;

use super::Tensor;
use super::kind::Basic;
use super::view::raws;
use crate::element::{Element, Scalar};
use crate::raw::{RawTensor, SliceRange};
use crate::shape::{AsIndex, IndexWrap, Shape, axis_of};
use crate::slice::{Slice, SliceArg};

/// Slices resolved for the axes of a shape; whole axes are left out.
#[track_caller]
fn resolve(op: &str, slices: &[Slice], shape: &Shape) -> Vec<SliceRange> {
    let mut ranges = Vec::with_capacity(slices.len());
    for (axis, (slice, &size)) in slices.iter().zip(shape.iter()).enumerate() {
        if let Err(why) = slice.check(size) {
            panic!("{op}: {why} in slice {slice} of axis {axis}: shape {shape}");
        }
        let (range, step) = slice.to_range_and_step(size);
        let len = slice.output_size(size);
        let start = if step < 0 { range.end.saturating_sub(1) } else { range.start };
        if (start, len, step) != (0, size, 1) {
            ranges.push(SliceRange { axis, start, len, step });
        }
    }
    ranges
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// A part of the tensor: ranges, positions and steps for the first axes. See [`s!`](crate::s). No axis is removed.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor, s};
    /// let x = Tensor::<1, Int>::arange(0..12, &Device::default()).reshape([3, 4]);
    /// assert_eq!(x.clone().slice([0..2, 1..3]).try_to_vec_as::<i32>().unwrap(), [1, 2, 5, 6]);
    /// assert_eq!(x.clone().slice(s![-1, ..; 2]).try_to_vec_as::<i32>().unwrap(), [8, 10]);
    /// assert_eq!(x.slice(s![0, ..; -1]).try_to_vec_as::<i32>().unwrap(), [3, 2, 1, 0]);
    /// ```
    ///
    /// # Panics
    /// When a slice reaches outside of its axis, or there are more slices than axes.
    #[track_caller]
    pub fn slice<S>(self, slices: S) -> Self
    where
        S: SliceArg,
    {
        let shape = self.shape();
        let ranges = resolve("slice", &slices.into_slices(&shape), &shape);
        Self::from_raw(self.raw.slice(&ranges))
    }

    /// The tensor with a part replaced by `values`, which are broadcast to the part's shape.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, s};
    /// let device = Device::default();
    /// let x = Tensor::<2>::zeros([2, 3], &device);
    /// let y = x.slice_assign(s![.., 0..2], Tensor::ones([2, 2], &device));
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [1, 1, 0, 1, 1, 0]);
    /// ```
    ///
    /// # Panics
    /// When a slice reaches outside of its axis, or the values do not broadcast to the part.
    #[track_caller]
    pub fn slice_assign<S>(self, slices: S, values: Self) -> Self
    where
        S: SliceArg,
    {
        let shape = self.shape();
        let ranges = resolve("slice_assign", &slices.into_slices(&shape), &shape);
        Self::from_raw(self.raw.slice_assign(&ranges, &values.raw))
    }

    /// The tensor with one value in a part.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::zeros([4], &Device::default());
    /// assert_eq!(x.slice_fill([1..3], 5).try_to_vec_as::<i32>().unwrap(), [0, 5, 5, 0]);
    /// ```
    ///
    /// # Panics
    /// When a slice reaches outside of its axis.
    #[track_caller]
    pub fn slice_fill<S, E: Element>(self, slices: S, value: E) -> Self
    where
        S: SliceArg,
    {
        let shape = self.shape();
        let ranges = resolve("slice_fill", &slices.into_slices(&shape), &shape);
        Self::from_raw(fill_impl(&self.raw, &ranges, Scalar::new(value, &self.dtype())))
    }

    /// A part along one axis.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, s};
    /// let x = Tensor::<2>::from_data([[1, 2, 3], [4, 5, 6]], &Device::default());
    /// assert_eq!(x.slice_dim(-1, s![..; 2]).try_to_vec_as::<i32>().unwrap(), [1, 3, 4, 6]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or the slice reaches outside of it.
    #[track_caller]
    pub fn slice_dim<S>(self, dim: impl AsIndex, slice: S) -> Self
    where
        S: Into<Slice>,
    {
        let mut slices = [Slice::full(); D];
        let axis = self.axis("slice_dim", dim);
        slices[axis] = slice.into();
        if let Err(why) = slices[axis].check(self.raw.dims()[axis]) {
            panic!("slice_dim: {why} in slice {} of axis {axis}: shape {:?}", slices[axis], self.raw.dims());
        }
        self.slice(slices)
    }

    /// The part at one position of an axis, without that axis.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2, 3], [4, 5, 6]], &Device::default());
    /// let column = x.select_dim::<1>(1, -1);
    /// assert_eq!(column.try_to_vec_as::<i32>().unwrap(), [3, 6]);
    /// ```
    ///
    /// # Panics
    /// When the axis or the position does not exist, or `D2` is not `D - 1`.
    #[track_caller]
    pub fn select_dim<const D2: usize>(self, dim: impl AsIndex, index: impl AsIndex) -> Tensor<D2, K> {
        let axis = self.axis("select_dim", dim);
        let dims = self.raw.dims();
        let Ok(index) = IndexWrap::index().try_wrap(index, dims[axis]) else {
            panic!("select_dim: position {index:?} is out of range on axis {axis}: shape {dims:?}");
        };
        assert!(D2 + 1 == D, "select_dim: rank {D} becomes {}, not {D2}: shape {dims:?}", D - 1);
        self.narrow(axis, index, 1).squeeze_dim(axis)
    }

    /// `length` neighbouring positions of an axis from `start` on.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2, 3, 4], &Device::default());
    /// assert_eq!(x.narrow(0, 1, 2).try_to_vec_as::<i32>().unwrap(), [2, 3]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is too short.
    #[track_caller]
    pub fn narrow(self, dim: impl AsIndex, start: usize, length: usize) -> Self {
        let axis = self.axis("narrow", dim);
        let size = self.raw.dims()[axis];
        let inside = start.checked_add(length).is_some_and(|end| end <= size);
        assert!(inside, "narrow: {length} positions from {start} on are not within axis {axis}: shape {:?}", self.raw.dims());
        Self::from_raw(self.raw.narrow(axis, start, length))
    }

    /// At most `chunks` parts of equal size along an axis; the last may be smaller.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::arange(0..5, &Device::default());
    /// let sizes: Vec<_> = x.chunk(2, 0).iter().map(|part| part.dims()[0]).collect();
    /// assert_eq!(sizes, [3, 2]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or `chunks` is 0.
    #[track_caller]
    pub fn chunk(self, chunks: usize, dim: impl AsIndex) -> Vec<Self> {
        assert!(chunks > 0, "chunk: the number of parts must not be 0: shape {:?}", self.raw.dims());
        let axis = self.axis("chunk", dim);
        let size = self.raw.dims()[axis];
        self.split(size.div_ceil(chunks).max(1), axis)
    }

    /// Parts of `split_size` positions along an axis; the last may be smaller.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::arange(0..5, &Device::default());
    /// let parts = x.split(2, 0);
    /// assert_eq!(parts.len(), 3);
    /// assert_eq!(parts[2].clone().try_to_vec_as::<i32>().unwrap(), [4]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist, or `split_size` is 0 and the axis is not empty.
    #[track_caller]
    pub fn split(self, split_size: usize, dim: impl AsIndex) -> Vec<Self> {
        let axis = self.axis("split", dim);
        let size = self.raw.dims()[axis];
        assert!(split_size > 0 || size == 0, "split: the size of a part must not be 0: shape {:?}", self.raw.dims());
        let parts = if size == 0 { 0 } else { size.div_ceil(split_size) };
        let raw = self.raw;
        let part = |i: usize| raw.narrow(axis, i * split_size, split_size.min(size - i * split_size));
        (0..parts).map(|i| Self::from_raw(part(i))).collect()
    }

    /// Parts of the given sizes along an axis.
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::arange(0..5, &Device::default());
    /// let parts = x.split_with_sizes(vec![1, 4], 0);
    /// assert_eq!(parts[1].clone().try_to_vec_as::<i32>().unwrap(), [1, 2, 3, 4]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or the sizes do not add up to its size.
    #[track_caller]
    pub fn split_with_sizes(self, split_sizes: Vec<usize>, dim: impl AsIndex) -> Vec<Self> {
        let axis = self.axis("split_with_sizes", dim);
        let size = self.raw.dims()[axis];
        let total = split_sizes.iter().try_fold(0usize, |total, size| total.checked_add(*size));
        assert!(total == Some(size), "split_with_sizes: the sizes {split_sizes:?} do not add up to axis {axis}: shape {:?}", self.raw.dims());
        let mut start = 0;
        let mut parts = Vec::with_capacity(split_sizes.len());
        for length in split_sizes {
            parts.push(Self::from_raw(self.raw.narrow(axis, start, length)));
            start += length;
        }
        parts
    }

    /// Iterates over the positions of an axis; the items keep the axis with size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// let rows: Vec<_> = x.iter_dim(0).collect();
    /// assert_eq!(rows[1].dims(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn iter_dim(self, dim: impl AsIndex) -> DimIter<D, K> {
        let axis = self.axis("iter_dim", dim);
        DimIter { positions: 0..self.raw.dims()[axis], axis, tensor: self }
    }

    /// Tensors joined along an axis. Other axes must agree.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<2>::from_data([[1, 2]], &device);
    /// let y = Tensor::<2>::from_data([[3]], &device);
    /// assert_eq!(Tensor::cat(vec![x, y], 1).try_to_vec_as::<i32>().unwrap(), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When no tensor is given, the axis does not exist, or another axis differs.
    #[track_caller]
    pub fn cat(tensors: Vec<Self>, dim: impl AsIndex) -> Self {
        let axis = axis_of("cat", dim, D, first_dims("cat", &tensors));
        Self::from_raw(RawTensor::cat(&raws(tensors), axis))
    }

    /// Tensors of one shape joined along a new axis.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1, 2], &device);
    /// let y = Tensor::<1>::from_data([3, 4], &device);
    /// let z = Tensor::stack::<2>(vec![x, y], 1);
    /// assert_eq!(z.try_to_vec_as::<i32>().unwrap(), [1, 3, 2, 4]);
    /// ```
    ///
    /// # Panics
    /// When no tensor is given, shapes differ, `D2` is not `D + 1`, or the position of the new axis does not exist.
    #[track_caller]
    pub fn stack<const D2: usize>(tensors: Vec<Tensor<D, K>>, dim: impl AsIndex) -> Tensor<D2, K> {
        let axis = axis_of("stack", dim, D + 1, first_dims("stack", &tensors));
        if let Some(other) = tensors.iter().find(|tensor| tensor.raw.dims() != tensors[0].raw.dims()) {
            panic!("stack: shapes differ: {:?}, {:?}", tensors[0].raw.dims(), other.raw.dims());
        }
        assert!(D2 == D + 1, "stack: rank {D} becomes {}, not {D2}: shape {:?}", D + 1, tensors[0].raw.dims());
        let parts: Vec<RawTensor> = tensors.iter().map(|tensor| tensor.raw.unsqueeze(axis)).collect();
        Tensor::from_raw(RawTensor::cat(&parts, axis))
    }

    /// An axis repeated `times` times.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2]], &Device::default());
    /// assert_eq!(x.repeat_dim(1, 2).try_to_vec_as::<i32>().unwrap(), [1, 2, 1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn repeat_dim(self, dim: impl AsIndex, times: usize) -> Self {
        Self::from_raw(self.raw.repeat(self.axis("repeat_dim", dim), times))
    }

    /// The first axes repeated, each as often as `sizes` says.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1], [2]], &Device::default());
    /// assert_eq!(x.clone().repeat(&[1, 3]).dims(), [2, 3]);
    /// assert_eq!(x.repeat(&[0, 1]).dims(), [0, 1]);
    /// ```
    ///
    /// # Panics
    /// When there are more sizes than axes.
    #[track_caller]
    pub fn repeat(self, sizes: &[usize]) -> Self {
        assert!(sizes.len() <= D, "repeat: {sizes:?} has more entries than the axes of shape {:?}", self.raw.dims());
        let mut raw = self.raw;
        for (axis, times) in sizes.iter().enumerate() {
            raw = raw.repeat(axis, *times);
        }
        Self::from_raw(raw)
    }
}

#[track_caller]
fn fill_impl(raw: &RawTensor, ranges: &[SliceRange], value: Scalar) -> RawTensor {
    let device = raw.device().without_autodiff();
    raw.slice_assign(ranges, &RawTensor::full(&device, &alloc::vec![1; raw.rank()], raw.dtype(), value))
}

/// The positions of an axis, as tensors that keep it with size 1. Made by [`Tensor::iter_dim`].
pub struct DimIter<const D: usize, K>
where
    K: Basic,
{
    positions: Range<usize>,
    axis: usize,
    tensor: Tensor<D, K>,
}

impl<const D: usize, K: Basic> DimIter<D, K> {
    fn at(&self, position: usize) -> Tensor<D, K> {
        Tensor::from_raw(self.tensor.raw.narrow(self.axis, position, 1))
    }
}

impl<const D: usize, K: Basic> Iterator for DimIter<D, K> {
    type Item = Tensor<D, K>;

    fn next(&mut self) -> Option<Self::Item> {
        let position = self.positions.next()?;
        Some(self.at(position))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.positions.size_hint()
    }
}

impl<const D: usize, K: Basic> DoubleEndedIterator for DimIter<D, K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let position = self.positions.next_back()?;
        Some(self.at(position))
    }
}

impl<const D: usize, K: Basic> ExactSizeIterator for DimIter<D, K> {}
impl<const D: usize, K: Basic> FusedIterator for DimIter<D, K> {}

/// The sizes of the first of several tensors.
///
/// # Panics
/// When there is none.
#[track_caller]
fn first_dims<'a, const D: usize, K: Basic>(op: &str, tensors: &'a [Tensor<D, K>]) -> &'a [usize] {
    match tensors.first() {
        Some(tensor) => tensor.raw.dims(),
        None => panic!("{op}: no tensor of rank {D} is given"),
    }
}
