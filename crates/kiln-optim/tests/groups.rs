//! Optimizers, learning rates and devices by group.

use kiln_module::module::{Module, ParamGroup};
use kiln_optim::lr_scheduler::constant::ConstantLr;
use kiln_optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use kiln_optim::{AdamConfig, GradientsParams, MultiGradientsParams, MuonConfig, SgdConfig};
use kiln_tensor::{Device, Tensor};

use crate::problem::{Free, MATRIX, VECTOR, close, gradients, panic_of, stepped};

#[test]
fn each_group_has_its_optimizer() {
    let alone = |mut optimizer: kiln_optim::ModuleOptimizer| stepped(&mut optimizer, Free::new(MATRIX, VECTOR), 0..3, 0.1).values();
    let sgd = alone(SgdConfig::new().init());
    let adam = alone(AdamConfig::new().init());
    let both = alone(SgdConfig::new().init().with_group(ParamGroup::from_path("vector"), AdamConfig::new().build(), None));
    assert_eq!(both[..6], sgd[..6]);
    assert_eq!(both[6..], adam[6..]);
    // An optimizer of matrices works beside one for the rest.
    let muon = alone(MuonConfig::new().init().with_group(ParamGroup::from_regex("^vec").unwrap(), AdamConfig::new().build(), None));
    assert_eq!(muon[6..], adam[6..]);
}

#[test]
fn each_group_has_its_learning_rate() {
    let mut scheduler = ModuleLrScheduler::new(ConstantLr::new(0.1)).with_group(ParamGroup::from_path("vector"), 0.0);
    let model = Free::new(MATRIX, VECTOR);
    let gradients = gradients(0, &model);
    let before = model.values();
    let after = SgdConfig::new().init().step(scheduler.step(), model, gradients).values();
    assert_ne!(before[..6], after[..6]);
    assert_eq!(before[6..], after[6..]);
}

#[test]
fn gradients_of_several_devices_are_summed() {
    let model = Free::new([[0.0; 3]; 2], [0.0; 2]);
    let plain = Device::default();
    let part = |value: f32| {
        let mut gradients = GradientsParams::new();
        gradients.register(model.vector.id, Tensor::<1>::full([2], value, &plain));
        gradients
    };
    let grads = MultiGradientsParams { grads: vec![(part(1.0), plain.clone()), (part(2.0), plain.clone())] };
    let stepped = SgdConfig::new().init().step_multi(1.0, model.clone(), grads);
    close(&stepped.values()[6..], &[-3.0, -3.0], 1e-6);
}

#[test]
fn a_gradient_of_another_shape_is_refused() {
    let message = panic_of(|| {
        let model = Free::new(MATRIX, VECTOR);
        let mut gradients = GradientsParams::new();
        gradients.register(model.vector.id, Tensor::<1>::zeros([3], &Device::default()));
        SgdConfig::new().init().step(0.1, model, gradients)
    });
    assert_eq!(message, "optimizer step: parameter `vector` has shape [2], its gradient [3]");
}

#[test]
fn only_listed_parameters_give_gradients() {
    let model = Free::new(MATRIX, VECTOR);
    let mut gradients = (model.matrix.val().sum() + model.vector.val().sum()).backward();
    let some = GradientsParams::from_params(&mut gradients, &model, &[model.vector.id]);
    assert_eq!(some.len(), 1);
    assert!(some.get::<1>(model.vector.id).is_some());
    let rest = GradientsParams::from_grads(gradients, &model);
    assert_eq!(rest.len(), 1);
    assert!(rest.get::<2>(model.matrix.id).is_some());
}

#[test]
fn frozen_parameters_are_not_stepped() {
    let model = Free::new(MATRIX, VECTOR).freeze_group(ParamGroup::from_path("matrix"));
    let gradients = (model.matrix.val().sum() + model.vector.val().sum()).backward();
    let gradients = GradientsParams::from_grads(gradients, &model);
    assert_eq!(gradients.len(), 1);
    let model = AdamConfig::new().init().step(0.1, model, gradients);
    close(&model.values()[..6], &MATRIX.as_flattened().iter().map(|value| f64::from(*value)).collect::<Vec<f64>>(), 0.0);
}
