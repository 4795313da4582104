//! Adapters that change the precision of floats.

use std::collections::BTreeSet;

use kiln_tensor::DType;

use super::{ModuleAdapter, ModuleContext, type_name};
use crate::bridge::map_data;
use crate::burn_pack::Tensor;

/// Casts all floats to one dtype.
#[derive(Debug, Clone)]
pub struct FloatCastAdapter {
    target: DType,
}

impl FloatCastAdapter {
    /// Casts to `target`.
    ///
    /// # Panics
    ///
    /// If `target` is no float type.
    #[track_caller]
    pub fn to(target: DType) -> Self {
        assert!(target.is_float(), "float cast: {target:?} is no float type");
        Self { target }
    }
}

impl ModuleAdapter for FloatCastAdapter {
    fn adapt(&self, tensor: Tensor, _ctx: ModuleContext<'_>) -> Tensor {
        match tensor.dtype.is_float() {
            true => cast(tensor, self.target),
            false => tensor,
        }
    }

    fn clone_box(&self) -> Box<dyn ModuleAdapter> {
        Box::new(self.clone())
    }
}

/// The modules whose parameters lose little in 16 bits. Batch norm is not among them: its running statistics do.
const HALF: [&str; 15] = [
    "Linear",
    "Embedding",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DeformConv2d",
    "LayerNorm",
    "GroupNorm",
    "InstanceNorm",
    "RmsNorm",
    "PRelu",
    "SwiGlu",
];

/// Stores the parameters of chosen modules as f16, and loads them back as f32: `F32` becomes `F16` and `F16` becomes `F32`, so one adapter serves
/// both ways. By default the modules are linear layers, embeddings, convolutions and norms other than batch norm.
#[derive(Debug, Clone)]
pub struct HalfPrecisionAdapter {
    modules: BTreeSet<String>,
}

impl HalfPrecisionAdapter {
    /// An adapter of the default modules.
    pub fn new() -> Self {
        Self { modules: HALF.map(String::from).into() }
    }

    /// Also converts modules of this type, such as `BatchNorm`.
    pub fn with_module(mut self, module_type: impl Into<String>) -> Self {
        self.modules.insert(type_name(&module_type.into()).into());
        self
    }

    /// Leaves modules of this type as they are.
    pub fn without_module(mut self, module_type: impl Into<String>) -> Self {
        self.modules.remove(type_name(&module_type.into()));
        self
    }
}

impl Default for HalfPrecisionAdapter {
    fn default() -> Self {
        Self::new()
    }
}

impl ModuleAdapter for HalfPrecisionAdapter {
    fn adapt(&self, tensor: Tensor, ctx: ModuleContext<'_>) -> Tensor {
        let target = match tensor.dtype {
            DType::F32 => DType::F16,
            DType::F16 => DType::F32,
            _ => return tensor,
        };
        match ctx.module_name() {
            Some(name) if self.modules.contains(name) => cast(tensor, target),
            _ => tensor,
        }
    }

    fn clone_box(&self) -> Box<dyn ModuleAdapter> {
        Box::new(self.clone())
    }
}

fn cast(tensor: Tensor, target: DType) -> Tensor {
    if tensor.dtype == target {
        return tensor;
    }
    let (name, shape) = (tensor.name.clone(), tensor.shape.clone());
    map_data(tensor, name, target, shape, move |data| data.convert_dtype(target))
}
