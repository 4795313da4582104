//! Contractions in the schedule of a program: operands and epilogues of kernels as the contraction engine takes them.
use alloc::boxed::Box;
use alloc::string::ToString;
use core::ops::Range;

use kiln_ir::expr::Inst;
use kiln_ir::kernel::{DotKernel, DotOperand};
use kiln_ir::{Affine, DType, Dims, Expr, Lane, Program, RuntimeError, Store as ExprStore};

use super::element::{BF16, F16};
use super::vector::{Body, vectorize};
use super::{Failure, Frame, Prepared};
use crate::contract::operand::copy;
use crate::contract::pack::Copy;
use crate::contract::scratch::Scratch;
use crate::contract::{Block, Contraction, Epilogue, Finished, Offsets, Operand, ParallelFor, Scalar, Serial, Sink, Store, Strided, contract};
use crate::math::{Arith, bf16_to_f32, f16_to_f32};
use crate::pool::Pool;
use crate::tile::{Buffers, Region, TileExpr, TileRun};

/// Work from which a contraction uses the pool on its own.
pub(crate) const ALONE: usize = 1 << 20;

/// A prepared dot.
pub(crate) struct Dot {
    kernel: DotKernel,
    /// Dtypes of the operands in memory.
    stored: [DType; 2],
    prologues: [Option<TileExpr>; 2],
    finish: Finish,
    work: usize,
}

/// What becomes of the sums of a contraction.
pub(crate) enum Finish {
    /// They are stored as they are.
    Plain(ExprStore),
    /// An epilogue takes them.
    Epilogue(Box<TileExpr>),
}

impl Finish {
    /// The epilogue of a kernel over `dims`, with sums of `dtype`'s kind.
    pub fn new(epilogue: &Expr, dims: &[usize], dtype: DType, program: &Program) -> Result<Self, RuntimeError> {
        if let ([store], [value]) = (&epilogue.stores[..], &epilogue.values[..])
            && value.inst == Inst::Acc
            && matches!(dtype, DType::F32 | DType::F64 | DType::I64 | DType::U64)
            && program.buf(store.buf).dtype == dtype
        {
            return Ok(Finish::Plain(store.clone()));
        }
        TileExpr::epilogue(epilogue, dims, dtype, &program.bufs).map(|e| Finish::Epilogue(Box::new(e))).map_err(RuntimeError::Unsupported)
    }
}

/// What is done with an operand.
type Use<'a, E> = &'a mut dyn FnMut(&dyn Operand<E>);

/// An element type that contractions sum in.
pub(crate) trait Sum: Scalar {
    /// Calls `f` with a strided operand, converted while it is packed if it is stored as another type.
    fn operand(frame: &Frame<'_>, side: &Side<'_>, f: Use<'_, Self>);
}

/// A plain operand: where it is and how it is walked.
pub(crate) struct Side<'a> {
    /// The operand, with an index over `[batch..., rows, columns]`.
    operand: &'a DotOperand,
    dtype: DType,
    /// Axes of outer positions and of the contraction.
    axes: [usize; 2],
    batch: &'a [usize],
}

impl Side<'_> {
    fn strided<T>(&self, frame: &Frame<'_>) -> (*const T, isize, isize, Offsets) {
        let index = &self.operand.index;
        let ptr = frame.ptr::<T>(self.operand.buf).wrapping_offset(index.origin(frame.args));
        (ptr, index.coeffs[self.axes[0]], index.coeffs[self.axes[1]], offsets(index, self.batch))
    }

    fn as_is<E: Scalar>(&self, frame: &Frame<'_>, f: Use<'_, E>) {
        let (ptr, outer, inner, batch) = self.strided::<E>(frame);
        f(&Strided::new(ptr, outer, inner, batch));
    }

    fn widened<T: Widen<E>, E: Scalar>(&self, frame: &Frame<'_>, f: Use<'_, E>) {
        let (ptr, outer, inner, batch) = self.strided::<T>(frame);
        f(&Widened { ptr, outer, inner, batch });
    }
}

/// The batch axes of an index.
fn offsets(index: &Affine, batch: &[usize]) -> Offsets {
    let axes: smallvec::SmallVec<[(usize, isize); 4]> = batch.iter().copied().zip(index.coeffs.iter().copied()).collect();
    Offsets::new(&axes)
}

