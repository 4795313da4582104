//! Adan.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::grad_clipping::GradientClippingConfig;
use crate::number::{exact, power};
use crate::values::Values;
use crate::{LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`Adan`].
#[derive(Config, Debug)]
pub struct AdanConfig {
    /// The share of the average gradient that is kept. Default: 0.98.
    #[config(default = 0.98)]
    beta_1: f32,
    /// The share of the average change of gradients that is kept. Default: 0.92.
    #[config(default = 0.92)]
    beta_2: f32,
    /// The share of the average square that is kept. Default: 0.99.
    #[config(default = 0.99)]
    beta_3: f32,
    /// Added to the root of the average square. Default: 1e-8.
    #[config(default = 1e-8)]
    epsilon: f32,
    /// The strength of weight decay. Default: 0.
    #[config(default = 0.0)]
    weight_decay: f32,
    /// Whether weight decay is a factor before the step, and not a division after it. Default: false.
    #[config(default = false)]
    no_prox: bool,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Adaptive Nesterov momentum, from running averages of gradients and their changes.
///
/// Xie et al. 2022, [arXiv:2208.06677](https://arxiv.org/abs/2208.06677).
#[derive(Clone)]
pub struct Adan {
    beta_1: f64,
    beta_2: f64,
    beta_3: f64,
    epsilon: f64,
    weight_decay: f64,
    no_prox: bool,
}

/// The state of [`Adan`].
#[derive(RecordState, Clone)]
pub struct AdanState<const D: usize> {
    /// The running averages.
    pub momentum: AdaptiveNesterovMomentumState<D>,
}

impl<const D: usize> AdanState<D> {
    /// A state.
    pub fn new(momentum: AdaptiveNesterovMomentumState<D>) -> Self {
        Self { momentum }
    }
}

/// Running averages of gradients, their squares and their changes.
#[derive(RecordState, Clone)]
pub struct AdaptiveNesterovMomentumState<const D: usize> {
    /// The number of steps.
    pub time: usize,
    /// The average gradient.
    pub exp_avg: Tensor<D>,
    /// The average square of the gradient that looks ahead.
    pub exp_avg_sq: Tensor<D>,
    /// The average change of the gradient.
    pub exp_avg_diff: Tensor<D>,
    /// The last gradient, negated.
    pub neg_pre_grad: Tensor<D>,
}

impl<const D: usize> AdaptiveNesterovMomentumState<D> {
    /// A state.
    pub fn new(time: usize, exp_avg: Tensor<D>, exp_avg_sq: Tensor<D>, exp_avg_diff: Tensor<D>, neg_pre_grad: Tensor<D>) -> Self {
        Self { time, exp_avg, exp_avg_sq, exp_avg_diff, neg_pre_grad }
    }
}

impl AdanConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> Adan {
        Adan {
            beta_1: exact(self.beta_1),
            beta_2: exact(self.beta_2),
            beta_3: exact(self.beta_3),
            epsilon: exact(self.epsilon),
            weight_decay: exact(self.weight_decay),
            no_prox: self.no_prox,
        }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for Adan {
    type State<const D: usize> = AdanState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<AdanState<D>>,
    ) -> (Tensor<D>, Option<AdanState<D>>) {
        let averages = state.map(|AdanState { momentum }| Averages {
            time: momentum.time,
            grad: momentum.exp_avg.into(),
            square: momentum.exp_avg_sq.into(),
            change: momentum.exp_avg_diff.into(),
            negated: momentum.neg_pre_grad.into(),
        });
        // There is no change before the second step.
        let averages = averages.ok_or_else(|| grad.zeros_like().into());
        let (tensor, averages) = self.step_values(lr, tensor.into(), grad.into(), averages);
        let state = AdaptiveNesterovMomentumState::new(
            averages.time,
            averages.grad.typed(),
            averages.square.typed(),
            averages.change.typed(),
            averages.negated.typed(),
        );
        (tensor.typed(), Some(AdanState::new(state)))
    }

    fn to_device<const D: usize>(state: AdanState<D>, device: &Device) -> AdanState<D> {
        let state = state.momentum;
        AdanState::new(AdaptiveNesterovMomentumState::new(
            state.time,
            state.exp_avg.to_device(device),
            state.exp_avg_sq.to_device(device),
            state.exp_avg_diff.to_device(device),
            state.neg_pre_grad.to_device(device),
        ))
    }
}

/// [`AdaptiveNesterovMomentumState`] for a tensor of any rank.
struct Averages {
    time: usize,
    grad: Values,
    square: Values,
    change: Values,
    negated: Values,
}

impl Adan {
    /// A step from the state, or from a change of zeros if it is the first.
    fn step_values(&self, lr: LearningRate, tensor: Values, grad: Values, state: Result<Averages, Values>) -> (Values, Averages) {
        let (first, second, third) = (1.0 - self.beta_1, 1.0 - self.beta_2, 1.0 - self.beta_3);
        let negated = grad.neg();
        let state = match state {
            Ok(state) => {
                let change = grad.clone() + state.negated;
                let ahead = grad.clone() + change.clone() * self.beta_2;
                Averages {
                    time: state.time + 1,
                    grad: state.grad * self.beta_1 + grad * first,
                    square: state.square * self.beta_3 + ahead.square() * third,
                    change: state.change * self.beta_2 + change * second,
                    negated,
                }
            }
            Err(change) => Averages { time: 1, grad: grad.clone() * first, square: grad.square() * third, change, negated },
        };
        let correction_1 = 1.0 - power(self.beta_1, state.time);
        let correction_2 = 1.0 - power(self.beta_2, state.time);
        let correction_3 = libm::sqrt(1.0 - power(self.beta_3, state.time));
        let scale = state.square.sqrt() * (1.0 / correction_3) + self.epsilon;
        let direction = state.grad.clone() * (lr / correction_1) + state.change.clone() * (lr * self.beta_2 / correction_2);
        let step = direction / scale;
        let decay = lr * self.weight_decay;
        let tensor = if self.no_prox { tensor * (1.0 - decay) - step } else { (tensor - step) * (1.0 / (1.0 + decay)) };
        (tensor, state)
    }
}
