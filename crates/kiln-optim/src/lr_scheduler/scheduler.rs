//! What a scheduler is.

use alloc::boxed::Box;

use super::LrSchedulerRecord;
use crate::LearningRate;

/// Gives the learning rate of each step.
pub trait LrScheduler: LrSchedulerClone + Send + Sync {
    /// The learning rate of the next step.
    fn step(&mut self) -> LearningRate;

    /// The state, to be saved.
    fn to_record(&self) -> LrSchedulerRecord;

    /// Takes over a saved state.
    ///
    /// # Panics
    ///
    /// When the record holds no state of this scheduler.
    fn load_record(&mut self, record: LrSchedulerRecord);
}

/// Clones a scheduler behind its trait; implemented for all that implement `Clone`.
pub trait LrSchedulerClone {
    /// A clone.
    fn clone_box(&self) -> Box<dyn LrScheduler>;
}

impl<T: LrScheduler + Clone + 'static> LrSchedulerClone for T {
    fn clone_box(&self) -> Box<dyn LrScheduler> {
        Box::new(self.clone())
    }
}

/// Some scheduler.
pub struct DynLrScheduler(Box<dyn LrScheduler>);

impl DynLrScheduler {
    /// The learning rate of the next step.
    pub fn step(&mut self) -> LearningRate {
        self.0.step()
    }

    /// The state, to be saved.
    pub fn to_record(&self) -> LrSchedulerRecord {
        self.0.to_record()
    }

    /// The scheduler with a saved state.
    #[must_use]
    pub fn load_record(mut self, record: LrSchedulerRecord) -> Self {
        self.0.load_record(record);
        self
    }

    pub(super) fn take_record(&mut self, record: LrSchedulerRecord) {
        self.0.load_record(record);
    }
}

impl Clone for DynLrScheduler {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl<S> From<S> for DynLrScheduler
where
    S: LrScheduler + 'static,
{
    fn from(scheduler: S) -> Self {
        Self(Box::new(scheduler))
    }
}

/// Takes the state of type `S` out of a record.
#[track_caller]
pub(super) fn state_of<S: crate::RecordState>(record: &LrSchedulerRecord, name: &str) -> S {
    match record.into_state() {
        Some(state) => state,
        None => panic!("{name} scheduler: the record holds no state of it: {record:?}"),
    }
}
