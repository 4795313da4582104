//! The contraction engine: matrix products and convolutions of every kind, from packers to epilogues.

// Kernels address registers of an array by index on purpose.
#![allow(clippy::needless_range_loop)]

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
mod parallel;
mod plan;
mod region;
pub(crate) mod scratch;
mod sink;
mod skinny;
mod window;

pub use engine::{Contraction, contract};
pub use isa::{Isa, cap_isa, isa_name};
pub use lane::Element;
pub use micro::Scalar;
pub use operand::{Block, Offsets, Operand, Strided, View};
pub use parallel::{ParallelFor, Serial};
pub use sink::{Epilogue, Finished, Sink, Store};
pub use window::{Axes, Axis, Role, Window};
