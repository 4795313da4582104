//! Quantized tensors: their values against Burn 0.22.1, PyTorch and a scalar formula, their bytes, and how they meet other operations.

use std::sync::Arc;

use kiln_ir::Runtime;
use kiln_tensor::module::linear;
use kiln_tensor::ops::IndexingUpdateOp;
use kiln_tensor::quantization::*;
use kiln_tensor::{DType, Device, Distribution, FloatDType, HostRuntime, Int, Shape, Tensor, TensorData, Tolerance};

use crate::check_panics;

const VALUES: [QuantValue; 9] = [
    QuantValue::Q8F,
    QuantValue::Q8S,
    QuantValue::Q4F,
    QuantValue::Q4S,
    QuantValue::Q2F,
    QuantValue::Q2S,
    QuantValue::E4M3,
    QuantValue::E5M2,
    QuantValue::E2M1,
];
const STORES: [QuantStore; 4] = [QuantStore::Native, QuantStore::PackedNative(0), QuantStore::PackedU32(0), QuantStore::PackedU32(1)];

/// Levels of scales, for tensors whose last two sizes are multiples of 2 and 4.
fn levels() -> Vec<QuantScheme> {
    let scheme = QuantScheme::default();
    vec![
        scheme,
        scheme.per_tensor(ScaleDtype::F16),
        scheme.per_tensor(ScaleDtype::BF16),
        scheme.per_tensor(ScaleDtype::UE8M0),
        scheme.per_block([4], ScaleDtype::F32),
        scheme.per_block([2, 4], ScaleDtype::BF16),
        scheme.per_block([2, 1], ScaleDtype::F16),
        scheme.per_block([4], ScaleDtype::UE8M0),
        scheme.per_block([4], ScaleDtype::UE4M3),
        scheme.per_block([4], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32),
        scheme.per_block([2, 2], ScaleDtype::F16).per_tensor(ScaleDtype::F32),
    ]
}

fn random<const D: usize>(dims: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(dims, Distribution::Normal(0.0, 2.0), device)
}

fn floats<const D: usize>(x: Tensor<D>) -> Vec<f32> {
    x.try_into_vec_as().unwrap()
}

fn is_quantized<const D: usize>(x: &Tensor<D>) -> bool {
    matches!(x.dtype(), DType::QFloat(_))
}

fn scheme_of<const D: usize>(x: &Tensor<D>) -> QuantScheme {
    match x.dtype() {
        DType::QFloat(scheme) => scheme,
        other => panic!("not quantized: {other:?}"),
    }
}

/// The value that a code stands for, read bit by bit.
fn value_of(code: i8, value: QuantValue) -> f64 {
    let (exponent, fraction, least) = match value {
        QuantValue::E4M3 => (4, 3, -6),
        QuantValue::E5M2 => (5, 2, -14),
        QuantValue::E2M1 => (2, 1, 0),
        _ => return f64::from(code),
    };
    let bits = code as u8;
    let sign = if bits >> (exponent + fraction) & 1 == 1 { -1.0 } else { 1.0 };
    let digits = f64::from(bits & ((1 << fraction) - 1)) / f64::from(1 << fraction);
    match i32::from(bits >> fraction & ((1 << exponent) - 1)) {
        0 => sign * digits * 2f64.powi(least),
        e => sign * (1.0 + digits) * 2f64.powi(e - 1 + least),
    }
}

/// The code whose value is nearest: of two, the one farther from zero for integers and the even one for small floats.
fn nearest_code(x: f32, value: QuantValue) -> i8 {
    let (low, high) = value.range();
    let x = x.clamp(low, high);
    if !matches!(value, QuantValue::E4M3 | QuantValue::E5M2 | QuantValue::E2M1) {
        return x.round().clamp(low, high) as i8;
    }
    let negative = x < 0.0;
    let sign = if value == QuantValue::E2M1 { 8 } else { 0x80 };
    let distance = |code: u8| (value_of(code as i8, value) - f64::from(x.abs())).abs();
    let best = (0..sign as u8).filter(|code| value_of(*code as i8, value) <= f64::from(high));
    let best = best.min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1)))).unwrap();
    (best | if negative { sign as u8 } else { 0 }) as i8
}

