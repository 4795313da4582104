//! Kiln's modules: parameters, configuration, visitors, display and records.
//!
//! Start reading at [`module::Module`]. A module is a plain struct with `#[derive(Module)]`; its parameters are
//! [`module::Param`] fields, its settings a struct with `#[derive(Config)]`. Layers live in `kiln-nn`, optimizers in
//! `kiln-optim`.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
// The derives name this crate by an absolute path, here as elsewhere.
extern crate self as kiln_module;

pub mod config;
pub mod module;
pub mod record;

pub use kiln_tensor as tensor;
pub use serde;
