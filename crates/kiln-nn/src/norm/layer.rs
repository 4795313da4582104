//! Layer normalisation.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::{Device, Tensor, module};

/// Configuration of [`LayerNorm`].
#[derive(Config, Debug)]
pub struct LayerNormConfig {
    /// The size of the vectors.
    pub d_model: usize,
    /// Added to the variance. Default: 1e-5.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// Whether an offset is added. Default: true.
    #[config(default = true)]
    pub bias: bool,
}

/// Normalises each vector along the last axis: `(x - mean) / √(var + ε) · γ + β`.
///
/// Ba et al. 2016, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450).
///
/// ```
/// use kiln_nn::LayerNormConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let norm = LayerNormConfig::new(4).init(&device);
/// let output = norm.forward(Tensor::<2>::from_floats([[1.0, 1.0, 3.0, 3.0]], &device));
/// assert!((output.max().into_scalar::<f32>() - 1.0).abs() < 1e-4);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct LayerNorm {
    /// The scale γ, `[d_model]`.
    pub gamma: Param<Tensor<1>>,
    /// The offset β, `[d_model]`.
    pub beta: Option<Param<Tensor<1>>>,
    epsilon: f64,
}

impl LayerNormConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> LayerNorm {
        LayerNorm {
            gamma: Initializer::Ones.init([self.d_model], device),
            beta: self.bias.then(|| Initializer::Zeros.init([self.d_model], device)),
            epsilon: self.epsilon,
        }
    }
}

impl LayerNorm {
    /// Normalises `[.., d_model]`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let beta = self.beta.as_ref().map(Param::val);
        module::layer_norm(input, self.gamma.val(), beta, self.epsilon)
    }
}

inline_display!(LayerNorm, layer, content => content
    .add("d_model", &layer.gamma.lazy_shape()[0])
    .add("epsilon", &layer.epsilon)
    .add("bias", &layer.beta.is_some()));
