//! AdaGrad.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::decay::{WeightDecay, WeightDecayConfig, decayed, optional};
use crate::grad_clipping::GradientClippingConfig;
use crate::number::exact;
use crate::{LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`AdaGrad`].
#[derive(Config, Debug)]
pub struct AdaGradConfig {
    /// How fast the learning rate falls with the steps. Default: 0.
    #[config(default = 0.)]
    lr_decay: f64,
    /// Added to the root of the sum of squares. Default: 1e-5.
    #[config(default = 1e-5)]
    epsilon: f32,
    /// Weight decay as a part of the gradient. Default: none.
    weight_decay: Option<WeightDecayConfig>,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Steps by the gradient over the root of the sum of all its squares so far.
///
/// Duchi et al. 2011, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization".
#[derive(Clone)]
pub struct AdaGrad {
    lr_decay: f64,
    epsilon: f64,
    weight_decay: Option<WeightDecay>,
}

/// The state of [`AdaGrad`].
#[derive(RecordState, Clone)]
pub struct AdaGradState<const D: usize> {
    lr_decay: LrDecayState<D>,
}

impl<const D: usize> AdaGradState<D> {
    /// A state.
    pub fn new(lr_decay: LrDecayState<D>) -> Self {
        Self { lr_decay }
    }
}

/// The number of steps and the sum of squared gradients.
#[derive(RecordState, Clone)]
pub struct LrDecayState<const D: usize> {
    time: usize,
    sum: Tensor<D>,
}

impl<const D: usize> LrDecayState<D> {
    /// A state.
    pub fn new(time: usize, sum: Tensor<D>) -> Self {
        Self { time, sum }
    }

    /// The state on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.sum = self.sum.to_device(device);
        self
    }
}

impl AdaGradConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> AdaGrad {
        AdaGrad { lr_decay: self.lr_decay, epsilon: exact(self.epsilon), weight_decay: optional(&self.weight_decay) }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for AdaGrad {
    type State<const D: usize> = AdaGradState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<AdaGradState<D>>,
    ) -> (Tensor<D>, Option<AdaGradState<D>>) {
        let grad = decayed(&self.weight_decay, grad, &tensor);
        let squares = grad.clone().square();
        let (time, sum) = match state {
            Some(state) => (state.lr_decay.time + 1, state.lr_decay.sum + squares),
            None => (1, squares),
        };
        let rate = lr / (1.0 + (time - 1) as f64 * self.lr_decay);
        let step = grad / (sum.clone().sqrt() + self.epsilon);
        let state = AdaGradState::new(LrDecayState::new(time, sum));
        (tensor - step * rate, Some(state))
    }

    fn to_device<const D: usize>(mut state: AdaGradState<D>, device: &Device) -> AdaGradState<D> {
        state.lr_decay = state.lr_decay.to_device(device);
        state
    }
}
