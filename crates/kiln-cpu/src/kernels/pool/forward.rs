//! Forward pools of one plane.
use kiln_ir::kernel::PoolKind;

use super::Pools;
use crate::kernels::element::{Element, Wide};
use crate::kernels::vector::Body;
use crate::math::Arith;

/// One plane, whose elements are fewer than 2^31.
pub(super) struct Forward<'a, T: Element> {
    pub pool: &'a Pools,
    pub x: *const T,
    pub y: *mut T,
    pub indices: Option<*mut i64>,
    /// A row of results.
    pub row: *mut T::Wide,
    /// A row of indices.
    pub places: *mut i32,
}

/// A row of windows: its depth and height.
type Row = [usize; 2];

impl<T: Element> Body for Forward<'_, T> {
    type Out = ();
    const WIDE: bool = T::PLAIN && size_of::<T>() == 4;

    #[inline(always)]
    fn run<A: Arith>(self) {
        match (self.pool.kernel.kind == PoolKind::Avg, self.indices.is_some()) {
            (true, _) => self.plane::<true, false>(),
            (false, true) => self.plane::<false, true>(),
            (false, false) => self.plane::<false, false>(),
        }
    }
}

impl<T: Element> Forward<'_, T> {
    #[inline(always)]
    fn plane<const MEAN: bool, const WANTED: bool>(&self) {
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
            let row = core::slice::from_raw_parts_mut(self.row, n);
            let places = core::slice::from_raw_parts_mut(self.places, n);
            row.fill(if MEAN { T::Wide::ZERO } else { T::Wide::LOWEST });
            places.fill(-1);
            self.lines(at, |line| {
                for (kw, &(w0, w1)) in width.windows.iter().enumerate() {
                    if w0 == w1 {
                        continue;
                    }
                    let (w0, w1) = (w0 as usize, w1 as usize);
                    let first = line + width.place(w0, kw);
                    let (row, places) = (&mut row[w0..w1], &mut places[w0..w1]);
                    let x = self.x.add(first);
                    macro_rules! walk {
                        ($step:expr) => {
                            if MEAN {
                                for (i, r) in row.iter_mut().enumerate() {
                                    *r = r.add((*x.add(i * $step)).widen());
                                }
                            } else if WANTED {
                                for (i, (r, p)) in row.iter_mut().zip(places.iter_mut()).enumerate() {
                                    let v = (*x.add(i * $step)).widen();
                                    let take = v.beats(*r) | (*p < 0);
                                    *r = if take { v } else { *r };
                                    *p = if take { first as i32 + (i * $step) as i32 } else { *p };
                                }
                            } else {
                                for (i, r) in row.iter_mut().enumerate() {
                                    *r = r.larger((*x.add(i * $step)).widen());
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
            let y = core::slice::from_raw_parts_mut(self.y.add(out), n);
            if MEAN {
                let count = self.count(at);
                for (w, (y, r)) in y.iter_mut().zip(row.iter()).enumerate() {
                    *y = T::narrow(r.over(count * width.counts[w] as usize));
                }
                return;
            }
            for (y, r) in y.iter_mut().zip(row.iter()) {
                *y = T::narrow(*r);
            }
            if let Some(indices) = self.indices.filter(|_| WANTED) {
                for (i, p) in places.iter().enumerate() {
                    *indices.add(out + i) = *p as i64;
                }
            }
        }
    }
}
