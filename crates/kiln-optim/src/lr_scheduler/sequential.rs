//! Schedulers one after the other.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use kiln_module::config::Config;

use super::composed::{load_records, records_of};
use super::module_lr_scheduler::ModuleLrScheduler;
use super::{DynLrScheduler, LrScheduler, LrSchedulerConfig, LrSchedulerRecord};
use crate::LearningRate;

/// Configuration of [`SequentialLrScheduler`].
#[derive(Config, Debug)]
pub struct SequentialLrSchedulerConfig {
    /// The schedulers, in order.
    schedulers: Vec<LrSchedulerConfig>,
    /// The steps at which each scheduler but the first begins.
    milestones: Vec<usize>,
}

impl SequentialLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When there is no scheduler, not one milestone fewer than schedulers, or milestones don't rise.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    pub(super) fn build(&self) -> Result<SequentialLrScheduler, String> {
        if self.schedulers.is_empty() {
            return Err("sequential scheduler: needs a scheduler".into());
        }
        if self.milestones.len() + 1 != self.schedulers.len() {
            return Err(format!(
                "sequential scheduler: {} schedulers need {} milestones, got {}",
                self.schedulers.len(),
                self.schedulers.len() - 1,
                self.milestones.len()
            ));
        }
        if self.milestones.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(format!("sequential scheduler: milestones must rise, got {:?}", self.milestones));
        }
        Ok(SequentialLrScheduler {
            schedulers: self.schedulers.iter().map(LrSchedulerConfig::build).collect::<Result<_, _>>()?,
            milestones: self.milestones.clone(),
            step: 0,
        })
    }
}

/// One scheduler up to the first milestone, the next from there to the second, and so on. Each begins at its own start.
#[derive(Clone)]
pub struct SequentialLrScheduler {
    schedulers: Vec<DynLrScheduler>,
    milestones: Vec<usize>,
    step: usize,
}

impl LrScheduler for SequentialLrScheduler {
    fn step(&mut self) -> LearningRate {
        let current = self.milestones.iter().take_while(|milestone| **milestone <= self.step).count();
        self.step += 1;
        self.schedulers[current].step()
    }

    fn to_record(&self) -> LrSchedulerRecord {
        records_of(&self.schedulers).with_scalar("step", self.step)
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        match record.scalar("step") {
            Some(step) => self.step = step,
            None => {
                panic!("sequential scheduler: the record holds no state of it: {record:?}")
            }
        }
        load_records(&mut self.schedulers, &record);
    }
}
