//! `CpuRuntime`, the device "cpu": buffers from the caching allocator, programs prepared once and run on the thread pool.
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};

use kiln_ir::runtime::Storage as DeviceStorage;
use kiln_ir::{Buffer, DType, DeviceInfo, Executable, HostMemory, Kernel, Limits, MemoryUse, OutputSpec, Place, Program, Runtime, RuntimeError};
use spin::Mutex;

use crate::contract::packed::PackedCopy;
use crate::kernels::{Failure, Frame};
use crate::launch::Schedule;
use crate::memory::{Cache, OutOfMemory, Storage};
use crate::pool::Pool;
use crate::simd::Level;

/// The CPU.
#[derive(Debug)]
pub struct CpuRuntime {
    limits: Limits,
    allocations: AtomicU64,
}

/// The inside of this runtime's buffers.
#[derive(Debug)]
struct Block {
    memory: Memory,
    /// Weights that contractions have packed.
    packed: PackedCopy,
}

/// Where a block lies.
#[derive(Debug)]
enum Memory {
    Owned(Storage),
    Borrowed(Borrowed),
}

/// Memory of another owner: only read, since a borrowed buffer is never unique and so never donated.
struct Borrowed {
    pointer: *const u8,
    bytes: usize,
    _owner: Arc<dyn HostMemory>,
}

// SAFETY: the memory is only read, and its owner may be sent and shared.
unsafe impl Send for Borrowed {}
// SAFETY: as above.
unsafe impl Sync for Borrowed {}

impl core::fmt::Debug for Borrowed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Borrowed({} bytes)", self.bytes)
    }
}

impl Block {
    fn new(storage: Storage) -> Self {
        Block { memory: Memory::Owned(storage), packed: PackedCopy::default() }
    }

    /// Address of the first byte. Only owned memory may be written through it.
    fn as_ptr(&self) -> *mut u8 {
        match &self.memory {
            Memory::Owned(storage) => storage.as_ptr(),
            Memory::Borrowed(memory) => memory.pointer.cast_mut(),
        }
    }

    fn as_slice(&self) -> &[u8] {
        match &self.memory {
            Memory::Owned(storage) => storage.as_slice(),
            // SAFETY: the owner lives as long as this block, and until then keeps the bytes where and what they are.
            Memory::Borrowed(memory) => unsafe { core::slice::from_raw_parts(memory.pointer, memory.bytes) },
        }
    }

    /// The inside of a buffer, if this runtime made it.
    fn of(buffer: &Buffer) -> Option<&Block> {
        buffer.storage().as_any().downcast_ref()
    }
}

/// The packed copy that belongs to a buffer of this runtime.
pub(crate) fn packed_copy(buffer: &Buffer) -> Option<&PackedCopy> {
    Block::of(buffer).map(|block| &block.packed)
}

impl DeviceStorage for Block {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A program ready to run.
struct Prepared {
    program: Arc<Program>,
    schedule: Schedule,
    /// Lists of buffer addresses of earlier runs, used again so that a run allocates nothing.
    lists: Mutex<Vec<Addresses>>,
}

/// The address of every buffer of a program during a run.
#[derive(Default)]
struct Addresses(Vec<*mut u8>);

// SAFETY: between runs the list is empty.
unsafe impl Send for Addresses {}

impl Executable for Prepared {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl From<OutOfMemory> for RuntimeError {
    fn from(e: OutOfMemory) -> Self {
        RuntimeError::OutOfMemory { requested: e.requested, in_use: e.in_use }
    }
}

impl CpuRuntime {
    /// The process's CPU runtime.
    pub fn global() -> Arc<CpuRuntime> {
        static RUNTIME: spin::Once<Arc<CpuRuntime>> = spin::Once::new();
        let make = || {
            let limits = Limits {
                parallelism: Pool::global().threads(),
                epilogues: true,
                conv_epilogues: &DType::ALL,
                short_conv_epilogues: 0,
                channels_last: &[],
            };
            Arc::new(CpuRuntime { limits, allocations: AtomicU64::new(0) })
        };
        RUNTIME.call_once(make).clone()
    }

    /// A block for `bytes` bytes.
    fn block(&self, bytes: usize) -> Result<Storage, RuntimeError> {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        Ok(Cache::global().allocate(bytes)?)
    }

    /// The inside of a buffer of this runtime.
    fn inside(buffer: &Buffer) -> Result<&Block, RuntimeError> {
        Block::of(buffer).ok_or_else(|| RuntimeError::Unsupported("a buffer of another device".into()))
    }

    /// Where every buffer of the program is in this run.
    fn locate(&self, program: &Program, inputs: &[Buffer], outputs: &[Buffer], arena: *mut u8, list: &mut Vec<*mut u8>) -> Result<(), RuntimeError> {
        for spec in &program.bufs {
            let (place, kind) = match spec.place {
                Place::Input(n) => (inputs.get(n as usize), "input"),
                Place::Output(n) => (outputs.get(n as usize), "output"),
                Place::Arena(offset) => {
                    // The plan keeps every offset inside the arena.
                    list.push(arena.wrapping_add(offset));
                    continue;
                }
                Place::Unused => {
                    list.push(core::ptr::null_mut());
                    continue;
                }
            };
            match place {
                Some(buffer) if buffer.bytes() >= spec.bytes() => {
                    let pointer = Self::inside(buffer)?.as_ptr();
                    if pointer.addr() & (spec.dtype.size() - 1) != 0 {
                        return Err(RuntimeError::Kernel(format!("an {kind} that is not aligned for {}", spec.dtype)));
                    }
                    list.push(pointer);
                }
                Some(buffer) => {
                    return Err(RuntimeError::Kernel(format!("an {kind} of {} bytes where the program needs {}", buffer.bytes(), spec.bytes())));
                }
                None => return Err(RuntimeError::Kernel(format!("the run lacks an {kind} of the program"))),
            }
        }
        Ok(())
    }
}

impl Runtime for CpuRuntime {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn info(&self) -> DeviceInfo {
        let name = format!("{} threads, {}", self.limits.parallelism, Level::detect().name());
        DeviceInfo { kind: "cpu", name, memory: total_memory() }
    }

