//! Kiln's CPU runtime: tile interpreter, contraction engine, allocator and thread pool.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod contract;
mod kernels;
mod launch;
pub mod math;
pub mod memory;
pub mod pool;
pub mod runtime;
pub mod simd;
pub mod tile;

pub use runtime::CpuRuntime;
