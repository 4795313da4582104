//! The `Module` trait: what every part of a model can do.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use kiln_tensor::{Bool, Device, Int, Tensor};

use super::held::Change;
use super::reparam::Attach;
use super::{Flag, Lora, ModuleMapper, ModuleVisitor, Param, ParamGroup, ParamId, Parameter, QLora, Quantizer, Reparameterizer};
use crate::record::{ModuleRecord, RecordError};

/// The devices of a module's parameters, each once.
pub type Devices = Vec<Device>;

/// A part of a model: a tree whose leaves are parameters.
///
/// Implemented by `#[derive(Module)]` for structs and enums whose fields are modules, parameters, tensors or plain
/// values. A field of another type implements `Module` itself or is marked `#[module(skip)]`.
///
/// ```
/// use kiln_module::module::{Module, Param};
/// use kiln_tensor::{Device, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Scale {
///     factor: Param<Tensor<1>>,
///     offset: f64,
/// }
///
/// let device = Device::default();
/// let scale = Scale { factor: Param::from_data([2.0, 3.0], &device), offset: 1.0 };
/// assert_eq!(scale.num_params(), 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "this type does not implement `Module`",
    note = "derive it with `#[derive(Module)]`, or mark the field with `#[module(skip)]` if it holds no parameters"
)]
pub trait Module: Clone + Send + Debug {
    /// Adds the devices of this module's parameters to `devices`, each once.
    fn collect_devices(&self, devices: Devices) -> Devices;

    /// The devices of this module's parameters, each once.
    fn devices(&self) -> Devices {
        self.collect_devices(Devices::new())
    }

    /// The module with independent parameters on `device`: no graph connects them to this module's.
    fn fork(self, device: &Device) -> Self;

    /// The module moved to `device`. Gradients flow back to the source's parameters, so the result can't be optimised
    /// itself (unless it was neither initialised nor shared); see [`Module::fork`].
    fn to_device(self, device: &Device) -> Self;

    /// Sets whether the float parameters are trained.
    fn set_require_grad(self, require_grad: bool) -> Self {
        self.map(&mut Trainability::of_all(require_grad, false))
    }

    /// Sets whether the float parameters of `group` are trained.
    fn set_require_grad_group(self, group: ParamGroup, require_grad: bool) -> Self {
        self.map(&mut Trainability::of_group(group, require_grad, false))
    }

    /// The module with no parameter trained; flags (dropout, batch statistics) are left alone.
    fn no_grad(self) -> Self {
        self.set_require_grad(false)
    }

    /// The module with no parameter trained and its training flags off.
    fn freeze(self) -> Self {
        self.map(&mut Trainability::of_all(false, true))
    }

    /// The module with all parameters trained and its training flags on.
    fn unfreeze(self) -> Self {
        self.map(&mut Trainability::of_all(true, true))
    }

    /// [`Module::freeze`] for the parameters and flags of `group`.
    fn freeze_group(self, group: ParamGroup) -> Self {
        self.map(&mut Trainability::of_group(group, false, true))
    }

    /// [`Module::unfreeze`] for the parameters and flags of `group`.
    fn unfreeze_group(self, group: ParamGroup) -> Self {
        self.map(&mut Trainability::of_group(group, true, true))
    }

    /// The module with autodiff on, and with the configured trainability and flags restored.
    fn train(self) -> Self;

    /// A snapshot without autodiff and with its training flags off, for validation and inference.
    fn valid(&self) -> Self;

    /// The module with all parameters initialised.
    fn materialize(self) -> Self;

    /// The number of elements of all parameters.
    fn num_params(&self) -> usize {
        let mut count = ElementCount(0);
        self.visit(&mut count);
        count.0
    }

