//! Convolutions with very few result channels a group, depthwise ones first of all: positions fill the registers, and windows
//! are read where they lie.

use super::engine::each;
use super::implicit::{Convolution, Gradient};
use super::lane::{Lane, first_bits};
use super::micro::{Kernels, Scalar};
use super::operand::Block;
use super::parallel::ParallelFor;
use super::region::{Layout, Positions};
use super::scratch::Scratch;
use super::sink::{Epilogue, Finished, Sink};

/// Most result channels of a group that are computed this way.
pub(crate) const ROWS: usize = 4;
/// Positions of a block: the window's rows stay in the first-level cache.
const POSITIONS: usize = 4096;
/// Registers of positions a tile has.
const WIDE: usize = 2;
/// Columns of a weight gradient that are summed at once.
const COLUMNS: usize = 8;

/// Rows of positions to compute, or to sum over.
pub(crate) struct Lines<E> {
    /// The first window of the block.
    base: *const E,
    /// `k` offsets of window elements.
    offsets: *const i32,
    k: usize,
    /// Planes and rows of the block, and positions of a row.
    counts: [usize; 3],
    /// Distances between planes, rows and positions in the image.
    steps: [isize; 3],
    /// `[k][rows]`, or nothing for a gradient.
    weights: *const E,
    rows: usize,
    /// The result `[rows][positions]`; for a gradient, the output gradient of the block.
    data: *mut E,
    /// Distance between the rows of `data`.
    stride: isize,
    /// For a gradient: `k` registers of sums.
    sums: *mut E,
}

/// Reads one register of a line.
#[inline(always)]
unsafe fn load<V: Lane>(p: *const V::E, step: isize, bits: u32) -> V {
    // SAFETY: the caller's enabled lanes are readable.
    unsafe {
        if step == 1 {
            if bits == first_bits(V::N) { V::load(p) } else { V::load_mask(p, V::mask(bits)) }
        } else {
            V::zero().merge_step(p, step, bits, V::mask(bits))
        }
    }
}

/// Computes all positions of a block.
///
/// # Safety
/// `job` describes readable and writable memory, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn lines<V: Lane>(job: &Lines<V::E>) {
    // SAFETY: as the caller's.
    unsafe {
        match job.rows {
            1 => lines_of::<V, 1>(job),
            2 => lines_of::<V, 2>(job),
            3 => lines_of::<V, 3>(job),
            _ => lines_of::<V, ROWS>(job),
        }
    }
}

#[inline(always)]
unsafe fn lines_of<V: Lane, const R: usize>(job: &Lines<V::E>) {
    let width = job.counts[2];
    // SAFETY: as the caller's of `lines`; masks keep every access inside the line.
    unsafe {
        for plane in 0..job.counts[0] {
            for row in 0..job.counts[1] {
                let line = job.base.wrapping_offset(plane as isize * job.steps[0] + row as isize * job.steps[1]);
                let to = job.data.add((plane * job.counts[1] + row) * width);
                let mut at = 0;
                while at < width {
                    let mut bits = [0u32; WIDE];
                    for v in 0..WIDE {
                        bits[v] = first_bits(width.saturating_sub(at + v * V::N).min(V::N));
                    }
                    let from = line.wrapping_offset(at as isize * job.steps[2]);
                    let full = bits[WIDE - 1] == first_bits(V::N) && job.steps[2] == 1;
                    let mut acc = [[V::zero(); WIDE]; R];
                    for p in 0..job.k {
                        let src = from.wrapping_offset(*job.offsets.add(p) as isize);
                        let mut xs = [V::zero(); WIDE];
                        for v in 0..WIDE {
                            let src = src.wrapping_offset((v * V::N) as isize * job.steps[2]);
                            xs[v] = if full { V::load(src) } else { load::<V>(src, job.steps[2], bits[v]) };
                        }
                        for r in 0..R {
                            let w = V::splat(*job.weights.add(p * R + r));
                            for v in 0..WIDE {
                                acc[r][v] = w.fma(xs[v], acc[r][v]);
                            }
                        }
                    }
                    for r in 0..R {
                        for v in 0..WIDE {
                            if bits[v] != 0 {
                                let to = to.offset(r as isize * job.stride).add(at + v * V::N);
                                acc[r][v].store_mask(to, V::mask(bits[v]));
                            }
                        }
                    }
                    at += WIDE * V::N;
                }
            }
        }
    }
}

