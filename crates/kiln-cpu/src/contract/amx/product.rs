//! The driver of the matrix unit: splits both operands of a chunk of a contraction, then computes units of its result.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use super::super::engine::{Contraction, each};
use super::super::operand::{Block, Operand};
use super::super::parallel::ParallelFor;
use super::super::scratch::Scratch;
use super::super::sink::{Epilogue, Finished, Sink, Store};
use super::split::{Panel, finite, panel};
use super::{BLOCK, STEPS, Tiles, WIDTH, excerpt, is_there};

/// Bytes that the split panels of one operand of a chunk may take.
const CHUNK: usize = 64 << 20;
/// Most blocks of the contraction between two visits of a sum.
const DEEP: usize = 12;
/// Fewest steps of the contraction that pay for loading and storing sums as tiles.
const LEAST: usize = 128;
/// Most columns and rows of a unit: their panels of [`DEEP`] blocks and their sums stay in the second-level cache.
const UNIT: [usize; 2] = [384, 256];

/// Computes a contraction on the matrix unit, if there is one and it pays; the caller computes it otherwise.
///
/// # Safety
/// As for [`super::super::contract`].
pub(crate) unsafe fn run(job: &Contraction<'_, f32>, pool: &dyn ParallelFor) -> bool {
    if !pays(job) || !is_there() {
        return false;
    }
    let blocks = job.k.div_ceil(STEPS);
    let deep = blocks.div_ceil(blocks.div_ceil(DEEP));
    let panel = blocks.next_multiple_of(deep) * BLOCK;
    let whole = |operand: &dyn Operand<f32>, outer: usize| operand.batch().slots() * outer.div_ceil(WIDTH) * panel;
    let most = (CHUNK / panel).max(8) * WIDTH;
    let (rows, cols) = (job.m.min(most), job.n.min(most));
    // Either the whole batch at once, or entry by entry in as many rows and columns as the memory allows.
    let together = whole(job.a, job.m).max(whole(job.b, job.n)) <= CHUNK;
    let runs = if together { 1 } else { job.batch };
    for entry in 0..runs {
        for col in (0..job.n).step_by(cols) {
            for row in (0..job.m).step_by(rows) {
                let entries = if together { 0..job.batch } else { entry..entry + 1 };
                let chunk = Chunk { job, blocks, deep, entries, rows: row..(row + rows).min(job.m), cols: col..(col + cols).min(job.n) };
                // SAFETY: as the caller's.
                unsafe { chunk.compute(pool) };
            }
        }
    }
    true
}

/// Whether splitting the operands costs less than the unit saves, and there is enough to do for its threads; sizes alone decide.
fn pays(job: &Contraction<'_, f32>) -> bool {
    let (m, n, k) = (job.m, job.n, job.k);
    // In multiply-adds of register tiles: splitting a number costs about 128 of what the unit saves, starting two regions about a million.
    if m * n < 128 * (m + n) + (1 << 20) / k.max(1) || k < LEAST {
        return false;
    }
    let filled = m.next_multiple_of(WIDTH) * n.next_multiple_of(WIDTH) * k.next_multiple_of(STEPS) <= 2 * m * n * k;
    let tiles = job.batch * m.div_ceil(WIDTH) * n.div_ceil(WIDTH);
    filled && (tiles >= 16 || k < 2048)
}

/// Entries, rows and columns that are computed at once.
struct Chunk<'a, 'b> {
    job: &'a Contraction<'b, f32>,
    /// Blocks of the contraction.
    blocks: usize,
    /// Blocks of a layer: what lies between two visits of a sum.
    deep: usize,
    entries: Range<usize>,
    rows: Range<usize>,
    cols: Range<usize>,
}

/// Split operands. Layers of the contraction lie one after the other, in each the panels of all slots: the panels that a unit uses at once are adjacent, and so
/// don't meet in the same places of the caches.
#[derive(Clone, Copy)]
struct Halves {
    left: *mut u8,
    right: *mut u8,
}

// SAFETY: tasks write panels of their own and read them in a later region.
unsafe impl Sync for Halves {}

/// An operand of a chunk while it is split.
struct Side<'a> {
    operand: &'a dyn Operand<f32>,
    /// Its outer positions in the chunk.
    outer: Range<usize>,
    slots: usize,
    left: bool,
    /// Greatest magnitude seen, as bits.
    most: AtomicU32,
}

impl Side<'_> {
    fn panels(&self) -> usize {
        self.slots * self.outer.len().div_ceil(WIDTH)
    }
}

