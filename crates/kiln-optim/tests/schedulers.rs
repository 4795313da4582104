//! Schedules against their closed forms.

use kiln_optim::lr_scheduler::composed::{ComposedLrSchedulerConfig, SchedulerReduction};
use kiln_optim::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use kiln_optim::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use kiln_optim::lr_scheduler::linear::LinearLrSchedulerConfig;
use kiln_optim::lr_scheduler::module_lr_scheduler::{ModuleLrScheduler, ModuleLrSchedulerConfig};
use kiln_optim::lr_scheduler::noam::NoamLrSchedulerConfig;
use kiln_optim::lr_scheduler::sequential::SequentialLrSchedulerConfig;
use kiln_optim::lr_scheduler::step::StepLrSchedulerConfig;
use kiln_optim::lr_scheduler::{LrScheduler, LrSchedulerConfig, LrSchedulerRecord};

#[track_caller]
fn follows(mut scheduler: ModuleLrScheduler, steps: usize, expected: impl Fn(usize) -> f64) {
    for step in 0..steps {
        let (found, expected) = (scheduler.step().base(), expected(step));
        assert!((found - expected).abs() <= 1e-12 + 1e-9 * expected.abs(), "step {step}: {found}, expected {expected}");
    }
}

#[test]
fn constant_rates_stay() {
    follows(0.3.into(), 5, |_| 0.3);
    assert_eq!(LrScheduler::step(&mut 0.5f64), 0.5);
}

#[test]
fn linear_rates_go_to_the_last_and_stay() {
    let config = LinearLrSchedulerConfig::new(0.8, 0.2, 3);
    follows(config.init().unwrap(), 8, |step| 0.8 - 0.2 * step.min(3) as f64);
    assert!(LinearLrSchedulerConfig::new(0.8, 0.2, 0).init().is_err());
}

#[test]
fn cosine_rates_come_back_up() {
    let config = CosineAnnealingLrSchedulerConfig::new(1e-3, 250).with_min_lr(1e-6);
    follows(config.init().unwrap(), 1_001, |step| 1e-6 + 0.5 * (1e-3 - 1e-6) * (1.0 + (std::f64::consts::PI * step as f64 / 250.0).cos()));
    let mut scheduler = config.init().unwrap();
    let rates: Vec<f64> = (0..252).map(|_| scheduler.step().base()).collect();
    for (step, expected) in [(0, 1e-3), (125, 5.005e-4), (250, 1e-6), (251, 1.039_44e-6)] {
        assert!((rates[step] / expected - 1.0).abs() < 1e-5, "step {step}: {}", rates[step]);
    }
}

#[test]
fn exponential_and_step_rates_fall_by_factors() {
    follows(ExponentialLrSchedulerConfig::new(0.5, 0.9).init().unwrap(), 20, |step| 0.5 * 0.9f64.powi(step as i32));
    follows(StepLrSchedulerConfig::new(0.5, 3).with_gamma(0.2).init().unwrap(), 10, |step| 0.5 * 0.2f64.powi(step as i32 / 3));
    assert!(ExponentialLrSchedulerConfig::new(0.5, 1.5).init().is_err());
    assert!(StepLrSchedulerConfig::new(0.5, 0).init().is_err());
}

#[test]
fn noam_rates_rise_and_fall() {
    let config = NoamLrSchedulerConfig::new(2.0).with_warmup_steps(4).with_model_size(64);
    follows(config.init().unwrap(), 20, |step| {
        let step = step as f64 + 1.0;
        2.0 / 8.0 * step.powf(-0.5).min(step * 4f64.powf(-1.5))
    });
}

fn composed() -> ComposedLrSchedulerConfig {
    ComposedLrSchedulerConfig::new()
        .linear(LinearLrSchedulerConfig::new(0.5, 0.25, 4))
        .exponential(ExponentialLrSchedulerConfig::new(1.0, 0.5))
        .constant(0.5)
}

