//! Running reductions along one axis.
use core::ops::Range;

use kiln_ir::ScanOp;
use kiln_ir::kernel::ScanKernel;

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
                vectorize(Adjacent { op: k.op, x: x.wrapping_add(piece * n), out: out.wrapping_add(piece * n), n, before: None, store: true });
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
        vectorize(Adjacent { op: self.op, x: self.x.wrapping_add(at), out: self.out.wrapping_add(at), n: range.len(), before, store })
    }
}

/// Adjacent elements, scanned from an earlier total if there is one.
struct Adjacent<T: Element> {
    op: ScanOp,
    x: *const T,
    out: *mut T,
    n: usize,
    before: Option<T::Wide>,
    store: bool,
}

impl<T: Element> Body for Adjacent<T> {
    type Out = T::Wide;
    const WIDE: bool = false;
    const ONCE: bool = !T::FLOAT;

    #[inline(always)]
    fn run<A: Arith>(self) -> T::Wide {
        if !T::FLOAT {
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

impl<T: Element> Adjacent<T> {
    #[inline(always)]
    fn steps(self, f: impl Fn(T::Wide, T::Wide) -> T::Wide) -> T::Wide {
        let mut acc = self.before;
        let mut i = 0;
        // SAFETY: the maker's promise: `n` elements on both sides.
        unsafe {
            // Sums of integers wait one cycle for each other, so that plain steps do.
            if T::FLOAT {
                while i + STEP <= self.n {
                    let mut v = [T::Wide::ZERO; STEP];
                    for (k, v) in v.iter_mut().enumerate() {
                        *v = (*self.x.add(i + k)).widen();
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
                            *self.out.add(i + k) = T::narrow(*v);
                        }
                    }
                    i += STEP;
                }
            }
            while i < self.n {
                let x = (*self.x.add(i)).widen();
                let v = acc.map_or(x, |a| f(a, x));
                if self.store {
                    *self.out.add(i) = T::narrow(v);
                }
                acc = Some(v);
                i += 1;
            }
        }
        acc.unwrap_or(T::Wide::ZERO)
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
