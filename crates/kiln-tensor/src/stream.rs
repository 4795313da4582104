//! `StreamId`: which sequence of recorded ops the calling thread appends to.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::cell::Cell;

use serde::{Deserialize, Serialize};

use crate::trace;

/// The number of the next stream.
static NEXT: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The stream of this thread; 0 until somebody asks.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// A sequence of ops that are recorded, compiled and run together. Every thread has a stream of its own.
///
/// Results may be used in other streams: an op waits for the streams that its operands come from.
///
/// ```
/// use kiln_tensor::StreamId;
/// let here = StreamId::current();
/// let there = std::thread::spawn(StreamId::current).join().unwrap();
/// assert!(here == StreamId::current() && here != there);
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct StreamId {
    /// The number, unique in the process.
    pub value: u64,
}

impl StreamId {
    /// The stream that the calling thread records to.
    pub fn current() -> Self {
        if CURRENT.get() == 0 {
            CURRENT.set(Self::allocate().value);
        }
        Self { value: CURRENT.get() }
    }

    /// A stream that no thread records to yet.
    pub fn allocate() -> Self {
        Self { value: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Runs `f` with this stream as the calling thread's: what `f` records is kept apart from what the thread has recorded before, and is run when
    /// somebody reads it or flushes inside of `f`.
    ///
    /// ```
    /// use kiln_tensor::{Device, StreamId, Tensor};
    /// let device = Device::default();
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &device) * 2.0;
    /// let y = StreamId::allocate().executes(|| x.clone() + 1.0);
    /// assert_eq!((x + y).try_to_vec_as::<f32>().unwrap(), [5.0, 9.0]);
    /// ```
    pub fn executes<F, T>(self, f: F) -> T
    where
        F: FnOnce() -> T,
    {
        /// Brings the thread's own stream back, also when `f` panics.
        struct Back(u64);

        impl Drop for Back {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }

        if self == Self::current() {
            return f();
        }
        let _back = Back(CURRENT.replace(self.value));
        trace::apart(f)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamId({})", self.value)
    }
}
