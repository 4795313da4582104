//! Prepared fused kernels, prologues and epilogues, and how they run.
use alloc::string::String;
use core::ops::Range;

use kiln_ir::kernel::Fused;
use kiln_ir::{BufSpec, DType, Dims, Expr};

use super::elementwise::Kind;
use super::frame::{Buffers, Foreign, Frame, Run, Tile, fence_streams};
use super::geometry::Mode;
use super::plan::{Plan, Role, prepare};
use super::step::Pass;
use crate::memory::OutOfMemory;
use crate::pool::Pool;
use crate::simd::Level;

/// A fused kernel, ready to run.
pub struct FusedKernel {
    plan: Plan,
    /// Bytes moved by the whole kernel, or their equivalent in arithmetic.
    bytes: usize,
}

/// Rows that are summed before the sums are set aside: keeps rounding errors of long sums small.
const STAGE: usize = 128;

impl FusedKernel {
    /// Prepares a kernel of a program with the buffers `bufs`.
    ///
    /// # Errors
    /// An op that is not defined on its dtype.
    pub fn new(fused: &Fused, bufs: &[BufSpec]) -> Result<Self, String> {
        Self::for_level(fused, bufs, Level::detect())
    }

    /// As [`FusedKernel::new`], for an instruction set that must be available.
    ///
    /// # Errors
    /// An op that is not defined on its dtype.
    pub fn for_level(fused: &Fused, bufs: &[BufSpec], level: Level) -> Result<Self, String> {
        let plan = prepare(fused, bufs, Role::Kernel, level)?;
        let points: usize = fused.dims.iter().product();
        Ok(FusedKernel { bytes: points.saturating_mul(plan.cost), plan })
    }

    /// Bytes that the kernel moves, or their equivalent in arithmetic: what decides how many threads it is worth.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of blocks of the kernel: independent pieces of work.
    pub fn blocks(&self) -> usize {
        self.plan.geometry.blocks.count
    }

    /// Runs the kernel.
    ///
    /// # Errors
    /// [`OutOfMemory`] when there is no scratch memory.
    ///
    /// # Safety
    /// Every buffer that the kernel touches has an address valid for its size and dtype. A buffer that is written may share memory with one that is
    /// read only where each point reads what it writes. Nothing else writes the buffers meanwhile.
    pub unsafe fn run(&self, buffers: Buffers<'_>, pool: &Pool) -> Result<(), OutOfMemory> {
        let failure = spin::Mutex::new(None);
        pool.split(self.blocks(), 1, self.bytes, &|blocks| {
            // SAFETY: the caller's promise; tasks have different blocks.
            if let Err(error) = unsafe { self.run_blocks(buffers, blocks) } {
                *failure.lock() = Some(error);
            }
        });
        failure.into_inner().map_or(Ok(()), Err)
    }

    /// Runs some of the blocks on this thread.
    ///
    /// # Errors
    /// As [`FusedKernel::run`].
    ///
    /// # Safety
    /// As [`FusedKernel::run`]; each block is run once.
    pub unsafe fn run_blocks(&self, buffers: Buffers<'_>, blocks: Range<usize>) -> Result<(), OutOfMemory> {
        if blocks.is_empty() {
            return Ok(());
        }
        let run = Run::new(&self.plan, buffers);
        let mut frame = Frame::new(&run)?;
        // SAFETY: the caller's promise.
        unsafe { self.task(&mut frame, blocks.start, blocks.end) };
        if self.plan.stores.iter().any(|s| s.stream) {
            fence_streams();
        }
        Ok(())
    }

    /// # Safety
    /// As [`FusedKernel::run`], for the blocks `first .. last`.
    unsafe fn task(&self, frame: &mut Frame<'_>, first: usize, last: usize) {
        let geometry = &self.plan.geometry;
        geometry.blocks.seek(first, frame.coords());
        for _ in first..last {
            // SAFETY: the caller's promise.
            unsafe {
                match geometry.mode {
                    Mode::Map => {
                        let tile = self.tile(frame);
                        frame.execute(&self.plan.first, &tile);
                    }
                    Mode::Along => self.rows(frame),
                    Mode::Across => self.columns(frame),
                }
            }
            geometry.blocks.advance(frame.coords());
        }
    }

    /// The tile at the current coordinates.
    #[inline]
    fn tile(&self, frame: &Frame<'_>) -> Tile {
        let g = &self.plan.geometry;
        let rows = g.rows.min(g.dims[g.outer] - frame.coord(g.outer));
        let columns = g.columns.min(g.dims[g.inner] - frame.coord(g.inner));
        Tile { outer: g.outer, inner: g.inner, rows, columns }
    }

