//! Tensors as parts of a module: constants that move with it, and how tensors and parameters are displayed.

use alloc::format;
use alloc::string::String;

use kiln_tensor::kind::{Autodiff, Basic};
use kiln_tensor::{Bool, Device, Float, Int, Tensor};

use super::{Content, Devices, Flag, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param};

/// A bare tensor is no parameter: it is neither visited, trained nor recorded, but moves with its module.
impl<const D: usize, K: Basic + Autodiff> Module for Tensor<D, K> {
    fn collect_devices(&self, mut devices: Devices) -> Devices {
        let device = self.device();
        if !devices.contains(&device) {
            devices.push(device);
        }
        devices
    }

    fn fork(self, device: &Device) -> Self {
        let tracked = self.is_autodiff();
        let tensor = self.without_autodiff().to_device(device);
        if tracked { tensor.autodiff() } else { tensor }
    }

    fn to_device(self, device: &Device) -> Self {
        Tensor::to_device(self, device)
    }

    fn train(self) -> Self {
        if self.is_autodiff() { self } else { self.autodiff() }
    }

    fn valid(&self) -> Self {
        self.clone().without_autodiff()
    }

    fn materialize(self) -> Self {
        self
    }

    fn visit<Visitor: ModuleVisitor>(&self, _visitor: &mut Visitor) {}

    fn map<Mapper: ModuleMapper>(self, _mapper: &mut Mapper) -> Self {
        self
    }
}

impl<const D: usize, K: Basic> ModuleDisplayDefault for Tensor<D, K> {
    fn content(&self, content: Content) -> Option<Content> {
        let text = format!("Tensor {{rank: {D}, shape: {:?}}}", self.dims());
        content.with_single(text).optional()
    }
}

impl<const D: usize, K: Basic> ModuleDisplay for Tensor<D, K> {}

macro_rules! param_display {
    ($($kind:ty => $name:literal),*) => {$(
        impl<const D: usize> ModuleDisplayDefault for Param<Tensor<D, $kind>> {
            fn content(&self, content: Content) -> Option<Content> {
                let id = if content.display_settings.show_param_id() {
                    format!(", id: {}", self.id)
                } else {
                    String::new()
                };
                let held = self.held().map(|held| format!(", with: {}", held.name())).unwrap_or_default();
                let text = format!(
                    "Param {{rank: {D}, shape: {:?}, kind: {}{id}{held}}}",
                    self.lazy_shape().as_slice(),
                    $name,
                );
                content.with_single(text).optional()
            }

            fn num_params(&self) -> usize {
                Module::num_params(self)
            }
        }

        impl<const D: usize> ModuleDisplay for Param<Tensor<D, $kind>> {}
    )*};
}

param_display!(Float => "float", Int => "int", Bool => "bool");

impl ModuleDisplayDefault for Param<Flag> {
    fn content(&self, content: Content) -> Option<Content> {
        content.with_single(format!("{}", self.val())).optional()
    }
}

impl ModuleDisplay for Param<Flag> {}
