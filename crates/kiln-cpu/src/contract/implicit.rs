//! Convolutions without unfolding: windows are read from the image through pointers, one row of a tile each, and the channels
//! of the result are the columns.

use super::engine::each;
use super::micro::{Indirect, Kernels, Scalar, Tile};
use super::operand::{Block, Operand};
use super::pack::Copy;
use super::packed::PackedCopy;
use super::parallel::ParallelFor;
use super::region::{Images, Layout, Positions};
use super::scratch::{Scratch, ScratchGuard};
use super::sink::{Epilogue, Finished, Sink};
use super::winograd;

/// Positions of a block.
const POSITIONS: usize = 512;
/// Steps of the contraction between two visits of a tile.
const STEPS: usize = 1024;
/// Positions whose sums are still in the first-level cache when they are turned.
const HOT: usize = 48;

/// `result[group][image][row][position] = sum_k weights[group][row][k] * window(position)[k]` with `k = (channel, tap)`.
pub(crate) struct Convolution<'a, E> {
    pub images: Images<E>,
    pub groups: usize,
    /// Distance between the groups' first channels, in elements.
    pub group: isize,
    /// Channels of the result in a group.
    pub rows: usize,
    /// Outer axis: channels of the result; batch entries: `(group, image)`.
    pub weights: &'a dyn Operand<E>,
    /// The packed copy of the memory of the weights, if they are all of it.
    pub packed: Option<&'a PackedCopy>,
    pub sink: Sink<'a, E>,
}

/// Computes a convolution.
///
/// # Safety
/// As for `contract`.
pub(crate) unsafe fn convolve<E: Scalar>(job: &Convolution<'_, E>, pool: &dyn ParallelFor) {
    if winograd::applies(job) {
        // SAFETY: as the caller's.
        return unsafe { winograd::convolve(job, pool) };
    }
    let kernels = E::kernels();
    let nr = width(kernels, job.rows);
    let k = steps(job);
    let panels = job.rows.div_ceil(nr);

    let layout = Layout::new(job.images, POSITIONS, pool.threads());
    let pack_all = |to: Shared<E>| {
        // SAFETY: the memory has room for all panels.
        each(pool, job.groups * panels, k * nr * 8, &|i| unsafe { pack_panel(job, nr, i % panels, i / panels, 0..k, to.at(i * k * nr)) });
    };
    let copy = job.packed.and_then(|packed| packed.get([nr, job.rows, k, job.groups, size_of::<E>()], |to| pack_all(Shared(to.cast()))));
    // Weights that serve one block of positions are packed just before; others once, for all blocks.
    let shared = copy.is_some() || layout.blocks() > 1;
    let weights = Scratch::take(if shared && copy.is_none() { job.groups * panels * k * nr * size_of::<E>() } else { 0 });
    let packed: Shared<E> = Shared(copy.as_ref().map_or(weights.ptr(), |copy| copy.as_ptr().cast()));
    if shared && copy.is_none() {
        pack_all(Shared(packed.at(0)));
    }

    let table = offsets(job, &layout);
    let offsets: Shared<i32> = Shared(table.ptr());

    // Panels are shared out too if there are few blocks.
    let blocks = job.groups * layout.blocks();
    let wanted = if pool.threads() == 1 { 1 } else { 2 * pool.threads() };
    let shares = wanted.div_ceil(blocks).clamp(1, panels);
    let share = panels.div_ceil(shares);
    let shares = panels.div_ceil(share);
    let work = layout.most() * share * nr * k;
    each(pool, blocks * shares, work, &|i| {
        let (block, first) = (i / shares, i % shares * share);
        let (group, block) = (block / layout.blocks(), layout.block(block % layout.blocks()));
        // SAFETY: as the caller's; blocks and panels are disjoint.
        unsafe {
            let unit = Unit { job, kernels, layout: &layout, group, block, k, offsets: offsets.at(0) };
            let weights = shared.then(|| packed.at(group * panels * k * nr).cast_const());
            unit.run(first..(first + share).min(panels), weights);
        }
    });
}

