//! Exponential, its relative `exp(x) - 1`, and the hyperbolic tangent.
use super::{Arith, polynomial, polynomial64};

/// Adding and subtracting this rounds to an integer, which the low bits of the sum then hold.
pub(super) const MAGIC: f32 = 12_582_912.0;
const MAGIC_BITS: i32 = 0x4b40_0000;
pub(super) const MAGIC64: f64 = 6_755_399_441_055_744.0;
const MAGIC64_BITS: i64 = 0x4338_0000_0000_0000;

/// ln 2 in two parts; the first has so few bits that its product with an exponent is exact.
pub(super) const LN2_HIGH: f32 = 0.693_359_4;
pub(super) const LN2_LOW: f32 = -2.121_944_4e-4;
pub(super) const LN2_HIGH64: f64 = 6.931_471_803_691_238e-1;
pub(super) const LN2_LOW64: f64 = 1.908_214_929_270_587_7e-10;

/// `exp(r) = 1 + r + r^2 P(r)` for `|r| <= ln 2 / 2`, error 2^-28.
const EXP: [f32; 5] = [0.499_999_93, 0.166_665_2, 0.041_668_395, 0.008_368_781, 0.001_381_447_1];
/// `tanh(x) = x + x^3 P(x^2)` for `|x| < 0.55`, error 2^-30.
const TANH: [f32; 5] = [-0.333_333_2, 0.133_325_86, -0.053_852_31, 0.021_071_678, -0.006_274_238];
/// The form of `EXP` in f64, with the error relative to `exp(r) - 1`, error 2^-61.
const EXP64: [f64; 11] = [
    0.5,
    0.16666666666666677,
    0.041666666666666507,
    0.008_333_333_333_321_608,
    0.0013888888888962913,
    0.00019841269886207887,
    2.480_158_717_181_742e-5,
    2.755_724_410_417_57e-6,
    2.7557402960896975e-7,
    2.5109081424871223e-8,
    2.0875322781728218e-9,
];

/// `2^n` for n in the range of normal numbers.
#[inline(always)]
pub(super) fn power(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// `2^n` for n in the range of normal numbers.
#[inline(always)]
pub(super) fn power64(n: i64) -> f64 {
    f64::from_bits(((n + 1023) << 52) as u64)
}

/// `x = n ln 2 + r`, `|r| <= ln 2 / 2`; needs `|x| < 2^21`.
#[inline(always)]
fn reduce<A: Arith>(x: f32) -> (i32, f32) {
    let shifted = A::fma(x, core::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = A::fma(n, -LN2_LOW, A::fma(n, -LN2_HIGH, x));
    ((shifted.to_bits() as i32).wrapping_sub(MAGIC_BITS), r)
}

#[inline(always)]
fn reduce64<A: Arith>(x: f64) -> (i64, f64) {
    let shifted = A::fma64(x, core::f64::consts::LOG2_E, MAGIC64);
    let n = shifted - MAGIC64;
    let r = A::fma64(n, -LN2_LOW64, A::fma64(n, -LN2_HIGH64, x));
    ((shifted.to_bits() as i64).wrapping_sub(MAGIC64_BITS), r)
}

/// `e^x`.
#[inline(always)]
pub(super) fn exp<A: Arith>(x: f32) -> f32 {
    // Comparisons this way round keep NaN. Beyond the bounds the result is infinity or zero all the same.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (n, r) = reduce::<A>(x);
    let p = A::fma(r * r, polynomial::<A, 5>(r, EXP), r) + 1.0;
    // Two factors, so that results below the normal range round once and those above overflow properly.
    let half = n >> 1;
    p * power(half) * power(n.wrapping_sub(half))
}

/// Between these bounds `e^x` is a normal number.
pub(super) const NORMAL_LOW: f32 = -87.336_54;
pub(super) const NORMAL_HIGH: f32 = 88.722_84;

/// `e^x` within the bounds above: one addition puts the exponent in.
#[inline(always)]
pub(super) fn exp_normal<A: Arith>(x: f32) -> f32 {
    let shifted = A::fma(x, core::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = A::fma(n, -LN2_LOW, A::fma(n, -LN2_HIGH, x));
    let p = A::fma(r * r, polynomial::<A, 5>(r, EXP), r) + 1.0;
    // The low bits of the sum are the exponent; what lies above them is shifted out.
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// `e^x` in f64.
#[inline(always)]
pub(super) fn exp64<A: Arith>(x: f64) -> f64 {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let (n, r) = reduce64::<A>(x);
    let p = A::fma64(r * r, polynomial64::<A, 11>(r, EXP64), r) + 1.0;
    let half = n >> 1;
    p * power64(half) * power64(n.wrapping_sub(half))
}

/// `e^x - 1` for `x <= 700`.
#[inline(always)]
fn exp_m1_64<A: Arith>(x: f64) -> f64 {
    let x = if x < -40.0 { -40.0 } else { x };
    let (n, r) = reduce64::<A>(x);
    let q = A::fma64(r * r, polynomial64::<A, 11>(r, EXP64), r);
    let scale = power64(n);
    A::fma64(q, scale, scale - 1.0)
}

/// Hyperbolic tangent: a polynomial near zero, else `1 - 2 / (exp(2 |x|) + 1)`.
#[inline(always)]
pub(super) fn tanh<A: Arith>(x: f32) -> f32 {
    let a = x.abs();
    let square = a * a;
    let near = A::fma(square * a, polynomial::<A, 5>(square, TANH), a);
    // tanh(10) rounds to 1.
    let b = if a > 10.0 { 10.0 } else { a };
    let (n, r) = reduce::<A>(b + b);
    let e = (A::fma(r * r, polynomial::<A, 5>(r, EXP), r) + 1.0) * power(n);
    let far = 1.0 - 2.0 / (e + 1.0);
    (if a < 0.55 { near } else { far }).copysign(x)
}

/// Hyperbolic tangent in f64.
#[inline(always)]
pub(super) fn tanh64<A: Arith>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 20.0 { 20.0 } else { a };
    let t = exp_m1_64::<A>(a + a);
    (t / (t + 2.0)).copysign(x)
}
