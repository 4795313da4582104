//! Replacing access to every parameter of a module.

use kiln_tensor::{Bool, Int, Tensor};

use super::{Flag, Param};

/// Replaces every parameter of a module, in the order of declaration, by [`Module::map`](super::Module::map).
///
/// All methods return the parameter as it is by default.
///
/// ```
/// use kiln_module::module::{ModuleMapper, Param};
/// use kiln_tensor::Tensor;
///
/// struct Halve;
///
/// impl ModuleMapper for Halve {
///     fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
///         param.map(|tensor| tensor * 0.5)
///     }
/// }
/// ```
pub trait ModuleMapper {
    /// Comes to a part of a module; see [`ModuleVisitor::enter_module`](super::ModuleVisitor::enter_module).
    fn enter_module(&mut self, name: &str, container_type: &str) {
        let _ = (name, container_type);
    }

    /// Leaves the part that was entered last.
    fn exit_module(&mut self, name: &str, container_type: &str) {
        let _ = (name, container_type);
    }

    /// Replaces a float parameter.
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param
    }

    /// Replaces an int parameter.
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        param
    }

    /// Replaces a bool parameter.
    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        param
    }

    /// Replaces a training flag.
    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        flag
    }
}
