//! L-BFGS.

use alloc::vec;
use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use kiln_module::record::RecordError;
use kiln_tensor::{Bytes, Device, Tensor};

use crate::line_search::{LineSearchFn, Point, strong_wolfe};
use crate::{GradientsParams, LearningRate, OptimizerRecord, RecordState, StateField, StateSink, StateSource, join_index};

/// Configuration of [`LBFGS`].
#[derive(Config, Debug)]
pub struct LBFGSConfig {
    /// The most iterations a step. Default: 20.
    #[config(default = 20)]
    pub max_iter: usize,
    /// The number of past changes that the curvature is estimated from. Default: 100.
    #[config(default = 100)]
    pub history_size: usize,
    /// The greatest element of a gradient that counts as zero. Default: 1e-7.
    #[config(default = 1e-7)]
    pub tolerance_grad: f64,
    /// The change of parameters or loss that counts as none. Default: 1e-9.
    #[config(default = 1e-9)]
    pub tolerance_change: f64,
    /// The most evaluations of the closure a step. Default: 5/4 of the iterations.
    #[config(default = None)]
    pub max_eval: Option<usize>,
    /// How the length of a step is found. Default: it is the learning rate.
    #[config(default = LineSearchFn::None)]
    pub line_search_fn: LineSearchFn,
}

/// The state of [`LBFGS`].
#[derive(Clone, Default)]
pub struct LBFGSState {
    /// Past changes of the parameters.
    pub history_s: Vec<Tensor<1>>,
    /// Past changes of the gradient.
    pub history_y: Vec<Tensor<1>>,
    /// The last direction.
    pub d: Option<Tensor<1>>,
    /// The last step length.
    pub t: Option<f64>,
    /// The last gradient.
    pub prev_flat_grad: Option<Tensor<1>>,
    /// The last loss.
    pub prev_loss: Option<f64>,
    /// The number of iterations.
    pub g_iter: usize,
}

impl LBFGSState {
    /// The state on another device.
    #[must_use]
    pub fn to_device(self, device: &Device) -> Self {
        let all = |tensors: Vec<Tensor<1>>| tensors.into_iter().map(|tensor| tensor.to_device(device)).collect();
        Self {
            history_s: all(self.history_s),
            history_y: all(self.history_y),
            d: self.d.map(|tensor| tensor.to_device(device)),
            prev_flat_grad: self.prev_flat_grad.map(|tensor| tensor.to_device(device)),
            ..self
        }
    }
}

impl RecordState for LBFGSState {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        for (name, tensors) in [("history_s", &self.history_s), ("history_y", &self.history_y)] {
            for (index, tensor) in tensors.iter().enumerate() {
                let leaf = join_index(name, index);
                tensor.field_flatten(prefix, &leaf, out);
            }
        }
        if let Some(tensor) = &self.d {
            tensor.field_flatten(prefix, "d", out);
        }
        if let Some(t) = &self.t {
            t.field_flatten(prefix, "t", out);
        }
        if let Some(tensor) = &self.prev_flat_grad {
            tensor.field_flatten(prefix, "prev_flat_grad", out);
        }
        if let Some(loss) = &self.prev_loss {
            loss.field_flatten(prefix, "prev_loss", out);
        }
        self.g_iter.field_flatten(prefix, "g_iter", out);
    }

    fn state_unflatten(prefix: &str, src: &mut StateSource, device: &Device) -> Option<Self> {
        let mut history = |name: &str| {
            let mut tensors = Vec::new();
            while let Some(tensor) = Tensor::field_unflatten(prefix, &join_index(name, tensors.len()), src, device) {
                tensors.push(tensor);
            }
            tensors
        };
        Some(Self {
            history_s: history("history_s"),
            history_y: history("history_y"),
            d: Tensor::field_unflatten(prefix, "d", src, device),
            t: f64::field_unflatten(prefix, "t", src, device),
            prev_flat_grad: Tensor::field_unflatten(prefix, "prev_flat_grad", src, device),
            prev_loss: f64::field_unflatten(prefix, "prev_loss", src, device),
            g_iter: usize::field_unflatten(prefix, "g_iter", src, device)?,
        })
    }
}

