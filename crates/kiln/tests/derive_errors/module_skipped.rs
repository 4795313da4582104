//! A skipped field that can't be cloned and shown.

use kiln::module::Module;

/// Neither `Clone` nor `Debug`.
pub struct Bare;

/// A skipped field needs both.
#[derive(Module, Debug)]
pub struct Skips {
    #[module(skip)]
    bare: Bare, //~ `Bare` doesn't implement //~ the trait bound `Bare: Clone` is not satisfied
    size: usize,
}
