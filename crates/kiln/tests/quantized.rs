//! Quantized modules: records that Burn 0.22.1 wrote, what layers compute with quantized weights, and training by updates of low rank.

use std::path::{Path, PathBuf};

use kiln::module::{Lora, Param, ParamGroup, QLora, Quantizer};
use kiln::nn::conv::{Conv2d, Conv2dConfig};
use kiln::nn::loss::{MseLoss, Reduction};
use kiln::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use kiln::optim::{AdamConfig, GradientsParams};
use kiln::prelude::*;
use kiln::store::{BurnpackStore, ModuleRecord, ModuleSnapshot};
use kiln::tensor::quantization::{Calibration, QuantScheme, QuantStore, QuantValue, ScaleDtype};
use kiln::tensor::{Bytes, DType, Distribution, Tolerance};

#[derive(Module, Debug)]
struct Net {
    embedding: Embedding,
    hidden: Linear,
    norm: LayerNorm,
    output: Linear,
}

impl Net {
    fn new(device: &Device) -> Self {
        Self {
            embedding: EmbeddingConfig::new(16, 32).init(device),
            hidden: LinearConfig::new(32, 64).init(device),
            norm: LayerNormConfig::new(64).init(device),
            output: LinearConfig::new(64, 8).init(device),
        }
    }

    fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let x = self.hidden.forward(self.embedding.forward(tokens));
        self.output.forward(kiln::tensor::activation::gelu(self.norm.forward(x)))
    }
}

fn tokens(device: &Device) -> Tensor<2, Int> {
    Tensor::from_data([[1, 5, 9], [15, 0, 7]], device)
}

fn scheme(value: QuantValue) -> QuantScheme {
    QuantScheme::default().with_value(value).per_block([8], ScaleDtype::F16)
}

fn quantizer(value: QuantValue) -> Quantizer {
    Quantizer::new(Calibration::MinMax, scheme(value))
}

fn is_quantized<const D: usize>(param: &Param<Tensor<D>>) -> bool {
    matches!(param.base().dtype(), DType::QFloat(_))
}

#[test]
fn records_of_burn_load_and_are_saved_byte_for_byte() {
    let device = Device::default();
    let native = QuantScheme::default().with_store(QuantStore::Native);
    // Written by `compat/quantization`.
    let samples = [
        ("quantized_q8", native.per_tensor(ScaleDtype::F32)),
        ("quantized_q4", native.with_value(QuantValue::Q4S).per_block([2, 2], ScaleDtype::F16)),
        ("quantized_two_levels", native.per_block([4], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32)),
        ("quantized_ternary", native.with_value(QuantValue::Q2S).per_block([2], ScaleDtype::UE8M0)),
    ];
    let values: Vec<f32> = (0..24).map(|i| (i as f32 * 37.0 % 24.0 - 11.0) * 0.25).collect();
    for (name, scheme) in samples {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/burn").join(format!("{name}.bpk"));
        let blank = LinearConfig::new(6, 4).with_bias(false).init(&device);
        let loaded = blank.clone().try_load_file(&file).expect("readable");
        assert_eq!(loaded.weight.val().dtype(), DType::QFloat(scheme), "{name}");
        // The same weights quantized here.
        let own = Linear { weight: Param::from_data(TensorData::new(values.clone(), [6, 4]), &device), ..blank };
        let own = own.quantize_weights(&mut Quantizer::new(Calibration::MinMax, scheme));
        assert_eq!(own.weight.val().into_data(), loaded.weight.val().into_data(), "{name}");
        let written = loaded.into_record().into_bytes().expect("writable");
        assert_eq!(written[..], std::fs::read(&file).expect("readable")[..], "{name}");
    }
}

