//! Gradients of views and of writes into regions.
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::Op;
use kiln_ir::op::SliceAxis;
use smallvec::SmallVec;

use super::Backward;
use crate::raw::{RawTensor, SliceRange, apply, apply_as};
use crate::trace::Operand;

/// The inverse permutation.
pub(super) fn permute(perm: &[u8], b: &Backward<'_>) -> RawTensor {
    let mut inverse: SmallVec<[usize; 8]> = SmallVec::from_elem(0, perm.len());
    for (i, p) in perm.iter().enumerate() {
        inverse[*p as usize] = i;
    }
    b.dy.permute(&inverse)
}

/// `target` with the slice of a step replaced by `value`; the step's starts begin at operand `first`.
fn write(axes: &[SliceAxis], b: &Backward<'_>, first: usize, target: &RawTensor, value: &RawTensor) -> RawTensor {
    let mut operands: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
    operands.push(Operand::Tensor(target));
    operands.push(Operand::Tensor(value));
    operands.extend((0..axes.len()).map(|s| b.scalar(first + s)));
    apply(Op::Update(SmallVec::from_slice(axes)), &operands)
}

/// Zeros with the gradient in the slice.
pub(super) fn slice(axes: &[SliceAxis], b: &Backward<'_>) -> RawTensor {
    if b.dims(0) == b.dy.dims() {
        // A flip of whole axes is its own inverse.
        let mut operands: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        operands.push(Operand::Tensor(b.dy));
        operands.extend((0..axes.len()).map(|s| b.scalar(1 + s)));
        return apply_as(Op::Slice(SmallVec::from_slice(axes)), &operands, b.dims(0), b.dtype(0));
    }
    write(axes, b, 1, &b.zeros(0), b.dy)
}

/// The slice that was written goes to the value, the rest to the tensor.
pub(super) fn update(axes: &[SliceAxis], b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let rest = b.wants(0).then(|| write(axes, b, 2, b.dy, &b.zeros(1)));
    let part = b.wants(1).then(|| {
        let mut operands: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        operands.push(Operand::Tensor(b.dy));
        operands.extend((0..axes.len()).map(|s| b.scalar(2 + s)));
        apply_as(Op::Slice(SmallVec::from_slice(axes)), &operands, b.dims(1), b.dtype(1))
    });
    vec![rest, part]
}

/// The part inside the padding. The fill is a scalar and gets no gradient.
pub(super) fn pad(pads: &[(usize, usize)], b: &Backward<'_>) -> RawTensor {
    let ranges: SmallVec<[SliceRange; 6]> = pads.iter().zip(b.dims(0)).enumerate().map(|(a, (p, n))| SliceRange::new(a, p.0, *n)).collect();
    b.dy.slice_fixed(&ranges)
}

/// Each operand's part.
pub(super) fn concat(axis: usize, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let mut start = 0;
    let mut out = Vec::new();
    for i in 0..b.step.saved.len() {
        let len = b.dims(i)[axis];
        out.push(b.wants(i).then(|| b.dy.slice_fixed(&[SliceRange::new(axis, start, len)])));
        start += len;
    }
    out
}
