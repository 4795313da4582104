//! What a device implements: memory, and the execution of programs.
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt::Debug;

use crate::{DType, Kernel, Program};

/// Memory of a device, shared by reference count. The runtime that made it knows what is inside.
#[derive(Clone, Debug)]
pub struct Buffer {
    storage: Arc<dyn Storage>,
    bytes: usize,
    /// The memory belongs to somebody else and is only read.
    borrowed: bool,
}

/// Memory of the host with an owner of its own, such as a part of a mapped file. As long as the owner lives, its bytes stay where and what they are.
pub trait HostMemory: Send + Sync {
    /// The bytes; every call gives the same.
    fn bytes(&self) -> &[u8];
}

/// The inside of a [`Buffer`]: freed (given back to its allocator) on drop.
pub trait Storage: Any + Send + Sync + Debug {
    /// For the runtime to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

impl Buffer {
    /// Wraps a runtime's storage.
    pub fn new(storage: Arc<dyn Storage>, bytes: usize) -> Self {
        Buffer { storage, bytes, borrowed: false }
    }

    /// Wraps a runtime's storage around memory that is not its own, and which nothing may write.
    pub fn borrowed(storage: Arc<dyn Storage>, bytes: usize) -> Self {
        Buffer { storage, bytes, borrowed: true }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The storage.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Whether no one else holds this memory, so that it may be written. Borrowed memory is never unique.
    pub fn is_unique(&self) -> bool {
        !self.borrowed && Arc::strong_count(&self.storage) == 1
    }

    /// Whether both are the same memory.
    pub fn same_as(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }
}

/// What a device can do, as far as the compiler must know.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Independent workers (cores, multiprocessors): when a reduction has fewer results it is split in two stages.
    pub parallelism: usize,
    /// Whether epilogues may be fused into contractions.
    pub epilogues: bool,
    /// Dtypes of convolutions that epilogues may be fused into too.
    pub conv_epilogues: &'static [DType],
    /// The same for convolutions of any dtype with sums (channels of a group times elements of the kernel) up to this length.
    pub short_conv_epilogues: usize,
    /// Dtypes of which convolutions are faster when the channels are neighbours in memory.
    pub channels_last: &'static [DType],
}

/// How products and convolutions of 32-bit floats are computed, where a device has a choice. The names are those of PyTorch's `set_float32_matmul_precision`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MatmulPrecision {
    /// In 32-bit arithmetic.
    #[default]
    Highest,
    /// Factors may be rounded to 10 bits of mantissa (TensorFloat-32); sums are still of 32 bits.
    High,
}

/// A device, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Kind, such as `cpu` or `cuda`.
    pub kind: &'static str,
    /// Marketing name or instruction set.
    pub name: String,
    /// Total memory in bytes, 0 if unknown.
    pub memory: u64,
}

/// Memory statistics in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Held by live buffers.
    pub in_use: u64,
    /// Taken from the system, cached blocks included.
    pub reserved: u64,
    /// Largest `in_use` so far.
    pub peak: u64,
    /// Allocations that had to ask the system.
    pub system_allocations: u64,
    /// Allocations served.
    pub allocations: u64,
}

/// Why a device could not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeError {
    /// No memory for `requested` bytes.
    OutOfMemory {
        /// Bytes asked for.
        requested: usize,
        /// Bytes in use then.
        in_use: usize,
    },
    /// A kernel met bad data, such as an index out of range.
    Kernel(String),
    /// A kernel or dtype the device doesn't know.
    Unsupported(String),
    /// The device cannot be used any more.
    Poisoned(String),
}

impl core::fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RuntimeError::OutOfMemory { requested, in_use } => write!(f, "out of memory: {requested} bytes requested, {in_use} in use"),
            RuntimeError::Kernel(m) => f.write_str(m),
            RuntimeError::Unsupported(m) => write!(f, "unsupported: {m}"),
            RuntimeError::Poisoned(m) => write!(f, "device poisoned: {m}"),
        }
    }
}

impl core::error::Error for RuntimeError {}

/// A program prepared by its runtime (kernels chosen, registers allocated, sources compiled).
pub trait Executable: Send + Sync {
    /// For the runtime to find its own type again.
    fn as_any(&self) -> &dyn Any;
}

/// A device.
pub trait Runtime: Send + Sync {
    /// What the compiler must know.
    fn limits(&self) -> &Limits;
    /// Chooses how products and convolutions of 32-bit floats are computed in programs compiled from now on, their limits included. A device without a choice computes them in
    /// full precision whatever is said.
    fn set_matmul_precision(&self, _precision: MatmulPrecision) {}
    /// What it is.
    fn info(&self) -> DeviceInfo;
    /// Whether the device runs this kernel itself; otherwise it goes to the host.
    fn supports(&self, kernel: &Kernel) -> bool;
    /// Whether buffers of this dtype can be made and computed with.
    fn supports_dtype(&self, dtype: DType) -> bool;
    /// Uninitialised memory.
    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError>;
    /// Copies host bytes into a new buffer.
    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError>;
    /// Makes a buffer of host memory. A device that computes in host memory may use it where it lies; others copy it.
    fn adopt(&self, memory: Arc<dyn HostMemory>) -> Result<Buffer, RuntimeError> {
        self.upload(memory.bytes())
    }
    /// The bytes of a buffer that lies in host memory. Nothing writes a buffer that somebody else holds, so they stay as they are.
    fn host_bytes<'a>(&self, _buffer: &'a Buffer) -> Option<&'a [u8]> {
        None
    }
    /// Copies a buffer to the host, after everything launched before; `out` has the buffer's size.
    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError>;
    /// Prepares a program.
    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError>;
    /// Runs a prepared program. `outputs` holds one buffer per output of the program; for donated outputs the caller passes the input's storage.
    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError>;
    /// Waits until everything launched has finished and reports what went wrong.
    fn sync(&self) -> Result<(), RuntimeError>;
    /// Memory statistics.
    fn memory(&self) -> MemoryUse;
    /// Gives cached memory back to the system.
    fn cleanup(&self);
}
