//! The CPU behind a clock: how much of a training step is spent outside of kernels.
//!
//! The clock runs while the CPU runtime runs a program: while its kernels work, on one thread or several, and start and wait for each other. Everything else
//! of a step's time is "outside": the forward pass as the user wrote it, recording, autodiff, the optimizer's code, recognising the trace, finding its
//! program, and buffers for results.

use crate::harness::Bench;
use kiln::tensor::Device;
use kiln_cpu::CpuRuntime;
use kiln_ir::{Buffer, DType, DeviceInfo, Executable, HostMemory, Kernel, Limits, MemoryUse, Program, Runtime, RuntimeError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The CPU runtime, and the nanoseconds that its runs took.
struct Clocked {
    cpu: Arc<CpuRuntime>,
    inside: Arc<AtomicU64>,
}

impl Runtime for Clocked {
    fn limits(&self) -> &Limits {
        self.cpu.limits()
    }

    fn info(&self) -> DeviceInfo {
        self.cpu.info()
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        self.cpu.supports(kernel)
    }

    fn supports_dtype(&self, dtype: DType) -> bool {
        self.cpu.supports_dtype(dtype)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        self.cpu.alloc(bytes)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.cpu.upload(bytes)
    }

    fn adopt(&self, memory: Arc<dyn HostMemory>) -> Result<Buffer, RuntimeError> {
        self.cpu.adopt(memory)
    }

    fn host_bytes<'a>(&self, buffer: &'a Buffer) -> Option<&'a [u8]> {
        self.cpu.host_bytes(buffer)
    }

    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.cpu.download(buffer, out)
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        self.cpu.compile(program)
    }

    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        let start = Instant::now();
        let result = self.cpu.run(executable, inputs, outputs, args);
        self.inside.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        result
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        self.cpu.sync()
    }

    fn memory(&self) -> MemoryUse {
        self.cpu.memory()
    }

    fn cleanup(&self) {
        self.cpu.cleanup();
    }
}

/// A CPU whose runs are timed.
pub struct Clock {
    /// The device to compute on.
    pub device: Device,
    inside: Arc<AtomicU64>,
}

impl Clock {
    /// A device of its own.
    pub fn new() -> Self {
        let inside = Arc::new(AtomicU64::new(0));
        let runtime = Arc::new(Clocked { cpu: CpuRuntime::global(), inside: inside.clone() });
        Self { device: Device::with_runtime("cpu", runtime), inside }
    }

    /// Runs `step` as a workload that is reported by its time outside of kernels.
    pub fn run(&self, bench: &mut Bench, workload: &str, mut step: impl FnMut()) {
        bench.run_partly(workload, || {
            let before = self.inside.load(Ordering::Relaxed);
            let start = Instant::now();
            step();
            let whole = start.elapsed().as_secs_f64();
            let inside = (self.inside.load(Ordering::Relaxed) - before) as f64 * 1e-9;
            (whole - inside, whole)
        });
    }
}
