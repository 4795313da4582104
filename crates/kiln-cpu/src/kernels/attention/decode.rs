//! The forward pass for few rows: bound by reading keys and values once, so these are streamed and never packed.
use core::marker::PhantomData;

use super::rows::{Extra, Rule, scores};
use super::{Arena, Attention, Float, Stored, View};
use crate::contract::scratch::Scratch;
use crate::kernels::Frame;
use crate::kernels::element::{Element, Wide};
use crate::kernels::vector::{Body, vectorize};
use crate::math::{Arith, Real};

/// Keys of a block.
const KEYS: usize = 64;
/// Lanes of a dot product.
const LANES: usize = 32;

/// One row and one block of keys.
pub(super) struct Step<E> {
    query: *const E,
    width: usize,
    value_width: usize,
    /// First key, distance between keys and between their elements.
    key: (*const u8, isize, isize),
    value: (*const u8, isize, isize),
    keys: usize,
    extra: Extra<E>,
    rule: Rule<E>,
    max: *mut E,
    sum: *mut E,
    out: *mut E,
}

/// `sum x[i] y[i]` over adjacent wide `x` and strided `y`.
#[inline(always)]
unsafe fn dot<A: Arith, T: Element<Wide = E>, E: Float>(x: *const E, y: *const T, step: isize, n: usize) -> E {
    let zero = <E as Wide>::ZERO;
    // Without elements the pointers may be null.
    if n == 0 {
        return zero;
    }
    // SAFETY: the caller's promise: `n` elements on both sides.
    unsafe {
        if step != 1 {
            return (0..n).fold(zero, |sum, i| sum + *x.add(i) * (*y.wrapping_offset(i as isize * step)).widen());
        }
        let (x, y) = (core::slice::from_raw_parts(x, n), core::slice::from_raw_parts(y, n));
        let mut lanes = [zero; LANES];
        let (mut xs, mut ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
        for (x, y) in (&mut xs).zip(&mut ys) {
            for l in 0..LANES {
                lanes[l] = Real::fma::<A>(x[l], y[l].widen(), lanes[l]);
            }
        }
        let rest = xs.remainder().iter().zip(ys.remainder()).fold(zero, |sum, (x, y)| sum + *x * y.widen());
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                lanes[l] = lanes[l] + lanes[l + half];
            }
            half /= 2;
        }
        lanes[0] + rest
    }
}

/// Handles a step whose keys and values are stored as `T`.
///
/// # Safety
/// Operands and state have the extents given.
pub(super) unsafe fn step<T: Element<Wide = E>, E: Float>(step: Step<E>) {
    vectorize(Typed::<T, E>(step, PhantomData));
}

struct Typed<T, E>(Step<E>, PhantomData<T>);

impl<T: Element<Wide = E>, E: Float> Body for Typed<T, E> {
    type Out = ();
    const WIDE: bool = size_of::<E>() == 4;

    #[inline(always)]
    fn run<A: Arith>(self) {
        let (zero, step) = (<E as Wide>::ZERO, self.0);
        let mut weights = [zero; KEYS];
        let weights = &mut weights[..step.keys];
        // SAFETY: the maker's promise: operands and state have the extents given.
        unsafe {
            let (key, key_row, key_step) = step.key;
            for (j, w) in weights.iter_mut().enumerate() {
                *w = dot::<A, T, E>(step.query, key.cast::<T>().wrapping_offset(j as isize * key_row), key_step, step.width);
            }
            scores::<A, E>(weights, step.rule, &step.extra);
            let found = weights.iter().copied().fold(E::LOWEST, |m, x| if x > m { x } else { m });
            let (max, sum) = (&mut *step.max, &mut *step.sum);
            let new = if found > *max { found } else { *max };
            let shift = if new == E::LOWEST { zero } else { new };
            let keep = Real::exp::<A>(*max - shift);
            let mut total = zero;
            for w in weights.iter_mut() {
                *w = Real::exp::<A>(*w - shift);
                total = total + *w;
            }
            *sum = *sum * keep + total;
            *max = new;
            if step.value_width == 0 {
                return;
            }
            let out = core::slice::from_raw_parts_mut(step.out, step.value_width);
            if keep != <E as Wide>::ONE {
                out.iter_mut().for_each(|o| *o = *o * keep);
            }
            let (value, value_row, value_step) = step.value;
            for (j, w) in weights.iter().enumerate() {
                let v = value.cast::<T>().wrapping_offset(j as isize * value_row);
                if value_step == 1 {
                    for (o, v) in out.iter_mut().zip(core::slice::from_raw_parts(v, step.value_width)) {
                        *o = Real::fma::<A>(*w, v.widen(), *o);
                    }
                } else {
                    for (e, o) in out.iter_mut().enumerate() {
                        *o = Real::fma::<A>(*w, (*v.wrapping_offset(e as isize * value_step)).widen(), *o);
                    }
                }
            }
        }
    }
}