    /// Shows every parameter to `visitor`, in the order of declaration.
    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor);

    /// Replaces every parameter by what `mapper` makes of it, in the order of declaration.
    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self;

    /// The module with the parameters that `reparameterizer` chooses computed from trained parts of their own.
    ///
    /// # Panics
    ///
    /// When a parameter that it chooses has a reparameterization already.
    fn apply_reparameterization<R>(self, reparameterizer: R) -> Self
    where
        Self: Sized,
        R: Reparameterizer,
    {
        self.map(&mut Attach::new(reparameterizer))
    }

    /// The module with matrices adapted by trained updates of low rank: see [`Lora`].
    ///
    /// # Panics
    ///
    /// When a matrix that it chooses is adapted already.
    fn apply_lora(self, lora: Lora) -> Self
    where
        Self: Sized,
    {
        self.apply_reparameterization(lora)
    }

    /// The module with quantized matrices adapted by trained updates of low rank: see [`QLora`].
    ///
    /// # Panics
    ///
    /// When a matrix that it chooses is adapted already, or the blocks of the scheme do not divide a parameter that is to be quantized.
    fn apply_qlora(self, qlora: QLora) -> Self
    where
        Self: Sized,
    {
        self.apply_reparameterization(qlora)
    }

    /// The module with the float parameters of the quantizer's group quantized: see [`Quantizer`].
    ///
    /// # Panics
    ///
    /// When the blocks of the scheme do not divide a parameter.
    fn quantize_weights(self, quantizer: &mut Quantizer) -> Self {
        self.map(quantizer)
    }

    /// The module with the float parameters of a group quantized, whatever the quantizer's own group is.
    ///
    /// # Panics
    ///
    /// When the blocks of the scheme do not divide a parameter.
    fn quantize_weights_group(self, quantizer: &mut Quantizer, group: ParamGroup) -> Self {
        let own = core::mem::replace(&mut quantizer.group, group);
        let module = self.map(quantizer);
        quantizer.group = own;
        module
    }

    /// The record of all parameters, in the order of declaration.
    fn into_record(self) -> ModuleRecord
    where
        Self: Sized,
    {
        ModuleRecord::of(&self, &ParamGroup::all())
    }

    /// The record of the parameters of `group`.
    fn into_record_group(self, group: ParamGroup) -> ModuleRecord
    where
        Self: Sized,
    {
        ModuleRecord::of(&self, &group)
    }

    /// The module with the values of `record`.
    ///
    /// # Errors
    ///
    /// When tensors are missing, unused or have another shape; the error lists them by path.
    fn try_load_record(self, record: ModuleRecord) -> Result<Self, RecordError>
    where
        Self: Sized,
    {
        record.apply(self)
    }

    /// The module with the values of `record`.
    ///
    /// # Panics
    ///
    /// When [`Module::try_load_record`] would fail.
    #[track_caller]
    fn load_record(self, record: ModuleRecord) -> Self
    where
        Self: Sized,
    {
        match self.try_load_record(record) {
            Ok(module) => module,
            Err(error) => panic!("load_record: {error}"),
        }
    }

    /// Saves the parameters to a burnpack file; `.bpk` is added to a path without extension.
    ///
    /// # Errors
    ///
    /// When the file can't be written. An existing file is replaced only by a complete one.
    #[cfg(feature = "std")]
    fn save_file<P: AsRef<std::path::Path>>(self, path: P) -> Result<(), RecordError>
    where
        Self: Sized,
    {
        self.into_record().save(path)
    }

    /// Loads the parameters from a file.
    ///
    /// # Panics
    ///
    /// When [`Module::try_load_file`] would fail.
    #[cfg(feature = "std")]
    #[track_caller]
    fn load_file<P: AsRef<std::path::Path>>(self, path: P) -> Self
    where
        Self: Sized,
    {
        match self.try_load_file(path) {
            Ok(module) => module,
            Err(error) => panic!("load_file: {error}"),
        }
    }

    /// Loads the parameters from a file.
    ///
    /// # Errors
    ///
    /// When the file can't be read or does not fit the module.
    #[cfg(feature = "std")]
    fn try_load_file<P: AsRef<std::path::Path>>(self, path: P) -> Result<Self, RecordError>
    where
        Self: Sized,
    {
        self.try_load_record(ModuleRecord::load(path)?)
    }
}

