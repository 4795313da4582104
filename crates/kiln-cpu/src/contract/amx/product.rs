//! The driver of the matrix unit: each unit of a result splits the operands' panels it needs, layer by layer, and multiplies them while they are in the caches.
//!
//! What several units need is split by each of them: that takes less time than fetching panels, which are half as large again as the numbers, from another
//! core's cache. Operands that must be computed or converted first are split once, before the units begin.

use core::ops::Range;

use super::super::engine::{Contraction, each};
use super::super::operand::{Block, Operand, View};
use super::super::parallel::ParallelFor;
use super::super::scratch::Scratch;
use super::super::sink::{Epilogue, Finished, Sink, Store};
use super::split::{Panel, finite, panel};
use super::units::{Units, pays};
use super::{BLOCK, STEPS, Tiles, WIDTH, excerpt, is_there};

/// Bytes that the split panels of an operand may take; larger ones that must be computed are computed for every unit.
const SHARED: usize = 64 << 20;

/// Computes a contraction on the matrix unit, if there is one and it pays; the caller computes it otherwise.
///
/// # Safety
/// As for [`super::super::contract`].
pub(crate) unsafe fn run(job: &Contraction<'_, f32>, pool: &dyn ParallelFor) -> bool {
    let sizes = [job.m, job.n, job.k];
    if !pays(sizes) || !is_there() {
        return false;
    }
    let units = Units::new(job.batch, sizes, matches!(job.sink, Sink::Epilogue(_)), pool.threads());
    let mut product = Product { job, units, sides: [Side::new(job.a, job.m, true), Side::new(job.b, job.n, false)] };
    let shared = [0, 1].map(|s| product.shares(s));
    let bytes = [0, 1].map(|s| if shared[s] { product.panels(s) * (product.bytes() * units.layers + size_of::<u32>()) } else { 0 });
    let held = Scratch::take(bytes[0].next_multiple_of(64) + bytes[1]);
    let mut first: *mut u8 = held.ptr();
    for s in 0..2 {
        if shared[s] {
            let panels = product.panels(s);
            let kept = Kept { panels: first, most: first.wrapping_add(panels * product.bytes() * units.layers).cast() };
            first = first.wrapping_add(bytes[s].next_multiple_of(64));
            // SAFETY: as the caller's; the scratch holds all panels, and each is made once.
            each(pool, panels, job.k * WIDTH * 32, &|i| unsafe { product.keep(s, &kept, i) });
            product.sides[s].kept = Some(kept);
        }
    }
    let [down, across] = units.count;
    let work = units.size[0] * units.size[1] * WIDTH * WIDTH * job.k / 4;
    each(pool, job.batch * across * down, work, &|i| {
        let (i, row) = (i / down, i % down);
        // SAFETY: as the caller's; units are disjoint, and shared panels were made.
        unsafe { product.unit(i / across, row, i % across) };
    });
    true
}

/// An operand.
struct Side<'a> {
    operand: &'a dyn Operand<f32>,
    /// Outer positions of an entry.
    outer: usize,
    left: bool,
    /// Its split panels, if they are shared.
    kept: Option<Kept>,
}

/// Split panels, `[slot][panel][layer]`, and the greatest magnitude in each panel, as bits.
#[derive(Clone, Copy)]
struct Kept {
    panels: *mut u8,
    most: *mut u32,
}

// SAFETY: tasks write panels of their own and read them in a later region.
unsafe impl Sync for Kept {}

impl<'a> Side<'a> {
    fn new(operand: &'a dyn Operand<f32>, outer: usize, left: bool) -> Self {
        Side { operand, outer, left, kept: None }
    }

    /// The numbers of an entry in memory, if panels can be split from them.
    fn view(&self, entry: usize, k: usize) -> Option<View<f32>> {
        self.operand.view(entry, 0).filter(|view| (view.inner == 1 || view.outer == 1) && self.operand.period() >= k)
    }
}