/// A quasi-Newton method: steps along the gradient times an inverse curvature estimated from past steps.
///
/// A step evaluates the loss several times, so it takes a closure. Liu and Nocedal 1989, "On the Limited Memory BFGS Method
/// for Large Scale Optimization".
///
/// ```
/// use kiln_module::module::{Module, Param};
/// use kiln_optim::{GradientsParams, LBFGSConfig, LineSearchFn};
/// use kiln_tensor::{Device, Tensor};
///
/// #[derive(Module, Debug)]
/// struct Point {
///     at: Param<Tensor<1>>,
/// }
///
/// let device = Device::default().autodiff();
/// let mut point = Point { at: Param::from_data([5.0, -3.0], &device) };
/// let mut optimizer = LBFGSConfig::new().with_line_search_fn(LineSearchFn::StrongWolfe).init();
/// let (point, _) = optimizer.step(1.0, point, |point: Point| {
///     let loss = (point.at.val() - 1.0).square().sum();
///     let gradients = GradientsParams::from_grads(loss.backward(), &point);
///     (loss.into_scalar::<f32>() as f64, gradients)
/// });
/// let distance: f32 = (point.at.val() - 1.0).abs().max().into_scalar();
/// assert!(distance < 1e-4);
/// ```
#[derive(Clone)]
pub struct LBFGS {
    config: LBFGSConfig,
    state: LBFGSState,
    /// A record that no step has used yet.
    recorded: Option<OptimizerRecord>,
}

impl LBFGSConfig {
    /// The optimizer.
    pub fn init(&self) -> LBFGS {
        LBFGS { config: self.clone(), state: LBFGSState::default(), recorded: None }
    }
}

/// The key of the one state in a record.
const KEY: u64 = 0;

impl LBFGS {
    /// The state, to be saved.
    pub fn to_record(&self) -> OptimizerRecord {
        if let Some(record) = &self.recorded {
            return record.clone();
        }
        let mut record = OptimizerRecord::default();
        record.add(ParamId::from(KEY), "lbfgs", 1, |prefix, out| {
            self.state.state_flatten(prefix, out);
        });
        record
    }

    /// The optimizer with a recorded state.
    #[must_use]
    pub fn load_record(mut self, record: OptimizerRecord) -> Self {
        self.recorded = Some(record);
        self
    }

    /// The record as the bytes of a burnpack file.
    ///
    /// # Errors
    ///
    /// When it can't be represented.
    #[allow(clippy::wrong_self_convention, reason = "the name is that of the other optimizers")]
    pub fn into_bytes(&self) -> Result<Bytes, RecordError> {
        self.to_record().into_bytes()
    }

    /// The optimizer with a state from the bytes of a burnpack file.
    ///
    /// # Errors
    ///
    /// When the bytes are malformed.
    pub fn from_bytes(self, bytes: Bytes) -> Result<Self, RecordError> {
        Ok(self.load_record(OptimizerRecord::from_bytes(bytes)?))
    }

    /// Saves the state to a burnpack file.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    #[cfg(feature = "std")]
    pub fn save<P: AsRef<std::path::Path>>(&self, path: P) -> Result<(), RecordError> {
        self.to_record().save(path)
    }

    /// The optimizer with a state from a burnpack file.
    ///
    /// # Errors
    ///
    /// When the file can't be read or is malformed.
    #[cfg(feature = "std")]
    pub fn load<P: AsRef<std::path::Path>>(self, path: P) -> Result<Self, RecordError> {
        Ok(self.load_record(OptimizerRecord::load(path)?))
    }