impl Attention {
    /// Elements of the state of one part of a line: maxima, sums, weighted values.
    pub(super) fn partial_output(&self) -> usize {
        self.rows * (2 + self.kernel.width[1])
    }

    /// Attention of all rows of a line over one part of the keys, into `partial` if there are several parts.
    ///
    /// # Safety
    /// As for [`crate::kernels::Prepared::run`]; `partial` has room for the state.
    pub(super) unsafe fn decode<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, line: usize, part: usize, partial: *mut E) {
        let k = &self.kernel;
        let [width, value_width] = k.width;
        let n = self.rows;
        let [q, key, value] = [0, 1, 2].map(|i| View::new(&k.operands[i], frame, stored.size));
        let line_width = KEYS.max(value_width);
        let held = Scratch::take(Arena::bytes::<E>(n * width) + Arena::bytes::<E>(self.partial_output()) + Arena::bytes::<E>(line_width));
        let mut arena = Arena { at: held.ptr() };
        let queries: *mut E = arena.take(n * width);
        let own: *mut E = arena.take(self.partial_output());
        // A row of a bias, or of values.
        let row: *mut E = arena.take(line_width);
        let state = if self.parts > 1 { partial } else { own };
        let keys = self.keys_of(part);
        // SAFETY: scratch and state have room; operands have the extents of the kernel.
        unsafe {
            let (max, sum, out) = (state, state.add(n), state.add(2 * n));
            for r in 0..n {
                let [b, h, t, _] = self.position(line, r);
                (stored.load)(q.at(&[b, h, t]), q.step(3), queries.add(r * width), width);
                *max.add(r) = E::LOWEST;
            }
            core::slice::from_raw_parts_mut(sum, n * (1 + value_width)).fill(<E as Wide>::ZERO);
            for first in keys.clone().step_by(KEYS) {
                let block = KEYS.min(keys.end - first);
                for r in 0..n {
                    let at = self.position(line, r);
                    let [b, _, t, g] = at;
                    let seen = self.visible(t).saturating_sub(first).min(block);
                    if seen == 0 {
                        continue;
                    }
                    (stored.step)(Step {
                        query: queries.add(r * width),
                        width,
                        value_width,
                        key: (key.at(&[b, g, first]).cast_const(), key.step(2), key.step(3)),
                        value: (value.at(&[b, g, first]).cast_const(), value.step(2), value.step(3)),
                        keys: seen,
                        extra: self.extra(stored, frame, at, first..first + seen, row),
                        rule: self.rule(),
                        max: max.add(r),
                        sum: sum.add(r),
                        out: out.add(r * value_width),
                    });
                }
            }
            for r in 0..n {
                let [b, _, t, g] = self.position(line, r);
                self.add_hidden(stored, &value, [b, g], self.visible(t).clamp(keys.start, keys.end)..keys.end, row, out.add(r * value_width));
            }
            if self.parts == 1 {
                for r in 0..n {
                    self.finish(stored, frame, self.position(line, r), *max.add(r), *sum.add(r), out.add(r * value_width));
                }
            }
        }
    }

    /// Puts the parts of a line together.
    ///
    /// # Safety
    /// As for [`Attention::decode`].
    pub(super) unsafe fn join<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, line: usize, all: &mut [E]) {
        let zero = <E as Wide>::ZERO;
        let (n, width, size) = (self.rows, self.kernel.width[1], self.partial_output());
        let (first, rest) = all.split_at_mut(size);
        for r in 0..n {
            let place = 2 * n + r * width;
            for other in rest.chunks_exact(size) {
                let new = if other[r] > first[r] { other[r] } else { first[r] };
                let shift = if new == E::LOWEST { zero } else { new };
                let weight = |max: E| <E as Real>::from_f64(libm::exp(Real::to_f64(max - shift)));
                let (mine, theirs) = (weight(first[r]), weight(other[r]));
                first[r] = new;
                first[n + r] = first[n + r] * mine + other[n + r] * theirs;
                for e in place..place + width {
                    first[e] = first[e] * mine + other[e] * theirs;
                }
            }
            // SAFETY: the first part's state holds the whole row now.
            unsafe { self.finish(stored, frame, self.position(line, r), first[r], first[n + r], first.as_mut_ptr().add(place)) };
        }
    }
}
