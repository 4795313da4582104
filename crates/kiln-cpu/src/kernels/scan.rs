//! Running reductions along one axis.
use core::ops::Range;

use kiln_ir::ScanOp;
use kiln_ir::kernel::ScanKernel;

use super::convert::{narrow_row, widen_row};
use super::element::{Element, Wide, with_element};
use super::vector::{Body, vectorize};
use super::{Frame, Prepared};
use crate::contract::scratch::Scratch;
use crate::contract::{ParallelFor, Serial};
use crate::math::Arith;
use crate::pool::Pool;

/// Columns of a block.
const SIDE: usize = 64;
/// Elements of a line scanned as one step: groups of [`GROUP`] have short chains of their own, so that only one addition a step waits for the last.
const STEP: usize = 16;
/// See [`STEP`].
const GROUP: usize = 4;
/// Elements of half types that are scanned at a time: some [`STEP`]s.
const ROW: usize = 32 * STEP;
/// Elements of a chunk of a long line, which is scanned in two passes.
const CHUNK: usize = 16 << 10;

/// A prepared scan.
pub(crate) struct Scan {
    kernel: ScanKernel,
}

impl Scan {
    /// Prepares a scan.
    pub fn new(kernel: &ScanKernel) -> Self {
        Scan { kernel: kernel.clone() }
    }

    /// Whether lines are so long and few that each is cut into chunks. Depends on sizes alone, so results do.
    fn is_long(&self) -> bool {
        let [outer, n, inner] = self.kernel.dims;
        inner == 1 && n >= 8 * CHUNK && outer < 16
    }

    /// Scans long lines: totals of the chunks, then every chunk from the total before it.
    unsafe fn long<T: Element>(&self, frame: &Frame<'_>, pool: &dyn ParallelFor) {
        let k = &self.kernel;
        let [outer, n, _] = k.dims;
        let chunks = n.div_ceil(CHUNK);
        let held = Scratch::take(outer * chunks * core::mem::size_of::<T::Wide>());
        let line = Line { op: k.op, x: frame.ptr::<T>(k.x), out: frame.ptr::<T>(k.out), totals: held.ptr::<T::Wide>() };
        let line = &line;
        let range = |chunk: usize| chunk % chunks * CHUNK..(chunk % chunks * CHUNK + CHUNK).min(n);
        // SAFETY: chunks are disjoint; the totals have room for all of them.
        unsafe {
            pool.run(outer * chunks, &|c| *line.totals.add(c) = line.scan(c / chunks * n, range(c), None, false));
            for o in 0..outer {
                for c in 1..chunks {
                    let here = line.totals.add(o * chunks + c);
                    *here = step(k.op, *here.sub(1), *here);
                }
            }
            pool.run(outer * chunks, &|c| {
                let before = if c % chunks == 0 { None } else { Some(*line.totals.add(c - 1)) };
                line.scan(c / chunks * n, range(c), before, true);
            });
        }
    }

    unsafe fn typed<T: Element>(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let k = &self.kernel;
        let [_, n, inner] = k.dims;
        if n == 0 {
            return;
        }
        let (x, out) = (frame.ptr::<T>(k.x).cast_const(), frame.ptr::<T>(k.out));
        for piece in pieces {
            if inner == 1 {
                // SAFETY: a piece is a line of both buffers.
                unsafe { adjacent(k.op, x.wrapping_add(piece * n), out.wrapping_add(piece * n), n, None, true) };
                continue;
            }
            let blocks = inner.div_ceil(SIDE);
            let col = piece % blocks * SIDE;
            vectorize(Block { op: k.op, x, out, first: piece / blocks * n * inner + col, n, along: inner, columns: SIDE.min(inner - col) });
        }
    }
}

