//! Saved and loaded optimizers go on as if nothing had happened.

use kiln_module::module::{Module, Param, ParamGroup};
use kiln_optim::decay::WeightDecayConfig;
use kiln_optim::lr_scheduler::LrSchedulerRecord;
use kiln_optim::lr_scheduler::composed::ComposedLrSchedulerConfig;
use kiln_optim::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use kiln_optim::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
use kiln_optim::lr_scheduler::linear::LinearLrSchedulerConfig;
use kiln_optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use kiln_optim::lr_scheduler::noam::NoamLrSchedulerConfig;
use kiln_optim::lr_scheduler::step::StepLrSchedulerConfig;
use kiln_optim::momentum::MomentumConfig;
use kiln_optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, AdanConfig, GradientsParams, LambConfig, LionConfig, ModuleOptimizer, MuonConfig,
    OptimizerRecord, RmsPropConfig, SgdConfig,
};

use kiln_tensor::Tensor;

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
        ("muon", Box::new(|| MuonConfig::new().init().with_group(ParamGroup::from_path("vector"), SgdConfig::new().build(), None))),
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
        assert_eq!(loaded.to_record().len(), if name == "muon" { 1 } else { 2 }, "{name}");
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

/// The names of Burn 0.21's recorders for one optimizer: AdamW, two steps of a linear layer of three inputs and two outputs.
const LEGACY: [&str; 3] = ["optim_adamw_full.mpk", "optim_adamw_full.json", "optim_adamw_full.bin"];

#[test]
fn records_of_burn_0_21_go_on_in_every_format() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../kiln-module/tests/data/legacy/");
    let mut results = Vec::new();
    for name in LEGACY {
        let record = OptimizerRecord::load(format!("{folder}{name}")).unwrap();
        assert_eq!(record.len(), 2, "{name}");
        let bytes = kiln_tensor::Bytes::from_bytes_vec(std::fs::read(format!("{folder}{name}")).unwrap());
        assert_eq!(format!("{:?}", OptimizerRecord::from_bytes(bytes).unwrap()), format!("{record:?}"));
        // The ids are those of the weight, a matrix, and the bias.
        let text = format!("{record:?}");
        let ids: Vec<kiln_module::module::ParamId> =
            text.split('"').filter_map(|part| part.parse().ok()).filter(|id: &kiln_module::module::ParamId| text.contains(&id.to_string())).collect();
        let matrix = Tensor::<2>::from_floats([[0.5, 1.0], [1.5, -2.0], [0.25, 3.0]], &crate::problem::device());
        let vector = Tensor::<1>::from_floats([0.5, -1.0], &crate::problem::device());
        let mut outcome = Vec::new();
        for (id, other) in [(ids[0], ids[ids.len() - 1]), (ids[ids.len() - 1], ids[0])] {
            let pair = Pair {
                matrix: Param::initialized(id, matrix.clone().require_grad()),
                vector: Param::initialized(other, vector.clone().require_grad()),
            };
            let mut optimizer = AdamWConfig::new().init().load_record(record.clone());
            let mut gradients = GradientsParams::new();
            gradients.register(pair.matrix.id, matrix.clone().without_autodiff());
            gradients.register(pair.vector.id, vector.clone().without_autodiff());
            // Only one of the two orders has the ranks right.
            let step = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| optimizer.step(0.1, pair, gradients)));
            if let Ok(pair) = step {
                outcome = pair.matrix.val().try_to_vec_as::<f32>().unwrap();
                let again = format!("{:?}", optimizer.to_record());
                assert!(again.contains("UInt(3)"), "the third step: {again}");
            }
        }
        assert_eq!(outcome.len(), 6, "{name}: the state fits neither order");
        results.push(outcome);
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
}

#[derive(Module, Debug)]
struct Pair {
    matrix: Param<Tensor<2>>,
    vector: Param<Tensor<1>>,
}

/// A scheduler's record of Burn 0.21 as JSON.
fn legacy_json(item: &str) -> LrSchedulerRecord {
    let text = format!("{{\"metadata\": {{}}, \"item\": {item}, \"_b\": null}}");
    LrSchedulerRecord::from_bytes(kiln_tensor::Bytes::from_bytes_vec(text.into_bytes())).unwrap()
}

/// The same number in bincode.
fn legacy_bincode(item: &[u8]) -> LrSchedulerRecord {
    let texts = ["f32", "i32", "burn_core::record::file::BinFileRecorder", "0.21.0", "FullPrecisionSettings"];
    let mut bytes: Vec<u8> = texts.iter().flat_map(|text| [&[text.len() as u8], text.as_bytes()].concat()).collect();
    bytes.extend(item);
    LrSchedulerRecord::from_bytes(kiln_tensor::Bytes::from_bytes_vec(bytes)).unwrap()
}

#[test]
fn schedulers_go_on_from_burn_0_21() {
    let rates = |scheduler: ModuleLrScheduler, skip: usize| {
        let mut scheduler = scheduler;
        (0..skip).for_each(|_| drop(scheduler.step()));
        (0..4).map(|_| scheduler.step().base()).collect::<Vec<f64>>()
    };
    let cosine = || CosineAnnealingLrSchedulerConfig::new(0.1, 100).init().unwrap();
    let noam = || NoamLrSchedulerConfig::new(0.5).init().unwrap();
    let linear = || LinearLrSchedulerConfig::new(0.9, 0.1, 10).init().unwrap();
    let exponential = || ExponentialLrSchedulerConfig::new(0.5, 0.5).init().unwrap();
    let steps = || StepLrSchedulerConfig::new(0.5, 2).init().unwrap();
    // Five steps were taken; Burn counts the cosine's from zero, the linear one's down from eleven.
    for record in [legacy_json("4"), legacy_bincode(&[4])] {
        assert_eq!(rates(cosine().load_record(record), 0), rates(cosine(), 5));
    }
    for record in [legacy_json("5"), legacy_bincode(&[5])] {
        assert_eq!(rates(noam().load_record(record), 0), rates(noam(), 5));
    }
    for record in [legacy_json("6"), legacy_bincode(&[6])] {
        assert_eq!(rates(linear().load_record(record), 0), rates(linear(), 5));
    }
    // 0.5 halved four times, after which the next is half of that.
    for record in [legacy_json("0.03125"), legacy_bincode(&0.03125f64.to_le_bytes())] {
        assert_eq!(rates(exponential().load_record(record), 0), rates(exponential(), 5));
    }
    for record in [legacy_json("4"), legacy_bincode(&[8])] {
        assert_eq!(rates(steps().load_record(record), 0), rates(steps(), 5));
    }
    let composed = || {
        let config = ComposedLrSchedulerConfig::new().linear(LinearLrSchedulerConfig::new(0.9, 0.1, 10));
        config.exponential(ExponentialLrSchedulerConfig::new(0.5, 0.5)).init().unwrap()
    };
    let record = legacy_json("{\"schedulers\": [{\"Linear\": 6}, {\"Exponential\": 0.03125}]}");
    assert_eq!(rates(composed().load_record(record), 0), rates(composed(), 5));
    // A constant has nothing to record.
    assert_eq!(rates(ModuleLrScheduler::from(0.5).load_record(legacy_json("null")), 0), [0.5; 4]);
}