impl Chunk<'_, '_> {
    unsafe fn compute(&self, pool: &dyn ParallelFor) {
        let job = self.job;
        let together = self.entries.len() == job.batch;
        let side = |operand, outer: &Range<usize>, left| {
            let operand: &dyn Operand<f32> = operand;
            Side { operand, outer: outer.clone(), slots: if together { operand.batch().slots() } else { 1 }, left, most: AtomicU32::new(0) }
        };
        let sides = [side(job.a, &self.rows, true), side(job.b, &self.cols, false)];
        let counts = [sides[0].panels(), sides[1].panels()];
        let bytes = self.layers() * self.deep * BLOCK;
        let held = Scratch::take((counts[0] + counts[1]) * bytes);
        let left: *mut u8 = held.ptr();
        let halves = Halves { left, right: left.wrapping_add(counts[0] * bytes) };
        each(pool, counts[0] + counts[1], self.blocks * STEPS * WIDTH * 16, &|i| {
            let halves = &halves;
            let (side, i, to) = if i < counts[0] { (&sides[0], i, halves.left) } else { (&sides[1], i - counts[0], halves.right) };
            // SAFETY: as the caller's; the scratch holds all panels.
            unsafe { self.split(side, i, to) };
        });
        let most = sides.map(|side| side.most.into_inner());
        if !ordinary(most) {
            for entry in self.entries.clone() {
                // SAFETY: as the caller's.
                unsafe { excerpt::compute(job, entry, self.rows.clone(), self.cols.clone(), pool) };
            }
            return;
        }

        let [mut width, mut height] = [even(self.cols.len(), UNIT[0]), even(self.rows.len(), UNIT[1])];
        let wanted = 4 * pool.threads();
        let units = |size: [usize; 2]| self.entries.len() * self.cols.len().div_ceil(size[0]) * self.rows.len().div_ceil(size[1]);
        while pool.threads() > 1 && units([width, height]) < wanted && width * height > 4 * WIDTH * WIDTH {
            if width >= height {
                width = even(self.cols.len(), width / 2);
            } else {
                height = even(self.rows.len(), height / 2);
            }
        }
        let (across, down) = (self.cols.len().div_ceil(width), self.rows.len().div_ceil(height));
        each(pool, self.entries.len() * across * down, width * height * self.blocks * STEPS / 4, &|i| {
            let halves = &halves;
            let (i, row) = (i / down, i % down * height);
            let (entry, col) = (i / across, i % across * width);
            let rows = row..(row + height).min(self.rows.len());
            let cols = col..(col + width).min(self.cols.len());
            // SAFETY: as the caller's; units are disjoint, and the panels were made.
            unsafe { self.unit(halves, self.entries.start + entry, rows, cols) };
        });
    }

    fn layers(&self) -> usize {
        self.blocks.div_ceil(self.deep)
    }

    /// Splits panel `index` of a side whose layers begin at `base`.
    unsafe fn split(&self, side: &Side<'_>, index: usize, base: *mut u8) {
        let k = self.job.k;
        let panels = side.outer.len().div_ceil(WIDTH);
        let entry = if side.slots == 1 { self.entries.start } else { side.operand.batch().entry(index / panels) };
        let first = side.outer.start + index % panels * WIDTH;
        let len = WIDTH.min(side.outer.end - first);
        let view = side.operand.view(entry, 0).filter(|view| (view.inner == 1 || view.outer == 1) && side.operand.period() >= k);
        let layer = self.deep * STEPS;
        let held = Scratch::take(if view.is_none() { layer * WIDTH * size_of::<f32>() } else { 0 });
        let values: *mut f32 = held.ptr();
        let mut most = 0;
        for (n, from) in (0..k).step_by(layer).enumerate() {
            let steps = layer.min(k - from);
            let to = base.wrapping_add((n * side.panels() + index) * self.deep * BLOCK);
            let (ptr, outer, inner) = match &view {
                Some(view) => (view.ptr.wrapping_offset(first as isize * view.outer + from as isize * view.inner), view.outer, view.inner),
                None => {
                    let block = Block { batch: entry, outer: first, len, k: from, steps, width: WIDTH, panel: WIDTH * layer, lead: 0 };
                    // SAFETY: as the caller's; the scratch holds the block.
                    unsafe { side.operand.pack(&block, values) };
                    (values.cast_const(), 1, WIDTH as isize)
                }
            };
            // SAFETY: as the caller's; the panel has room in its layer.
            most = most.max(unsafe { panel(&Panel { ptr, outer, inner, len, steps, to, left: side.left }) });
        }
        side.most.fetch_max(most, Ordering::Relaxed);
    }

