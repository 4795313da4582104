//! A learning rate that falls when a measure stops to improve.

use alloc::format;
use alloc::string::String;

use kiln_module::config::Config;

use super::scheduler::state_of;
use super::{LrScheduler, LrSchedulerRecord};
use crate::{LearningRate, RecordState};

/// Which way a measure improves.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum Goal {
    /// It is to fall, as a loss.
    Lower,
    /// It is to rise, as an accuracy.
    Higher,
}

/// By how much a measure must improve to count.
#[derive(Config, Debug, Copy, PartialEq)]
pub enum Threshold {
    /// By this share of the best.
    Relative(f64),
    /// By this much.
    Absolute(f64),
}

/// Configuration of [`PlateauLrScheduler`].
#[derive(Config, Debug)]
pub struct PlateauLrSchedulerConfig {
    /// The first learning rate.
    initial_lr: LearningRate,
    /// Which way the measure improves. Default: it falls.
    #[config(default = Goal::Lower)]
    goal: Goal,
    /// What the learning rate is multiplied by. Default: 0.1.
    #[config(default = 0.1)]
    factor: f64,
    /// How many times in a row the measure may fail to improve before the rate falls. Default: 10.
    #[config(default = 10)]
    patience: usize,
    /// By how much the measure must improve. Default: by 1e-4 of the best.
    #[config(default = Threshold::Relative(1e-4))]
    threshold: Threshold,
    /// For how many times after a fall the measure is not watched. Default: 0.
    #[config(default = 0)]
    cooldown: usize,
    /// The least learning rate. Default: 0.
    #[config(default = 0.0)]
    min_lr: LearningRate,
    /// A fall by less than this is not made. Default: 1e-8.
    #[config(default = 1e-8)]
    epsilon: f64,
}

impl PlateauLrSchedulerConfig {
    /// The scheduler.
    ///
    /// # Errors
    ///
    /// When the first rate is not positive, or the factor not in `[0, 1)`.
    pub fn init(&self) -> Result<PlateauLrScheduler, String> {
        if self.initial_lr.is_nan() || self.initial_lr <= 0.0 {
            return Err(format!("plateau scheduler: the first learning rate must be positive, got {}", self.initial_lr));
        }
        if !(0.0..1.0).contains(&self.factor) {
            return Err(format!("plateau scheduler: the factor must be in [0, 1), got {}", self.factor));
        }
        Ok(PlateauLrScheduler { state: PlateauLrSchedulerState { lr: self.initial_lr, best: None, bad: 0, cooldown: 0 }, config: self.clone() })
    }
}

/// Keeps its learning rate until a measure has stopped to improve, and then multiplies it by a factor.
///
/// Unlike other schedulers it has to be told something: [`observe`](Self::observe) takes the measure, once an epoch as a rule, and
/// [`step`](LrScheduler::step) gives the rate. The decisions are those of PyTorch's `ReduceLROnPlateau`.
///
/// ```
/// use kiln_optim::lr_scheduler::LrScheduler;
/// use kiln_optim::lr_scheduler::plateau::PlateauLrSchedulerConfig;
///
/// let mut scheduler = PlateauLrSchedulerConfig::new(0.1).with_patience(1).with_factor(0.5).init().unwrap();
/// let mut rates = Vec::new();
/// for loss in [1.0, 0.5, 0.6, 0.6, 0.6] {
///     scheduler.observe(loss);
///     rates.push(scheduler.step());
/// }
/// assert_eq!(rates, [0.1, 0.1, 0.1, 0.05, 0.05]);
/// ```
#[derive(Clone, Debug)]
pub struct PlateauLrScheduler {
    config: PlateauLrSchedulerConfig,
    state: PlateauLrSchedulerState,
}

/// The state of [`PlateauLrScheduler`].
#[derive(RecordState, Clone, Debug)]
pub struct PlateauLrSchedulerState {
    lr: LearningRate,
    best: Option<f64>,
    /// How many times in a row the measure has not improved.
    bad: usize,
    /// How many times more the measure is not watched.
    cooldown: usize,
}

impl PlateauLrScheduler {
    /// Takes the measure of an epoch; true if the learning rate falls. A measure that is no number never counts as better.
    pub fn observe(&mut self, measure: f64) -> bool {
        let (config, state) = (&self.config, &mut self.state);
        if state.best.is_none_or(|best| is_better(config, measure, best)) && !measure.is_nan() {
            state.best = Some(measure);
            state.bad = 0;
        } else {
            state.bad += 1;
        }
        if state.cooldown > 0 {
            state.cooldown -= 1;
            state.bad = 0;
        }
        if state.bad <= config.patience {
            return false;
        }
        state.cooldown = config.cooldown;
        state.bad = 0;
        let lower = (state.lr * config.factor).max(config.min_lr);
        let falls = state.lr - lower > config.epsilon;
        if falls {
            state.lr = lower;
        }
        falls
    }

    /// The best measure so far.
    pub fn best(&self) -> Option<f64> {
        self.state.best
    }
}

fn is_better(config: &PlateauLrSchedulerConfig, measure: f64, best: f64) -> bool {
    match (config.goal, config.threshold) {
        (Goal::Lower, Threshold::Relative(share)) => measure < best * (1.0 - share),
        (Goal::Lower, Threshold::Absolute(amount)) => measure < best - amount,
        (Goal::Higher, Threshold::Relative(share)) => measure > best * (1.0 + share),
        (Goal::Higher, Threshold::Absolute(amount)) => measure > best + amount,
    }
}

impl LrScheduler for PlateauLrScheduler {
    fn step(&mut self) -> LearningRate {
        self.state.lr
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::from_state(&self.state)
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        self.state = state_of(&record, "plateau");
    }
}