/// The ids of all parameters of `module`, in the order of declaration.
pub fn list_param_ids<M: Module>(module: &M) -> Vec<ParamId> {
    struct Ids(Vec<ParamId>);
    impl ModuleVisitor for Ids {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(param.id);
        }
        fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
            self.0.push(param.id);
        }
        fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
            self.0.push(param.id);
        }
    }
    let mut ids = Ids(Vec::new());
    module.visit(&mut ids);
    ids.0
}

struct ElementCount(usize);

impl ModuleVisitor for ElementCount {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0 += param.lazy_shape().num_elements();
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.0 += param.lazy_shape().num_elements();
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.0 += param.lazy_shape().num_elements();
    }
}

/// Sets trainability, and with `flags` the training flags, of the parameters of a group.
struct Trainability {
    group: ParamGroup,
    path: Vec<String>,
    on: bool,
    flags: bool,
}

impl Trainability {
    fn of_all(on: bool, flags: bool) -> Self {
        Self::of_group(ParamGroup::all(), on, flags)
    }

    fn of_group(group: ParamGroup, on: bool, flags: bool) -> Self {
        Self { group, path: Vec::new(), on, flags }
    }

    fn selects(&self, id: &ParamId) -> bool {
        self.group.matches_segments(id, &self.path)
    }
}

impl ModuleMapper for Trainability {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.selects(&param.id) { param.set_require_grad(self.on) } else { param }
    }

    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        if self.flags && self.selects(&flag.id) { flag.with_value(self.on) } else { flag }
    }
}

fn add_device(mut devices: Devices, device: Device) -> Devices {
    if !devices.contains(&device) {
        devices.push(device);
    }
    devices
}

macro_rules! param_module {
    ($kind:ty, $visit:ident, $map:ident) => {
        impl<const D: usize> Module for Param<Tensor<D, $kind>> {
            fn collect_devices(&self, devices: Devices) -> Devices {
                self.held_devices(add_device(devices, self.lazy_device()))
            }

            fn fork(self, device: &Device) -> Self {
                self.forked(device).with_held_changed(Change::Fork(device))
            }

            fn to_device(self, device: &Device) -> Self {
                let moved = match self.retargeted(device) {
                    Ok(param) => param,
                    Err(param) => param.replace(|tensor| tensor.to_device(device)),
                };
                moved.with_held_changed(Change::ToDevice(device))
            }

            fn train(self) -> Self {
                let trainable = self.is_trained();
                let trained = self.replace(|tensor| {
                    let tensor = if tensor.is_autodiff() { tensor } else { tensor.autodiff() };
                    Parameter::set_require_grad(tensor, trainable)
                });
                trained.with_held_changed(Change::Train)
            }

            fn valid(&self) -> Self {
                // A lazy parameter is made here, so that snapshot and model share its values.
                self.clone().replace(|tensor| tensor.without_autodiff()).with_held_changed(Change::Valid)
            }

            fn materialize(self) -> Self {
                self.materialized().with_held_changed(Change::Materialize)
            }

            fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
                visitor.$visit(self);
                self.visit_held(visitor);
            }

            fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
                self.mapped_with(mapper, |mapper, param| mapper.$map(param))
            }
        }
    };
}

param_module!(kiln_tensor::Float, visit_float, map_float);
param_module!(Int, visit_int, map_int);
param_module!(Bool, visit_bool, map_bool);

impl Module for Param<Flag> {
    fn collect_devices(&self, devices: Devices) -> Devices {
        devices
    }

    fn fork(self, _device: &Device) -> Self {
        self
    }

    fn to_device(self, _device: &Device) -> Self {
        self
    }

    fn train(self) -> Self {
        self.switched(true)
    }

    fn valid(&self) -> Self {
        self.clone().switched(false)
    }

    fn materialize(self) -> Self {
        self
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        visitor.visit_flag(self);
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        mapper.map_flag(self)
    }
}