struct Product<'a, 'b> {
    job: &'a Contraction<'b, f32>,
    units: Units,
    sides: [Side<'a>; 2],
}

impl Product<'_, '_> {
    /// Bytes of a panel's layer.
    fn bytes(&self) -> usize {
        self.units.deep * BLOCK
    }

    /// Panels of all slots of a side.
    fn panels(&self, side: usize) -> usize {
        let side = &self.sides[side];
        side.operand.batch().slots() * side.outer.div_ceil(WIDTH)
    }

    /// Whether a side's panels are made once for all units.
    fn shares(&self, side: usize) -> bool {
        let (units, of) = (&self.units, &self.sides[side]);
        let often = units.count[1 - side] > 1 || of.operand.batch().slots() < self.job.batch;
        often && of.view(0, self.job.k).is_none() && self.panels(side) * self.bytes() * units.layers <= SHARED
    }

    /// Makes a shared panel.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn keep(&self, side: usize, kept: &Kept, index: usize) {
        let side = &self.sides[side];
        let panels = side.outer.div_ceil(WIDTH);
        let entry = side.operand.batch().entry(index / panels);
        let held = Scratch::take(self.values());
        let mut most = 0;
        for layer in 0..self.units.layers {
            let to = kept.panels.wrapping_add((index * self.units.layers + layer) * self.bytes());
            // SAFETY: as the caller's.
            most = most.max(unsafe { self.split(side, None, entry, index % panels, self.steps(layer), to, held.ptr()) });
        }
        // SAFETY: the scratch holds a magnitude for each panel.
        unsafe { kept.most.add(index).write(most) };
    }

    /// Bytes of a panel's layer as numbers.
    fn values(&self) -> usize {
        self.units.deep * STEPS * WIDTH * size_of::<f32>()
    }

    /// Steps of a layer.
    fn steps(&self, layer: usize) -> Range<usize> {
        let whole = self.units.deep * STEPS;
        layer * whole..((layer + 1) * whole).min(self.job.k)
    }

    /// Splits some steps of a panel; returns the greatest magnitude in it, as bits. Without a view the numbers go through `values`.
    ///
    /// # Safety
    /// As for [`run`]; both places have room.
    #[allow(clippy::too_many_arguments)]
    unsafe fn split(
        &self,
        side: &Side<'_>,
        view: Option<&View<f32>>,
        entry: usize,
        index: usize,
        steps: Range<usize>,
        to: *mut u8,
        values: *mut f32,
    ) -> u32 {
        let (from, steps, first) = (steps.start, steps.len(), index * WIDTH);
        let len = WIDTH.min(side.outer - first);
        let (ptr, outer, inner) = match view {
            Some(view) => (view.ptr.wrapping_offset(first as isize * view.outer + from as isize * view.inner), view.outer, view.inner),
            None => {
                let block = Block { batch: entry, outer: first, len, k: from, steps, width: WIDTH, panel: WIDTH * steps, lead: 0 };
                // SAFETY: as the caller's; the scratch holds the block.
                unsafe { side.operand.pack(&block, values) };
                (values.cast_const(), 1, WIDTH as isize)
            }
        };
        // SAFETY: as the caller's.
        unsafe { panel(&Panel { ptr, outer, inner, len, steps, to, left: side.left }) }
    }

