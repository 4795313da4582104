//! The optimizer of a module: one step for all parameters.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use kiln_module::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamGroup, ParamId};
use kiln_module::record::RecordError;
use kiln_tensor::{Bytes, Device, Tensor};

use crate::global_norm::summed;
use crate::grad_clipping::{GradientClipping, factor, scaled};
use crate::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use crate::{DynOptimizer, DynState, GradientsParams, MatrixStep, MultiGradientsParams, Optimizer, OptimizerRecord};

/// Steps the parameters of a module by their gradients.
///
/// Updates are recorded in the order in which the module declares its parameters, and submitted together at the end of
/// the step: the whole step is one compiled program.
///
/// ```
/// use kiln_module::module::{Module, Param};
/// use kiln_optim::{GradientsParams, SgdConfig};
/// use kiln_tensor::{Device, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Scale {
///     factor: Param<Tensor<1>>,
/// }
///
/// let device = Device::default().autodiff();
/// let mut scale = Scale { factor: Param::from_data([1.0], &device) };
/// let mut optimizer = SgdConfig::new().init();
/// for _ in 0..2 {
///     let gradients = scale.factor.val().sum().backward();
///     let gradients = GradientsParams::from_grads(gradients, &scale);
///     scale = optimizer.step(0.25, scale, gradients);
/// }
/// assert_eq!(scale.factor.val().into_scalar::<f32>(), 0.5);
/// ```
#[derive(Clone)]
pub struct ModuleOptimizer {
    base: Rule,
    groups: Vec<(ParamGroup, Rule)>,
    /// The bound on the norm of all gradients together.
    global_norm: Option<f32>,
    states: BTreeMap<ParamId, Held>,
    /// Recorded states whose parameters have not been stepped since.
    recorded: OptimizerRecord,
}

/// What happens to a parameter of some group.
#[derive(Clone)]
struct Rule {
    optimizer: Arc<dyn DynOptimizer>,
    clipping: Option<GradientClipping>,
}

/// The state of a parameter, with the group and path it had when it was stepped.
#[derive(Clone)]
struct Held {
    /// Taken out while the parameter is stepped.
    state: Option<DynState>,
    group: Option<usize>,
    path: String,
    /// Where the parameter was.
    device: Device,
}

/// Gradients from one device or several.
pub enum GradAdaptor {
    /// From one device.
    Single(GradientsParams),
    /// From several.
    Multi(MultiGradientsParams),
}

impl GradAdaptor {
    /// The gradient of a parameter, taken out, with the device it is on.
    pub fn remove<const D: usize>(&mut self, id: ParamId) -> Option<(Tensor<D>, Device)> {
        match self {
            Self::Single(gradients) => gradients.remove(id).map(|gradient| {
                let device = gradient.device();
                (gradient, device)
            }),
            Self::Multi(gradients) => gradients.remove(id),
        }
    }
}

impl From<GradientsParams> for GradAdaptor {
    fn from(gradients: GradientsParams) -> Self {
        Self::Single(gradients)
    }
}

impl From<MultiGradientsParams> for GradAdaptor {
    fn from(gradients: MultiGradientsParams) -> Self {
        Self::Multi(gradients)
    }
}

impl<O> From<O> for ModuleOptimizer
where
    O: Optimizer,
{
    fn from(optimizer: O) -> Self {
        Self {
            base: Rule { optimizer: Arc::new(optimizer), clipping: None },
            groups: Vec::new(),
            global_norm: None,
            states: BTreeMap::new(),
            recorded: OptimizerRecord::default(),
        }
    }
}

impl ModuleOptimizer {
    /// True if gradients outside the groups are clipped.
    pub fn has_gradient_clipping(&self) -> bool {
        self.base.clipping.is_some()
    }

    /// How gradients outside the groups are clipped.
    pub fn grad_clipping(&self) -> Option<&GradientClipping> {
        self.base.clipping.as_ref()
    }

    /// Sets how gradients outside the groups are clipped.
    #[must_use]
    pub fn with_grad_clipping(mut self, gradient_clipping: GradientClipping) -> Self {
        self.base.clipping = Some(gradient_clipping);
        self
    }

