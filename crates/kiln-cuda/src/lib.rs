//! Kiln's CUDA runtime: the compiler's kernels rendered as CUDA C++, compiled by NVRTC and run on NVIDIA GPUs.
//!
//! Every driver library is loaded at run time, so a binary with this crate starts on a machine that has none. Rendering needs no GPU either:
//! [`render::render`] makes [`steps::Steps`] (source text, grid, parameters) of a kernel, and tests look at that text and compile it.
//!
//! Start reading at [`steps`].
mod activation;
mod blas;
pub mod cache;
mod choices;
pub mod convolution;
pub mod device;
mod dnn;
mod driver;
mod executable;
mod fold;
mod host;
mod kernels;
pub mod library;
pub mod lowered;
mod memory;
mod merge;
pub mod nvrtc;
pub mod product;
mod profile;
pub mod render;
pub mod runtime;
pub mod steps;

pub use runtime::CudaRuntime;
