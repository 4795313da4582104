//! Saved and loaded optimizers go on as if nothing had happened.

use kiln_optim::decay::WeightDecayConfig;
use kiln_optim::momentum::MomentumConfig;
use kiln_optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, AdanConfig, LambConfig, LionConfig, ModuleOptimizer, OptimizerRecord, RmsPropConfig,
    SgdConfig,
};

use crate::problem::{Free, MATRIX, VECTOR, panic_of, stepped};

type Make = Box<dyn Fn() -> ModuleOptimizer>;

fn all() -> Vec<(&'static str, Make)> {
    vec![
        ("adam", Box::new(|| AdamConfig::new().with_amsgrad(true).init())),
        ("adamw", Box::new(|| AdamWConfig::new().init())),
        ("sgd", Box::new(|| SgdConfig::new().with_momentum(Some(MomentumConfig::new())).with_weight_decay(Some(WeightDecayConfig::new(0.1))).init())),
        ("rmsprop", Box::new(|| RmsPropConfig::new().with_centered(true).init())),
        ("adagrad", Box::new(|| AdaGradConfig::new().with_lr_decay(0.1).init())),
        ("adan", Box::new(|| AdanConfig::new().init())),
        ("lamb", Box::new(|| LambConfig::new().init())),
        ("lion", Box::new(|| LionConfig::new().init())),
        ("adafactor", Box::new(|| AdafactorConfig::new().init())),
    ]
}

#[test]
fn states_survive_their_record_exactly() {
    for (name, make) in all() {
        let mut optimizer = make();
        let model = stepped(&mut optimizer, Free::new(MATRIX, VECTOR), 0..3, 0.05);
        let bytes = optimizer.into_bytes().unwrap();
        let expected = stepped(&mut optimizer, model.clone(), 3..6, 0.05).values();
        let mut loaded = make().from_bytes(bytes).unwrap();
        // A record that no step has used yet is passed on.
        assert_eq!(loaded.to_record().len(), 2, "{name}");
        let found = stepped(&mut loaded, model, 3..6, 0.05).values();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn records_of_burn_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-module/tests/data/burnpack/optim_adamw.bpk");
    let record = OptimizerRecord::load(path).unwrap();
    assert_eq!(record.len(), 2);
    let text = format!("{record:?}");
    assert!(text.contains("momentum.moment_1") && text.contains("weight"), "{text}");
    // Written again, it is the same record.
    let again = OptimizerRecord::from_bytes(record.into_bytes().unwrap()).unwrap();
    assert_eq!(format!("{again:?}"), text);
}

#[test]
fn a_record_of_another_optimizer_is_refused() {
    let mut optimizer = LionConfig::new().init();
    let model = stepped(&mut optimizer, Free::new(MATRIX, VECTOR), 0..1, 0.05);
    let bytes = optimizer.into_bytes().unwrap();
    let message = panic_of(|| {
        let mut loaded = AdamConfig::new().init().from_bytes(bytes).unwrap();
        stepped(&mut loaded, model, 1..2, 0.05)
    });
    assert!(message.contains("`matrix`") && message.contains("does not fit"), "{message}");
}

#[test]
fn files_round_trip() {
    let path = std::env::temp_dir().join(format!("kiln-optim-{}.bpk", std::process::id()));
    let mut optimizer = AdamConfig::new().init();
    stepped(&mut optimizer, Free::new(MATRIX, VECTOR), 0..1, 0.05);
    optimizer.save(&path).unwrap();
    let loaded = AdamConfig::new().init().load(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(format!("{:?}", loaded.to_record()), format!("{:?}", optimizer.to_record()));
}

#[test]
fn other_files_are_refused() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-module/tests/data/burnpack/module_full.bpk");
    let error = OptimizerRecord::load(path).unwrap_err().to_string();
    assert!(error.contains("no optimizer record"), "{error}");
}
