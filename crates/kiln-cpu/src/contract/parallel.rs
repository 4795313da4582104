//! `ParallelFor`, what the engine asks of a thread pool.

/// Runs tasks, on as many threads as it likes.
pub trait ParallelFor: Sync {
    /// Threads that may work at once; the engine sizes its tasks by it. Results never depend on it.
    fn threads(&self) -> usize;

    /// Calls `task(i)` once for each `i < tasks` and returns when all are done. Tasks with low indices should start first.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// Runs every task on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl ParallelFor for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        for i in 0..tasks {
            task(i);
        }
    }
}
