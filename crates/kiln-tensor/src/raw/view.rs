//! Views: reshape, permute, expand, slice, flip and windows, and writing into slices.
use alloc::vec::Vec;

use kiln_ir::op::{SliceAxis, WindowAxis};
use kiln_ir::{Dims, Op, dims};
use smallvec::SmallVec;

use super::{RawTensor, apply, apply_as, constant, emit};
use crate::trace::{Operand, ScalarWord};

/// Elements `start, start + step, ...` of one axis, `len` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRange {
    /// The axis.
    pub axis: usize,
    /// First element.
    pub start: usize,
    /// Number of elements.
    pub len: usize,
    /// Distance between elements, not zero; negative walks backwards.
    pub step: isize,
}

impl SliceRange {
    /// `len` neighbouring elements from `start` on.
    pub fn new(axis: usize, start: usize, len: usize) -> Self {
        SliceRange { axis, start, len, step: 1 }
    }

    /// Panics at the caller unless the range lies inside `dims`.
    #[track_caller]
    fn check(&self, op: &str, dims: &[usize]) {
        let Some(&size) = dims.get(self.axis) else {
            panic!("{op}: axis {} is out of range for a tensor of rank {}: {dims:?}", self.axis, dims.len());
        };
        let span = self.len.saturating_sub(1) as isize * self.step;
        let last = self.start as isize + span;
        let inside = self.len == 0 || (self.start < size && last >= 0 && (last as usize) < size);
        if self.step == 0 || !inside {
            panic!("{op}: {} elements from {} by {} on axis {} of {dims:?}", self.len, self.start, self.step, self.axis);
        }
    }

    fn is_whole(&self, dims: &[usize]) -> bool {
        self.start == 0 && self.step == 1 && self.len == dims[self.axis]
    }

    /// The op's attribute.
    fn attr(&self) -> SliceAxis {
        SliceAxis { axis: self.axis as u8, step: if self.len <= 1 { 1 } else { self.step as i32 } }
    }

    /// The op's operand. The start of an empty range doesn't matter.
    fn operand(&self) -> Operand<'static> {
        Operand::Scalar(ScalarWord::Start(if self.len == 0 { 0 } else { self.start }))
    }
}

impl RawTensor {
    /// The same elements in row-major order under other sizes.
    #[track_caller]
    pub fn reshape(&self, dims: &[usize]) -> RawTensor {
        if dims == self.dims() {
            return self.clone();
        }
        if let Some(kept) = self.reshape_quantized(dims) {
            return kept;
        }
        apply_as(Op::Reshape, &[Operand::Tensor(self)], dims, self.dtype())
    }

    /// Axis `i` of the result is axis `axes[i]` of this tensor.
    #[track_caller]
    pub fn permute(&self, axes: &[usize]) -> RawTensor {
        if axes.len() == self.rank() && axes.iter().enumerate().all(|(i, a)| i == *a) {
            return self.clone();
        }
        let wrong = axes.len() != self.rank() || axes.iter().any(|a| *a >= self.rank());
        if wrong {
            panic!("permute: {axes:?} is not a permutation of the axes: {:?}", self.dims());
        }
        if self.is_quantized()
            && (0..self.rank()).all(|axis| axes.contains(&axis))
            && let Some(kept) = self.permute_quantized(axes)
        {
            return kept;
        }
        apply(Op::Permute(axes.iter().map(|a| *a as u8).collect()), &[Operand::Tensor(self)])
    }

    /// Exchanges two axes.
    #[track_caller]
    pub fn swap_dims(&self, a: usize, b: usize) -> RawTensor {
        self.check_axis("swap_dims", a);
        self.check_axis("swap_dims", b);
        let mut axes: SmallVec<[usize; 8]> = (0..self.rank()).collect();
        axes.swap(a, b);
        self.permute(&axes)
    }

    /// Exchanges the last two axes.
    #[track_caller]
    pub fn transpose(&self) -> RawTensor {
        let r = self.rank();
        if r < 2 {
            panic!("transpose: needs at least two axes: {:?}", self.dims());
        }
        self.swap_dims(r - 2, r - 1)
    }

    /// Repeats axes of size 1 (and adds leading axes) up to `dims`.
    #[track_caller]
    pub fn expand(&self, dims: &[usize]) -> RawTensor {
        self.expand_for("expand", dims)
    }

    /// [`RawTensor::expand`] on behalf of another op.
    #[track_caller]
    pub(crate) fn expand_for(&self, op: &str, dims: &[usize]) -> RawTensor {
        if dims == self.dims() {
            return self.clone();
        }
        if dims::broadcast(self.dims(), dims).as_deref() != Some(dims) {
            panic!("{op}: {:?} does not broadcast to {dims:?}", self.dims());
        }
        emit(Op::Expand, &[Operand::Tensor(self)], dims.into(), self.dtype(), true)
    }

    /// A slice of some axes. Starts are run-time scalars: a start that moves from step to step does not make new programs.
    #[track_caller]
    pub fn slice(&self, ranges: &[SliceRange]) -> RawTensor {
        self.slice_at("slice", ranges, SliceRange::operand)
    }

    /// A slice whose starts follow from the structure, as constants.
    #[track_caller]
    pub(crate) fn slice_fixed(&self, ranges: &[SliceRange]) -> RawTensor {
        self.slice_at("slice", ranges, |r| constant(RawTensor::INDEX, if r.len == 0 { 0.0 } else { r.start as f64 }))
    }

