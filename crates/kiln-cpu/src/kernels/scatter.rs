//! Scatter: values combined into a tensor by index.
//!
//! Work is cut by destination: by lines before the axis, by ranges of the axis and by ranges of what lies after it. Every destination has one owner that
//! meets its values in row-major order, so the result does not depend on the cut.
use core::ops::Range;

use kiln_ir::dims::{numel, row_major};
use kiln_ir::kernel::ScatterKernel;
use kiln_ir::{Affine, Program, ScatterOp};

use super::element::{Element, Wide, with_element};
use super::index::{BLOCK, IndexRule};
use super::vector::{Body, vectorize};
use super::walk::Space;
use super::{Frame, Prepared};
use crate::contract::scratch::Scratch;
use crate::math::Arith;
use crate::pool::{Pool, span, tasks_for};

/// A prepared scatter.
pub(crate) struct Scatter {
    kernel: ScatterKernel,
    rule: IndexRule,
    /// Walks index, values and result before the axis.
    outer: Space<3>,
    /// Walks index, values and result after the axis; the result is dense there.
    inner: Space<3>,
    /// Steps of index and values along the axis.
    steps: [isize; 2],
    /// Elements of the result after the axis.
    line: usize,
    /// Whether the index is constant after the axis.
    whole_rows: bool,
    /// Cuts of the result's axis and of what lies after it.
    parts: [usize; 2],
    work: usize,
}

/// What one piece owns of a line's result.
struct Part<A> {
    /// The owned block, row 0 being `rows.start` and column 0 `cols.start`.
    block: *mut A,
    /// Distance between its rows.
    pitch: usize,
    rows: Range<usize>,
    cols: Range<usize>,
    /// Offsets of index and values at the line.
    at: [isize; 2],
}

impl Scatter {
    /// Prepares a scatter.
    pub fn new(k: &ScatterKernel, program: &Program) -> Self {
        let a = k.axis;
        let out = row_major(&k.out_dims);
        let space = |r: Range<usize>| Space::new(&k.dims[r.clone()], [&k.index_index.coeffs[r.clone()], &k.values_index.coeffs[r.clone()], &out[r]]);
        let (outer, inner) = (space(0..a), space(a + 1..k.dims.len()));
        let line = numel(&k.dims[a + 1..]);
        let size = k.dtype.size();
        let base = if k.base.is_some() { 2 } else { 1 };
        let work = numel(&k.out_dims) * size * base + numel(&k.dims) * (2 * size + 8);
        let wanted = tasks_for(work, Pool::global().threads()).div_ceil(outer.len().max(1));
        let columns = wanted.min(line * size / 128).max(1);
        let rows = wanted.div_ceil(columns).min(k.out_dims[a]).max(1);
        Scatter {
            rule: IndexRule { dtype: program.buf(k.index).dtype, extent: k.out_dims[a], axis: a, op: "scatter" },
            whole_rows: inner.strides.iter().all(|s| s[0] == 0),
            steps: [k.index_index.coeffs[a], k.values_index.coeffs[a]],
            parts: [rows, columns],
            kernel: k.clone(),
            outer,
            inner,
            line,
            work,
        }
    }

    unsafe fn typed<T: Element>(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let k = &self.kernel;
        let extent = k.out_dims[k.axis];
        let out = frame.ptr::<T>(k.out);
        let base = k.base.map(|b| frame.ptr::<T>(b));
        for piece in pieces {
            let (rest, col) = (piece / self.parts[1], piece % self.parts[1]);
            let (outer, row) = (rest / self.parts[0], rest % self.parts[0]);
            let at = self.outer.offsets(outer);
            let rows = span(extent, 1, self.parts[0], row);
            let cols = span(self.line, 64 / core::mem::size_of::<T>(), self.parts[1], col);
            let (height, width) = (rows.len(), cols.len());
            if height == 0 || width == 0 {
                continue;
            }
            let first = at[2] as usize + rows.start * self.line + cols.start;
            let part_at = [at[0], at[1]];
            // SAFETY: the block lies in the result and is this piece's alone; base and result have equal sizes.
            unsafe {
                let block = out.add(first);
                let from = base.map(|b| b.add(first).cast_const());
                if !T::PLAIN && matches!(k.op, ScatterOp::Add | ScatterOp::Mul) {
                    // Half types accumulate in f32 and are rounded once.
                    let held = Scratch::take(height * width * core::mem::size_of::<T::Wide>());
                    let wide: *mut T::Wide = held.ptr();
                    for r in 0..height {
                        for c in 0..width {
                            *wide.add(r * width + c) = from.map_or(T::Wide::ZERO, |f| (*f.add(r * self.line + c)).widen());
                        }
                    }
                    self.apply::<T::Wide, T>(frame, &Part { block: wide, pitch: width, rows, cols, at: part_at });
                    for r in 0..height {
                        for c in 0..width {
                            *block.add(r * self.line + c) = T::narrow(*wide.add(r * width + c));
                        }
                    }
                    continue;
                }
                for r in 0..height {
                    let (to, skip) = (block.add(r * self.line), r * self.line);
                    match from {
                        Some(f) if f == block.cast_const() => break,
                        Some(f) if width == self.line => {
                            to.copy_from_nonoverlapping(f, height * width);
                            break;
                        }
                        Some(f) => to.copy_from_nonoverlapping(f.add(skip), width),
                        None if width == self.line => {
                            to.write_bytes(0, height * width);
                            break;
                        }
                        None => to.write_bytes(0, width),
                    }
                }
                self.apply::<T, T>(frame, &Part { block, pitch: self.line, rows, cols, at: part_at });
            }
        }
    }

