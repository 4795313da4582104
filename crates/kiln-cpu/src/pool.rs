//! A low-latency thread pool: one parallel region at a time, workers that spin briefly before they sleep.
//!
//! A region costs about a microsecond when the workers are awake, so kernels of a few tens of microseconds already gain. Tasks are dealt out as one
//! contiguous range per thread (so a thread meets the same part of a buffer in every kernel) and idle threads steal from the far end of others' ranges.

/// Work below this many bytes of cache traffic is not worth a second thread.
pub const GRAIN_BYTES: usize = 64 * 1024;

/// How many tasks to cut a kernel into on `threads` threads, from the bytes it moves (or an equivalent for its arithmetic).
///
/// Returns 1 for small kernels, so they stay on the caller's thread, and otherwise a few tasks a thread, so that stealing can even out the load.
pub fn tasks_for(bytes: usize, threads: usize) -> usize {
    if threads <= 1 || bytes < 2 * GRAIN_BYTES {
        return 1;
    }
    (bytes / GRAIN_BYTES).min(threads * 4)
}

/// The half-open range of items that task `task` of `tasks` covers: the pieces differ by at most one `step`, and every border is a multiple of `step`.
pub fn span(items: usize, step: usize, tasks: usize, task: usize) -> core::ops::Range<usize> {
    let step = step.max(1);
    let steps = items.div_ceil(step);
    let (each, extra) = (steps / tasks, steps % tasks);
    let first = task * each + task.min(extra);
    let last = first + each + usize::from(task < extra);
    (first * step).min(items)..(last * step).min(items)
}

/// A pool of worker threads that runs one parallel region at a time.
///
/// Without the feature `std` there are no threads and every region runs on the caller.
pub struct Pool {
    threads: usize,
    #[cfg(feature = "std")]
    shared: alloc::sync::Arc<threaded::Shared>,
    #[cfg(feature = "std")]
    workers: alloc::vec::Vec<std::thread::JoinHandle<()>>,
}

impl Pool {
    /// How many threads a region can use, the caller included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `f(0)` to `f(tasks - 1)`, spread over the threads, and returns when all are done.
    ///
    /// A call from inside a task runs inline. When another thread's region is running, the call waits a little and then runs inline too.
    /// A panic in a task reaches the caller; tasks not yet started are then skipped.
    pub fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        #[cfg(feature = "std")]
        if tasks > 1 && self.threads > 1 {
            return self.run_threaded(tasks, f);
        }
        (0..tasks).for_each(f);
    }

    /// Cuts `items` into pieces whose borders are multiples of `step`, as many as `bytes` of traffic are worth, and calls `f` for each piece.
    pub fn split(&self, items: usize, step: usize, bytes: usize, f: &(dyn Fn(core::ops::Range<usize>) + Sync)) {
        let tasks = tasks_for(bytes, self.threads).min(items.div_ceil(step.max(1)));
        match tasks {
            0 => {}
            1 => f(0..items),
            _ => self.run(tasks, &|task| f(span(items, step, tasks, task))),
        }
    }
}

#[cfg(not(feature = "std"))]
impl Pool {
    /// A pool without workers: this build has no threads.
    pub fn new(_threads: usize) -> Self {
        Pool { threads: 1 }
    }

    /// The process's pool.
    pub fn global() -> &'static Pool {
        static POOL: Pool = Pool { threads: 1 };
        &POOL
    }
}

