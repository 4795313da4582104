//! Links Kiln's core crates without the standard library: its panic handler below clashes with the standard library's if any dependency brings that in.
#![no_std]

extern crate kiln_compiler as _;
extern crate kiln_cpu as _;
extern crate kiln_ir as _;
extern crate kiln_module as _;
extern crate kiln_nn as _;
extern crate kiln_optim as _;
extern crate kiln_tensor as _;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;
use core::ptr::null_mut;

/// An allocator without memory: enough to link, and nothing here runs.
struct NoMemory;

// SAFETY: every allocation fails, so no block ever exists that could be misused.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