/// Adds the products of one row of the output gradient with the windows to the sums.
///
/// # Safety
/// As for [`lines`].
#[inline(always)]
pub(crate) unsafe fn products<V: Lane>(job: &Lines<V::E>) {
    let width = job.counts[2];
    // SAFETY: as the caller's; masks keep every access inside the line.
    unsafe {
        for first in (0..job.k).step_by(COLUMNS) {
            let count = (job.k - first).min(COLUMNS);
            let mut offsets = [*job.offsets.add(first) as isize; COLUMNS];
            let mut acc = [V::zero(); COLUMNS];
            for i in 0..count {
                offsets[i] = *job.offsets.add(first + i) as isize;
                acc[i] = V::load(job.sums.add((first + i) * V::N));
            }
            for plane in 0..job.counts[0] {
                for row in 0..job.counts[1] {
                    let line = job.base.wrapping_offset(plane as isize * job.steps[0] + row as isize * job.steps[1]);
                    let dy = job.data.add((plane * job.counts[1] + row) * width);
                    for at in (0..width).step_by(V::N) {
                        let bits = first_bits((width - at).min(V::N));
                        let y = load::<V>(dy.add(at), 1, bits);
                        let from = line.wrapping_offset(at as isize * job.steps[2]);
                        for i in 0..COLUMNS {
                            // Columns past the last repeat an offset; their sums are dropped.
                            let x = load::<V>(from.wrapping_offset(offsets[i]), job.steps[2], bits);
                            acc[i] = y.fma(x, acc[i]);
                        }
                    }
                }
            }
            for i in 0..count {
                acc[i].store(job.sums.add((first + i) * V::N));
            }
        }
    }
}

/// Fills the table of window offsets.
unsafe fn table<E: Scalar>(layout: &Layout<E>, taps: usize, offsets: *mut i32) {
    layout.each_tap(|tap, at| {
        for c in 0..layout.images.channels {
            // SAFETY: the table has an entry for each channel and tap.
            unsafe { offsets.add(c * taps + tap).write((c as isize * layout.channel + at) as i32) };
        }
    });
}

/// A pointer to the shared table of offsets.
struct Offsets(*const i32);

// SAFETY: the table is only read.
unsafe impl Sync for Offsets {}

impl Offsets {
    fn ptr(&self) -> *const i32 {
        self.0
    }
}

/// First position of a block and positions in each of its images.
fn extent<E>(layout: &Layout<E>, block: &Positions) -> (usize, usize) {
    let axes = &layout.images.axes;
    let first = (block.planes.start * axes[1].positions + block.rows.start) * axes[2].positions;
    (first, block.planes.len() * block.rows.len() * axes[2].positions)
}

/// Computes a convolution with at most [`ROWS`] result channels a group.
///
/// # Safety
/// As for `contract`.
pub(crate) unsafe fn convolve<E: Scalar>(job: &Convolution<'_, E>, pool: &dyn ParallelFor) {
    debug_assert!(job.rows <= ROWS);
    let kernels = E::kernels();
    let taps: usize = job.images.axes.iter().map(|axis| axis.taps).product();
    let k = job.images.channels * taps;
    let layout = Layout::single(job.images, POSITIONS);
    let table_memory = Scratch::take(k * size_of::<i32>());
    // SAFETY: the table has `k` entries.
    unsafe { table(&layout, taps, table_memory.ptr()) };
    let offsets = Offsets(table_memory.ptr());
    let blocks = layout.blocks();
    each(pool, job.groups * blocks, layout.most() * k * job.rows * 4, &|i| {
        let (group, block) = (i / blocks, layout.block(i % blocks));
        let (first, cols) = extent(&layout, &block);
        let align = |len: usize| (len * size_of::<E>()).next_multiple_of(64);
        let (weights_len, copied) = (align(k * job.rows), align(layout.copied()));
        let held = Scratch::take(weights_len + copied + align(cols * job.rows));
        let start: *mut u8 = held.ptr();
        let weights: *mut E = start.cast();
        let copy: *mut E = start.wrapping_add(weights_len).cast();
        let sums: *mut E = start.wrapping_add(weights_len + copied).cast();
        let part =
            Finished { batch: group * job.images.count + block.images.start, row: 0, rows: job.rows, col: first, cols, data: sums, row_stride: cols };
        let direct = match &job.sink {
            Sink::Store(store) if store.direct() && store.keep == E::ZERO => Some(store),
            _ => None,
        };
        // SAFETY: the scratch holds all three parts; as the caller's.
        unsafe {
            job.weights.pack(
                &Block { batch: group * job.images.count, outer: 0, len: job.rows, k: 0, steps: k, width: job.rows, panel: k * job.rows, lead: 0 },
                weights,
            );
            let base = layout.prepare(kernels, &block, group as isize * job.group, 0..job.images.channels, copy);
            let (data, stride) = match direct {
                Some(store) => (store.at(part.batch, 0, first), store.row),
                None => (sums, cols as isize),
            };
            let lines = Lines { weights, rows: job.rows, data, stride, ..walk(&layout, &block, base, offsets.ptr(), k) };
            (kernels.lines)(&lines);
            match &job.sink {
                _ if direct.is_some() => {}
                Sink::Store(store) => store.finish(&part),
                Sink::Epilogue(epilogue) => epilogue.finish(&part),
            }
        }
    });
}

