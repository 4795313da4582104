//! A learning rate that falls in steps.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Configuration of [`StepLrScheduler`].
#[derive(Config, Debug)]
pub struct StepLrSchedulerConfig {
    /// The first learning rate.
    initial_lr: LearningRate,
    /// The number of steps with the same learning rate.
    step_size: usize,
    /// The factor from one learning rate to the next. Default: 0.1.
    #[config(default = 0.1)]
    gamma: f64,
}

impl StepLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When the number of steps is zero or the learning rate not positive.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    pub(super) fn build(&self) -> Result<StepLrScheduler, String> {
        if self.step_size == 0 {
            return Err("step scheduler: the number of steps must be positive".into());
        }
        if self.initial_lr <= 0.0 {
            return Err(format!("step scheduler: the first learning rate must be positive, got {}", self.initial_lr));
        }
        Ok(StepLrScheduler { init_lr: self.initial_lr, step_size: self.step_size, gamma: self.gamma, iter_idx: -1 })
    }
}

/// The same learning rate for some steps, then that times a factor, and so on.
#[derive(Clone, Debug)]
pub struct StepLrScheduler {
    init_lr: LearningRate,
    step_size: usize,
    gamma: f64,
    /// The index of the last step; -1 before the first.
    iter_idx: i32,
}

/// The state of [`StepLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct StepLrSchedulerState {
    iter_idx: i32,
}

impl LrScheduler for StepLrScheduler {
    fn step(&mut self) -> LearningRate {
        self.iter_idx = self.iter_idx.saturating_add(1);
        let falls = self.iter_idx as usize / self.step_size;
        self.init_lr * crate::number::power(self.gamma, falls)
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&StepLrSchedulerState { iter_idx: self.iter_idx })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: StepLrSchedulerState = state_of(&record, "step");
        self.iter_idx = state.iter_idx;
    }
}