#[test]
fn layers_compute_with_quantized_weights() {
    let device = Device::default();
    let model = Net::new(&device);
    let exact = model.forward(tokens(&device)).into_data();
    for (value, bound) in [(QuantValue::Q8S, 0.03), (QuantValue::E4M3, 0.12), (QuantValue::Q4S, 0.6)] {
        let small = model.clone().quantize_weights(&mut quantizer(value));
        assert!(is_quantized(&small.embedding.weight) && is_quantized(&small.hidden.weight) && is_quantized(&small.norm.gamma));
        assert_eq!(small.num_params(), model.num_params());
        let found = small.forward(tokens(&device));
        assert_eq!(found.dtype(), DType::F32);
        found.into_data().assert_approx_eq::<f32>(&exact, Tolerance::absolute(bound));
        // What is computed is what the codes stand for.
        let floats = small.clone().map(&mut Dequantizer);
        assert!(!is_quantized(&floats.hidden.weight));
        let same = floats.forward(tokens(&device)).into_data();
        small.forward(tokens(&device)).into_data().assert_approx_eq::<f32>(&same, Tolerance::rel_abs(1e-5, 1e-5));
    }
    let conv: Conv2d = Conv2dConfig::new([4, 8], [3, 3]).init(&device);
    let x = Tensor::<4>::random([2, 4, 6, 6], Distribution::Default, &device);
    let small = conv.clone().quantize_weights(&mut Quantizer::new(Calibration::MinMax, QuantScheme::default()));
    small.forward(x.clone()).into_data().assert_approx_eq::<f32>(&conv.forward(x).into_data(), Tolerance::absolute(0.02));
}

struct Dequantizer;

impl kiln::module::ModuleMapper for Dequantizer {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|tensor| tensor.dequantize())
    }
}

#[test]
fn groups_choose_what_is_quantized() {
    let device = Device::default();
    let model = Net::new(&device);
    let mut quantizer = quantizer(QuantValue::Q4F);
    let some = model.clone().quantize_weights_group(&mut quantizer, ParamGroup::from_path("hidden.weight"));
    assert!(is_quantized(&some.hidden.weight) && !is_quantized(some.hidden.bias.as_ref().unwrap()) && !is_quantized(&some.output.weight));
    quantizer.set_param_group(ParamGroup::from_predicate("weight").exclude(ParamGroup::from_path("output")));
    let some = model.clone().quantize_weights(&mut quantizer);
    assert!(is_quantized(&some.embedding.weight) && is_quantized(&some.hidden.weight) && !is_quantized(&some.output.weight));
    // The quantized parameters of a model on an autodiff device are not trained; the others are.
    let trained = Net::new(&device.autodiff()).quantize_weights(&mut quantizer);
    assert!(!trained.hidden.weight.is_require_grad() && trained.output.weight.is_require_grad());
    let wide = Quantizer::new(Calibration::MinMax, QuantScheme::default().per_block([32], ScaleDtype::F16));
    let message =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.quantize_weights(&mut { wide }))).expect_err("8 is no multiple of 32");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(message.contains("blocks of [32] do not divide parameter `output.weight` of shape [64, 8]"), "{message}");
}

