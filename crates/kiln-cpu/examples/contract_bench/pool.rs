//! A pool whose idle threads spin: the least latency a pool can have, for measuring the engine alone.

use kiln_cpu::contract::ParallelFor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Task<'a> = &'a (dyn Fn(usize) + Sync);

struct State {
    /// Counts the runs; a change starts the workers.
    round: AtomicUsize,
    next: AtomicUsize,
    tasks: AtomicUsize,
    busy: AtomicUsize,
    task: std::sync::Mutex<Option<Task<'static>>>,
    stop: AtomicBool,
}

/// The caller and `threads - 1` spinning workers.
pub struct Spin {
    state: Arc<State>,
    threads: usize,
}

impl Spin {
    pub fn new(threads: usize) -> Spin {
        let state = Arc::new(State {
            round: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            tasks: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            task: std::sync::Mutex::new(None),
            stop: AtomicBool::new(false),
        });
        for _ in 1..threads {
            let state = state.clone();
            std::thread::spawn(move || {
                let mut seen = 0;
                loop {
                    while state.round.load(Ordering::Acquire) == seen {
                        if state.stop.load(Ordering::Relaxed) {
                            return;
                        }
                        std::hint::spin_loop();
                    }
                    seen += 1;
                    let task = state.task.lock().unwrap().expect("a round has a task");
                    work(&state, task);
                    state.busy.fetch_sub(1, Ordering::Release);
                }
            });
        }
        Spin { state, threads }
    }
}

fn work(state: &State, task: Task) {
    let tasks = state.tasks.load(Ordering::Relaxed);
    loop {
        let i = state.next.fetch_add(1, Ordering::Relaxed);
        if i >= tasks {
            return;
        }
        task(i);
    }
}

impl Drop for Spin {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
    }
}

impl ParallelFor for Spin {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let state = &*self.state;
        // SAFETY: the workers are done with the task before this function returns.
        let forever: Task<'static> = unsafe { std::mem::transmute(task) };
        *state.task.lock().unwrap() = Some(forever);
        state.next.store(0, Ordering::Relaxed);
        state.tasks.store(tasks, Ordering::Relaxed);
        state.busy.store(self.threads - 1, Ordering::Relaxed);
        state.round.fetch_add(1, Ordering::Release);
        work(state, task);
        while state.busy.load(Ordering::Acquire) != 0 {
            std::hint::spin_loop();
        }
    }
}
