//! Kiln's tensors: devices, traces, the tensor API, tensor data and autodiff.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