    /// The optimizer on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.state = self.state.to_device(device);
        self
    }

    /// The module after up to `max_iter` iterations, and the loss before them. The closure gives the loss and gradients of a
    /// module.
    ///
    /// # Panics
    ///
    /// When the module has no trained parameter, or a recorded state does not fit.
    #[track_caller]
    pub fn step<M, F>(&mut self, lr: LearningRate, mut module: M, mut closure: F) -> (M, f64)
    where
        M: Module + Clone,
        F: FnMut(M) -> (f64, GradientsParams),
    {
        self.restore(&module);
        let max_eval = self.config.max_eval.unwrap_or(self.config.max_iter * 5 / 4);
        let (first_loss, gradients) = closure(module.clone());
        let mut loss = first_loss;
        let mut gradient = flat_gradient(&module, gradients);
        let mut evaluations = 1;
        if largest(&gradient) <= self.config.tolerance_grad {
            return (module, first_loss);
        }
        for iteration in 1..=self.config.max_iter {
            let direction = self.direction(&gradient);
            let slope = dot(&gradient, &direction);
            let mut t = if self.state.g_iter == 1 { lr * (1.0 / sum_of_sizes(&gradient)).min(1.0) } else { lr };
            self.state.prev_flat_grad = Some(gradient.clone());
            self.state.prev_loss = Some(loss);
            self.state.d = Some(direction.clone());
            self.state.t = Some(t);
            if slope > -self.config.tolerance_change {
                break;
            }
            let before = loss;
            let start = flat_parameters(&module);
            let at = |t: f64| start.clone() + direction.clone() * t;
            let mut flat = true;
            match self.config.line_search_fn {
                LineSearchFn::StrongWolfe => {
                    let origin = Point { t: 0.0, loss, gradient: gradient.clone(), slope };
                    let reach = largest(&direction);
                    let tolerance = self.config.tolerance_change;
                    let (found, count) = strong_wolfe(origin, t, reach, tolerance, |t| {
                        let moved = with_parameters(module.clone(), at(t));
                        let (loss, gradients) = closure(moved);
                        let gradient = flat_gradient(&module, gradients);
                        let slope = dot(&gradient, &direction);
                        Point { t, loss, gradient, slope }
                    });
                    t = found.t;
                    (loss, gradient) = (found.loss, found.gradient);
                    module = with_parameters(module, at(t));
                    evaluations += count;
                }
                LineSearchFn::None => {
                    module = with_parameters(module, at(t));
                    // The loss after the last iteration is nobody's.
                    if iteration < self.config.max_iter {
                        let (new_loss, gradients) = closure(module.clone());
                        loss = new_loss;
                        gradient = flat_gradient(&module, gradients);
                        evaluations += 1;
                    } else {
                        flat = false;
                    }
                }
            }
            self.state.t = Some(t);
            let small = flat && largest(&gradient) <= self.config.tolerance_grad;
            if small
                || evaluations >= max_eval
                || largest(&direction) * t.abs() <= self.config.tolerance_change
                || (flat && (loss - before).abs() < self.config.tolerance_change)
            {
                break;
            }
        }
        (module, first_loss)
    }

    /// Takes over a loaded record, now that the device is known.
    #[track_caller]
    fn restore<M: Module>(&mut self, module: &M) {
        let Some(mut record) = self.recorded.take() else {
            return;
        };
        let device = flat_parameters(module).device();
        let state = record.take(ParamId::from(KEY)).and_then(|(_, mut source)| {
            let prefix = ParamId::from(KEY).decimal();
            LBFGSState::state_unflatten(&prefix, &mut source, &device)
        });
        match state {
            Some(state) => self.state = state,
            None => panic!("lbfgs: the record holds no state of it"),
        }
    }

    /// Minus the gradient, times the estimated inverse curvature (the two-loop recursion).
    fn direction(&mut self, gradient: &Tensor<1>) -> Tensor<1> {
        self.state.g_iter += 1;
        if let (Some(direction), Some(t), Some(previous)) = (self.state.d.take(), self.state.t, self.state.prev_flat_grad.take()) {
            let change = gradient.clone() - previous;
            let step = direction * t;
            // Only a step along which the loss curves upwards tells of the curvature.
            if dot(&change, &step) > 1e-10 {
                if self.state.history_s.len() >= self.config.history_size.max(1) {
                    self.state.history_s.remove(0);
                    self.state.history_y.remove(0);
                }
                self.state.history_s.push(step);
                self.state.history_y.push(change);
            }
        }
        let mut direction = gradient.clone().neg();
        let pairs: Vec<(&Tensor<1>, &Tensor<1>)> = self.state.history_s.iter().zip(&self.state.history_y).collect();
        let Some((last_s, last_y)) = pairs.last() else {
            return direction;
        };
        let scale = dot(last_y, last_s) / dot(last_y, last_y);
        let mut shares = vec![0.0; pairs.len()];
        for (share, (s, y)) in shares.iter_mut().zip(&pairs).rev() {
            *share = dot(s, &direction) / dot(y, s);
            direction = direction - (*y).clone() * *share;
        }
        direction = direction * scale;
        for (share, (s, y)) in shares.iter().zip(&pairs) {
            let along = dot(y, &direction) / dot(y, s);
            direction = direction + (*s).clone() * (share - along);
        }
        direction
    }
}

