//! Integration tests of the tensor crate.

mod autodiff;
mod einsum;
mod faults;
#[path = "../../../scripts/golden/golden.rs"]
mod golden;
mod printing;
mod pytorch;
mod shape;
mod slice;
mod tensor;
mod tensor_data;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `f`, which must panic with a message that contains `expected`.
#[track_caller]
pub fn check_panics<R>(f: impl FnOnce() -> R, expected: &str) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("no panic; expected one with {expected:?}");
    };
    let message = (payload.downcast_ref::<String>().cloned()).or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
    assert!(message.contains(expected), "panicked with {message:?}; expected {expected:?} in it");
}
