//! Group normalisation.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::{Device, Tensor};

/// Configuration of [`GroupNorm`].
#[derive(Config, Debug)]
pub struct GroupNormConfig {
    /// The number of groups.
    pub num_groups: usize,
    /// The number of channels, a multiple of the groups.
    pub num_channels: usize,
    /// Added to the variance. Default: 1e-5.
    #[config(default = 1e-5)]
    pub epsilon: f64,
    /// Whether each channel has a scale and an offset. Default: true.
    #[config(default = true)]
    pub affine: bool,
}

/// Normalises each group of channels of each sample: `(x - mean) / √(var + ε) · γ + β`.
///
/// Wu and He 2018, [arXiv:1803.08494](https://arxiv.org/abs/1803.08494).
///
/// ```
/// use kiln_nn::GroupNormConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let norm = GroupNormConfig::new(2, 6).init(&device);
/// assert_eq!(norm.forward(Tensor::<3>::ones([2, 6, 5], &device)).dims(), [2, 6, 5]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct GroupNorm {
    /// The scale γ, `[num_channels]`.
    pub gamma: Option<Param<Tensor<1>>>,
    /// The offset β, `[num_channels]`.
    pub beta: Option<Param<Tensor<1>>>,
    /// The number of groups.
    pub num_groups: usize,
    /// The number of channels.
    pub num_channels: usize,
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether each channel has a scale and an offset.
    pub affine: bool,
}

impl GroupNormConfig {
    /// A layer with parameters on `device`.
    ///
    /// # Panics
    ///
    /// When the channels are no multiple of the groups.
    #[track_caller]
    pub fn init(&self, device: &Device) -> GroupNorm {
        assert!(
            self.num_groups > 0 && self.num_channels.is_multiple_of(self.num_groups),
            "group norm: {} channels are no multiple of {} groups",
            self.num_channels,
            self.num_groups
        );
        let shape = [self.num_channels];
        GroupNorm {
            gamma: self.affine.then(|| Initializer::Ones.init(shape, device)),
            beta: self.affine.then(|| Initializer::Zeros.init(shape, device)),
            num_groups: self.num_groups,
            num_channels: self.num_channels,
            epsilon: self.epsilon,
            affine: self.affine,
        }
    }
}

impl GroupNorm {
    /// Normalises `[batch, channels, ..]`.
    ///
    /// # Panics
    ///
    /// When the rank is below two or the channels are not `num_channels`.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let gamma = self.gamma.as_ref().map(Param::val);
        let beta = self.beta.as_ref().map(Param::val);
        group_norm(input, gamma, beta, self.num_groups, self.num_channels, self.epsilon)
    }
}

#[track_caller]
pub(super) fn group_norm<const D: usize>(
    input: Tensor<D>,
    gamma: Option<Tensor<1>>,
    beta: Option<Tensor<1>>,
    groups: usize,
    channels: usize,
    epsilon: f64,
) -> Tensor<D> {
    assert!(D >= 2, "group norm: needs rank 2 or more, got {D}");
    let shape = input.dims();
    assert!(shape[1] == channels, "group norm: the input has {} channels (shape {shape:?}), the layer {channels}", shape[1]);
    let rows = shape[0] * groups;
    let size = input.shape().num_elements() / rows.max(1);
    let grouped = input.reshape([rows, size]);
    let (variance, mean) = grouped.clone().var_mean_bias(1);
    let normal = (grouped - mean) / (variance + epsilon).sqrt();
    let normal = normal.reshape(shape);
    let mut per_channel = [1; D];
    per_channel[1] = channels;
    let normal = match gamma {
        Some(gamma) => normal * gamma.reshape(per_channel),
        None => normal,
    };
    match beta {
        Some(beta) => normal + beta.reshape(per_channel),
        None => normal,
    }
}

inline_display!(GroupNorm, layer, content => content
    .add("num_groups", &layer.num_groups)
    .add("num_channels", &layer.num_channels)
    .add("epsilon", &layer.epsilon)
    .add("affine", &layer.affine));