    /// Keeps the norm of the gradients of all parameters together, whatever their group, at or below `max_norm`, as PyTorch's `clip_grad_norm_`
    /// does. Clipping that is set for each parameter is applied after it.
    #[must_use]
    pub fn with_global_norm_clipping(mut self, max_norm: f32) -> Self {
        self.global_norm = Some(max_norm);
        self
    }

    /// The same, if there is any clipping.
    pub(crate) fn with_optional_clipping(mut self, clipping: Option<GradientClipping>) -> Self {
        self.base.clipping = clipping;
        self
    }

    /// Gives a group of parameters another optimizer. Where groups overlap, the one added first counts.
    #[must_use]
    pub fn with_group<O>(mut self, group: ParamGroup, optim: O, grad_clipping: Option<GradientClipping>) -> Self
    where
        O: DynOptimizer + 'static,
    {
        let rule = Rule { optimizer: Arc::new(optim), clipping: grad_clipping };
        self.groups.push((group, rule));
        self
    }

    /// The module after one step; parameters without a gradient stay as they are.
    ///
    /// # Panics
    ///
    /// When a gradient has not the shape of its parameter, or a recorded state does not fit the optimizer.
    #[track_caller]
    pub fn step<M: Module>(&mut self, lr_module: impl Into<ModuleLearningRate>, module: M, grads: GradientsParams) -> M {
        self.step_all(lr_module.into(), module, grads.into())
    }

    /// The same with gradients from several devices, which are summed.
    ///
    /// # Panics
    ///
    /// As [`ModuleOptimizer::step`].
    #[track_caller]
    pub fn step_multi<M: Module>(&mut self, lr_module: impl Into<ModuleLearningRate>, module: M, grads: MultiGradientsParams) -> M {
        self.step_all(lr_module.into(), module, grads.into())
    }

    #[track_caller]
    fn step_all<M: Module>(&mut self, rates: ModuleLearningRate, module: M, mut gradients: GradAdaptor) -> M {
        let mut common = None;
        if let Some(limit) = self.global_norm {
            let single = summed(&module, gradients);
            common = single.global_norm(&module).map(|norm| factor(norm, limit));
            gradients = single.into();
        }
        let mut step = Step {
            optimizer: self,
            rates,
            gradients,
            factor: common,
            path: String::new(),
            ends: Vec::new(),
            devices: Vec::new(),
            stepped: BTreeMap::new(),
        };
        if step.optimizer.rules().any(|rule| rule.optimizer.together().is_some()) {
            step.step_together(&module);
        }
        let module = module.map(&mut step);
        for device in step.devices {
            // A failure is kept by the tensors it concerns and reported when they are read.
            let _ = device.flush();
        }
        module
    }

    /// The index of the first group that holds a parameter.
    fn group_of(&self, id: &ParamId, path: &str) -> Option<usize> {
        self.groups.iter().position(|(group, _)| group.matches(id, Some(path)))
    }

    fn rules(&self) -> impl Iterator<Item = &Rule> {
        core::iter::once(&self.base).chain(self.groups.iter().map(|(_, rule)| rule))
    }

    fn rule(&self, group: Option<usize>) -> &Rule {
        match group {
            Some(index) => &self.groups[index].1,
            None => &self.base,
        }
    }

    /// The states of all parameters that have been stepped.
    pub fn to_record(&self) -> OptimizerRecord {
        let mut record = self.recorded.clone();
        for (id, held) in &self.states {
            let Some(state) = &held.state else { continue };
            record.remove(*id);
            record.add(*id, &held.path, state.rank(), |prefix, out| {
                self.rule(held.group).optimizer.state_flatten(prefix, state, out);
            });
        }
        record
    }

    /// The optimizer with recorded states, which are used as their parameters are stepped.
    #[must_use]
    pub fn load_record(mut self, record: OptimizerRecord) -> Self {
        self.states.clear();
        self.recorded = record;
        self
    }

    /// The record as the bytes of a burnpack file.
    ///
    /// # Errors
    ///
    /// When it can't be represented.
    pub fn into_bytes(&self) -> Result<Bytes, RecordError> {
        self.to_record().into_bytes()
    }

