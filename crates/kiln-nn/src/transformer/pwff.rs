//! The feed-forward part of a transformer layer.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module};
use kiln_tensor::{Device, Tensor};

use crate::activation::{Activation, ActivationConfig};
use crate::initializer::default_initializer;
use crate::{Dropout, DropoutConfig, Linear, LinearConfig};

/// Configuration of [`PositionWiseFeedForward`].
#[derive(Config, Debug)]
pub struct PositionWiseFeedForwardConfig {
    /// The size of the vectors.
    pub d_model: usize,
    /// The size of the hidden vectors.
    pub d_ff: usize,
    /// The probability that a hidden unit is dropped while training. Default: 0.1.
    #[config(default = 0.1)]
    pub dropout: f64,
    /// How the linear layers start. Default: uniform in `±1 / √fan-in`.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
    /// The activation between the linear layers. Default: GELU.
    #[config(default = ActivationConfig::Gelu)]
    pub activation: ActivationConfig,
}

/// Linear, activation, dropout, linear: applied to each position alone.
///
/// ```
/// use kiln_nn::transformer::PositionWiseFeedForwardConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let pwff = PositionWiseFeedForwardConfig::new(4, 16).init(&device);
/// assert_eq!(pwff.forward(Tensor::<3>::ones([1, 3, 4], &device)).dims(), [1, 3, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PositionWiseFeedForward {
    /// The layer to the hidden size.
    pub linear_inner: Linear,
    /// The layer back.
    pub linear_outer: Linear,
    /// Drops hidden units while training.
    pub dropout: Dropout,
    /// The activation between the linear layers.
    pub activation: Activation,
}

impl PositionWiseFeedForwardConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> PositionWiseFeedForward {
        let linear = |from, to| LinearConfig::new(from, to).with_initializer(self.initializer.clone()).init(device);
        PositionWiseFeedForward {
            linear_inner: linear(self.d_model, self.d_ff),
            linear_outer: linear(self.d_ff, self.d_model),
            dropout: DropoutConfig::new(self.dropout).init(),
            activation: self.activation.init(device),
        }
    }
}

impl PositionWiseFeedForward {
    /// Maps `[.., d_model]` to the same shape.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let hidden = self.activation.forward(self.linear_inner.forward(input));
        self.linear_outer.forward(self.dropout.forward(hidden))
    }
}

inline_display!(PositionWiseFeedForward, layer, content => {
    let [d_model, d_ff] = layer.linear_inner.weight.lazy_shape().dims();
    content
        .add("d_model", &d_model)
        .add("d_ff", &d_ff)
        .add("prob", &layer.dropout.prob)
});
