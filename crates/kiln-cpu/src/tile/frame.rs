//! The state of one task while it runs a plan: slot pointers, coordinates, and the execution of steps.
use kiln_ir::BufId;
use smallvec::SmallVec;

use super::geometry::Mode;
use super::plan::Plan;
use super::random::RandomRow;
use super::reduction::{SearchRows, rows as row_count};
use super::step::*;
use super::stored::{Transposed, number};
use super::word::argument_bits;
use crate::memory::{Cache, OutOfMemory, Storage};

/// Columns from which the element of a row is repeated row by row.
const SPLAT: usize = 16;
/// Bytes asked for in advance at each step.
const PREFETCH_STEP: usize = 1024;

/// The memory a kernel works on.
#[derive(Clone, Copy)]
pub struct Buffers<'a> {
    /// Address of each buffer of the program; what a kernel does not touch may be null.
    pub addresses: &'a [*mut u8],
    /// Words of the run-time scalars.
    pub args: &'a [u64],
}

// SAFETY: tasks of a kernel write disjoint elements; the caller of a kernel vouches for the addresses.
unsafe impl Sync for Buffers<'_> {}
// SAFETY: as above.
unsafe impl Send for Buffers<'_> {}

impl Buffers<'_> {
    fn address(&self, buf: BufId) -> *mut u8 {
        self.addresses[buf.index()]
    }
}

/// What is computed once a run, for all tasks.
pub(super) struct Run<'a> {
    pub plan: &'a Plan,
    pub buffers: Buffers<'a>,
    /// Value of each access at coordinates 0.
    origins: SmallVec<[isize; 24]>,
    /// Whether no store overlaps a load, so that values may be computed in their destination.
    pub apart: bool,
}

impl<'a> Run<'a> {
    pub fn new(plan: &'a Plan, buffers: Buffers<'a>) -> Self {
        let origins = plan.accesses.iter().map(|a| a.origin(buffers.args)).collect();
        let apart = plan.stores.iter().all(|s| {
            let start = buffers.address(s.buf).addr();
            let end = start + s.len * s.stored as usize;
            // A buffer that starts inside the stored one or in which the stored one starts: lengths of read buffers are bounded by their end.
            plan.loads.iter().all(|l| {
                let from = buffers.address(l.buf).addr();
                let to = from + l.len * l.stored as usize;
                to <= start || end <= from
            })
        });
        Run { plan, buffers, origins, apart }
    }
}

/// A tile in the hands of a caller of a prologue or epilogue.
#[derive(Clone, Copy)]
pub(super) struct Foreign {
    pub pointer: *mut u8,
    /// Elements between rows.
    pub stride: usize,
}

/// The tile that steps work on.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// Axes of rows and columns.
    pub outer: usize,
    pub inner: usize,
    pub rows: usize,
    pub columns: usize,
}

/// Requests to the memory that may wait at once.
const WAITING: usize = 8;

/// The state of a task. Its tables lie behind the scratch memory of the plan, which numbered every entry.
pub(super) struct Frame<'a> {
    pub run: &'a Run<'a>,
    plan: &'a Plan,
    _memory: Storage,
    base: *mut u8,
    /// Where each slot points.
    slots: *mut *mut u8,
    /// One coordinate for each axis.
    coords: *mut usize,
    /// Where each load last read, to foresee where it reads next.
    last: *mut *const u8,
    pub foreign: Foreign,
    /// Bytes to ask for while steps compute: address, and how many.
    ahead: [(*const u8, usize); WAITING],
    waiting: usize,
    /// Position of the tile's first element (`Along`) or row (`Across`) among the reduced points.
    pub position: usize,
}

