//! A learning rate that rises once and falls.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::module_lr_scheduler::ModuleLrScheduler;
use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// The form of the way from one learning rate to another.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum Annealing {
    /// Half a cosine: slow at both ends.
    Cosine,
    /// A straight line.
    Linear,
}

impl Annealing {
    /// The value at `share` of the way.
    fn between(self, start: f64, end: f64, share: f64) -> f64 {
        match self {
            Self::Cosine => end + 0.5 * (start - end) * (1.0 + libm::cos(core::f64::consts::PI * share)),
            Self::Linear => start + (end - start) * share,
        }
    }
}

/// Configuration of [`OneCycleLrScheduler`].
#[derive(Config, Debug)]
pub struct OneCycleLrSchedulerConfig {
    /// The greatest learning rate.
    max_lr: LearningRate,
    /// The number of steps of the cycle.
    num_iters: usize,
    /// The share of the cycle in which the rate rises. Default: 0.3.
    #[config(default = 0.3)]
    warmup: f64,
    /// The first learning rate is the greatest divided by this. Default: 25.
    #[config(default = 25.0)]
    div_factor: f64,
    /// The last learning rate is the first divided by this. Default: 10,000.
    #[config(default = 1e4)]
    final_div_factor: f64,
    /// The form of rise and fall. Default: a cosine.
    #[config(default = Annealing::Cosine)]
    annealing: Annealing,
    /// Whether the rate first falls back to where it started, as fast as it rose, and then to the last. Default: false.
    #[config(default = false)]
    three_phase: bool,
}

impl OneCycleLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When the rate or a factor is not positive, the share outside `[0, 1]` (with three phases `[0, 0.5]`), or there are fewer than two steps.
    pub fn init(&self) -> Result<ModuleLrScheduler, String> {
        self.build().map(ModuleLrScheduler::new)
    }

    /// The scheduler by itself, to be put into others.
    ///
    /// # Errors
    ///
    /// As [`init`](Self::init).
    pub fn build(&self) -> Result<OneCycleLrScheduler, String> {
        if self.max_lr.is_nan() || self.max_lr <= 0.0 {
            return Err(format!("one-cycle scheduler: the greatest learning rate must be positive, got {}", self.max_lr));
        }
        if !(self.div_factor > 0.0 && self.final_div_factor > 0.0) {
            return Err(format!("one-cycle scheduler: factors must be positive, got {} and {}", self.div_factor, self.final_div_factor));
        }
        let most = if self.three_phase { 0.5 } else { 1.0 };
        if !(0.0..=most).contains(&self.warmup) {
            return Err(format!("one-cycle scheduler: the share of the rise must be in [0, {most}], got {}", self.warmup));
        }
        if self.num_iters < 2 {
            return Err(format!("one-cycle scheduler: needs at least two steps, got {}", self.num_iters));
        }
        Ok(OneCycleLrScheduler { config: self.clone(), step: 0 })
    }
}

/// From a small learning rate up to the greatest and down to a very small one, where it stays.
///
/// The rate is PyTorch's `OneCycleLR`. Smith and Topin 2017, [arXiv:1708.07120](https://arxiv.org/abs/1708.07120).
///
/// ```
/// use kiln_optim::lr_scheduler::one_cycle::OneCycleLrSchedulerConfig;
///
/// let mut scheduler = OneCycleLrSchedulerConfig::new(0.1, 101).with_warmup(0.4).init().unwrap();
/// let rates: Vec<f64> = (0..101).map(|_| scheduler.step().base()).collect();
/// assert!((rates[0] - 0.004).abs() < 1e-12);
/// assert_eq!(rates.iter().copied().fold(0.0, f64::max), rates[39].max(rates[40]));
/// assert!((rates[100] - 4e-7).abs() < 1e-12);
/// ```
#[derive(Clone, Debug)]
pub struct OneCycleLrScheduler {
    config: OneCycleLrSchedulerConfig,
    step: usize,
}

/// The state of [`OneCycleLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct OneCycleLrSchedulerState {
    step: usize,
}

impl LrScheduler for OneCycleLrScheduler {
    fn step(&mut self) -> LearningRate {
        let config = &self.config;
        let last = (config.num_iters - 1) as f64;
        let at = (self.step as f64).min(last);
        self.step = self.step.saturating_add(1);
        let first = config.max_lr / config.div_factor;
        let lowest = first / config.final_div_factor;
        let top = config.warmup * config.num_iters as f64 - 1.0;
        // Each phase: where it ends, and the rates at its ends.
        let phases = match config.three_phase {
            true => [(top, first, config.max_lr), (2.0 * top, config.max_lr, first), (last, first, lowest)],
            false => [(top, first, config.max_lr), (last, config.max_lr, lowest), (last, lowest, lowest)],
        };
        let mut start = 0.0;
        for (end, from, to) in phases {
            if at <= end {
                let share = if end > start { (at - start) / (end - start) } else { 1.0 };
                return config.annealing.between(from, to, share);
            }
            start = end;
        }
        lowest
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&OneCycleLrSchedulerState { step: self.step })
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        let state: OneCycleLrSchedulerState = state_of(&record, "one-cycle");
        self.step = state.step;
    }
}
