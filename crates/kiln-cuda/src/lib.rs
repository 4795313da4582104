//! Kiln's CUDA runtime: the compiler's kernels rendered as CUDA C++, compiled by NVRTC and run on NVIDIA GPUs.
//!
//! Every driver library is loaded at run time, so a binary with this crate starts on a machine that has none. Rendering needs no GPU either:
//! [`render::render`] makes [`steps::Steps`] (source text, grid, parameters) of a kernel, and tests look at that text and compile it.
//!
//! Start reading at [`steps`].
pub mod render;
pub mod steps;
