//! Joining, repeating and padding.
use alloc::vec::Vec;

use kiln_ir::{Dims, Op};
use smallvec::SmallVec;

use super::{RawTensor, SliceRange, apply, arg, check_size, constant};
use crate::Scalar;
use crate::trace::Operand;

/// Panics at the caller when tensors cannot be joined along an axis.
#[track_caller]
fn check_parts(tensors: &[RawTensor], axis: usize) {
    let first = &tensors[0];
    first.check_axis("cat", axis);
    let fits = |x: &RawTensor| {
        let agree = x.dims().iter().zip(first.dims()).enumerate().all(|(a, (n, m))| a == axis || n == m);
        x.dtype() == first.dtype() && x.rank() == first.rank() && agree
    };
    if let Some(x) = tensors.iter().find(|x| !fits(x)) {
        let rule = if x.dtype() == first.dtype() { "sizes of other axes differ" } else { "dtypes differ" };
        panic!("cat: {rule}: axis {axis} of {}{:?}, {}{:?}", first.dtype(), first.dims(), x.dtype(), x.dims());
    }
}

impl RawTensor {
    /// Joins tensors along an axis. Empty rank-1 operands are not special: all other sizes must agree.
    #[track_caller]
    pub fn cat(tensors: &[RawTensor], axis: usize) -> RawTensor {
        match tensors {
            [] => panic!("cat: needs at least one tensor"),
            [one] => {
                one.check_axis("cat", axis);
                one.clone()
            }
            _ => {
                check_parts(tensors, axis);
                let operands: SmallVec<[Operand<'_>; 8]> = tensors.iter().map(Operand::Tensor).collect();
                apply(Op::Concat { axis }, &operands)
            }
        }
    }

    /// The tensor `times` times along an axis.
    #[track_caller]
    pub fn repeat(&self, axis: usize, times: usize) -> RawTensor {
        self.check_axis("repeat", axis);
        if times == 1 {
            return self.clone();
        }
        let mut with_axis = Dims::from_slice(self.dims());
        with_axis.insert(axis, 1);
        let mut expanded = with_axis.clone();
        expanded[axis] = times;
        let mut dims = Dims::from_slice(self.dims());
        dims[axis] = dims[axis].saturating_mul(times);
        check_size("repeat", &dims, self.dtype(), &[Operand::Tensor(self)]);
        self.reshape(&with_axis).expand(&expanded).reshape(&dims)
    }

    /// `(before, after)` elements of a scalar added to each axis.
    #[track_caller]
    pub fn pad_constant(&self, pads: &[(usize, usize)], value: Scalar) -> RawTensor {
        self.pad_with(pads, arg(self.dtype(), value))
    }

    /// `(before, after)` zeros added to each axis.
    #[track_caller]
    pub(crate) fn pad_zeros(&self, pads: &[(usize, usize)]) -> RawTensor {
        self.pad_with(pads, constant(self.dtype(), 0.0))
    }

    #[track_caller]
    pub(crate) fn pad_with(&self, pads: &[(usize, usize)], fill: Operand<'_>) -> RawTensor {
        if pads.len() != self.rank() {
            panic!("pad: {} pairs for a tensor of rank {}: {:?}", pads.len(), self.rank(), self.dims());
        }
        if pads.iter().all(|p| *p == (0, 0)) {
            return self.clone();
        }
        apply(Op::Pad(SmallVec::from_slice(pads)), &[Operand::Tensor(self), fill])
    }

    /// Pads each axis with its own elements mirrored at the edge, which is not repeated. A pad must be smaller than the axis.
    #[track_caller]
    pub fn pad_reflect(&self, pads: &[(usize, usize)]) -> RawTensor {
        let mut x = self.clone();
        for (axis, &(lo, hi)) in pads.iter().enumerate() {
            let n = self.dims()[axis];
            if lo.max(hi) >= n.max(1) {
                panic!("pad: reflecting ({lo}, {hi}) needs more than {n} elements on axis {axis}: {:?}", self.dims());
            }
            let mut parts: Vec<RawTensor> = Vec::new();
            if lo > 0 {
                parts.push(x.slice(&[SliceRange { axis, start: lo, len: lo, step: -1 }]));
            }
            parts.push(x.clone());
            if hi > 0 {
                parts.push(x.slice(&[SliceRange { axis, start: n - 2, len: hi, step: -1 }]));
            }
            x = RawTensor::cat(&parts, axis);
        }
        x
    }

    /// Pads each axis with its outermost elements.
    #[track_caller]
    pub fn pad_edge(&self, pads: &[(usize, usize)]) -> RawTensor {
        let mut x = self.clone();
        for (axis, &(lo, hi)) in pads.iter().enumerate() {
            let n = self.dims()[axis];
            if lo + hi == 0 {
                continue;
            }
            if n == 0 {
                panic!("pad: axis {axis} has no edge: {:?}", self.dims());
            }
            let edge = |start: usize, count: usize| {
                let mut dims = Dims::from_slice(x.dims());
                dims[axis] = count;
                x.narrow(axis, start, 1).expand(&dims)
            };
            let mut parts: Vec<RawTensor> = Vec::new();
            if lo > 0 {
                parts.push(edge(0, lo));
            }
            parts.push(x.clone());
            if hi > 0 {
                parts.push(edge(n - 1, hi));
            }
            x = RawTensor::cat(&parts, axis);
        }
        x
    }

    /// Zeros below the diagonal `column - row = offset` of the last two axes.
    #[track_caller]
    pub fn triu(&self, offset: i64) -> RawTensor {
        let mask = RawTensor::below_diagonal(&self.device(), self.dims(), offset);
        self.fill_constant(&mask, 0.0)
    }

    /// Zeros above the diagonal `column - row = offset` of the last two axes.
    #[track_caller]
    pub fn tril(&self, offset: i64) -> RawTensor {
        let mask = RawTensor::above_diagonal(&self.device(), self.dims(), offset);
        self.fill_constant(&mask, 0.0)
    }
}
