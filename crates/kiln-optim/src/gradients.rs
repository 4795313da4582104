//! Gradients by parameter.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::marker::PhantomData;

use kiln_module::module::{Module, ModuleVisitor, Param, ParamId};
use kiln_tensor::raw::RawTensor;
use kiln_tensor::{Device, Gradients, Tensor};

/// The gradients of a module's parameters, by their ids.
///
/// ```
/// use kiln_module::module::{Module, Param};
/// use kiln_optim::GradientsParams;
/// use kiln_tensor::{Device, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Scale {
///     factor: Param<Tensor<1>>,
/// }
///
/// let device = Device::default().autodiff();
/// let scale = Scale { factor: Param::from_data([2.0, 3.0], &device) };
/// let loss = (scale.factor.val() * Tensor::from_floats([5.0, 7.0], &device)).sum();
/// let gradients = GradientsParams::from_grads(loss.backward(), &scale);
/// let gradient = gradients.get::<1>(scale.factor.id).unwrap();
/// assert_eq!(gradient.into_data().try_to_vec::<f32>().unwrap(), [5.0, 7.0]);
/// ```
#[derive(Debug, Default)]
pub struct GradientsParams {
    gradients: BTreeMap<ParamId, RawTensor>,
}

impl GradientsParams {
    /// No gradients.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The gradients of all parameters of `module`.
    pub fn from_grads<M: Module>(mut grads: Gradients, module: &M) -> Self {
        Self::from_module(&mut grads, module)
    }

    /// The gradients of the parameters of `module`, taken out of `grads`.
    pub fn from_module<M: Module>(grads: &mut Gradients, module: &M) -> Self {
        Self::taken(grads, module, None)
    }

    /// The gradients of those parameters of `module` that are listed, taken out of `grads`.
    pub fn from_params<M: Module>(grads: &mut Gradients, module: &M, params: &[ParamId]) -> Self {
        Self::taken(grads, module, Some(params))
    }

    fn taken<M: Module>(grads: &mut Gradients, module: &M, params: Option<&[ParamId]>) -> Self {
        let mut take = Take { grads, params, found: Self::new() };
        module.visit(&mut take);
        take.found
    }

    /// The gradient of a parameter of rank `D`.
    pub fn get<const D: usize>(&self, id: ParamId) -> Option<Tensor<D>> {
        self.gradients.get(&id).map(|gradient| Tensor::from_raw(gradient.clone()))
    }

    /// The gradient of a parameter of rank `D`, taken out.
    pub fn remove<const D: usize>(&mut self, id: ParamId) -> Option<Tensor<D>> {
        self.gradients.remove(&id).map(Tensor::from_raw)
    }

    /// Adds or replaces a gradient.
    pub fn register<const D: usize>(&mut self, id: ParamId, value: Tensor<D>) {
        self.gradients.insert(id, value.into_raw());
    }

    /// The number of gradients.
    #[must_use]
    pub fn len(&self) -> usize {
        self.gradients.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gradients.is_empty()
    }

    /// The gradients of `module` on another device.
    #[must_use]
    pub fn to_device<M: Module>(mut self, device: &Device, module: &M) -> Self {
        let mut moving = Move { device, gradients: &mut self };
        module.visit(&mut moving);
        self
    }
}

struct Take<'a> {
    grads: &'a mut Gradients,
    params: Option<&'a [ParamId]>,
    found: GradientsParams,
}

impl ModuleVisitor for Take<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.params.is_some_and(|params| !params.contains(&param.id)) {
            return;
        }
        // A parameter that was never used has no value yet, and no gradient.
        if param.is_initialized()
            && let Some(gradient) = param.grad_remove(self.grads)
        {
            self.found.register(param.id, gradient);
        }
    }
}

struct Move<'a> {
    device: &'a Device,
    gradients: &'a mut GradientsParams,
}

impl ModuleVisitor for Move<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients.register(param.id, gradient.to_device(self.device));
        }
    }
}

/// Sums gradients over several backward passes, for batches that don't fit at once.
///
/// ```
/// use kiln_module::module::{Module, Param};
/// use kiln_optim::{GradientsAccumulator, GradientsParams};
/// use kiln_tensor::{Device, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Scale {
///     factor: Param<Tensor<1>>,
/// }
///
/// let device = Device::default().autodiff();
/// let scale = Scale { factor: Param::from_data([1.0], &device) };
/// let mut accumulator = GradientsAccumulator::new();
/// for _ in 0..3 {
///     let gradients = scale.factor.val().sum().backward();
///     accumulator.accumulate(&scale, GradientsParams::from_grads(gradients, &scale));
/// }
/// let sum = accumulator.grads().get::<1>(scale.factor.id).unwrap();
/// assert_eq!(sum.into_scalar::<f32>(), 3.0);
/// ```
pub struct GradientsAccumulator<M> {
    sum: GradientsParams,
    module: PhantomData<fn(&M)>,
}

impl<M> Default for GradientsAccumulator<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> GradientsAccumulator<M> {
    /// An accumulator of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { sum: GradientsParams::new(), module: PhantomData }
    }

    /// Adds the gradients of `module`.
    pub fn accumulate(&mut self, module: &M, grads: GradientsParams)
    where
        M: Module,
    {
        let mut add = Add { sum: &mut self.sum, grads };
        module.visit(&mut add);
    }

    /// The sums, leaving none.
    pub fn grads(&mut self) -> GradientsParams {
        core::mem::take(&mut self.sum)
    }
}

struct Add<'a> {
    sum: &'a mut GradientsParams,
    grads: GradientsParams,
}

impl ModuleVisitor for Add<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.grads.remove::<D>(param.id) else {
            return;
        };
        let sum = match self.sum.remove::<D>(param.id) {
            Some(sum) => sum + gradient,
            None => gradient,
        };
        self.sum.register(param.id, sum);
    }
}

/// Gradients from several devices, summed when they are used.
#[derive(Default)]
pub struct MultiGradientsParams {
    /// The gradients of each device.
    pub grads: Vec<(GradientsParams, Device)>,
}

impl MultiGradientsParams {
    /// The sum of the gradients of a parameter, on the first device that has one, with that device.
    pub fn remove<const D: usize>(&mut self, id: ParamId) -> Option<(Tensor<D>, Device)> {
        let mut sum: Option<(Tensor<D>, Device)> = None;
        for (gradients, device) in &mut self.grads {
            let Some(gradient) = gradients.remove::<D>(id) else {
                continue;
            };
            sum = Some(match sum {
                Some((sum, first)) => (sum + gradient.to_device(&first), first),
                None => (gradient, device.clone()),
            });
        }
        sum
    }
}
