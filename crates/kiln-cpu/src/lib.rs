//! Kiln's CPU runtime: tile interpreter, contraction engine, allocator and thread pool.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod contract;
pub mod math;
pub mod memory;
pub mod pool;
pub mod simd;
pub mod tile;