/// Codes and scales of a tensor of two axes by the definition of a scheme.
fn by_definition(x: &[f32], dims: [usize; 2], scheme: &QuantScheme) -> (Vec<i8>, DecodedScales, Vec<f32>) {
    let blocks = params_shape(&Shape::from(dims), scheme);
    let layout = scheme.block_size().map(|block| BlockLayout::new(&Shape::from(dims), &block));
    let block_of = |i: usize| layout.as_ref().map_or(0, |layout| layout.block_of(i));
    let mut reach = vec![0f32; blocks.num_elements()];
    for (i, x) in x.iter().enumerate() {
        let reach = &mut reach[block_of(i)];
        *reach = reach.max(x.abs());
    }
    let (low, high) = scheme.value.range();
    let mut scales: Vec<f32> = reach.iter().map(|reach| reach * 2.0 / (high - low)).collect();
    let global = global_scale_dtype(scheme).map(|_| scales.iter().copied().fold(0.0, f32::max) / scheme.scale_dtype().max_representable());
    scales.iter_mut().for_each(|scale| *scale = scale_to_dtype(*scale / global.unwrap_or(1.0), scheme.scale_dtype()));
    let scale = |i: usize| scales[block_of(i)] * global.unwrap_or(1.0);
    let codes: Vec<i8> = x.iter().enumerate().map(|(i, x)| nearest_code(x * (1.0 / scale(i)), scheme.value)).collect();
    let values = codes.iter().enumerate().map(|(i, code)| value_of(*code, scheme.value) as f32 * scale(i)).collect();
    (codes, DecodedScales { block: scales, global }, values)
}

#[test]
fn codes_scales_and_values_are_those_of_burn() {
    let values: Vec<f32> = (0..32).map(|i| ((i * 37 % 32) as f32 - 15.0) * 0.11).collect();
    let native = QuantScheme::default().with_store(QuantStore::Native);
    let levels = [
        native.per_tensor(ScaleDtype::F32),
        native.per_tensor(ScaleDtype::F16),
        native.per_block([4], ScaleDtype::F32),
        native.per_block([2, 4], ScaleDtype::BF16),
        native.per_block([8], ScaleDtype::UE8M0),
        native.per_block([8], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32),
    ];
    let x = Tensor::<2>::from_data(TensorData::new(values, [4, 8]), &Device::default());
    let mut seen = 0;
    // Written by `compat/quantization`.
    for line in include_str!("data/quantized_burn.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let value = VALUES.into_iter().find(|value| format!("{value:?}") == words[0]).unwrap();
        let scheme = levels[words[1].parse::<usize>().unwrap()].with_value(value);
        let bytes: Vec<u8> = (0..words[2].len() / 2).map(|i| u8::from_str_radix(&words[2][2 * i..2 * i + 2], 16).unwrap()).collect();
        let expected: Vec<f32> = words[3..].iter().map(|word| word.parse().unwrap()).collect();
        let q = x.clone().quantize_dynamic(&scheme);
        assert_eq!(q.to_data().as_bytes(), bytes, "{scheme:?}");
        assert_eq!(floats(q.dequantize()), expected, "{scheme:?}");
        seen += 1;
    }
    assert_eq!(seen, 36);
}

#[test]
fn codes_are_those_of_pytorch() {
    // `scripts/golden/quantization.py`: casts to float8_e4m3fn and float8_e5m2, and quantize_per_tensor with a scale of 0.05.
    for line in include_str!("data/quantized_torch.txt").lines() {
        let (kind, pairs) = line.split_once(' ').unwrap();
        let value = VALUES.into_iter().find(|value| format!("{value:?}") == kind).unwrap();
        let hex = |text: &str| u32::from_str_radix(text, 16).unwrap();
        let (xs, codes): (Vec<f32>, Vec<u8>) =
            pairs.split(' ').map(|pair| pair.split_once(':').map(|(x, code)| (f32::from_bits(hex(x)), hex(code) as u8)).unwrap()).unzip();
        let device = Device::default();
        let scale = if value == QuantValue::Q8F { 0.05 } else { 1.0 };
        let params = QParams { scales: Tensor::<1>::from_data([scale], &device), global: None };
        let scheme = QuantScheme::default().with_value(value).with_store(QuantStore::Native);
        let q = Tensor::<1>::from_data(TensorData::new(xs.clone(), [xs.len()]), &device).quantize(&scheme, params);
        let found = q.into_data();
        for ((x, expected), found) in xs.iter().zip(&codes).zip(found.as_bytes()) {
            // PyTorch keeps the sign of numbers that become zero.
            assert!(found == expected || (found | 0x80 == *expected && found & 0x7F == 0), "{value:?}: {x}: {found:#x}, not {expected:#x}");
        }
    }
}