    /// Computes some rows and columns of the chunk.
    unsafe fn unit(&self, halves: &Halves, entry: usize, rows: Range<usize>, cols: Range<usize>) {
        let job = self.job;
        let bytes = self.deep * BLOCK;
        let together = self.entries.len() == job.batch;
        // First panel, and panels of a layer.
        let place = |operand: &dyn Operand<f32>, outer: usize, first: usize| {
            let (panels, [slot, slots]) =
                (outer.div_ceil(WIDTH), if together { [operand.batch().slot(entry), operand.batch().slots()] } else { [0, 1] });
            (slot * panels + first / WIDTH, slots * panels)
        };
        let (left, right) = (place(job.a, self.rows.len(), rows.start), place(job.b, self.cols.len(), cols.start));
        let direct = match &job.sink {
            Sink::Store(store) if store.direct() && store.keep == 0.0 => Some(store),
            _ => None,
        };
        // Sums that the sink takes are kept until they are whole.
        let single = self.layers() == 1;
        let stride = cols.len().next_multiple_of(WIDTH) + 16;
        let kept = if direct.is_some() || single { WIDTH } else { rows.len().next_multiple_of(WIDTH) };
        let held = Scratch::take(kept * stride * size_of::<f32>());
        let scratch: *mut f32 = held.ptr();
        // SAFETY: `run` asked whether the unit is there.
        let tiles = unsafe { Tiles::new() };
        for layer in 0..self.layers() {
            let count = self.deep.min(self.blocks - layer * self.deep);
            let (fresh, last) = (layer == 0, layer + 1 == self.layers());
            let left = halves.left.wrapping_add((layer * left.1 + left.0) * bytes);
            let right = halves.right.wrapping_add((layer * right.1 + right.0) * bytes);
            for row in (0..rows.len()).step_by(WIDTH) {
                let height = WIDTH.min(rows.len() - row);
                let strip =
                    Strip { entry, row: self.rows.start + rows.start + row, rows: height, col: self.cols.start + cols.start, cols: cols.len() };
                let left = left.wrapping_add(row / WIDTH * bytes);
                let sums = scratch.wrapping_add(if kept == WIDTH { 0 } else { row * stride });
                for col in (0..cols.len()).step_by(WIDTH) {
                    let width = WIDTH.min(cols.len() - col);
                    let right = right.wrapping_add(col / WIDTH * bytes);
                    // SAFETY: the panels have these blocks; whole tiles of the result are written in place, others in the scratch.
                    unsafe {
                        match direct {
                            None => tiles.multiply(left, right, count, sums.add(col), (stride * 4) as isize, fresh),
                            Some(store) => {
                                let to = store.at(entry, strip.row, strip.col + col);
                                if height == WIDTH && width == WIDTH {
                                    tiles.multiply(left, right, count, to, store.row * 4, fresh);
                                } else {
                                    if !fresh {
                                        copy(to, store.row, sums, stride as isize, [height, width]);
                                    }
                                    tiles.multiply(left, right, count, sums, (stride * 4) as isize, fresh);
                                    copy(sums, stride as isize, to, store.row, [height, width]);
                                }
                            }
                        }
                    }
                }
                if last {
                    // SAFETY: the strip's sums are whole.
                    unsafe { self.finish(&strip, direct, sums, stride) };
                }
            }
        }
    }

    /// Hands a strip to the sink, if its sums are finite, and computes it plainly otherwise.
    unsafe fn finish(&self, strip: &Strip, direct: Option<&Store<f32>>, sums: *mut f32, stride: usize) {
        let &Strip { entry, row, rows, col, cols } = strip;
        let (first, step) = match direct {
            Some(store) => (store.at(entry, row, col), store.row),
            None => (sums, stride as isize),
        };
        // SAFETY: as the caller's; the strip is part of the result.
        unsafe {
            if !finite(first, step, rows, cols) {
                return excerpt::compute(self.job, entry, row..row + rows, col..col + cols, &super::super::Serial);
            }
            let part = Finished { batch: entry, row, rows, col, cols, data: sums, row_stride: stride };
            match (&self.job.sink, direct) {
                (_, Some(_)) => {}
                (Sink::Store(store), None) => store.finish(&part),
                (Sink::Epilogue(epilogue), None) => epilogue.finish(&part),
            }
        }
    }
}

/// Up to 32 rows of a unit.
struct Strip {
    entry: usize,
    row: usize,
    rows: usize,
    col: usize,
    cols: usize,
}

/// Whether operands of these greatest magnitudes can be split: nothing in them overflows, and what is lost below 2⁻¹²⁶ is far below their products.
fn ordinary(most: [u32; 2]) -> bool {
    let exponent = |bits: u32| (bits >> 23) as i32 - 127;
    let zero = most.contains(&0);
    most.iter().all(|bits| *bits < 0x7f7f_8000)
        && (zero || most.iter().all(|bits| exponent(*bits) >= -96) && exponent(most[0]) + exponent(most[1]) >= -80)
}

/// Cuts `total` into pieces of at most about `most`, equal up to rounding to whole panels.
fn even(total: usize, most: usize) -> usize {
    total.div_ceil(total.div_ceil(most.max(WIDTH))).next_multiple_of(WIDTH)
}

/// Copies rows of a tile.
unsafe fn copy(from: *const f32, from_row: isize, to: *mut f32, to_row: isize, [rows, cols]: [usize; 2]) {
    for r in 0..rows as isize {
        // SAFETY: the caller gives so many rows and columns on both sides.
        unsafe { to.wrapping_offset(r * to_row).copy_from_nonoverlapping(from.wrapping_offset(r * from_row), cols) };
    }
}
