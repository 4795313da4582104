//! Kernels that are neither fused expressions nor contractions, and what all prepared kernels have in common.
pub(crate) mod attention;
pub(crate) mod contraction;
pub(crate) mod conv;
mod convert;
pub(crate) mod copy;
pub(crate) mod element;
pub(crate) mod fused;
pub(crate) mod gather;
pub(crate) mod host;
pub(crate) mod index;
pub(crate) mod pool;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod sort;
pub(crate) mod vector;
pub(crate) mod walk;

use alloc::string::String;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use kiln_ir::{BufId, Buffer};
use spin::Mutex;

use crate::contract::packed::PackedCopy;
use crate::pool::Pool;
use crate::runtime::packed_copy;

/// The memory of one run: where each buffer of the program is, and the run-time scalars.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// First byte of each buffer.
    pub bufs: &'a [*mut u8],
    /// The run's inputs.
    pub inputs: &'a [Buffer],
    /// Words of the run-time scalars.
    pub args: &'a [u64],
    /// Where kernels report bad data.
    pub failure: &'a Failure,
}

// SAFETY: the buffers stay alive during the run, and the program's plan says that kernels at work at once touch disjoint memory.
unsafe impl Sync for Frame<'_> {}
// SAFETY: as above.
unsafe impl Send for Frame<'_> {}

impl Frame<'_> {
    /// The first element of a buffer.
    #[inline]
    pub fn ptr<T>(&self, buf: BufId) -> *mut T {
        self.bufs[buf.index()].cast()
    }

    /// The packed copy that belongs to an input of the run.
    pub fn packed(&self, input: u32) -> Option<&PackedCopy> {
        self.inputs.get(input as usize).and_then(packed_copy)
    }
}

/// The first failure of a run.
#[derive(Debug, Default)]
pub(crate) struct Failure {
    failed: AtomicBool,
    message: Mutex<Option<String>>,
}

impl Failure {
    /// Reports a failure; the first one stays.
    #[cold]
    pub fn report(&self, message: String) {
        let mut first = self.message.lock();
        if first.is_none() {
            *first = Some(message);
        }
        self.failed.store(true, Ordering::Release);
    }

    /// Whether something failed.
    pub fn is_set(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The message, if something failed; none afterwards.
    pub fn take(&self) -> Option<String> {
        if !self.is_set() {
            return None;
        }
        self.failed.store(false, Ordering::Release);
        self.message.lock().take()
    }
}

/// A kernel with everything decided that does not change from run to run.
pub(crate) trait Prepared: Send + Sync {
    /// Number of independent pieces; pieces may run at once, in any order.
    fn pieces(&self) -> usize;

    /// Bytes of memory traffic, or an equivalent for arithmetic, of the whole kernel.
    fn work(&self) -> usize;

    /// Runs some of the pieces on the calling thread.
    ///
    /// # Safety
    /// The frame's buffers have the sizes of the program the kernel was prepared for, and nobody else writes what the kernel touches or reads what it writes.
    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>);

    /// Whether [`Prepared::run_all`] should be used on its own rather than the pieces together with those of other kernels.
    fn is_alone(&self) -> bool {
        false
    }

    /// Runs the whole kernel on a pool.
    ///
    /// # Safety
    /// As for [`Prepared::run`].
    unsafe fn run_all(&self, frame: &Frame<'_>, pool: &Pool) {
        // SAFETY: as the caller's.
        pool.split(self.pieces(), 1, self.work(), &|range| unsafe { self.run(frame, range) });
    }
}
