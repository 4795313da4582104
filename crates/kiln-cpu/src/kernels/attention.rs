//! Scaled-dot-product attention: tiles of scores that never leave the caches, on the contraction engine's register tiles.
//!
//! Query heads that share a key head are rows of one matrix, so keys and values are read once for all of them. The forward pass keeps a running maximum and sum
//! for each row (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022); the backward pass recomputes
//! probabilities from the saved log of the sums.
mod backward;
mod decode;
mod forward;
mod rows;

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::Range;

use kiln_ir::kernel::{AttentionKernel, AttentionOperand};
use kiln_ir::{Affine, DType, Program};

use super::convert::{narrow_row, widen_row};
use super::element::{BF16, Element, F16, Wide};
use super::vector::{Body, vectorize};
use super::{Frame, Prepared};
use crate::contract::micro::{Kernels, Scalar, Tile};
use crate::contract::{ParallelFor, Serial};
use crate::math::{Arith, Real};
use crate::pool::Pool;

/// A float type that attention computes in.
pub(crate) trait Float: Wide + Scalar + Real {}
impl Float for f32 {}
impl Float for f64 {}

/// Rows up to which queries are handled as vectors rather than matrices.
const FEW: usize = 8;

/// A prepared attention or attention gradient.
pub(crate) struct Attention {
    kernel: AttentionKernel,
    grad: bool,
    /// Query heads per key head.
    shared: usize,
    /// Rows of a key head: its query heads times the queries.
    rows: usize,
    /// Rows of a piece.
    chunk: usize,
    /// Parts of the keys that are handled apart and put together at the end: chosen from sizes alone, so that results are.
    parts: usize,
}

/// Prepares an attention (or its gradient).
pub(crate) fn prepare(k: &AttentionKernel, _: &Program, grad: bool) -> Box<dyn Prepared> {
    let [batch, heads, groups] = k.heads;
    let [queries, keys] = k.length;
    let shared = heads / groups.max(1);
    let rows = shared * queries;
    let lines = (batch * groups).max(1);
    let mut chunk = rows.clamp(1, 256);
    let threads = Pool::global().threads();
    while lines * rows.div_ceil(chunk) < 4 * threads && chunk > 32 {
        chunk /= 2;
    }
    let few = rows <= FEW;
    let parts = if grad {
        if lines >= 8 { 1 } else { 16usize.div_ceil(lines).min(keys / 256).max(1) }
    } else if few && lines < 64 {
        64usize.div_ceil(lines).min(keys / 512).max(1)
    } else {
        1
    };
    Box::new(Attention { kernel: k.clone(), grad, shared, rows, chunk: if few { rows.max(1) } else { chunk }, parts })
}

/// Evaluates an expression with the stored and the computing type of a float dtype.
macro_rules! with_float {
    ($dtype:expr, $t:ident, $e:ident => $body:expr) => {
        match $dtype {
            DType::F64 => {
                type $t = f64;
                type $e = f64;
                $body
            }
            DType::F16 => {
                type $t = F16;
                type $e = f32;
                $body
            }
            DType::BF16 => {
                type $t = BF16;
                type $e = f32;
                $body
            }
            // Inference admits floats only.
            _ => {
                type $t = f32;
                type $e = f32;
                $body
            }
        }
    };
}

impl Prepared for Attention {
    fn pieces(&self) -> usize {
        if self.is_alone() {
            return (self.kernel.heads[0] * self.rows > 0 || self.grad) as usize;
        }
        let lines = self.kernel.heads[0] * self.kernel.heads[2];
        if self.grad { lines } else { lines * self.rows.div_ceil(self.chunk) }
    }

    fn work(&self) -> usize {
        let [batch, _, groups] = self.kernel.heads;
        let [width, value_width] = self.kernel.width;
        let scores = batch * groups * self.rows * self.kernel.length[1];
        // A score costs about as much as this many bytes of traffic; few rows are bound by reading keys and values.
        let products = if self.grad { 3 * width + 2 * value_width } else { width + value_width };
        let memory = batch * groups * self.kernel.length[1] * (width + value_width) * self.kernel.dtype.size();
        scores * (products / 8 + 2) + memory
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        // SAFETY: as the caller's.
        unsafe { with_float!(self.kernel.dtype, T, E => self.run_pieces(Stored::<E>::of::<T>(), frame, pieces)) }
    }

