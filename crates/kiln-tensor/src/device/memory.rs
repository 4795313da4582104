//! Memory statistics of a device.
use alloc::vec::Vec;

use kiln_ir::MemoryUse;

use super::Device;

/// Bytes that a device's allocator manages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryPoolUsage {
    /// Allocations served so far.
    pub number_allocs: u64,
    /// Bytes held by live buffers.
    pub bytes_in_use: u64,
    /// Bytes lost to alignment.
    pub bytes_padding: u64,
    /// Bytes taken from the system, cached blocks included.
    pub bytes_reserved: u64,
}

impl From<MemoryUse> for MemoryPoolUsage {
    fn from(m: MemoryUse) -> Self {
        MemoryPoolUsage { number_allocs: m.allocations, bytes_in_use: m.in_use, bytes_padding: 0, bytes_reserved: m.reserved }
    }
}

/// What an allocator that cuts pages of one size into slices holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlicedPoolReport {
    /// Bytes of a page.
    pub page_size: u64,
    /// Pages held now.
    pub pages: u64,
    /// Most pages held at a time.
    pub pages_peak: u64,
    /// Bytes of the largest allocation.
    pub largest_alloc: u64,
}

impl Device {
    /// One report a size of page, for allocators that cut pages into slices; `None` where the allocator keeps whole blocks by size, as those of the
    /// built-in devices do. [`Device::memory_pool_usage`] tells what they hold.
    pub fn memory_pool_report(&self) -> Option<Vec<SlicedPoolReport>> {
        None
    }
}
