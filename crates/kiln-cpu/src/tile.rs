//! The executor of fused kernels: expressions run as vector loops over tiles that stay in the first-level cache.
//!
//! [`FusedKernel`] prepares a kernel once: [`geometry`] chooses which axes make a tile, [`plan`] turns the expression into steps over slots of scratch
//! memory, and [`frame`] executes the steps tile by tile. Each step is one loop of [`elementwise`], [`stored`], [`cast`], [`reduction`] or [`random`],
//! compiled for the CPU's instruction set.
mod cast;
pub mod elementwise;
mod float_functions;
mod frame;
mod function;
mod geometry;
mod kernel;
mod pair;
mod plain_functions;
mod plan;
mod random;
mod reduction;
mod step;
mod stored;
mod transpose;
mod word;

pub use frame::Buffers;
pub use kernel::{FusedKernel, Region, TileExpr, TileRun};
