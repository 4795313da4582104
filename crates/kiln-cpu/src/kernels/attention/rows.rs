//! Row operations of attention: from products to scores, the running softmax, and the derivative of the scores.
use super::Float;
use crate::kernels::element::Wide;
use crate::kernels::vector::Body;
use crate::math::{Arith, Real};

/// Lanes of a reduction.
const LANES: usize = 16;

/// What turns a product of query and key into a score.
#[derive(Clone, Copy)]
pub(super) struct Rule<E> {
    pub scale: E,
    /// Soft cap, 0 for none.
    pub cap: E,
}

/// Additive bias and mask along a row of scores.
#[derive(Clone, Copy)]
pub(super) struct Extra<E> {
    pub bias: Option<(*const E, isize)>,
    pub mask: Option<(*const u8, isize)>,
}

/// Turns products into scores, in place.
///
/// # Safety
/// Bias and mask have an element for each of the row's.
#[inline(always)]
pub(super) unsafe fn scores<A: Arith, E: Float>(row: &mut [E], rule: Rule<E>, extra: &Extra<E>) {
    let zero = <E as Wide>::ZERO;
    if rule.cap == zero {
        for x in row.iter_mut() {
            *x = *x * rule.scale;
        }
    } else {
        let by = rule.scale / rule.cap;
        for x in row.iter_mut() {
            *x = rule.cap * Real::tanh::<A>(*x * by);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { extras(row, extra) }
}

/// Adds the bias and hides what the mask hides.
///
/// # Safety
/// As for [`scores`].
#[inline(always)]
unsafe fn extras<E: Float>(row: &mut [E], extra: &Extra<E>) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some((bias, step)) = extra.bias {
            if step == 1 {
                row.iter_mut().enumerate().for_each(|(i, x)| *x = *x + *bias.add(i));
            } else {
                row.iter_mut().enumerate().for_each(|(i, x)| *x = *x + *bias.wrapping_offset(i as isize * step));
            }
        }
        if let Some((mask, step)) = extra.mask {
            let hide = |x: &mut E, m: u8| *x = if m != 0 { E::LOWEST } else { *x };
            if step == 1 {
                row.iter_mut().enumerate().for_each(|(i, x)| hide(x, *mask.add(i)));
            } else {
                row.iter_mut().enumerate().for_each(|(i, x)| hide(x, *mask.wrapping_offset(i as isize * step)));
            }
        }
    }
}

/// Largest element of a row, NaN aside.
#[inline(always)]
fn largest<E: Float>(row: &[E]) -> E {
    let pick = |m: E, x: E| if x > m { x } else { m };
    let mut lanes = [E::LOWEST; LANES];
    let mut chunks = row.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (m, x) in lanes.iter_mut().zip(chunk) {
            *m = pick(*m, *x);
        }
    }
    let rest = chunks.remainder().iter().copied().fold(E::LOWEST, pick);
    lanes.into_iter().fold(rest, pick)
}

/// Replaces every element by `exp(x - shift)`; the sum of them.
#[inline(always)]
fn exponentials<A: Arith, E: Float>(row: &mut [E], shift: E) -> E {
    let zero = <E as Wide>::ZERO;
    let mut lanes = [zero; LANES];
    let mut chunks = row.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (sum, x) in lanes.iter_mut().zip(chunk) {
            *x = Real::exp::<A>(*x - shift);
            *sum = *sum + *x;
        }
    }
    let mut sum = zero;
    for x in chunks.into_remainder() {
        *x = Real::exp::<A>(*x - shift);
        sum = sum + *x;
    }
    lanes.into_iter().fold(sum, |a, b| a + b)
}

/// The running softmax of some rows: maximum, sum and weighted values so far.
pub(super) struct Running<E> {
    pub max: *mut E,
    pub sum: *mut E,
    /// Weighted values, `out_row` apart.
    pub out: *mut E,
    pub out_row: usize,
    pub width: usize,
}

/// Turns a block of products into weights relative to the new maximum, and rescales what was summed before.
pub(super) struct Softmax<'a, E> {
    /// Products, then weights: rows `pitch` apart.
    pub block: *mut E,
    pub pitch: usize,
    pub rows: usize,
    pub cols: usize,
    /// Keys that each row sees, counted from the block's first.
    pub visible: &'a dyn Fn(usize) -> usize,
    /// Bias and mask of each row from the block's first key.
    pub extra: &'a dyn Fn(usize) -> Extra<E>,
    pub rule: Rule<E>,
    pub running: Running<E>,
}

