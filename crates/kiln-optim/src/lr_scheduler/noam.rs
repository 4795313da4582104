//! The learning rate of the first transformers.

use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Configuration of [`NoamLrScheduler`].
#[derive(Config, Debug)]
pub struct NoamLrSchedulerConfig {
    /// The factor of the schedule.
    factor: f64,
    /// The number of steps that the learning rate rises. Default: 4,000.
    #[config(default = 4000)]
    warmup_steps: usize,
    /// The size of the model's vectors. Default: 512.
    #[config(default = 512)]
    model_size: usize,
}

impl NoamLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When a setting is not positive.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    pub(super) fn build(&self) -> Result<NoamLrScheduler, String> {
        if self.factor <= 0.0 {
            return Err("noam scheduler: the factor must be positive".into());
        }
        if self.warmup_steps == 0 {
            return Err("noam scheduler: the number of warm-up steps must be positive".into());
        }
        if self.model_size == 0 {
            return Err("noam scheduler: the size of the model must be positive".into());
        }
        Ok(NoamLrScheduler { warmup_steps: self.warmup_steps as f64, embedding_size: self.model_size as f64, factor: self.factor, step: 0 })
    }
}

/// `factor / √size · min(1 / √step, step / warmup^1.5)`: rises linearly, then falls with the root of the steps.
///
/// Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762).
#[derive(Clone, Debug)]
pub struct NoamLrScheduler {
    warmup_steps: f64,
    embedding_size: f64,
    factor: f64,
    step: usize,
}

/// The state of [`NoamLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct NoamLrSchedulerState {
    step: usize,
}

impl LrScheduler for NoamLrScheduler {
    fn step(&mut self) -> LearningRate {
        self.step += 1;
        let step = self.step as f64;
        let fall = 1.0 / libm::sqrt(step);
        let rise = step * libm::pow(self.warmup_steps, -1.5);
        self.factor / libm::sqrt(self.embedding_size) * fall.min(rise)
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&NoamLrSchedulerState { step: self.step })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: NoamLrSchedulerState = state_of(&record, "noam");
        self.step = state.step;
    }
}
