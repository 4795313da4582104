//! A learning rate that falls along a power of the steps that are left.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Configuration of [`PolynomialLrScheduler`].
#[derive(Config, Debug)]
pub struct PolynomialLrSchedulerConfig {
    /// The first learning rate.
    initial_lr: LearningRate,
    /// The number of steps down to the last.
    num_iters: usize,
    /// The power. Default: 1, a straight line.
    #[config(default = 1.0)]
    power: f64,
    /// The last learning rate. Default: 0.
    #[config(default = 0.0)]
    final_lr: LearningRate,
}

impl PolynomialLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When the first rate or the power is not positive, the last rate negative, or the number of steps zero.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    /// The scheduler by itself, to be put into others.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init).
    pub fn build(&self) -> Result<PolynomialLrScheduler, String> {
        if !(self.initial_lr > 0.0 && self.final_lr >= 0.0) {
            let (first, last) = (self.initial_lr, self.final_lr);
            return Err(format!("polynomial scheduler: the first learning rate must be positive and the last not negative, got {first} and {last}"));
        }
        if self.power.is_nan() || self.power <= 0.0 {
            return Err(format!("polynomial scheduler: the power must be positive, got {}", self.power));
        }
        if self.num_iters == 0 {
            return Err("polynomial scheduler: the number of steps must be positive".into());
        }
        Ok(PolynomialLrScheduler { config: self.clone(), step: 0 })
    }
}

/// `last + (first - last) · (1 - step / steps)^power`, and then the last.
///
/// ```
/// use kiln_optim::lr_scheduler::polynomial::PolynomialLrSchedulerConfig;
///
/// let mut scheduler = PolynomialLrSchedulerConfig::new(0.8, 4).with_power(2.0).init().unwrap();
/// let rates: Vec<f64> = (0..6).map(|_| scheduler.step().base()).collect();
/// assert_eq!(rates[2], 0.2);
/// assert_eq!(rates[4..], [0.0, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct PolynomialLrScheduler {
    config: PolynomialLrSchedulerConfig,
    step: usize,
}

/// The state of [`PolynomialLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct PolynomialLrSchedulerState {
    step: usize,
}

impl LrScheduler for PolynomialLrScheduler {
    fn step(&mut self) -> LearningRate {
        let PolynomialLrSchedulerConfig { initial_lr, num_iters, power, final_lr } = self.config;
        let left = 1.0 - self.step.min(num_iters) as f64 / num_iters as f64;
        self.step = self.step.saturating_add(1);
        final_lr + (initial_lr - final_lr) * libm::pow(left, power)
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&PolynomialLrSchedulerState { step: self.step })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: PolynomialLrSchedulerState = state_of(&record, "polynomial");
        self.step = state.step;
    }
}
