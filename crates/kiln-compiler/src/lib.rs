//! Kiln's compiler: from a graph to a program of fused kernels with a memory plan.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
