//! Kiln's modules: parameters, configuration, visitors and display.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod record;