fn number(tensor: Tensor<1>) -> f64 {
    tensor.into_data().iter::<f64>().next().unwrap_or(0.0)
}

fn dot(a: &Tensor<1>, b: &Tensor<1>) -> f64 {
    number((a.clone() * b.clone()).sum())
}

fn largest(tensor: &Tensor<1>) -> f64 {
    number(tensor.clone().abs().max())
}

fn sum_of_sizes(tensor: &Tensor<1>) -> f64 {
    number(tensor.clone().abs().sum())
}

/// All trained parameters as one vector, in the order of declaration.
#[track_caller]
fn flat_parameters<M: Module>(module: &M) -> Tensor<1> {
    struct Flatten(Vec<Tensor<1>>);
    impl ModuleVisitor for Flatten {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.is_require_grad() {
                let count = param.shape().num_elements();
                let tensor = param.val().without_autodiff();
                self.0.push(tensor.reshape([count]));
            }
        }
    }
    let mut flatten = Flatten(Vec::new());
    module.visit(&mut flatten);
    assert!(!flatten.0.is_empty(), "lbfgs: the module has no trained parameter");
    Tensor::cat(flatten.0, 0)
}

/// The gradients of all trained parameters as one vector; zeros where there is none.
fn flat_gradient<M: Module>(module: &M, gradients: GradientsParams) -> Tensor<1> {
    struct Flatten {
        gradients: GradientsParams,
        parts: Vec<Tensor<1>>,
    }
    impl ModuleVisitor for Flatten {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.is_require_grad() {
                let count = param.shape().num_elements();
                let gradient = match self.gradients.remove::<D>(param.id) {
                    Some(gradient) => gradient.without_autodiff(),
                    None => param.val().without_autodiff().zeros_like(),
                };
                self.parts.push(gradient.reshape([count]));
            }
        }
    }
    let mut flatten = Flatten { gradients, parts: Vec::new() };
    module.visit(&mut flatten);
    Tensor::cat(flatten.parts, 0)
}

/// The module with its trained parameters taken from one vector.
fn with_parameters<M: Module>(module: M, values: Tensor<1>) -> M {
    struct Unflatten {
        values: Tensor<1>,
        used: usize,
    }
    impl ModuleMapper for Unflatten {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            if !param.is_require_grad() {
                return param;
            }
            let shape = param.dims();
            let count = param.shape().num_elements();
            let value = self.values.clone().narrow(0, self.used, count);
            self.used += count;
            param.map(|_| value.reshape(shape).autodiff())
        }
    }
    let mut unflatten = Unflatten { values, used: 0 };
    module.map(&mut unflatten)
}
