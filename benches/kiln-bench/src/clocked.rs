//! The CPU behind a clock: how much of a training step is spent outside of kernels.
//!
//! The clock runs while the CPU runtime runs a program: while its kernels work, on one thread or several, and start and wait for each other. Everything else
//! of a step's time is "outside": the forward pass as the user wrote it, recording, autodiff, the optimizer's code, recognising the trace, finding its
//! program, and buffers for results.

use crate::harness::Bench;
use kiln::tensor::Device;
use kiln_compiler::observed::{Observed, Observer};
use kiln_cpu::CpuRuntime;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The nanoseconds that runs took.
#[derive(Default)]
struct Inside(AtomicU64);

impl Observer for Inside {
    fn running(&self, run: &mut dyn FnMut()) {
        let start = Instant::now();
        run();
        self.0.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }
}

/// A CPU whose runs are timed.
pub struct Clock {
    /// The device to compute on.
    pub device: Device,
    inside: Arc<Inside>,
}

impl Clock {
    /// A device of its own.
    pub fn new() -> Self {
        let inside = Arc::new(Inside::default());
        let runtime = Arc::new(Observed::new(CpuRuntime::global(), inside.clone()));
        Self { device: Device::with_runtime("cpu", runtime), inside }
    }

    /// Runs `step` as a workload that is reported by its time outside of kernels.
    pub fn run(&self, bench: &mut Bench, workload: &str, mut step: impl FnMut()) {
        bench.run_partly(workload, || {
            let before = self.inside.0.load(Ordering::Relaxed);
            let start = Instant::now();
            step();
            let whole = start.elapsed().as_secs_f64();
            let inside = (self.inside.0.load(Ordering::Relaxed) - before) as f64 * 1e-9;
            (whole - inside, whole)
        });
    }
}