impl Sum for f32 {
    fn operand(frame: &Frame<'_>, side: &Side<'_>, f: Use<'_, f32>) {
        match side.dtype {
            DType::F16 => side.widened::<F16, f32>(frame, f),
            DType::BF16 => side.widened::<BF16, f32>(frame, f),
            _ => side.as_is(frame, f),
        }
    }
}

impl Sum for f64 {
    fn operand(frame: &Frame<'_>, side: &Side<'_>, f: Use<'_, f64>) {
        side.as_is(frame, f)
    }
}

impl Sum for i64 {
    fn operand(frame: &Frame<'_>, side: &Side<'_>, f: Use<'_, i64>) {
        match side.dtype {
            DType::I32 => side.widened::<i32, i64>(frame, f),
            DType::U32 => side.widened::<u32, i64>(frame, f),
            DType::I16 => side.widened::<i16, i64>(frame, f),
            DType::U16 => side.widened::<u16, i64>(frame, f),
            DType::I8 => side.widened::<i8, i64>(frame, f),
            DType::U8 => side.widened::<u8, i64>(frame, f),
            _ => side.as_is(frame, f),
        }
    }
}

/// A stored element as one that is summed.
pub(crate) trait Widen<E>: core::marker::Copy + Send + Sync + 'static {
    /// Converts; exact.
    fn widen(self) -> E;
}

impl Widen<f32> for F16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f16_to_f32(self.0)
    }
}

impl Widen<f32> for BF16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        bf16_to_f32(self.0)
    }
}

macro_rules! widen_int {
    ($($t:ty)*) => { $(
        impl Widen<i64> for $t {
            #[inline(always)]
            fn widen(self) -> i64 {
                self as i64
            }
        }
    )* };
}

widen_int!(i32 u32 i16 u16 i8 u8);

/// A strided operand of narrower elements, converted while it is packed.
struct Widened<T> {
    ptr: *const T,
    outer: isize,
    inner: isize,
    batch: Offsets,
}

// SAFETY: an operand only reads; the caller of `contract` keeps the memory alive and unchanged.
unsafe impl<T: Sync> Sync for Widened<T> {}

/// Converts rows of adjacent elements.
struct Convert<T, E> {
    from: *const T,
    /// Distance between rows and between elements.
    steps: [isize; 2],
    to: *mut E,
    rows: usize,
    len: usize,
}

impl<T: Widen<E>, E: Scalar> Body for Convert<T, E> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        // SAFETY: the maker's promise: `rows` times `len` elements on both sides.
        unsafe {
            for r in 0..self.rows {
                let from = self.from.wrapping_offset(r as isize * self.steps[0]);
                let to = self.to.add(r * self.len);
                if self.steps[1] == 1 {
                    for i in 0..self.len {
                        *to.add(i) = (*from.add(i)).widen();
                    }
                } else {
                    for i in 0..self.len {
                        *to.add(i) = (*from.wrapping_offset(i as isize * self.steps[1])).widen();
                    }
                }
            }
        }
    }
}

impl<T: Widen<E>, E: Scalar> Operand<E> for Widened<T> {
    unsafe fn pack(&self, block: &Block, dst: *mut E) {
        let from = self.batch.at(block.batch) + block.outer as isize * self.outer + block.k as isize * self.inner;
        let held = Scratch::take(block.len * block.steps * core::mem::size_of::<E>());
        let rows = held.ptr::<E>();
        // The longer runs of adjacent elements become the rows of the converted block.
        let (steps, extents, outer, inner) = if self.outer == 1 {
            ([self.inner, self.outer], [block.steps, block.len], 1, block.len as isize)
        } else {
            ([self.outer, self.inner], [block.len, block.steps], block.steps as isize, 1)
        };
        vectorize(Convert { from: self.ptr.wrapping_offset(from), steps, to: rows, rows: extents[0], len: extents[1] });
        // SAFETY: the scratch holds the block; the destination has room for it.
        unsafe { copy(E::kernels(), &into_panels(rows, outer, inner, block, dst)) };
    }

    fn batch(&self) -> &Offsets {
        &self.batch
    }
}

/// Packs a block that lies in scratch memory.
fn into_panels<E>(src: *const E, outer: isize, inner: isize, block: &Block, dst: *mut E) -> Copy<E> {
    Copy { src, outer, inner, len: block.len, k: block.steps, dst, width: block.width, panel: block.panel, lead: block.lead }
}

