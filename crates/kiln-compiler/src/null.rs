//! A device that compiles and schedules only: for tests of the compiler, and for looking at programs without running them.
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;

use kiln_ir::{Buffer, DType, DeviceInfo, Executable, Kernel, Limits, MemoryUse, Program, Runtime, RuntimeError};

/// Memory without contents.
#[derive(Debug)]
struct NullStorage;

impl kiln_ir::runtime::Storage for NullStorage {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The null device. Its limits can be chosen, so that any device's schedule can be looked at.
pub struct Null {
    limits: Limits,
    zeros: bool,
}

impl Null {
    /// A null device with these limits.
    pub fn new(limits: Limits) -> Self {
        Null { limits, zeros: false }
    }

    /// The device with zeros in whatever is read from it, for programs that read; without this reading fails.
    #[must_use]
    pub fn with_zeros(mut self) -> Self {
        self.zeros = true;
        self
    }

    /// Limits of a small CPU.
    pub fn cpu_limits() -> Limits {
        Limits { parallelism: 2, epilogues: true, conv_epilogues: &DType::ALL, short_conv_epilogues: 0, channels_last: &[] }
    }
}

/// A program that is kept, not run.
pub struct NullExecutable {
    /// The program.
    pub program: Arc<Program>,
}

impl Executable for NullExecutable {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Runtime for Null {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { kind: "null", name: String::from("no device"), memory: 0 }
    }

    fn supports(&self, _: &Kernel) -> bool {
        true
    }

    fn supports_dtype(&self, _: DType) -> bool {
        true
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        Ok(Buffer::new(Arc::new(NullStorage), bytes))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        self.alloc(bytes.len())
    }

    fn download(&self, _: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        if self.zeros {
            out.fill(0);
            return Ok(());
        }
        Err(RuntimeError::Unsupported(String::from("the null device has no data to read")))
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        Ok(Arc::new(NullExecutable { program }))
    }

    fn run(&self, _: &dyn Executable, _: &[Buffer], _: &[Buffer], _: &[u64]) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn memory(&self) -> MemoryUse {
        MemoryUse::default()
    }

    fn cleanup(&self) {}
}
