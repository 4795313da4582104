//! A deep-learning framework that compiles whole training steps, source-compatible with Burn 0.22.
#![cfg_attr(not(feature = "std"), no_std)]
