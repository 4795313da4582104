//! LAMB.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::grad_clipping::GradientClippingConfig;
use crate::moments::AdaptiveMomentum;
use crate::number::exact;
use crate::{AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer, RecordState};

/// Configuration of [`Lamb`].
#[derive(Config, Debug)]
pub struct LambConfig {
    /// The share of the average gradient that is kept. Default: 0.9.
    #[config(default = 0.9)]
    beta_1: f32,
    /// The share of the average square that is kept. Default: 0.999.
    #[config(default = 0.999)]
    beta_2: f32,
    /// Added to the root of the average square. Default: 1e-6.
    #[config(default = 1e-6)]
    epsilon: f32,
    /// The share of the parameter that is added to the direction. Default: 0.
    #[config(default = 0.0)]
    weight_decay: f32,
    /// Whether the step is scaled by the norms of parameter and direction. Default: true.
    #[config(default = true)]
    use_trust_ratio: bool,
    /// How gradients are clipped. Default: not.
    grad_clipping: Option<GradientClippingConfig>,
}

/// Adam whose steps have, for each parameter, the norm of the parameter: for large batches.
///
/// You et al. 2019, [arXiv:1904.00962](https://arxiv.org/abs/1904.00962).
///
/// The updates of small parameters are one launch for any number of them. A large parameter takes two: its direction is in memory while the
/// norm is taken over all cores, and for all parameters to share those launches, all directions, as large as the model, would have to be in memory at once.
#[derive(Clone)]
pub struct Lamb {
    momentum: AdaptiveMomentum,
    weight_decay: f64,
    use_trust_ratio: bool,
}

/// The state of [`Lamb`].
#[derive(RecordState, Clone)]
pub struct LambState<const D: usize> {
    /// The number of steps.
    pub time: usize,
    /// The average gradient.
    pub moment_1: Tensor<D>,
    /// The average square.
    pub moment_2: Tensor<D>,
}

impl LambConfig {
    /// The algorithm for one tensor.
    pub fn build(&self) -> Lamb {
        Lamb {
            momentum: AdaptiveMomentum { beta_1: exact(self.beta_1), beta_2: exact(self.beta_2), epsilon: exact(self.epsilon), amsgrad: false },
            weight_decay: exact(self.weight_decay),
            use_trust_ratio: self.use_trust_ratio,
        }
    }

    /// The optimizer of a module.
    pub fn init(&self) -> ModuleOptimizer {
        let clipping = self.grad_clipping.as_ref().map(GradientClippingConfig::init);
        ModuleOptimizer::from(self.build()).with_optional_clipping(clipping)
    }
}

impl Optimizer for Lamb {
    type State<const D: usize> = LambState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<LambState<D>>,
    ) -> (Tensor<D>, Option<LambState<D>>) {
        let state = state.map(|state| AdaptiveMomentumState::new(state.time, state.moment_1, state.moment_2));
        let (direction, state) = self.momentum.transform(1.0, grad, state);
        let direction = if self.weight_decay == 0.0 { direction } else { direction + tensor.clone() * self.weight_decay };
        let step = if self.use_trust_ratio {
            let size = norm(&tensor);
            let length = norm(&direction);
            // A zero norm on either side leaves the step as it is.
            let zero = (size.clone() * length.clone()).equal_elem(0.0f32);
            let length = length.mask_fill(zero.clone(), 1.0);
            let ratio = (size / length).mask_fill(zero, 1.0);
            direction * ratio.unsqueeze()
        } else {
            direction
        };
        let state = LambState { time: state.time, moment_1: state.moment_1, moment_2: state.moment_2 };
        (tensor - step * lr, Some(state))
    }

    fn to_device<const D: usize>(mut state: LambState<D>, device: &Device) -> LambState<D> {
        state.moment_1 = state.moment_1.to_device(device);
        state.moment_2 = state.moment_2.to_device(device);
        state
    }
}

fn norm<const D: usize>(tensor: &Tensor<D>) -> Tensor<1> {
    tensor.clone().square().sum().sqrt()
}