    /// Computes a unit of an entry.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn unit(&self, entry: usize, row: usize, col: usize) {
        let (job, units) = (self.job, &self.units);
        let range = |at: usize, size: usize, total: usize| at * size..((at + 1) * size).min(total.div_ceil(WIDTH));
        let (rows, cols) = (range(row, units.size[0], job.m), range(col, units.size[1], job.n));
        let direct = match &job.sink {
            Sink::Store(store) if store.direct() && store.keep == 0.0 => Some(store),
            _ => None,
        };
        let [left, right] = &self.sides;
        let views = [left, right].map(|side| if side.kept.is_some() { None } else { side.view(entry, job.k) });
        // Sums that the sink takes are kept until they are whole.
        let stride = cols.len() * WIDTH + 16;
        let strips = if direct.is_some() || units.layers == 1 { 1 } else { rows.len() };
        let bytes = self.bytes();
        let parts =
            [bytes * cols.len(), bytes, self.values(), strips * WIDTH * stride * size_of::<f32>(), (rows.len() + cols.len()) * size_of::<u32>()];
        let held = Scratch::take(parts.iter().map(|part| part.next_multiple_of(64)).sum());
        let mut at: *mut u8 = held.ptr();
        let [right_panels, left_panel, values, sums, most] = parts.map(|part| {
            let here = at;
            at = at.wrapping_add(part.next_multiple_of(64));
            here
        });
        let (values, sums): (*mut f32, *mut f32) = (values.cast(), sums.cast());
        // SAFETY: the scratch has a place for the magnitudes of all panels, which are plain numbers.
        let (most_left, most_right) =
            unsafe { core::slice::from_raw_parts_mut(most.cast::<u32>(), rows.len() + cols.len()) }.split_at_mut(rows.len());
        most_left.fill(0);
        most_right.fill(0);
        // A panel of this layer: where it lies, after splitting it if it is not shared.
        let fetch = |side: usize, index: usize, layer: usize, to: *mut u8, most: &mut u32| -> *const u8 {
            let of = &self.sides[side];
            if let Some(kept) = &of.kept {
                let place = of.operand.batch().slot(entry) * of.outer.div_ceil(WIDTH) + index;
                // SAFETY: shared panels were made before.
                *most = unsafe { kept.most.add(place).read() };
                return kept.panels.wrapping_add((place * units.layers + layer) * bytes);
            }
            // SAFETY: as the caller's; the panel's place has room.
            *most = (*most).max(unsafe { self.split(of, views[side].as_ref(), entry, index, self.steps(layer), to, values) });
            to
        };
        // SAFETY: `run` asked whether the unit is there.
        let tiles = unsafe { Tiles::new() };
        for layer in 0..units.layers {
            let count = units.deep.min(job.k.div_ceil(STEPS) - layer * units.deep);
            let (fresh, last) = (layer == 0, layer + 1 == units.layers);
            let mut right_first = right_panels.cast_const();
            let mut apart = bytes;
            let by_rows = views[1].as_ref().filter(|view| view.outer == 1 && view.inner != 1);
            if let Some(view) = by_rows {
                // Rows of numbers are read along all panels, as they lie in memory.
                for block in 0..count {
                    let first = (layer * units.deep + block) * STEPS;
                    let steps = first..(first + STEPS).min(job.k);
                    for (c, index) in cols.clone().enumerate() {
                        let to = right_panels.wrapping_add(c * bytes + block * BLOCK);
                        // SAFETY: as the caller's; the panel's place has room.
                        let most = unsafe { self.split(right, Some(view), entry, index, steps.clone(), to, values) };
                        most_right[c] = most_right[c].max(most);
                    }
                }
            } else {
                for (c, index) in cols.clone().enumerate() {
                    let found = fetch(1, index, layer, right_panels.wrapping_add(c * bytes), &mut most_right[c]);
                    if right.kept.is_some() && c == 0 {
                        (right_first, apart) = (found, units.layers * bytes);
                    }
                }
            }
            for (r, index) in rows.clone().enumerate() {
                let left = fetch(0, index, layer, left_panel, &mut most_left[r]);
                let sums = sums.wrapping_add(if strips == 1 { 0 } else { r * WIDTH * stride });
                let strip = Strip {
                    entry,
                    row: index * WIDTH,
                    rows: WIDTH.min(job.m - index * WIDTH),
                    col: cols.start * WIDTH,
                    cols: (cols.end * WIDTH).min(job.n) - cols.start * WIDTH,
                };
                for c in 0..cols.len() {
                    let width = WIDTH.min(strip.cols - c * WIDTH);
                    let right = right_first.wrapping_add(c * apart);
                    let place = sums.wrapping_add(c * WIDTH);
                    // SAFETY: the panels have these blocks; whole tiles of the result are written in place, others in the scratch.
                    unsafe {
                        match direct {
                            None => tiles.multiply(left, right, count, place, (stride * 4) as isize, fresh),
                            Some(store) => {
                                let to = store.at(entry, strip.row, strip.col + c * WIDTH);
                                if strip.rows == WIDTH && width == WIDTH {
                                    tiles.multiply(left, right, count, to, store.row * 4, fresh);
                                } else {
                                    if !fresh {
                                        copy(to, store.row, place, stride as isize, [strip.rows, width]);
                                    }
                                    tiles.multiply(left, right, count, place, (stride * 4) as isize, fresh);
                                    copy(place, stride as isize, to, store.row, [strip.rows, width]);
                                }
                            }
                        }
                    }
                }
                if last {
                    // SAFETY: the strip's sums are whole.
                    unsafe { self.finish(&strip, direct, sums, stride, most_left[r], most_right) };
                }
            }
        }
    }

    /// Hands a strip to the sink; tiles of it whose operands cannot be split, or whose sums are not finite, are computed plainly.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn finish(&self, strip: &Strip, direct: Option<&Store<f32>>, sums: *mut f32, stride: usize, left: u32, right: &[u32]) {
        let &Strip { entry, row, rows, col, cols } = strip;
        let (first, step) = match direct {
            Some(store) => (store.at(entry, row, col), store.row),
            None => (sums, stride as isize),
        };
        let hand_over = |range: Range<usize>| {
            if range.is_empty() {
                return;
            }
            let part = Finished {
                batch: entry,
                row,
                rows,
                col: col + range.start,
                cols: range.len(),
                data: sums.wrapping_add(range.start),
                row_stride: stride,
            };
            // SAFETY: as the caller's; the part was computed.
            unsafe {
                match (&self.job.sink, direct) {
                    (_, Some(_)) => {}
                    (Sink::Store(store), None) => store.finish(&part),
                    (Sink::Epilogue(epilogue), None) => epilogue.finish(&part),
                }
            }
        };
        // SAFETY: as the caller's; the strip is part of the result.
        unsafe {
            if right.iter().all(|right| ordinary([left, *right])) && finite(first, step, rows, cols) {
                return hand_over(0..cols);
            }
            let mut from = 0;
            for (c, right) in right.iter().enumerate() {
                let tile = c * WIDTH..((c + 1) * WIDTH).min(cols);
                if !ordinary([left, *right]) || !finite(first.wrapping_add(tile.start), step, rows, tile.len()) {
                    hand_over(from..tile.start);
                    excerpt::compute(self.job, entry, row..row + rows, col + tile.start..col + tile.end, &super::super::Serial);
                    from = tile.end;
                }
            }
            hand_over(from..cols);
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

/// Whether panels of these greatest magnitudes can be split: nothing in them overflows, and what is lost below 2⁻¹²⁶ is far below their products.
fn ordinary(most: [u32; 2]) -> bool {
    let exponent = |bits: u32| (bits >> 23) as i32 - 127;
    let zero = most.contains(&0);
    most.iter().all(|bits| *bits < 0x7f7f_8000)
        && (zero || most.iter().all(|bits| exponent(*bits) >= -96) && exponent(most[0]) + exponent(most[1]) >= -80)
}

/// Copies rows of a tile.
unsafe fn copy(from: *const f32, from_row: isize, to: *mut f32, to_row: isize, [rows, cols]: [usize; 2]) {
    for r in 0..rows as isize {
        // SAFETY: the caller gives so many rows and columns on both sides.
        unsafe { to.wrapping_offset(r * to_row).copy_from_nonoverlapping(from.wrapping_offset(r * from_row), cols) };
    }
}