    /// The optimizer with states from the bytes of a burnpack file.
    ///
    /// # Errors
    ///
    /// When the bytes are malformed.
    pub fn from_bytes(self, bytes: Bytes) -> Result<Self, RecordError> {
        Ok(self.load_record(OptimizerRecord::from_bytes(bytes)?))
    }

    /// Saves the states to a burnpack file.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    #[cfg(feature = "std")]
    pub fn save<P: AsRef<std::path::Path>>(&self, path: P) -> Result<(), RecordError> {
        self.to_record().save(path)
    }

    /// The optimizer with states from a burnpack file.
    ///
    /// # Errors
    ///
    /// When the file can't be read or is malformed.
    #[cfg(feature = "std")]
    pub fn load<P: AsRef<std::path::Path>>(self, path: P) -> Result<Self, RecordError> {
        Ok(self.load_record(OptimizerRecord::load(path)?))
    }
}

struct Step<'a> {
    optimizer: &'a mut ModuleOptimizer,
    rates: ModuleLearningRate,
    gradients: GradAdaptor,
    /// What all gradients are multiplied by to keep their common norm within bounds.
    factor: Option<Tensor<1>>,
    /// The path of the parameter that is stepped.
    path: String,
    /// Lengths of the path at every module that was entered.
    ends: Vec<usize>,
    devices: Vec<Device>,
    /// Matrices that were stepped together.
    stepped: BTreeMap<ParamId, Tensor<2>>,
}

/// A parameter whose step has begun.
struct Begun<const D: usize> {
    id: ParamId,
    group: Option<usize>,
    rate: f64,
    tracked: bool,
    tensor: Tensor<D>,
    gradient: Tensor<D>,
    state: Option<DynState>,
}

