//! The driver: cuts a contraction into units, packs operands, and walks the register tiles.

use super::implicit::{Part, turn};
use super::micro::{Kernels, Scalar, Tile};
use super::operand::{Block, Operand, View};
use super::parallel::ParallelFor;
use super::plan::{Mode, Plan, Sizes};
use super::scratch::Scratch;
use super::sink::{Epilogue, Finished, Sink, Store};
use super::skinny;

/// A batch of matrix products: `result[b][i][j] = sum_p a[b][i][p] * b[b][j][p]`.
#[derive(Clone)]
pub struct Contraction<'a, E> {
    /// Entries of the batch.
    pub batch: usize,
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Terms of each sum; with none the sums are zero.
    pub k: usize,
    /// The left operand; its outer axis is the rows.
    pub a: &'a dyn Operand<E>,
    /// The right operand; its outer axis is the columns.
    pub b: &'a dyn Operand<E>,
    /// Where the sums go.
    pub sink: Sink<'a, E>,
}

/// Computes a contraction. The result does not depend on the number of threads.
///
/// # Safety
/// The memory that the operands describe is readable, and that of the sink writable, for the extents given; the result
/// overlaps no operand and no two of its elements share memory.
pub unsafe fn contract<E: Scalar>(job: &Contraction<'_, E>, pool: &dyn ParallelFor) {
    if job.batch * job.m * job.n == 0 {
        return;
    }
    // A result that is one column, or adjacent down its columns, is computed transposed.
    match &job.sink {
        Sink::Store(store) if (job.n == 1 && job.m > 1) || (store.row == 1 && store.col != 1 && job.n > 1) => {
            let store = Store { row: store.col, col: store.row, ..store.clone() };
            let turned = Contraction { m: job.n, n: job.m, a: job.b, b: job.a, sink: Sink::Store(store), ..*job };
            // SAFETY: as the caller's.
            unsafe { oriented(&turned, pool) }
        }
        Sink::Epilogue(inner) if job.n == 1 && job.m > 1 => {
            let turned = Turned(*inner);
            let turned = Contraction { m: job.n, n: job.m, a: job.b, b: job.a, sink: Sink::Epilogue(&turned), ..*job };
            // SAFETY: as the caller's.
            unsafe { oriented(&turned, pool) }
        }
        // SAFETY: as the caller's.
        _ => unsafe { oriented(job, pool) },
    }
}

/// Hands a row to an epilogue that expects a column.
struct Turned<'a, E>(&'a dyn Epilogue<E>);

impl<E: Scalar> Epilogue<E> for Turned<'_, E> {
    unsafe fn finish(&self, part: &Finished<E>) {
        debug_assert_eq!(part.rows, 1);
        let turned = Finished { row: part.col, rows: part.cols, col: part.row, cols: 1, row_stride: 1, ..*part };
        // SAFETY: one row of adjacent columns is one column of adjacent rows.
        unsafe { self.0.finish(&turned) }
    }
}

/// True if the right operand is large and lies by columns while the left one is small: as the left one of the transposed
/// product it is read where it lies, and only the small one is packed.
fn reads_better_turned<E: Scalar>(job: &Contraction<'_, E>) -> bool {
    let by_steps = |operand: &dyn Operand<E>| operand.period() >= job.k && operand.view(0, 0).is_some_and(|view| view.inner == 1 && view.outer != 1);
    job.m <= 256 && job.n >= 2 * job.m && job.k >= 64 && by_steps(job.b) && by_steps(job.a)
}

/// Hands a transposed part to a sink.
struct Across<'a, 'b, E>(&'a Sink<'b, E>);

impl<E: Scalar> Epilogue<E> for Across<'_, '_, E> {
    unsafe fn finish(&self, part: &Finished<E>) {
        let turned = Scratch::take(part.rows * part.cols * size_of::<E>());
        let across = Part { batch: part.batch, row: part.col, rows: part.cols, col: part.row, cols: part.rows };
        // SAFETY: as the caller's; the scratch holds the part.
        unsafe { turn(self.0, E::kernels(), part.data, part.row_stride, across, turned.ptr()) }
    }
}

unsafe fn oriented<E: Scalar>(job: &Contraction<'_, E>, pool: &dyn ParallelFor) {
    // SAFETY: as the caller's.
    unsafe {
        if !skinny::run(job, pool) && !E::on_matrix_unit(job, pool) {
            plainly(job, pool);
        }
    }
}

