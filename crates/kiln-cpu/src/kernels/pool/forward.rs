//! Forward pools of one plane.
use kiln_ir::kernel::PoolKind;

use super::{Plane, Pools};
use crate::kernels::element::Wide;
use crate::kernels::vector::Body;
use crate::math::Arith;

/// The pool of one plane.
pub(super) struct Forward<'a, W> {
    pub pool: &'a Pools,
    pub plane: Plane<W>,
}

/// A row of windows: its depth and height.
type Row = [usize; 2];

impl<W: Wide> Body for Forward<'_, W> {
    type Out = ();
    const WIDE: bool = size_of::<W>() == 4;

    #[inline(always)]
    fn run<A: Arith>(self) {
        match (self.pool.kernel.kind == PoolKind::Avg, self.plane.indices.is_some()) {
            (true, _) => self.all::<true, false>(),
            (false, true) => self.all::<false, true>(),
            (false, false) => self.all::<false, false>(),
        }
    }
}

impl<W: Wide> Forward<'_, W> {
    #[inline(always)]
    fn all<const MEAN: bool, const WANTED: bool>(&self) {
        let [depth, height, _] = &self.pool.axes;
        for d in 0..depth.out {
            for h in 0..height.out {
                // SAFETY: rows and planes have the sizes of the kernel.
                unsafe { self.windows::<MEAN, WANTED>([d, h]) }
            }
        }
    }

    /// Calls `f` with the first element of every input row that a row of windows meets.
    #[inline(always)]
    fn lines(&self, [d, h]: Row, mut f: impl FnMut(usize)) {
        let [depth, height, width] = &self.pool.axes;
        let ((d0, d1), (h0, h1)) = (depth.inside[d], height.inside[h]);
        for kd in d0..d1 {
            for kh in h0..h1 {
                f((depth.place(d, kd as usize) * height.size + height.place(h, kh as usize)) * width.size);
            }
        }
    }

    /// Elements of the window that count, width aside.
    #[inline(always)]
    fn count(&self, [d, h]: Row) -> usize {
        self.pool.axes[0].counts[d] as usize * self.pool.axes[1].counts[h] as usize
    }

    /// The first result of a row.
    #[inline(always)]
    fn first(&self, [d, h]: Row) -> usize {
        (d * self.pool.axes[1].out + h) * self.pool.axes[2].out
    }

    /// A row of windows.
    #[inline(always)]
    unsafe fn windows<const MEAN: bool, const WANTED: bool>(&self, at: Row) {
        let width = &self.pool.axes[2];
        let n = width.out;
        // SAFETY: the rows have room for every window; `windows` keeps places inside the input.
        unsafe {
            let row = core::slice::from_raw_parts_mut(self.plane.row, n);
            let places = core::slice::from_raw_parts_mut(self.plane.places, n);
            row.fill(if MEAN { W::ZERO } else { W::LOWEST });
            places.fill(-1);
            self.lines(at, |line| {
                for (kw, &(w0, w1)) in width.windows.iter().enumerate() {
                    if w0 == w1 {
                        continue;
                    }
                    let (w0, w1) = (w0 as usize, w1 as usize);
                    let first = line + width.place(w0, kw);
                    let (row, places) = (&mut row[w0..w1], &mut places[w0..w1]);
                    let x = self.plane.from.add(first);
                    macro_rules! walk {
                        ($step:expr) => {
                            if MEAN {
                                for (i, r) in row.iter_mut().enumerate() {
                                    *r = r.add(*x.add(i * $step));
                                }
                            } else if WANTED {
                                for (i, (r, p)) in row.iter_mut().zip(places.iter_mut()).enumerate() {
                                    let v = *x.add(i * $step);
                                    let take = v.beats(*r) | (*p < 0);
                                    *r = if take { v } else { *r };
                                    *p = if take { first as i32 + (i * $step) as i32 } else { *p };
                                }
                            } else {
                                for (i, r) in row.iter_mut().enumerate() {
                                    *r = r.larger(*x.add(i * $step));
                                }
                            }
                        };
                    }
                    match width.stride {
                        1 => walk!(1),
                        2 => walk!(2),
                        s => walk!(s),
                    }
                }
            });
            let out = self.first(at);
            let y = core::slice::from_raw_parts_mut(self.plane.to.add(out), n);
            if MEAN {
                let count = self.count(at);
                for (w, (y, r)) in y.iter_mut().zip(row.iter()).enumerate() {
                    *y = r.over(count * width.counts[w] as usize);
                }
                return;
            }
            for (y, r) in y.iter_mut().zip(row.iter()) {
                *y = *r;
            }
            if let Some(indices) = self.plane.indices.filter(|_| WANTED) {
                for (i, p) in places.iter().enumerate() {
                    *indices.add(out + i) = *p as i64;
                }
            }
        }
    }
}