/// An operand that a prologue computes.
struct Computed<'a> {
    run: TileRun<'a>,
    /// Whether outer positions are the rows of the prologue's space (left operands) or its columns.
    rows: bool,
    sizes: &'a [usize],
    batch: Offsets,
    failure: &'a Failure,
}

/// Coordinates of a batch entry.
fn coordinates(mut index: usize, sizes: &[usize]) -> Dims {
    let mut coords = Dims::from_elem(0, sizes.len());
    for (c, size) in coords.iter_mut().zip(sizes).rev() {
        *c = index % size;
        index /= size;
    }
    coords
}

impl<E: Scalar> Operand<E> for Computed<'_> {
    unsafe fn pack(&self, block: &Block, dst: *mut E) {
        let held = Scratch::take(block.len * block.steps * core::mem::size_of::<E>());
        let values = held.ptr::<E>();
        let batch = coordinates(block.batch, self.sizes);
        let (outer, steps) = ((block.outer, block.len), (block.k, block.steps));
        let ((row, rows), (column, columns)) = if self.rows { (outer, steps) } else { (steps, outer) };
        let region = Region { batch: &batch, row, rows, column, columns };
        // SAFETY: the scratch holds the region; the destination has room for it.
        unsafe {
            if let Err(e) = self.run.region(region, values.cast(), columns) {
                return self.failure.report(e.to_string());
            }
            let (outer, inner) = if self.rows { (columns as isize, 1) } else { (1, columns as isize) };
            copy(E::kernels(), &into_panels(values, outer, inner, block, dst));
        }
    }

    fn batch(&self) -> &Offsets {
        &self.batch
    }
}

/// An epilogue on the executor of expressions.
pub(crate) struct Epilogues<'a> {
    run: TileRun<'a>,
    /// Dtype of the sums.
    dtype: DType,
    sizes: &'a [usize],
    failure: &'a Failure,
}

impl<'a> Epilogues<'a> {
    /// Starts the epilogue of a run, for results with these batch axes.
    pub fn new(expr: &'a TileExpr, frame: &'a Frame<'a>, dtype: DType, sizes: &'a [usize]) -> Self {
        Epilogues { run: expr.start(buffers(frame)), dtype, sizes, failure: frame.failure }
    }
}

impl<E: Scalar> Epilogue<E> for Epilogues<'_> {
    unsafe fn finish(&self, part: &Finished<E>) {
        let batch = coordinates(part.batch, self.sizes);
        let region = Region { batch: &batch, row: part.row, rows: part.rows, column: part.col, columns: part.cols };
        if self.dtype.is_int() && self.dtype.size() < 8 {
            // Integers are summed in 64 bits and wrapped to their width before anything is made of them.
            for r in 0..part.rows {
                // SAFETY: the part is valid for its extent, and integers are summed as `i64`.
                let row = unsafe { core::slice::from_raw_parts_mut(part.data.cast::<i64>().add(r * part.row_stride), part.cols) };
                row.iter_mut().for_each(|x| *x = self.dtype.wrap(*x as i128) as i64);
            }
        }
        // SAFETY: the part is valid for its extent.
        if let Err(e) = unsafe { self.run.region(region, part.data.cast(), part.row_stride) } {
            self.failure.report(e.to_string());
        }
    }
}

/// The memory of a frame as the executor of expressions takes it.
pub(crate) fn buffers<'a>(frame: &'a Frame<'a>) -> Buffers<'a> {
    Buffers { addresses: frame.bufs, args: frame.args }
}

/// Prepares a dot.
pub(crate) fn prepare_dot(k: &DotKernel, program: &Program) -> Result<Box<dyn Prepared>, RuntimeError> {
    let space = |a: usize, b: usize| -> Dims { k.batch.iter().copied().chain([a, b]).collect() };
    let prologue = |side: &DotOperand, dims: &[usize]| -> Result<Option<TileExpr>, RuntimeError> {
        let expr = side.prologue.as_ref().map(|e| TileExpr::prologue(e, dims, &program.bufs));
        expr.transpose().map_err(RuntimeError::Unsupported)
    };
    let stored = |side: &DotOperand| if side.prologue.is_some() { k.dtype } else { program.buf(side.buf).dtype };
    let entries: usize = k.batch.iter().product();
    let products = entries * k.m * k.n * k.k;
    Ok(Box::new(Dot {
        stored: [stored(&k.lhs), stored(&k.rhs)],
        prologues: [prologue(&k.lhs, &space(k.m, k.k))?, prologue(&k.rhs, &space(k.k, k.n))?],
        finish: Finish::new(&k.epilogue, &space(k.m, k.n), k.dtype, program)?,
        work: products / 8 + entries * (k.m * k.k + k.k * k.n + k.m * k.n) * k.dtype.size(),
        kernel: k.clone(),
    }))
}