impl<'a> Frame<'a> {
    /// Scratch memory for a task, with the uniform values computed.
    pub fn new(run: &'a Run<'a>) -> Result<Self, OutOfMemory> {
        let plan = run.plan;
        let scratch = plan.scratch.next_multiple_of(8);
        let (slots, axes, loads) = (plan.homes.len(), plan.geometry.dims.len(), plan.loads.len());
        let memory = Cache::global().allocate(scratch + 8 * (slots + axes + loads))?;
        let base = memory.as_ptr();
        // SAFETY: the block is aligned and has room for the scratch memory and one word for each slot, axis and load.
        let mut frame = unsafe {
            let slots = base.add(scratch) as *mut *mut u8;
            let coords = slots.add(plan.homes.len()) as *mut usize;
            let last = coords.add(axes) as *mut *const u8;
            plan.homes.iter().enumerate().for_each(|(n, home)| *slots.add(n) = base.add(home.offset));
            (0..axes).for_each(|n| *coords.add(n) = 0);
            (0..loads).for_each(|n| *last.add(n) = core::ptr::null());
            for &(offset, bits) in &plan.constants {
                *(base.add(offset) as *mut u64) = bits;
            }
            let foreign = Foreign { pointer: core::ptr::null_mut(), stride: 0 };
            let ahead = [(core::ptr::null(), 0); WAITING];
            Frame { run, plan, _memory: memory, base, slots, coords, last, foreign, ahead, waiting: 0, position: 0 }
        };
        // SAFETY: uniform steps touch single elements of scratch memory only.
        unsafe { frame.execute(&plan.uniform, &Tile { outer: 0, inner: 0, rows: 1, columns: 1 }) };
        Ok(frame)
    }

    /// The coordinates.
    #[inline]
    pub fn coords(&mut self) -> &mut [usize] {
        // SAFETY: there is one for each axis, and they are borrowed with the frame.
        unsafe { core::slice::from_raw_parts_mut(self.coords, self.plan.geometry.dims.len()) }
    }

    /// One coordinate.
    #[inline]
    pub fn coord(&self, axis: usize) -> usize {
        debug_assert!(axis < self.plan.geometry.dims.len());
        // SAFETY: the geometry's axes are below its rank.
        unsafe { *self.coords.add(axis) }
    }

    /// Sets one coordinate.
    #[inline]
    pub fn set_coord(&mut self, axis: usize, value: usize) {
        self.coords()[axis] = value;
    }

    /// Sets the moving slots for lane `lane` and reduced element `element` of the block.
    #[inline]
    pub fn move_slots(&mut self, lane: usize, element: usize) {
        for &slot in &self.plan.moving {
            let home = self.plan.homes[slot as usize];
            let by = match home.motion {
                Motion::Fixed => 0,
                Motion::Lane(size) => lane * size as usize,
                Motion::Row(size) => element * size as usize,
            };
            self.set_slot(slot, self.base.wrapping_add(home.offset + by));
        }
    }

    #[inline]
    fn offset(&self, access: AccessId) -> isize {
        let rank = self.plan.geometry.dims.len();
        debug_assert!((access as usize) < self.run.origins.len());
        // SAFETY: the plan numbers accesses below their count, and has one coefficient for each of them and axis.
        unsafe {
            let coeffs = self.plan.coeffs.as_ptr().add(access as usize * rank);
            let mut at = *self.run.origins.get_unchecked(access as usize);
            for axis in 0..rank {
                at += *coeffs.add(axis) * *self.coords.add(axis) as isize;
            }
            at
        }
    }

    #[inline]
    fn strides(&self, access: AccessId, tile: &Tile) -> (isize, isize) {
        let at = access as usize * self.plan.geometry.dims.len();
        (self.plan.coeffs[at + tile.outer], self.plan.coeffs[at + tile.inner])
    }

    /// Where a slot points.
    #[inline]
    pub fn slot(&self, slot: Slot) -> *mut u8 {
        debug_assert!((slot as usize) < self.plan.homes.len());
        // SAFETY: the plan numbers slots below the number of homes.
        unsafe { *self.slots.add(slot as usize) }
    }

    #[inline]
    fn set_slot(&mut self, slot: Slot, pointer: *mut u8) {
        debug_assert!((slot as usize) < self.plan.homes.len());
        // SAFETY: as above.
        unsafe { *self.slots.add(slot as usize) = pointer };
    }

