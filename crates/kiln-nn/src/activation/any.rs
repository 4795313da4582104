//! An activation function chosen at run time.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Device, Tensor};

use super::{
    Celu, CeluConfig, Elu, EluConfig, Gelu, HardShrink, HardShrinkConfig, HardSigmoid, HardSigmoidConfig, HardSwish, LeakyRelu, LeakyReluConfig,
    PRelu, PReluConfig, Relu, Selu, Shrink, ShrinkConfig, Sigmoid, SoftShrink, SoftShrinkConfig, Softplus, SoftplusConfig, Softsign, SwiGlu,
    SwiGluConfig, Tanh, ThresholdedRelu, ThresholdedReluConfig,
};
use crate::Identity;

/// Configuration of an [`Activation`].
///
/// ```
/// use kiln_nn::activation::ActivationConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let relu = ActivationConfig::Relu.init(&device);
/// let output: f32 = relu.forward(Tensor::<1>::from_floats([-1.0], &device)).into_scalar();
/// assert_eq!(output, 0.0);
/// ```
#[derive(Config, Debug)]
pub enum ActivationConfig {
    /// No activation.
    Identity,
    /// [`Gelu`].
    Gelu,
    /// [`Gelu`], approximated.
    GeluApproximate,
    /// [`PRelu`].
    PRelu(PReluConfig),
    /// [`Relu`].
    Relu,
    /// [`LeakyRelu`].
    LeakyRelu(LeakyReluConfig),
    /// [`SwiGlu`].
    SwiGlu(SwiGluConfig),
    /// [`Selu`].
    Selu,
    /// [`Sigmoid`].
    Sigmoid,
    /// [`Tanh`].
    Tanh,
    /// [`HardSigmoid`].
    HardSigmoid(HardSigmoidConfig),
    /// [`HardSwish`].
    HardSwish,
    /// [`Softplus`].
    Softplus(SoftplusConfig),
    /// [`Softsign`].
    Softsign,
    /// [`Elu`].
    Elu(EluConfig),
    /// [`Celu`].
    Celu(CeluConfig),
    /// [`ThresholdedRelu`].
    ThresholdedRelu(ThresholdedReluConfig),
    /// [`HardShrink`].
    HardShrink(HardShrinkConfig),
    /// [`SoftShrink`].
    SoftShrink(SoftShrinkConfig),
    /// [`Shrink`].
    Shrink(ShrinkConfig),
}

impl ActivationConfig {
    /// The activation; parameters, where it has some, on `device`.
    pub fn init(&self, device: &Device) -> Activation {
        match self {
            Self::Identity => Identity.into(),
            Self::Gelu => Gelu::new().into(),
            Self::GeluApproximate => Gelu::new_approximate().into(),
            Self::PRelu(config) => config.init(device).into(),
            Self::Relu => Relu.into(),
            Self::LeakyRelu(config) => config.init().into(),
            Self::SwiGlu(config) => config.init(device).into(),
            Self::Selu => Selu.into(),
            Self::Sigmoid => Sigmoid.into(),
            Self::Tanh => Tanh.into(),
            Self::HardSigmoid(config) => config.init().into(),
            Self::HardSwish => HardSwish.into(),
            Self::Softplus(config) => config.init().into(),
            Self::Softsign => Softsign.into(),
            Self::Elu(config) => config.init().into(),
            Self::Celu(config) => config.init().into(),
            Self::ThresholdedRelu(config) => config.init().into(),
            Self::HardShrink(config) => config.init().into(),
            Self::SoftShrink(config) => config.init().into(),
            Self::Shrink(config) => config.init().into(),
        }
    }
}

/// Declares [`Activation`], its conversions and its dispatch from the list of its variants, each named as its layer.
macro_rules! activation {
    ($($layer:ident),*) => {
        /// An activation function chosen at run time.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant, reason = "the variants are the layers themselves, as users match them")]
        pub enum Activation {
            $(
                #[doc = concat!("[`", stringify!($layer), "`].")]
                $layer($layer),
            )*
        }

        impl Activation {
            /// Applies the chosen function.
            #[track_caller]
            pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
                match self {
                    $(Self::$layer(layer) => layer.forward(input),)*
                }
            }
        }

        $(
            impl From<$layer> for Activation {
                fn from(layer: $layer) -> Self {
                    Self::$layer(layer)
                }
            }
        )*
    };
}

activation!(
    Identity,
    Gelu,
    PRelu,
    Relu,
    LeakyRelu,
    SwiGlu,
    Selu,
    Sigmoid,
    Tanh,
    HardSigmoid,
    HardSwish,
    Softplus,
    Softsign,
    Elu,
    Celu,
    ThresholdedRelu,
    HardShrink,
    SoftShrink,
    Shrink
);

macro_rules! config_from {
    ($($variant:ident: $config:ty;)*) => {$(
        impl From<$config> for ActivationConfig {
            fn from(config: $config) -> Self {
                Self::$variant(config)
            }
        }
    )*};
}

config_from! {
    PRelu: PReluConfig;
    LeakyRelu: LeakyReluConfig;
    SwiGlu: SwiGluConfig;
    HardSigmoid: HardSigmoidConfig;
    Softplus: SoftplusConfig;
    Elu: EluConfig;
    Celu: CeluConfig;
    ThresholdedRelu: ThresholdedReluConfig;
    HardShrink: HardShrinkConfig;
    SoftShrink: SoftShrinkConfig;
    Shrink: ShrinkConfig;
}