#[test]
fn a_quantized_module_is_saved_and_loaded_bit_for_bit() {
    let device = Device::default();
    let folder = std::env::temp_dir().join(format!("kiln-quantized-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let _removed = Scratch(folder.clone());
    for store in [QuantStore::Native, QuantStore::PackedU32(0), QuantStore::PackedU32(1)] {
        let scheme = scheme(QuantValue::Q4S).with_store(store);
        let model = Net::new(&device).quantize_weights_group(&mut Quantizer::new(Calibration::MinMax, scheme), ParamGroup::from_predicate("weight"));
        let expected = model.forward(tokens(&device)).into_data();
        let file = folder.join("model.bpk");
        model.clone().save_file(&file).expect("writable");
        let loaded = Net::new(&device).try_load_file(&file).expect("fits");
        assert_eq!(loaded.hidden.weight.val().into_data(), model.hidden.weight.val().into_data());
        assert_eq!(loaded.forward(tokens(&device)).into_data(), expected);
        // A cast to the module's types leaves quantized values alone, and quantizes none.
        let record = ModuleRecord::load(&file).expect("readable").cast_to_module_dtype();
        assert!(is_quantized(&Net::new(&device).load_record(record).hidden.weight));
        let record = Net::new(&device).into_record().cast_to_module_dtype();
        assert!(!is_quantized(&loaded.load_record(record).hidden.weight));
        // The same by a store.
        let mut writer = BurnpackStore::from_file(folder.join("store.bpk")).overwrite(true);
        model.save_into(&mut writer).expect("writable");
        let mut fresh = Net::new(&device);
        let result = fresh.load_from(&mut BurnpackStore::from_file(folder.join("store.bpk"))).expect("fits");
        assert!(result.is_success(), "{result}");
        assert_eq!(fresh.forward(tokens(&device)).into_data(), expected);
    }
}

#[test]
fn damaged_quantized_records_are_refused() {
    let device = Device::default();
    let scheme = scheme(QuantValue::Q8S);
    let linear = LinearConfig::new(4, 8).with_bias(false).init(&device);
    let refused = |bytes: Vec<u8>, shape: [usize; 2], scheme: QuantScheme| {
        let tensor = kiln::store::burnpack::PackTensor::new("weight".into(), DType::QFloat(scheme), shape, None, Bytes::from_bytes_vec(bytes));
        linear.clone().try_load_record(ModuleRecord::from_tensors(vec![tensor])).is_err()
    };
    assert!(!refused(vec![0; 32 + 8], [4, 8], scheme));
    assert!(refused(vec![0; 32 + 7], [4, 8], scheme));
    assert!(refused(vec![0; 32 + 8], [4, 8], scheme.per_block([3], ScaleDtype::F16)));
    assert!(refused(vec![0; 32 + 8], [4, 8], scheme.per_block([1, 1, 2, 8], ScaleDtype::F16)));
    assert!(refused(vec![0; 32 + 9], [4, 8], scheme.per_tensor(ScaleDtype::UE8M0)));
    assert!(refused(vec![0; 40], [usize::MAX, 8], scheme));
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // The folder may be gone already; nothing depends on it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn qlora_trains_the_updates_of_a_quantized_model() {
    let device = Device::default();
    device.seed(7);
    let device = device.autodiff();
    let lora = Lora::new(4, 8.0).set_param_group(ParamGroup::from_any_predicates(vec!["hidden.weight", "output.weight"]));
    let mut quantizer = quantizer(QuantValue::Q4S);
    quantizer.set_param_group(ParamGroup::from_predicate("weight"));
    let mut model = Net::new(&device).no_grad().apply_qlora(QLora::new(lora, quantizer));
    assert!(is_quantized(&model.hidden.weight) && is_quantized(&model.output.weight) && is_quantized(&model.embedding.weight));
    assert!(model.embedding.weight.adapter().is_none());
    let base = model.hidden.weight.base().into_data();
    let target = Tensor::<3>::random([2, 3, 8], Distribution::Normal(0.0, 1.0), &device);
    let mut optimizer = AdamConfig::new().init();
    let mut losses = Vec::new();
    for _ in 0..200 {
        let loss = MseLoss::new().forward(model.forward(tokens(&device)), target.clone(), Reduction::Mean);
        losses.push(loss.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(1e-2, model, gradients);
    }
    assert!(losses[199] < 0.02 * losses[0], "{} -> {}", losses[0], losses[199]);
    assert_eq!(model.hidden.weight.base().into_data(), base);
    // Saved, loaded into a model prepared alike, it computes the same.
    let record = model.clone().into_record().into_bytes().expect("writable");
    let mut quantizer = self::quantizer(QuantValue::Q4S);
    quantizer.set_param_group(ParamGroup::from_predicate("weight"));
    let lora = Lora::new(4, 8.0).set_param_group(ParamGroup::from_any_predicates(vec!["hidden.weight", "output.weight"]));
    let fresh = Net::new(&device).apply_qlora(QLora::new(lora, quantizer));
    let fresh = fresh.try_load_record(ModuleRecord::from_bytes(record).expect("readable")).expect("fits");
    assert_eq!(fresh.forward(tokens(&device)).into_data(), model.forward(tokens(&device)).into_data());
    // For inference the updates stay floats beside the codes.
    let valid = model.valid();
    assert!(is_quantized(&valid.hidden.weight));
    assert!(!valid.forward(tokens(&device.without_autodiff())).is_tracked());
}