/// Computes one panel of the weights at one block of positions, in the plain way.
///
/// # Safety
/// As for `contract`, for this part of the result.
pub(super) unsafe fn plain_block<E: Scalar>(
    job: &Convolution<'_, E>,
    kernels: &'static Kernels<E>,
    layout: &Layout<E>,
    group: usize,
    block: &Positions,
    panel: usize,
) {
    let table = offsets(job, layout);
    let unit = Unit { job, kernels, layout, group, block: block.clone(), k: steps(job), offsets: table.ptr() };
    // SAFETY: as the caller's.
    unsafe { unit.run(panel..panel + 1, None) };
}

/// Terms of each sum.
fn steps<E: Scalar>(job: &Convolution<'_, E>) -> usize {
    job.images.channels * job.images.axes.iter().map(|axis| axis.taps).product::<usize>()
}

/// Where each term of a sum is in a window.
fn offsets<E: Scalar>(job: &Convolution<'_, E>, layout: &Layout<E>) -> ScratchGuard {
    let table = Scratch::take(steps(job) * size_of::<i32>());
    let offsets: *mut i32 = table.ptr();
    let taps = steps(job) / job.images.channels.max(1);
    layout.each_tap(|tap, at| {
        for c in 0..job.images.channels {
            // SAFETY: the table has an entry for each channel and tap.
            unsafe { offsets.add(c * taps + tap).write((c as isize * layout.channel + at) as i32) };
        }
    });
    table
}

/// Packs some steps of a panel of `nr` channels of a group's weights.
///
/// # Safety
/// The weights are readable, and `dst` has room for a panel of as many steps.
pub(super) unsafe fn pack_panel<E: Scalar>(job: &Convolution<'_, E>, nr: usize, panel: usize, group: usize, k: core::ops::Range<usize>, dst: *mut E) {
    let len = nr.min(job.rows - panel * nr);
    let batch = group * job.images.count;
    let block = Block { batch, outer: panel * nr, len, k: k.start, steps: k.len(), width: nr, panel: k.len() * nr, lead: 0 };
    // SAFETY: as the caller's; columns past the end are ordinary numbers that are dropped.
    unsafe {
        if len < nr {
            dst.write_bytes(0, k.len() * nr);
        }
        job.weights.pack(&block, dst);
    }
}

/// Columns of a panel: no more than `rows` channels fill.
pub(super) fn width<E: Scalar>(kernels: &Kernels<E>, rows: usize) -> usize {
    kernels.nr().min(rows.next_multiple_of(kernels.lanes))
}

/// A pointer to scratch that tasks share.
pub(super) struct Shared<E>(pub *mut E);

// SAFETY: tasks write disjoint parts, or only read.
unsafe impl<E> Sync for Shared<E> {}

impl<E> Shared<E> {
    /// Element `index`.
    pub fn at(&self, index: usize) -> *mut E {
        self.0.wrapping_add(index)
    }
}

/// A block of positions and some panels of the weights.
struct Unit<'a, E: Scalar> {
    job: &'a Convolution<'a, E>,
    kernels: &'static Kernels<E>,
    layout: &'a Layout<E>,
    group: usize,
    block: Positions,
    k: usize,
    offsets: *const i32,
}

