//! Gradients of reads and writes by index, and of sorting.
#![deny(clippy::wildcard_enum_match_arm)]
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::Elementwise::{Add, Eq};
use kiln_ir::ScatterOp;

use super::Backward;
use crate::raw::RawTensor;

/// Every read adds its gradient where it read. With one read a row, as in a cross entropy, that is a comparison, which the compiler can fuse.
pub(super) fn gather(axis: usize, b: &Backward<'_>) -> RawTensor {
    let index = b.value(1);
    if index.dims()[axis] == 1 {
        let place = RawTensor::iota(&index.device().without_autodiff(), b.dims(0), index.dtype(), axis);
        return place.eq(&index).choose_or_zero(b.dy);
    }
    b.zeros(0).scatter(axis, &index, b.dy, ScatterOp::Add)
}

/// A sort is a permutation: the gradient goes back along it.
pub(super) fn sort(axis: usize, b: &Backward<'_>) -> RawTensor {
    b.zeros(0).scatter(axis, &b.extra(), b.dy, ScatterOp::Assign)
}

/// The gradients of a write by index.
pub(super) fn scatter(axis: usize, op: ScatterOp, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let index = b.value(1);
    let dy = b.dy;
    match op {
        ScatterOp::Add => vec![b.wants(0).then(|| dy.clone()), None, b.wants(2).then(|| dy.gather(axis, &index))],
        ScatterOp::Assign => {
            let target = b.wants(0).then(|| dy.scatter(axis, &index, &b.zeros(2), ScatterOp::Assign));
            let values = b.wants(2).then(|| last_writer(axis, &index, b.dims(0), None).choose_or_zero(&dy.gather(axis, &index)));
            vec![target, None, values]
        }
        ScatterOp::Mul => product(axis, b),
        ScatterOp::Max | ScatterOp::Min => {
            let (x, v, out) = (b.value(0).without_autodiff(), b.value(2).without_autodiff(), b.output().without_autodiff());
            let target = b.wants(0).then(|| x.eq(&out).choose_or_zero(dy));
            let values = b.wants(2).then(|| {
                // The value won if it is the result and the target's own element is not.
                let won = v.eq(&out.gather(axis, &index)).and(&x.gather(axis, &index).ne(&v));
                last_writer(axis, &index, x.dims(), Some(&won)).choose_or_zero(&dy.gather(axis, &index))
            });
            vec![target, None, values]
        }
    }
}

/// Whether each value is the last one, of those that count, that was written to its place.
fn last_writer(axis: usize, index: &RawTensor, dims: &[usize], counts: Option<&RawTensor>) -> RawTensor {
    let number = index.cast(RawTensor::INDEX).position(index.all_axes()).with_constant(Add, 1.0);
    let number = match counts {
        Some(c) => c.choose_or_zero(&number),
        None => number,
    };
    let none = RawTensor::zeros(&index.device().without_autodiff(), dims, RawTensor::INDEX);
    let last = none.scatter(axis, index, &number, ScatterOp::Max).gather(axis, index);
    let is_last = number.eq(&last);
    match counts {
        Some(c) => is_last.and(c),
        None => is_last,
    }
}

/// Products: each factor's slope is the product of the others, also where factors are 0.
fn product(axis: usize, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    let (x, index, v) = (b.value(0), b.value(1), b.value(2));
    let dy = b.dy;
    let target = b.wants(0).then(|| dy.mul(&x.constant_like(1.0).scatter(axis, &index, &v, ScatterOp::Mul)));
    let values = b.wants(2).then(|| {
        let zero = v.untracked().with_constant(Eq, 0.0);
        let count = x.untracked().cast(RawTensor::INDEX).constant_like(0.0);
        let zeros = count.scatter(axis, &index, &zero.cast(RawTensor::INDEX), ScatterOp::Add).gather(axis, &index);
        let factors = v.fill_constant(&zero, 1.0);
        let rest = x.constant_like(1.0).scatter(axis, &index, &factors, ScatterOp::Mul).gather(axis, &index);
        // A zero factor sees the others if it is the only zero, any other factor sees them if there is no zero.
        let other_zeros = zeros.sub(&zero.cast(RawTensor::INDEX));
        let others = other_zeros.with_constant(Eq, 0.0).choose_or_zero(&rest.div(&factors));
        dy.mul(&x).gather(axis, &index).mul(&others)
    });
    vec![target, None, values]
}