impl<E: Float> Body for Softmax<'_, E> {
    type Out = ();
    const WIDE: bool = size_of::<E>() == 4;

    #[inline(always)]
    fn run<A: Arith>(self) {
        let zero = <E as Wide>::ZERO;
        for r in 0..self.rows {
            let seen = (self.visible)(r).min(self.cols);
            // SAFETY: the block and the running state have these rows; bias and mask have the keys of the block.
            unsafe {
                let all = core::slice::from_raw_parts_mut(self.block.add(r * self.pitch), self.cols);
                let (row, hidden) = all.split_at_mut(seen);
                hidden.fill(zero);
                scores::<A, E>(row, self.rule, &(self.extra)(r));
                let (max, sum) = (&mut *self.running.max.add(r), &mut *self.running.sum.add(r));
                let found = largest(row);
                let new = if found > *max { found } else { *max };
                // While everything is masked any finite shift will do: the weights are zero (or NaN, as the scores are).
                let shift = if new == E::LOWEST { zero } else { new };
                let keep = Real::exp::<A>(*max - shift);
                *sum = *sum * keep + exponentials::<A, E>(row, shift);
                *max = new;
                if keep != <E as Wide>::ONE {
                    let out = core::slice::from_raw_parts_mut(self.running.out.add(r * self.running.out_row), self.running.width);
                    out.iter_mut().for_each(|o| *o = *o * keep);
                }
            }
        }
    }
}

/// Turns products of queries and keys into probabilities, and products of output gradients and values into derivatives of the products.
pub(super) struct Derivative<'a, E> {
    /// Products of queries and keys, then probabilities.
    pub p: *mut E,
    /// Products of output gradients and values, then derivatives.
    pub ds: *mut E,
    pub pitch: usize,
    pub rows: usize,
    pub cols: usize,
    pub visible: &'a dyn Fn(usize) -> usize,
    pub extra: &'a dyn Fn(usize) -> Extra<E>,
    pub rule: Rule<E>,
    /// Log of the row sums.
    pub lse: *const E,
    /// Sums of output times output gradient.
    pub delta: *const E,
}

impl<E: Float> Body for Derivative<'_, E> {
    type Out = ();
    const WIDE: bool = size_of::<E>() == 4;

    #[inline(always)]
    fn run<A: Arith>(self) {
        let (zero, one) = (<E as Wide>::ZERO, <E as Wide>::ONE);
        for r in 0..self.rows {
            let seen = (self.visible)(r).min(self.cols);
            // SAFETY: the blocks have these rows; bias and mask have the keys of the block.
            unsafe {
                let p = core::slice::from_raw_parts_mut(self.p.add(r * self.pitch), self.cols);
                let ds = core::slice::from_raw_parts_mut(self.ds.add(r * self.pitch), self.cols);
                p[seen..].fill(zero);
                ds[seen..].fill(zero);
                let (p, ds) = (&mut p[..seen], &mut ds[..seen]);
                let (lse, delta) = (*self.lse.add(r), *self.delta.add(r));
                if lse == E::LOWEST {
                    // A fully masked row is 0 whatever its operands are.
                    p.fill(zero);
                    ds.fill(zero);
                    continue;
                }
                let extra = (self.extra)(r);
                if self.rule.cap == zero {
                    scores::<A, E>(p, self.rule, &extra);
                    for (p, ds) in p.iter_mut().zip(ds.iter_mut()) {
                        *p = Real::exp::<A>(*p - lse);
                        *ds = *p * (*ds - delta) * self.rule.scale;
                    }
                } else {
                    let by = self.rule.scale / self.rule.cap;
                    for (p, ds) in p.iter_mut().zip(ds.iter_mut()) {
                        let t = Real::tanh::<A>(*p * by);
                        *p = self.rule.cap * t;
                        *ds = (*ds - delta) * self.rule.scale * (one - t * t);
                    }
                    extras(p, &extra);
                    for (p, ds) in p.iter_mut().zip(ds.iter_mut()) {
                        *p = Real::exp::<A>(*p - lse);
                        *ds = *ds * *p;
                    }
                }
            }
        }
    }
}
