//! The learning rates of a module: one for all parameters, and others for groups.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::{ParamGroup, ParamId};

use super::{DynLrScheduler, LrScheduler, LrSchedulerConfig, LrSchedulerRecord};
use crate::LearningRate;

/// The learning rates of one step.
#[derive(Clone, Debug, Default)]
pub struct ModuleLearningRate {
    base: LearningRate,
    groups: Vec<(ParamGroup, LearningRate)>,
}

impl ModuleLearningRate {
    /// The learning rate of a parameter: of the first group that holds it, or the base.
    pub fn lr_from_param(&self, id: ParamId, path: Option<&str>) -> LearningRate {
        self.groups.iter().find(|(group, _)| group.matches(&id, path)).map_or(self.base, |(_, lr)| *lr)
    }

    /// The learning rate outside the groups.
    pub fn base(&self) -> LearningRate {
        self.base
    }
}

impl From<f64> for ModuleLearningRate {
    fn from(base: f64) -> Self {
        Self { base, groups: Vec::new() }
    }
}

/// The scheduler of a group of parameters.
#[derive(Config, Debug)]
pub struct LrSchedulerGroupConfig {
    /// The parameters.
    pub group: ParamGroup,
    /// Their scheduler.
    pub scheduler: LrSchedulerConfig,
}

/// Configuration of [`ModuleLrScheduler`].
#[derive(Config, Debug)]
pub struct ModuleLrSchedulerConfig {
    /// The scheduler outside the groups.
    base: LrSchedulerConfig,
    /// The schedulers of groups. Default: none.
    #[config(default = Vec::new())]
    scheduler_groups: Vec<LrSchedulerGroupConfig>,
}

impl ModuleLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When a scheduler's settings are wrong.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        Ok(ModuleLrScheduler {
            base: self.base.build()?,
            groups: self.scheduler_groups.iter().map(|group| Ok((group.group.clone(), group.scheduler.build()?))).collect::<Result<_, String>>()?,
        })
    }

    /// Gives a group of parameters its own scheduler.
    #[must_use]
    pub fn with_group(mut self, group: ParamGroup, scheduler: impl Into<LrSchedulerConfig>) -> Self {
        self.scheduler_groups.push(LrSchedulerGroupConfig::new(group, scheduler.into()));
        self
    }
}

/// Gives the learning rates of a module's parameters.
///
/// ```
/// use kiln_module::module::{ParamGroup, ParamId};
/// use kiln_optim::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
/// use kiln_optim::lr_scheduler::module_lr_scheduler::ModuleLrSchedulerConfig;
///
/// let base = ExponentialLrSchedulerConfig::new(0.5, 0.5);
/// let mut scheduler = ModuleLrSchedulerConfig::new(base.into())
///     .with_group(ParamGroup::from_path("head"), 0.25)
///     .init()
///     .unwrap();
/// scheduler.step();
/// let rates = scheduler.step();
/// assert_eq!(rates.base(), 0.25);
/// assert_eq!(rates.lr_from_param(ParamId::new(), Some("head.weight")), 0.25);
/// ```
#[derive(Clone)]
pub struct ModuleLrScheduler {
    base: DynLrScheduler,
    groups: Vec<(ParamGroup, DynLrScheduler)>,
}

impl<S> From<S> for ModuleLrScheduler
where
    S: LrScheduler + 'static,
{
    fn from(scheduler: S) -> Self {
        Self::new(scheduler)
    }
}

impl ModuleLrScheduler {
    /// One scheduler for all parameters.
    pub fn new<S: LrScheduler + 'static>(scheduler: S) -> Self {
        Self { base: scheduler.into(), groups: Vec::new() }
    }

    /// The learning rates of the next step.
    pub fn step(&mut self) -> ModuleLearningRate {
        ModuleLearningRate {
            base: self.base.step(),
            groups: self.groups.iter_mut().map(|(group, scheduler)| (group.clone(), scheduler.step())).collect(),
        }
    }

    /// The state, to be saved: the base under `0`, the groups under `1` and on.
    pub fn to_record(&self) -> LrSchedulerRecord {
        let schedulers = [&self.base].into_iter().chain(self.groups.iter().map(|(_, scheduler)| scheduler));
        schedulers
            .enumerate()
            .fold(LrSchedulerRecord::new(), |record, (index, scheduler)| record.with_record(&index.to_string(), scheduler.to_record()))
    }

    /// The scheduler with a saved state.
    ///
    /// # Panics
    ///
    /// When the record is one of other schedulers.
    #[must_use]
    pub fn load_record(mut self, record: LrSchedulerRecord) -> Self {
        let schedulers = [&mut self.base].into_iter().chain(self.groups.iter_mut().map(|(_, scheduler)| scheduler));
        for (index, scheduler) in schedulers.enumerate() {
            scheduler.take_record(record.record(&index.to_string()));
        }
        self
    }

    /// Gives a group of parameters its own scheduler. Where groups overlap, the one added first counts.
    #[must_use]
    pub fn with_group(mut self, group: ParamGroup, scheduler: impl Into<DynLrScheduler>) -> Self {
        self.groups.push((group, scheduler.into()));
        self
    }
}