/// One step of a scan.
#[inline(always)]
fn step<W: Wide>(op: ScanOp, acc: W, x: W) -> W {
    match op {
        ScanOp::Sum => acc.add(x),
        ScanOp::Prod => acc.mul(x),
        ScanOp::Max => acc.larger(x),
        ScanOp::Min => acc.smaller(x),
    }
}

/// A line cut into chunks.
struct Line<T: Element> {
    op: ScanOp,
    x: *const T,
    out: *mut T,
    totals: *mut T::Wide,
}

// SAFETY: chunks are disjoint parts of the line.
unsafe impl<T: Element> Sync for Line<T> {}

impl<T: Element> Line<T> {
    /// Scans a chunk of the line that begins at `first` from an earlier total, storing it or not; gives the last value.
    fn scan(&self, first: usize, range: Range<usize>, before: Option<T::Wide>, store: bool) -> T::Wide {
        let at = first + range.start;
        // SAFETY: the range lies in the line.
        unsafe { adjacent(self.op, self.x.wrapping_add(at), self.out.wrapping_add(at), range.len(), before, store) }
    }
}

/// Scans `n` adjacent elements from an earlier total if there is one, storing them or not; gives the last value. Half types go through rows of `f32`.
///
/// # Safety
/// Both sides have `n` elements.
unsafe fn adjacent<T: Element>(op: ScanOp, x: *const T, out: *mut T, n: usize, before: Option<T::Wide>, store: bool) -> T::Wide {
    if T::PLAIN {
        return vectorize(Adjacent { op, x: x.cast::<T::Wide>(), out: out.cast::<T::Wide>(), n, before, store });
    }
    let mut row = [T::Wide::ZERO; ROW];
    let row = row.as_mut_ptr();
    let mut total = before;
    for first in (0..n).step_by(ROW) {
        let len = ROW.min(n - first);
        // SAFETY: as the caller's; a row has room for `len` elements.
        unsafe {
            widen_row(x.add(first), 1, row, len);
            total = Some(vectorize(Adjacent { op, x: row.cast_const(), out: row, n: len, before: total, store }));
            if store {
                narrow_row(row.cast_const(), out.add(first), 1, len);
            }
        }
    }
    total.unwrap_or(T::Wide::ZERO)
}

/// Adjacent elements, scanned from an earlier total if there is one.
struct Adjacent<W> {
    op: ScanOp,
    x: *const W,
    out: *mut W,
    n: usize,
    before: Option<W>,
    store: bool,
}

impl<W: Wide> Body for Adjacent<W> {
    type Out = W;
    const WIDE: bool = false;
    const ONCE: bool = !W::FLOAT;

    #[inline(always)]
    fn run<A: Arith>(self) -> W {
        if !W::FLOAT {
            let op = self.op;
            return self.steps(|a, x| step(op, a, x));
        }
        match self.op {
            ScanOp::Sum => self.steps(|a, x| a.add(x)),
            ScanOp::Prod => self.steps(|a, x| a.mul(x)),
            ScanOp::Max => self.steps(|a, x| a.larger(x)),
            ScanOp::Min => self.steps(|a, x| a.smaller(x)),
        }
    }
}

impl<W: Wide> Adjacent<W> {
    #[inline(always)]
    fn steps(self, f: impl Fn(W, W) -> W) -> W {
        let mut acc = self.before;
        let mut i = 0;
        // SAFETY: the maker's promise: `n` elements on both sides.
        unsafe {
            // Sums of integers wait one cycle for each other, so that plain steps do.
            if W::FLOAT {
                while i + STEP <= self.n {
                    let mut v = [W::ZERO; STEP];
                    for (k, v) in v.iter_mut().enumerate() {
                        *v = *self.x.add(i + k);
                    }
                    for k in 1..GROUP {
                        for g in 0..STEP / GROUP {
                            v[g * GROUP + k] = f(v[g * GROUP + k - 1], v[g * GROUP + k]);
                        }
                    }
                    for g in 1..STEP / GROUP {
                        let total = v[g * GROUP - 1];
                        for k in 0..GROUP {
                            v[g * GROUP + k] = f(total, v[g * GROUP + k]);
                        }
                    }
                    if let Some(a) = acc {
                        for v in &mut v {
                            *v = f(a, *v);
                        }
                    }
                    acc = Some(v[STEP - 1]);
                    if self.store {
                        for (k, v) in v.iter().enumerate() {
                            *self.out.add(i + k) = *v;
                        }
                    }
                    i += STEP;
                }
            }
            while i < self.n {
                let x = *self.x.add(i);
                let v = acc.map_or(x, |a| f(a, x));
                if self.store {
                    *self.out.add(i) = v;
                }
                acc = Some(v);
                i += 1;
            }
        }
        acc.unwrap_or(W::ZERO)
    }
}

