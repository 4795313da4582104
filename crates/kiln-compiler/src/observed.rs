//! A device in front of another that tells an observer what is asked of it: for tests that count, and for clocks and printers in benches.
use alloc::sync::Arc;

use kiln_ir::{Buffer, DType, DeviceInfo, Executable, HostMemory, Kernel, Limits, MatmulPrecision, MemoryUse, Program, Runtime, RuntimeError};

/// What hears of the calls of an [`Observed`] device. Every method does nothing by itself.
pub trait Observer: Send + Sync {
    /// A program is about to be compiled.
    fn compiling(&self, _program: &Program) {}

    /// A program is about to be run by `run`, which must be called once.
    fn running(&self, run: &mut dyn FnMut()) {
        run();
    }

    /// A buffer of this many bytes is about to be made: empty, from the host's bytes, or of the host's memory.
    fn allocating(&self, _bytes: usize) {}

    /// This many bytes are about to be copied to the host.
    fn downloading(&self, _bytes: usize) {}

    /// The host is about to wait for the device.
    fn syncing(&self) {}
}

/// A device that hands every call on to another, after telling its observer.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use kiln_compiler::null::Null;
/// use kiln_compiler::observed::{Observed, Observer};
/// use kiln_ir::Runtime;
///
/// #[derive(Default)]
/// struct Buffers(AtomicUsize);
///
/// impl Observer for Buffers {
///     fn allocating(&self, _bytes: usize) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let buffers = Arc::new(Buffers::default());
/// let device = Observed::new(Arc::new(Null::new(Null::cpu_limits())), buffers.clone());
/// device.upload(&[1, 2, 3]).unwrap();
/// assert_eq!(buffers.0.load(Ordering::Relaxed), 1);
/// ```
pub struct Observed {
    device: Arc<dyn Runtime>,
    observer: Arc<dyn Observer>,
}

impl Observed {
    /// `device`, watched by `observer`.
    pub fn new(device: Arc<dyn Runtime>, observer: Arc<dyn Observer>) -> Self {
        Self { device, observer }
    }
}

impl Runtime for Observed {
    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    fn set_matmul_precision(&self, precision: MatmulPrecision) {
        self.device.set_matmul_precision(precision);
    }

    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn supports(&self, kernel: &Kernel) -> bool {
        self.device.supports(kernel)
    }

    fn supports_dtype(&self, dtype: DType) -> bool {
        self.device.supports_dtype(dtype)
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        self.observer.allocating(bytes);
        self.device.alloc(bytes)
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.observer.allocating(bytes.len());
        self.device.upload(bytes)
    }

    fn adopt(&self, memory: Arc<dyn HostMemory>) -> Result<Buffer, RuntimeError> {
        self.observer.allocating(memory.bytes().len());
        self.device.adopt(memory)
    }

    fn host_bytes<'a>(&self, buffer: &'a Buffer) -> Option<&'a [u8]> {
        self.device.host_bytes(buffer)
    }

    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        self.observer.downloading(out.len());
        self.device.download(buffer, out)
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        self.observer.compiling(&program);
        self.device.compile(program)
    }

    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        let mut result = Ok(());
        self.observer.running(&mut || result = self.device.run(executable, inputs, outputs, args));
        result
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        self.observer.syncing();
        self.device.sync()
    }

    fn memory(&self) -> MemoryUse {
        self.device.memory()
    }

    fn cleanup(&self) {
        self.device.cleanup();
    }
}
