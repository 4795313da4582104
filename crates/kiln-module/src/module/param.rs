//! A parameter: a tensor (or flag) with an identity, a configured trainability and, at first, possibly no value yet.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt::{self, Debug, Display};
use core::ops::Deref;

use kiln_tensor::{Device, Shape, Tensor, TensorData};
use spin::{Mutex, Once};

use super::held::{Change, Erase, Held};
use super::{Devices, Flag, LoraAdapter, ModuleMapper, ModuleVisitor, ParamId, Parameter, ParameterValue, Reparameterization};

type Init<T> = Box<dyn FnOnce(&Device, bool) -> T + Send + Sync>;
type Mapping<T> = Arc<dyn Fn(T) -> T + Send + Sync>;

/// A value that is made on first use and shared by all clones made before.
struct Lazy<T> {
    value: Once<T>,
    init: Mutex<Option<Init<T>>>,
    device: Device,
    trainable: bool,
    shape: Shape,
}

impl<T> Lazy<T> {
    fn get(&self) -> &T {
        self.value.call_once(|| {
            let init = self.init.lock().take();
            let init = init.expect("the initialiser of a parameter runs once");
            init(&self.device, self.trainable)
        })
    }
}

enum State<T> {
    Ready(T),
    Lazy(Arc<Lazy<T>>),
}

/// A value of a module that is visited, mapped, moved, trained and recorded under an [`ParamId`].
///
/// A parameter may start uninitialised: its value is then made on first use, once for all clones made before. It
/// dereferences to its stored value. A module computes with [`Param::val`], which differs from the stored value where the parameter has a
/// [`Reparameterization`]. Whether it is trained is a setting of the parameter
/// ([`Param::set_require_grad`]) that survives [`Module::valid`](super::Module::valid) and
/// [`Module::train`](super::Module::train).
pub struct Param<T: ParameterValue> {
    /// The identity of the parameter.
    pub id: ParamId,
    state: State<T>,
    mapper: ParamMapper<T>,
    trainable: bool,
}

/// The load and save mappings of a parameter and its reparameterization, kept through [`Param::consume`] and [`Param::from_mapped_value`].
pub struct ParamMapper<T: ParameterValue> {
    load: Option<Mapping<T>>,
    save: Option<Mapping<T>>,
    trainable: bool,
    held: Option<Arc<dyn Held>>,
}

impl<T: ParameterValue> ParamMapper<T> {
    /// Applies the load mapping: from the recorded form to the live one.
    pub fn on_load(&self, param: T) -> T {
        match &self.load {
            Some(mapping) => mapping(param),
            None => param,
        }
    }

    /// Applies the save mapping: from the live form to the recorded one.
    pub fn on_save(&self, param: T) -> T {
        match &self.save {
            Some(mapping) => mapping(param),
            None => param,
        }
    }
}

impl<T: ParameterValue> Default for ParamMapper<T> {
    fn default() -> Self {
        Self { load: None, save: None, trainable: false, held: None }
    }
}

impl<T: ParameterValue> Clone for ParamMapper<T> {
    fn clone(&self) -> Self {
        Self { load: self.load.clone(), save: self.save.clone(), trainable: self.trainable, held: self.held.clone() }
    }
}

impl<T: ParameterValue> Debug for ParamMapper<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ParamMapper").field("load", &self.load.is_some()).field("save", &self.save.is_some()).finish()
    }
}

impl<T: ParameterValue> Param<T> {
    /// A parameter with the given identity and value; it is trained if the value asks for it.
    pub fn initialized(id: ParamId, value: T) -> Self {
        let trainable = value.trainable();
        Self { id, state: State::Ready(value), mapper: ParamMapper::default(), trainable }
    }

    /// The value as a module computes with it: the stored value, or what the parameter's [`Reparameterization`] makes of it.
    pub fn val(&self) -> T {
        match &self.mapper.held {
            Some(held) => self.get().clone().reparameterized(&**held),
            None => self.get().clone(),
        }
    }

    /// The value as it is stored.
    pub fn base(&self) -> T {
        self.get().clone()
    }

    /// True once the value exists.
    pub fn is_initialized(&self) -> bool {
        match &self.state {
            State::Ready(_) => true,
            State::Lazy(lazy) => lazy.value.is_completed(),
        }
    }