    fn is_alone(&self) -> bool {
        self.parts > 1
    }

    unsafe fn run_all(&self, frame: &Frame<'_>, pool: &Pool) {
        // SAFETY: as the caller's.
        unsafe {
            if self.is_alone() {
                with_float!(self.kernel.dtype, T, E => self.in_parts(Stored::<E>::of::<T>(), frame, pool))
            } else {
                pool.split(self.pieces(), 1, self.work(), &|range| self.run(frame, range));
            }
        }
    }
}

impl Attention {
    /// Runs some pieces.
    unsafe fn run_pieces<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, pieces: Range<usize>) {
        // SAFETY: as the caller's.
        unsafe {
            if self.is_alone() {
                if !pieces.is_empty() {
                    self.in_parts(stored, frame, &Serial);
                }
            } else if self.grad {
                pieces.for_each(|line| self.backward(stored, frame, line, 0, core::ptr::null_mut()));
            } else {
                let chunks = self.rows.div_ceil(self.chunk);
                for piece in pieces {
                    let (line, first) = (piece / chunks, piece % chunks * self.chunk);
                    let rows = first..(first + self.chunk).min(self.rows);
                    if self.rows <= FEW {
                        self.decode(stored, frame, line, 0, core::ptr::null_mut());
                    } else {
                        self.forward(stored, frame, line, rows);
                    }
                }
            }
        }
    }

    /// Runs every part of every line, then puts the parts together.
    unsafe fn in_parts<E: Float>(&self, stored: &Stored<E>, frame: &Frame<'_>, pool: &dyn ParallelFor) {
        let lines = self.kernel.heads[0] * self.kernel.heads[2];
        let size = if self.grad { self.partial_gradient() } else { self.partial_output() };
        let held = crate::contract::scratch::Scratch::take(lines * self.parts * size * core::mem::size_of::<E>());
        let partial = Shared(held.ptr::<E>());
        let at = |line: usize, part: usize| partial.get().wrapping_add((line * self.parts + part) * size);
        // SAFETY: every part writes its own piece of the scratch; the second round begins when all are done.
        unsafe {
            pool.run(lines * self.parts, &|i| {
                let (line, part) = (i / self.parts, i % self.parts);
                if self.grad {
                    self.backward(stored, frame, line, part, at(line, part));
                } else {
                    self.decode(stored, frame, line, part, at(line, part));
                }
            });
            pool.run(lines, &|line| {
                let all = core::slice::from_raw_parts_mut(at(line, 0), self.parts * size);
                if self.grad { self.join_gradient(stored, frame, line, all) } else { self.join(stored, frame, line, all) }
            });
        }
    }

    /// The keys of a part.
    fn keys_of(&self, part: usize) -> Range<usize> {
        crate::pool::span(self.kernel.length[1], 64, self.parts, part)
    }

    /// Query head and query of a row of a line, and the line's batch entry and key head.
    #[inline(always)]
    fn position(&self, line: usize, row: usize) -> [usize; 4] {
        let groups = self.kernel.heads[2];
        let (b, g) = (line / groups, line % groups);
        let queries = self.kernel.length[0].max(1);
        [b, g * self.shared + row / queries, row % queries, g]
    }

    /// How many keys a query sees.
    #[inline(always)]
    fn visible(&self, query: usize) -> usize {
        let [queries, keys] = self.kernel.length;
        if self.kernel.attrs.causal { (query + keys + 1).saturating_sub(queries).min(keys) } else { keys }
    }
}

/// How the elements of operands and results are stored, for code that is compiled once for what is computed in.
struct Stored<E> {
    /// Bytes of an element.
    size: isize,
    /// Whether elements are of the type that is computed in.
    plain: bool,
    /// Reads a row: its first element, their distance, where to, how many.
    load: unsafe fn(*const u8, isize, *mut E, usize),
    /// Writes a row: from where, its first element, their distance, how many.
    store: unsafe fn(*const E, *mut u8, isize, usize),
    /// Whether rows are finite.
    finite: unsafe fn(Rows) -> bool,
    /// A row and a block of keys of the forward pass for few rows.
    step: unsafe fn(decode::Step<E>),
}

