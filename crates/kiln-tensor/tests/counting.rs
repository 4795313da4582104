//! A runtime that counts what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kiln_ir::{Buffer, DType, DeviceInfo, Executable, Kernel, Limits, MemoryUse, Program, Runtime, RuntimeError};
use kiln_tensor::{Device, HostRuntime};

/// Another runtime with counters.
pub struct Counting {
    inner: Arc<dyn Runtime>,
    downloaded: AtomicUsize,
    buffers: AtomicUsize,
    runs: AtomicUsize,
    syncs: AtomicUsize,
}

impl Counting {
    /// Bytes copied to the host so far.
    pub fn downloaded(this: &Arc<Self>) -> usize {
        this.downloaded.load(Ordering::Relaxed)
    }

    /// Programs run so far.
    pub fn runs(this: &Arc<Self>) -> usize {
        this.runs.load(Ordering::Relaxed)
    }

    /// Waits for the device so far.
    pub fn syncs(this: &Arc<Self>) -> usize {
        this.syncs.load(Ordering::Relaxed)
    }

    /// Buffers made so far.
    pub fn buffers(this: &Arc<Self>) -> usize {
        this.buffers.load(Ordering::Relaxed)
    }
}

/// A device of its own with host memory, and its counters.
pub fn counting() -> (Device, Arc<Counting>) {
    counting_on(Arc::new(HostRuntime::new()))
}

/// A device of its own on a runtime, and its counters.
pub fn counting_on(inner: Arc<dyn Runtime>) -> (Device, Arc<Counting>) {
    let [downloaded, buffers, runs, syncs] = [const { AtomicUsize::new(0) }; 4];
    let runtime = Arc::new(Counting { inner, downloaded, buffers, runs, syncs });
    (Device::with_runtime("counting", runtime.clone()), runtime)
}

impl Runtime for Counting {
    fn limits(&self) -> &Limits {
        self.inner.limits()
    }
    fn info(&self) -> DeviceInfo {
        self.inner.info()
    }
    fn supports(&self, kernel: &Kernel) -> bool {
        self.inner.supports(kernel)
    }
    fn supports_dtype(&self, dtype: DType) -> bool {
        self.inner.supports_dtype(dtype)
    }
    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        self.buffers.fetch_add(1, Ordering::Relaxed);
        self.inner.alloc(bytes)
    }
    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.buffers.fetch_add(1, Ordering::Relaxed);
        self.inner.upload(bytes)
    }
    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.downloaded.fetch_add(out.len(), Ordering::Relaxed);
        self.inner.download(buffer, out)
    }
    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        self.inner.compile(program)
    }
    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.inner.run(executable, inputs, outputs, args)
    }
    fn sync(&self) -> Result<(), RuntimeError> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }
    fn memory(&self) -> MemoryUse {
        self.inner.memory()
    }
    fn cleanup(&self) {
        self.inner.cleanup();
    }
}
