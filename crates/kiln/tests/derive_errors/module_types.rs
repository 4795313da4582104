//! Types that can't be modules.

use kiln::module::{Module, Param};
use kiln::tensor::Tensor;

/// A union.
#[derive(Module)]
pub union Either { //~ a union can't be a module: use an enum with one payload per variant
    a: usize,
    b: f64,
}

/// An enum with a variant of two fields.
#[derive(Module, Debug)]
pub enum Wide {
    /// Two.
    Two(Param<Tensor<1>>, Param<Tensor<1>>), //~ a variant of an enum module holds one module: write `Two(TwoModule)`
}

/// An enum with a variant of named fields.
#[derive(Module, Debug)]
pub enum Named {
    /// One.
    One { weight: Param<Tensor<1>> }, //~ put the fields into a struct that derives `Module`
}

/// An enum without variants.
#[derive(Module, Debug)]
pub enum Never {} //~ an enum module needs at least one variant

/// An option that is not known.
#[derive(Module, Debug)]
#[module(custom)] //~ unknown option for a module: only `custom_display` is known
pub struct Options {
    size: usize,
}
