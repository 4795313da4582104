//! Integration tests of the tensor crate.

mod allocations;
mod autodiff;
mod configuration;
mod counting;
mod device;
mod distributed;
mod dtypes;
mod einsum;
mod errors;
mod faults;
mod fuzz;
#[path = "../../../scripts/golden/golden.rs"]
mod golden;
mod gradients;
#[cfg(all(feature = "linalg", feature = "signal"))]
mod host_operations;
mod layers;
#[cfg(feature = "linalg")]
mod linalg;
mod low_precision;
mod mistakes;
mod module_operations;
mod operations;
mod printing;
mod pytorch;
mod pytorch_numeric;
mod quantization;
mod raw;
mod reading;
mod shape;
mod sharing;
#[cfg(feature = "signal")]
mod signal;
mod slice;
mod special_values;
mod sweep;
mod tensor;
mod tensor_data;
mod trace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kiln_tensor::{Device, HostRuntime};

/// Runs `f`, which must panic with a message that contains `expected`.
#[track_caller]
pub fn check_panics<R>(f: impl FnOnce() -> R, expected: &str) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        panic!("no panic; expected one with {expected:?}");
    };
    let message = (payload.downcast_ref::<String>().cloned()).or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
    assert!(message.contains(expected), "panicked with {message:?}; expected {expected:?} in it");
}

/// A device of its own that runs compiled programs in plain scalar code, and counts bytes.
fn compiled() -> Device {
    Device::with_runtime("compiled", Arc::new(HostRuntime::new()))
}

/// A device of its own on the CPU runtime.
fn cpu() -> Device {
    Device::with_runtime("cpu", kiln_cpu::CpuRuntime::global())
}

/// Graphs interpreted, programs interpreted, programs run on the CPU.
fn devices() -> [Device; 3] {
    [Device::reference(), compiled(), cpu()]
}
