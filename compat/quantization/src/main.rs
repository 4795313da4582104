//! Quantizes a fixed tensor with Burn 0.22.1 by many schemes, for the tests of Kiln's tensors, and saves modules with quantized weights for those of the facade.

use burn::module::{Module, Param, Quantizer};
use burn::nn::LinearConfig;
use burn::tensor::quantization::{Calibration, QuantScheme, QuantStore, QuantValue, ScaleDtype};
use burn::tensor::{Device, Tensor, TensorData};

fn main() {
    let device = Device::default();
    let native = QuantScheme::default().with_store(QuantStore::Native);
    let levels = [
        native.per_tensor(ScaleDtype::F32),
        native.per_tensor(ScaleDtype::F16),
        native.per_block([4], ScaleDtype::F32),
        native.per_block([2, 4], ScaleDtype::BF16),
        native.per_block([8], ScaleDtype::UE8M0),
        native.per_block([8], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32),
    ];
    let values: Vec<f32> = (0..32).map(|i| ((i * 37 % 32) as f32 - 15.0) * 0.11).collect();
    let x = Tensor::<2>::from_data(TensorData::new(values, [4, 8]), &device);
    for value in [QuantValue::Q8F, QuantValue::Q8S, QuantValue::Q4F, QuantValue::Q4S, QuantValue::Q2F, QuantValue::Q2S] {
        for (level, scheme) in levels.iter().enumerate() {
            let q = x.clone().quantize_dynamic(&scheme.with_value(value));
            let bytes: String = q.clone().into_data().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            let back: Vec<String> = q.dequantize().into_data().iter::<f32>().map(|value| format!("{value:?}")).collect();
            println!("{value:?} {level} {bytes} {}", back.join(" "));
        }
    }
    let Some(folder) = std::env::args().nth(1) else { return };
    let modules = [
        ("quantized_q8", native.per_tensor(ScaleDtype::F32)),
        ("quantized_q4", native.with_value(QuantValue::Q4S).per_block([2, 2], ScaleDtype::F16)),
        ("quantized_two_levels", native.per_block([4], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32)),
        ("quantized_ternary", native.with_value(QuantValue::Q2S).per_block([2], ScaleDtype::UE8M0)),
    ];
    let values: Vec<f32> = (0..24).map(|i| (i as f32 * 37.0 % 24.0 - 11.0) * 0.25).collect();
    for (name, scheme) in modules {
        let mut linear = LinearConfig::new(6, 4).with_bias(false).init(&device);
        linear.weight = Param::from_data(TensorData::new(values.clone(), [6, 4]), &device);
        let linear = linear.quantize_weights(&mut Quantizer::new(Calibration::MinMax, scheme));
        linear.save_file(format!("{folder}/{name}")).expect("writable");
    }
}