#[cfg(feature = "std")]
mod threaded {
    use super::*;
    use alloc::{boxed::Box, format, sync::Arc, vec::Vec};
    use core::any::Any;
    use core::cell::{Cell, UnsafeCell};
    use core::hint::spin_loop;
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, fence};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::{Mutex, OnceLock};
    use std::thread::{self, Thread};
    use std::time::{Duration, Instant};

    /// How long an idle worker spins before it sleeps, and how long a caller waits for another caller's region before it runs inline.
    const SPIN: Duration = Duration::from_micros(40);

    /// Open flag of the state word: workers may enter the region.
    const OPEN: u64 = 1 << 31;
    /// The low half without the flag counts the workers inside the region.
    const INSIDE: u64 = OPEN - 1;

    /// A range of tasks, packed as (end, start), alone on its cache line pair.
    #[repr(align(128))]
    struct Range(AtomicU64);

    impl Range {
        fn set(&self, start: usize, end: usize) {
            self.0.store((end as u64) << 32 | start as u64, Relaxed);
        }

        /// Takes one task from the front (the owner) or the back (a thief).
        fn take(&self, front: bool) -> Option<usize> {
            let mut now = self.0.load(Relaxed);
            loop {
                let (start, end) = (now & 0xffff_ffff, now >> 32);
                if start >= end {
                    return None;
                }
                let (next, task) = if front { (end << 32 | (start + 1), start) } else { ((end - 1) << 32 | start, end - 1) };
                match self.0.compare_exchange_weak(now, next, AcqRel, Relaxed) {
                    Ok(_) => return Some(task as usize),
                    Err(seen) => now = seen,
                }
            }
        }
    }

    thread_local! {
        /// Whether this thread is running tasks of a region; nested regions then run inline.
        static INSIDE_REGION: Cell<bool> = const { Cell::new(false) };
    }

    type Task = *const (dyn Fn(usize) + Sync);

    /// What a worker and the callers share about one worker.
    #[repr(align(128))]
    struct Sleeper {
        asleep: AtomicBool,
        thread: OnceLock<Thread>,
    }

    /// State shared by callers and workers.
    pub(super) struct Shared {
        /// Region number (high half), the open flag and the count of workers inside.
        state: AtomicU64,
        /// Held by the caller whose region is running.
        region: AtomicBool,
        /// Written by the holder of `region` while the state is closed; read by workers that entered.
        task: UnsafeCell<Option<Task>>,
        ranges: Vec<Range>,
        sleepers: Vec<Sleeper>,
        stop: AtomicBool,
        panicked: AtomicBool,
        panic: Mutex<Option<Box<dyn Any + Send>>>,
    }

    // SAFETY: `task` is only written by the holder of `region` while no worker is inside, and read by workers that entered afterwards.
    unsafe impl Sync for Shared {}
    // SAFETY: the pointer in `task` refers to a `Sync` closure that outlives the region.
    unsafe impl Send for Shared {}

    impl Shared {
        /// Runs tasks from `slot`'s range, then steals, until none is left.
        fn work(&self, slot: usize, f: &(dyn Fn(usize) + Sync)) {
            let result = catch_unwind(AssertUnwindSafe(|| {
                while let Some(task) = self.ranges[slot].take(true) {
                    f(task);
                }
                let slots = self.ranges.len();
                for offset in 1..slots {
                    while let Some(task) = self.ranges[(slot + offset) % slots].take(false) {
                        f(task);
                    }
                }
            }));
            if let Err(payload) = result {
                for range in &self.ranges {
                    range.set(0, 0);
                }
                let mut first = self.panic.lock().unwrap_or_else(|e| e.into_inner());
                first.get_or_insert(payload);
                self.panicked.store(true, Release);
            }
        }

        fn worker(&self, index: usize) {
            INSIDE_REGION.set(true);
            let mut seen = 0;
            let mut idle_since: Option<Instant> = None;
            let mut spins = 0u32;
            loop {
                let state = self.state.load(Acquire);
                if state & OPEN != 0 && state >> 32 != seen {
                    if self.state.compare_exchange_weak(state, state + 1, AcqRel, Relaxed).is_err() {
                        continue;
                    }
                    seen = state >> 32;
                    // SAFETY: the region is open and counts this worker, so the caller keeps the closure alive until the worker leaves.
                    let f = unsafe { &*(*self.task.get()).expect("an open region has a task") };
                    self.work(index + 1, f);
                    self.state.fetch_sub(1, Release);
                    idle_since = None;
                    spins = 0;
                    continue;
                }
                if self.stop.load(Relaxed) {
                    return;
                }
                spin_loop();
                spins += 1;
                if !spins.is_multiple_of(32) {
                    continue;
                }
                if idle_since.get_or_insert_with(Instant::now).elapsed() >= SPIN {
                    self.sleep(index, seen);
                    idle_since = None;
                }
            }
        }

        /// Parks the worker unless a new region opened since it last looked.
        fn sleep(&self, index: usize, seen: u64) {
            let sleeper = &self.sleepers[index];
            sleeper.asleep.store(true, SeqCst);
            // The caller publishes the region and then reads `asleep`; this side does the reverse. The fences make one of them see the other.
            fence(SeqCst);
            let state = self.state.load(SeqCst);
            if (state & OPEN == 0 || state >> 32 == seen) && !self.stop.load(SeqCst) {
                thread::park();
            }
            sleeper.asleep.store(false, SeqCst);
        }

        fn wake(&self, workers: usize) {
            fence(SeqCst);
            for sleeper in &self.sleepers[..workers] {
                if sleeper.asleep.load(SeqCst)
                    && sleeper.asleep.swap(false, SeqCst)
                    && let Some(thread) = sleeper.thread.get()
                {
                    thread.unpark();
                }
            }
        }

        /// Takes the right to run a region, waiting a little for another caller.
        fn enter(&self) -> bool {
            let free = || self.region.compare_exchange(false, true, Acquire, Relaxed).is_ok();
            if free() {
                return true;
            }
            let start = Instant::now();
            while start.elapsed() < SPIN {
                for _ in 0..16 {
                    spin_loop();
                }
                if free() {
                    return true;
                }
            }
            false
        }
    }

    impl Pool {
        /// A pool in which a region uses `threads` threads (at least one: the caller). Fewer if the system refuses to start them.
        pub fn new(threads: usize) -> Self {
            let threads = threads.clamp(1, 1 << 12);
            let sleeper = || Sleeper { asleep: AtomicBool::new(false), thread: OnceLock::new() };
            let shared = Arc::new(Shared {
                state: AtomicU64::new(0),
                region: AtomicBool::new(false),
                task: UnsafeCell::new(None),
                ranges: (0..threads).map(|_| Range(AtomicU64::new(0))).collect(),
                sleepers: (1..threads).map(|_| sleeper()).collect(),
                stop: AtomicBool::new(false),
                panicked: AtomicBool::new(false),
                panic: Mutex::new(None),
            });
            let mut workers = Vec::new();
            for index in 0..threads - 1 {
                let side = shared.clone();
                let builder = thread::Builder::new().name(format!("kiln-{index}"));
                let Ok(handle) = builder.spawn(move || side.worker(index)) else {
                    break;
                };
                let set = shared.sleepers[index].thread.set(handle.thread().clone());
                debug_assert!(set.is_ok());
                workers.push(handle);
            }
            Pool { threads: workers.len() + 1, shared, workers }
        }

        /// The process's pool, sized by `KILN_NUM_THREADS`, else `RAYON_NUM_THREADS`, else by the machine.
        pub fn global() -> &'static Pool {
            static POOL: OnceLock<Pool> = OnceLock::new();
            POOL.get_or_init(|| {
                let wish = ["KILN_NUM_THREADS", "RAYON_NUM_THREADS"]
                    .iter()
                    .find_map(|name| std::env::var(name).ok()?.trim().parse::<usize>().ok())
                    .filter(|&threads| threads > 0);
                Pool::new(wish.unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get())))
            })
        }

        pub(super) fn run_threaded(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
            let shared = &*self.shared;
            if INSIDE_REGION.get() || tasks > u32::MAX as usize || !shared.enter() {
                return (0..tasks).for_each(f);
            }
            let used = tasks.min(self.threads);
            for (slot, range) in shared.ranges.iter().enumerate() {
                if slot < used {
                    let piece = span(tasks, 1, used, slot);
                    range.set(piece.start, piece.end);
                } else {
                    range.set(0, 0);
                }
            }
            // SAFETY: the lifetime is erased, but this function returns only after the last worker left the region.
            let erased = unsafe { core::mem::transmute::<&(dyn Fn(usize) + Sync), Task>(f) };
            // SAFETY: this thread holds `region` and the state is closed with nobody inside, so no worker reads the cell.
            unsafe { *shared.task.get() = Some(erased) };
            let epoch = (shared.state.load(Relaxed) >> 32).wrapping_add(1) & 0xffff_ffff;
            shared.state.store(epoch << 32 | OPEN, SeqCst);
            shared.wake(used - 1);

            INSIDE_REGION.set(true);
            shared.work(0, f);
            INSIDE_REGION.set(false);

            let mut state = shared.state.fetch_and(!OPEN, AcqRel);
            let mut spins = 0u32;
            while state & INSIDE != 0 {
                spins += 1;
                if spins > 10_000 {
                    thread::yield_now();
                } else {
                    spin_loop();
                }
                state = shared.state.load(Acquire);
            }
            let panicked = shared.panicked.swap(false, Acquire);
            let payload = panicked.then(|| shared.panic.lock().unwrap_or_else(|e| e.into_inner()).take()).flatten();
            shared.region.store(false, Release);
            if let Some(payload) = payload {
                resume_unwind(payload);
            }
        }
    }

    // A panic in a task leaves the pool as it was (see the tests).
    impl core::panic::UnwindSafe for Pool {}
    impl core::panic::RefUnwindSafe for Pool {}

    impl Drop for Pool {
        fn drop(&mut self) {
            self.shared.stop.store(true, SeqCst);
            for worker in self.workers.drain(..) {
                worker.thread().unpark();
                // A worker catches panics of its tasks, so joining cannot fail.
                let _ = worker.join();
            }
        }
    }
}

impl crate::contract::ParallelFor for Pool {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        Pool::run(self, tasks, task);
    }
}
