//! Random tensors.
use half::{bf16, f16};
use kiln_ir::{DType, Elementwise, Op, RandomKind};

use super::{RawTensor, emit_on};
use crate::trace::{Operand, ScalarWord};
use crate::{Device, Scalar};

fn draw(device: &Device, kind: RandomKind, dims: &[usize], dtype: DType) -> RawTensor {
    let seed = device.state.seeds.lock().next();
    emit_on(device, Op::Random(kind), &[Operand::Scalar(ScalarWord::Arg(DType::U64, seed))], dims, dtype)
}

#[track_caller]
fn float(op: &str, dtype: DType) {
    if !dtype.is_float() {
        panic!("{op}: cannot draw {dtype}");
    }
}

/// The number of a float dtype nearest to `x`.
fn nearest(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::BF16 => bf16::from_f64(x).to_f64(),
        DType::F32 => x as f32 as f64,
        _ => x,
    }
}

/// The next number of a float dtype above or below one of its numbers.
fn neighbour(dtype: DType, x: f64, up: bool) -> f64 {
    // The bits of a float without its sign count its distance from zero.
    let step16 = |bits: u16| match (bits & 0x7FFF == 0, (bits >> 15 == 0) == up) {
        (true, _) => {
            if up {
                1
            } else {
                0x8001
            }
        }
        (false, true) => bits + 1,
        (false, false) => bits - 1,
    };
    match dtype {
        DType::F16 => f16::from_bits(step16(f16::from_f64(x).to_bits())).to_f64(),
        DType::BF16 => bf16::from_bits(step16(bf16::from_f64(x).to_bits())).to_f64(),
        DType::F32 if up => (x as f32).next_up() as f64,
        DType::F32 => (x as f32).next_down() as f64,
        _ if up => x.next_up(),
        _ => x.next_down(),
    }
}

/// The largest number of a float dtype below `x`.
fn below(dtype: DType, x: f64) -> f64 {
    let near = nearest(dtype, x);
    if near < x { near } else { neighbour(dtype, near, false) }
}

/// The smallest number of a float dtype that is not below `x`.
fn not_below(dtype: DType, x: f64) -> f64 {
    let near = nearest(dtype, x);
    if near < x { neighbour(dtype, near, true) } else { near }
}

impl RawTensor {
    /// Uniform in `[low, high)`; float dtypes.
    #[track_caller]
    pub fn random_uniform(device: &Device, dims: &[usize], dtype: DType, low: f64, high: f64) -> RawTensor {
        float("random", dtype);
        // 16-bit floats are drawn in 32 bits and rounded once, at the end.
        let wide = if dtype.size() == 2 { DType::F32 } else { dtype };
        let x = draw(device, RandomKind::Uniform, dims, wide);
        if low == 0.0 && high == 1.0 && wide == dtype {
            return x;
        }
        let x = if low == 0.0 && high == 1.0 { x } else { x.mul_scalar(Scalar::Float(high - low)) };
        let x = if low == 0.0 { x } else { x.add_scalar(Scalar::Float(low)) };
        // Rounding may reach the upper bound, which is excluded, or leave the range below.
        x.cast(dtype).clamp(Some(Scalar::Float(not_below(dtype, low))), Some(Scalar::Float(below(dtype, high))))
    }

    /// Normal with this mean and standard deviation; float dtypes.
    #[track_caller]
    pub fn random_normal(device: &Device, dims: &[usize], dtype: DType, mean: f64, std: f64) -> RawTensor {
        float("random", dtype);
        let x = draw(device, RandomKind::Normal, dims, dtype);
        let x = if std == 1.0 { x } else { x.mul_scalar(Scalar::Float(std)) };
        if mean == 0.0 { x } else { x.add_scalar(Scalar::Float(mean)) }
    }

    /// True with this probability, as bools.
    pub fn random_bernoulli(device: &Device, dims: &[usize], probability: f64) -> RawTensor {
        draw(device, RandomKind::Uniform, dims, DType::F32).lt_scalar(Scalar::Float(probability))
    }

    /// Integers in `[low, high)`, every value equally likely up to one part in 2^21.
    #[track_caller]
    pub fn random_int(device: &Device, dims: &[usize], dtype: DType, low: i64, high: i64) -> RawTensor {
        if !dtype.is_int() || low >= high {
            panic!("random: integers of {dtype} in {low}..{high}");
        }
        let span = high.wrapping_sub(low) as u64;
        // One draw has 32 bits; a wide range takes a second one for its high bits.
        let bits = draw(device, RandomKind::Bits, dims, DType::U64);
        let bits = if span > 1 << 11 {
            let high_bits = draw(device, RandomKind::Bits, dims, DType::U64);
            bits.add(&high_bits.with_constant(Elementwise::Shl, 32.0))
        } else {
            bits
        };
        let offset = bits.rem_scalar(Scalar::UInt(span)).cast(DType::I64);
        offset.add_scalar(Scalar::Int(low)).cast(dtype)
    }
}
