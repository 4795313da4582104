//! Views: other shapes, orders of axes and parts of a tensor.

use alloc::vec::Vec;

use super::Tensor;
use super::kind::Basic;
use crate::raw::RawTensor;
use crate::shape::{AsIndex, BroadcastArgs, MovedimArgs, ReshapeArgs, Shape, axis_of};

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// The same elements in row-major order under another shape. In an array, -1 stands for what remains and 0 keeps the size of the axis.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::zeros([2, 6], &Device::default());
    /// assert_eq!(x.clone().reshape([3, -1]).dims(), [3, 4]);
    /// assert_eq!(x.reshape([0, 2, 3]).dims(), [2, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When the element counts differ.
    #[track_caller]
    pub fn reshape<const D2: usize, S: ReshapeArgs<D2>>(self, shape: S) -> Tensor<D2, K> {
        let shape = shape.into_shape::<D>(self.shape());
        Tensor::from_raw(self.raw.reshape(&shape))
    }

    /// The last two axes exchanged.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2, 3], [4, 5, 6]], &Device::default());
    /// assert_eq!(x.transpose().try_to_vec_as::<i32>().unwrap(), [1, 4, 2, 5, 3, 6]);
    /// ```
    ///
    /// # Panics
    /// When the rank is below 2.
    #[track_caller]
    pub fn transpose(self) -> Tensor<D, K> {
        Self::from_raw(self.raw.transpose())
    }

    /// The last two axes exchanged: the same as [`transpose`](Self::transpose).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// assert_eq!(Tensor::<2>::zeros([2, 3], &Device::default()).t().dims(), [3, 2]);
    /// ```
    ///
    /// # Panics
    /// When the rank is below 2.
    #[track_caller]
    pub fn t(self) -> Tensor<D, K> {
        self.transpose()
    }

    /// Two axes exchanged.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<3>::zeros([2, 3, 4], &Device::default());
    /// assert_eq!(x.swap_dims(0, -1).dims(), [4, 3, 2]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist.
    #[track_caller]
    pub fn swap_dims<Dim1, Dim2>(self, dim1: Dim1, dim2: Dim2) -> Tensor<D, K>
    where
        Dim1: AsIndex,
        Dim2: AsIndex,
    {
        Self::from_raw(self.raw.swap_dims(self.axis("swap_dims", dim1), self.axis("swap_dims", dim2)))
    }

    /// The axes in another order: axis `i` of the result is axis `axes[i]`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<3>::zeros([2, 3, 4], &Device::default());
    /// assert_eq!(x.permute([2, 0, 1]).dims(), [4, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist or is named twice.
    #[track_caller]
    pub fn permute<Dim>(self, axes: [Dim; D]) -> Tensor<D, K>
    where
        Dim: AsIndex,
    {
        let axes = distinct_axes("permute", &axes, self.raw.dims());
        Self::from_raw(self.raw.permute(&axes))
    }

    /// Axes moved to other positions; the others keep their order.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<3>::zeros([2, 3, 4], &Device::default());
    /// assert_eq!(x.clone().movedim(0, 2).dims(), [3, 4, 2]);
    /// assert_eq!(x.movedim(vec![0, 1], vec![1, 2]).dims(), [4, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist or is named twice, or the numbers of axes differ.
    #[track_caller]
    pub fn movedim<S1: MovedimArgs, S2: MovedimArgs>(self, src: S1, dst: S2) -> Tensor<D, K> {
        let (src, dst) = (src.into_axes::<D>(self.raw.dims()), dst.into_axes::<D>(self.raw.dims()));
        Self::from_raw(self.raw.permute(&moved_axes(self.raw.dims(), &src, &dst)))
    }

    /// The elements in reversed order along some axes.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.flip([1]).try_to_vec_as::<i32>().unwrap(), [2, 1, 4, 3]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist or is named twice.
    #[track_caller]
    pub fn flip<const N: usize>(self, axes: [impl AsIndex; N]) -> Tensor<D, K> {
        let axes = distinct_axes("flip", &axes, self.raw.dims());
        Self::from_raw(self.raw.flip(&axes))
    }

    /// The axes `start_dim..=end_dim` merged into one.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<3>::zeros([2, 3, 4], &Device::default());
    /// assert_eq!(x.flatten::<2>(1, -1).dims(), [2, 12]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist, the start lies behind the end, or the result is not of rank `D2`.
    #[track_caller]
    pub fn flatten<const D2: usize>(self, start_dim: impl AsIndex, end_dim: impl AsIndex) -> Tensor<D2, K> {
        let shape = self.shape().flatten_dims(start_dim, end_dim);
        self.view_as("flatten", shape)
    }

    /// Without all axes of size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<4>::zeros([1, 3, 1, 4], &Device::default());
    /// assert_eq!(x.squeeze::<2>().dims(), [3, 4]);
    /// ```
    ///
    /// # Panics
    /// When the result is not of rank `D2`.
    #[track_caller]
    pub fn squeeze<const D2: usize>(self) -> Tensor<D2, K> {
        let kept: Shape = self.raw.dims().iter().filter(|size| **size != 1).collect();
        // All axes may have size 1; a result of rank 1 then keeps one.
        let kept = if kept.rank() == 0 && D2 == 1 { Shape::new([1]) } else { kept };
        self.view_as("squeeze", kept)
    }

    /// Without the axis, which has size 1.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<3>::zeros([2, 1, 1], &Device::default());
    /// assert_eq!(x.squeeze_dim::<2>(1).dims(), [2, 1]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or has another size, or the result is not of rank `D2`.
    #[track_caller]
    pub fn squeeze_dim<const D2: usize>(self, dim: impl AsIndex) -> Tensor<D2, K> {
        self.squeeze_dims(&[dim])
    }

    /// Without the given axes, which have size 1; without all axes of size 1 when none is given.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<4>::zeros([2, 1, 4, 1], &Device::default());
    /// assert_eq!(x.squeeze_dims::<2>(&[1, -1]).dims(), [2, 4]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist, is named twice or has another size, or the result is not of rank `D2`.
    #[track_caller]
    pub fn squeeze_dims<const D2: usize>(self, dims: &[impl AsIndex]) -> Tensor<D2, K> {
        if dims.is_empty() {
            return self.squeeze();
        }
        let axes = distinct_axes("squeeze", dims, self.raw.dims());
        let sizes = self.raw.dims();
        for &axis in &axes {
            assert!(sizes[axis] == 1, "squeeze: axis {axis} has size {}: shape {sizes:?}", sizes[axis]);
        }
        let kept = (0..D).filter(|axis| !axes.contains(axis)).map(|axis| sizes[axis]).collect();
        self.view_as("squeeze", kept)
    }

    /// Axes of size 1 added in front, up to rank `D2`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::zeros([3], &Device::default());
    /// assert_eq!(x.unsqueeze::<3>().dims(), [1, 1, 3]);
    /// ```
    ///
    /// # Panics
    /// When `D2` is below `D`.
    #[track_caller]
    pub fn unsqueeze<const D2: usize>(self) -> Tensor<D2, K> {
        assert!(D2 >= D, "unsqueeze: rank {D} has no view of rank {D2}: shape {}", self.shape());
        let mut shape = Shape::new([1; D2]);
        shape[D2 - D..].copy_from_slice(self.raw.dims());
        self.view_as("unsqueeze", shape)
    }

    /// A new axis of size 1 at position `dim` of the result.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::zeros([2, 3], &Device::default());
    /// assert_eq!(x.clone().unsqueeze_dim::<3>(1).dims(), [2, 1, 3]);
    /// assert_eq!(x.unsqueeze_dim::<3>(-1).dims(), [2, 3, 1]);
    /// ```
    ///
    /// # Panics
    /// When `D2` is not `D + 1` or the position does not exist.
    #[track_caller]
    pub fn unsqueeze_dim<const D2: usize>(self, dim: impl AsIndex) -> Tensor<D2, K> {
        self.unsqueeze_dims(&[dim])
    }

    /// New axes of size 1 at the given positions of the result. A position may be given more than once: each time names the next place.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::zeros([2, 3], &Device::default());
    /// assert_eq!(x.unsqueeze_dims::<4>(&[0, -1]).dims(), [1, 2, 3, 1]);
    /// ```
    ///
    /// # Panics
    /// When `D2` is not `D` and the number of positions, or a position does not exist.
    #[track_caller]
    pub fn unsqueeze_dims<const D2: usize>(self, axes: &[impl AsIndex]) -> Tensor<D2, K> {
        assert!(D2 == D + axes.len(), "unsqueeze: {} new axes for rank {D} do not give rank {D2}: shape {}", axes.len(), self.shape());
        let mut new = [false; D2];
        for axis in axes {
            let mut axis = axis_of("unsqueeze", axis, D2, self.raw.dims());
            while new[axis] {
                axis = (axis + 1) % D2;
            }
            new[axis] = true;
        }
        let mut old = self.raw.dims().iter();
        let shape: Shape = new.iter().map(|new| if *new { Some(&1) } else { old.next() }).map(|size| *size.expect("the axes add up")).collect();
        self.view_as("unsqueeze", shape)
    }

    /// The elements moved by `shift` places along an axis, around the end.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2, 3, 4], &Device::default());
    /// assert_eq!(x.roll_dim(1, 0).try_to_vec_as::<i32>().unwrap(), [4, 1, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist.
    #[track_caller]
    pub fn roll_dim<Shift, Dim>(self, shift: Shift, dim: Dim) -> Self
    where
        Shift: AsIndex,
        Dim: AsIndex,
    {
        let Ok(places) = shift.fitted() else {
            panic!("roll: {shift:?} places do not fit isize: shape {:?}", self.raw.dims());
        };
        Self::from_raw(self.raw.roll(self.axis("roll", dim), places as i64))
    }

    /// The elements moved along several axes, around the ends. Shifts of one axis add up.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1, 2], [3, 4]], &Device::default());
    /// assert_eq!(x.roll(&[1, 1], &[0, 1]).try_to_vec_as::<i32>().unwrap(), [4, 3, 2, 1]);
    /// ```
    ///
    /// # Panics
    /// When an axis does not exist, or the numbers of shifts and axes differ.
    #[track_caller]
    pub fn roll<Shift, Dim>(self, shifts: &[Shift], dims: &[Dim]) -> Self
    where
        Shift: AsIndex,
        Dim: AsIndex,
    {
        assert!(shifts.len() == dims.len(), "roll: {} shifts for {} axes: shape {:?}", shifts.len(), dims.len(), self.raw.dims());
        let mut rolled = self;
        // A closure would report its own line instead of the caller's.
        for (shift, dim) in shifts.iter().zip(dims) {
            rolled = rolled.roll_dim(*shift, *dim);
        }
        rolled
    }

    /// Axes of size 1 repeated, and axes added in front, without a copy. In an array, -1 keeps the size.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[1], [2]], &Device::default());
    /// assert_eq!(x.clone().expand([2, 2]).try_to_vec_as::<i32>().unwrap(), [1, 1, 2, 2]);
    /// assert_eq!(x.expand([4, -1, 3]).dims(), [4, 2, 3]);
    /// ```
    ///
    /// # Panics
    /// When the tensor does not broadcast to the shape.
    #[track_caller]
    pub fn expand<const D2: usize, S: BroadcastArgs<D, D2>>(self, shape: S) -> Tensor<D2, K> {
        let shape = shape.into_shape(&self.shape());
        Tensor::from_raw(self.raw.expand(&shape))
    }

    /// Sliding windows along an axis: it becomes the number of windows, and a last axis of the window's size is added.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1, 2, 3, 4, 5], &Device::default());
    /// let windows = x.unfold::<2, _>(0, 3, 2);
    /// assert_eq!(windows.dims(), [2, 3]);
    /// assert_eq!(windows.try_to_vec_as::<i32>().unwrap(), [1, 2, 3, 3, 4, 5]);
    /// ```
    ///
    /// # Panics
    /// When the axis does not exist or is smaller than a window, `size` or `step` is 0, or `D2` is not `D + 1`.
    #[track_caller]
    pub fn unfold<const D2: usize, I: AsIndex>(self, dim: I, size: usize, step: usize) -> Tensor<D2, K> {
        of_rank("unfold", self.raw.unfold(self.axis("unfold", dim), size, step), &self.raw)
    }

    /// The axis that an index names.
    ///
    /// # Panics
    /// When it does not exist.
    #[track_caller]
    pub(super) fn axis(&self, op: &str, index: impl AsIndex) -> usize {
        axis_of(op, index, D, self.raw.dims())
    }

    #[track_caller]
    pub(super) fn view_as<const D2: usize>(self, op: &str, shape: Shape) -> Tensor<D2, K> {
        assert!(shape.rank() == D2, "{op}: {} becomes {shape}, which is not of rank {D2}", self.shape());
        Tensor::from_raw(self.raw.reshape(&shape))
    }
}

