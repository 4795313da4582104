//! A deep-learning framework that compiles whole training steps, source-compatible with Burn 0.22.
//!
//! Write ordinary tensor code. Operations are recorded, the recording is compiled once into fused kernels with a memory plan, and replayed whenever the same recording comes
//! again, typically once per training step.
//!
//! Paths and signatures are those of Burn 0.22: `burn = { package = "kiln", .. }` in `Cargo.toml` is the only line that changes.
//!
//! ```
//! use kiln::nn::LinearConfig;
//! use kiln::prelude::*;
//! use kiln::tensor::activation::softmax;
//!
//! let device = Device::default();
//! let layer = LinearConfig::new(4, 3).init(&device);
//! let chances = softmax(layer.forward(Tensor::<2>::ones([2, 4], &device)), 1);
//! let sums = chances.sum_dim(1).into_data();
//! assert!(sums.iter::<f32>().all(|sum| (sum - 1.0).abs() < 1e-6));
//! ```
//!
//! Start reading at [`tensor`], then [`module`] and [`nn`]; the crates behind them are re-exported here and hold the code.
#![cfg_attr(not(feature = "std"), no_std)]

// The derives name this crate by an absolute path, in its own tests and examples too.
extern crate self as kiln;

pub use kiln_module::empty;
pub use kiln_module::serde;
pub use kiln_tensor::Tensor;
#[cfg(feature = "std")]
pub use kiln_tensor::config::{BurnConfig, runtime_config};

/// Tensors, devices, tensor data and functions on tensors.
pub mod tensor {
    pub use kiln_tensor::*;
}

#[cfg(feature = "linalg")]
pub use kiln_tensor::linalg;
#[cfg(feature = "signal")]
pub use kiln_tensor::signal;

/// Backends as types and the primitives of tensors, for code that adds operations of its own.
pub mod backend {
    pub use kiln_tensor::backend::*;
}

/// Modules: the trait, its derive, parameters, visitors, display.
pub mod module {
    pub use kiln_module::module::*;
}

/// Configuration: the trait and its derive.
pub mod config {
    pub use kiln_module::config::*;
}

/// Layers, losses, activation modules and initializers.
pub mod nn {
    pub use kiln_nn::*;
}

/// Optimizers, gradients by parameter, clipping and learning-rate schedulers.
#[cfg(feature = "optim")]
pub mod optim {
    pub use kiln_optim::*;
}

#[cfg(feature = "optim")]
pub use kiln_optim::{grad_clipping, lr_scheduler};

/// Datasets, batchers and data loaders.
#[cfg(feature = "std")]
pub mod data {
    pub use kiln_data::*;
}

/// Records, and with the feature `store` weight files of other kinds.
pub mod store {
    pub use kiln_module::record::*;
    #[cfg(feature = "store")]
    pub use kiln_store::*;
}

/// What most programs import.
pub mod prelude {
    pub use crate::config::Config;
    pub use crate::module::Module;
    pub use crate::nn;
    pub use crate::tensor::cast::ToElement;
    pub use crate::tensor::{
        Bool, Device, DeviceIndex, DeviceKind, ElementConversion, Float, Int, Shape, SliceArg, Tensor, TensorData, assert_shape, debug_assert_shape,
        s,
    };
}

/// The examples in the documents are compiled and run with the crate's own.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/adding-a-layer.md")]
    struct AddingALayer;
}