/// Columns scanned side by side: element `k` of column `c` is at `first + k * along + c`.
struct Block<T> {
    op: ScanOp,
    x: *const T,
    out: *mut T,
    first: usize,
    n: usize,
    along: usize,
    columns: usize,
}

impl<T: Element> Body for Block<T> {
    type Out = ();
    const WIDE: bool = false;
    const ONCE: bool = !T::FLOAT;

    #[inline(always)]
    fn run<A: Arith>(self) {
        if !T::FLOAT {
            let op = self.op;
            return self.rows(|a, x| step(op, a, x));
        }
        match self.op {
            ScanOp::Sum => self.rows(|a, x| a.add(x)),
            ScanOp::Prod => self.rows(|a, x| a.mul(x)),
            ScanOp::Max => self.rows(|a, x| a.larger(x)),
            ScanOp::Min => self.rows(|a, x| a.smaller(x)),
        }
    }
}

impl<T: Element> Block<T> {
    #[inline(always)]
    fn rows(self, f: impl Fn(T::Wide, T::Wide) -> T::Wide) {
        let mut acc = [T::Wide::ZERO; SIDE];
        let acc = &mut acc[..self.columns];
        for k in 0..self.n {
            let row = self.first + k * self.along;
            // SAFETY: the maker's promise: the block lies in both buffers.
            unsafe {
                let (x, out) = (self.x.add(row), self.out.add(row));
                if k == 0 {
                    for (c, a) in acc.iter_mut().enumerate() {
                        *a = (*x.add(c)).widen();
                        *out.add(c) = T::narrow(*a);
                    }
                } else {
                    for (c, a) in acc.iter_mut().enumerate() {
                        *a = f(*a, (*x.add(c)).widen());
                        *out.add(c) = T::narrow(*a);
                    }
                }
            }
        }
    }
}

impl Prepared for Scan {
    fn pieces(&self) -> usize {
        let [outer, _, inner] = self.kernel.dims;
        if self.is_long() {
            1
        } else if inner == 1 {
            outer
        } else {
            outer * inner.div_ceil(SIDE)
        }
    }

    fn work(&self) -> usize {
        // A chain of dependent steps costs more than its bytes.
        4 * self.kernel.dims.iter().product::<usize>() * self.kernel.dtype.size()
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        if self.is_long() {
            if !pieces.is_empty() {
                // SAFETY: as the caller's.
                unsafe { with_element!(self.kernel.dtype, T => self.long::<T>(frame, &Serial)) }
            }
            return;
        }
        // SAFETY: as the caller's.
        unsafe { with_element!(self.kernel.dtype, T => self.typed::<T>(frame, pieces)) }
    }

    fn is_alone(&self) -> bool {
        self.is_long()
    }

    unsafe fn run_all(&self, frame: &Frame<'_>, pool: &Pool) {
        // SAFETY: as the caller's.
        unsafe {
            if self.is_long() {
                with_element!(self.kernel.dtype, T => self.long::<T>(frame, pool))
            } else {
                pool.split(self.pieces(), 1, self.work(), &|range| self.run(frame, range));
            }
        }
    }
}
