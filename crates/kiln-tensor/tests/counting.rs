//! A runtime that counts what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kiln_ir::{Buffer, DType, DeviceInfo, Executable, Kernel, Limits, MemoryUse, Program, Runtime, RuntimeError};
use kiln_tensor::{Device, HostRuntime};

/// Host memory with counters.
#[derive(Default)]
pub struct Counting {
    host: HostRuntime,
    downloaded: AtomicUsize,
}

impl Counting {
    /// Bytes copied to the host so far.
    pub fn downloaded(this: &Arc<Self>) -> usize {
        this.downloaded.load(Ordering::Relaxed)
    }
}

/// A device of its own, and its counters.
pub fn counting() -> (Device, Arc<Counting>) {
    let runtime = Arc::new(Counting::default());
    (Device::with_runtime("counting", runtime.clone()), runtime)
}

impl Runtime for Counting {
    fn limits(&self) -> &Limits {
        self.host.limits()
    }
    fn info(&self) -> DeviceInfo {
        self.host.info()
    }
    fn supports(&self, kernel: &Kernel) -> bool {
        self.host.supports(kernel)
    }
    fn supports_dtype(&self, dtype: DType) -> bool {
        self.host.supports_dtype(dtype)
    }
    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        self.host.alloc(bytes)
    }
    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.host.upload(bytes)
    }
    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.downloaded.fetch_add(out.len(), Ordering::Relaxed);
        self.host.download(buffer, out)
    }
    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        self.host.compile(program)
    }
    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        self.host.run(executable, inputs, outputs, args)
    }
    fn sync(&self) -> Result<(), RuntimeError> {
        self.host.sync()
    }
    fn memory(&self) -> MemoryUse {
        self.host.memory()
    }
    fn cleanup(&self) {
        self.host.cleanup();
    }
}
