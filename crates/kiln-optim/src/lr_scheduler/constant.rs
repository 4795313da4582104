//! A learning rate that stays.

use super::{LrScheduler, LrSchedulerRecord};
use crate::LearningRate;

/// The same learning rate at every step; a plain number is one, too.
#[derive(Clone, Debug)]
pub struct ConstantLr {
    lr: LearningRate,
}

impl ConstantLr {
    /// The scheduler.
    #[must_use]
    pub fn new(lr: LearningRate) -> Self {
        Self { lr }
    }
}

impl From<f64> for ConstantLr {
    fn from(lr: f64) -> Self {
        Self { lr }
    }
}

impl LrScheduler for ConstantLr {
    fn step(&mut self) -> LearningRate {
        self.lr
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::new()
    }

    fn load_record(&mut self, _record: LrSchedulerRecord) {}
}

impl LrScheduler for LearningRate {
    fn step(&mut self) -> LearningRate {
        *self
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::new()
    }

    fn load_record(&mut self, _record: LrSchedulerRecord) {}
}
