//! The forward pass for many rows.
use core::ops::Range;

use super::rows::{Extra, Rule, Running, Softmax};
use super::{Arena, Attention, Float, Matrix, Product, Rows, Stored, View};
use crate::contract::operand::copy;
use crate::contract::pack::Copy;
use crate::contract::scratch::Scratch;
use crate::kernels::Frame;
use crate::kernels::element::Wide;
use crate::kernels::vector::vectorize;
use crate::math::Real;

/// Keys of a tile, about.
const KEYS: usize = 128;

impl Attention {
    /// The rule of the scores.
    pub(super) fn rule<E: Float>(&self) -> Rule<E> {
        let number = |bits: u64| <E as Real>::from_f64(f64::from_bits(bits));
        Rule { scale: number(self.kernel.attrs.scale), cap: number(self.kernel.attrs.softcap) }
    }

    /// Bias and mask of a query for some keys. A bias that is not stored as what is computed in is converted into `held`.
    ///
    /// # Safety
    /// As for [`crate::kernels::Prepared::run`]; `held` has room for the keys.
    pub(super) unsafe fn extra<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, at: [usize; 4], keys: Range<usize>, held: *mut E) -> Extra<E> {
        let k = &self.kernel;
        let at = [at[0], at[1], at[2], keys.start];
        let bias = k.bias.as_ref().map(|o| {
            let view = View::new(o, frame, stored.size);
            if stored.plain {
                return (view.at(&at).cast::<E>().cast_const(), view.step(3));
            }
            // SAFETY: the bias has an element for each key.
            unsafe { (stored.load)(view.at(&at), view.step(3), held, keys.len()) };
            (held.cast_const(), 1)
        });
        Extra { bias, mask: k.mask.as_ref().map(|o| View::new(o, frame, 1)).map(|v| (v.at(&at).cast_const(), v.step(3))) }
    }

    /// Writes a finished row: weighted values over their sum, and the log of the sum.
    ///
    /// # Safety
    /// `out` has the width of a value; it is scaled where it lies.
    pub(super) unsafe fn finish<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, at: [usize; 4], max: E, sum: E, out: *mut E) {
        let zero = <E as Wide>::ZERO;
        let [b, h, t, _] = at;
        // A fully masked row has weights of zero and gives 0, where its values are finite.
        let by = if sum == zero { zero } else { <E as Wide>::ONE / sum };
        // SAFETY: the results have a row for each query.
        unsafe {
            if let Some(o) = self.kernel.results.first().and_then(Option::as_ref) {
                let view = View::new(o, frame, stored.size);
                for e in 0..self.kernel.width[1] {
                    *out.add(e) = *out.add(e) * by;
                }
                (stored.store)(out, view.at(&[b, h, t]), view.step(3), self.kernel.width[1]);
            }
            if let Some(o) = self.kernel.results.get(1).and_then(Option::as_ref) {
                let view = View::new(o, frame, size_of::<E>() as isize);
                let log = <E as Real>::from_f64(libm::log(Real::to_f64(sum)));
                *view.at(&[b, h, t]).cast::<E>() = if sum == zero { E::LOWEST } else { max + log };
            }
        }
    }

    /// Attention of some rows of a line.
    ///
    /// # Safety
    /// As for [`crate::kernels::Prepared::run`].
    pub(super) unsafe fn forward<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, line: usize, rows: Range<usize>) {
        let k = &self.kernel;
        let [width, value_width] = k.width;
        let product = Product::<E>::new();
        let (mr, nr) = (product.rows(), product.cols());
        let lanes = E::kernels().lanes;
        let tile = (KEYS / nr).max(1) * nr;
        let padded = value_width.next_multiple_of(lanes.max(1));
        let n = rows.len();
        let [q, key, value] = [0, 1, 2].map(|i| View::new(&k.operands[i], frame, stored.size));
        let [b, _, _, g] = self.position(line, rows.start);
        // Values are read where they lie if their rows are whole registers.
        let direct = stored.plain && value.step(3) == 1 && padded == value_width;

        let bytes = Arena::bytes::<E>(n * width)
            + 2 * Arena::bytes::<E>(tile * width)
            + Arena::bytes::<E>(tile * padded)
            + Arena::bytes::<E>(tile)
            + Arena::bytes::<E>(mr * tile)
            + Arena::bytes::<E>(n * padded + nr)
            + 2 * Arena::bytes::<E>(n);
        let held = Scratch::take(bytes);
        let mut arena = Arena { at: held.ptr() };
        let queries: *mut E = arena.take(n * width);
        let (packed, plain): (*mut E, *mut E) = (arena.take(tile * width), arena.take(tile * width));
        let values: *mut E = arena.take(tile * padded);
        let bias: *mut E = arena.take(tile);
        let block: *mut E = arena.take(mr * tile);
        let out: *mut E = arena.take(n * padded + nr);
        let (max, sum): (*mut E, *mut E) = (arena.take(n), arena.take(n));

        // SAFETY: the scratch was sized for these arrays; operands have the extents of the kernel.
        unsafe {
            let (mut last, mut least) = (0, k.length[1]);
            for i in 0..n {
                let [b, h, t, _] = self.position(line, rows.start + i);
                (stored.load)(q.at(&[b, h, t]), q.step(3), queries.add(i * width), width);
                *max.add(i) = E::LOWEST;
                *sum.add(i) = <E as Wide>::ZERO;
                last = last.max(self.visible(t));
                least = least.min(self.visible(t));
            }
            core::slice::from_raw_parts_mut(out, n * padded).fill(<E as Wide>::ZERO);
            for first in (0..last).step_by(tile) {
                let keys = tile.min(last - first);
                let from = key.at(&[b, g, first]);
                let mut job = Copy {
                    src: from.cast::<E>().cast_const(),
                    outer: key.step(2),
                    inner: key.step(3),
                    len: keys,
                    k: width,
                    dst: packed,
                    width: nr,
                    panel: nr * width,
                    lead: 0,
                };
                if !stored.plain {
                    for j in 0..keys {
                        (stored.load)(key.at(&[b, g, first + j]), key.step(3), plain.add(j * width), width);
                    }
                    job = Copy { src: plain, outer: width as isize, inner: 1, ..job };
                }
                copy(E::kernels(), &job);
                let (v, v_row) = if direct {
                    (value.at(&[b, g, first]).cast::<E>().cast_const(), value.step(2))
                } else {
                    for j in 0..keys {
                        (stored.load)(value.at(&[b, g, first + j]), value.step(3), values.add(j * padded), value_width);
                    }
                    (values.cast_const(), padded as isize)
                };
                for i in (0..n).step_by(mr) {
                    let rows_here = mr.min(n - i);
                    let row = |r: usize| self.position(line, rows.start + i + r);
                    let seen = |r: usize| self.visible(row(r)[2]).saturating_sub(first);
                    let cols = (0..rows_here).map(seen).max().unwrap_or(0).min(keys);
                    if cols == 0 {
                        continue;
                    }
                    let a = Matrix { ptr: queries.add(i * width).cast_const(), row: width as isize, col: 1 };
                    let b = Matrix { ptr: packed.cast_const(), row: (nr * width) as isize, col: 1 };
                    product.packed(rows_here, cols, width, a, b, block, tile, false);
                    vectorize(Softmax::<E> {
                        block,
                        pitch: tile,
                        rows: rows_here,
                        cols,
                        visible: &seen,
                        extra: &|r| self.extra(stored, frame, row(r), first..first + cols, bias),
                        rule: self.rule(),
                        running: Running { max: max.add(i), sum: sum.add(i), out: out.add(i * padded), out_row: padded, width: value_width },
                    });
                    let a = Matrix { ptr: block.cast_const(), row: tile as isize, col: 1 };
                    let b = Matrix { ptr: v, row: v_row, col: 1 };
                    product.plain(rows_here, value_width, cols, a, b, out.add(i * padded), padded, true);
                }
            }
            // Values that no row of a tile saw have weights of zero, which matters where they are not finite.
            let hidden = Rows {
                from: value.at(&[b, g, least]).cast_const(),
                row: value.step(2),
                step: value.step(3),
                rows: k.length[1] - least,
                width: value_width,
            };
            if !(stored.finite)(hidden) {
                for i in 0..n {
                    let seen = self.visible(self.position(line, rows.start + i)[2]);
                    self.add_hidden(stored, &value, [b, g], seen..k.length[1], values, out.add(i * padded));
                }
            }
            for i in 0..n {
                self.finish(stored, frame, self.position(line, rows.start + i), *max.add(i), *sum.add(i), out.add(i * padded));
            }
        }
    }
}
