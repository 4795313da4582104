//! A learning rate that changes linearly.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Configuration of [`LinearLrScheduler`].
#[derive(Config, Debug)]
pub struct LinearLrSchedulerConfig {
    /// The first learning rate.
    initial_lr: LearningRate,
    /// The last learning rate.
    final_lr: LearningRate,
    /// The number of steps between them.
    num_iters: usize,
}

impl LinearLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When a learning rate is outside `[0, 1]` or the number of steps is zero.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    pub(super) fn build(&self) -> Result<LinearLrScheduler, String> {
        if self.initial_lr <= 0.0 || self.initial_lr > 1.0 {
            return Err(format!("linear scheduler: the first learning rate must be in (0, 1], got {}", self.initial_lr));
        }
        if self.final_lr < 0.0 || self.final_lr > 1.0 {
            return Err(format!("linear scheduler: the last learning rate must be in [0, 1], got {}", self.final_lr));
        }
        if self.num_iters == 0 {
            return Err("linear scheduler: the number of steps must be positive".into());
        }
        Ok(LinearLrScheduler {
            final_lr: self.final_lr,
            step_size: (self.final_lr - self.initial_lr) / self.num_iters as f64,
            remaining_iters: self.num_iters + 1,
        })
    }
}

/// From the first learning rate to the last in equal changes, and then the last.
#[derive(Clone, Copy, Debug)]
pub struct LinearLrScheduler {
    final_lr: LearningRate,
    step_size: f64,
    remaining_iters: usize,
}

/// The state of [`LinearLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct LinearLrSchedulerState {
    remaining_iters: usize,
}

impl LrScheduler for LinearLrScheduler {
    fn step(&mut self) -> LearningRate {
        self.remaining_iters = self.remaining_iters.saturating_sub(1);
        self.final_lr - self.step_size * self.remaining_iters as f64
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&LinearLrSchedulerState { remaining_iters: self.remaining_iters })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: LinearLrSchedulerState = state_of(&record, "linear");
        self.remaining_iters = state.remaining_iters;
    }
}