    /// The stored value, without the parameter around it.
    pub fn into_value(self) -> T {
        self.consume().1
    }

    /// Takes the parameter apart, to be put together by [`Param::from_mapped_value`].
    pub fn consume(self) -> (ParamId, T, ParamMapper<T>) {
        let mut mapper = self.mapper;
        mapper.trainable = self.trainable;
        (self.id, self.state.into_value(), mapper)
    }

    /// Replaces the stored value by `func` of it, keeping identity, mappings and configured trainability: a trained
    /// parameter stays a leaf that keeps its gradient.
    pub fn map<F: FnOnce(T) -> T>(self, func: F) -> Self {
        let (value, trainable) = func(self.state.into_value()).settle(self.trainable);
        Self { id: self.id, state: State::Ready(value), mapper: self.mapper, trainable }
    }

    /// Puts a parameter together again after [`Param::consume`].
    pub fn from_mapped_value(id: ParamId, value: T, param_mapper: ParamMapper<T>) -> Self {
        let trainable = param_mapper.trainable && !value.switched_off();
        let (value, trainable) = value.settle(trainable);
        Self { id, state: State::Ready(value), mapper: param_mapper, trainable }
    }

    /// Whether the parameter is set to be trained, on a device with autodiff or not; running statistics never are.
    pub fn is_trained(&self) -> bool {
        self.trainable
    }

    /// Replaces the value only, leaving the setting alone: for snapshots and moves between devices.
    pub(crate) fn replace(self, func: impl FnOnce(T) -> T) -> Self {
        Self { id: self.id, state: State::Ready(func(self.state.into_value())), mapper: self.mapper, trainable: self.trainable }
    }

    /// What the value is reparameterized by.
    pub(super) fn held(&self) -> Option<&dyn Held> {
        self.mapper.held.as_deref()
    }

    /// The parameter with a reparameterization.
    pub(super) fn with_held(mut self, held: Arc<dyn Held>) -> Self {
        self.mapper.held = Some(held);
        self
    }

    /// The parameter with its reparameterization changed.
    pub(super) fn with_held_changed(mut self, change: Change<'_>) -> Self {
        self.mapper.held = self.mapper.held.map(|held| held.changed(change));
        self
    }

    /// The devices of the reparameterization.
    pub(super) fn held_devices(&self, devices: Devices) -> Devices {
        match &self.mapper.held {
            Some(held) => held.collect_devices(devices),
            None => devices,
        }
    }

    /// Shows the parameters of the reparameterization.
    pub(super) fn visit_held<V: ModuleVisitor>(&self, visitor: &mut V) {
        if let Some(held) = &self.mapper.held {
            held.visit(&mut Erase(visitor));
        }
    }

    /// The parameter after `map`, and its reparameterization after `mapper`; one that `map` has attached is left as it is.
    pub(super) fn mapped_with<M: ModuleMapper>(self, mapper: &mut M, map: impl FnOnce(&mut M, Self) -> Self) -> Self {
        let Some(held) = self.mapper.held.clone() else {
            return map(mapper, self);
        };
        let mut param = map(mapper, self);
        // Given up before it is mapped, so that its buffers can be reused in place.
        param.mapper.held = None;
        param.with_held(held.map(&mut Erase(mapper)))
    }

    fn get(&self) -> &T {
        match &self.state {
            State::Ready(value) => value,
            State::Lazy(lazy) => lazy.get(),
        }
    }
}

impl<T: ParameterValue> State<T> {
    /// The value, taken out where no clone shares it, so that its buffer can be reused in place.
    fn into_value(self) -> T {
        match self {
            Self::Ready(value) => value,
            Self::Lazy(lazy) => match Arc::try_unwrap(lazy) {
                Ok(lazy) => {
                    lazy.get();
                    lazy.value.try_into_inner().expect("just initialised")
                }
                Err(shared) => shared.get().clone(),
            },
        }
    }
}

impl<T: Parameter> Param<T> {
    /// A parameter whose value `init` makes on first use, on `device`.
    ///
    /// `init` gets the device and whether the value is to keep its gradient; the shape is what it will have.
    pub fn uninitialized<F>(id: ParamId, init: F, device: Device, is_require_grad: bool, shape: Shape) -> Self
    where
        F: FnOnce(&Device, bool) -> T + Send + Sync + 'static,
    {
        Self {
            id,
            state: State::Lazy(Arc::new(Lazy {
                value: Once::new(),
                init: Mutex::new(Some(Box::new(init))),
                device,
                trainable: is_require_grad,
                shape,
            })),
            mapper: ParamMapper::default(),
            trainable: is_require_grad,
        }
    }

