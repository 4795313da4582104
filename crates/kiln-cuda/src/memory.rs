//! The caching allocator of a GPU: blocks are kept when they are freed and handed out again.
//!
//! Everything runs in one stream, so a block that is freed while kernels still use it may be given to later work at once.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_ir::{MemoryUse, RuntimeError};

use crate::device::Context;
use crate::driver::{Address, OUT_OF_MEMORY};

/// Blocks are multiples of this.
const GRAIN: usize = 512;
/// Blocks from this size on are multiples of [`LARGE_GRAIN`].
const LARGE: usize = 1 << 20;
/// See [`LARGE`].
const LARGE_GRAIN: usize = 2 << 20;

/// The allocator.
pub struct Pool {
    context: Arc<Context>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Free blocks by size; the last freed is the first used.
    free: BTreeMap<usize, Vec<Address>>,
    usage: MemoryUse,
}

/// A block, given back to its pool on drop.
pub struct Block {
    pool: Arc<Pool>,
    address: Address,
    bytes: usize,
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes at {:#x} of a GPU", self.bytes, self.address)
    }
}

impl Block {
    /// Where it is.
    pub fn address(&self) -> Address {
        self.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.usage.in_use -= self.bytes as u64;
        state.free.entry(self.bytes).or_default().push(self.address);
    }
}

/// The size of the block for a request.
fn rounded(bytes: usize) -> usize {
    if bytes < LARGE { bytes.max(1).next_multiple_of(GRAIN) } else { bytes.next_multiple_of(LARGE_GRAIN) }
}

impl Pool {
    /// An empty pool.
    pub fn new(context: Arc<Context>) -> Self {
        Pool { context, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least this many bytes, aligned to 256. The calling thread has entered the context.
    ///
    /// # Errors
    /// [`RuntimeError::OutOfMemory`], after everything cached has been given back; the device stays usable.
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> Result<Block, RuntimeError> {
        let size = rounded(bytes);
        let mut state = self.lock();
        state.usage.allocations += 1;
        // A cached block that wastes at most an eighth.
        let found = state.free.range(size..=size + size / 8).find(|(_, blocks)| !blocks.is_empty()).map(|(size, _)| *size);
        let taken = found.and_then(|size| state.free.get_mut(&size).and_then(Vec::pop).map(|address| (address, size)));
        let (address, size) = match taken {
            Some(block) => block,
            None => (self.take(&mut state, size)?, size),
        };
        state.usage.in_use += size as u64;
        state.usage.peak = state.usage.peak.max(state.usage.in_use);
        Ok(Block { pool: self.clone(), address, bytes: size })
    }

    /// Memory from the driver.
    fn take(&self, state: &mut State, size: usize) -> Result<Address, RuntimeError> {
        let driver = self.context.driver;
        let mut address = 0;
        // SAFETY: `address` is valid for the call.
        let mut code = unsafe { (driver.cuMemAlloc_v2)(&mut address, size) };
        if code == OUT_OF_MEMORY {
            self.release(state);
            // SAFETY: as above.
            code = unsafe { (driver.cuMemAlloc_v2)(&mut address, size) };
        }
        if code == OUT_OF_MEMORY {
            return Err(RuntimeError::OutOfMemory { requested: size, in_use: state.usage.in_use as usize });
        }
        driver.check("cuMemAlloc", code)?;
        state.usage.system_allocations += 1;
        state.usage.reserved += size as u64;
        Ok(address)
    }

    /// Gives cached blocks back to the driver, which waits for the work that uses them.
    fn release(&self, state: &mut State) {
        for (size, blocks) in std::mem::take(&mut state.free) {
            for address in blocks {
                // SAFETY: the block came from the driver and nobody holds it.
                unsafe { (self.context.driver.cuMemFree_v2)(address) };
                state.usage.reserved -= size as u64;
            }
        }
    }

    /// Gives cached blocks back to the driver.
    pub fn cleanup(&self) {
        self.release(&mut self.lock());
    }

    /// Statistics.
    pub fn usage(&self) -> MemoryUse {
        self.lock().usage
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn blocks_are_multiples_of_their_grain() {
        assert_eq!(rounded(0), 512);
        assert_eq!(rounded(513), 1024);
        assert_eq!(rounded(1 << 20), 2 << 20);
        assert_eq!(rounded((2 << 20) + 1), 4 << 20);
    }
}
