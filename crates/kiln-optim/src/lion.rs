//! Lion.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::grad_clipping::GradientClippingConfig;
use crate::number::exact;
use crate::{LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`Lion`].
#[derive(Config, Debug)]
pub struct LionConfig {
    /// The share of the average gradient in the step. Default: 0.9.
    #[config(default = 0.9)]
    beta_1: f32,
    /// The share of the average gradient that is kept. Default: 0.99.
    #[config(default = 0.99)]
    beta_2: f32,
    /// The share of the parameter, times the learning rate, that a step takes away. Default: 0.
    #[config(default = 0.0)]
    weight_decay: f32,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Steps by the sign of an average gradient.
///
/// Chen et al. 2023, [arXiv:2302.06675](https://arxiv.org/abs/2302.06675).
#[derive(Clone)]
pub struct Lion {
    beta_1: f64,
    beta_2: f64,
    weight_decay: f64,
}

/// The state of [`Lion`].
#[derive(RecordState, Clone)]
pub struct LionState<const D: usize> {
    /// The average gradient.
    pub momentum: Tensor<D>,
}

impl<const D: usize> LionState<D> {
    /// A state.
    pub fn new(momentum: Tensor<D>) -> Self {
        Self { momentum }
    }
}

impl LionConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> Lion {
        Lion { beta_1: exact(self.beta_1), beta_2: exact(self.beta_2), weight_decay: exact(self.weight_decay) }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for Lion {
    type State<const D: usize> = LionState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<LionState<D>>,
    ) -> (Tensor<D>, Option<LionState<D>>) {
        let (step, momentum) = match state {
            Some(state) => {
                (state.momentum.clone() * self.beta_1 + grad.clone() * (1.0 - self.beta_1), state.momentum * self.beta_2 + grad * (1.0 - self.beta_2))
            }
            None => (grad.clone(), grad * (1.0 - self.beta_2)),
        };
        let decayed = if self.weight_decay == 0.0 { tensor } else { tensor * (1.0 - lr * self.weight_decay) };
        (decayed - step.sign() * lr, Some(LionState::new(momentum)))
    }

    fn to_device<const D: usize>(mut state: LionState<D>, device: &Device) -> LionState<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}
