//! Gradients of the elementwise table: one arm a row.
#![deny(clippy::wildcard_enum_match_arm)]
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::Elementwise;

use super::{Backward, Needs, Value, row};
use crate::raw::RawTensor;
use crate::trace::Operand;

/// What the rule of a row keeps.
pub(super) fn needs(e: Elementwise, tracked: u32) -> Needs {
    use Elementwise::*;
    match e {
        Neg | Add | Sub | Sign | Floor | Ceil | Round | Trunc => Needs::NOTHING,
        Not | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge => Needs::NOTHING,
        Recip | Sqrt | Exp | Tan | Tanh => Needs::OUTPUT,
        Abs | Log | Log1p | Sin | Cos | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Erf => Needs::operands(1),
        Mul => Needs::other(tracked),
        Div => Needs::operands(2).and_output(tracked & 2 != 0),
        Rem | Fmod => Needs::operands(if tracked & 2 != 0 { 3 } else { 0 }),
        Pow => Needs::operands(3).and_output(tracked & 2 != 0),
        Atan2 | Max | Min => Needs::operands(3),
        Where => Needs::operands(1),
    }
}

/// The gradients of a row's operands.
pub(in crate::autodiff) fn gradients(e: Elementwise, b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    use Elementwise::*;
    let dy = b.dy;
    let one = |dx: RawTensor| vec![Some(dx)];
    match e {
        Neg => one(dy.neg()),
        Abs => one(dy.mul(&b.value(0).sign())),
        Sign | Floor | Ceil | Round | Trunc => one(b.zeros(0)),
        Recip => one(dy.mul(&b.output().square()).neg()),
        Sqrt => one(dy.div(&b.output().with_constant(Mul, 2.0))),
        Exp => one(dy.mul(&b.output())),
        Log => one(dy.div(&b.value(0))),
        Log1p => one(dy.div(&b.value(0).with_constant(Add, 1.0))),
        Sin => one(dy.mul(&b.value(0).cos())),
        Cos => one(dy.mul(&b.value(0).sin()).neg()),
        Tan => one(dy.mul(&b.output().square().with_constant(Add, 1.0))),
        Asin => one(dy.div(&b.value(0).square().constant_with(Sub, 1.0).sqrt())),
        Acos => one(dy.div(&b.value(0).square().constant_with(Sub, 1.0).sqrt()).neg()),
        Atan => one(dy.div(&b.value(0).square().with_constant(Add, 1.0))),
        Sinh => one(dy.mul(&b.value(0).cosh())),
        Cosh => one(dy.mul(&b.value(0).sinh())),
        Tanh => one(dy.mul(&b.output().square().constant_with(Sub, 1.0))),
        Asinh => one(dy.div(&b.value(0).square().with_constant(Add, 1.0).sqrt())),
        Acosh => one(dy.div(&b.value(0).square().with_constant(Sub, 1.0).sqrt())),
        Atanh => one(dy.div(&b.value(0).square().constant_with(Sub, 1.0))),
        Erf => {
            // 2 / sqrt(pi) * exp(-x²)
            let slope = b.value(0).square().neg().exp().with_constant(Mul, core::f64::consts::FRAC_2_SQRT_PI);
            one(dy.mul(&slope))
        }
        Add => vec![b.wants(0).then(|| dy.clone()), b.wants(1).then(|| dy.clone())],
        Sub => vec![b.wants(0).then(|| dy.clone()), b.wants(1).then(|| dy.neg())],
        Mul => {
            let times = |i: usize| row(Mul, &[Operand::Tensor(dy), b.operand(i).operand()]);
            vec![b.wants(0).then(|| times(1)), b.wants(1).then(|| times(0))]
        }
        Div => {
            let over = row(Div, &[Operand::Tensor(dy), b.operand(1).operand()]);
            let dy1 = b.wants(1).then(|| over.mul(&b.output()).neg());
            vec![b.wants(0).then_some(over), dy1]
        }
        Rem => remainder(b, Floor),
        Fmod => remainder(b, Trunc),
        Pow => pow(b),
        Atan2 => {
            let of = |i: usize| RawTensor::of_value(&b.operand(i), dy);
            let (y, x) = (of(0), of(1));
            let over = dy.div(&y.square().add(&x.square()));
            vec![b.wants(0).then(|| over.mul(&x)), b.wants(1).then(|| over.mul(&y).neg())]
        }
        Max => choose(b, Ge),
        Min => choose(b, Le),
        Where => {
            let mask = b.value(0);
            let zero = || Value::Scalar(crate::trace::ScalarWord::Const(dy.dtype(), 0));
            let yes = b.wants(1).then(|| mask.choose_or_zero(dy));
            let no = b.wants(2).then(|| row(Where, &[Operand::Tensor(&mask), zero().operand(), Operand::Tensor(dy)]));
            vec![None, yes, no]
        }
        Not | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge => unreachable!("{} gives no float", e.name()),
    }
}