    #[inline]
    fn home(&self, slot: Slot) -> *mut u8 {
        self.base.wrapping_add(self.plan.homes[slot as usize].offset)
    }

    /// Executes steps on a tile at the current coordinates.
    ///
    /// # Safety
    /// The plan's buffers are valid for every point of the tile, and no other task writes what this one reads or writes.
    pub unsafe fn execute(&mut self, steps: &[Step], tile: &Tile) {
        let n = tile.rows * tile.columns;
        let null = core::ptr::null();
        for step in steps {
            self.ask_ahead();
            match *step {
                Step::Map { run, dst, sources: [a, b, c], one } => {
                    // SAFETY: slots hold `n` elements (or the one that the loop reads), and a destination is no source.
                    unsafe { run(self.slot(dst), self.slot(a), self.slot(b), self.slot(c), if one { 1 } else { n }) };
                }
                Step::Load { load, dst, one } => {
                    let (rows, columns) = if one { (1, 1) } else { (tile.rows, tile.columns) };
                    // SAFETY: the caller's promise.
                    unsafe { self.load(load as usize, dst, tile, rows, columns) };
                }
                Step::Place { store, slot } => {
                    let store = &self.plan.stores[store as usize];
                    let (so, si) = self.strides(store.access, tile);
                    let contiguous = si == 1 && (tile.rows == 1 || so == tile.columns as isize);
                    if store.ahead != 0 && si == 1 {
                        let bytes = n * store.stored as usize;
                        self.ask(self.target(store).wrapping_offset(store.ahead), bytes);
                    }
                    let place = if self.run.apart && contiguous { self.target(store) } else { self.home(slot) };
                    self.set_slot(slot, place);
                }
                Step::Store { store, src } => {
                    // SAFETY: the caller's promise.
                    unsafe { self.store(&self.plan.stores[store as usize], self.slot(src), tile) };
                }
                Step::Count { run, access, dst } => {
                    let (so, si) = self.strides(access, tile);
                    let at = self.offset(access);
                    for row in 0..tile.rows {
                        let pair = [(at + row as isize * so) as i64, si as i64];
                        // SAFETY: the slot holds a tile of 8-byte elements.
                        unsafe { run(self.slot(dst).add(row * tile.columns * 8), pair.as_ptr().cast(), null, null, tile.columns) };
                    }
                }
                Step::Random { run, words, access, seed, dst, step_bytes } => {
                    let (so, si) = self.strides(access, tile);
                    let at = self.offset(access);
                    // SAFETY: the seed is a `u64` in a slot.
                    let seed = unsafe { *(self.slot(seed) as *const u64) };
                    for row in 0..tile.rows {
                        let numbers = RandomRow { seed, start: (at + row as isize * so) as u64, step: si as i64, words };
                        // SAFETY: the slot holds a tile.
                        unsafe {
                            let to = self.slot(dst).add(row * tile.columns * step_bytes as usize);
                            run(to, (&raw const numbers).cast(), null, null, tile.columns);
                        }
                    }
                }
                Step::Inside { bounds, dst } => {
                    let bounds = &self.plan.bounds[bounds as usize];
                    for row in 0..tile.rows {
                        let (low, high) = self.inside(bounds, tile, row);
                        // SAFETY: the slot holds a tile of bytes.
                        unsafe {
                            let to = self.slot(dst).add(row * tile.columns);
                            to.write_bytes(0, tile.columns);
                            to.add(low).write_bytes(1, high - low);
                        }
                    }
                }
                Step::Along { reduce, src } => {
                    let plan = &self.plan.reduces[reduce as usize];
                    // SAFETY: the cell is ours and the slot holds a tile.
                    unsafe { (plan.loops.along)(self.slot(plan.cell), self.slot(src), number(self.position as isize), null, n) };
                }
                Step::Products { run, reduce, a, b } => {
                    let plan = &self.plan.reduces[reduce as usize];
                    // SAFETY: the cell is ours and the slots hold tiles.
                    unsafe { run(self.slot(plan.cell), self.slot(a), self.slot(b), null, n) };
                }
                Step::Across { reduce, src } => {
                    let plan = &self.plan.reduces[reduce as usize];
                    let (cell, src) = (self.slot(plan.cell), self.slot(src));
                    if plan.loops.search {
                        let search = SearchRows { best: self.slot(plan.aside), position: self.position as i64, rows: tile.rows };
                        // SAFETY: accumulators for all columns are ours and the slot holds a tile.
                        unsafe { (plan.loops.across)(cell, src, (&raw const search).cast(), null, tile.columns) };
                    } else {
                        // SAFETY: as above.
                        unsafe { (plan.loops.across)(cell, src, row_count(tile.rows), null, tile.columns) };
                    }
                }
                Step::Expand { src, dst, size } => {
                    let bytes = tile.columns * size as usize;
                    for row in 0..self.plan.geometry.rows {
                        // SAFETY: the destination holds a tile of the geometry's rows, the source one row, in different memory.
                        unsafe { core::ptr::copy_nonoverlapping(self.slot(src), self.slot(dst).add(row * bytes), bytes) };
                    }
                }
                Step::Splat { src, dst, size } => {
                    // SAFETY: the source holds an element and the destination a tile.
                    unsafe { splat(self.slot(dst), self.slot(src), size, n) };
                }
                Step::Acc { dst, size } => {
                    let (size, stride) = (size as usize, self.foreign.stride);
                    if tile.rows == 1 || stride == tile.columns {
                        self.set_slot(dst, self.foreign.pointer);
                        continue;
                    }
                    let home = self.home(dst);
                    self.set_slot(dst, home);
                    for row in 0..tile.rows {
                        // SAFETY: the caller's tile has these rows, the slot room for them.
                        unsafe {
                            let from = self.foreign.pointer.add(row * stride * size);
                            core::ptr::copy_nonoverlapping(from, home.add(row * tile.columns * size), tile.columns * size);
                        }
                    }
                }
                Step::Out { src, size } => {
                    let bytes = tile.columns * size as usize;
                    for row in 0..tile.rows {
                        // SAFETY: the caller's tile has room for these rows.
                        unsafe {
                            let to = self.foreign.pointer.add(row * self.foreign.stride * size as usize);
                            core::ptr::copy_nonoverlapping(self.slot(src).add(row * bytes), to, bytes);
                        }
                    }
                }
                Step::Arg { number, dst, form } => {
                    let bits = argument_bits(form, self.run.buffers.args[number as usize]);
                    // SAFETY: uniform slots have 8 bytes.
                    unsafe { *(self.slot(dst) as *mut u64) = bits };
                }
            }
        }
    }