impl<E: Float> Stored<E> {
    fn of<T: Element<Wide = E>>() -> &'static Self {
        const {
            &Stored {
                size: size_of::<T>() as isize,
                plain: T::PLAIN,
                load: load::<T>,
                store: store::<T>,
                finite: finite::<T, E>,
                step: decode::step::<T, E>,
            }
        }
    }
}

/// # Safety
/// Both sides have `n` elements.
unsafe fn load<T: Element>(from: *const u8, step: isize, to: *mut T::Wide, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { widen_row(from.cast::<T>(), step, to, n) }
}

/// # Safety
/// Both sides have `n` elements.
unsafe fn store<T: Element>(from: *const T::Wide, to: *mut u8, step: isize, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { narrow_row(from, to.cast::<T>(), step, n) }
}

/// # Safety
/// The rows are readable.
unsafe fn finite<T: Element<Wide = E>, E: Float>(rows: Rows) -> bool {
    vectorize(Finite::<T>(rows, PhantomData))
}

/// Strided rows.
struct Rows {
    from: *const u8,
    /// Distance between rows, and between the elements of one.
    row: isize,
    step: isize,
    rows: usize,
    width: usize,
}

/// Whether some strided rows hold finite numbers only.
struct Finite<T>(Rows, PhantomData<T>);

impl<T: Element<Wide = E>, E: Float> Body for Finite<T> {
    type Out = bool;
    const WIDE: bool = false;

    #[inline(always)]
    fn run<A: Arith>(self) -> bool {
        let Rows { from, row, step, rows, width } = self.0;
        let zero = <E as Wide>::ZERO;
        let mut lanes = [zero; 16];
        for r in 0..rows {
            let row = from.cast::<T>().wrapping_offset(r as isize * row);
            // SAFETY: the maker's promise: all of these elements are readable.
            unsafe {
                if step == 1 && width > 0 {
                    let mut chunks = core::slice::from_raw_parts(row, width).chunks_exact(16);
                    for chunk in &mut chunks {
                        lanes.iter_mut().zip(chunk).for_each(|(sum, x)| *sum = *sum + x.widen() * zero);
                    }
                    chunks.remainder().iter().for_each(|x| lanes[0] = lanes[0] + x.widen() * zero);
                } else {
                    (0..width).for_each(|i| lanes[0] = lanes[0] + (*row.wrapping_offset(i as isize * step)).widen() * zero);
                }
            }
        }
        // A product of zero and anything else is NaN, and stays it.
        lanes.iter().all(|sum| *sum == zero)
    }
}

impl Attention {
    /// Lets the values `keys` take part in a row with weights of zero: what is not finite gives NaN.
    ///
    /// # Safety
    /// As for [`Prepared::run`]; `out` and `held` have the width of a value.
    unsafe fn add_hidden<E: Float>(&self, stored: &Stored<E>, value: &View<'_>, at: [usize; 2], keys: Range<usize>, held: *mut E, out: *mut E) {
        for s in keys {
            // SAFETY: as the caller's.
            unsafe {
                (stored.load)(value.at(&[at[0], at[1], s]), value.step(3), held, self.kernel.width[1]);
                for e in 0..self.kernel.width[1] {
                    *out.add(e) = *out.add(e) + *held.add(e) * <E as Wide>::ZERO;
                }
            }
        }
    }
}

/// A pointer that tasks share; each writes its own part.
struct Shared<E>(*mut E);

// SAFETY: see the type.
unsafe impl<E> Sync for Shared<E> {}

impl<E> Shared<E> {
    fn get(&self) -> *mut E {
        self.0
    }
}

/// A 4-axis operand at run time.
struct View<'a> {
    ptr: *mut u8,
    /// Bytes of an element.
    size: isize,
    index: &'a Affine,
}

