//! Adapters that do nothing or several things.

use super::{ModuleAdapter, ModuleContext, Packed};
use crate::burn_pack::Tensor;

/// Changes nothing.
#[derive(Debug, Clone, Default)]
pub struct IdentityAdapter;

impl ModuleAdapter for IdentityAdapter {
    fn adapt(&self, tensor: Tensor, _ctx: ModuleContext<'_>) -> Tensor {
        tensor
    }

    fn clone_box(&self) -> Box<dyn ModuleAdapter> {
        Box::new(self.clone())
    }
}

/// One adapter after another.
#[derive(Clone)]
pub struct ChainAdapter {
    first: Box<dyn ModuleAdapter>,
    second: Box<dyn ModuleAdapter>,
}

impl ChainAdapter {
    /// `first`, then `second`.
    pub fn new<A, B>(first: A, second: B) -> Self
    where
        A: ModuleAdapter + 'static,
        B: ModuleAdapter + 'static,
    {
        Self { first: Box::new(first), second: Box::new(second) }
    }
}

impl ModuleAdapter for ChainAdapter {
    fn adapt(&self, tensor: Tensor, ctx: ModuleContext<'_>) -> Tensor {
        self.second.adapt(self.first.adapt(tensor, ctx), ctx)
    }

    /// The first adapter's name, or else the second's.
    fn get_alternative_param_name(&self, param_name: &str, module_type: &str) -> Option<String> {
        let first = self.first.get_alternative_param_name(param_name, module_type);
        first.or_else(|| self.second.get_alternative_param_name(param_name, module_type))
    }

    fn get_packed(&self, path: &str, ctx: ModuleContext<'_>) -> Option<Packed> {
        self.first.get_packed(path, ctx).or_else(|| self.second.get_packed(path, ctx))
    }

    fn clone_box(&self) -> Box<dyn ModuleAdapter> {
        Box::new(self.clone())
    }
}
