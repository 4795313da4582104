//! A linear layer's product with quantized weights, beside the same with single precision.

use crate::harness::{Bench, Work};
use crate::random::floats;
use kiln::tensor::quantization::{QuantScheme, QuantValue, ScaleDtype};
use kiln::tensor::{Device, Tensor};

/// Rows of the input, and the weight `[inputs, outputs]`.
const PRODUCTS: [(&str, usize, [usize; 2]); 2] = [("gemv_1x4096x4096", 1, [4096, 4096]), ("gemm_512x512x512", 512, [512, 512])];

/// Runs the wanted workloads.
pub fn run(bench: &mut Bench, device: &Device) {
    let whole = |value| QuantScheme::default().with_value(value);
    let schemes = [
        ("f32", None),
        ("q8", Some(whole(QuantValue::Q8S))),
        ("q8_blocks32", Some(whole(QuantValue::Q8S).per_block([32], ScaleDtype::F32))),
        ("q4", Some(whole(QuantValue::Q4S))),
        ("q4_blocks32", Some(whole(QuantValue::Q4S).per_block([32], ScaleDtype::F32))),
    ];
    for (product, rows, [inputs, outputs]) in PRODUCTS {
        for (scheme, settings) in &schemes {
            let name = format!("quantized_{scheme}_{product}");
            if !bench.wants(&name) {
                continue;
            }
            let x: Tensor<2> = floats(device, [rows, inputs], 0);
            let weight: Tensor<2> = floats(device, [inputs, outputs], 1);
            let weight = match settings {
                Some(settings) => weight.quantize_dynamic(settings),
                None => weight,
            };
            device.sync().expect("the CPU does not fail");
            let flops = 2.0 * (rows * inputs * outputs) as f64;
            bench.run(&name, ((1e8 / flops) as usize).max(1), Work::Flops(flops), || {
                let y = x.clone().matmul(weight.clone());
                device.sync().expect("the CPU does not fail");
                drop(y);
            });
        }
    }
}