    /// Asks for a few cache lines that the next tiles need. Spread over the steps, the requests never fill the queue of the memory unit.
    #[inline]
    fn ask_ahead(&mut self) {
        if self.waiting == 0 {
            return;
        }
        let (from, bytes) = &mut self.ahead[self.waiting - 1];
        let now = (*bytes).min(PREFETCH_STEP);
        prefetch(*from, now);
        *from = from.wrapping_add(now);
        *bytes -= now;
        if *bytes == 0 {
            self.waiting -= 1;
        }
    }

    /// Address of a store's first element of the tile.
    #[inline]
    fn target(&self, store: &StorePlan) -> *mut u8 {
        self.run.buffers.address(store.buf).wrapping_offset(self.offset(store.access) * store.stored as isize)
    }

    /// The columns of a row of the tile that are inside all bounds.
    fn inside(&self, bounds: &Bounds, tile: &Tile, row: usize) -> (usize, usize) {
        let (mut low, mut high) = (0isize, tile.columns as isize);
        for &(access, extent) in bounds {
            let (so, si) = self.strides(access, tile);
            let at = self.offset(access) + so * row as isize;
            let extent = extent as isize;
            match si {
                0 if (0..extent).contains(&at) => {}
                0 => high = 0,
                s if s > 0 => {
                    low = low.max((-at).max(0).div_ceil_of(s));
                    high = high.min((extent - at).max(0).div_ceil_of(s));
                }
                s => {
                    // Falling values: at + s i < extent and at + s i >= 0.
                    let s = -s;
                    low = low.max((at - extent + 1).max(0).div_ceil_of(s));
                    high = high.min(if at < 0 { 0 } else { at / s + 1 });
                }
            }
        }
        if low >= high { (0, 0) } else { (low as usize, high as usize) }
    }

