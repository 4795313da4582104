//! A learning rate that falls by a constant factor.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Configuration of [`ExponentialLrScheduler`].
#[derive(Config, Debug)]
pub struct ExponentialLrSchedulerConfig {
    /// The first learning rate.
    initial_lr: LearningRate,
    /// The factor from one step to the next.
    gamma: f64,
}

impl ExponentialLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When the learning rate or the factor are outside `(0, 1]`.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    pub(super) fn build(&self) -> Result<ExponentialLrScheduler, String> {
        if self.initial_lr <= 0.0 || self.initial_lr > 1.0 {
            return Err(format!("exponential scheduler: the first learning rate must be in (0, 1], got {}", self.initial_lr));
        }
        if self.gamma <= 0.0 || self.gamma > 1.0 {
            return Err(format!("exponential scheduler: the factor must be in (0, 1], got {}", self.gamma));
        }
        Ok(ExponentialLrScheduler {
            // Such that the first step gives the first learning rate.
            previous_lr: self.initial_lr / self.gamma,
            gamma: self.gamma,
        })
    }
}

/// The first learning rate, and then each time the last one times a factor.
#[derive(Clone, Copy, Debug)]
pub struct ExponentialLrScheduler {
    previous_lr: LearningRate,
    gamma: f64,
}

/// The state of [`ExponentialLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct ExponentialLrSchedulerState {
    previous_lr: f64,
}

impl LrScheduler for ExponentialLrScheduler {
    fn step(&mut self) -> LearningRate {
        self.previous_lr *= self.gamma;
        self.previous_lr
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&ExponentialLrSchedulerState { previous_lr: self.previous_lr })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: ExponentialLrSchedulerState = state_of(&record, "exponential");
        self.previous_lr = state.previous_lr;
    }
}
