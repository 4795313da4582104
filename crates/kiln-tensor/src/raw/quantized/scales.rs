//! Scales on a device: rounded up to their type, and kept in its size.
use kiln_ir::{DType, Elementwise};

use super::super::RawTensor;
use super::codec::{positive_codes, positive_values, power_of_two, split_exponent};
use crate::quantization::ScaleDtype;

/// The type in which scales are kept.
pub(super) fn stored_dtype(dtype: ScaleDtype) -> DType {
    match dtype {
        ScaleDtype::F32 => DType::F32,
        ScaleDtype::F16 => DType::F16,
        ScaleDtype::BF16 => DType::BF16,
        ScaleDtype::UE8M0 | ScaleDtype::UE4M3 => DType::U8,
    }
}

/// Scales as they are kept: rounded up, and in place of one that is no positive number the least that a value can be divided by.
pub(super) fn encode(scales: &RawTensor, dtype: ScaleDtype) -> RawTensor {
    let least = f64::from(f32::MIN_POSITIVE);
    let valid = match dtype {
        // Zero has the smallest power of two.
        ScaleDtype::UE8M0 => scales.with_constant(Elementwise::Le, f64::INFINITY),
        ScaleDtype::F32 => scales.with_constant(Elementwise::Gt, 0.0).binary(Elementwise::And, &scales.with_constant(Elementwise::Lt, f64::INFINITY)),
        ScaleDtype::F16 | ScaleDtype::BF16 | ScaleDtype::UE4M3 => scales.with_constant(Elementwise::Gt, 0.0),
    };
    let scales = scales.fill_constant(&valid.unary(Elementwise::Not), least);
    let scales = scales.with_constant(Elementwise::Min, f64::from(dtype.max_representable()));
    match dtype {
        ScaleDtype::F32 => scales,
        ScaleDtype::F16 => next_from(&scales, DType::F16, 10, 24),
        ScaleDtype::BF16 => next_from(&scales, DType::BF16, 7, 133),
        ScaleDtype::UE4M3 => positive_codes(&scales.with_constant(Elementwise::Mul, 64.0), 4, 3, Elementwise::Ceil),
        ScaleDtype::UE8M0 => powers(&scales),
    }
}

/// The smallest numbers of a half type that are not below `x`: the nearest, or the one after it. `fraction` is the number of the type's fraction bits, and
/// `2^-smallest` its smallest number.
fn next_from(x: &RawTensor, dtype: DType, fraction: i32, smallest: i32) -> RawTensor {
    let near = x.cast(dtype).cast(DType::F32);
    // Between three quarters and one and a half times the distance to the next number, so that the sum is rounded to it.
    let step = near
        .with_constant(Elementwise::Mul, 1.5 * libm::exp2(f64::from(-fraction - 1)))
        .with_constant(Elementwise::Max, libm::exp2(f64::from(-smallest)));
    let below = near.binary(Elementwise::Lt, x);
    near.mask_where(&below, &near.add(&step)).cast(dtype)
}

/// The codes of the smallest powers of two that are not below `x`.
fn powers(x: &RawTensor) -> RawTensor {
    let least = f64::from(ScaleDtype::UE8M0_MIN);
    // Above 1, or raised above 1: exponents from 1 on, without numbers below the normal ones on the way.
    let large = x.with_constant(Elementwise::Gt, 1.0);
    let raised =
        x.with_constant(Elementwise::Max, least).with_constant(Elementwise::Mul, libm::exp2(64.0)).with_constant(Elementwise::Mul, libm::exp2(63.0));
    let scaled = raised.mask_where(&large, x);
    let [exponent, rest] = split_exponent(&scaled, 7);
    let above = rest.with_constant(Elementwise::Gt, 1.0).cast(DType::F32);
    let offset = large.cast(DType::F32).with_constant(Elementwise::Mul, 127.0);
    exponent.add(&above).add(&offset).cast(DType::U8)
}

/// Kept scales as numbers, in `F32`.
pub(super) fn decode(stored: &RawTensor, dtype: ScaleDtype) -> RawTensor {
    match dtype {
        ScaleDtype::F32 | ScaleDtype::F16 | ScaleDtype::BF16 => stored.cast(DType::F32),
        ScaleDtype::UE4M3 => positive_values(stored, 4, 3).with_constant(Elementwise::Mul, 1.0 / 64.0),
        ScaleDtype::UE8M0 => {
            let large = stored.with_constant(Elementwise::Ge, 127.0);
            let above = stored.with_constant(Elementwise::Max, 127.0).with_constant(Elementwise::Sub, 127.0);
            let below = stored.with_constant(Elementwise::Min, 127.0).constant_with(Elementwise::Sub, 127.0);
            let below = power_of_two(&below, 7).recip();
            below.mask_where(&large, &power_of_two(&above, 7))
        }
    }
}