    #[track_caller]
    fn slice_at(&self, op: &str, ranges: &[SliceRange], start: impl Fn(&SliceRange) -> Operand<'static>) -> RawTensor {
        let mut dims = Dims::from_slice(self.dims());
        let mut operands: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        operands.push(Operand::Tensor(self));
        let mut axes = SmallVec::new();
        for r in ranges {
            r.check(op, self.dims());
            dims[r.axis] = r.len;
            if !r.is_whole(self.dims()) {
                axes.push(r.attr());
                operands.push(start(r));
            }
        }
        if axes.is_empty() {
            return self.clone();
        }
        if let Some(kept) = self.slice_quantized(ranges) {
            return kept;
        }
        emit(Op::Slice(axes), &operands, dims, self.dtype(), true)
    }

    /// One axis of [`RawTensor::slice`].
    #[track_caller]
    pub fn narrow(&self, axis: usize, start: usize, len: usize) -> RawTensor {
        self.slice_at("narrow", &[SliceRange::new(axis, start, len)], SliceRange::operand)
    }

    /// This tensor with a slice replaced by `value`, which is broadcast to the slice's sizes.
    #[track_caller]
    pub fn slice_assign(&self, ranges: &[SliceRange], value: &RawTensor) -> RawTensor {
        let mut dims = Dims::from_slice(self.dims());
        for r in ranges {
            r.check("slice_assign", self.dims());
            dims[r.axis] = r.len;
        }
        let value = value.expand_for("slice_assign", &dims);
        let mut operands: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        operands.push(Operand::Tensor(self));
        operands.push(Operand::Tensor(&value));
        let mut axes = SmallVec::new();
        for r in ranges.iter().filter(|r| !r.is_whole(self.dims())) {
            axes.push(r.attr());
            operands.push(r.operand());
        }
        if axes.is_empty() && value.dtype() == self.dtype() {
            return value.clone();
        }
        apply(Op::Update(axes), &operands)
    }

    /// Reverses axes.
    #[track_caller]
    pub fn flip(&self, axes: &[usize]) -> RawTensor {
        let mut attrs = SmallVec::new();
        let mut operands: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        operands.push(Operand::Tensor(self));
        for &axis in axes {
            self.check_axis("flip", axis);
            let n = self.dims()[axis];
            if n > 1 {
                attrs.push(SliceAxis { axis: axis as u8, step: -1 });
                operands.push(constant(RawTensor::INDEX, (n - 1) as f64));
            }
        }
        if attrs.is_empty() || self.numel() == 0 {
            return self.clone();
        }
        if let Some(kept) = self.flip_quantized(axes) {
            return kept;
        }
        emit(Op::Slice(attrs), &operands, self.slot.dims.clone(), self.dtype(), true)
    }

    /// Sliding windows of an axis: it becomes the number of windows, and a last axis of the window's size is appended.
    #[track_caller]
    pub fn unfold(&self, axis: usize, size: usize, stride: usize) -> RawTensor {
        self.check_axis("unfold", axis);
        if size == 0 || stride == 0 || size > self.dims()[axis] {
            panic!("unfold: windows of {size} by {stride} on axis {axis} of {:?}", self.dims());
        }
        self.windows(&[WindowAxis { axis: axis as u8, size, stride, dilation: 1 }])
    }

    /// Sliding windows along several axes.
    #[track_caller]
    pub(crate) fn windows(&self, axes: &[WindowAxis]) -> RawTensor {
        apply(Op::Window(SmallVec::from_slice(axes)), &[Operand::Tensor(self)])
    }

    /// Adds windows back to where they came from: the adjoint of [`RawTensor::windows`] for a tensor of sizes `dims`.
    #[track_caller]
    pub(crate) fn fold(&self, axes: &[WindowAxis], dims: &[usize]) -> RawTensor {
        apply_as(Op::Fold(SmallVec::from_slice(axes)), &[Operand::Tensor(self)], dims, self.dtype())
    }

    /// With a new axis of size 1 at `axis`.
    #[track_caller]
    pub fn unsqueeze(&self, axis: usize) -> RawTensor {
        if axis > self.rank() {
            panic!("unsqueeze: axis {axis} is out of range for a tensor of rank {}: {:?}", self.rank(), self.dims());
        }
        let mut dims = Dims::from_slice(self.dims());
        dims.insert(axis, 1);
        self.reshape(&dims)
    }

    /// Without the axis, which has size 1.
    #[track_caller]
    pub fn squeeze(&self, axis: usize) -> RawTensor {
        self.check_axis("squeeze", axis);
        if self.dims()[axis] != 1 {
            panic!("squeeze: axis {axis} has {} elements: {:?}", self.dims()[axis], self.dims());
        }
        let mut dims = Dims::from_slice(self.dims());
        dims.remove(axis);
        self.reshape(&dims)
    }

    /// Moves the elements of an axis by `shift` places, around the end.
    #[track_caller]
    pub fn roll(&self, axis: usize, shift: i64) -> RawTensor {
        self.check_axis("roll", axis);
        let n = self.dims()[axis];
        if n == 0 {
            return self.clone();
        }
        let shift = shift.rem_euclid(n as i64) as usize;
        if shift == 0 {
            return self.clone();
        }
        let parts: Vec<RawTensor> = [self.narrow(axis, n - shift, shift), self.narrow(axis, 0, n - shift)].into();
        RawTensor::cat(&parts, axis)
    }
}
