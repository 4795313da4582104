//! The language of Kiln: dtypes, shapes, the op table, graphs and programs.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;
