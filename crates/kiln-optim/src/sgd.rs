//! Stochastic gradient descent.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::decay::{WeightDecay, WeightDecayConfig, decayed, optional};
use crate::grad_clipping::GradientClippingConfig;
use crate::momentum::{Momentum, MomentumConfig, MomentumState};
use crate::{LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`Sgd`].
#[derive(Config, Debug)]
pub struct SgdConfig {
    /// Weight decay as a part of the gradient. Default: none.
    weight_decay: Option<WeightDecayConfig>,
    /// Momentum. Default: none.
    momentum: Option<MomentumConfig>,
    /// How gradients are clipped. Default: not.
    gradient_clipping: Option<GradientClippingConfig>,
}

/// Steps against the gradient, with momentum if wanted.
#[derive(Clone)]
pub struct Sgd {
    momentum: Option<Momentum>,
    weight_decay: Option<WeightDecay>,
}

/// The state of [`Sgd`].
#[derive(RecordState, Clone)]
pub struct SgdState<const D: usize> {
    /// The velocity, with momentum.
    pub momentum: Option<MomentumState<D>>,
}

impl<const D: usize> SgdState<D> {
    /// A state.
    pub fn new(momentum: Option<MomentumState<D>>) -> Self {
        Self { momentum }
    }
}

impl SgdConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> Sgd {
        Sgd { momentum: self.momentum.as_ref().map(Momentum::new), weight_decay: optional(&self.weight_decay) }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.gradient_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for Sgd {
    type State<const D: usize> = SgdState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<SgdState<D>>,
    ) -> (Tensor<D>, Option<SgdState<D>>) {
        let grad = decayed(&self.weight_decay, grad, &tensor);
        let (step, state) = match &self.momentum {
            Some(momentum) => {
                let (step, velocity) = momentum.transform(grad, state.and_then(|state| state.momentum));
                (step, Some(SgdState::new(Some(velocity))))
            }
            None => (grad, None),
        };
        (tensor - step * lr, state)
    }

    fn to_device<const D: usize>(mut state: SgdState<D>, device: &Device) -> SgdState<D> {
        state.momentum = state.momentum.map(|momentum| momentum.to_device(device));
        state
    }
}