/// Computes a contraction with register tiles.
///
/// # Safety
/// As for [`contract`].
pub(crate) unsafe fn plainly<E: Scalar>(job: &Contraction<'_, E>, pool: &dyn ParallelFor) {
    // SAFETY: as the caller's.
    unsafe {
        if reads_better_turned(job) {
            let sink = Across(&job.sink);
            let turned = Contraction { m: job.n, n: job.m, a: job.b, b: job.a, sink: Sink::Epilogue(&sink), ..*job };
            return plainly(&turned, pool);
        }
        let kernels = E::kernels();
        let direct = match &job.sink {
            Sink::Store(store) => store.direct(),
            Sink::Epilogue(_) => false,
        };
        let plan = Plan::new(&Sizes {
            m: job.m,
            n: job.n,
            k: job.k,
            batch: job.batch,
            run: job.a.batch().run().clamp(1, job.batch),
            mr: kernels.mr,
            nr: kernels.nr(),
            lanes: kernels.lanes,
            size: size_of::<E>(),
            threads: pool.threads(),
            a_rows: job.a.view(0, 0).is_some_and(|view| view.inner == 1),
            b_view: job.b.view(0, 0).is_some_and(|view| view.outer == 1),
            period: job.a.period().min(job.b.period()),
            b_aligned: job.b.view(0, 0).is_some_and(|view| {
                let row = view.inner * size_of::<E>() as isize;
                (view.ptr as usize).is_multiple_of(64) && row % 64 == 0 && row <= 2048
            }),
            direct,
        });
        Driver { job, plan, kernels, shared: core::ptr::null_mut(), partials: core::ptr::null_mut() }.run(pool);
    }
}

struct Driver<'a, E: Scalar> {
    job: &'a Contraction<'a, E>,
    plan: Plan,
    kernels: &'static Kernels<E>,
    /// The packed left operand, if it is shared.
    shared: *mut E,
    /// Sums of the parts of a split contraction: `[split][batch][m][n]`.
    partials: *mut E,
}

// SAFETY: units write disjoint memory; the pointers are to scratch that outlives the run.
unsafe impl<E: Scalar> Sync for Driver<'_, E> {}

/// A piece of work: some rows and columns of one result, over one part of the contraction.
struct Unit {
    /// First batch entry.
    batch: usize,
    /// Batch entries side by side.
    fold: usize,
    rows: (usize, usize),
    /// Columns, counted over the folded entries.
    cols: (usize, usize),
    split: usize,
    ks: (usize, usize),
}

/// An operand as the micro-kernel sees it, within a unit.
struct Side<E> {
    ptr: *const E,
    /// Distance between panels (packed) or between outer positions.
    outer: isize,
    /// Distance between steps.
    inner: isize,
    packed: bool,
}