/// The lines of a block.
fn walk<E: Scalar>(layout: &Layout<E>, block: &Positions, base: *const E, offsets: *const i32, k: usize) -> Lines<E> {
    Lines {
        base,
        offsets,
        k,
        counts: [block.planes.len(), block.rows.len(), layout.images.axes[2].positions],
        steps: layout.steps(),
        weights: core::ptr::null(),
        rows: 0,
        data: core::ptr::null_mut(),
        stride: 0,
        sums: core::ptr::null_mut(),
    }
}

/// Computes a weight gradient with few output channels a group.
///
/// # Safety
/// As for `contract`.
pub(crate) unsafe fn gradient<E: Scalar>(job: &Gradient<'_, E>, pool: &dyn ParallelFor) {
    let kernels: &Kernels<E> = E::kernels();
    let lanes = kernels.lanes;
    let axes = &job.images.axes;
    let taps: usize = axes.iter().map(|axis| axis.taps).product();
    let positions: usize = axes.iter().map(|axis| axis.positions).product();
    let k = job.images.channels * taps;
    let layout = Layout::single(job.images, POSITIONS);
    let table_memory = Scratch::take(k * size_of::<i32>());
    // SAFETY: the table has `k` entries.
    unsafe { table(&layout, taps, table_memory.ptr()) };
    let offsets = Offsets(table_memory.ptr());
    each(pool, job.groups, job.images.count * positions * k * job.rows * 4, &|group| {
        let align = |len: usize| (len * size_of::<E>()).next_multiple_of(64);
        let (sums_len, copied) = (align(job.rows * k * lanes), align(layout.copied()));
        let held = Scratch::take(sums_len + copied + align(job.rows * k));
        let start: *mut u8 = held.ptr();
        let sums: *mut E = start.cast();
        let copy: *mut E = start.wrapping_add(sums_len).cast();
        let done: *mut E = start.wrapping_add(sums_len + copied).cast();
        // SAFETY: the scratch holds all three parts; as the caller's.
        unsafe {
            sums.write_bytes(0, job.rows * k * lanes);
            for index in 0..layout.blocks() {
                let block = layout.block(index);
                let (first, _) = extent(&layout, &block);
                let base = layout.prepare(kernels, &block, group as isize * job.group, 0..job.images.channels, copy);
                for row in 0..job.rows {
                    let channel = (block.images.start * job.groups + group) * job.rows + row;
                    let dy = job.dy.add(channel * positions + first).cast_mut();
                    let lines = Lines { data: dy, sums: sums.add(row * k * lanes), ..walk(&layout, &block, base, offsets.ptr(), k) };
                    (kernels.products)(&lines);
                }
            }
            for i in 0..job.rows * k {
                let mut total = E::ZERO;
                for lane in 0..lanes {
                    total = total.plus(*sums.add(i * lanes + lane));
                }
                done.add(i).write(total);
            }
            let part = Finished { batch: group, row: 0, rows: job.rows, col: 0, cols: k, data: done, row_stride: k };
            match &job.sink {
                Sink::Store(store) => store.finish(&part),
                Sink::Epilogue(epilogue) => epilogue.finish(&part),
            }
        }
    });
}
