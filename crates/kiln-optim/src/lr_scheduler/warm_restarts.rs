//! A learning rate that follows a cosine down and starts again, each time for longer.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Configuration of [`WarmRestartsLrScheduler`].
#[derive(Config, Debug)]
pub struct WarmRestartsLrSchedulerConfig {
    /// The learning rate at each start.
    initial_lr: LearningRate,
    /// The number of steps before the first restart.
    num_iters: usize,
    /// How many times as long each period is as the one before it. Default: 1.
    #[config(default = 1)]
    factor: usize,
    /// The learning rate towards the end of each period. Default: 0.
    #[config(default = 0.0)]
    min_lr: LearningRate,
}

impl WarmRestartsLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When the first rate is not positive, the least negative, or the number of steps or the factor zero.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    /// The scheduler by itself, to be put into others.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init).
    pub fn build(&self) -> Result<WarmRestartsLrScheduler, String> {
        if !(self.initial_lr > 0.0 && self.min_lr >= 0.0) {
            let (first, least) = (self.initial_lr, self.min_lr);
            return Err(format!("warm restarts: the first learning rate must be positive and the least not negative, got {first} and {least}"));
        }
        if self.num_iters == 0 || self.factor == 0 {
            let (steps, factor) = (self.num_iters, self.factor);
            return Err(format!("warm restarts: the number of steps and the factor must be positive, got {steps} and {factor}"));
        }
        Ok(WarmRestartsLrScheduler { config: self.clone(), step: 0 })
    }
}

/// Half a cosine from the first learning rate to the least, and then from the start again.
///
/// Loshchilov and Hutter 2016, [arXiv:1608.03983](https://arxiv.org/abs/1608.03983).
///
/// ```
/// use kiln_optim::lr_scheduler::warm_restarts::WarmRestartsLrSchedulerConfig;
///
/// let mut scheduler = WarmRestartsLrSchedulerConfig::new(0.4, 2).with_factor(2).init().unwrap();
/// let rates: Vec<f64> = (0..7).map(|_| scheduler.step().base()).collect();
/// // Starts at 0, 2 and 6.
/// assert_eq!((rates[0], rates[2], rates[6]), (0.4, 0.4, 0.4));
/// assert!((rates[1] - 0.2).abs() < 1e-12 && (rates[4] - 0.2).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct WarmRestartsLrScheduler {
    config: WarmRestartsLrSchedulerConfig,
    step: usize,
}

/// The state of [`WarmRestartsLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct WarmRestartsLrSchedulerState {
    step: usize,
}

impl WarmRestartsLrSchedulerConfig {
    /// How far a step is into its period, and how long that is.
    fn place(&self, step: usize) -> (usize, usize) {
        if self.factor == 1 {
            return (step % self.num_iters, self.num_iters);
        }
        let (mut into, mut length) = (step, self.num_iters);
        while into >= length {
            into -= length;
            length = length.saturating_mul(self.factor);
        }
        (into, length)
    }
}

impl LrScheduler for WarmRestartsLrScheduler {
    fn step(&mut self) -> LearningRate {
        let (into, length) = self.config.place(self.step);
        self.step = self.step.saturating_add(1);
        let angle = core::f64::consts::PI * into as f64 / length as f64;
        self.config.min_lr + 0.5 * (self.config.initial_lr - self.config.min_lr) * (1.0 + libm::cos(angle))
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&WarmRestartsLrSchedulerState { step: self.step })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: WarmRestartsLrSchedulerState = state_of(&record, "warm restarts");
        self.step = state.step;
    }
}
