//! Gradients of reductions and running reductions.
#![deny(clippy::wildcard_enum_match_arm)]
use kiln_ir::Elementwise::{Eq, Le};
use kiln_ir::{ReduceOp, ScanOp, ScatterOp};
use smallvec::SmallVec;

use super::Backward;
use crate::raw::{RawTensor, SliceRange, constant};

/// The gradient of a reduction.
pub(super) fn reduce(op: ReduceOp, axes: u32, b: &Backward<'_>) -> RawTensor {
    match op {
        ReduceOp::Sum => b.dy.expand(b.dims(0)),
        ReduceOp::Prod => prod(axes, b),
        ReduceOp::Max => first(axes, b, ReduceOp::ArgMax),
        ReduceOp::Min => first(axes, b, ReduceOp::ArgMin),
        ReduceOp::ArgMax | ReduceOp::ArgMin | ReduceOp::Any | ReduceOp::All => unreachable!("{} gives no float", op.name()),
    }
}

/// Everything to the first extremum.
fn first(axes: u32, b: &Backward<'_>, arg: ReduceOp) -> RawTensor {
    let x = b.value(0).without_autodiff();
    let chosen = x.position(axes).eq(&x.reduce(arg, axes));
    chosen.choose_or_zero(b.dy)
}

/// The product of all other elements, without division: what comes before times what comes after.
fn prod(axes: u32, b: &Backward<'_>) -> RawTensor {
    let x = b.value(0);
    // The reduced axes last, as one.
    let rank = x.rank();
    let reduced = |a: &usize| axes >> a & 1 == 1;
    let mut order: SmallVec<[usize; 8]> = (0..rank).filter(|a| !reduced(a)).collect();
    order.extend((0..rank).filter(reduced));
    let moved = x.permute(&order);
    let n = x.count(axes);
    let kept = x.numel().checked_div(n).unwrap_or(0);
    let rows = moved.reshape(&[kept, n]);
    if n == 0 || kept == 0 {
        return b.zeros(0);
    }
    let before = |r: &RawTensor| r.slice_fixed(&[SliceRange::new(1, 0, n - 1)]).pad_with(&[(0, 0), (1, 0)], constant(r.dtype(), 1.0)).cumprod(1);
    let others = before(&rows).mul(&before(&rows.flip(&[1])).flip(&[1]));
    let mut inverse: SmallVec<[usize; 8]> = SmallVec::from_elem(0, rank);
    for (i, a) in order.iter().enumerate() {
        inverse[*a] = i;
    }
    b.dy.mul(&others.reshape(moved.dims()).permute(&inverse))
}

/// The gradient of a running reduction.
pub(super) fn scan(op: ScanOp, axis: usize, b: &Backward<'_>) -> RawTensor {
    match op {
        ScanOp::Sum => b.dy.cumsum_back(axis),
        ScanOp::Prod => cumprod(axis, b),
        ScanOp::Max | ScanOp::Min => {
            // Each result came from the last place where the input reached it.
            let x = b.value(0).without_autodiff();
            let here = x.eq(&b.output().without_autodiff());
            let places = here.choose_or_zero(&x.position(1 << axis));
            b.zeros(0).scatter(axis, &places.cummax(axis), b.dy, ScatterOp::Add)
        }
    }
}

/// `dx[k] = sum over i >= k of dy[i] * y[i] / x[k]`, where the first zero is treated as a factor of its own: before it the formula holds, at it the other factors
/// remain, after it everything is 0.
fn cumprod(axis: usize, b: &Backward<'_>) -> RawTensor {
    let x = b.value(0);
    let zero = x.untracked().with_constant(Eq, 0.0);
    let zeros_so_far = zero.cast(RawTensor::INDEX).cumsum(axis);
    let first_zero = zero.and(&zeros_so_far.with_constant(Eq, 1.0));
    let before = zeros_so_far.with_constant(Le, 0.0);
    let y = x.cumprod(axis);
    let without = x.fill_constant(&first_zero, 1.0).cumprod(axis);
    let usual = b.dy.mul(&y).cumsum_back(axis).div(&x.fill_constant(&zero, 1.0));
    let at_zero = b.dy.mul(&without).cumsum_back(axis);
    before.choose_or_zero(&usual).mask_where(&first_zero, &at_zero)
}