    /// Whether the whole tile is inside all bounds.
    fn is_inside(&self, bounds: &Bounds, tile: &Tile) -> bool {
        bounds.iter().all(|&(access, extent)| {
            let (so, si) = self.strides(access, tile);
            let (down, right) = (so * (tile.rows as isize - 1), si * (tile.columns as isize - 1));
            let at = self.offset(access);
            at + down.min(0) + right.min(0) >= 0 && at + down.max(0) + right.max(0) < extent as isize
        })
    }

    /// Notes what a load that reads `bytes` bytes at `from` will read next. Later passes over the same block find it loaded.
    #[inline]
    fn foresee(&mut self, load: usize, from: *const u8, bytes: usize) {
        // SAFETY: there is an entry for each load.
        let last = unsafe { core::mem::replace(&mut *self.last.add(load), from) };
        if from <= last {
            return;
        }
        let step = match self.plan.geometry.mode {
            // The same row of the next block.
            Mode::Along => self.plan.loads[load].ahead,
            // The tile as far ahead as this one is from the last.
            Mode::Map | Mode::Across => from.addr().wrapping_sub(last.addr()) as isize,
        };
        if step != 0 {
            self.ask(from.wrapping_offset(step), bytes);
        }
    }

    /// Notes bytes that will be needed soon, unless there are many already.
    #[inline]
    fn ask(&mut self, from: *const u8, bytes: usize) {
        if self.waiting < WAITING {
            self.ahead[self.waiting] = (from, bytes);
            self.waiting += 1;
        }
    }

    /// # Safety
    /// The buffer is readable where the bounds hold.
    unsafe fn load(&mut self, number_of_load: usize, dst: Slot, tile: &Tile, rows: usize, columns: usize) {
        let load = &self.plan.loads[number_of_load];
        let buffer = self.run.buffers.address(load.buf);
        let from = buffer.wrapping_offset(self.offset(load.access) * load.stored as isize) as *const u8;
        let (so, si) = self.strides(load.access, tile);
        let contiguous = (si == 1 || columns == 1) && (rows == 1 || so == columns as isize);
        let inside = load.bounds.is_empty() || self.is_inside(&load.bounds, &Tile { rows, columns, ..*tile });
        if self.plan.prefetch && si == 1 {
            self.foresee(number_of_load, from, load.stored as usize * columns * if contiguous { rows } else { 1 });
        }
        if contiguous && inside && load.moves.native && !load.copied {
            self.set_slot(dst, from as *mut u8);
            return;
        }
        // A value kept for the row has its place there.
        let home = match self.plan.homes[dst as usize].motion {
            Motion::Fixed => self.home(dst),
            Motion::Lane(_) | Motion::Row(_) => self.slot(dst),
        };
        self.set_slot(dst, home);
        let (held, stored) = (load.held as usize, load.stored as isize);
        let null = core::ptr::null();
        // SAFETY: the home holds a tile; the buffer is readable at every point that is inside.
        unsafe {
            if !inside {
                for row in 0..rows {
                    let (low, high) = self.inside(&load.bounds, &Tile { rows, columns, ..*tile }, row);
                    let to = home.add(row * columns * held);
                    to.write_bytes(0, columns * held);
                    if low < high {
                        let from = from.wrapping_offset((so * row as isize + si * low as isize) * stored);
                        load_row(load, to.add(low * held), from, si, high - low);
                    }
                }
            } else if contiguous {
                (load.moves.load)(home, from, null, null, rows * columns);
            } else if si == 0 && so == 0 {
                (load.moves.load_strided)(home, from, number(0), null, rows * columns);
            } else if si == 0 && columns >= SPLAT {
                for row in 0..rows {
                    let from = from.wrapping_offset(so * row as isize * stored);
                    let mut element = 0u64;
                    (load.moves.load)((&raw mut element).cast(), from, null, null, 1);
                    splat(home.add(row * columns * held), (&raw const element).cast(), load.held, columns);
                }
            } else if so == 0 {
                load_row(load, home, from, si, columns);
                let bytes = columns * held;
                for row in 1..rows {
                    core::ptr::copy_nonoverlapping(home, home.add(row * bytes), bytes);
                }
            } else if so == 1 && rows > 1 && columns > 1 {
                let shape = Transposed { rows, step: si };
                (load.moves.load_transposed)(home, from, (&raw const shape).cast(), null, columns);
            } else {
                for row in 0..rows {
                    load_row(load, home.add(row * columns * held), from.wrapping_offset(so * row as isize * stored), si, columns);
                }
            }
        }
    }