/// `x - y * round(x / y)` for both remainders: the slope for `y` is minus the whole quotient.
fn remainder(b: &Backward<'_>, whole: Elementwise) -> Vec<Option<RawTensor>> {
    let divisor = b.wants(1).then(|| {
        let quotient = row(Elementwise::Div, &[b.operand(0).operand(), b.operand(1).operand()]).unary(whole);
        b.dy.mul(&quotient).neg()
    });
    vec![b.wants(0).then(|| b.dy.clone()), divisor]
}

/// `x^y`: `y x^(y-1)`, and `x^y ln x`, which is 0 where `x` is 0 and the power is too.
fn pow(b: &Backward<'_>) -> Vec<Option<RawTensor>> {
    use Elementwise::{Eq, Mul, Pow, Sub};
    let (x, y) = (b.operand(0), b.operand(1));
    let one = crate::raw::constant(b.dy.dtype(), 1.0);
    let base = b.wants(0).then(|| {
        let slope = match &y {
            Value::Tensor(exponent) => {
                let lower = exponent.with_constant(Sub, 1.0);
                let slope = row(Mul, &[Operand::Tensor(&row(Pow, &[x.operand(), Operand::Tensor(&lower)])), y.operand()]);
                // x^0 is flat everywhere, at 0 too.
                slope.fill_constant(&exponent.with_constant(Eq, 0.0), 0.0)
            }
            Value::Scalar(s) => {
                let lower = RawTensor::of_operand(&b.dy.device().without_autodiff(), Operand::Scalar(*s), b.dy.dtype());
                let lower = row(Sub, &[Operand::Tensor(&lower), one]);
                row(Mul, &[Operand::Tensor(&row(Pow, &[x.operand(), Operand::Tensor(&lower)])), y.operand()])
            }
        };
        b.dy.mul(&slope)
    });
    let exponent = b.wants(1).then(|| {
        let log = RawTensor::of_value(&x, b.dy).log();
        let out = b.output();
        let slope = out.mul(&log).fill_constant(&out.with_constant(Eq, 0.0), 0.0);
        b.dy.mul(&slope)
    });
    vec![base, exponent]
}

/// The gradient goes to the operand that was chosen; to the first where both are equal, and where the first is NaN to neither more than the other.
fn choose(b: &Backward<'_>, first_wins: Elementwise) -> Vec<Option<RawTensor>> {
    let mask = row(first_wins, &[b.operand(0).operand(), b.operand(1).operand()]);
    let first = b.wants(0).then(|| mask.choose_or_zero(b.dy));
    let second = b.wants(1).then(|| b.dy.fill_constant(&mask, 0.0));
    vec![first, second]
}

impl RawTensor {
    /// A saved operand as a tensor of the gradient's sizes.
    fn of_value(v: &Value, like: &RawTensor) -> RawTensor {
        match v {
            Value::Tensor(t) => t.clone(),
            Value::Scalar(s) => {
                let scalar = RawTensor::of_operand(&like.device().without_autodiff(), Operand::Scalar(*s), like.dtype());
                scalar.expand(like.dims())
            }
        }
    }
}
