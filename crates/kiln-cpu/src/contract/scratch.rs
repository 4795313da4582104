//! Scratch memory for packed panels: kept between calls, so that a steady state allocates nothing.

use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use alloc::vec::Vec;

/// An aligned block, returned to its cache when dropped.
pub(crate) struct Scratch {
    ptr: *mut u8,
    layout: Layout,
}

/// Blocks of this size and more are aligned to it, so that the system can back them by huge pages.
const HUGE: usize = 2 << 20;
/// Blocks a cache keeps.
const KEPT: usize = 8;

struct Block(Scratch);
// SAFETY: a block is plain memory that its holder owns alone.
unsafe impl Send for Block {}

impl Scratch {
    /// A block of at least `bytes` bytes, aligned to 64, with unspecified (but initialised) contents.
    pub(crate) fn take(bytes: usize) -> ScratchGuard {
        let found = with_cache(|cache| {
            let best = cache
                .iter()
                .enumerate()
                .filter(|(_, block)| block.0.layout.size() >= bytes)
                .min_by_key(|(_, block)| block.0.layout.size())
                .map(|(i, _)| i);
            best.map(|i| cache.swap_remove(i))
        });
        if let Some(block) = found {
            return ScratchGuard(Some(block));
        }
        let align = if bytes >= HUGE { HUGE } else { 64 };
        let size = bytes.max(4096).next_multiple_of(4096.max(align));
        let layout = Layout::from_size_align(size, align).expect("scratch sizes are far below isize::MAX");
        // SAFETY: the size is not zero.
        let ptr = unsafe { alloc(layout) };
        if ptr.is_null() {
            handle_alloc_error(layout);
        }
        #[cfg(all(feature = "std", target_os = "linux"))]
        if align == HUGE {
            // SAFETY: the range was just allocated; the advice does not change its contents, and a refusal does no harm.
            unsafe { libc::madvise(ptr.cast(), size, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: the block was just allocated with this size.
        unsafe { ptr.write_bytes(0, size) };
        ScratchGuard(Some(Block(Scratch { ptr, layout })))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated in `take` with this layout.
        unsafe { dealloc(self.ptr, self.layout) }
    }
}

/// A block in use.
pub(crate) struct ScratchGuard(Option<Block>);

impl ScratchGuard {
    /// The first byte.
    pub(crate) fn ptr<E>(&self) -> *mut E {
        self.0.as_ref().map_or(core::ptr::null_mut(), |block| block.0.ptr.cast())
    }
}

impl Drop for ScratchGuard {
    fn drop(&mut self) {
        if let Some(block) = self.0.take() {
            with_cache(|cache| {
                cache.push(block);
                if cache.len() > KEPT {
                    // The smallest block is the cheapest to make again.
                    let smallest = cache.iter().enumerate().min_by_key(|(_, b)| b.0.layout.size());
                    if let Some(i) = smallest.map(|(i, _)| i) {
                        cache.swap_remove(i);
                    }
                }
            });
        }
    }
}

#[cfg(feature = "std")]
fn with_cache<R: Default>(f: impl FnOnce(&mut Vec<Block>) -> R) -> R {
    std::thread_local! {
        static CACHE: core::cell::RefCell<Vec<Block>> = const { core::cell::RefCell::new(Vec::new()) };
    }
    // At thread exit the cache may be gone: then nothing is kept.
    CACHE.try_with(|cache| f(&mut cache.borrow_mut())).unwrap_or_default()
}

#[cfg(not(feature = "std"))]
fn with_cache<R: Default>(f: impl FnOnce(&mut Vec<Block>) -> R) -> R {
    static CACHE: spin::Mutex<Vec<Block>> = spin::Mutex::new(Vec::new());
    f(&mut CACHE.lock())
}
