//! Random tensors.
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

impl RawTensor {
    /// Uniform in `[low, high)`; float dtypes.
    #[track_caller]
    pub fn random_uniform(device: &Device, dims: &[usize], dtype: DType, low: f64, high: f64) -> RawTensor {
        float("random", dtype);
        let x = draw(device, RandomKind::Uniform, dims, dtype);
        let x = if low == 0.0 && high == 1.0 { return x } else { x.mul_scalar(Scalar::Float(high - low)) };
        if low == 0.0 { x } else { x.add_scalar(Scalar::Float(low)) }
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
