//! A learning rate that follows a cosine.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Configuration of [`CosineAnnealingLrScheduler`].
#[derive(Config, Debug)]
pub struct CosineAnnealingLrSchedulerConfig {
    /// The first and greatest learning rate.
    initial_lr: LearningRate,
    /// The least learning rate. Default: 0.
    #[config(default = 0.0)]
    min_lr: LearningRate,
    /// The number of steps down to it.
    num_iters: usize,
}

impl CosineAnnealingLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When a learning rate is outside its bounds or the number of steps is zero.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    pub(super) fn build(&self) -> Result<CosineAnnealingLrScheduler, String> {
        if self.initial_lr <= 0.0 || self.initial_lr > 1.0 {
            return Err(format!("cosine scheduler: the first learning rate must be in (0, 1], got {}", self.initial_lr));
        }
        if self.min_lr < 0.0 || self.min_lr > self.initial_lr {
            return Err(format!("cosine scheduler: the least learning rate must be in [0, {}], got {}", self.initial_lr, self.min_lr));
        }
        if self.num_iters == 0 {
            return Err("cosine scheduler: the number of steps must be positive".into());
        }
        Ok(CosineAnnealingLrScheduler { min_lr: self.min_lr, max_lr: self.initial_lr, num_iters: self.num_iters, current_iter: usize::MAX })
    }
}

/// From the greatest learning rate to the least along half a cosine, and back up the other half, on and on.
///
/// Loshchilov and Hutter 2016, [arXiv:1608.03983](https://arxiv.org/abs/1608.03983).
#[derive(Clone, Copy, Debug)]
pub struct CosineAnnealingLrScheduler {
    min_lr: LearningRate,
    max_lr: LearningRate,
    num_iters: usize,
    /// The index of the last step; the greatest number before the first, as in Burn's records.
    current_iter: usize,
}

/// The state of [`CosineAnnealingLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct CosineAnnealingLrSchedulerState {
    current_iter: usize,
}

impl LrScheduler for CosineAnnealingLrScheduler {
    fn step(&mut self) -> LearningRate {
        // Within one period, so that the angle stays exact after any number of steps.
        self.current_iter = self.current_iter.wrapping_add(1);
        let position = self.current_iter % (2 * self.num_iters);
        let angle = core::f64::consts::PI * position as f64 / self.num_iters as f64;
        self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1.0 + libm::cos(angle))
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&CosineAnnealingLrSchedulerState { current_iter: self.current_iter })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: CosineAnnealingLrSchedulerState = state_of(&record, "cosine");
        self.current_iter = state.current_iter;
    }
}