#[test]
fn every_scheme_does_what_it_defines() {
    for device in crate::devices() {
        for (value, dims) in VALUES.into_iter().flat_map(|value| [[2, 4], [6, 12], [4, 32]].map(|dims| (value, dims))) {
            let x = random(dims, &device);
            let host = floats(x.clone());
            for scheme in levels() {
                let scheme = scheme.with_value(value);
                let q = x.clone().quantize_dynamic(&scheme);
                let (codes, scales, values) = by_definition(&host, dims, &scheme);
                let data = q.to_data();
                let bytes = QuantizedBytes { bytes: data.into_bytes(), scheme, shape: Shape::from(dims) };
                let (found, found_scales) = bytes.into_vec_i8();
                assert_eq!(found_scales, scales, "{scheme:?} {dims:?}");
                assert_eq!(found, codes, "{scheme:?} {dims:?}");
                assert_eq!(floats(q.dequantize()), values, "{scheme:?} {dims:?}");
            }
        }
    }
}

#[test]
fn data_keeps_its_bytes_in_every_layout() {
    let device = Device::default();
    for (value, store) in VALUES.into_iter().flat_map(|value| STORES.map(|store| (value, store))) {
        for dims in [[4, 8], [6, 12], [2, 4]] {
            for scheme in levels() {
                let scheme = scheme.with_value(value).with_store(store);
                let q = random(dims, &device).quantize_dynamic(&scheme);
                let data = q.to_data();
                assert_eq!(data.as_bytes().len(), quantized_data_len(&scheme, &Shape::from(dims)), "{scheme:?}");
                let back = Tensor::<2>::from_data(data.clone(), &device);
                assert_eq!(scheme_of(&back), scheme);
                assert_eq!(floats(back.clone().dequantize()), floats(q.dequantize()), "{scheme:?}");
                assert_eq!(back.to_data(), data, "{scheme:?}");
                // Transposed, its data is that of the transposed codes.
                let turned = Tensor::<2>::from_data(back.clone().transpose().into_data(), &device);
                assert_eq!(floats(turned.dequantize().transpose()), floats(back.dequantize()), "{scheme:?}");
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fill_a_pack_are_padded() {
    let device = Device::default();
    for (value, store) in VALUES.into_iter().flat_map(|value| STORES.map(|store| (value, store))) {
        for dims in [[1, 1], [3, 5], [1, 7], [5, 3], [17, 1]] {
            let scheme = QuantScheme::default().with_value(value).with_store(store);
            let q = random(dims, &device).quantize_dynamic(&scheme);
            let data = q.to_data();
            assert_eq!(data.as_bytes().len(), quantized_data_len(&scheme, &Shape::from(dims)), "{scheme:?}");
            let back = Tensor::<2>::from_data(data, &device);
            assert_eq!(floats(back.dequantize()), floats(q.dequantize()), "{scheme:?} {dims:?}");
        }
    }
}

#[test]
fn special_values_are_quantized_as_burn_does() {
    let device = Device::default();
    let native = QuantScheme::default().with_store(QuantStore::Native).with_value(QuantValue::Q8S);
    let schemes = [
        native,
        native.per_tensor(ScaleDtype::F16),
        native.per_block([4], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32),
        native.per_block([4], ScaleDtype::UE8M0),
    ];
    let rows: [([f32; 8], [&[u8]; 4]); 4] = [
        (
            [0.0; 8],
            [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0], &[0, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0x80, 0], &[0; 10]],
        ),
        (
            [f32::NAN, 1.0, 2.0, 3.0, -1.0, 0.0, 0.0, 0.0],
            [
                &[0, 0x7F, 0x7F, 0x7F, 0x81, 0, 0, 0, 0, 0, 0x80, 0],
                &[0, 0x7F, 0x7F, 0x7F, 0x81, 0, 0, 0, 1, 0],
                &[0, 0x7F, 0x7F, 0x7F, 0x81, 0, 0, 0, 1, 1, 0, 0, 0x80, 0],
                &[0, 0x7F, 0x7F, 0x7F, 0xC0, 0, 0, 0, 1, 0x79],
            ],
        ),
        (
            [f32::INFINITY, 1.0, 2.0, 3.0, -1.0, 0.0, 0.0, 0.0],
            [
                &[0x7F, 0x7F, 0x7F, 0x7F, 0x81, 0, 0, 0, 0, 0, 0x80, 0],
                &[0x7F, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0x7B],
                &[0x7F, 0x7F, 0x7F, 0x7F, 0x81, 0, 0, 0, 1, 1, 0, 0, 0x80, 0],
                &[0x7F, 0, 0, 0, 0xC0, 0, 0, 0, 0xFE, 0x79],
            ],
        ),
        (
            [0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 127.0],
            [
                &[1, 2, 3, 4, 0xFF, 0xFE, 0xFD, 0x7F, 0, 0, 0x80, 0x3F],
                &[1, 2, 3, 4, 0xFF, 0xFE, 0xFD, 0x7F, 0, 0x3C],
                &[0x11, 0x34, 0x56, 0x79, 0xFF, 0xFE, 0xFD, 0x7F, 0x55, 0x7E, 0x25, 0x49, 0x12, 0x3B],
                &[0x10, 0x30, 0x50, 0x70, 0xFF, 0xFE, 0xFD, 0x7F, 0x7A, 0x7F],
            ],
        ),
    ];
    for (row, expected) in rows {
        let x = Tensor::<2>::from_data([row], &device);
        for (scheme, expected) in schemes.iter().zip(expected) {
            assert_eq!(x.clone().quantize_dynamic(scheme).into_data().as_bytes(), expected, "{row:?} {scheme:?}");
        }
    }
}

#[test]
fn scales_that_are_rounded_up_clip_nothing() {
    // Burn #5261: with scales rounded to the nearest, the largest values of blocks were clipped and the error was three times as large.
    let x = Tensor::<2>::random([64, 64], Distribution::Normal(0.0, 1.0), &Device::default());
    let scheme = QuantScheme::default().with_value(QuantValue::Q8S).per_block([16], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32);
    let back = x.clone().quantize_dynamic(&scheme).dequantize();
    let error = (back - x.clone()).square().sum().sqrt().into_scalar::<f32>() / x.square().sum().sqrt().into_scalar::<f32>();
    assert!(error < 0.0075, "{error}");
}

#[test]
fn calibration_finds_ranges_and_scales() {
    let x = Tensor::<2>::from_data([[-1.0, 3.0, 0.5, -0.5], [2.0, -4.0, 1.0, 1.0]], &Device::default());
    let blocks = QuantScheme::default().with_value(QuantValue::Q4S).per_block([2, 2], ScaleDtype::F32);
    let range = compute_range(&blocks, &x, &Calibration::MinMax);
    assert_eq!((floats(range.min.clone()), floats(range.max.clone())), (vec![-4.0, -0.5], vec![3.0, 1.0]));
    assert_eq!(floats(compute_q_params(&blocks, range).scales), [4.0 / 7.0, 1.0 / 7.0]);
    let range = compute_range(&blocks, &x, &Calibration::AbsMean);
    assert_eq!((floats(range.min), floats(range.max)), (vec![-2.5, -0.75], vec![2.5, 0.75]));
    let two = blocks.per_block([2, 2], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32);
    let params = compute_q_params(&two, compute_range(&two, &x, &Calibration::MinMax));
    let global = floats(params.global.unwrap())[0];
    assert_eq!(global, 4.0 / 7.0 / 448.0);
    assert_eq!(floats(params.scales), [4.0 / 7.0 / global, 1.0 / 7.0 / global]);
}

#[test]
fn a_quantized_tensor_takes_the_bytes_of_its_codes_and_scales() {
    for device in crate::devices() {
        let x = random([64, 128], &device);
        let bytes = |scheme: QuantScheme| x.clone().quantize_dynamic(&scheme).as_raw().stored_bytes();
        let scheme = QuantScheme::default();
        assert_eq!(x.as_raw().stored_bytes(), 64 * 128 * 4);
        assert_eq!(bytes(scheme), 64 * 128 + 4);
        assert_eq!(bytes(scheme.with_value(QuantValue::E4M3)), 64 * 128 + 4);
        assert_eq!(bytes(scheme.with_value(QuantValue::Q4F).per_block([32], ScaleDtype::F16)), 64 * 128 / 2 + 64 * 4 * 2);
        assert_eq!(bytes(scheme.with_value(QuantValue::Q2S).per_block([32], ScaleDtype::UE8M0)), 64 * 128 / 4 + 64 * 4);
        assert_eq!(bytes(QuantScheme::nvfp4()), 64 * 128 / 2 + 64 * 8 + 4);
    }
    // What the device holds after the floats are gone.
    let device = crate::compiled();
    let x = Tensor::<2>::random([256, 1024], Distribution::Default, &device);
    let before = device.memory_pool_usage().unwrap().bytes_in_use;
    let q = x.quantize_dynamic(&QuantScheme::default().with_value(QuantValue::Q4S));
    q.as_raw().realize().unwrap();
    device.sync().unwrap();
    let held = device.memory_pool_usage().unwrap().bytes_in_use - before;
    assert!((1 << 17..1 << 18).contains(&held), "{held} bytes for 2^18 values of 4 bits");
    // Its use does not make it larger.
    let y = q.clone() + 1.0;
    drop(floats(y));
    let after = device.memory_pool_usage().unwrap().bytes_in_use - before;
    assert_eq!(after, held);
}

#[test]
fn a_product_reads_eight_bit_codes_where_they_lie() {
    let runtime = Arc::new(HostRuntime::new());
    let device = Device::with_runtime("measured", runtime.clone());
    let codes: Vec<i8> = (0..512 * 512).map(|i| (i * 31 % 255 - 127) as i8).collect();
    let scheme = QuantScheme::default().with_value(QuantValue::Q8S);
    let w = Tensor::<2>::from_data(TensorData::quantized(codes, [512, 512], scheme, &[0.01], None), &device);
    let x = Tensor::<2>::ones([4, 512], &device);
    let y = x.matmul(w.transpose());
    assert_eq!(floats(y).len(), 4 * 512);
    // The codes take 256 KiB; as floats they would take another 1024.
    let peak = runtime.memory().peak;
    assert!((256 << 10..320 << 10).contains(&peak), "{peak} bytes");
}

#[test]
fn views_of_whole_blocks_stay_quantized() {
    for (device, value) in crate::devices().into_iter().zip([QuantValue::Q8S, QuantValue::Q4F, QuantValue::E2M1]) {
        for scheme in levels() {
            let q = random([6, 8], &device).quantize_dynamic(&scheme.with_value(value));
            let x = q.clone().dequantize();
            check_same(q.clone().transpose(), x.clone().transpose());
            check_same(q.clone().transpose().transpose(), x.clone());
            check_same(q.clone().unsqueeze::<3>(), x.clone().unsqueeze::<3>());
            check_same(q.clone().unsqueeze::<3>().permute([2, 0, 1]), x.clone().unsqueeze::<3>().permute([2, 0, 1]));
            check_same(q.clone().slice([2..4, 4..8]), x.clone().slice([2..4, 4..8]));
            check_same(q.clone().transpose().slice([0..4, 4..6]), x.clone().transpose().slice([0..4, 4..6]));
            let rows = Tensor::<1, Int>::from_data([5, 0, 0], &device);
            if scheme.block_size().is_none_or(|block| block.len() == 1) {
                check_same(q.clone().flip([0]), x.clone().flip([0]));
                check_same(q.clone().select(0, rows.clone()), x.clone().select(0, rows));
                check_same(q.clone().reshape([12, 4]), x.clone().reshape([12, 4]));
                check_same(q.clone().reshape([3, 2, 8]), x.clone().reshape([3, 2, 8]));
                check_same(q.clone().flatten::<1>(0, 1), x.clone().flatten::<1>(0, 1));
            } else {
                let cut = q.clone().select(0, rows.clone());
                assert_eq!((cut.dtype(), floats(cut)), (DType::F32, floats(x.clone().select(0, rows))));
                let moved = q.clone().reshape([4, 12]);
                assert_eq!((moved.dtype(), floats(moved)), (DType::F32, floats(x.clone().reshape([4, 12]))));
            }
        }
    }
}

#[track_caller]
fn check_same<const D: usize>(q: Tensor<D>, x: Tensor<D>) {
    assert!(is_quantized(&q), "{:?}", q.dtype());
    assert_eq!(q.dims(), x.dims());
    assert_eq!(floats(q.clone().dequantize()), floats(x.clone()));
    // Its data says the same.
    let back = Tensor::<D>::from_data(q.into_data(), &x.device());
    assert_eq!(floats(back.dequantize()), floats(x));
}

#[test]
fn burn_5281_a_transposed_tensor_is_dequantized_in_its_own_order() {
    let x = random([8, 32], &Device::default());
    let scheme = QuantScheme::default().with_value(QuantValue::Q8S);
    let turned = x.clone().quantize_dynamic(&scheme).transpose().dequantize();
    let step = x.clone().abs().max().into_scalar::<f32>() / 127.0;
    turned.into_data().assert_approx_eq::<f32>(&x.transpose().into_data(), Tolerance::absolute(0.51 * step));
}

#[test]
fn operations_compute_with_the_values_that_codes_stand_for() {
    for device in crate::devices() {
        for scheme in [QuantScheme::default(), QuantScheme::default().with_value(QuantValue::Q4S).per_block([4], ScaleDtype::F16)] {
            let x = random([4, 8], &device);
            let q = x.clone().quantize_dynamic(&scheme);
            let d = Tensor::<2>::from_data(q.clone().dequantize().into_data(), &device);
            let check = |found: Tensor<2>, expected: Tensor<2>| {
                assert_eq!(found.dtype(), DType::F32);
                found.into_data().assert_approx_eq::<f32>(&expected.into_data(), Tolerance::rel_abs(1e-5, 1e-5));
            };
            check(q.clone() + 1.0, d.clone() + 1.0);
            check(q.clone() + q.clone(), d.clone() + d.clone());
            check(q.clone() * x.clone(), d.clone() * x.clone());
            check(x.clone() - q.clone(), x.clone() - d.clone());
            check(q.clone().exp(), d.clone().exp());
            check(q.clone().sum_dim(1), d.clone().sum_dim(1));
            check(q.clone() + x.clone().narrow(0, 0, 1), d.clone() + x.clone().narrow(0, 0, 1));
            check(x.clone().matmul(q.clone().transpose()), x.clone().matmul(d.clone().transpose()));
            check(q.clone().transpose().matmul(x.clone()), d.clone().transpose().matmul(x.clone()));
            check(q.clone().matmul(q.clone().transpose()), d.clone().matmul(d.clone().transpose()));
            check(Tensor::cat(vec![q.clone(), x.clone()], 0), Tensor::cat(vec![d.clone(), x.clone()], 0));
            let mask = x.clone().greater_scalar(0.0);
            check(q.clone().mask_fill(mask.clone(), 1.0), d.clone().mask_fill(mask.clone(), 1.0));
            check(x.clone().mask_where(mask.clone(), q.clone()), x.clone().mask_where(mask, d.clone()));
            let rows = Tensor::<1, Int>::from_data([3, 1], &device);
            check(
                x.clone().select_assign(0, rows.clone(), q.clone().narrow(0, 0, 2), IndexingUpdateOp::Add),
                x.clone().select_assign(0, rows, d.clone().narrow(0, 0, 2), IndexingUpdateOp::Add),
            );
            let batches = x.clone().reshape([2, 2, 8]);
            check(
                batches.clone().matmul(q.clone().transpose().unsqueeze()).reshape([4, 4]),
                batches.matmul(d.clone().transpose().unsqueeze()).reshape([4, 4]),
            );
            check(linear(x.clone(), q.clone().transpose(), None), linear(x.clone(), d.clone().transpose(), None));
            assert_eq!(q.clone().argmax(1).into_data(), d.clone().argmax(1).into_data());
            assert_eq!(q.clone().greater(x.clone()).into_data(), d.clone().greater(x.clone()).into_data());
            assert_eq!(q.clone().int().into_data(), d.clone().int().into_data());
            assert_eq!(floats(q.clone().quantize_dynamic(&scheme).dequantize()).len(), 32);
        }
    }
}

#[test]
fn products_stay_near_those_of_floats() {
    let device = Device::default();
    let (x, w) = (random([32, 256], &device), random([256, 64], &device));
    let exact = x.clone().matmul(w.clone());
    let norm = exact.clone().square().sum().sqrt().into_scalar::<f32>();
    let scheme = QuantScheme::default();
    // An error of half a step, uniform: step / √12 beside weights of a standard deviation of 2, whose largest is about 8.
    for (scheme, bound) in [
        (scheme.with_value(QuantValue::Q8S), 0.012),
        (scheme.with_value(QuantValue::Q8S).per_block([32], ScaleDtype::F16), 0.007),
        (scheme.with_value(QuantValue::E4M3), 0.035),
        (scheme.with_value(QuantValue::Q4S).per_block([32], ScaleDtype::F16), 0.11),
        (QuantScheme::nvfp4(), 0.12),
    ] {
        let q = w.clone().quantize_dynamic(&scheme);
        let error = (x.clone().matmul(q) - exact.clone()).square().sum().sqrt().into_scalar::<f32>() / norm;
        assert!(error < bound && error > bound / 4.0, "{error}, bound {bound}: {scheme:?}");
    }
}

#[test]
fn other_float_types_decide_what_is_computed_in() {
    let device = Device::default();
    for dtype in [DType::F64, DType::F16, DType::BF16] {
        let x = random([4, 8], &device).cast(FloatDType::from(dtype));
        let q = x.clone().quantize_dynamic(&QuantScheme::default().with_value(QuantValue::Q8S));
        assert_eq!(q.clone().dequantize().dtype(), DType::F32);
        assert_eq!((q.clone() + x.clone()).dtype(), dtype);
        assert_eq!((x.clone() + q.clone()).dtype(), dtype);
        assert_eq!((x.clone() * q.clone().narrow(0, 0, 1)).dtype(), dtype);
        let product = x.clone().matmul(q.clone().transpose());
        assert_eq!(product.dtype(), dtype);
        let d = q.clone().dequantize().cast(FloatDType::from(dtype));
        let expected = x.clone().matmul(d.clone().transpose());
        product.into_data().assert_approx_eq::<f64>(&expected.into_data(), Tolerance::rel_abs(1e-2, 1e-2));
        assert_eq!(linear(x.clone(), q.clone().transpose(), None).dtype(), dtype);
        assert_eq!(q.clone().cast(FloatDType::from(dtype)).into_data(), d.into_data());
    }
}

#[test]
fn gradients_flow_past_quantized_tensors_and_not_through_them() {
    let device = Device::default().autodiff();
    for scheme in [QuantScheme::default(), QuantScheme::default().with_value(QuantValue::Q4S).per_block([4], ScaleDtype::F32)] {
        let w = random([8, 4], &device).require_grad();
        let x = random([3, 8], &device).require_grad();
        let q = w.clone().quantize_dynamic(&scheme).require_grad();
        assert!(!q.is_require_grad() && !q.is_tracked() && is_quantized(&q));
        let y = x.clone().matmul(q.clone());
        assert!(y.is_tracked());
        let grads = (y.clone() * y).sum().backward();
        let d = q.dequantize().detach();
        let expected = (x.clone().detach().matmul(d.clone()) * 2.0).matmul(d.transpose());
        x.grad(&grads).unwrap().into_data().assert_approx_eq::<f32>(&expected.into_data(), Tolerance::rel_abs(1e-4, 1e-4));
        assert!(w.grad(&grads).is_none());
    }
}

#[test]
fn what_the_tape_keeps_is_quantized() {
    let device = crate::compiled();
    let q = random([256, 256], &device).quantize_dynamic(&QuantScheme::default());
    q.as_raw().realize().unwrap();
    let x = random([1, 256], &device.clone().autodiff()).require_grad();
    x.as_raw().realize().unwrap();
    let before = device.memory_pool_usage().unwrap().bytes_in_use;
    let y = x.clone().matmul(q.clone().autodiff());
    y.as_raw().realize().unwrap();
    device.sync().unwrap();
    let kept = device.memory_pool_usage().unwrap().bytes_in_use - before;
    assert!(kept < 256 * 256, "{kept} bytes are kept for the backward pass");
    assert_eq!(x.grad(&y.backward()).unwrap().dims(), [1, 256]);
}

#[test]
fn quantized_tensors_move_between_devices_and_threads() {
    let q = random([4, 8], &crate::cpu()).quantize_dynamic(&QuantScheme::nvfp4().per_block([8], ScaleDtype::UE4M3));
    let other = crate::compiled();
    let moved = q.clone().to_device(&other);
    assert_eq!((moved.device(), moved.dtype()), (other, q.dtype()));
    assert_eq!(moved.to_data(), q.to_data());
    let sent = q.clone();
    let sum = std::thread::spawn(move || sent.sum().into_scalar::<f32>()).join().unwrap();
    assert_eq!(sum, q.sum().into_scalar::<f32>());
}

#[test]
fn reading_printing_and_storing_say_that_a_tensor_is_quantized() {
    let device = Device::default();
    let q = random([2, 4], &device).quantize_dynamic(&QuantScheme::default());
    assert!(q.to_string().contains("data:  <quantized, use .dequantize() to view values>"), "{q}");
    assert!(q.clone().try_to_vec_as::<f32>().is_err());
    assert!(q.clone().sum().try_into_scalar::<f32>().is_ok());
    check_panics(|| q.to_data_as::<f32>(), "no conversion from qfloat to f32");
    let json = serde_json::to_string(&q).unwrap();
    let back: Tensor<2> = serde_json::from_str(&json).unwrap();
    assert_eq!(back.into_data(), q.clone().into_data());
    let bridge = q.clone().into_bridge();
    assert!(bridge.is_qfloat());
    assert_eq!(Tensor::<2>::from_bridge(bridge).into_data(), q.clone().into_data());
    let float = Tensor::<2>::from_data(q.to_data(), (&device, DType::F32));
    assert_eq!((float.dtype(), floats(float)), (DType::F32, floats(q.dequantize())));
}

#[test]
fn mistakes_name_the_scheme_and_the_shape() {
    let device = Device::default();
    let scheme = QuantScheme::default();
    let blocks = scheme.per_block([4], ScaleDtype::F32);
    check_panics(|| random([3, 6], &device).quantize_dynamic(&blocks), "blocks of [4] do not divide a tensor of shape [3, 6]");
    check_panics(
        || random([8], &device).quantize_dynamic(&scheme.per_block([2, 4], ScaleDtype::F32)),
        "blocks of [2, 4] do not divide a tensor of shape [8]",
    );
    check_panics(|| random([0, 4], &device).quantize_dynamic(&scheme), "without elements has no range: shape [0, 4]");
    check_panics(|| random([2, 4], &device).quantize_dynamic(&blocks.per_tensor(ScaleDtype::F32)), "scales of two levels");
    let params = || QParams { scales: Tensor::<1>::from_data([1.0, 2.0, 3.0], &device), global: None };
    check_panics(|| random([2, 4], &device).quantize(&blocks, params()), "shape [2, 4] needs 2 scales, found 3");
    check_panics(|| random([3, 16], &device).quantize(&QuantScheme::nvfp4(), params()), "a second scale of one element");
    check_panics(|| TensorData::quantized(vec![1i8; 3], [2, 2], scheme, &[1.0], None), "needs 4 values");
    check_panics(|| TensorData::quantized(vec![1i8; 4], [2, 2], scheme, &[1.0, 1.0], None), "needs 1 scales, found 2");
    let short = TensorData::from_bytes_vec(vec![0; 3], [2, 2], DType::QFloat(scheme));
    assert!(short.check_quantized().is_err());
    check_panics(|| Tensor::<2>::from_data(short.clone(), &device), "needs 12 bytes, found 3");
    let huge = TensorData::from_bytes_vec(vec![0; 3], [usize::MAX, 3], DType::QFloat(scheme));
    assert!(huge.check_quantized().is_err());
}

#[test]
fn host_data_is_packed_in_every_layout() {
    let codes: Vec<i8> = vec![-7, 1, 2, 3, 4, 5, 6, 7, -1, -2, -3, -4, -5, -6, 7, 0];
    let scheme = QuantScheme::default().with_value(QuantValue::Q4S);
    for (store, expected) in [
        (QuantStore::Native, vec![0xF9, 1, 2, 3, 4, 5, 6, 7, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0xFA, 7, 0]),
        (QuantStore::PackedU32(0), vec![0x19, 0x32, 0x54, 0x76, 0xEF, 0xCD, 0xAB, 0x07]),
        // Eight words, of which each holds a column's two codes in its lowest byte.
        (QuantStore::PackedU32(1), [0xF9, 0xE1, 0xD2, 0xC3, 0xB4, 0xA5, 0x76, 0x07].iter().flat_map(|byte| [*byte, 0, 0, 0]).collect()),
    ] {
        let bytes = QuantizedBytes::new(codes.clone(), [2, 8], scheme.with_store(store), &[0.5], None);
        assert_eq!(bytes.num_elements(), 16);
        assert_eq!(bytes.bytes[..expected.len()], expected[..], "{store:?}");
        assert_eq!(bytes.bytes[expected.len()..], 0.5f32.to_ne_bytes());
        assert_eq!(bytes.into_vec_i8(), (codes.clone(), DecodedScales { block: vec![0.5], global: None }));
    }
    // Packed words are taken as they are.
    let words = QuantizedBytes::new(vec![0x7654_3219u32, 0x07AB_CDEF], [2, 8], scheme, &[0.5], None);
    assert_eq!(words.into_vec_i8().0, codes);
    let floats = scheme.with_value(QuantValue::E2M1).with_store(QuantStore::PackedNative(0));
    let (found, _) = QuantizedBytes::new(vec![15i8, 1, 2], [1, 3], floats, &[1.0], None).into_vec_i8();
    assert_eq!(found, [15, 1, 2]);
}

#[test]
fn blocks_are_laid_out_along_the_last_axes() {
    let layout = BlockLayout::new(&Shape::from([4, 6]), &BlockSize::new([2, 3]));
    let blocks: Vec<usize> = (0..24).map(|i| layout.block_of(i)).collect();
    assert_eq!(blocks, [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 2, 2, 2, 3, 3, 3]);
    assert!(layout.divides() && layout.num_blocks() == 4);
    assert!(!BlockLayout::new(&Shape::from([4, 5]), &BlockSize::new([2, 3])).divides());
    // Lengths are those of Burn 0.22.1.
    let scheme = QuantScheme::default();
    let len = |scheme: &QuantScheme, shape: [usize; 2]| quantized_data_len(scheme, &Shape::from(shape));
    assert_eq!(len(&scheme, [3, 5]), 28);
    assert_eq!(len(&scheme.per_tensor(ScaleDtype::F16), [3, 5]), 26);
    assert_eq!(len(&scheme.with_value(QuantValue::Q4S), [3, 5]), 16);
    assert_eq!(len(&scheme.with_value(QuantValue::Q2F).with_store(QuantStore::PackedU32(1)), [3, 5]), 24);
    let native = scheme.with_store(QuantStore::Native);
    assert_eq!(len(&native.per_block([2], ScaleDtype::F32), [3, 5]), 51);
    assert_eq!(len(&native.per_block([2], ScaleDtype::UE4M3).per_tensor(ScaleDtype::F32), [3, 6]), 31);
    assert_eq!(len(&native.with_value(QuantValue::E2M1).with_store(QuantStore::PackedNative(0)), [4, 8]), 20);
}
