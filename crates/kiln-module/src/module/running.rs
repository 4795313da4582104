//! A value that a module updates while it runs, such as the statistics of batch normalisation.

use alloc::format;
use core::fmt::{self, Debug, Display};

use kiln_tensor::{Device, Tensor};
use spin::Mutex;

use super::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param, ParamId};

/// A tensor that is updated through a shared reference, recorded like a parameter and never trained.
///
/// A clone is a snapshot: updating it leaves the original alone.
#[derive(Debug)]
pub struct RunningState<V> {
    id: ParamId,
    value: Mutex<V>,
}

impl<V: Clone> Clone for RunningState<V> {
    fn clone(&self) -> Self {
        Self { id: self.id, value: Mutex::new(self.value.lock().clone()) }
    }
}

impl<const D: usize> RunningState<Tensor<D>> {
    /// A state with a new identity.
    #[must_use]
    pub fn new(value: Tensor<D>) -> Self {
        Self::with_id(ParamId::new(), value)
    }

    /// A state with the given identity.
    #[must_use]
    pub fn with_id(id: ParamId, value: Tensor<D>) -> Self {
        Self { id, value: Mutex::new(untrained(value)) }
    }

    /// A state with the identity and value of a recorded parameter.
    #[must_use]
    pub fn from_record(record: Param<Tensor<D>>) -> Self {
        Self::with_id(record.id, record.val())
    }

    /// Replaces the value; no gradient flows through it.
    pub fn update(&self, value: Tensor<D>) {
        *self.value.lock() = untrained(value);
    }

    /// The current value.
    #[must_use]
    pub fn value(&self) -> Tensor<D> {
        self.value.lock().clone()
    }

    /// The current value; the same as [`RunningState::value`], since an update takes effect at once.
    #[must_use]
    pub fn value_sync(&self) -> Tensor<D> {
        self.value()
    }

    fn mapped(self, func: impl FnOnce(Tensor<D>) -> Tensor<D>) -> Self {
        Self { id: self.id, value: Mutex::new(untrained(func(self.value.into_inner()))) }
    }
}

/// Cuts a value from its graph: a state that kept it would hold every step's graph alive.
fn untrained<const D: usize>(value: Tensor<D>) -> Tensor<D> {
    if value.is_tracked() || value.is_require_grad() { value.set_require_grad(false).detach() } else { value }
}

impl<const D: usize> Module for RunningState<Tensor<D>> {
    fn collect_devices(&self, mut devices: Devices) -> Devices {
        let device = self.value().device();
        if !devices.contains(&device) {
            devices.push(device);
        }
        devices
    }

    fn fork(self, device: &Device) -> Self {
        self.mapped(|value| Module::fork(value, device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.mapped(|value| value.to_device(device))
    }

    fn train(self) -> Self {
        self.mapped(Module::train)
    }

    fn valid(&self) -> Self {
        self.clone().mapped(Tensor::without_autodiff)
    }

    fn materialize(self) -> Self {
        self
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        visitor.visit_float(&Param::initialized(self.id, self.value()));
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        let mapped = mapper.map_float(Param::initialized(self.id, self.value.into_inner()));
        Self::with_id(mapped.id, mapped.into_value())
    }
}

impl<V> ModuleDisplayDefault for RunningState<V> {
    fn content(&self, content: Content) -> Option<Content> {
        content.with_single(format!("RunningState {{id: {}}}", self.id)).optional()
    }
}

impl<V> ModuleDisplay for RunningState<V> {}

impl<V> Display for RunningState<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RunningState(id={})", self.id)
    }
}
