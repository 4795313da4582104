//! Fields that a module can't have.

use kiln::module::{Module, Param};
use kiln::tensor::Tensor;

/// No module.
#[derive(Debug, Clone)]
pub struct Opaque;

/// A parameter that is skipped.
#[derive(Module, Debug)]
pub struct SkippedParam {
    #[module(skip)]
    weight: Param<Tensor<2>>, //~ a `Param` can't be skipped: it would be neither trained nor saved; remove `#[module(skip)]`
}

/// Several mistakes at once are all reported.
#[derive(Module, Debug)]
pub struct Several<'a> {
    borrowed: &'a Param<Tensor<1>>, //~ a module owns its fields: hold the value itself, or mark the field `#[module(skip)]`
    #[module(skipped)] //~ unknown option for a field of a module: only `skip` is known
    size: usize,
}

/// A field that is no module.
#[derive(Module, Debug)]
pub struct Foreign {
    inner: Opaque, //~ `Opaque` is not a module //~ `Opaque` can't be shown as a part of a module
}
