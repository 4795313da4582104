//! The rectified linear unit with a learnt slope below zero.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::{Device, Tensor, activation};

/// Configuration of [`PRelu`].
#[derive(Config, Debug)]
pub struct PReluConfig {
    /// The number of slopes: one, or one a channel. Default: 1.
    #[config(default = 1)]
    pub num_parameters: usize,
    /// The slope to start with. Default: 0.25.
    #[config(default = 0.25)]
    pub alpha: f64,
}

/// `x` for positive `x`, else `α · x`, with a learnt α for all elements or for each channel.
///
/// He et al. 2015, [arXiv:1502.01852](https://arxiv.org/abs/1502.01852).
///
/// ```
/// use kiln_nn::activation::PReluConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let prelu = PReluConfig::new().init(&device);
/// let output: f32 = prelu.forward(Tensor::<1>::from_floats([-1.0], &device)).into_scalar();
/// assert_eq!(output, -0.25);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct PRelu {
    /// The slopes, `[num_parameters]`.
    pub alpha: Param<Tensor<1>>,
    /// The slope they started with.
    pub alpha_value: f64,
}

impl PReluConfig {
    /// The activation, with its slopes on `device`.
    pub fn init(&self, device: &Device) -> PRelu {
        let start = Initializer::Constant { value: self.alpha };
        PRelu { alpha: start.init([self.num_parameters], device), alpha_value: self.alpha }
    }
}

impl PRelu {
    /// Applies the function; with more than one slope, `input` is `[batch, num_parameters, ..]`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        activation::prelu(input, self.alpha.val())
    }
}

inline_display!(PRelu, layer, content => content
    .add("num_parameters", &layer.alpha.lazy_shape()[0])
    .add("alpha_value", &layer.alpha_value));
