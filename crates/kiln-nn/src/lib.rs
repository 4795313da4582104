//! Kiln's layers, losses and initializers.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
