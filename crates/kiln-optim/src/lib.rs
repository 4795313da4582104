//! Kiln's optimizers, learning-rate schedulers and gradient clipping.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
