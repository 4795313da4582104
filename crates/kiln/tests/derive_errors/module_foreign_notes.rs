//! What the compiler adds to a field that is no module.

use kiln::module::Module;

/// No module.
#[derive(Debug, Clone)]
pub struct Opaque;

/// A field that is no module, inside of an option.
#[derive(Module, Debug)]
pub struct Foreign {
    inner: Option<Opaque>, //~ derive it with `#[derive(Module)]`, or mark the field with `#[module(skip)]` if it holds no parameters //~ or mark the field with `#[module(skip)]` to show its `Debug` form
}