impl Step<'_> {
    fn update<const D: usize>(&mut self, id: ParamId, tensor: Tensor<D>, gradient: Tensor<D>) -> Tensor<D> {
        let begun = self.begin(id, tensor, gradient);
        let place = begun.tensor.device();
        let rule = self.optimizer.rule(begun.group);
        let (tensor, state) = rule.optimizer.step_dyn(D, begun.rate, begun.tensor.into_bridge(), begun.gradient.into_bridge(), begun.state);
        self.keep(id, begun.group, state, place);
        let tensor = Tensor::<D>::from_bridge(tensor);
        if begun.tracked { tensor.autodiff() } else { tensor }
    }

    /// Takes a parameter's state out, and clips its gradient.
    fn begin<const D: usize>(&mut self, id: ParamId, tensor: Tensor<D>, gradient: Tensor<D>) -> Begun<D> {
        let (shape, found) = (tensor.dims(), gradient.dims());
        assert!(shape == found, "optimizer step: parameter `{}` has shape {shape:?}, its gradient {found:?}", self.path);
        let device = tensor.device();
        let tracked = tensor.is_autodiff();
        let tensor = tensor.without_autodiff();
        let place = tensor.device();
        let mut gradient = gradient.without_autodiff().to_device(&place);
        let group = self.optimizer.group_of(&id, &self.path);
        let state = self.state::<D>(id, group, &place);
        if let Some(factor) = &self.factor {
            gradient = scaled(gradient, factor.clone());
        }
        if let Some(clipping) = &self.optimizer.rule(group).clipping {
            gradient = clipping.clip_gradient(gradient);
        }
        let rate = self.rates.lr_from_param(id, Some(&self.path));
        if !self.devices.contains(&device) {
            self.devices.push(device);
        }
        Begun { id, group, rate, tracked, tensor, gradient, state }
    }

    /// Keeps a parameter's state for its next step.
    fn keep(&mut self, id: ParamId, group: Option<usize>, state: Option<DynState>, place: Device) {
        match (self.optimizer.states.get_mut(&id), state) {
            (Some(held), Some(state)) => {
                held.state = Some(state);
                if held.device != place {
                    held.device = place;
                }
                if held.path != self.path {
                    held.path.clone_from(&self.path);
                }
            }
            (None, Some(state)) => {
                self.optimizer.states.insert(id, Held { state: Some(state), group, path: self.path.clone(), device: place });
            }
            (_, None) => {
                self.optimizer.states.remove(&id);
            }
        }
    }

    /// Steps the matrices whose optimizers step those of one shape together; mapping the module puts them in place.
    fn step_together<M: Module>(&mut self, module: &M) {
        let mut matrices = Matrices { step: self, begun: Vec::new() };
        module.visit(&mut matrices);
        let mut begun = matrices.begun;
        while let Some((_, first)) = begun.first() {
            let (group, like) = (first.group, (first.tensor.dims(), first.tensor.dtype(), first.tensor.device()));
            let alike =
                |(_, other): &(String, Begun<2>)| other.group == group && (other.tensor.dims(), other.tensor.dtype(), other.tensor.device()) == like;
            let (these, rest): (Vec<_>, Vec<_>) = begun.into_iter().partition(alike);
            begun = rest;
            let (mut places, mut steps) = (Vec::with_capacity(these.len()), Vec::with_capacity(these.len()));
            for (path, Begun { id, rate, tracked, tensor, gradient, state, .. }) in these {
                places.push((path, id, tracked));
                steps.push(MatrixStep { lr: rate, tensor, grad: gradient, state });
            }
            let results = match self.optimizer.rule(group).optimizer.together() {
                Some(together) => together.step_matrices(steps),
                None => Vec::new(),
            };
            for ((path, id, tracked), (tensor, state)) in places.into_iter().zip(results) {
                self.path = path;
                self.keep(id, group, Some(state), tensor.device());
                self.stepped.insert(id, if tracked { tensor.autodiff() } else { tensor });
            }
        }
        self.path.clear();
    }

    fn enter(&mut self, name: &str) {
        self.ends.push(self.path.len());
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    fn exit(&mut self) {
        self.path.truncate(self.ends.pop().unwrap_or(0));
    }

    /// The state of a parameter, on its device: from the last step, or from a record.
    fn state<const D: usize>(&mut self, id: ParamId, group: Option<usize>, device: &Device) -> Option<DynState> {
        let path = &self.path;
        if let Some(held) = self.optimizer.states.get_mut(&id) {
            assert!(held.group == group, "optimizer step: parameter `{path}` moved to another group");
            let state = held.state.take()?;
            if held.device == *device {
                return Some(state);
            }
            return Some(self.optimizer.rule(group).optimizer.to_device_dyn(state, device));
        }
        let (rank, mut source) = self.optimizer.recorded.take(id)?;
        let prefix = id.decimal();
        let state = self.optimizer.rule(group).optimizer.state_unflatten(rank, &prefix, &mut source, device);
        match state {
            Some(state) if rank == D => Some(state),
            _ => panic!(
                "optimizer step: the recorded state of parameter `{path}` (rank {rank}) does not fit this optimizer \
                 or a parameter of rank {D}"
            ),
        }
    }
}

/// Begins the steps of matrices that are stepped together, with their paths.
struct Matrices<'a, 'b> {
    step: &'a mut Step<'b>,
    begun: Vec<(String, Begun<2>)>,
}

impl ModuleVisitor for Matrices<'_, '_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.step.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.step.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let step = &mut *self.step;
        let group = step.optimizer.group_of(&param.id, &step.path);
        if D != 2 || step.optimizer.rule(group).optimizer.together().is_none() {
            return;
        }
        if let Some((gradient, _)) = step.gradients.remove::<2>(param.id) {
            let tensor = Tensor::<2>::from_bridge(param.val().into_bridge());
            let begun = step.begin(param.id, tensor, gradient);
            self.begun.push((step.path.clone(), begun));
        }
    }
}

impl ModuleMapper for Step<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.enter(name);
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.exit();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let id = param.id;
        if D == 2
            && let Some(stepped) = self.stepped.remove(&id)
        {
            return param.map(|_| Tensor::from_bridge(stepped.into_bridge()));
        }
        match self.gradients.remove::<D>(id) {
            Some((gradient, _)) => param.map(|tensor| self.update(id, tensor, gradient)),
            None => param,
        }
    }
}
