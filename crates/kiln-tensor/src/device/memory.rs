//! Memory statistics of a device.
use kiln_ir::MemoryUse;

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
