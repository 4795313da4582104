//! Codes and values: what a quantized value is before and after it is packed, composed of elementwise ops.
//!
//! On a device the codes of 8-bit values lie one in a byte. Smaller ones are split into planes: the first byte holds the first code of every plane, the next
//! byte the second ones, so that codes are read and written in order, and packing takes no more than a shift.
use kiln_ir::{DType, Dims, Elementwise, dims};

use super::super::{RawTensor, SliceRange};
use crate::Device;
use crate::quantization::QuantValue;

/// A small float: exponents and fractions, without infinities.
struct SmallFloat {
    /// Bits of the exponent.
    exponent: usize,
    /// Bits of the fraction.
    fraction: usize,
    /// Exponent of the smallest normal number.
    least: i32,
}

impl SmallFloat {
    fn of(value: QuantValue) -> Option<Self> {
        match value {
            QuantValue::E5M2 => Some(SmallFloat { exponent: 5, fraction: 2, least: -14 }),
            QuantValue::E4M3 => Some(SmallFloat { exponent: 4, fraction: 3, least: -6 }),
            QuantValue::E2M1 => Some(SmallFloat { exponent: 2, fraction: 1, least: 0 }),
            QuantValue::Q8F | QuantValue::Q4F | QuantValue::Q2F | QuantValue::Q8S | QuantValue::Q4S | QuantValue::Q2S => None,
        }
    }

    /// Where the sign is.
    fn sign(&self) -> f64 {
        power(self.exponent + self.fraction)
    }
}

fn limited(x: &RawTensor, low: f32, high: f32) -> RawTensor {
    x.with_constant(Elementwise::Max, f64::from(low)).with_constant(Elementwise::Min, f64::from(high))
}

fn power(n: usize) -> f64 {
    (1u64 << n) as f64
}

/// 2 to the power of small whole numbers of `bits` bits, exactly.
pub(super) fn power_of_two(exponent: &RawTensor, bits: usize) -> RawTensor {
    let factor = |bit: usize| {
        let set = exponent.with_constant(Elementwise::And, power(bit)).with_constant(Elementwise::Ne, 0.0).cast(DType::F32);
        // The bit's factor or 1: both sums are exact.
        set.with_constant(Elementwise::Mul, libm::exp2(power(bit)) - 1.0).with_constant(Elementwise::Add, 1.0)
    };
    (1..bits).fold(factor(0), |product, bit| product.mul(&factor(bit)))
}

/// Splits positive numbers into a power of two below `2^(2^bits)` and what remains, at least 1 unless the number is below: the exponent, and the rest.
pub(super) fn split_exponent(x: &RawTensor, bits: usize) -> [RawTensor; 2] {
    let mut rest = x.clone();
    let mut exponent: Option<RawTensor> = None;
    for bit in (0..bits).rev() {
        let large = rest.with_constant(Elementwise::Ge, libm::exp2(power(bit)));
        rest = rest.mask_where(&large, &rest.with_constant(Elementwise::Mul, libm::exp2(-power(bit))));
        let part = large.cast(DType::F32).with_constant(Elementwise::Mul, power(bit));
        exponent = Some(exponent.map_or(part.clone(), |sum| sum.add(&part)));
    }
    [exponent.expect("an exponent has bits"), rest]
}

/// The codes of small positive floats whose smallest normal number is 1: rounded to even, or up.
pub(super) fn positive_codes(x: &RawTensor, exponent: usize, fraction: usize, round: Elementwise) -> RawTensor {
    let [exponent, rest] = split_exponent(x, exponent);
    // A fraction that is rounded up to the next power of two carries into the exponent by itself, and numbers below the normal ones have exponent 0.
    let fraction = rest.with_constant(Elementwise::Mul, power(fraction)).unary(round).add(&exponent.with_constant(Elementwise::Mul, power(fraction)));
    fraction.cast(DType::U8)
}

/// The positive floats of codes, if the smallest normal number is 1.
pub(super) fn positive_values(codes: &RawTensor, exponent: usize, fraction: usize) -> RawTensor {
    let scale = codes.with_constant(Elementwise::Shr, fraction as f64);
    let normal = scale.with_constant(Elementwise::Ne, 0.0);
    let digits = codes.with_constant(Elementwise::And, power(fraction) - 1.0).cast(DType::F32).with_constant(Elementwise::Mul, 1.0 / power(fraction));
    let digits = digits.add(&normal.cast(DType::F32));
    let scale = scale.with_constant(Elementwise::Max, 1.0).with_constant(Elementwise::Sub, 1.0);
    digits.mul(&power_of_two(&scale, exponent))
}

/// How codes of a kind of values lie on a device.
pub(super) struct Codec {
    value: QuantValue,
    bits: usize,
}

impl Codec {
    pub fn of(value: QuantValue) -> Self {
        Codec { value, bits: value.size_bits() }
    }

    /// Codes in a byte.
    pub fn planes(&self) -> usize {
        8 / self.bits
    }