    fn supports(&self, _: &Kernel) -> bool {
        true
    }

    fn supports_dtype(&self, _: DType) -> bool {
        true
    }

    fn alloc(&self, bytes: usize) -> Result<Buffer, RuntimeError> {
        Ok(Buffer::new(Arc::new(Block::new(self.block(bytes)?)), bytes))
    }

    fn upload(&self, bytes: &[u8]) -> Result<Buffer, RuntimeError> {
        let mut storage = self.block(bytes.len())?;
        storage.as_mut_slice().copy_from_slice(bytes);
        Ok(Buffer::new(Arc::new(Block::new(storage)), bytes.len()))
    }

    fn adopt(&self, memory: Arc<dyn HostMemory>) -> Result<Buffer, RuntimeError> {
        self.allocations.fetch_add(1, Ordering::Relaxed);
        let (pointer, bytes) = (memory.bytes().as_ptr(), memory.bytes().len());
        let memory = Memory::Borrowed(Borrowed { pointer, bytes, _owner: memory });
        Ok(Buffer::borrowed(Arc::new(Block { memory, packed: PackedCopy::default() }), bytes))
    }

    fn host_bytes<'a>(&self, buffer: &'a Buffer) -> Option<&'a [u8]> {
        Block::of(buffer).map(Block::as_slice)
    }

    fn download(&self, buffer: &Buffer, out: &mut [u8]) -> Result<(), RuntimeError> {
        let bytes = Self::inside(buffer)?.as_slice();
        if bytes.len() < out.len() {
            return Err(RuntimeError::Kernel(format!("cannot read {} bytes of a buffer of {}", out.len(), bytes.len())));
        }
        out.copy_from_slice(&bytes[..out.len()]);
        Ok(())
    }

    fn compile(&self, program: Arc<Program>) -> Result<Arc<dyn Executable>, RuntimeError> {
        let schedule = Schedule::new(&program, Pool::global().threads())?;
        Ok(Arc::new(Prepared { program, schedule, lists: Mutex::new(Vec::new()) }))
    }

    fn run(&self, executable: &dyn Executable, inputs: &[Buffer], outputs: &[Buffer], args: &[u64]) -> Result<(), RuntimeError> {
        let Some(prepared) = executable.as_any().downcast_ref::<Prepared>() else {
            return Err(RuntimeError::Unsupported("a program prepared for another device".into()));
        };
        let program = &*prepared.program;
        if inputs.len() != program.inputs || outputs.len() != program.outputs.len() || args.len() != program.args {
            return Err(RuntimeError::Kernel(format!(
                "the program takes {} inputs, {} outputs and {} scalars, not {}, {} and {}",
                program.inputs,
                program.outputs.len(),
                program.args,
                inputs.len(),
                outputs.len(),
                args.len()
            )));
        }
        debug_assert!(program.outputs.iter().zip(outputs).all(|(spec, buffer)| match spec {
            OutputSpec::Donated(i) => buffer.same_as(&inputs[*i as usize]),
            OutputSpec::New(_) | OutputSpec::SameAs(_) | OutputSpec::SameAsOutput(_) => true,
        }));
        let arena = if program.arena > 0 { Some(self.block(program.arena)?) } else { None };
        let start = arena.as_ref().map_or(core::ptr::null_mut(), Storage::as_ptr);
        let mut list = prepared.lists.lock().pop().unwrap_or_default();
        let failure = Failure::default();
        let located = self.locate(program, inputs, outputs, start, &mut list.0);
        if located.is_ok() {
            let frame = Frame { bufs: &list.0, inputs, args, failure: &failure };
            // SAFETY: every buffer was found with the size the program states, and the program's plan keeps kernels from touching each other's memory.
            unsafe { prepared.schedule.run(&frame, Pool::global()) };
        }
        // Donated inputs are outputs too.
        outputs.iter().filter_map(packed_copy).for_each(PackedCopy::forget);
        list.0.clear();
        prepared.lists.lock().push(list);
        located?;
        failure.take().map_or(Ok(()), |message| Err(RuntimeError::Kernel(message)))
    }

    fn sync(&self) -> Result<(), RuntimeError> {
        // A run returns when it is done.
        Ok(())
    }

    fn memory(&self) -> MemoryUse {
        let usage = Cache::global().usage();
        MemoryUse {
            in_use: usage.in_use as u64,
            reserved: usage.reserved as u64,
            peak: usage.peak as u64,
            system_allocations: usage.system_allocations as u64,
            allocations: self.allocations.load(Ordering::Relaxed),
        }
    }

    fn cleanup(&self) {
        Cache::global().cleanup();
    }
}

/// Bytes of the machine's memory, 0 if it doesn't say.
#[cfg(all(feature = "std", target_os = "linux"))]
fn total_memory() -> u64 {
    // SAFETY: both calls only read numbers of the system.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    if pages > 0 && size > 0 { pages as u64 * size as u64 } else { 0 }
}

#[cfg(not(all(feature = "std", target_os = "linux")))]
fn total_memory() -> u64 {
    0
}
