//! Kiln's CPU runtime: tile interpreter, contraction engine, allocator and thread pool.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod contract;
mod kernels;
mod launch;
pub mod math;
pub mod memory;
pub mod pool;
#[cfg(feature = "std")]
mod profile;
pub mod runtime;
pub mod simd;
pub mod tile;

pub use runtime::CpuRuntime;
