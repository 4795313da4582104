//! A device that counts what is asked of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kiln_compiler::observed::{Observed, Observer};
use kiln_ir::Runtime;
use kiln_tensor::{Device, HostRuntime};

/// The counters of a device.
#[derive(Default)]
pub struct Counting {
    downloaded: AtomicUsize,
    buffers: AtomicUsize,
    runs: AtomicUsize,
    syncs: AtomicUsize,
}

impl Counting {
    /// Bytes copied to the host so far.
    pub fn downloaded(&self) -> usize {
        self.downloaded.load(Ordering::Relaxed)
    }

    /// Programs run so far.
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// Waits for the device so far.
    pub fn syncs(&self) -> usize {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Buffers made so far.
    pub fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Relaxed)
    }
}

impl Observer for Counting {
    fn running(&self, run: &mut dyn FnMut()) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        run();
    }

    fn allocating(&self, _bytes: usize) {
        self.buffers.fetch_add(1, Ordering::Relaxed);
    }

    fn downloading(&self, bytes: usize) {
        self.downloaded.fetch_add(bytes, Ordering::Relaxed);
    }

    fn syncing(&self) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
    }
}

/// A device of its own with host memory, and its counters.
pub fn counting() -> (Device, Arc<Counting>) {
    counting_on(Arc::new(HostRuntime::new()))
}

/// A device of its own on a runtime, and its counters.
pub fn counting_on(inner: Arc<dyn Runtime>) -> (Device, Arc<Counting>) {
    let counts = Arc::new(Counting::default());
    (Device::with_runtime("counting", Arc::new(Observed::new(inner, counts.clone()))), counts)
}
