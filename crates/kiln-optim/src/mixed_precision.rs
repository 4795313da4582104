//! Training in half precision: modules that compute with casts of their weights, and the scale of the loss that keeps small gradients alive.

use kiln_module::config::Config;
use kiln_module::module::{Module, ModuleDisplay, ModuleVisitor, Param, ParamGroup, Reparameterization, Reparameterizer};
use kiln_tensor::{FloatDType, Tensor};

use crate::lr_scheduler::LrSchedulerRecord;
use crate::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use crate::{GradientsParams, ModuleOptimizer, RecordState};

/// Lets a module compute with half-precision casts of its weights, while the weights themselves, their gradients and the optimizer's state stay in
/// single precision.
///
/// Cast the input of the module to the same type, and its output back before the loss. Kernels accumulate and normalise in single precision
/// whatever the type of their operands is.
///
/// ```
/// use kiln_module::module::{Module, Param};
/// use kiln_optim::mixed_precision::{LossScalerConfig, MixedPrecision};
/// use kiln_optim::{GradientsParams, SgdConfig};
/// use kiln_tensor::{DType, Device, FloatDType, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Layer {
///     weight: Param<Tensor<2>>,
/// }
///
/// let device = Device::default().autodiff();
/// let layer = Layer { weight: Param::from_tensor(Tensor::ones([3, 2], &device)) };
/// let mut layer = layer.apply_reparameterization(MixedPrecision::new(FloatDType::F16));
/// let (mut optimizer, mut scaler) = (SgdConfig::new().init(), LossScalerConfig::new().init());
///
/// let input = Tensor::<2>::ones([4, 3], &device).cast(FloatDType::F16);
/// let output = input.matmul(layer.weight.val());
/// assert_eq!(output.dtype(), DType::F16);
/// let loss = output.cast(FloatDType::F32).mean();
/// let gradients = GradientsParams::from_grads(scaler.scale(loss).backward(), &layer);
/// layer = scaler.step(&mut optimizer, 0.1, layer, gradients);
/// assert_eq!(layer.weight.base().dtype(), DType::F32);
/// ```
#[derive(Clone, Debug)]
pub struct MixedPrecision {
    dtype: FloatDType,
    group: ParamGroup,
}

impl MixedPrecision {
    /// All weights are cast to `dtype`.
    #[must_use]
    pub fn new(dtype: FloatDType) -> Self {
        Self { dtype, group: ParamGroup::all() }
    }

    /// Only the weights of `group` are.
    #[must_use]
    pub fn with_group(self, group: ParamGroup) -> Self {
        Self { group, ..self }
    }
}

impl Reparameterizer for MixedPrecision {
    type Reparam = CastWeight;

    fn reparameterize<const D: usize>(&mut self, path: &str, param: Param<Tensor<D>>) -> (Param<Tensor<D>>, Option<CastWeight>) {
        // Running statistics are parameters to visitors, but not computed with through one.
        let cast = param.is_trained() && self.group.matches(&param.id, Some(path));
        (param, cast.then_some(CastWeight { dtype: self.dtype }))
    }
}

/// A weight that is computed with in another element type than it is kept in.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct CastWeight {
    #[module(skip)]
    dtype: FloatDType,
}

impl ModuleDisplay for CastWeight {}

impl Reparameterization for CastWeight {
    const NAME: &'static str = "cast";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        base.cast(self.dtype)
    }
}

/// Configuration of [`LossScaler`].
#[derive(Config, Debug)]
pub struct LossScalerConfig {
    /// The first scale. Default: 65,536.
    #[config(default = 65536.0)]
    pub initial_scale: f64,
    /// What the scale is multiplied by after many good steps. Default: 2.
    #[config(default = 2.0)]
    pub growth_factor: f64,
    /// What the scale is multiplied by after a step whose gradients are not finite. Default: 0.5.
    #[config(default = 0.5)]
    pub backoff_factor: f64,
    /// How many good steps in a row it takes. Default: 2,000.
    #[config(default = 2000)]
    pub growth_interval: usize,
}

