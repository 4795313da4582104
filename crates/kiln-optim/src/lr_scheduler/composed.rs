//! Several schedulers at once.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use kiln_module::config::Config;

use super::cosine::CosineAnnealingLrSchedulerConfig;
use super::exponential::ExponentialLrSchedulerConfig;
use super::linear::LinearLrSchedulerConfig;
use super::module_lr_scheduler::ModuleLrScheduler;
use super::noam::NoamLrSchedulerConfig;
use super::step::StepLrSchedulerConfig;
use super::{DynLrScheduler, LrScheduler, LrSchedulerConfig, LrSchedulerRecord};
use crate::LearningRate;

/// How the learning rates of several schedulers become one.
#[derive(Config, Debug, Copy)]
pub enum SchedulerReduction {
    /// Their mean.
    Avg,
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
}

/// Configuration of [`ComposedLrScheduler`].
#[derive(Config, Debug)]
pub struct ComposedLrSchedulerConfig {
    /// The schedulers. Default: none.
    #[config(default = Vec::new())]
    schedulers: Vec<LrSchedulerConfig>,
    /// How their learning rates become one. Default: their product.
    #[config(default = SchedulerReduction::Prod)]
    reduction: SchedulerReduction,
}

impl ComposedLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When a scheduler's settings are wrong.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    pub(super) fn build(&self) -> Result<ComposedLrScheduler, String> {
        Ok(ComposedLrScheduler {
            schedulers: self.schedulers.iter().map(LrSchedulerConfig::build).collect::<Result<_, _>>()?,
            reduction: self.reduction,
        })
    }

    fn with(mut self, scheduler: impl Into<LrSchedulerConfig>) -> Self {
        self.schedulers.push(scheduler.into());
        self
    }

    /// Adds a constant learning rate.
    #[must_use]
    pub fn constant(self, lr: LearningRate) -> Self {
        self.with(lr)
    }

    /// Adds a linear scheduler.
    #[must_use]
    pub fn linear(self, config: LinearLrSchedulerConfig) -> Self {
        self.with(config)
    }

    /// Adds a cosine scheduler.
    #[must_use]
    pub fn cosine(self, config: CosineAnnealingLrSchedulerConfig) -> Self {
        self.with(config)
    }

    /// Adds an exponential scheduler.
    #[must_use]
    pub fn exponential(self, config: ExponentialLrSchedulerConfig) -> Self {
        self.with(config)
    }

    /// Adds a Noam scheduler.
    #[must_use]
    pub fn noam(self, config: NoamLrSchedulerConfig) -> Self {
        self.with(config)
    }

    /// Adds a step scheduler.
    #[must_use]
    pub fn step(self, config: StepLrSchedulerConfig) -> Self {
        self.with(config)
    }

    /// Adds a composed scheduler.
    #[must_use]
    pub fn composed(self, config: Self) -> Self {
        self.with(config)
    }
}

/// Reduces the learning rates of several schedulers to one.
#[derive(Clone)]
pub struct ComposedLrScheduler {
    schedulers: Vec<DynLrScheduler>,
    reduction: SchedulerReduction,
}

impl ComposedLrScheduler {
    /// Adds a scheduler of another kind.
    #[must_use]
    pub fn with_custom_scheduler<S: LrScheduler + 'static>(mut self, scheduler: S) -> Self {
        self.schedulers.push(scheduler.into());
        self
    }
}

impl LrScheduler for ComposedLrScheduler {
    fn step(&mut self) -> LearningRate {
        let count = self.schedulers.len();
        let rates = self.schedulers.iter_mut().map(DynLrScheduler::step);
        match self.reduction {
            SchedulerReduction::Avg => rates.sum::<f64>() / count as f64,
            SchedulerReduction::Sum => rates.sum(),
            SchedulerReduction::Prod => rates.product(),
        }
    }

    fn to_record(&self) -> LrSchedulerRecord {
        records_of(&self.schedulers)
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        load_records(&mut self.schedulers, &record);
    }
}

/// The records of schedulers, each under its position.
pub(super) fn records_of(schedulers: &[DynLrScheduler]) -> LrSchedulerRecord {
    schedulers
        .iter()
        .enumerate()
        .fold(LrSchedulerRecord::new(), |record, (index, scheduler)| record.with_record(&index.to_string(), scheduler.to_record()))
}

/// The inverse of [`records_of`].
pub(super) fn load_records(schedulers: &mut [DynLrScheduler], record: &LrSchedulerRecord) {
    for (index, scheduler) in schedulers.iter_mut().enumerate() {
        scheduler.take_record(record.record(&index.to_string()));
    }
}
