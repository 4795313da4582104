//! Adapters: changes to stored tensors on their way between a module and a file.

mod chain;
mod packed;
mod precision;
mod pytorch;

pub use chain::{ChainAdapter, IdentityAdapter};
pub use packed::Packed;
pub use precision::{FloatCastAdapter, HalfPrecisionAdapter};
pub use pytorch::{BurnToPyTorchAdapter, PyTorchToBurnAdapter};

use crate::burn_pack::Tensor;

/// Where in a module a tensor stands.
#[derive(Debug, Clone, Copy)]
pub struct ModuleContext<'a> {
    container_stack: &'a [String],
}

impl<'a> ModuleContext<'a> {
    /// The place inside of modules of these types, outermost first, such as `Struct:Model`, `Struct:Linear`.
    pub fn new(container_stack: &'a [String]) -> Self {
        Self { container_stack }
    }

    /// The type of the innermost module, such as `Struct:Linear`.
    pub fn module_type(&self) -> Option<&'a str> {
        self.container_stack.last().map(String::as_str)
    }

    /// The name of the innermost module's type, such as `Linear`.
    pub(crate) fn module_name(&self) -> Option<&'a str> {
        self.module_type().map(type_name)
    }
}

/// The name of a container type without its kind: `Linear` of `Struct:Linear`.
pub(crate) fn type_name(module_type: &str) -> &str {
    module_type.split_once(':').map_or(module_type, |(_, name)| name)
}

/// A change to stored tensors on their way between a module and a file.
pub trait ModuleAdapter: Send + Sync {
    /// Changes a tensor that stands at `ctx` in the module.
    fn adapt(&self, tensor: Tensor, ctx: ModuleContext<'_>) -> Tensor;

    /// Another name under which a file may have the parameter `param_name` of a module of type `module_type`.
    fn get_alternative_param_name(&self, _param_name: &str, _module_type: &str) -> Option<String> {
        None
    }

    /// Where in a file the parameter at `path` lies, if files of this kind pack several parameters into one tensor.
    fn get_packed(&self, _path: &str, _ctx: ModuleContext<'_>) -> Option<Packed> {
        None
    }

    /// A copy.
    fn clone_box(&self) -> Box<dyn ModuleAdapter>;

    /// This adapter, then `next`.
    fn chain<A>(self, next: A) -> ChainAdapter
    where
        Self: Sized + 'static,
        A: ModuleAdapter + 'static,
    {
        ChainAdapter::new(self, next)
    }
}

impl Clone for Box<dyn ModuleAdapter> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