    /// The reparameterization of the parameter, if it has one of type `R`.
    pub fn reparameterization<R: Reparameterization>(&self) -> Option<&R> {
        self.held()?.as_any().downcast_ref()
    }

    /// The low-rank update of the parameter, if it has one: see [`Lora`](super::Lora).
    pub fn adapter(&self) -> Option<&LoraAdapter> {
        self.reparameterization()
    }

    /// Sets the mapping from the recorded form to the live one.
    pub fn load_mapper<F: Fn(T) -> T + Send + Sync + 'static>(mut self, func: F) -> Self {
        self.mapper.load = Some(Arc::new(func));
        self
    }

    /// Sets the mapping from the live form to the recorded one.
    pub fn save_mapper<F: Fn(T) -> T + Send + Sync + 'static>(mut self, func: F) -> Self {
        self.mapper.save = Some(Arc::new(func));
        self
    }

    /// Maps the initial value: when it is made, or now if it exists.
    pub fn init_mapper<F: Fn(T) -> T + Send + Sync + 'static>(self, func: F) -> Self
    where
        T: Sync + 'static,
    {
        match self.unshared() {
            Ok((mut param, lazy)) => {
                let mut mapped = lazy.empty();
                let init = lazy.init.into_inner();
                let init = init.expect("an unshared parameter has not run its initialiser");
                mapped.init =
                    Mutex::new(Some(Box::new(move |device: &Device, require_grad| func(init(device, false)).set_require_grad(require_grad))));
                param.state = State::Lazy(Arc::new(mapped));
                param
            }
            Err(param) => param.map(func),
        }
    }

    /// The device of the value, without making it.
    pub fn lazy_device(&self) -> Device {
        match &self.state {
            State::Ready(value) => value.device(),
            State::Lazy(lazy) => match lazy.value.get() {
                Some(value) => value.device(),
                None => lazy.device.clone(),
            },
        }
    }

    /// The shape of the value, without making it.
    pub fn lazy_shape(&self) -> Shape {
        match &self.state {
            State::Ready(value) => value.shape(),
            State::Lazy(lazy) => match lazy.value.get() {
                Some(value) => value.shape(),
                None => lazy.shape.clone(),
            },
        }
    }

    /// Sets whether the parameter is trained. On a device without autodiff this is the setting that
    /// [`Module::train`](super::Module::train) restores.
    pub fn set_require_grad(self, require_grad: bool) -> Self {
        if self.trainable == require_grad && !matches!(self.state, State::Ready(_)) {
            return self;
        }
        let mut param = match self.unshared() {
            Ok((mut param, mut lazy)) => {
                lazy.trainable = require_grad;
                param.state = State::Lazy(Arc::new(lazy));
                param
            }
            Err(param) => param.replace(|value| value.set_require_grad(require_grad)),
        };
        param.trainable = require_grad;
        param
    }

    /// The parameter with a value from a record: mapped to the live form, on this parameter's device, with this
    /// parameter's trainability and the record's identity.
    pub fn transform_for_load(self, tensor: T, param_id: ParamId) -> Self {
        let device = self.lazy_device();
        let value = self.mapper.on_load(tensor).load_to_device(&device);
        Self { id: param_id, state: State::Ready(value.set_require_grad(self.trainable)), mapper: self.mapper, trainable: self.trainable }
    }

    /// The parameter with its stored value in the recorded form, and without its reparameterization, which is recorded on its own.
    pub fn transform_for_save(&self) -> Self {
        let mapper = ParamMapper { held: None, ..self.mapper.clone() };
        Self { id: self.id, state: State::Ready(self.mapper.on_save(self.base())), mapper, trainable: self.trainable }
    }

    /// The parameter as a value of its own on `device`: no graph connects it to this one.
    pub(crate) fn forked(self, device: &Device) -> Self {
        match self.retargeted(device) {
            Ok(param) => param,
            Err(param) => {
                let trainable = param.trainable;
                param.replace(|value| {
                    let target = in_context_of(&value.device(), device);
                    value.load_to_device(&target).set_require_grad(trainable)
                })
            }
        }
    }

    /// Moves the initialisation of an unshared, uninitialised parameter to `device`.
    pub(crate) fn retargeted(self, device: &Device) -> Result<Self, Self> {
        let (mut param, mut lazy) = self.unshared()?;
        lazy.device = in_context_of(&lazy.device, device);
        param.state = State::Lazy(Arc::new(lazy));
        Ok(param)
    }

    /// Makes the value now.
    pub(crate) fn materialized(self) -> Self {
        Self { id: self.id, state: State::Ready(self.state.into_value()), mapper: self.mapper, trainable: self.trainable }
    }

    /// Takes out the initialiser if the value does not exist yet and no clone shares it.
    fn unshared(mut self) -> Result<(Self, Lazy<T>), Self> {
        let (id, trainable) = (self.id, self.trainable);
        match self.state {
            State::Lazy(lazy) if !lazy.value.is_completed() => match Arc::try_unwrap(lazy) {
                Ok(lazy) => {
                    let shell = Arc::new(lazy.empty());
                    self.state = State::Lazy(shell);
                    let param = Self { id, trainable, ..self };
                    Ok((param, lazy))
                }
                Err(shared) => {
                    self.state = State::Lazy(shared);
                    Err(self)
                }
            },
            state => {
                self.state = state;
                Err(self)
            }
        }
    }
}

