//! An exponential moving average of a module's weights.

use alloc::collections::BTreeMap;

use kiln_module::config::Config;
use kiln_module::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use kiln_tensor::raw::RawTensor;
use kiln_tensor::{Bool, Int, Tensor};

/// Configuration of [`Ema`].
#[derive(Config, Debug)]
pub struct EmaConfig {
    /// The share of the average that an update keeps. Default: 0.999.
    #[config(default = 0.999)]
    pub decay: f64,
    /// Whether the first updates keep less, `(1 + n) / (10 + n)` after `n` updates, so that the start is soon forgotten. Default: false.
    #[config(default = false)]
    pub warmup: bool,
}

/// A module whose weights are the moving average of another's: `average' = decay · average + (1 - decay) · weight`.
///
/// Weights that are trained are averaged; running statistics, and all that is not trained, are taken over as they are. Averages are kept in the
/// element type of the weights. Save them as any module's record.
///
/// ```
/// use kiln_module::module::{Module, Param};
/// use kiln_optim::EmaConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Scale {
///     factor: Param<Tensor<1>>,
/// }
///
/// let device = Device::default().autodiff();
/// let mut scale = Scale { factor: Param::from_data([1.0], &device) };
/// let mut average = EmaConfig::new().with_decay(0.75).init(&scale);
/// for value in [2.0, 3.0] {
///     scale.factor = scale.factor.map(|factor| factor * 0.0 + value);
///     average.update(&scale);
/// }
/// // 0.75 · (0.75 · 1 + 0.25 · 2) + 0.25 · 3
/// assert_eq!(average.module().factor.val().into_scalar::<f32>(), 1.6875);
/// ```
#[derive(Clone, Debug)]
pub struct Ema<M> {
    module: Option<M>,
    decay: f64,
    warmup: bool,
    updates: usize,
}

impl EmaConfig {
    /// The average, which starts at the weights of `module`.
    ///
    /// # Panics
    ///
    /// When the decay is outside `[0, 1]`.
    #[track_caller]
    pub fn init<M: Module>(&self, module: &M) -> Ema<M> {
        assert!((0.0..=1.0).contains(&self.decay), "moving average: the decay must be in [0, 1], got {}", self.decay);
        Ema { module: Some(module.valid()), decay: self.decay, warmup: self.warmup, updates: 0 }
    }
}

impl<M: Module> Ema<M> {
    /// Takes the weights of `module` into the average. The work of all parameters is submitted together.
    pub fn update(&mut self, module: &M) {
        let mut decay = self.decay;
        if self.warmup {
            decay = decay.min((1.0 + self.updates as f64) / (10.0 + self.updates as f64));
        }
        self.updates += 1;
        let mut current = Current::default();
        module.visit(&mut current);
        let devices = module.devices();
        let average = self.module.take().expect("it is given back below");
        self.module = Some(average.map(&mut Blend { current, decay }));
        for device in devices {
            // A failure is kept by the tensors it concerns and reported when they are read.
            let _ = device.flush();
        }
    }

    /// The module with the averaged weights, for validation and inference.
    pub fn module(&self) -> &M {
        self.module.as_ref().expect("update gives it back")
    }

    /// The same, given up by the average.
    pub fn into_module(self) -> M {
        self.module.expect("update gives it back")
    }

    /// How many times the average was updated.
    pub fn updates(&self) -> usize {
        self.updates
    }

    /// The average with weights and a number of updates from an earlier run.
    #[must_use]
    pub fn resume(self, module: M, updates: usize) -> Self {
        Self { module: Some(module.valid()), updates, ..self }
    }
}

/// The values of a module, with whether they are trained.
#[derive(Default)]
struct Current(BTreeMap<ParamId, (RawTensor, bool)>);

impl ModuleVisitor for Current {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.insert(param.id, (param.base().without_autodiff().into_raw(), param.is_trained()));
    }
    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.0.insert(param.id, (param.base().without_autodiff().into_raw(), false));
    }
    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.0.insert(param.id, (param.base().without_autodiff().into_raw(), false));
    }
}

struct Blend {
    current: Current,
    decay: f64,
}

impl ModuleMapper for Blend {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some((current, trained)) = self.current.0.remove(&param.id) else {
            return param;
        };
        param.map(|average| {
            let current = Tensor::<D>::from_raw(current).to_device(&average.device());
            if trained { average * self.decay + current * (1.0 - self.decay) } else { current }
        })
    }
    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        match self.current.0.remove(&param.id) {
            Some((current, _)) => param.map(|average| Tensor::from_raw(current).to_device(&average.device())),
            None => param,
        }
    }
    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        match self.current.0.remove(&param.id) {
            Some((current, _)) => param.map(|average| Tensor::from_raw(current).to_device(&average.device())),
            None => param,
        }
    }
}
