//! Reparameterizations: a parameter whose value is computed from a stored base and trained parts of another module.
//!
//! Start reading at [`Reparameterization`]; how one is kept behind a parameter of any type is in `held`.

use alloc::string::String;
use alloc::vec::Vec;

use kiln_tensor::Tensor;

use super::{Module, ModuleMapper, Param, held};

/// What computes the value of a float parameter from its stored base, such as a low-rank update.
///
/// It is a module: its parameters are visited, trained, moved and recorded below the parameter's path, in a part called [`NAME`](Self::NAME).
///
/// ```
/// use kiln_module::module::{Module, Param, Reparameterization, Reparameterizer};
/// use kiln_tensor::{Device, Tensor};
///
/// /// Multiplies a parameter by a trained number.
/// #[derive(Module, Debug)]
/// struct Gain {
///     factor: Param<Tensor<1>>,
/// }
///
/// impl Reparameterization for Gain {
///     const NAME: &'static str = "gain";
///
///     fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
///         base * self.factor.val().unsqueeze()
///     }
/// }
///
/// struct Gains(Device);
///
/// impl Reparameterizer for Gains {
///     type Reparam = Gain;
///
///     fn reparameterize<const D: usize>(&mut self, _path: &str, param: Param<Tensor<D>>) -> (Param<Tensor<D>>, Option<Gain>) {
///         let gain = Gain { factor: Param::from_data([2.0], &self.0) };
///         (param.set_require_grad(false), Some(gain))
///     }
/// }
///
/// #[derive(Module, Debug)]
/// struct Shift {
///     offset: Param<Tensor<1>>,
/// }
///
/// let device = Device::default();
/// let shift = Shift { offset: Param::from_data([1.0, 2.0], &device) };
/// let shift = shift.apply_reparameterization(Gains(device));
/// assert_eq!(shift.offset.val().try_to_vec_as::<f32>().unwrap(), [2.0, 4.0]);
/// assert_eq!(shift.offset.base().try_to_vec_as::<f32>().unwrap(), [1.0, 2.0]);
/// assert_eq!(shift.num_params(), 3);
/// ```
pub trait Reparameterization: Module + Sync + 'static {
    /// The name of the part in paths: `layer.weight.NAME.…`.
    const NAME: &'static str;

    /// The value that a module computes with.
    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D>;
}

/// Decides which parameters of a module get a [`Reparameterization`].
pub trait Reparameterizer {
    /// What it gives them.
    type Reparam: Reparameterization;

    /// The parameter at `path`, changed if need be (such as frozen), and what its value is to be computed by; `None` leaves the parameter without.
    fn reparameterize<const D: usize>(&mut self, path: &str, param: Param<Tensor<D>>) -> (Param<Tensor<D>>, Option<Self::Reparam>);
}

/// The container that visitors see around the parts of a reparameterization.
pub(super) const CONTAINER: &str = "Reparameterization";

/// Gives every float parameter what a [`Reparameterizer`] has for it.
pub(super) struct Attach<R> {
    reparameterizer: R,
    path: Vec<String>,
    /// How many reparameterizations the walk is inside of: their parts get none.
    inside: usize,
}

impl<R> Attach<R> {
    pub(super) fn new(reparameterizer: R) -> Self {
        Self { reparameterizer, path: Vec::new(), inside: 0 }
    }
}

impl<R: Reparameterizer> ModuleMapper for Attach<R> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push(name.into());
        self.inside += usize::from(container_type == CONTAINER);
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.path.pop();
        self.inside -= usize::from(container_type == CONTAINER);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.inside > 0 {
            return param;
        }
        let path = self.path.join(".");
        let held = param.held().map(|held| held.name());
        let (param, reparam) = self.reparameterizer.reparameterize(&path, param);
        match (reparam, held) {
            (Some(_), Some(held)) => panic!("reparameterization: parameter `{path}` has one already, `{held}`"),
            (Some(reparam), None) => param.with_held(held::hold(reparam)),
            (None, _) => param,
        }
    }
}