    /// The type of the bytes.
    pub fn dtype(&self) -> DType {
        if self.bits == 8 && !self.value.is_float() { DType::I8 } else { DType::U8 }
    }

    /// What is added to integers so that packed ones are not negative.
    pub fn bias(&self) -> u8 {
        if self.bits == 8 || self.value.is_float() { 0 } else { 1 << (self.bits - 1) }
    }

    /// Sizes of the stored bytes of a tensor.
    pub fn stored_dims(&self, dims: &[usize]) -> Dims {
        match self.planes() {
            1 => dims.into(),
            planes => Dims::from_slice(&[dims::numel(dims).div_ceil(planes)]),
        }
    }

    /// The stored codes of scaled values.
    pub fn encode(&self, x: &RawTensor) -> RawTensor {
        let (low, high) = self.value.range();
        if let Some(float) = SmallFloat::of(self.value) {
            let x = limited(x, low, high);
            let size = x.abs().with_constant(Elementwise::Mul, libm::exp2(-f64::from(float.least)));
            let codes = positive_codes(&size, float.exponent, float.fraction, Elementwise::Round);
            let negative = x.with_constant(Elementwise::Lt, 0.0).cast(DType::U8);
            return self.pack(&codes.add(&negative.with_constant(Elementwise::Mul, float.sign())));
        }
        // Of two nearest integers the one farther from zero.
        let whole = x.trunc();
        let half = x.sub(&whole).abs().with_constant(Elementwise::Ge, 0.5).cast(DType::F32);
        let codes = limited(&whole.add(&half.mul(&x.sign())), low, high).cast(DType::I8);
        match self.bias() {
            0 => codes,
            bias => self.pack(&codes.with_constant(Elementwise::Add, f64::from(bias)).cast(DType::U8)),
        }
    }

    /// The scaled values of codes, in `F32`.
    pub fn decode(&self, codes: &RawTensor) -> RawTensor {
        let Some(float) = SmallFloat::of(self.value) else {
            let values = codes.cast(DType::F32);
            return match self.bias() {
                0 => values,
                bias => values.with_constant(Elementwise::Sub, f64::from(bias)),
            };
        };
        let size = positive_values(&codes.with_constant(Elementwise::And, float.sign() - 1.0), float.exponent, float.fraction);
        let negative = codes.with_constant(Elementwise::And, float.sign()).with_constant(Elementwise::Ne, 0.0).cast(DType::F32);
        let sign = negative.with_constant(Elementwise::Mul, -2.0).with_constant(Elementwise::Add, 1.0);
        size.mul(&sign.with_constant(Elementwise::Mul, libm::exp2(f64::from(float.least))))
    }

    /// How far each plane is shifted, for planes along the first of `rank` axes.
    fn shifts(&self, device: &Device, rank: usize) -> RawTensor {
        let mut dims = Dims::from_elem(1, rank);
        dims[0] = self.planes();
        RawTensor::iota(&device.clone().without_autodiff(), &dims, DType::U8, 0).with_constant(Elementwise::Mul, self.bits as f64)
    }

    /// Packs codes of less than 8 bits; they are not negative.
    pub fn pack(&self, codes: &RawTensor) -> RawTensor {
        let planes = self.planes();
        if planes == 1 {
            return codes.clone();
        }
        let (count, bytes) = (codes.numel(), codes.numel().div_ceil(planes));
        let flat = codes.reshape(&[count]);
        let flat = if count == bytes * planes { flat } else { flat.pad_zeros(&[(0, bytes * planes - count)]) };
        let planes = flat.reshape(&[planes, bytes]);
        let shifted = planes.binary(Elementwise::Shl, &self.shifts(&codes.device(), 2));
        shifted.sum(&[0]).reshape(&[bytes])
    }

    /// The codes of stored bytes, in sizes `dims`.
    pub fn unpack(&self, stored: &RawTensor, dims: &[usize]) -> RawTensor {
        let planes = self.planes();
        if planes == 1 {
            return stored.clone();
        }
        let (count, bytes) = (dims::numel(dims), stored.numel());
        // Where the planes divide the first axis, that is the only one that is joined again.
        let aligned = dims.first().is_some_and(|size| size % planes == 0) && count > 0;
        let mut split = Dims::from_slice(if aligned { dims } else { &[] });
        match aligned {
            true => split[0] /= planes,
            false => split.push(bytes),
        }
        split.insert(0, 1);
        let one = stored.reshape(&split);
        split[0] = planes;
        let shifts = self.shifts(&stored.device(), split.len());
        let codes = one.expand(&split).binary(Elementwise::Shr, &shifts).with_constant(Elementwise::And, power(self.bits) - 1.0);
        if aligned {
            return codes.reshape(dims);
        }
        let flat = codes.reshape(&[planes * bytes]);
        flat.slice_fixed(&[SliceRange::new(0, 0, count)]).reshape(dims)
    }
}