impl<'a> View<'a> {
    fn new(o: &'a AttentionOperand, frame: &Frame<'_>, size: isize) -> Self {
        View { ptr: frame.ptr::<u8>(o.buf).wrapping_offset(o.index.origin(frame.args) * size), size, index: &o.index }
    }

    /// The element at coordinates `i` (the axes not given are 0).
    #[inline(always)]
    fn at(&self, i: &[usize]) -> *mut u8 {
        let offset: isize = self.index.coeffs.iter().zip(i).map(|(c, i)| c * *i as isize).sum();
        self.ptr.wrapping_offset(offset * self.size)
    }

    /// Distance of neighbours along an axis.
    #[inline(always)]
    fn step(&self, axis: usize) -> isize {
        self.index.coeffs[axis]
    }
}

/// Small matrix products on register tiles.
struct Product<E: Scalar> {
    kernels: &'static Kernels<E>,
}

/// A matrix for [`Product`].
#[derive(Clone, Copy)]
struct Matrix<E> {
    ptr: *const E,
    /// Distance between rows, or between panels of packed columns.
    row: isize,
    /// Distance between columns.
    col: isize,
}

impl<E: Float> Product<E> {
    fn new() -> Self {
        Product { kernels: E::kernels() }
    }

    fn rows(&self) -> usize {
        self.kernels.mr
    }

    fn cols(&self) -> usize {
        self.kernels.nr()
    }

    /// `to[m, n] (+)= a[m, k] b[k, n]`: `b` has adjacent columns (readable up to a multiple of the register), `a` any strides.
    ///
    /// # Safety
    /// All matrices have the extents, and the result is apart from the operands.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    unsafe fn plain(&self, m: usize, n: usize, k: usize, a: Matrix<E>, b: Matrix<E>, to: *mut E, to_row: usize, add: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.tiles(m, n, k, a, to, to_row, add, |col| (b.ptr.add(col), b.row)) }
    }

    /// The same with `b` packed in panels of [`Product::cols`] columns, `b.row` apart.
    ///
    /// # Safety
    /// As for [`Product::plain`].
    #[allow(clippy::too_many_arguments)]
    #[inline]
    unsafe fn packed(&self, m: usize, n: usize, k: usize, a: Matrix<E>, b: Matrix<E>, to: *mut E, to_row: usize, add: bool) {
        let nr = self.cols();
        // SAFETY: the caller's promise.
        unsafe { self.tiles(m, n, k, a, to, to_row, add, |col| (b.ptr.offset((col / nr) as isize * b.row), nr as isize)) }
    }

    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    unsafe fn tiles(&self, m: usize, n: usize, k: usize, a: Matrix<E>, to: *mut E, to_row: usize, add: bool, b: impl Fn(usize) -> (*const E, isize)) {
        let (mr, nr) = (self.rows(), self.cols());
        for col in (0..n).step_by(nr) {
            let (panel, b_k) = b(col);
            let cols = nr.min(n - col);
            for row in (0..m).step_by(mr) {
                let rows = mr.min(m - row);
                let to = to.wrapping_add(row * to_row + col);
                let tile = Tile {
                    k,
                    a: a.ptr.wrapping_offset(row as isize * a.row),
                    a_row: a.row,
                    a_k: a.col,
                    b: panel,
                    b_k,
                    from: if add { to.cast_const() } else { core::ptr::null() },
                    from_row: to_row as isize,
                    to,
                    to_row: to_row as isize,
                    cols,
                };
                // SAFETY: the caller's promise.
                unsafe { self.kernels.pick(rows, cols, false)(&tile) };
            }
        }
    }
}

/// Cuts one scratch block into arrays.
struct Arena {
    at: *mut u8,
}

impl Arena {
    /// An array of `n` elements, aligned to a cache line.
    fn take<X>(&mut self, n: usize) -> *mut X {
        let here = self.at;
        self.at = self.at.wrapping_add(Self::bytes::<X>(n));
        here.cast()
    }

    /// Bytes of an array.
    fn bytes<X>(n: usize) -> usize {
        (n * core::mem::size_of::<X>()).next_multiple_of(64)
    }
}