    /// # Safety
    /// The buffer is writable at every point of the tile.
    unsafe fn store(&self, store: &StorePlan, src: *const u8, tile: &Tile) {
        let target = self.target(store);
        let (so, si) = self.strides(store.access, tile);
        let (rows, columns) = (tile.rows, tile.columns);
        let null = core::ptr::null();
        let held = store.held as usize;
        // SAFETY: the slot holds a tile, and the caller vouches for the buffer.
        unsafe {
            if (si == 1 || columns == 1) && (rows == 1 || so == columns as isize) {
                if core::ptr::eq(src, target) {
                    return;
                }
                (if store.stream { store.moves.stream } else { store.moves.store })(target, src, null, null, rows * columns);
                return;
            }
            for row in 0..rows {
                let from = src.add(row * columns * held);
                let to = target.wrapping_offset(so * row as isize * store.stored as isize);
                if si == 1 {
                    (if store.stream { store.moves.stream } else { store.moves.store })(to, from, null, null, columns);
                } else {
                    (store.moves.store_strided)(to, from, number(si), null, columns);
                }
            }
        }
    }
}

/// # Safety
/// `n` elements are readable `step` apart, and writable at `to`.
unsafe fn load_row(load: &LoadPlan, to: *mut u8, from: *const u8, step: isize, n: usize) {
    let null = core::ptr::null();
    // SAFETY: the caller's promise.
    unsafe {
        if step == 1 {
            (load.moves.load)(to, from, null, null, n);
        } else {
            (load.moves.load_strided)(to, from, number(step), null, n);
        }
    }
}

/// Asks for `bytes` bytes at `from`, which may be anywhere.
#[inline]
fn prefetch(from: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch does nothing at an address that cannot be read.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.wrapping_add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, bytes);
}

/// Waits until what was written past the caches is visible to other threads.
#[inline]
pub(super) fn fence_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// Repeats an element of `size` bytes `n` times.
///
/// # Safety
/// The source holds an element, and the destination room for `n`, apart from it.
pub(super) unsafe fn splat(dst: *mut u8, src: *const u8, size: u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => dst.write_bytes(*src, n),
            4 => core::slice::from_raw_parts_mut(dst as *mut u32, n).fill(*(src as *const u32)),
            _ => core::slice::from_raw_parts_mut(dst as *mut u64, n).fill(*(src as *const u64)),
        }
    }
}

trait DivCeil {
    fn div_ceil_of(self, by: isize) -> isize;
}

impl DivCeil for isize {
    /// Quotient rounded up, for a non-negative dividend.
    fn div_ceil_of(self, by: isize) -> isize {
        (self as usize).div_ceil(by as usize) as isize
    }
}