    /// Meets the values of a line in order, those that fall into the part.
    unsafe fn apply<A: Element<Wide = T::Wide>, T: Element>(&self, frame: &Frame<'_>, part: &Part<A>) {
        let k = &self.kernel;
        let origin = |index: &Affine, at: isize| index.origin(frame.args) + at;
        let (i0, v0) = (origin(&k.index_index, part.at[0]), origin(&k.values_index, part.at[1]));
        let index = frame.ptr::<u8>(k.index);
        let values = frame.ptr::<T>(k.values).cast_const();
        let count = k.dims[k.axis];
        let mut found = [0usize; BLOCK];
        let [_, value_step, _] = self.inner.inner();
        // SAFETY: indices and values lie where the kernel says; the part's block is owned by the caller.
        unsafe {
            let mut first = 0;
            while self.whole_rows && first < count {
                let n = BLOCK.min(count - first);
                let found = &mut found[..n];
                if !self.rule.read(index, i0 + first as isize * self.steps[0], self.steps[0], found, frame.failure) {
                    return;
                }
                for (j, i) in found.iter().enumerate() {
                    if !part.rows.contains(i) {
                        continue;
                    }
                    let to = part.block.add((i - part.rows.start) * part.pitch);
                    let from = values.wrapping_offset(v0 + (first + j) as isize * self.steps[1]);
                    let mut done = 0;
                    self.inner.runs(part.cols.clone(), &mut |at, n| {
                        combine(k.op, to.add(done), from.wrapping_offset(at[1]), value_step, n);
                        done += n;
                    });
                }
                first += n;
            }
            if self.whole_rows {
                return;
            }
            let [index_step, _, _] = self.inner.inner();
            let mut good = true;
            for j in 0..count {
                let (ij, vj) = (i0 + j as isize * self.steps[0], v0 + j as isize * self.steps[1]);
                let mut col = 0;
                self.inner.runs(part.cols.clone(), &mut |at, n| {
                    let mut done = 0;
                    while good && done < n {
                        let len = BLOCK.min(n - done);
                        let found = &mut found[..len];
                        good = self.rule.read(index, ij + at[0] + done as isize * index_step, index_step, found, frame.failure);
                        if !good {
                            return;
                        }
                        for (c, i) in found.iter().enumerate() {
                            if part.rows.contains(i) {
                                let to = part.block.add((i - part.rows.start) * part.pitch + col + c);
                                let v = *values.wrapping_offset(vj + at[1] + (done + c) as isize * value_step);
                                *to = A::narrow(meet(k.op, (*to).widen(), v.widen()));
                            }
                        }
                        col += len;
                        done += len;
                    }
                });
                if !good {
                    return;
                }
            }
        }
    }
}

/// How a value meets the old one.
#[inline(always)]
fn meet<W: Wide>(op: ScatterOp, old: W, v: W) -> W {
    match op {
        ScatterOp::Assign => v,
        ScatterOp::Add => old.add(v),
        ScatterOp::Mul => old.mul(v),
        ScatterOp::Max => old.larger(v),
        ScatterOp::Min => old.smaller(v),
    }
}

/// A run of adjacent destinations meeting values `step` apart.
struct Row<A, T> {
    op: ScatterOp,
    to: *mut A,
    from: *const T,
    step: isize,
    n: usize,
}

impl<T: Element, A: Element<Wide = T::Wide>> Body for Row<A, T> {
    type Out = ();
    const WIDE: bool = false;
    const ONCE: bool = !T::FLOAT;

    #[inline(always)]
    fn run<F: Arith>(self) {
        // SAFETY: the maker's promise: `n` elements at both ends.
        unsafe {
            let Row { op, to, from, step, n } = self;
            if step == 1 {
                let (to, from) = (core::slice::from_raw_parts_mut(to, n), core::slice::from_raw_parts(from, n));
                macro_rules! each {
                    ($op:expr) => {
                        for (o, v) in to.iter_mut().zip(from) {
                            *o = A::narrow(meet($op, (*o).widen(), (*v).widen()));
                        }
                    };
                }
                match op {
                    ScatterOp::Assign => each!(ScatterOp::Assign),
                    ScatterOp::Add => each!(ScatterOp::Add),
                    ScatterOp::Mul => each!(ScatterOp::Mul),
                    ScatterOp::Max => each!(ScatterOp::Max),
                    ScatterOp::Min => each!(ScatterOp::Min),
                }
                return;
            }
            for c in 0..n {
                let o = to.add(c);
                *o = A::narrow(meet(op, (*o).widen(), (*from.wrapping_offset(c as isize * step)).widen()));
            }
        }
    }
}

/// # Safety
/// `n` destinations and values are valid, and apart.
#[inline]
unsafe fn combine<A: Element<Wide = T::Wide>, T: Element>(op: ScatterOp, to: *mut A, from: *const T, step: isize, n: usize) {
    vectorize(Row { op, to, from, step, n });
}

impl Prepared for Scatter {
    fn pieces(&self) -> usize {
        self.outer.len() * self.parts[0] * self.parts[1]
    }

    fn work(&self) -> usize {
        self.work
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        // SAFETY: as the caller's.
        unsafe { with_element!(self.kernel.dtype, T => self.typed::<T>(frame, pieces)) }
    }
}
