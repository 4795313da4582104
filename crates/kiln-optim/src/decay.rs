//! Weight decay as a part of the gradient.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::RecordState;
use crate::number::exact;

/// Configuration of [`WeightDecay`].
#[derive(Config, Debug)]
pub struct WeightDecayConfig {
    /// The factor of the parameter that is added to its gradient.
    pub penalty: f32,
}

/// A gradient kept by earlier versions of weight decay; read from their records.
#[derive(RecordState, Clone)]
pub struct WeightDecayState<const D: usize> {
    grad_last_step: Tensor<D>,
}

impl<const D: usize> WeightDecayState<D> {
    /// A state.
    pub fn new(grad_last_step: Tensor<D>) -> Self {
        Self { grad_last_step }
    }

    /// The state on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.grad_last_step = self.grad_last_step.to_device(device);
        self
    }
}

/// Adds `penalty · parameter` to the gradient: the gradient of `penalty / 2 · ‖parameter‖²`.
#[derive(Clone, Debug)]
pub struct WeightDecay {
    penalty: f64,
}

impl WeightDecay {
    /// Weight decay as configured.
    pub fn new(config: &WeightDecayConfig) -> Self {
        Self { penalty: exact(config.penalty) }
    }

    /// The gradient with the penalty's.
    pub fn transform<const D: usize>(&self, grad: Tensor<D>, tensor: Tensor<D>) -> Tensor<D> {
        tensor * self.penalty + grad
    }
}

/// Weight decay if it is configured.
pub(crate) fn optional(config: &Option<WeightDecayConfig>) -> Option<WeightDecay> {
    config.as_ref().map(WeightDecay::new)
}

/// The gradient, with weight decay if there is any.
pub(crate) fn decayed<const D: usize>(decay: &Option<WeightDecay>, grad: Tensor<D>, tensor: &Tensor<D>) -> Tensor<D> {
    match decay {
        Some(decay) => decay.transform(grad, tensor.clone()),
        None => grad,
    }
}
