//! Momentum of gradients.

use kiln_module::config::Config;
use kiln_tensor::{Device, Tensor};

use crate::RecordState;

/// Configuration of [`Momentum`].
#[derive(Config, Debug)]
pub struct MomentumConfig {
    /// The share of the velocity that is kept. Default: 0.9.
    #[config(default = 0.9)]
    pub momentum: f64,
    /// The share of the gradient that is left out of the velocity. Default: 0.1.
    #[config(default = 0.1)]
    pub dampening: f64,
    /// Whether the step looks ahead (Nesterov). Default: false.
    #[config(default = false)]
    pub nesterov: bool,
}

/// The velocity of a tensor.
#[derive(RecordState, Clone)]
pub struct MomentumState<const D: usize> {
    velocity: Tensor<D>,
}

impl<const D: usize> MomentumState<D> {
    /// A state.
    pub fn new(velocity: Tensor<D>) -> Self {
        Self { velocity }
    }

    /// The state on another device.
    #[must_use]
    pub fn to_device(mut self, device: &Device) -> Self {
        self.velocity = self.velocity.to_device(device);
        self
    }
}

/// `v' = momentum · v + (1 - dampening) · g`, starting at the first gradient; the step is `v'`, or `g + momentum · v'`
/// with Nesterov's look-ahead.
#[derive(Clone, Debug)]
pub struct Momentum {
    momentum: f64,
    dampening: f64,
    nesterov: bool,
}

impl Momentum {
    /// Momentum as configured.
    pub fn new(config: &MomentumConfig) -> Self {
        Self { momentum: config.momentum, dampening: config.dampening, nesterov: config.nesterov }
    }

    /// The step for a gradient, and the new state.
    pub fn transform<const D: usize>(&self, grad: Tensor<D>, state: Option<MomentumState<D>>) -> (Tensor<D>, MomentumState<D>) {
        let velocity = match state {
            Some(state) => grad.clone() * (1.0 - self.dampening) + state.velocity * self.momentum,
            None => grad.clone(),
        };
        let step = if self.nesterov { velocity.clone() * self.momentum + grad } else { velocity.clone() };
        (step, MomentumState::new(velocity))
    }
}