    /// A block of kept points, each a row along the reduced axes.
    ///
    /// # Safety
    /// As [`FusedKernel::run`].
    unsafe fn rows(&self, frame: &mut Frame<'_>) {
        let plan = &self.plan;
        let g = &plan.geometry;
        let start = frame.coord(g.lane);
        let lanes = g.lanes.min(g.dims[g.lane] - start);
        // An axis of size 1 stands for the rows of a tile of kept values.
        let kept = Tile { outer: g.lane, inner: g.lane, rows: 1, columns: lanes };
        // SAFETY: the caller's promise; cells and kept values are ours.
        unsafe {
            frame.execute(&plan.first, &kept);
            for pass in &plan.passes {
                for lane in 0..lanes {
                    frame.set_coord(g.lane, start + lane);
                    self.row(frame, pass, lane);
                }
                frame.set_coord(g.lane, start);
                frame.execute(&pass.after, &kept);
            }
            frame.execute(&plan.last, &kept);
        }
    }

    /// One pass over one row.
    ///
    /// # Safety
    /// As [`FusedKernel::run`].
    unsafe fn row(&self, frame: &mut Frame<'_>, pass: &Pass, lane: usize) {
        let plan = &self.plan;
        let g = &plan.geometry;
        let null = core::ptr::null();
        // SAFETY: the caller's promise; cells are ours, results have an element per lane.
        unsafe {
            for reduce in &plan.reduces[pass.reduces.clone()] {
                (reduce.loops.start_cell)(frame.slot(reduce.cell), null, null, null, 1);
            }
            frame.position = 0;
            for _ in 0..g.tiles.count {
                frame.move_slots(lane, lane * g.row + frame.position);
                let tile = self.tile(frame);
                frame.execute(&pass.steps, &tile);
                frame.position += tile.rows * tile.columns;
                g.tiles.advance(frame.coords());
            }
            for reduce in &plan.reduces[pass.reduces.clone()] {
                let result = frame.slot(reduce.result).add(lane * reduce.size as usize);
                let cell = frame.slot(reduce.cell);
                match reduce.wrap {
                    None => (reduce.loops.finish_cell)(result, cell, null, null, 1),
                    Some(wrap) => {
                        let raw = frame.slot(reduce.aside);
                        (reduce.loops.finish_cell)(raw, cell, null, null, 1);
                        wrap(result, raw, null, null, 1);
                    }
                }
            }
        }
    }

    /// A block of kept points side by side, reduced row by row.
    ///
    /// # Safety
    /// As [`FusedKernel::run`].
    unsafe fn columns(&self, frame: &mut Frame<'_>) {
        let plan = &self.plan;
        let g = &plan.geometry;
        let lanes = g.lanes.min(g.dims[g.lane] - frame.coord(g.lane));
        let kept = Tile { outer: g.outer, inner: g.inner, rows: 1, columns: lanes };
        // SAFETY: the caller's promise; accumulators and kept values are ours.
        unsafe {
            frame.execute(&plan.first, &kept);
            for pass in &plan.passes {
                self.column_pass(frame, pass, lanes);
                frame.execute(&pass.after, &kept);
            }
            frame.execute(&plan.last, &kept);
        }
    }

    /// One pass over the rows of a block.
    ///
    /// # Safety
    /// As [`FusedKernel::run`].
    unsafe fn column_pass(&self, frame: &mut Frame<'_>, pass: &Pass, lanes: usize) {
        let plan = &self.plan;
        let g = &plan.geometry;
        let reduces = &plan.reduces[pass.reduces.clone()];
        let null = core::ptr::null();
        // Sums set aside use the result's place: it is only read after the pass.
        // SAFETY: the caller's promise; accumulators, results and what is set aside have an element per lane.
        unsafe {
            for reduce in reduces {
                (reduce.loops.start)(frame.slot(reduce.cell), null, null, null, lanes);
                if reduce.add.is_some() {
                    (reduce.loops.start)(frame.slot(reduce.aside), null, null, null, lanes);
                }
            }
            let (mut elements, mut staged) = (0, 0);
            frame.position = 0;
            for _ in 0..g.tiles.count {
                frame.move_slots(0, elements);
                let tile = self.tile(frame);
                frame.execute(&pass.steps, &tile);
                frame.position += tile.rows;
                elements += tile.rows * tile.columns;
                staged += tile.rows;
                if staged >= STAGE {
                    staged = 0;
                    reduces.iter().for_each(|reduce| set_aside(frame, reduce, lanes));
                }
                g.tiles.advance(frame.coords());
            }
            for reduce in reduces {
                let (cell, aside, result) = (frame.slot(reduce.cell), frame.slot(reduce.aside), frame.slot(reduce.result));
                match (reduce.add, reduce.wrap) {
                    (Some(add), _) => add(result, cell, aside, null, lanes),
                    (None, Some(wrap)) => wrap(result, cell, null, null, lanes),
                    (None, None) => core::ptr::copy_nonoverlapping(cell, result, lanes * reduce.size as usize),
                }
            }
        }
    }
}

