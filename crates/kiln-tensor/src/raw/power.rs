//! Powers: of floats by a scalar, and of integers.
use kiln_ir::{DType, Elementwise};

use super::{RawTensor, apply, arg};
use crate::Scalar;
use crate::trace::Operand;

/// Integer exponents up to this size become products.
const MAX_PRODUCT: i64 = 16;

impl RawTensor {
    /// Each element of a float tensor to the power of a scalar. Small whole exponents are products (so the slope of `x²` at 0 is 0), 0.5 is a square root.
    #[track_caller]
    pub fn powf_scalar(&self, exponent: f64) -> RawTensor {
        if exponent == 0.5 {
            return self.sqrt();
        }
        if exponent == libm::trunc(exponent) && exponent.abs() <= MAX_PRODUCT as f64 {
            return self.powi_scalar(exponent as i64);
        }
        apply(kiln_ir::Op::Elementwise(Elementwise::Pow), &[Operand::Tensor(self), arg(self.dtype(), Scalar::Float(exponent))])
    }

    /// Each element to a whole power. Integers wrap; a negative power of an integer is 0, except of 1 and -1.
    #[track_caller]
    pub fn powi_scalar(&self, exponent: i64) -> RawTensor {
        let float = self.dtype().is_float();
        if float && exponent.abs() > MAX_PRODUCT {
            return apply(kiln_ir::Op::Elementwise(Elementwise::Pow), &[Operand::Tensor(self), arg(self.dtype(), Scalar::Int(exponent))]);
        }
        if exponent < 0 && !float {
            return self.powi(&RawTensor::constant(&self.device(), self.dims(), self.dtype(), exponent as f64));
        }
        let mut n = exponent.unsigned_abs();
        if n == 0 {
            return self.constant_like(1.0);
        }
        let mut base = self.clone();
        let mut result: Option<RawTensor> = None;
        loop {
            if n & 1 == 1 {
                result = Some(result.map_or_else(|| base.clone(), |r| r.mul(&base)));
            }
            n >>= 1;
            if n == 0 {
                break;
            }
            base = base.square();
        }
        let result = result.unwrap_or(base);
        if exponent < 0 { result.recip() } else { result }
    }

    /// Each element to the whole power at its place in `exponent`, broadcast. Integers wrap; a negative power of an integer is 0, except of 1 and -1. Float
    /// bases take integer exponents too.
    #[track_caller]
    pub fn powi(&self, exponent: &RawTensor) -> RawTensor {
        if self.dtype().is_float() {
            return self.pow(&exponent.cast(self.dtype()));
        }
        let exponent = exponent.cast(self.dtype());
        // The six low bits by squaring. After them an even base is 0 modulo 2^64, and a higher bit of the exponent means 0 for it; for an odd base the
        // higher bits are followed through to the end of the exponent.
        let bits = if self.dtype().is_unsigned() { self.dtype().size() * 8 } else { self.dtype().size() * 8 - 1 };
        let mut base = self.clone();
        let mut result = exponent.constant_like(1.0);
        for bit in 0..bits {
            let set = exponent.with_constant(Elementwise::Shr, bit as f64).with_constant(Elementwise::And, 1.0).with_constant(Elementwise::Ne, 0.0);
            result = result.mask_where(&set, &result.mul(&base));
            base = base.square();
        }
        if self.dtype().is_unsigned() {
            return result;
        }
        let odd = exponent.with_constant(Elementwise::And, 1.0).with_constant(Elementwise::Ne, 0.0);
        let minus = self.with_constant(Elementwise::Eq, -1.0);
        let of_minus = self.constant_like(1.0).mask_where(&odd, &self.constant_like(-1.0));
        let inverse = self.with_constant(Elementwise::Eq, 1.0).cast(self.dtype()).mask_where(&minus, &of_minus);
        result.mask_where(&exponent.with_constant(Elementwise::Lt, 0.0), &inverse)
    }

    /// `sqrt(x² + y²)` without overflow, broadcast; infinite beside an infinity, whatever the other one is (IEEE 754-2019, 9.2.1).
    #[track_caller]
    pub fn hypot(&self, other: &RawTensor) -> RawTensor {
        let (a, b) = (self.abs(), other.abs());
        let (hi, lo) = (a.max_pair(&b), a.min_pair(&b));
        // 0 / 0 and inf / inf are kept out; what they stand for is added back.
        let special = hi.with_constant(Elementwise::Eq, 0.0).or(&hi.is_inf());
        let ratio = lo.div(&hi).fill_constant(&special, 0.0);
        let length = hi.mul(&ratio.square().with_constant(Elementwise::Add, 1.0).sqrt());
        length.fill_constant(&hi.is_nan().and(&a.is_inf().or(&b.is_inf())), f64::INFINITY)
    }

    /// A structural constant of this tensor's sizes and dtype.
    pub(crate) fn constant_like(&self, v: f64) -> RawTensor {
        RawTensor::constant(&self.device().without_autodiff(), self.dims(), self.dtype(), v)
    }

    /// The dtype of indices.
    pub(crate) const INDEX: DType = DType::I64;
}
