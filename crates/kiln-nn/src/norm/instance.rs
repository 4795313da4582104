//! Instance normalisation.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::{Device, Tensor};

use super::group::group_norm;

/// Configuration of [`InstanceNorm`].
#[derive(Config, Debug)]
pub struct InstanceNormConfig {
    /// The number of channels.
    pub num_channels: usize,
    /// Added to the variance. Default: 1e-5.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// Whether each channel has a scale and an offset. Default: true.
    #[config(default = true)]
    pub affine: bool,
}

/// Normalises each channel of each sample: `(x - mean) / √(var + ε) · γ + β`.
///
/// Ulyanov et al. 2016, [arXiv:1607.08022](https://arxiv.org/abs/1607.08022).
///
/// ```
/// use kiln_nn::InstanceNormConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let norm = InstanceNormConfig::new(6).init(&device);
/// assert_eq!(norm.forward(Tensor::<3>::ones([2, 6, 5], &device)).dims(), [2, 6, 5]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct InstanceNorm {
    /// The scale γ, `[num_channels]`.
    pub gamma: Option<Param<Tensor<1>>>,
    /// The offset β, `[num_channels]`.
    pub beta: Option<Param<Tensor<1>>>,
    /// The number of channels.
    pub num_channels: usize,
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether each channel has a scale and an offset.
    pub affine: bool,
}

impl InstanceNormConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> InstanceNorm {
        let shape = [self.num_channels];
        InstanceNorm {
            gamma: self.affine.then(|| Initializer::Ones.init(shape, device)),
            beta: self.affine.then(|| Initializer::Zeros.init(shape, device)),
            num_channels: self.num_channels,
            epsilon: self.epsilon,
            affine: self.affine,
        }
    }
}

impl InstanceNorm {
    /// Normalises `[batch, channels, ..]`.
    ///
    /// # Panics
    ///
    /// When the rank is below two or the channels are not `num_channels`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let gamma = self.gamma.as_ref().map(Param::val);
        let beta = self.beta.as_ref().map(Param::val);
        let channels = self.num_channels;
        group_norm(input, gamma, beta, channels, channels, self.epsilon)
    }
}

inline_display!(InstanceNorm, layer, content => content
    .add("num_channels", &layer.num_channels)
    .add("epsilon", &layer.epsilon)
    .add("affine", &layer.affine));
