//! A normalisation chosen at run time.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Device, Tensor};

use super::{
    BatchNorm, BatchNormConfig, GroupNorm, GroupNormConfig, InstanceNorm, InstanceNormConfig, LayerNorm, LayerNormConfig, RmsNorm, RmsNormConfig,
};
use crate::Identity;

/// Configuration of a [`Normalization`].
///
/// ```
/// use kiln_nn::norm::NormalizationConfig;
/// use kiln_nn::BatchNormConfig;
/// use kiln_tensor::Device;
///
/// let config: NormalizationConfig = BatchNormConfig::new(0).into();
/// let norm = config.with_num_features(12).init(&Device::default());
/// assert_eq!(norm.num_features(), 12);
/// ```
#[derive(Config, Debug)]
pub enum NormalizationConfig {
    /// No normalisation.
    Identity,
    /// Over the batch.
    Batch(BatchNormConfig),
    /// Over groups of channels.
    Group(GroupNormConfig),
    /// Over each channel.
    Instance(InstanceNormConfig),
    /// Over the last axis.
    Layer(LayerNormConfig),
    /// By root mean square.
    Rms(RmsNormConfig),
}

/// A normalisation chosen at run time.
#[derive(Module, Debug)]
pub enum Normalization {
    /// No normalisation.
    Identity(Identity),
    /// Over the batch.
    Batch(BatchNorm),
    /// Over groups of channels.
    Group(GroupNorm),
    /// Over each channel.
    Instance(InstanceNorm),
    /// Over the last axis.
    Layer(LayerNorm),
    /// By root mean square.
    Rms(RmsNorm),
}

impl NormalizationConfig {
    /// The layer, with parameters on `device`.
    pub fn init(&self, device: &Device) -> Normalization {
        match self {
            Self::Identity => Normalization::Identity(Identity::new()),
            Self::Batch(config) => Normalization::Batch(config.init(device)),
            Self::Group(config) => Normalization::Group(config.init(device)),
            Self::Instance(config) => Normalization::Instance(config.init(device)),
            Self::Layer(config) => Normalization::Layer(config.init(device)),
            Self::Rms(config) => Normalization::Rms(config.init(device)),
        }
    }

    /// The same normalisation for another number of features.
    #[must_use]
    pub fn with_num_features(mut self, num_features: usize) -> Self {
        match &mut self {
            Self::Identity => {}
            Self::Batch(config) => config.num_features = num_features,
            Self::Group(config) => config.num_channels = num_features,
            Self::Instance(config) => config.num_channels = num_features,
            Self::Layer(config) => config.d_model = num_features,
            Self::Rms(config) => config.d_model = num_features,
        }
        self
    }

    /// The number of features; zero for the identity.
    pub fn num_features(&self) -> usize {
        match self {
            Self::Identity => 0,
            Self::Batch(config) => config.num_features,
            Self::Group(config) => config.num_channels,
            Self::Instance(config) => config.num_channels,
            Self::Layer(config) => config.d_model,
            Self::Rms(config) => config.d_model,
        }
    }
}

impl Normalization {
    /// Normalises `input` as the chosen layer does.
    #[track_caller]
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Identity(layer) => layer.forward(input),
            Self::Batch(layer) => layer.forward(input),
            Self::Group(layer) => layer.forward(input),
            Self::Instance(layer) => layer.forward(input),
            Self::Layer(layer) => layer.forward(input),
            Self::Rms(layer) => layer.forward(input),
        }
    }

    /// The number of features; zero for the identity.
    pub fn num_features(&self) -> usize {
        match self {
            Self::Identity(_) => 0,
            Self::Batch(layer) => layer.gamma.lazy_shape()[0],
            Self::Group(layer) => layer.num_channels,
            Self::Instance(layer) => layer.num_channels,
            Self::Layer(layer) => layer.gamma.lazy_shape()[0],
            Self::Rms(layer) => layer.gamma.lazy_shape()[0],
        }
    }
}

macro_rules! variant_from {
    ($($variant:ident: $layer:ty, $config:ty;)*) => {$(
        impl From<$layer> for Normalization {
            fn from(layer: $layer) -> Self {
                Self::$variant(layer)
            }
        }

        impl From<$config> for NormalizationConfig {
            fn from(config: $config) -> Self {
                Self::$variant(config)
            }
        }
    )*};
}

variant_from! {
    Batch: BatchNorm, BatchNormConfig;
    Group: GroupNorm, GroupNormConfig;
    Instance: InstanceNorm, InstanceNormConfig;
    Layer: LayerNorm, LayerNormConfig;
    Rms: RmsNorm, RmsNormConfig;
}

impl From<Identity> for Normalization {
    fn from(layer: Identity) -> Self {
        Self::Identity(layer)
    }
}