impl LossScalerConfig {
    /// The scaler.
    ///
    /// # Panics
    ///
    /// When the scale is not positive, the growth not above 1, the backoff not in `(0, 1)`, or the interval zero.
    #[track_caller]
    pub fn init(&self) -> LossScaler {
        assert!(self.initial_scale > 0.0, "loss scaler: the first scale must be positive, got {}", self.initial_scale);
        assert!(self.growth_factor > 1.0, "loss scaler: the growth factor must be above 1, got {}", self.growth_factor);
        assert!(self.backoff_factor > 0.0 && self.backoff_factor < 1.0, "loss scaler: the backoff must be in (0, 1), got {}", self.backoff_factor);
        assert!(self.growth_interval > 0, "loss scaler: the growth interval must be positive");
        LossScaler { state: LossScalerState { scale: self.initial_scale, good_steps: 0 }, config: self.clone() }
    }
}

/// Multiplies the loss, so that gradients don't vanish in half precision, and finds the multiple: steps whose gradients overflow are left out and
/// make it smaller, many good steps in a row make it greater.
///
/// Micikevicius et al. 2017, [arXiv:1710.03740](https://arxiv.org/abs/1710.03740). The rules are those of PyTorch's `GradScaler`.
#[derive(Clone, Debug)]
pub struct LossScaler {
    config: LossScalerConfig,
    state: LossScalerState,
}

/// The state of [`LossScaler`].
#[derive(RecordState, Clone, Debug, PartialEq)]
pub struct LossScalerState {
    /// What the loss is multiplied by.
    pub scale: f64,
    /// How many good steps there were since the scale changed.
    pub good_steps: usize,
}

impl LossScaler {
    /// The loss, multiplied; what `backward` is called on.
    pub fn scale<const D: usize>(&self, loss: Tensor<D>) -> Tensor<D> {
        loss * self.state.scale
    }

    /// The gradients of `module` as those of the loss itself, and whether all are finite; this waits for the device.
    pub fn unscale<M: Module>(&self, module: &M, gradients: GradientsParams) -> (GradientsParams, bool) {
        let mut unscale = Unscale { gradients, factor: 1.0 / self.state.scale, bad: None };
        module.visit(&mut unscale);
        let finite = unscale.bad.is_none_or(|bad| bad.into_scalar::<f32>() == 0.0);
        (unscale.gradients, finite)
    }

    /// The module after a step of `optimizer` by the gradients of the multiplied loss, or as it was if one of them is not finite. The scale is
    /// adjusted.
    #[track_caller]
    pub fn step<M: Module>(
        &mut self,
        optimizer: &mut ModuleOptimizer,
        lr: impl Into<ModuleLearningRate>,
        module: M,
        gradients: GradientsParams,
    ) -> M {
        let (gradients, finite) = self.unscale(&module, gradients);
        self.update(finite);
        if finite { optimizer.step(lr, module, gradients) } else { module }
    }

    /// Adjusts the scale after a step whose gradients were finite or not; for steps that are taken without [`LossScaler::step`].
    pub fn update(&mut self, finite: bool) {
        let (config, state) = (&self.config, &mut self.state);
        if !finite {
            *state = LossScalerState { scale: state.scale * config.backoff_factor, good_steps: 0 };
            return;
        }
        state.good_steps += 1;
        if state.good_steps == config.growth_interval {
            let greater = state.scale * config.growth_factor;
            // Beyond single precision, the product with the loss would be infinite for ever.
            let scale = if greater <= f64::from(f32::MAX) { greater } else { state.scale };
            *state = LossScalerState { scale, good_steps: 0 };
        }
    }

    /// The state.
    pub fn state(&self) -> &LossScalerState {
        &self.state
    }

    /// The state, to be saved.
    pub fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&self.state)
    }

    /// The scaler with a saved state.
    ///
    /// # Panics
    ///
    /// When the record holds no state of a loss scaler.
    #[must_use]
    #[track_caller]
    pub fn load_record(mut self, record: LrSchedulerRecord) -> Self {
        match record.into_state() {
            Some(state) => self.state = state,
            None => panic!("loss scaler: the record holds no state of it: {record:?}"),
        }
        self
    }
}

struct Unscale {
    gradients: GradientsParams,
    factor: f64,
    /// The number of elements that are not finite.
    bad: Option<Tensor<1>>,
}

impl ModuleVisitor for Unscale {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else {
            return;
        };
        let gradient = gradient.without_autodiff();
        let bad = gradient.clone().is_finite().bool_not().any().float();
        self.bad = Some(match self.bad.take() {
            Some(sum) => {
                let bad = bad.to_device(&sum.device());
                sum + bad
            }
            None => bad,
        });
        // The weights are kept in single precision, and so their gradients are.
        self.gradients.register(param.id, gradient * self.factor);
    }
}