impl<E: Scalar> Driver<'_, E> {
    unsafe fn run(mut self, pool: &dyn ParallelFor) {
        let (job, plan) = (self.job, self.plan.clone());
        let run = job.a.batch().run().clamp(1, job.batch);
        let mr = self.kernels.mr;

        let held;
        if plan.a == Mode::Shared {
            let slots = job.batch / run;
            let panels = job.m.div_ceil(mr);
            held = Scratch::take(slots * panels * mr * job.k * size_of::<E>());
            self.shared = held.ptr();
            // SAFETY: as the caller's; each task packs its own panels.
            each(pool, slots * panels, job.k * mr * 8, &|i| unsafe { self.pack_shared(i / panels * run, i % panels) });
        }

        let partials;
        let splits = plan.splits;
        if splits > 1 {
            partials = Scratch::take(splits * job.batch * job.m * job.n * size_of::<E>());
            self.partials = partials.ptr();
        }

        let (m_units, n_units) = (job.m.div_ceil(plan.m_unit), (plan.fold * job.n).div_ceil(plan.n_unit));
        let folds = run.div_ceil(plan.fold);
        let groups = job.batch / run;
        let units = groups * folds * splits * m_units * n_units;
        let work = plan.m_unit.min(job.m) * plan.n_unit * job.k.div_ceil(splits);
        // SAFETY: as the caller's; units are disjoint.
        each(pool, units, work, &|i| unsafe {
            let (i, col) = (i / n_units, i % n_units);
            let (i, row) = (i / m_units, i % m_units);
            let (i, split) = (i / splits, i % splits);
            let (group, image) = (i / folds, i % folds * plan.fold);
            let fold = plan.fold.min(run - image);
            let cols = (col * plan.n_unit, ((col + 1) * plan.n_unit).min(fold * job.n));
            if cols.0 >= cols.1 {
                return;
            }
            let step = plan.split_step;
            self.unit(&Unit {
                batch: group * run + image,
                fold,
                rows: (row * plan.m_unit, ((row + 1) * plan.m_unit).min(job.m)),
                cols,
                split,
                ks: ((split * step).min(job.k), ((split + 1) * step).min(job.k)),
            });
        });

        if splits > 1 {
            let rows = (4096 / job.n).clamp(1, job.m);
            let blocks = job.m.div_ceil(rows);
            // SAFETY: as the caller's; blocks of rows are disjoint.
            each(pool, job.batch * blocks, rows * job.n * splits, &|i| unsafe {
                let row = i % blocks * rows;
                self.reduce(i / blocks, row, rows.min(job.m - row));
            });
        }
    }

    /// Packs one panel of the shared left operand.
    unsafe fn pack_shared(&self, batch: usize, panel: usize) {
        let (job, mr) = (self.job, self.kernels.mr);
        let block = Block { batch, outer: panel * mr, len: mr.min(job.m - panel * mr), k: 0, steps: job.k, width: mr, panel: mr * job.k, lead: 0 };
        // SAFETY: the scratch was sized for all panels.
        unsafe { job.a.pack(&block, self.shared_panel(batch, panel)) }
    }

    /// Where a panel of the shared left operand is.
    fn shared_panel(&self, batch: usize, panel: usize) -> *mut E {
        let job = self.job;
        let run = job.a.batch().run().clamp(1, job.batch);
        let panels = job.m.div_ceil(self.kernels.mr);
        self.shared.wrapping_add((batch / run * panels + panel) * self.kernels.mr * job.k)
    }

    /// Computes a unit.
    unsafe fn unit(&self, unit: &Unit) {
        let (plan, mr, nr) = (&self.plan, self.kernels.mr, self.kernels.nr());
        let (row0, row1) = unit.rows;
        let (col0, col1) = unit.cols;
        let cols = col1 - col0;
        let padded = cols.next_multiple_of(nr);
        let single = plan.k_step.min(plan.period) >= unit.ks.1 - unit.ks.0;
        let target = self.target(unit);

        let a_len = if plan.a == Mode::Private { (row1 - row0).next_multiple_of(mr) * plan.k_step } else { 0 };
        let b_len = if plan.b == Mode::Private { padded } else { nr } * plan.k_step;
        let stride = padded + 16;
        let c_rows = if single { plan.mc } else { row1 - row0 };
        let c_len = if target.is_some() { 0 } else { c_rows * stride };
        let align = |len: usize| len.next_multiple_of(64);
        let held = Scratch::take((align(a_len) + align(b_len) + c_len) * size_of::<E>());
        let a_pack: *mut E = held.ptr();
        let b_pack = a_pack.wrapping_add(align(a_len));
        let c_pack = b_pack.wrapping_add(align(b_len));

        let mut k0 = unit.ks.0;
        loop {
            let period_end = (k0 / plan.period + 1).saturating_mul(plan.period);
            let k1 = (k0 + plan.k_step).min(period_end).min(unit.ks.1);
            // SAFETY: the scratch holds the packed blocks; as the caller's.
            unsafe {
                let a = self.left(unit, (k0, k1), a_pack);
                let b = self.right(unit, (k0, k1), b_pack);
                let tail = if b.packed || cols.is_multiple_of(nr) {
                    None
                } else {
                    let from = cols / nr * nr;
                    self.pack_right(unit, (from, cols), (k0, k1), b_pack);
                    Some((from, b_pack))
                };
                let last = k1 == unit.ks.1;
                for i0 in (row0..row1).step_by(plan.mc) {
                    let i1 = (i0 + plan.mc).min(row1);
                    let (to, to_row, keep) = match &target {
                        Some(store) => (store.at(unit.batch, i0, col0), store.row, store.keep != E::ZERO),
                        None => {
                            let first = if single { 0 } else { i0 - row0 };
                            (c_pack.wrapping_add(first * stride), stride as isize, false)
                        }
                    };
                    let walk = Walk {
                        a: Side { ptr: self.row_start(&a, i0 - row0), ..a },
                        b: Side { ..b },
                        tail,
                        to,
                        to_row,
                        rows: i1 - i0,
                        cols,
                        k: k1 - k0,
                        fresh: k0 == unit.ks.0 && !keep,
                    };
                    self.walk(&walk);
                    if last && target.is_none() {
                        self.emit(unit, (i0, i1), to, stride);
                    }
                }
            }
            k0 = k1;
            if k0 >= unit.ks.1 {
                return;
            }
        }
    }

    /// Memory that the micro-kernels may write themselves, if they may.
    fn target(&self, unit: &Unit) -> Option<Store<E>> {
        let job = self.job;
        if self.plan.splits > 1 {
            let size = job.m * job.n;
            let part = self.partials.wrapping_add(unit.split * job.batch * size);
            let batch = super::operand::Offsets::new(&[(job.batch, size as isize)]);
            return Some(Store::new(part, job.n as isize, 1, batch));
        }
        match &job.sink {
            Sink::Store(store) if store.direct() && unit.fold == 1 => Some(store.clone()),
            _ => None,
        }
    }

    /// The left operand of a unit, from its first row.
    unsafe fn left(&self, unit: &Unit, ks: (usize, usize), pack: *mut E) -> Side<E> {
        let (job, mr) = (self.job, self.kernels.mr);
        let (row0, row1) = unit.rows;
        match (self.plan.a, job.a.view(unit.batch, ks.0)) {
            (Mode::Direct, Some(View { ptr, outer, inner })) => Side { ptr: ptr.wrapping_offset(row0 as isize * outer), outer, inner, packed: false },
            (Mode::Shared, _) => Side {
                ptr: self.shared_panel(unit.batch, row0 / mr).wrapping_add(ks.0 * mr),
                outer: (mr * job.k) as isize,
                inner: mr as isize,
                packed: true,
            },
            (Mode::Private | Mode::Direct, _) => {
                let panel = mr * (ks.1 - ks.0);
                let block = Block { batch: unit.batch, outer: row0, len: row1 - row0, k: ks.0, steps: ks.1 - ks.0, width: mr, panel, lead: 0 };
                // SAFETY: the scratch holds the block.
                unsafe { job.a.pack(&block, pack) };
                Side { ptr: pack, outer: panel as isize, inner: mr as isize, packed: true }
            }
        }
    }

    /// The right operand of a unit, from its first column.
    unsafe fn right(&self, unit: &Unit, ks: (usize, usize), pack: *mut E) -> Side<E> {
        let nr = self.kernels.nr();
        let (col0, col1) = unit.cols;
        match (self.plan.b, self.job.b.view(unit.batch, ks.0)) {
            (Mode::Direct, Some(View { ptr, outer, inner })) => Side { ptr: ptr.wrapping_offset(col0 as isize * outer), outer, inner, packed: false },
            _ => {
                // SAFETY: the scratch holds the block.
                unsafe { self.pack_right(unit, (0, col1 - col0), ks, pack) };
                Side { ptr: pack, outer: (nr * (ks.1 - ks.0)) as isize, inner: nr as isize, packed: true }
            }
        }
    }

    /// Packs some columns of a unit (counted from its first), entry by entry where batch entries are folded.
    unsafe fn pack_right(&self, unit: &Unit, cols: (usize, usize), ks: (usize, usize), pack: *mut E) {
        let (n, nr) = (self.job.n, self.kernels.nr());
        let (steps, panel) = (ks.1 - ks.0, nr * (ks.1 - ks.0));
        let (from, to) = (unit.cols.0 + cols.0, unit.cols.0 + cols.1);
        let rest = (to - from) % nr;
        if rest != 0 {
            // Columns past the end are computed and dropped: they must hold ordinary numbers.
            for p in 0..steps {
                let at = (to - from) / nr * panel + p * nr + rest;
                // SAFETY: inside the last panel.
                unsafe { pack.add(at).write_bytes(0, nr - rest) };
            }
        }
        let mut col = from;
        while col < to {
            let (image, first) = (col / n, col % n);
            let len = (n - first).min(to - col);
            let lead = (col - from) % nr;
            let block = Block { batch: unit.batch + image, outer: first, len, k: ks.0, steps, width: nr, panel, lead };
            // SAFETY: the scratch holds the block.
            unsafe { self.job.b.pack(&block, pack.add((col - from) / nr * panel)) };
            col += len;
        }
    }

    /// The left operand `row` rows further (a multiple of a panel if it is packed).
    fn row_start(&self, a: &Side<E>, row: usize) -> *const E {
        let steps = if a.packed { row / self.kernels.mr } else { row };
        a.ptr.wrapping_offset(steps as isize * a.outer)
    }

    /// Runs the register tiles of a block.
    unsafe fn walk(&self, walk: &Walk<E>) {
        let (mr, nr, kc) = (self.kernels.mr, self.kernels.nr(), self.plan.kc);
        let mut p = 0;
        loop {
            let k = kc.min(walk.k - p);
            // A panel of the left operand stays in the first-level cache while the right one passes by.
            for i in (0..walk.rows).step_by(mr) {
                for j in (0..walk.cols).step_by(nr) {
                    let cols = nr.min(walk.cols - j);
                    let (b, b_k) = match walk.tail {
                        Some((from, ptr)) if j >= from => (ptr.cast_const().wrapping_add(p * nr), nr as isize),
                        _ => {
                            let outer = if walk.b.packed { j / nr } else { j };
                            let at = outer as isize * walk.b.outer + p as isize * walk.b.inner;
                            (walk.b.ptr.wrapping_offset(at), walk.b.inner)
                        }
                    };
                    let rows = mr.min(walk.rows - i);
                    let to = walk.to.wrapping_offset(i as isize * walk.to_row).wrapping_add(j);
                    let fresh = walk.fresh && p == 0;
                    let tile = Tile {
                        k,
                        a: self.row_start(&walk.a, i).wrapping_offset(p as isize * walk.a.inner),
                        // Rows of a packed panel are adjacent; its outer distance is that of panels.
                        a_row: if walk.a.packed { 1 } else { walk.a.outer },
                        a_k: walk.a.inner,
                        b,
                        b_k,
                        from: if fresh { core::ptr::null() } else { to },
                        from_row: walk.to_row,
                        to,
                        to_row: walk.to_row,
                        cols,
                    };
                    // SAFETY: the tile lies inside the block.
                    unsafe { self.kernels.pick(rows, cols, walk.a.packed)(&tile) };
                }
            }
            p += k;
            if p >= walk.k {
                return;
            }
        }
    }

    /// Hands rows `rows` of a unit to the sink, entry by entry where batch entries are folded.
    unsafe fn emit(&self, unit: &Unit, rows: (usize, usize), data: *mut E, stride: usize) {
        let n = self.job.n;
        let mut col = unit.cols.0;
        while col < unit.cols.1 {
            let len = (n - col % n).min(unit.cols.1 - col);
            let part = Finished {
                batch: unit.batch + col / n,
                row: rows.0,
                rows: rows.1 - rows.0,
                col: col % n,
                cols: len,
                data: data.wrapping_add(col - unit.cols.0),
                row_stride: stride,
            };
            // SAFETY: the part is inside the unit's scratch.
            unsafe { self.sink(&part) };
            col += len;
        }
    }

    unsafe fn sink(&self, part: &Finished<E>) {
        // SAFETY: as the caller's.
        unsafe {
            match &self.job.sink {
                Sink::Store(store) => store.finish(part),
                Sink::Epilogue(epilogue) => epilogue.finish(part),
            }
        }
    }

    /// Adds the parts of a split contraction in their order, for some rows, and hands them to the sink.
    unsafe fn reduce(&self, batch: usize, row: usize, rows: usize) {
        let job = self.job;
        let len = rows * job.n;
        let part = job.batch * job.m * job.n;
        let first = self.partials.wrapping_add((batch * job.m + row) * job.n);
        // SAFETY: the parts were written by the units; each row is summed by one task.
        unsafe {
            let sums = core::slice::from_raw_parts_mut(first, len);
            for split in 1..self.plan.splits {
                let more = core::slice::from_raw_parts(first.wrapping_add(split * part), len);
                for (x, y) in sums.iter_mut().zip(more) {
                    *x = x.plus(*y);
                }
            }
            self.sink(&Finished { batch, row, rows, col: 0, cols: job.n, data: first, row_stride: job.n });
        }
    }
}

/// A block of rows and columns over some steps, for the register tiles.
struct Walk<E> {
    a: Side<E>,
    b: Side<E>,
    /// First column of the half-empty last panel and its packed copy, if the others are read where they lie.
    tail: Option<(usize, *mut E)>,
    to: *mut E,
    to_row: isize,
    rows: usize,
    cols: usize,
    k: usize,
    /// The sums start from zero.
    fresh: bool,
}

/// Runs `count` pieces of `work` multiply-adds each, grouped so that a task is worth its start.
pub(crate) fn each(pool: &dyn ParallelFor, count: usize, work: usize, f: &(dyn Fn(usize) + Sync)) {
    const WORTH: usize = 200_000;
    let group = (WORTH / work.max(1)).clamp(1, count.max(1)).max(count / (pool.threads() * 64));
    let tasks = count.div_ceil(group);
    if tasks <= 1 || pool.threads() == 1 {
        (0..count).for_each(f);
    } else {
        pool.run(tasks, &|t| (t * group..((t + 1) * group).min(count)).for_each(f));
    }
}
