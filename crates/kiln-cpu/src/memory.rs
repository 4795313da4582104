//! The caching allocator: blocks in size classes, kept when freed, because freshly mapped memory costs more than most kernels.
//!
//! Every block is 64-byte aligned; large blocks are mapped directly, aligned and advised for huge pages on Linux. A block always holds initialised bytes
//! (zero when it comes from the system, else whatever its last owner left).

use alloc::{sync::Arc, vec::Vec};
use core::fmt;
use core::ptr::NonNull;

use spin::Mutex;

/// Alignment of every block, in bytes: one cache line, one AVX-512 vector.
pub const ALIGNMENT: usize = 64;
/// Blocks from this size on come from the system's page mapper.
const LARGE: usize = 2 << 20;
/// Freed bytes that are always kept, whatever the program's own use is.
const KEEP: usize = 256 << 20;
/// Classes per doubling of the size, so a block wastes at most an eighth.
const STEPS: usize = 8;
/// How many classes above the exact one are searched for a cached large block: up to a quarter more than asked.
const SEARCH: usize = 2;
const CLASSES: usize = (usize::BITS as usize - 9) * STEPS;

/// The allocator could not get memory from the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub requested: usize,
    /// Bytes owned by live blocks at that time.
    pub in_use: usize,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of memory: {} bytes requested, {} bytes in use", self.requested, self.in_use)
    }
}

impl core::error::Error for OutOfMemory {}

/// What a cache holds and has held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes of live blocks, as asked for.
    pub in_use: usize,
    /// Largest `in_use` so far, or since [`Cache::reset_peak`].
    pub peak: usize,
    /// Bytes held from the system: live blocks (rounded up to their class) and cached ones.
    pub reserved: usize,
    /// Number of live blocks.
    pub blocks: usize,
    /// Blocks ever taken from the system.
    pub system_allocations: usize,
}

/// A caching allocator; clones share one cache.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    /// Bytes that may be held from the system at once.
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Freed blocks by class, oldest first, each with the clock at its release.
    bins: Vec<Vec<Free>>,
    usage: MemoryUse,
    cached: usize,
    clock: u64,
}

struct Free {
    pointer: NonNull<u8>,
    released: u64,
}

// SAFETY: a free block is plain memory that nobody else refers to.
unsafe impl Send for Free {}

/// The class of a request, and the size of that class's blocks.
fn class_of(bytes: usize) -> Option<(usize, usize)> {
    let units = bytes.max(1).div_ceil(ALIGNMENT);
    if units <= STEPS {
        return Some((units - 1, units * ALIGNMENT));
    }
    // units in (STEPS * 2^shift, STEPS * 2^(shift + 1)], cut into STEPS equal steps.
    let shift = ((units - 1) / STEPS).ilog2();
    let step = 1usize << shift;
    let steps = units.div_ceil(step);
    let size = steps.checked_mul(step)?.checked_mul(ALIGNMENT)?;
    (size <= isize::MAX as usize - LARGE).then(|| (steps - 1 + shift as usize * STEPS, size))
}

/// The size of the blocks of a class.
fn size_of_class(class: usize) -> usize {
    if class < STEPS {
        return (class + 1) * ALIGNMENT;
    }
    let shift = class / STEPS - 1;
    ((class - shift * STEPS + 1) << shift) * ALIGNMENT
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl Cache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::bounded(usize::MAX)
    }

    /// An empty cache that holds at most `limit` bytes from the system, cached blocks included, and fails beyond that.
    pub fn bounded(limit: usize) -> Self {
        Cache(Arc::new(Inner { limit, state: Mutex::new(State::default()) }))
    }

    /// The process's cache.
    pub fn global() -> &'static Cache {
        static CACHE: spin::Once<Cache> = spin::Once::new();
        CACHE.call_once(Cache::new)
    }

    /// A block of `bytes` bytes with unspecified (but initialised) contents.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system has none, also after the cached blocks are given back.
    pub fn allocate(&self, bytes: usize) -> Result<Storage, OutOfMemory> {
        self.take(bytes, false)
    }

    /// A block of `bytes` zero bytes.
    ///
    /// # Errors
    /// As [`Cache::allocate`].
    pub fn allocate_zeroed(&self, bytes: usize) -> Result<Storage, OutOfMemory> {
        self.take(bytes, true)
    }

    fn take(&self, bytes: usize, zeroed: bool) -> Result<Storage, OutOfMemory> {
        let mut state = self.0.state.lock();
        let fail = |state: &State| OutOfMemory { requested: bytes, in_use: state.usage.in_use };
        let Some((exact, size)) = class_of(bytes) else {
            return Err(fail(&state));
        };
        let last = if size >= LARGE { exact + SEARCH } else { exact };
        for class in exact..=last {
            if let Some(free) = state.bins.get_mut(class).and_then(Vec::pop) {
                state.cached -= size_of_class(class);
                let storage = self.hand_out(&mut state, free.pointer, class, bytes);
                drop(state);
                if zeroed {
                    // SAFETY: the block is owned by `storage` and at least `bytes` long.
                    unsafe { storage.pointer.as_ptr().write_bytes(0, bytes) };
                }
                return Ok(storage);
            }
        }
        let allocate = |state: &State| {
            if size > self.0.limit - state.usage.reserved { None } else { system::allocate(size) }
        };
        let mut pointer = allocate(&state);
        if pointer.is_none() {
            state.release_down_to(0);
            pointer = allocate(&state);
        }
        let pointer = pointer.ok_or_else(|| fail(&state))?;
        state.usage.reserved += size;
        state.usage.system_allocations += 1;
        Ok(self.hand_out(&mut state, pointer, exact, bytes))
    }

    fn hand_out(&self, state: &mut State, pointer: NonNull<u8>, class: usize, bytes: usize) -> Storage {
        let usage = &mut state.usage;
        usage.in_use += bytes;
        usage.blocks += 1;
        usage.peak = usage.peak.max(usage.in_use);
        Storage { pointer, bytes, class: class as u32, cache: self.clone() }
    }

    /// What the cache holds now.
    pub fn usage(&self) -> MemoryUse {
        self.0.state.lock().usage
    }

    /// Starts a new measurement of the peak at the bytes in use now.
    pub fn reset_peak(&self) {
        let usage = &mut self.0.state.lock().usage;
        usage.peak = usage.in_use;
    }

    /// Gives every cached block back to the system.
    pub fn cleanup(&self) {
        self.0.state.lock().release_down_to(0);
    }
}