impl<E: Scalar> Unit<'_, E> {
    /// Computes the panels `panels`; `weights` is the group's first one if they are packed already.
    unsafe fn run(&self, panels: core::ops::Range<usize>, weights: Option<*const E>) {
        let (job, kernels, layout) = (self.job, self.kernels, self.layout);
        let (mr, nr, k) = (kernels.mr, width(kernels, job.rows), self.k);
        let most = layout.most();
        let align = |bytes: usize| bytes.next_multiple_of(64);
        let pointers = align(most * size_of::<*const E>());
        let copied = align(layout.copied() * size_of::<E>());
        let sums = align(most * nr * size_of::<E>());
        let fresh = if weights.is_none() { align(STEPS.min(k) * nr * size_of::<E>()) } else { 0 };
        let held = Scratch::take(pointers + copied + 2 * sums + fresh);
        let first: *mut u8 = held.ptr();
        let rows: *mut *const E = first.cast();
        let copy: *mut E = first.wrapping_add(pointers).cast();
        let c: *mut E = first.wrapping_add(pointers + copied).cast();
        let turned: *mut E = first.wrapping_add(pointers + copied + sums).cast();
        let panel_pack: *mut E = first.wrapping_add(pointers + copied + 2 * sums).cast();
        // SAFETY: the scratch holds all five parts; as the caller's.
        unsafe {
            let base = layout.prepare(kernels, &self.block, self.group as isize * job.group, 0..job.images.channels, copy);
            // An epilogue is worth long rows; a plain store is not.
            let direct = matches!(&job.sink, Sink::Store(store) if store.direct());
            let mut count = 0;
            layout.each_position(&self.block, |position, at| {
                rows.add(position).write(base.wrapping_offset(at));
                count = position + 1;
            });
            for panel in panels {
                let cols = nr.min(job.rows - panel * nr);
                let mut p = 0;
                loop {
                    let steps = STEPS.min(k - p);
                    let last = p + steps >= k;
                    let b = match weights {
                        Some(weights) => weights.add((panel * k + p) * nr),
                        None => {
                            pack_panel(job, nr, panel, self.group, p..p + steps, panel_pack);
                            panel_pack.cast_const()
                        }
                    };
                    for start in (0..count).step_by(HOT) {
                        let end = (start + HOT).min(count);
                        for i in (start..end).step_by(mr) {
                            let to = c.add(i * nr);
                            let tile = Tile {
                                k: steps,
                                a: core::ptr::null(),
                                a_row: 0,
                                a_k: 0,
                                b,
                                b_k: nr as isize,
                                from: if p == 0 { core::ptr::null() } else { to },
                                from_row: nr as isize,
                                to,
                                to_row: nr as isize,
                                cols,
                            };
                            let indirect = Indirect { tile, rows: rows.add(i), offsets: self.offsets.add(p) };
                            kernels.pick_indirect(mr.min(end - i), cols)(&indirect);
                        }
                        if last && direct {
                            emit(job, kernels, self.group, &self.block, panel * nr, cols, start..end, c, turned);
                        }
                    }
                    p += steps;
                    if p >= k {
                        break;
                    }
                }
                if !direct {
                    emit(job, kernels, self.group, &self.block, panel * nr, cols, 0..count, c, turned);
                }
            }
        }
    }
}

/// Hands the sums of one panel at some positions of a block to the sink, image by image, with channels as rows.
///
/// # Safety
/// The sums and the result are valid, and `turned` has room for the positions.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn emit<E: Scalar>(
    job: &Convolution<'_, E>,
    kernels: &Kernels<E>,
    group: usize,
    block: &Positions,
    row: usize,
    rows: usize,
    range: core::ops::Range<usize>,
    c: *const E,
    turned: *mut E,
) {
    let nr = width(kernels, job.rows);
    let axes = &job.images.axes;
    let size = block.planes.len() * block.rows.len() * axes[2].positions;
    let first = (block.planes.start * axes[1].positions + block.rows.start) * axes[2].positions;
    let mut at = range.start;
    while at < range.end {
        let (image, position) = (at / size, at % size);
        let cols = (size - position).min(range.end - at);
        let batch = group * job.images.count + block.images.start + image;
        let part = Part { batch, row, rows, col: first + position, cols };
        // SAFETY: as the caller's; parts are disjoint.
        unsafe { turn(&job.sink, kernels, c.wrapping_add(at * nr), nr, part, turned) };
        at += cols;
    }
}

/// A part of a result.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub batch: usize,
    pub row: usize,
    pub rows: usize,
    pub col: usize,
    pub cols: usize,
}

