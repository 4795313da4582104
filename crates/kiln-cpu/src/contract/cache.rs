//! Sizes of the caches that blocks are cut for.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the second-level cache of one core to count on; one MiB if the machine does not say or has more.
pub(crate) fn second_level() -> usize {
    static KNOWN: AtomicUsize = AtomicUsize::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = detect().unwrap_or(1 << 20).clamp(256 << 10, 1 << 20);
    KNOWN.store(found, Ordering::Relaxed);
    found
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn detect() -> Option<usize> {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    let vendor = __cpuid(0);
    let leaf = if vendor.ebx == u32::from_le_bytes(*b"Auth") { 0x8000_001d } else { 4 };
    let highest = if leaf == 4 { vendor.eax } else { __cpuid(0x8000_0000).eax };
    if highest < leaf {
        return None;
    }
    for index in 0..16 {
        let cache = __cpuid_count(leaf, index);
        if cache.eax & 31 == 0 {
            return None;
        }
        if cache.eax >> 5 & 7 == 2 {
            let ways = (cache.ebx >> 22) as usize + 1;
            let parts = (cache.ebx >> 12 & 0x3ff) as usize + 1;
            let line = (cache.ebx & 0xfff) as usize + 1;
            return Some(ways * parts * line * (cache.ecx as usize + 1));
        }
    }
    None
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn detect() -> Option<usize> {
    None
}