impl State {
    /// Puts a block into its bin, and releases the longest unused ones when the cache grew beyond what the program has ever needed at once.
    fn put(&mut self, pointer: NonNull<u8>, class: usize, bytes: usize) {
        if self.bins.is_empty() {
            self.bins.resize_with(CLASSES, Vec::new);
        }
        self.clock += 1;
        self.usage.in_use -= bytes;
        self.usage.blocks -= 1;
        self.cached += size_of_class(class);
        self.bins[class].push(Free { pointer, released: self.clock });
        let bound = KEEP.max(self.usage.peak);
        if self.cached > bound {
            self.release_down_to(bound - bound / 4);
        }
    }

    fn release_down_to(&mut self, bound: usize) {
        while self.cached > bound {
            let oldest = self.bins.iter().enumerate().filter_map(|(class, bin)| Some((bin.first()?.released, class))).min();
            let Some((_, class)) = oldest else { return };
            let free = self.bins[class].remove(0);
            let size = size_of_class(class);
            self.cached -= size;
            self.usage.reserved -= size;
            // SAFETY: the block came from `system::allocate` with the size of its class and nobody refers to it.
            unsafe { system::release(free.pointer, size) };
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.state.get_mut().release_down_to(0);
    }
}

/// An owned block of bytes, 64-byte aligned, which returns to its cache when dropped.
pub struct Storage {
    pointer: NonNull<u8>,
    bytes: usize,
    class: u32,
    cache: Cache,
}

// SAFETY: the block is plain memory with one owner.
unsafe impl Send for Storage {}
// SAFETY: shared access only reads; writing needs `&mut` or is the caller's promise (`as_mut_ptr` of a raw pointer).
unsafe impl Sync for Storage {}

impl Storage {
    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the block holds no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Address of the first byte. Writing through it needs exclusive access, which kernels establish by their memory plan.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the block is `bytes` long and initialised.
        unsafe { core::slice::from_raw_parts(self.pointer.as_ptr(), self.bytes) }
    }

    /// The bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as `as_slice`, and `&mut self` is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.bytes) }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.cache.0.state.lock().put(self.pointer, self.class as usize, self.bytes);
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes)", self.bytes)
    }
}

/// Memory from the system, zeroed. Miri knows no unmapping of a part, so it gets large blocks like small ones.
mod system {
    use super::*;
    use core::alloc::Layout;

    pub(super) fn allocate(size: usize) -> Option<NonNull<u8>> {
        #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
        if size >= LARGE {
            return map(size);
        }
        let layout = Layout::from_size_align(size, ALIGNMENT).ok()?;
        // SAFETY: a class is never empty.
        NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) })
    }

    /// # Safety
    /// `pointer` came from [`allocate`] with this `size` and is not used again.
    pub(super) unsafe fn release(pointer: NonNull<u8>, size: usize) {
        #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
        if size >= LARGE {
            // SAFETY: the block was mapped with this size.
            unsafe { libc::munmap(pointer.as_ptr().cast(), size) };
            return;
        }
        // SAFETY: the block was allocated with this layout.
        unsafe { alloc::alloc::dealloc(pointer.as_ptr(), Layout::from_size_align_unchecked(size, ALIGNMENT)) }
    }

    /// Maps `size` bytes aligned to a huge page and asks for huge pages: one page fault instead of 512, and far fewer address-translation misses.
    #[cfg(all(feature = "std", target_os = "linux", not(miri)))]
    fn map(size: usize) -> Option<NonNull<u8>> {
        let total = size.checked_add(LARGE)?;
        let (read_write, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), total, read_write, private, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let start = base as usize;
        let aligned = start.next_multiple_of(LARGE);
        let (front, back) = (aligned - start, start + total - (aligned + size));
        // SAFETY: both pieces lie inside the mapping and outside the block.
        unsafe {
            if front > 0 {
                libc::munmap(base, front);
            }
            if back > 0 {
                libc::munmap((aligned + size) as *mut _, back);
            }
            libc::madvise(aligned as *mut _, size, libc::MADV_HUGEPAGE);
        }
        NonNull::new(aligned as *mut u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_requests_with_little_waste() {
        let mut last = 0;
        for bytes in (0..100_000).chain((1 << 20..1 << 24).step_by(4099)) {
            let (class, size) = class_of(bytes).unwrap();
            assert_eq!(size, size_of_class(class), "{bytes}");
            assert!(size >= bytes && size % ALIGNMENT == 0);
            assert!(class >= last || bytes == 1 << 20);
            assert!(bytes <= STEPS * ALIGNMENT || size - bytes <= bytes / STEPS + ALIGNMENT, "{bytes} in {size}");
            last = class;
        }
        assert!(class_of(usize::MAX).is_none());
    }
}
