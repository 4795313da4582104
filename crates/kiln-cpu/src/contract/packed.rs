//! Packed copies of weights: kept beside the memory they were made from for as long as nobody writes it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use spin::Mutex;

use crate::memory::{Cache, Storage};

/// What a packed copy depends on besides the values: width of a panel, outer positions, steps, groups, and bytes of an element.
pub(crate) type Layout = [usize; 5];

/// The packed copy of a block of memory, if there is one.
///
/// The first contraction after a write packs for itself, the second makes the copy: weights that change in every step are never copied, and those of a
/// model that is only evaluated are packed once.
#[derive(Debug, Default)]
pub struct PackedCopy {
    /// Contractions that have asked since the last write.
    asked: AtomicUsize,
    copy: Mutex<Option<(Layout, Arc<Storage>)>>,
}

impl PackedCopy {
    /// Forgets the copy, because the memory has been or will be written.
    pub(crate) fn forget(&self) {
        if self.asked.load(Ordering::Acquire) != 0 {
            self.asked.store(0, Ordering::Release);
            *self.copy.lock() = None;
        }
    }

    /// The copy in this layout, made by `pack` if the time has come. The memory is not written meanwhile.
    pub(crate) fn get(&self, layout: Layout, pack: impl FnOnce(*mut u8)) -> Option<Arc<Storage>> {
        if self.asked.fetch_add(1, Ordering::AcqRel) == 0 {
            return None;
        }
        if let Some((of, copy)) = &*self.copy.lock() {
            // One copy at a time: programs that want different layouts keep packing for themselves.
            return (*of == layout).then(|| copy.clone());
        }
        let [width, outer, steps, groups, size] = layout;
        let bytes = groups * outer.next_multiple_of(width) * steps * size;
        let copy = Arc::new(Cache::global().allocate(bytes).ok()?);
        pack(copy.as_ptr());
        *self.copy.lock() = Some((layout, copy.clone()));
        Some(copy)
    }
}
