//! Adam.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::decay::{WeightDecay, WeightDecayConfig, decayed, optional};
use crate::grad_clipping::GradientClippingConfig;
use crate::moments::AdaptiveMomentum;
use crate::number::exact;
use crate::{AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`Adam`].
#[derive(Config, Debug)]
pub struct AdamConfig {
    /// The share of the average gradient that is kept. Default: 0.9.
    #[config(default = 0.9)]
    beta_1: f32,
    /// The share of the average square that is kept. Default: 0.999.
    #[config(default = 0.999)]
    beta_2: f32,
    /// Added to the root of the average square. Default: 1e-5.
    #[config(default = 1e-5)]
    epsilon: f32,
    /// Whether the greatest average square so far is used. Default: false.
    #[config(default = false)]
    amsgrad: bool,
    /// Weight decay as a part of the gradient. Default: none.
    weight_decay: Option<WeightDecayConfig>,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Steps by the running average of gradients over the root of that of their squares.
///
/// Kingma and Ba 2014, [arXiv:1412.6980](https://arxiv.org/abs/1412.6980); AMSGrad: Reddi et al. 2019,
/// [arXiv:1904.09237](https://arxiv.org/abs/1904.09237).
#[derive(Clone)]
pub struct Adam {
    momentum: AdaptiveMomentum,
    weight_decay: Option<WeightDecay>,
}

/// The state of [`Adam`].
#[derive(RecordState, Clone)]
pub struct AdamState<const D: usize> {
    /// The running averages.
    pub momentum: AdaptiveMomentumState<D>,
}

impl<const D: usize> AdamState<D> {
    /// A state.
    pub fn new(momentum: AdaptiveMomentumState<D>) -> Self {
        Self { momentum }
    }
}

impl AdamConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> Adam {
        Adam {
            momentum: AdaptiveMomentum {
                beta_1: exact(self.beta_1),
                beta_2: exact(self.beta_2),
                epsilon: exact(self.epsilon),
                amsgrad: self.amsgrad,
            },
            weight_decay: optional(&self.weight_decay),
        }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for Adam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<AdamState<D>>,
    ) -> (Tensor<D>, Option<AdamState<D>>) {
        let grad = decayed(&self.weight_decay, grad, &tensor);
        let (step, momentum) = self.momentum.transform(lr, grad, state.map(|state| state.momentum));
        (tensor - step, Some(AdamState::new(momentum)))
    }

    fn to_device<const D: usize>(mut state: AdamState<D>, device: &Device) -> AdamState<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}