/// Hands sums that lie by columns, `stride` elements apart, to a sink that wants rows.
///
/// # Safety
/// The sums and the sink are valid for the part, and `turned` has room for it.
pub(crate) unsafe fn turn<E: Scalar>(sink: &Sink<'_, E>, kernels: &Kernels<E>, sums: *const E, stride: usize, part: Part, turned: *mut E) {
    let Part { batch, row, rows, col, cols } = part;
    let copy = |dst: *mut E, width: usize| Copy { src: sums, outer: stride as isize, inner: 1, len: cols, k: rows, dst, width, panel: 0, lead: 0 };
    // SAFETY: as the caller's; the kernels were chosen for this machine.
    unsafe {
        if let Sink::Store(store) = sink
            && store.direct()
            && store.keep == E::ZERO
            && store.row >= cols as isize
        {
            return (kernels.pack_inner)(&copy(store.at(batch, row, col), store.row as usize));
        }
        (kernels.pack_inner)(&copy(turned, cols));
        let part = Finished { batch, row, rows, col, cols, data: turned, row_stride: cols };
        match sink {
            Sink::Store(store) => store.finish(&part),
            Sink::Epilogue(epilogue) => epilogue.finish(&part),
        }
    }
}

/// `result[group][row][(channel, tap)] = sum over images and positions of dy[image][group, row][position] * window(position)`.
pub(crate) struct Gradient<'a, E: Scalar> {
    pub images: Images<E>,
    pub groups: usize,
    /// Distance between the groups' first input channels, in elements.
    pub group: isize,
    /// Output channels of a group.
    pub rows: usize,
    /// Output gradient, `[images][groups * rows][positions]`, dense.
    pub dy: *const E,
    pub sink: Sink<'a, E>,
}

// SAFETY: the gradient only reads through its pointers, and the sink takes disjoint parts.
unsafe impl<E: Scalar> Sync for Gradient<'_, E> {}

/// Independent parts of a weight gradient, summed at the end.
const SPLITS: usize = 16;

/// Computes a weight gradient.
///
/// # Safety
/// As for `contract`.
pub(crate) unsafe fn gradient<E: Scalar>(job: &Gradient<'_, E>, pool: &dyn ParallelFor) {
    let kernels = E::kernels();
    let nr = width(kernels, job.rows);
    let taps: usize = job.images.axes.iter().map(|axis| axis.taps).product();
    let cols = job.images.channels * taps;
    let layout = Layout::new(job.images, 2 * POSITIONS, 1);
    let padded = job.rows.next_multiple_of(nr);
    // A share keeps its sums in the second-level cache: some columns of the result, and all its rows.
    let share = ((64 << 10) / padded).max(1).min(cols).next_multiple_of(kernels.mr);
    let shares = cols.div_ceil(share);
    let splits = layout.blocks().min(SPLITS.div_ceil(job.groups * shares)).max(1);
    let block = cols * padded;
    let partials = Scratch::take(job.groups * splits * block * size_of::<E>());
    let sums: Shared<E> = Shared(partials.ptr());
    let work = layout.blocks().div_ceil(splits) * layout.most() * share * padded;
    each(pool, job.groups * splits * shares, work, &|i| {
        let (i, share_at) = (i / shares, i % shares * share);
        let (group, split) = (i / splits, i % splits);
        let blocks = layout.blocks();
        let range = split * blocks / splits..(split + 1) * blocks / splits;
        let part = share_at..(share_at + share).min(cols);
        let to = sums.at((group * splits + split) * block + share_at * padded);
        // SAFETY: as the caller's; shares and splits are disjoint.
        unsafe { accumulate(job, kernels, &layout, group, range, part, to) };
    });
    let width = (2048 / job.rows).clamp(1, cols);
    let pieces = cols.div_ceil(width);
    each(pool, job.groups * pieces, width * padded * splits, &|i| {
        let (group, col) = (i / pieces, i % pieces * width);
        let len = width.min(cols - col);
        let first = sums.at(group * splits * block + col * padded);
        let turned = Scratch::take(len * job.rows * size_of::<E>());
        // SAFETY: every split was written; pieces are disjoint.
        unsafe {
            let total = core::slice::from_raw_parts_mut(first, len * padded);
            for split in 1..splits {
                let more = core::slice::from_raw_parts(first.wrapping_add(split * block), len * padded);
                for (x, y) in total.iter_mut().zip(more) {
                    *x = x.plus(*y);
                }
            }
            let part = Part { batch: group, row: 0, rows: job.rows, col, cols: len };
            turn(&job.sink, kernels, first, padded, part, turned.ptr());
        }
    });
}

