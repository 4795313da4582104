//! Integration tests of the CPU runtime.
mod memory;
mod pool;
