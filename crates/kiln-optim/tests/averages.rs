//! Moving averages of weights and training in half precision.

use kiln_module::module::{Module, Param, ParamGroup, ParamId, RunningState};
use kiln_optim::lr_scheduler::LrSchedulerRecord;
use kiln_optim::mixed_precision::{LossScalerConfig, MixedPrecision};
use kiln_optim::{AdamConfig, EmaConfig, GradientsParams, SgdConfig};
use kiln_tensor::{DType, Device, FloatDType, Int, Tensor, TensorData};

use crate::golden::{self, Case};
use crate::problem::{close, device};

fn cases(name: &str) -> Vec<Case> {
    let cases: Vec<Case> = golden::read(env!("CARGO_MANIFEST_DIR"), "average.txt").into_iter().filter(|case| case.name == name).collect();
    assert!(!cases.is_empty(), "no case `{name}`");
    cases
}

#[derive(Module, Debug)]
struct One {
    weight: Param<Tensor<2>>,
}

#[test]
fn averages_match_pytorch() {
    for case in cases("ema") {
        let start = case.tensor("param");
        let weight = Tensor::from_data(TensorData::new(start.f32(), start.shape.clone()), &device());
        let mut one = One { weight: Param::from_tensor(weight) };
        let mut average = EmaConfig::new().with_decay(case.number("decay")).init(&one);
        let mut optimizer = SgdConfig::new().init();
        let (grads, after) = (case.tensor("grads"), case.tensor("after"));
        for (grad, after) in grads.f32().chunks(6).zip(after.values.chunks(6)) {
            let mut gradients = GradientsParams::new();
            gradients.register(one.weight.id, Tensor::<2>::from_data(TensorData::new(grad.to_vec(), [2, 3]), &Device::default()));
            one = optimizer.step(0.1, one, gradients);
            average.update(&one);
            close(&average.module().weight.val().try_to_vec_as::<f32>().unwrap(), after, 1e-6);
        }
        assert_eq!(average.updates(), 10);
    }
}

/// A module with every kind of value.
#[derive(Module, Debug)]
struct Mixed {
    weight: Param<Tensor<1>>,
    frozen: Param<Tensor<1>>,
    state: RunningState<Tensor<1>>,
    count: Param<Tensor<1, Int>>,
}

fn mixed(value: f32, device: &Device) -> Mixed {
    let at = |id: u64, trained: bool| {
        let tensor = Tensor::from_floats([value], device);
        Param::initialized(ParamId::from(id), tensor).set_require_grad(trained)
    };
    Mixed {
        weight: at(1, true),
        frozen: at(2, false),
        state: RunningState::with_id(ParamId::from(3), Tensor::from_floats([value], device)),
        count: Param::initialized(ParamId::from(4), Tensor::from_ints([value as i32], device)),
    }
}

#[test]
fn only_what_is_trained_is_averaged() {
    for device in [Device::default(), device()] {
        let mut average = EmaConfig::new().with_decay(0.5).init(&mixed(0.0, &device));
        average.update(&mixed(8.0, &device));
        let found = average.module();
        let value = |tensor: Tensor<1>| tensor.into_scalar::<f32>();
        assert_eq!([value(found.weight.val()), value(found.frozen.val()), value(found.state.value())], [4.0, 8.0, 8.0]);
        assert_eq!(found.count.val().into_scalar::<i32>(), 8);
        assert!(!found.weight.val().is_autodiff());
    }
}

#[test]
fn a_warm_up_forgets_the_start_soon() {
    let device = Device::default();
    let mut average = EmaConfig::new().with_decay(0.999).with_warmup(true).init(&mixed(0.0, &device));
    let mut expected = 0.0;
    for step in 0..5 {
        let decay = (1.0 + f64::from(step)) / (10.0 + f64::from(step));
        expected = decay * expected + (1.0 - decay) * 2.0;
        average.update(&mixed(2.0, &device));
    }
    let found = average.module().weight.val().into_scalar::<f32>();
    assert!((f64::from(found) - expected).abs() < 1e-6, "{found}, expected {expected}");
    let resumed = EmaConfig::new().with_warmup(true).init(&mixed(0.0, &device)).resume(average.module().clone(), average.updates());
    assert_eq!((resumed.updates(), resumed.into_module().weight.val().into_scalar::<f32>()), (5, found));
}

