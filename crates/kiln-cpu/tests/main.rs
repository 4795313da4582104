//! Integration tests of the CPU runtime.
mod contract;
mod math;
mod memory;
mod pool;