/// Sums the blocks `range` for the columns `part` of a weight gradient into `to`, column by column.
unsafe fn accumulate<E: Scalar>(
    job: &Gradient<'_, E>,
    kernels: &Kernels<E>,
    layout: &Layout<E>,
    group: usize,
    range: core::ops::Range<usize>,
    part: core::ops::Range<usize>,
    to: *mut E,
) {
    let (mr, nr) = (kernels.mr, width(kernels, job.rows));
    let axes = &job.images.axes;
    let taps: usize = axes.iter().map(|axis| axis.taps).product();
    let positions: usize = axes.iter().map(|axis| axis.positions).product();
    let (panels, padded) = (job.rows.div_ceil(nr), job.rows.next_multiple_of(nr));
    let most = layout.most();
    let align = |bytes: usize| bytes.next_multiple_of(64);
    let pointers = align(part.len() * size_of::<*const E>());
    let table = align(most * size_of::<i32>());
    let copied = align(layout.copied() * size_of::<E>());
    let held = Scratch::take(pointers + table + copied + padded * most * size_of::<E>());
    let first: *mut u8 = held.ptr();
    let columns: *mut *const E = first.cast();
    let offsets: *mut i32 = first.wrapping_add(pointers).cast();
    let copy: *mut E = first.wrapping_add(pointers + table).cast();
    let packed: *mut E = first.wrapping_add(pointers + table + copied).cast();
    // SAFETY: the scratch holds all four parts; as the caller's.
    unsafe {
        if range.is_empty() {
            to.write_bytes(0, part.len() * padded);
        }
        let channels = part.start / taps..part.end.div_ceil(taps);
        for index in range.clone() {
            let block = layout.block(index);
            let base = layout.prepare(kernels, &block, group as isize * job.group, channels.clone(), copy);
            layout.each_tap(|tap, at| {
                let from = part.start.saturating_sub(tap).div_ceil(taps);
                for c in from..job.images.channels {
                    let col = c * taps + tap;
                    if col >= part.end {
                        break;
                    }
                    columns.add(col - part.start).write(base.wrapping_offset(c as isize * layout.channel + at));
                }
            });
            let mut count = 0;
            layout.each_position(&block, |position, at| {
                offsets.add(position).write(at as i32);
                count = position + 1;
            });
            let col = (block.planes.start * axes[1].positions + block.rows.start) * axes[2].positions;
            let steps = block.planes.len() * block.rows.len() * axes[2].positions;
            if job.rows < padded {
                // Channels past the end are computed and dropped: they must be ordinary numbers.
                packed.add((panels - 1) * count * nr).write_bytes(0, count * nr);
            }
            for (i, image) in block.images.clone().enumerate() {
                let channel = (image * job.groups + group) * job.rows;
                let dy = Copy {
                    src: job.dy.add(channel * positions + col),
                    outer: positions as isize,
                    inner: 1,
                    len: job.rows,
                    k: steps,
                    dst: packed.add(i * steps * nr),
                    width: nr,
                    panel: count * nr,
                    lead: 0,
                };
                super::operand::copy(kernels, &dy);
            }
            for panel in 0..panels {
                let cols = nr.min(job.rows - panel * nr);
                for i in (0..part.len()).step_by(mr) {
                    let to = to.add(i * padded + panel * nr);
                    let tile = Tile {
                        k: count,
                        a: core::ptr::null(),
                        a_row: 0,
                        a_k: 0,
                        b: packed.add(panel * count * nr),
                        b_k: nr as isize,
                        from: if index == range.start { core::ptr::null() } else { to },
                        from_row: padded as isize,
                        to,
                        to_row: padded as isize,
                        cols,
                    };
                    let indirect = Indirect { tile, rows: columns.add(i), offsets };
                    kernels.pick_indirect(mr.min(part.len() - i), cols)(&indirect);
                }
            }
        }
    }
}