/// Adds the accumulators to what was set aside, and empties them.
///
/// # Safety
/// Accumulators and what is set aside have an element per lane.
unsafe fn set_aside(frame: &mut Frame<'_>, reduce: &super::step::ReducePlan, lanes: usize) {
    let Some(add) = reduce.add else { return };
    let (cell, aside, result) = (frame.slot(reduce.cell), frame.slot(reduce.aside), frame.slot(reduce.result));
    let null = core::ptr::null();
    // SAFETY: the caller's promise; a loop's destination must not be a source, so the sum goes through the result's place.
    unsafe {
        add(result, cell, aside, null, lanes);
        core::ptr::copy_nonoverlapping(result, aside, lanes * reduce.size as usize);
        (reduce.loops.start)(cell, null, null, null, lanes);
    }
}

/// An expression over tiles that a contraction asks for: the prologue that makes an operand, or the epilogue that takes the sums.
pub struct TileExpr {
    plan: Plan,
}

/// A part of the last two axes at a place in the others.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// Coordinates of the axes before the last two.
    pub batch: &'a [usize],
    /// First row, and number of rows.
    pub row: usize,
    /// See `row`.
    pub rows: usize,
    /// First column, and number of columns.
    pub column: usize,
    /// See `column`.
    pub columns: usize,
}

/// A run of a [`TileExpr`]: share it between the threads that work on one contraction.
pub struct TileRun<'a> {
    run: Run<'a>,
}

impl TileExpr {
    /// Prepares an epilogue over `dims`, whose sums are of `dtype`'s kind: f32 for the half types.
    ///
    /// # Errors
    /// An op that is not defined on its dtype.
    pub fn epilogue(expr: &Expr, dims: &[usize], dtype: DType, bufs: &[BufSpec]) -> Result<Self, String> {
        Self::new(expr, dims, Role::Epilogue(Kind::of(dtype)), bufs)
    }

    /// Prepares a prologue over `dims`, which hands over its last value.
    ///
    /// # Errors
    /// An op that is not defined on its dtype.
    pub fn prologue(expr: &Expr, dims: &[usize], bufs: &[BufSpec]) -> Result<Self, String> {
        Self::new(expr, dims, Role::Prologue, bufs)
    }

    fn new(expr: &Expr, dims: &[usize], role: Role, bufs: &[BufSpec]) -> Result<Self, String> {
        let fused = Fused { dims: Dims::from_slice(dims), kept: dims.len(), expr: expr.clone() };
        Ok(TileExpr { plan: prepare(&fused, bufs, role, Level::detect())? })
    }

    /// Starts a run.
    pub fn start<'a>(&'a self, buffers: Buffers<'a>) -> TileRun<'a> {
        TileRun { run: Run::new(&self.plan, buffers) }
    }
}

impl TileRun<'_> {
    /// Computes a region. For an epilogue `data` holds the sums, for a prologue it takes the values; rows are `stride` elements apart. The elements
    /// are of the kind that tiles hold: f32 for the half types, 8 bytes for integers.
    ///
    /// # Errors
    /// [`OutOfMemory`] when there is no scratch memory.
    ///
    /// # Safety
    /// As [`FusedKernel::run`] for the region, and `data` is valid for it.
    pub unsafe fn region(&self, region: Region<'_>, data: *mut u8, stride: usize) -> Result<(), OutOfMemory> {
        let plan = self.run.plan;
        let g = &plan.geometry;
        let mut frame = Frame::new(&self.run)?;
        frame.coords()[..region.batch.len()].copy_from_slice(region.batch);
        let size = plan.foreign_size();
        let columns = region.columns.min(g.columns).max(1);
        let rows = (g.columns / columns).max(1);
        for row in (0..region.rows).step_by(rows) {
            for column in (0..region.columns).step_by(columns) {
                frame.set_coord(g.outer, region.row + row);
                frame.set_coord(g.inner, region.column + column);
                let tile = Tile { outer: g.outer, inner: g.inner, rows: rows.min(region.rows - row), columns: columns.min(region.columns - column) };
                frame.foreign = Foreign { pointer: data.wrapping_add((row * stride + column) * size), stride };
                // SAFETY: the caller's promise.
                unsafe { frame.execute(&plan.first, &tile) };
            }
        }
        if plan.stores.iter().any(|s| s.stream) {
            fence_streams();
        }
        Ok(())
    }
}
