//! Integration tests of the CPU runtime.
mod borrowed;
mod contract;
mod fuzz;
mod kernels;
mod math;
mod memory;
mod oracle;
mod packed;
mod pool;
mod table;
mod tile;
