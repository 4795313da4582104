//! Any scheduler's configuration.

use alloc::string::String;

use kiln_module::config::Config;

use super::DynLrScheduler;
use super::composed::ComposedLrSchedulerConfig;
use super::constant::ConstantLr;
use super::cosine::CosineAnnealingLrSchedulerConfig;
use super::exponential::ExponentialLrSchedulerConfig;
use super::linear::LinearLrSchedulerConfig;
use super::noam::NoamLrSchedulerConfig;
use super::sequential::SequentialLrSchedulerConfig;
use super::step::StepLrSchedulerConfig;
use crate::LearningRate;

/// Any scheduler's configuration.
#[derive(Config, Debug)]
pub enum LrSchedulerConfig {
    /// A constant learning rate.
    Constant(LearningRate),
    /// A linear change.
    Linear(LinearLrSchedulerConfig),
    /// Along a cosine.
    Cosine(CosineAnnealingLrSchedulerConfig),
    /// By a constant factor.
    Exponential(ExponentialLrSchedulerConfig),
    /// Up, then down with the root of the steps.
    Noam(NoamLrSchedulerConfig),
    /// In steps.
    Step(StepLrSchedulerConfig),
    /// Several at once.
    Composed(ComposedLrSchedulerConfig),
    /// One after the other.
    Sequential(SequentialLrSchedulerConfig),
}

impl LrSchedulerConfig {
    /// The scheduler.
    pub(super) fn build(&self) -> Result<DynLrScheduler, String> {
        Ok(match self {
            Self::Constant(lr) => ConstantLr::new(*lr).into(),
            Self::Linear(config) => config.build()?.into(),
            Self::Cosine(config) => config.build()?.into(),
            Self::Exponential(config) => config.build()?.into(),
            Self::Noam(config) => config.build()?.into(),
            Self::Step(config) => config.build()?.into(),
            Self::Composed(config) => config.build()?.into(),
            Self::Sequential(config) => config.build()?.into(),
        })
    }
}

macro_rules! variant_from {
    ($($variant:ident: $config:ty;)*) => {$(
        impl From<$config> for LrSchedulerConfig {
            fn from(config: $config) -> Self {
                Self::$variant(config)
            }
        }
    )*};
}

variant_from! {
    Constant: LearningRate;
    Linear: LinearLrSchedulerConfig;
    Cosine: CosineAnnealingLrSchedulerConfig;
    Exponential: ExponentialLrSchedulerConfig;
    Noam: NoamLrSchedulerConfig;
    Step: StepLrSchedulerConfig;
    Composed: ComposedLrSchedulerConfig;
    Sequential: SequentialLrSchedulerConfig;
}