impl<T> Lazy<T> {
    /// The same settings without an initialiser, to be filled in.
    fn empty(&self) -> Self {
        Self { value: Once::new(), init: Mutex::new(None), device: self.device.clone(), trainable: self.trainable, shape: self.shape.clone() }
    }
}

/// `target` with autodiff as `source` has it: moving neither turns autodiff on nor off.
fn in_context_of(source: &Device, target: &Device) -> Device {
    if source.is_autodiff() { target.clone().autodiff() } else { target.clone().without_autodiff() }
}

impl<const D: usize> Param<Tensor<D>> {
    /// A new trained parameter with the given value.
    pub fn from_tensor(value: Tensor<D>) -> Self {
        let mut param = Self::initialized(ParamId::new(), Parameter::set_require_grad(value, true));
        param.trainable = true;
        param
    }

    /// A new trained parameter from data such as `[[1.0, 2.0]]`, on `device`.
    pub fn from_data<T>(data: T, device: &Device) -> Self
    where
        T: Into<TensorData>,
    {
        Self::from_tensor(Tensor::from_data(data, device))
    }
}

impl Param<Flag> {
    /// A flag with the given value, restored by [`Module::train`](super::Module::train).
    pub fn from_bool(value: bool) -> Self {
        Self::initialized(ParamId::new(), Flag::new(value))
    }

    /// The flag with another value, which also becomes the one that training restores.
    #[must_use]
    pub fn with_value(self, value: bool) -> Self {
        let mut param = self.replace(|flag| flag.with(value));
        param.trainable = value;
        param
    }

    /// The flag switched for a snapshot; the setting is kept.
    pub(crate) fn switched(self, on: bool) -> Self {
        let value = on && self.trainable;
        self.replace(|flag| flag.with(value))
    }
}

impl<T: ParameterValue> Clone for Param<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id,
            state: match &self.state {
                State::Ready(value) => State::Ready(value.clone()),
                State::Lazy(lazy) => State::Lazy(lazy.clone()),
            },
            mapper: self.mapper.clone(),
            trainable: self.trainable,
        }
    }
}

impl<T: ParameterValue> Deref for Param<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.get()
    }
}

impl<T: ParameterValue> Debug for Param<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = formatter.debug_struct("Param");
        out.field("id", &self.id);
        match &self.state {
            State::Ready(value) => out.field("value", value),
            // Printing must not draw random numbers.
            State::Lazy(lazy) => match lazy.value.get() {
                Some(value) => out.field("value", value),
                None => out.field("shape", &lazy.shape),
            },
        };
        out.field("require_grad", &self.trainable);
        match &self.mapper.held {
            Some(held) => out.field("reparameterization", held).finish(),
            None => out.finish(),
        }
    }
}

impl<T: ParameterValue> Display for Param<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Param: {}", self.id)
    }
}
