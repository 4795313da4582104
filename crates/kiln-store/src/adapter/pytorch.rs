//! Adapters between PyTorch's conventions and Burn's: the orientation of linear weights and the names of norm parameters.

use kiln_tensor::{Bytes, Shape, TensorData};

use super::{ModuleAdapter, ModuleContext, Packed, packed, type_name};
use crate::bridge::map_data;
use crate::burn_pack::Tensor;

/// The modules whose parameters PyTorch calls `weight` and `bias`, Burn `gamma` and `beta`.
const NORMS: [&str; 5] = ["BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RmsNorm"];

/// Burn's and PyTorch's name of a norm's parameter.
const NORM_NAMES: [(&str, &str); 2] = [("gamma", "weight"), ("beta", "bias")];

/// Loads what PyTorch saved: transposes the weights of linear layers from `[out, in]` to `[in, out]`, finds `gamma` and `beta` of norms under
/// `weight` and `bias`, and the gates of recurrent layers and the projections of attention in the tensors that they are packed into.
#[derive(Debug, Clone, Default)]
pub struct PyTorchToBurnAdapter;

/// Saves for PyTorch: the opposite of [`PyTorchToBurnAdapter`].
#[derive(Debug, Clone, Default)]
pub struct BurnToPyTorchAdapter;

impl ModuleAdapter for PyTorchToBurnAdapter {
    fn adapt(&self, tensor: Tensor, ctx: ModuleContext<'_>) -> Tensor {
        adapt(tensor, ctx, |(burn, torch)| (torch, burn))
    }

    fn get_alternative_param_name(&self, param_name: &str, module_type: &str) -> Option<String> {
        let norm = NORMS.contains(&type_name(module_type));
        let row = NORM_NAMES.iter().find(|(burn, _)| norm && *burn == param_name);
        row.map(|(_, torch)| (*torch).into())
    }

    fn get_packed(&self, path: &str, ctx: ModuleContext<'_>) -> Option<Packed> {
        packed::in_pytorch(path, ctx)
    }

    fn clone_box(&self) -> Box<dyn ModuleAdapter> {
        Box::new(self.clone())
    }
}

impl ModuleAdapter for BurnToPyTorchAdapter {
    fn adapt(&self, tensor: Tensor, ctx: ModuleContext<'_>) -> Tensor {
        adapt(tensor, ctx, |row| row)
    }

    fn get_alternative_param_name(&self, param_name: &str, module_type: &str) -> Option<String> {
        let norm = NORMS.contains(&type_name(module_type));
        let row = NORM_NAMES.iter().find(|(_, torch)| norm && *torch == param_name);
        row.map(|(burn, _)| (*burn).into())
    }

    fn clone_box(&self) -> Box<dyn ModuleAdapter> {
        Box::new(self.clone())
    }
}

/// Transposes a linear weight; renames a norm's parameter from the first to the second of the names that `direction` makes of a row.
fn adapt(mut tensor: Tensor, ctx: ModuleContext<'_>, direction: fn((&'static str, &'static str)) -> (&'static str, &'static str)) -> Tensor {
    let Some(module) = ctx.module_name() else {
        return tensor;
    };
    let start = tensor.name.rfind('.').map_or(0, |dot| dot + 1);
    let param = &tensor.name[start..];
    if module == "Linear" && param == "weight" && tensor.shape.rank() == 2 {
        return transposed(tensor);
    }
    if NORMS.contains(&module)
        && let Some((_, to)) = NORM_NAMES.into_iter().map(direction).find(|(from, _)| *from == param)
    {
        tensor.name.replace_range(start.., to);
    }
    tensor
}

/// The transpose of a matrix, made when its bytes are asked for.
fn transposed(tensor: Tensor) -> Tensor {
    let [rows, columns] = tensor.shape.dims();
    let (name, dtype) = (tensor.name.clone(), tensor.dtype);
    map_data(tensor, name, dtype, Shape::new([columns, rows]), move |data| {
        let size = dtype.size();
        let from = data.as_bytes();
        let mut to = Vec::with_capacity(from.len());
        for column in 0..columns {
            for row in 0..rows {
                let at = (row * columns + column) * size;
                to.extend_from_slice(&from[at..at + size]);
            }
        }
        TensorData::from_bytes(Bytes::from_bytes_vec(to), [columns, rows], dtype)
    })
}
