//! Schedules that Burn lacks, against PyTorch's.

use kiln_optim::lr_scheduler::composed::{ComposedLrSchedulerConfig, SchedulerReduction};
use kiln_optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use kiln_optim::lr_scheduler::one_cycle::{Annealing, OneCycleLrSchedulerConfig};
use kiln_optim::lr_scheduler::plateau::{Goal, PlateauLrSchedulerConfig, Threshold};
use kiln_optim::lr_scheduler::polynomial::PolynomialLrSchedulerConfig;
use kiln_optim::lr_scheduler::warm_restarts::WarmRestartsLrSchedulerConfig;
use kiln_optim::lr_scheduler::{LrScheduler, LrSchedulerRecord};

use crate::golden::{self, Case};

fn cases(name: &str) -> Vec<Case> {
    let cases: Vec<Case> = golden::read(env!("CARGO_MANIFEST_DIR"), "schedule.txt").into_iter().filter(|case| case.name == name).collect();
    assert!(!cases.is_empty(), "no case `{name}`");
    cases
}

/// Follows PyTorch's rates, saved and loaded half-way.
#[track_caller]
fn follows(case: &Case, make: impl Fn() -> ModuleLrScheduler) {
    let expected = case.tensor("rates").values.clone();
    let mut scheduler = make();
    for (step, expected) in expected.iter().enumerate() {
        if step == expected_half(case) {
            let bytes = scheduler.to_record().into_bytes().unwrap();
            scheduler = make().load_record(LrSchedulerRecord::from_bytes(bytes).unwrap());
        }
        let found = scheduler.step().base();
        assert!((found - expected).abs() <= 1e-9 + 1e-7 * expected.abs(), "step {step}: {found}, expected {expected}");
    }
}

fn expected_half(case: &Case) -> usize {
    case.tensor("rates").values.len() / 2
}

#[test]
fn one_cycle_matches_pytorch() {
    for case in cases("one_cycle") {
        let mut config = OneCycleLrSchedulerConfig::new(case.number("max_lr"), case.size("num_iters"));
        if case.has_attr("warmup") {
            config = config.with_warmup(case.number("warmup"));
        }
        if case.has_attr("div_factor") {
            config = config.with_div_factor(case.number("div_factor")).with_final_div_factor(case.number("final_div_factor"));
        }
        if case.has_attr("linear") {
            config = config.with_annealing(Annealing::Linear);
        }
        let config = config.with_three_phase(case.has_attr("three_phase"));
        follows(&case, || config.init().unwrap());
    }
    let mut scheduler = OneCycleLrSchedulerConfig::new(0.5, 4).init().unwrap();
    let rates: Vec<f64> = (0..8).map(|_| scheduler.step().base()).collect();
    assert_eq!(rates[3..], [0.5 / 25.0 / 1e4; 5]);
}

#[test]
fn warm_restarts_match_pytorch() {
    for case in cases("warm_restarts") {
        let config = WarmRestartsLrSchedulerConfig::new(0.5, case.size("num_iters")).with_factor(case.size("factor"));
        let config = config.with_min_lr(case.number("min_lr"));
        follows(&case, || config.init().unwrap());
    }
}

#[test]
fn polynomial_rates_match_pytorch() {
    for case in cases("polynomial") {
        let config = PolynomialLrSchedulerConfig::new(0.5, case.size("num_iters")).with_power(case.number("power"));
        follows(&case, || config.init().unwrap());
    }
    let mut above = PolynomialLrSchedulerConfig::new(0.5, 4).with_power(2.0).with_final_lr(0.1).init().unwrap();
    for step in 0..6 {
        let expected = 0.1 + 0.4 * (1.0 - f64::from(step.min(4)) / 4.0f64).powi(2);
        assert!((above.step().base() - expected).abs() < 1e-12);
    }
}

#[test]
fn rates_fall_on_plateaus_as_pytorchs_do() {
    for case in cases("plateau") {
        let mut config = PlateauLrSchedulerConfig::new(0.5).with_patience(case.size("patience")).with_factor(case.number("factor"));
        if case.has_attr("cooldown") {
            config = config.with_cooldown(case.size("cooldown")).with_min_lr(case.number("min_lr"));
        }
        if case.has_attr("higher") {
            config = config.with_goal(Goal::Higher);
        }
        if case.has_attr("relative") {
            config = config.with_threshold(Threshold::Relative(case.number("relative")));
        }
        if case.has_attr("absolute") {
            config = config.with_threshold(Threshold::Absolute(case.number("absolute")));
        }
        let mut scheduler = config.init().unwrap();
        let rates = &case.tensor("rates").values;
        let mut falls = 0;
        for (step, (measure, expected)) in case.tensor("measures").values.iter().zip(rates).enumerate() {
            if step % 7 == 3 {
                let bytes = scheduler.to_record().into_bytes().unwrap();
                scheduler = config.init().unwrap();
                scheduler.load_record(LrSchedulerRecord::from_bytes(bytes).unwrap());
            }
            falls += usize::from(scheduler.observe(*measure));
            let found = scheduler.step();
            assert!((found - expected).abs() <= 1e-7 * expected, "step {step}: {found}, expected {expected}");
        }
        let expected = rates.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(falls == expected && falls > 0, "{falls} falls, {expected} expected");
    }
}

#[test]
fn a_measure_that_is_no_number_is_not_better() {
    let mut scheduler = PlateauLrSchedulerConfig::new(0.5).with_patience(1).init().unwrap();
    for measure in [f64::NAN, 3.0, f64::NAN, f64::NAN] {
        scheduler.observe(measure);
    }
    assert_eq!(scheduler.best(), Some(3.0));
    assert!((scheduler.step() - 0.05).abs() < 1e-12);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    assert!(OneCycleLrSchedulerConfig::new(0.0, 10).init().is_err());
    assert!(OneCycleLrSchedulerConfig::new(0.1, 1).init().is_err());
    assert!(OneCycleLrSchedulerConfig::new(0.1, 10).with_warmup(0.6).with_three_phase(true).init().is_err());
    assert!(WarmRestartsLrSchedulerConfig::new(0.1, 0).init().is_err());
    assert!(WarmRestartsLrSchedulerConfig::new(0.1, 3).with_factor(0).init().is_err());
    assert!(PolynomialLrSchedulerConfig::new(0.1, 3).with_power(0.0).init().is_err());
    assert!(PlateauLrSchedulerConfig::new(0.1).with_factor(1.0).init().is_err());
}

#[test]
fn they_can_be_put_into_others() {
    let cycle = OneCycleLrSchedulerConfig::new(0.5, 10).build().unwrap();
    let alone: Vec<f64> = (0..10)
        .map({
            let mut cycle = cycle.clone();
            move |_| cycle.step()
        })
        .collect();
    let mut grouped = ModuleLrScheduler::from(cycle).with_group(kiln_module::module::ParamGroup::from_path("head"), 0.25);
    let rates: Vec<f64> = (0..10).map(|_| grouped.step().base()).collect();
    assert_eq!(rates, alone);
    // A configuration is saved as any other.
    let config = ComposedLrSchedulerConfig::new().with_reduction(SchedulerReduction::Sum);
    assert!(config.init().is_ok());
    let text = OneCycleLrSchedulerConfig::new(0.5, 10).with_annealing(Annealing::Linear).to_string();
    assert!(text.contains("\"annealing\": \"Linear\""), "{text}");
}
