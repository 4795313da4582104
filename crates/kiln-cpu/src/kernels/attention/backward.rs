//! The backward pass: gradients of queries, keys and values from recomputed probabilities.
use super::rows::Derivative;
use super::{Arena, Attention, Float, Matrix, Product, Stored, View};
use crate::contract::operand::copy;
use crate::contract::pack::Copy;
use crate::contract::scratch::Scratch;
use crate::kernels::Frame;
use crate::kernels::element::Wide;
use crate::kernels::vector::vectorize;

/// Keys of a tile, about.
const KEYS: usize = 64;

impl Attention {
    /// Elements of a line's query gradient.
    pub(super) fn partial_gradient(&self) -> usize {
        self.rows * self.kernel.width[0]
    }

    /// Gradients of one line over one part of the keys. The query gradient goes to `partial` if there are several parts.
    ///
    /// # Safety
    /// As for [`crate::kernels::Prepared::run`]; `partial` has room for it.
    pub(super) unsafe fn backward<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, line: usize, part: usize, partial: *mut E) {
        let k = &self.kernel;
        let [width, value_width] = k.width;
        let zero = <E as Wide>::ZERO;
        let product = Product::<E>::new();
        let (mr, nr, lanes) = (product.rows(), product.cols(), E::kernels().lanes.max(1));
        let tile = (KEYS / nr).max(1) * nr;
        let (qw, vw) = (width.next_multiple_of(lanes), value_width.next_multiple_of(lanes));
        let n = self.rows;
        let row_block = (4 * mr).min(n.next_multiple_of(mr)).max(mr);
        let [q, key, value, out, dout] = [0, 1, 2, 3, 5].map(|i| View::new(&k.operands[i], frame, stored.size));
        let lse = View::new(&k.operands[4], frame, size_of::<E>() as isize);
        let [b, _, _, g] = self.position(line, 0);

        let bytes = 2 * Arena::bytes::<E>(n * qw)
            + Arena::bytes::<E>(n * vw)
            + 2 * Arena::bytes::<E>(n)
            + 2 * Arena::bytes::<E>(tile * qw + nr)
            + 2 * Arena::bytes::<E>(tile * vw + nr)
            + Arena::bytes::<E>(tile * width)
            + Arena::bytes::<E>(tile * value_width)
            + Arena::bytes::<E>(tile.max(value_width))
            + 2 * Arena::bytes::<E>(row_block * tile);
        let held = Scratch::take(bytes);
        let mut arena = Arena { at: held.ptr() };
        let (queries, dq): (*mut E, *mut E) = (arena.take(n * qw), arena.take(n * qw));
        let douts: *mut E = arena.take(n * vw);
        let (logs, delta): (*mut E, *mut E) = (arena.take(n), arena.take(n));
        let (keys, dk): (*mut E, *mut E) = (arena.take(tile * qw + nr), arena.take(tile * qw + nr));
        let (values, dv): (*mut E, *mut E) = (arena.take(tile * vw + nr), arena.take(tile * vw + nr));
        let keys_packed: *mut E = arena.take(tile * width);
        let values_packed: *mut E = arena.take(tile * value_width);
        // A row of results, and later of a bias.
        let row: *mut E = arena.take(tile.max(value_width));
        let (p, ds): (*mut E, *mut E) = (arena.take(row_block * tile), arena.take(row_block * tile));

        // SAFETY: the scratch was sized for these arrays; operands and results have the extents of the kernel.
        unsafe {
            let clear = |x: *mut E, len: usize| core::slice::from_raw_parts_mut(x, len).fill(zero);
            for r in 0..n {
                let [b, h, t, _] = self.position(line, r);
                (stored.load)(q.at(&[b, h, t]), q.step(3), queries.add(r * qw), width);
                (stored.load)(dout.at(&[b, h, t]), dout.step(3), douts.add(r * vw), value_width);
                *logs.add(r) = *lse.at(&[b, h, t]).cast::<E>();
                (stored.load)(out.at(&[b, h, t]), out.step(3), row, value_width);
                let weigh = |sum: E, e: usize| sum + *row.add(e) * *douts.add(r * vw + e);
                *delta.add(r) = (0..value_width).fold(zero, weigh);
            }
            clear(dq, n * qw);
            let range = self.keys_of(part);
            for first in range.clone().step_by(tile) {
                let count = tile.min(range.end - first);
                for j in 0..count {
                    (stored.load)(key.at(&[b, g, first + j]), key.step(3), keys.add(j * qw), width);
                    (stored.load)(value.at(&[b, g, first + j]), value.step(3), values.add(j * vw), value_width);
                }
                let pack = |src: *mut E, pitch: usize, k: usize, dst: *mut E| {
                    copy(
                        E::kernels(),
                        &Copy { src: src.cast_const(), outer: pitch as isize, inner: 1, len: count, k, dst, width: nr, panel: nr * k, lead: 0 },
                    );
                };
                pack(keys, qw, width, keys_packed);
                pack(values, vw, value_width, values_packed);
                clear(dk, tile * qw);
                clear(dv, tile * vw);
                for i in (0..n).step_by(row_block) {
                    let rows = row_block.min(n - i);
                    let at = |r: usize| self.position(line, i + r);
                    let seen = |r: usize| self.visible(at(r)[2]).saturating_sub(first);
                    let cols = (0..rows).map(seen).max().unwrap_or(0).min(count);
                    if cols == 0 {
                        continue;
                    }
                    let matrix = |ptr: *mut E, row: usize, col: usize| Matrix { ptr: ptr.cast_const(), row: row as isize, col: col as isize };
                    let (q_rows, d_rows) = (queries.add(i * qw), douts.add(i * vw));
                    product.packed(rows, cols, width, matrix(q_rows, qw, 1), matrix(keys_packed, nr * width, 1), p, tile, false);
                    product.packed(rows, cols, value_width, matrix(d_rows, vw, 1), matrix(values_packed, nr * value_width, 1), ds, tile, false);
                    vectorize(Derivative::<E> {
                        p,
                        ds,
                        pitch: tile,
                        rows,
                        cols,
                        visible: &seen,
                        extra: &|r| self.extra(stored, frame, at(r), first..first + cols, row),
                        rule: self.rule(),
                        lse: logs.add(i),
                        delta: delta.add(i),
                    });
                    // Transposed left operands: keys are rows, queries are summed.
                    product.plain(cols, value_width, rows, matrix(p, 1, tile), matrix(d_rows, vw, 1), dv, vw, true);
                    product.plain(cols, width, rows, matrix(ds, 1, tile), matrix(q_rows, qw, 1), dk, qw, true);
                    product.plain(rows, width, cols, matrix(ds, tile, 1), matrix(keys, qw, 1), dq.add(i * qw), qw, true);
                }
                for j in 0..count {
                    self.store_row(stored, frame, 1, [b, g, first + j], dk.add(j * qw), width);
                    self.store_row(stored, frame, 2, [b, g, first + j], dv.add(j * vw), value_width);
                }
            }
            for r in 0..n {
                if self.parts > 1 {
                    partial.add(r * width).copy_from_nonoverlapping(dq.add(r * qw), width);
                } else {
                    let [b, h, t, _] = self.position(line, r);
                    self.store_row(stored, frame, 0, [b, h, t], dq.add(r * qw), width);
                }
            }
        }
    }

    /// Writes a row of result `which`, if it is wanted.
    unsafe fn store_row<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, which: usize, at: [usize; 3], from: *const E, n: usize) {
        if let Some(o) = self.kernel.results.get(which).and_then(Option::as_ref) {
            let view = View::new(o, frame, stored.size);
            // SAFETY: the result has a row at these coordinates.
            unsafe { (stored.store)(from, view.at(&at), view.step(3), n) };
        }
    }

    /// Adds the query gradients of a line's parts.
    ///
    /// # Safety
    /// As for [`Attention::backward`].
    pub(super) unsafe fn join_gradient<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, line: usize, all: &mut [E]) {
        let (first, rest) = all.split_at_mut(self.partial_gradient());
        for other in rest.chunks_exact(first.len().max(1)) {
            first.iter_mut().zip(other).for_each(|(x, y)| *x = *x + *y);
        }
        let width = self.kernel.width[0];
        for r in 0..self.rows {
            let [b, h, t, _] = self.position(line, r);
            // SAFETY: as the caller's.
            unsafe { self.store_row(stored, frame, 0, [b, h, t], first.as_ptr().add(r * width), width) };
        }
    }
}
