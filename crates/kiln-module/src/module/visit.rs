//! Reading access to every parameter of a module.

use alloc::string::String;

use kiln_tensor::{Bool, Int, Tensor};

use super::{Flag, Param, ParamId};

/// Sees every parameter of a module, in the order of declaration, by [`Module::visit`](super::Module::visit).
///
/// All methods do nothing by default.
pub trait ModuleVisitor {
    /// Sees a float parameter.
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let _ = param;
    }

    /// Sees an int parameter.
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        let _ = param;
    }

    /// Sees a bool parameter.
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        let _ = param;
    }

    /// Sees a training flag.
    fn visit_flag(&mut self, flag: &Param<Flag>) {
        let _ = flag;
    }

    /// Comes to a part of a module: its name, and the container it is in (`Struct:Name`, `Enum:Name`, `Vec`, `Array`
    /// or `Tuple`).
    fn enter_module(&mut self, name: &str, container_type: &str) {
        let _ = (name, container_type);
    }

    /// Leaves the part that was entered last.
    fn exit_module(&mut self, name: &str, container_type: &str) {
        let _ = (name, container_type);
    }

    /// Sees a float tensor with the path it is under; for visitors that are driven by path.
    fn visit_float_with_path<const D: usize>(&mut self, path: &[String], id: ParamId, tensor: &Tensor<D>) {
        let _ = (path, id, tensor);
    }

    /// Sees an int tensor with the path it is under.
    fn visit_int_with_path<const D: usize>(&mut self, path: &[String], id: ParamId, tensor: &Tensor<D, Int>) {
        let _ = (path, id, tensor);
    }

    /// Sees a bool tensor with the path it is under.
    fn visit_bool_with_path<const D: usize>(&mut self, path: &[String], id: ParamId, tensor: &Tensor<D, Bool>) {
        let _ = (path, id, tensor);
    }
}
