//! A deep-learning framework that compiles whole training steps, source-compatible with Burn 0.22.
//!
//! Write ordinary tensor code. Operations are recorded, the recording is compiled once into fused kernels with a memory plan, and replayed whenever the same recording comes
//! again, typically once per training step.
//!
//! Paths and signatures are those of Burn 0.22: `burn = { package = "kiln", .. }` in `Cargo.toml` is the only line that changes.
//!
//! Start reading at [`tensor`], then [`module`] and [`nn`]; the crates behind them are re-exported here and hold the code.
#![cfg_attr(not(feature = "std"), no_std)]

/// Tensors, devices, tensor data and functions on tensors.
pub mod tensor {
    pub use kiln_tensor::*;
}

/// Datasets, batchers and data loaders.
#[cfg(feature = "std")]
pub mod data {
    pub use kiln_data::*;
}