#[test]
fn composed_rates_are_reduced() {
    let parts = |step: usize| [0.5 - 0.0625 * step.min(4) as f64, 0.5f64.powi(step as i32), 0.5];
    follows(composed().init().unwrap(), 6, |step| parts(step).iter().product());
    follows(composed().with_reduction(SchedulerReduction::Sum).init().unwrap(), 6, |step| parts(step).iter().sum());
    follows(composed().with_reduction(SchedulerReduction::Avg).init().unwrap(), 6, |step| parts(step).iter().sum::<f64>() / 3.0);
}

fn sequential() -> SequentialLrSchedulerConfig {
    let schedulers =
        vec![LinearLrSchedulerConfig::new(0.1, 0.5, 4).into(), LrSchedulerConfig::Constant(0.5), ExponentialLrSchedulerConfig::new(0.5, 0.5).into()];
    SequentialLrSchedulerConfig::new(schedulers, vec![4, 6])
}

#[test]
fn sequential_rates_take_turns() {
    follows(sequential().init().unwrap(), 10, |step| match step {
        0..4 => 0.1 * (step + 1) as f64,
        4..6 => 0.5,
        _ => 0.5f64.powi(step as i32 - 5),
    });
    assert!(SequentialLrSchedulerConfig::new(vec![LrSchedulerConfig::Constant(0.5)], vec![1]).init().is_err());
    let two = vec![LrSchedulerConfig::Constant(0.5), LrSchedulerConfig::Constant(0.5), LrSchedulerConfig::Constant(0.5)];
    assert!(SequentialLrSchedulerConfig::new(two, vec![3, 3]).init().is_err());
}

#[test]
fn every_schedule_goes_on_from_its_record() {
    let configs: Vec<LrSchedulerConfig> = vec![
        0.5.into(),
        LinearLrSchedulerConfig::new(0.8, 0.2, 9).into(),
        CosineAnnealingLrSchedulerConfig::new(0.8, 9).into(),
        ExponentialLrSchedulerConfig::new(0.8, 0.9).into(),
        NoamLrSchedulerConfig::new(1.0).with_warmup_steps(6).into(),
        StepLrSchedulerConfig::new(0.8, 2).into(),
        composed().into(),
        sequential().into(),
    ];
    for config in configs {
        let module = ModuleLrSchedulerConfig::new(config.clone()).with_group(kiln_module::module::ParamGroup::from_path("a"), config);
        let mut scheduler = module.init().unwrap();
        for _ in 0..5 {
            scheduler.step();
        }
        let bytes = scheduler.to_record().into_bytes().unwrap();
        let mut loaded = module.init().unwrap().load_record(LrSchedulerRecord::from_bytes(bytes).unwrap());
        for _ in 0..5 {
            let (expected, found) = (scheduler.step(), loaded.step());
            assert_eq!(found.base(), expected.base(), "{module:?}");
            let id = kiln_module::module::ParamId::from(1);
            assert_eq!(found.lr_from_param(id, Some("a")), expected.lr_from_param(id, Some("a")));
        }
    }
}

#[test]
fn records_of_burn_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-module/tests/data/burnpack/sched_cosine.bpk");
    let record = LrSchedulerRecord::load(path).unwrap();
    // It was saved after five steps of this schedule.
    assert_eq!(record.scalar::<usize>("0.current_iter"), Some(4));
    let config = CosineAnnealingLrSchedulerConfig::new(0.1, 100);
    let mut loaded = config.init().unwrap().load_record(record);
    let mut fresh = config.init().unwrap();
    for _ in 0..5 {
        fresh.step();
    }
    assert_eq!(loaded.step().base(), fresh.step().base());
}

#[test]
fn configurations_survive_their_text() {
    use kiln_module::config::Config;
    let config: LrSchedulerConfig = composed().composed(composed()).into();
    let copy = LrSchedulerConfig::load_binary(config.to_string().as_bytes()).unwrap();
    assert_eq!(format!("{copy:?}"), format!("{config:?}"));
}