#[test]
fn the_scale_of_the_loss_follows_pytorchs() {
    for case in cases("scaler") {
        let config = LossScalerConfig::new().with_initial_scale(1024.0).with_growth_factor(4.0).with_backoff_factor(0.25).with_growth_interval(3);
        let mut scaler = config.init();
        let mut optimizer = SgdConfig::new().init();
        let mut model = Vector { weight: Param::from_tensor(Tensor::zeros([2], &device())) };
        let scales = &case.tensor("scales").values;
        for (step, (finite, weights)) in case.attr("finite").iter().zip(case.tensor("weights").values.chunks(2)).enumerate() {
            let values = [1.0, if *finite == 1.0 { 2.0 } else { f32::INFINITY }];
            let loss = (model.weight.val() * Tensor::from_floats(values, &device())).sum();
            let gradients = GradientsParams::from_grads(scaler.scale(loss).backward(), &model);
            model = scaler.step(&mut optimizer, 0.5, model, gradients);
            close(&[scaler.state().scale as f32], &[scales[step]], 0.0);
            close(&model.weight.val().try_to_vec_as::<f32>().unwrap(), weights, 0.0);
            let bytes = scaler.to_record().into_bytes().unwrap();
            let loaded = config.init().load_record(LrSchedulerRecord::from_bytes(bytes).unwrap());
            assert_eq!(loaded.state(), scaler.state());
        }
    }
}

#[derive(Module, Debug)]
struct Vector {
    weight: Param<Tensor<1>>,
}

#[derive(Module, Debug)]
struct Layer {
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Layer {
    fn forward(&self, input: Tensor<2>) -> Tensor<2> {
        input.matmul(self.weight.val()) + self.bias.val().unsqueeze()
    }
}

fn layer() -> Layer {
    Layer { weight: Param::from_data([[0.5, -0.25], [1.0, 0.75]], &device()), bias: Param::from_data([0.125, -0.5], &device()) }
}

#[test]
fn half_precision_learns_as_single_precision_does() {
    for dtype in [FloatDType::F16, FloatDType::BF16] {
        let (mut whole, mut half) = (layer(), layer().apply_reparameterization(MixedPrecision::new(dtype)));
        let (mut first, mut second) = (AdamConfig::new().init(), AdamConfig::new().init());
        let mut scaler = LossScalerConfig::new().with_initial_scale(256.0).init();
        let input = Tensor::<2>::from_floats([[1.0, 2.0], [-0.5, 0.25], [0.75, -1.0]], &device());
        for _ in 0..20 {
            let loss = whole.forward(input.clone()).square().mean();
            let gradients = GradientsParams::from_grads(loss.backward(), &whole);
            whole = first.step(0.02, whole, gradients);
            let output = half.forward(input.clone().cast(dtype));
            assert_eq!(output.dtype(), DType::from(dtype));
            let loss = output.cast(FloatDType::F32).square().mean();
            let gradients = GradientsParams::from_grads(scaler.scale(loss).backward(), &half);
            assert_eq!(gradients.get::<2>(half.weight.id).unwrap().dtype(), DType::F32);
            half = scaler.step(&mut second, 0.02, half, gradients);
        }
        let difference: f32 = (whole.weight.val() - half.weight.base()).abs().max().into_scalar();
        let moved: f32 = (layer().weight.val() - half.weight.base()).abs().max().into_scalar();
        assert!(difference < 0.02 && moved > 0.1, "{dtype:?}: differs by {difference}, moved by {moved}");
    }
}

#[test]
fn a_small_gradient_survives_by_the_scale() {
    // 2^-26 is nothing in half precision; times 2^16 it is something.
    let one = One { weight: Param::from_tensor(Tensor::ones([1, 1], &device())) };
    let one = one.apply_reparameterization(MixedPrecision::new(FloatDType::F16));
    let small = 2.0f64.powi(-26);
    let gradient = |scale: f64| {
        let output = one.weight.val() * 1.0;
        let loss = output.sum().cast(FloatDType::F32) * (small * scale);
        let gradients = GradientsParams::from_grads(loss.backward(), &one);
        f64::from(gradients.get::<2>(one.weight.id).unwrap().into_scalar::<f32>()) / scale
    };
    assert_eq!(gradient(1.0), 0.0);
    assert_eq!(gradient(65536.0), small);
}

#[test]
fn weights_of_a_group_are_cast_and_statistics_are_not() {
    let device = device();
    let model = mixed(1.0, &device).apply_reparameterization(MixedPrecision::new(FloatDType::BF16).with_group(ParamGroup::from_path("weight")));
    assert_eq!(model.weight.val().dtype(), DType::BF16);
    assert_eq!((model.weight.base().dtype(), model.state.value().dtype(), model.frozen.val().dtype()), (DType::F32, DType::F32, DType::F32));
    // Records hold the weights as they are kept.
    let record = model.into_record();
    assert!(record.tensors().iter().all(|tensor| tensor.dtype != DType::BF16));
    assert_eq!(record.len(), 4);
}