/// The typed result of an op on `x` whose rank the caller states.
///
/// # Panics
/// When it has another rank.
#[track_caller]
pub(super) fn of_rank<const D: usize, K: Basic>(op: &str, raw: RawTensor, x: &RawTensor) -> Tensor<D, K> {
    assert!(raw.rank() == D, "{op}: {:?} becomes {:?}, which is not of rank {D}", x.dims(), raw.dims());
    Tensor::from_raw(raw)
}

/// Axes resolved for a shape.
///
/// # Panics
/// When an axis does not exist or is named twice.
#[track_caller]
pub(super) fn distinct_axes<I: AsIndex>(op: &str, axes: &[I], dims: &[usize]) -> Vec<usize> {
    let mut resolved = Vec::with_capacity(axes.len());
    for axis in axes {
        let axis = axis_of(op, *axis, dims.len(), dims);
        assert!(!resolved.contains(&axis), "{op}: axis {axis} is named twice in {axes:?}: shape {dims:?}");
        resolved.push(axis);
    }
    resolved
}

/// The permutation that moves axes `src` to the positions `dst`.
#[track_caller]
fn moved_axes(dims: &[usize], src: &[usize], dst: &[usize]) -> Vec<usize> {
    assert!(src.len() == dst.len(), "movedim: {} source axes for {} positions: shape {dims:?}", src.len(), dst.len());
    let rank = dims.len();
    let mut rest = (0..rank).filter(|axis| !src.contains(axis));
    let position = |place: usize| dst.iter().position(|d| *d == place);
    (0..rank).map(|place| position(place).map_or_else(|| rest.next().expect("the axes add up"), |i| src[i])).collect()
}

/// Applies `f` to each of several tensors' untyped cores.
pub(super) fn raws<const D: usize, K: Basic>(tensors: Vec<Tensor<D, K>>) -> Vec<RawTensor> {
    tensors.into_iter().map(Tensor::into_raw).collect()
}
