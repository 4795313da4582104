//! The ranges of 8-bit floats and the rounding of scales, as quantized tensors use them.

use kiln_tensor::quantization::{QuantValue, ScaleDtype};

/// Every positive finite value of an 8-bit float with 4 exponent and 3 mantissa bits, in order: only the pattern of all ones is no number.
fn e4m3() -> Vec<f32> {
    let value = |bits: u32| {
        let (exponent, mantissa) = (bits >> 3, (bits & 7) as f32);
        if exponent == 0 { mantissa / 512.0 } else { (1.0 + mantissa / 8.0) * 2f32.powi(exponent as i32 - 7) }
    };
    (1..0x7f).map(value).collect()
}

#[test]
fn eight_bit_floats_reach_their_largest_values() {
    assert_eq!(e4m3().last(), Some(&448.0));
    assert_eq!(QuantValue::E4M3.range(), (-448.0, 448.0));
    // 5 exponent and 2 mantissa bits, the largest exponent kept for infinities and NaN: 1.75 · 2^15.
    assert_eq!(QuantValue::E5M2.range(), (-1.75 * 32768.0, 1.75 * 32768.0));
    assert_eq!(ScaleDtype::UE4M3.max_representable(), 448.0);
}

#[test]
fn scales_are_rounded_up_to_the_next_value() {
    let values = e4m3();
    for (i, value) in values.iter().enumerate() {
        assert_eq!(ScaleDtype::UE4M3.round_up(*value), *value);
        let below = if i == 0 { 0.0 } else { values[i - 1] };
        for part in [0.01, 0.5, 0.99] {
            let scale = below + (value - below) * part;
            assert_eq!(ScaleDtype::UE4M3.round_up(scale), *value, "{scale} lies between {below} and {value}");
        }
    }
    assert_eq!(ScaleDtype::UE4M3.round_up(1e9), 448.0);
    for dtype in [ScaleDtype::F32, ScaleDtype::F16, ScaleDtype::BF16, ScaleDtype::UE8M0] {
        for k in 1..2000 {
            let scale = k as f32 * 0.0137;
            let rounded = dtype.round_up(scale);
            assert!(rounded >= scale && rounded < 2.0 * scale && dtype.round_up(rounded) == rounded, "{dtype:?}: {scale} becomes {rounded}");
        }
    }
}

/// The root mean square error of 8-bit values in blocks of 16 with scales of `UE4M3`, relative to the values'.
fn relative_error(values: &[f32], scale_of: impl Fn(f32) -> f32) -> f64 {
    let (mut error, mut total) = (0.0, 0.0);
    for block in values.chunks(16) {
        let largest = block.iter().fold(0f32, |m, x| m.max(x.abs()));
        let scale = scale_of(largest / 127.0);
        for x in block {
            let q = (x / scale).round().clamp(-127.0, 127.0);
            error += f64::from(q * scale - x).powi(2);
            total += f64::from(*x).powi(2);
        }
    }
    (error / total).sqrt()
}

#[test]
fn rounding_scales_up_clips_nothing() {
    // 64 by 64 numbers of the standard normal distribution.
    let mut state = 7u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f64 + 0.5) / (1u64 << 24) as f64
    };
    let values: Vec<f32> = (0..64 * 64).map(|_| ((-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos()) as f32).collect();
    let table = e4m3();
    let nearest = |scale: f32| *table.iter().min_by(|a, b| (*a - scale).abs().total_cmp(&(*b - scale).abs())).unwrap();
    for block in values.chunks(16) {
        let largest = block.iter().fold(0f32, |m, x| m.max(x.abs()));
        assert!(largest / ScaleDtype::UE4M3.round_up(largest / 127.0) <= 127.0, "{largest} is clipped");
    }
    let (up, near) = (relative_error(&values, |scale| ScaleDtype::UE4M3.round_up(scale)), relative_error(&values, nearest));
    assert!(up < 0.006 && near > 2.0 * up, "rounded up {up:.4}, to the nearest {near:.4}");
}