impl Dot {
    unsafe fn typed<E: Sum>(&self, frame: &Frame<'_>, pool: &dyn ParallelFor) {
        let k = &self.kernel;
        let rank = k.batch.len();
        let with = |side: usize, f: Use<'_, E>| {
            let (operand, axes) = if side == 0 { (&k.lhs, [rank, rank + 1]) } else { (&k.rhs, [rank + 1, rank]) };
            let Some(prologue) = &self.prologues[side] else {
                return E::operand(frame, &Side { operand, dtype: self.stored[side], axes, batch: &k.batch }, f);
            };
            // The engine only asks which batch axes move an operand.
            let moves = operand.prologue.as_ref().map_or_else(Dims::new, |e| moving(e, rank));
            let axes: smallvec::SmallVec<[(usize, isize); 4]> = k.batch.iter().copied().zip(moves.iter().map(|m| *m as isize)).collect();
            let run = prologue.start(buffers(frame));
            f(&Computed { run, rows: side == 0, sizes: &k.batch, batch: Offsets::new(&axes), failure: frame.failure });
        };
        let epilogue;
        let sink = match &self.finish {
            Finish::Plain(store) => {
                let index = &store.index;
                let ptr = frame.ptr::<E>(store.buf).wrapping_offset(index.origin(frame.args));
                Sink::Store(Store::new(ptr, index.coeffs[rank], index.coeffs[rank + 1], offsets(index, &k.batch)))
            }
            Finish::Epilogue(expr) => {
                epilogue = Epilogues::new(expr, frame, k.dtype, &k.batch);
                Sink::Epilogue(&epilogue)
            }
        };
        let (batch, [m, n, k]) = (k.batch.iter().product(), [k.m, k.n, k.k]);
        with(0, &mut |a| {
            // SAFETY: the frame's buffers have the extents of the kernel, and the plan keeps results apart from operands.
            with(1, &mut |b| unsafe { contract(&Contraction { batch, m, n, k, a, b, sink: sink.clone() }, pool) });
        });
    }

    unsafe fn on(&self, frame: &Frame<'_>, pool: &dyn ParallelFor) {
        // SAFETY: as the caller's.
        unsafe {
            match self.kernel.dtype.lane() {
                Lane::F32 => self.typed::<f32>(frame, pool),
                Lane::F64 => self.typed::<f64>(frame, pool),
                Lane::Int | Lane::Bool => self.typed::<i64>(frame, pool),
            }
        }
    }
}

/// For each batch axis 1 if a prologue varies along it, else 0.
fn moving(e: &Expr, rank: usize) -> Dims {
    let mut moves = Dims::from_elem(0, rank);
    let mut see = |index: &Affine| moves.iter_mut().zip(&index.coeffs).for_each(|(m, c)| *m |= (*c != 0) as usize);
    e.loads.iter().for_each(|l| {
        see(&l.index);
        l.bounds.iter().for_each(|b| see(&b.index));
    });
    for v in &e.values {
        match &v.inst {
            Inst::Index(index) | Inst::Random(_, index, _) => see(index),
            Inst::Inside(bounds) => bounds.iter().for_each(|b| see(&b.index)),
            Inst::Load(_) | Inst::Arg(_) | Inst::Const(_) | Inst::Op(..) | Inst::Cast(_) | Inst::Reduce(..) | Inst::Acc => {}
        }
    }
    moves
}

impl Prepared for Dot {
    fn pieces(&self) -> usize {
        1
    }

    fn work(&self) -> usize {
        self.work
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        if !pieces.is_empty() {
            // SAFETY: as the caller's.
            unsafe { self.on(frame, &Serial) }
        }
    }

    fn is_alone(&self) -> bool {
        self.work >= ALONE
    }

    unsafe fn run_all(&self, frame: &Frame<'_>, pool: &Pool) {
        // SAFETY: as the caller's.
        unsafe { self.on(frame, pool) }
    }
}
