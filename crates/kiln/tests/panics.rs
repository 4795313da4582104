//! Mistakes of the caller panic at the caller's line, with the operation and both sides.

use kiln::prelude::*;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;

thread_local! {
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Runs `body`, which must panic in this file with a message that holds every one of `parts`.
#[track_caller]
fn check_panics(body: impl FnOnce(), parts: &[&str]) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let message = info.payload_as_str().unwrap_or_default().to_string();
            let file = info.location().map(Location::file).unwrap_or_default().to_string();
            LAST.with(|last| *last.borrow_mut() = Some((message, file)));
            before(info);
        }));
    });
    assert!(catch_unwind(AssertUnwindSafe(body)).is_err(), "nothing panicked; expected {parts:?}");
    let (message, file) = LAST.with(|last| last.borrow_mut().take()).expect("the hook saw the panic");
    for part in parts {
        assert!(message.contains(part), "the message {message:?} does not hold {part:?}");
    }
    assert!(file.ends_with("tests/panics.rs"), "the panic is reported at {file}, not at the caller: {message}");
}

fn ones<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::ones(shape, &Device::default())
}

#[test]
fn shapes_that_do_not_fit_are_shown() {
    check_panics(|| drop(ones([2, 3]) + ones([4, 3])), &["add", "[2, 3]", "[4, 3]"]);
    check_panics(|| drop(ones([2, 3]).matmul(ones([4, 5]))), &["matmul", "[2, 3]", "[4, 5]"]);
    check_panics(|| drop(ones([2, 3]).reshape([4, 2])), &["reshape", "[2, 3]"]);
    check_panics(|| drop(Tensor::cat(vec![ones([2, 3]), ones([2, 4])], 0)), &["cat", "[2, 3]", "[2, 4]"]);
}

#[test]
fn axes_out_of_range_are_shown() {
    check_panics(|| drop(ones([2, 3]).sum_dim(2)), &["axis 2", "rank 2"]);
    check_panics(|| drop(ones([2, 3]).narrow(1, 2, 4)), &["narrow", "[2, 3]"]);
    check_panics(|| drop(ones([2, 3]).swap_dims(0, 5)), &["axis 5", "rank 2"]);
}

#[test]
fn different_dtypes_are_shown() {
    let wide = ones([2]).cast(kiln::tensor::DType::F64);
    check_panics(|| drop(ones([2]) + wide), &["add", "f32[2]", "f64[2]"]);
}

#[test]
fn a_gradient_without_autodiff_is_explained() {
    check_panics(|| drop(ones([2]).require_grad()), &["autodiff"]);
}
