//! Integration tests of the CPU runtime.
mod contract;
mod memory;
mod pool;
