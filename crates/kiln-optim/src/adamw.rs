//! Adam with decoupled weight decay.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::grad_clipping::GradientClippingConfig;
use crate::moments::AdaptiveMomentum;
use crate::number::exact;
use crate::{AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`AdamW`].
#[derive(Config, Debug)]
pub struct AdamWConfig {
    /// The share of the average gradient that is kept. Default: 0.9.
    #[config(default = 0.9)]
    beta_1: f32,
    /// The share of the average square that is kept. Default: 0.999.
    #[config(default = 0.999)]
    beta_2: f32,
    /// Added to the root of the average square. Default: 1e-5.
    #[config(default = 1e-5)]
    epsilon: f32,
    /// The share of the parameter, times the learning rate, that a step takes away. Default: 1e-4.
    #[config(default = 1e-4)]
    weight_decay: f32,
    /// Whether only elements decay that the step moves towards zero. Default: false.
    #[config(default = false)]
    cautious_weight_decay: bool,
    /// Whether the greatest average square so far is used. Default: false.
    #[config(default = false)]
    amsgrad: bool,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Adam whose weight decay is not a part of the gradient.
///
/// Loshchilov and Hutter 2017, [arXiv:1711.05101](https://arxiv.org/abs/1711.05101); cautious weight decay:
/// [arXiv:2510.12402](https://arxiv.org/abs/2510.12402).
#[derive(Clone)]
pub struct AdamW {
    momentum: AdaptiveMomentum,
    weight_decay: f64,
    cautious_weight_decay: bool,
}

/// The state of [`AdamW`].
#[derive(RecordState, Clone)]
pub struct AdamWState<const D: usize> {
    /// The running averages.
    pub momentum: AdaptiveMomentumState<D>,
}

impl<const D: usize> AdamWState<D> {
    /// A state.
    pub fn new(momentum: AdaptiveMomentumState<D>) -> Self {
        Self { momentum }
    }
}

impl AdamWConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> AdamW {
        AdamW {
            momentum: AdaptiveMomentum {
                beta_1: exact(self.beta_1),
                beta_2: exact(self.beta_2),
                epsilon: exact(self.epsilon),
                amsgrad: self.amsgrad,
            },
            weight_decay: exact(self.weight_decay),
            cautious_weight_decay: self.cautious_weight_decay,
        }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for AdamW {
    type State<const D: usize> = AdamWState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<AdamWState<D>>,
    ) -> (Tensor<D>, Option<AdamWState<D>>) {
        let (step, momentum) = self.momentum.transform(lr, grad, state.map(|state| state.momentum));
        let decay = lr * self.weight_decay;
        let decayed = if self.weight_decay == 0.0 {
            tensor
        } else if self.cautious_weight_decay {
            let away = (step.clone() * tensor.clone()).lower_elem(0.0);
            (tensor.clone() * (1.0 - decay)).mask_where(away, tensor)
        } else {
            tensor * (1.0 - decay)
        };
        (decayed - step, Some(AdamWState::new(momentum)))
    }

    fn to_device<const D: usize>(mut state: AdamWState<D>, device: &Device) -> AdamWState<D> {
        state.momentum = state.momentum.to_device(device);
        state
    }
}
