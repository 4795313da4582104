//! The contraction engine: matrix products and convolutions of every kind, from packers to epilogues.
//!
//! Start at [`contract`], which computes a batch of products `result[b][i][j] = sum_p left[b][i][p] * right[b][j][p]`:
//!
//! - Both sides are [`Operand`]s: something that packs blocks of itself into panels, and that may say where it lies in memory so
//!   that packing is skipped. [`Strided`] takes any strides, [`Grid`] several axes in the contraction, [`Window`] the windows
//!   of a convolution. An operand that computes its elements (a fused prologue, a conversion) implements `pack`.
//! - The result goes to a [`Sink`]: a strided [`Store`], or an [`Epilogue`] that gets finished parts while they are in the cache,
//!   as scratch it may overwrite; every element comes exactly once, in rows of adjacent columns, tens to hundreds long.
//! - Threads come from a [`ParallelFor`]. The order of summation depends on sizes and layouts alone: the number of threads
//!   changes no bit of a result.
//!
//! [`conv`] computes convolutions and both gradients of them, of one to three dimensions with groups, dilation, stride and any
//! padding, on three paths: windows read through pointers with channels in the registers (`implicit`), positions in the
//! registers for few channels (`narrow`), and plain contractions over unfolded windows (`window`).
//!
//! Inside: `lane` is one register, written for each instruction set; `micro` the register tiles over it; `isa` the tables of
//! kernels and the choice among them at run time; `pack` the copies into panels; `plan` the blocking; `engine` the loops;
//! `skinny` products of a few rows, which only stream the other side; `amx` products of `f32` on the matrix unit of x86-64 processors. Scratch memory is kept between calls.

// Kernels address registers of an array by index on purpose.
#![allow(clippy::needless_range_loop)]

#[cfg(all(feature = "std", target_os = "linux", target_arch = "x86_64", not(miri)))]
mod amx;
mod cache;
pub mod conv;
mod engine;
mod implicit;
mod isa;
mod lane;
#[cfg(target_arch = "aarch64")]
mod lane_neon;
#[cfg(target_arch = "x86_64")]
mod lane_x86;
pub(crate) mod micro;
mod narrow;
pub(crate) mod operand;
pub(crate) mod pack;
pub(crate) mod packed;
mod parallel;
mod plan;
mod reached;
mod region;
pub(crate) mod scratch;
mod sink;
mod skinny;
mod window;
pub(crate) mod winograd;

pub use engine::{Contraction, contract};
#[cfg(feature = "std")]
pub use isa::cap_isa;
pub use isa::{Isa, isa_name};
pub use lane::Element;
pub use micro::Scalar;
pub use operand::{Block, Grid, Offsets, Operand, Strided, View};
pub use parallel::{ParallelFor, Serial};
pub use sink::{Epilogue, Finished, Sink, Store};
pub use window::{Axes, Axis, Role, Window};
