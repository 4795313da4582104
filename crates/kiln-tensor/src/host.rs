//! Plain host memory as a runtime: the memory behind the reference device.
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};

use kiln_ir::{Buffer, DType, DeviceInfo, Executable, Kernel, Limits, MemoryUse, Program, Runtime, RuntimeError, runtime::Storage};

use crate::lock::Mutex;

/// Bytes in use, shared by a runtime and its buffers.
#[derive(Debug, Default)]
struct Usage {
    in_use: AtomicU64,
    peak: AtomicU64,
    allocations: AtomicU64,
}

/// A buffer.
pub(crate) struct HostStorage {
    bytes: Mutex<Vec<u8>>,
    size: u64,
    usage: Arc<Usage>,
}

impl core::fmt::Debug for HostStorage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "host storage of {} bytes", self.size)
    }
}

impl Storage for HostStorage {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for HostStorage {
    fn drop(&mut self) {
        self.usage.in_use.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// A program to be interpreted.
struct HostProgram(Arc<Program>);

impl Executable for HostProgram {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Host memory, and the interpreter of programs.
pub struct HostRuntime {
    limits: Limits,
    usage: Arc<Usage>,
}

impl HostRuntime {
    /// A runtime with memory statistics of its own.
    pub fn new() -> Self {
        let limits = Limits { parallelism: 1, epilogues: true, conv_epilogues: &DType::ALL, short_conv_epilogues: 0, channels_last: &[] };
        HostRuntime { limits, usage: Arc::default() }
    }

    fn buffer(&self, bytes: Vec<u8>) -> Buffer {
        let size = bytes.len() as u64;
        let in_use = self.usage.in_use.fetch_add(size, Ordering::Relaxed) + size;
        self.usage.peak.fetch_max(in_use, Ordering::Relaxed);
        self.usage.allocations.fetch_add(1, Ordering::Relaxed);
        let storage = HostStorage { bytes: Mutex::new(bytes), size, usage: self.usage.clone() };
        Buffer::new(Arc::new(storage), size as usize)
    }
}

impl Default for HostRuntime {
    fn default() -> Self {
        Self::new()
    }
}

fn storage(buffer: &Buffer) -> Result<&HostStorage, RuntimeError> {
    buffer.storage().as_any().downcast_ref().ok_or_else(|| RuntimeError::Unsupported("a buffer of another device".to_string()))
}

impl Runtime for HostRuntime {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn info(&self) -> DeviceInfo {
        DeviceInfo { kind: "reference", name: "scalar interpreter".to_string(), memory: 0 }
    }

    fn supports(&self, _kernel: &Kernel) -> bool {
        true
    }

    fn supports_dtype(&self, _dtype: DType) -> bool {
        true
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        let mut v = Vec::new();
        let in_use = self.usage.in_use.load(Ordering::Relaxed) as usize;
        v.try_reserve_exact(bytes).map_err(|_| RuntimeError::OutOfMemory { requested: bytes, in_use })?;
        v.resize(bytes, 0);
        Ok(self.buffer(v))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        Ok(self.buffer(bytes.to_vec()))
    }

    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        out.copy_from_slice(&storage(buffer)?.bytes.lock());
        Ok(())
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        Ok(Arc::new(HostProgram(program)))
    }

    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        let Some(HostProgram(program)) = executable.as_any().downcast_ref() else {
            return Err(RuntimeError::Unsupported("a program of another device".to_string()));
        };
        let mut bytes = Vec::with_capacity(inputs.len());
        for b in inputs {
            bytes.push(storage(b)?.bytes.lock().clone());
        }
        let results = kiln_ir::interp::run_program(program, &bytes, args).map_err(RuntimeError::Kernel)?;
        for (result, out) in results.into_iter().zip(outputs) {
            *storage(out)?.bytes.lock() = result;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn memory(&self) -> MemoryUse {
        let in_use = self.usage.in_use.load(Ordering::Relaxed);
        MemoryUse {
            in_use,
            reserved: in_use,
            peak: self.usage.peak.load(Ordering::Relaxed),
            system_allocations: self.usage.allocations.load(Ordering::Relaxed),
            allocations: self.usage.allocations.load(Ordering::Relaxed),
        }
    }

    fn cleanup(&self) {}
}
