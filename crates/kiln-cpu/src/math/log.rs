//! Natural logarithm, and that of `1 + x`.
use super::exp::{LN2_HIGH, LN2_HIGH64, LN2_LOW, LN2_LOW64, power, power64};
use super::{Arith, polynomial, polynomial64};

/// `log(1 + f) = f + f^2 P(f)` for `1 + f` in `[sqrt(1/2), sqrt(2)]`, error 2^-28.
const LOG: [f32; 9] =
    [-0.499_999_88, 0.333_333_26, -0.250_015_83, 0.200_019_74, -0.166_090_82, 0.141_818_17, -0.132_429_86, 0.129_044_8, -0.076_218_376];
/// `log((1 + s) / (1 - s)) = s P(s^2)` for `1 + f` as above, `s = f / (2 + f)`; error 2^-66.
const LOG64: [f64; 9] = [
    2.0,
    0.666_666_666_666_666_6,
    0.400_000_000_000_075_74,
    0.285_714_285_687_967_1,
    0.222_222_226_799_844_34,
    0.181_817_735_120_884_6,
    0.153_871_701_779_004_24,
    0.132_485_658_954_262_7,
    0.132_638_103_369_187_9,
];

/// `x = 2^e m` with m in `[sqrt(1/2), sqrt(2))`, for positive normal x.
#[inline(always)]
fn split(x: f32) -> (i32, f32) {
    let bits = x.to_bits() as i32;
    let e = bits.wrapping_sub(0x3f35_04f3) >> 23;
    (e, f32::from_bits(bits.wrapping_sub(e << 23) as u32))
}

/// As the f32 form.
#[inline(always)]
pub(super) fn split64(x: f64) -> (i64, f64) {
    let bits = x.to_bits() as i64;
    let e = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd) >> 52;
    (e, f64::from_bits(bits.wrapping_sub(e << 52) as u64))
}

/// `e` as a float without a 64-bit conversion instruction, which AVX2 lacks; `|e| < 2^51`.
#[inline(always)]
pub(super) fn exponent64(e: i64) -> f64 {
    f64::from_bits((e.wrapping_add(0x4338_0000_0000_0000)) as u64) - super::exp::MAGIC64
}

/// `e ln 2 + log(1 + f)`.
#[inline(always)]
fn finish<A: Arith>(e: f32, f: f32) -> f32 {
    let tail = A::fma(e, LN2_LOW, f * f * polynomial::<A, 9>(f, LOG));
    A::fma(e, LN2_HIGH, f + tail)
}

#[inline(always)]
fn finish64<A: Arith>(e: f64, f: f64, correction: f64) -> f64 {
    // f - s (f - R): the form of fdlibm's log1p, which keeps f exact in the leading term.
    let s = f / (2.0 + f);
    let z = s * s;
    let [_, rest @ ..] = LOG64;
    let r = z * polynomial64::<A, 8>(z, rest);
    let half = 0.5 * f * f;
    let small = s * (half + r) + (A::fma64(e, LN2_LOW64, correction));
    A::fma64(e, LN2_HIGH64, f - (half - small))
}

/// Puts the special values in: `result` holds for positive finite x.
#[inline(always)]
fn specials(x: f32, result: f32) -> f32 {
    let result = if x == f32::INFINITY { x } else { result };
    let negative = if x == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    if x > 0.0 { result } else { negative }
}

#[inline(always)]
fn specials64(x: f64, result: f64) -> f64 {
    let result = if x == f64::INFINITY { x } else { result };
    let negative = if x == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    if x > 0.0 { result } else { negative }
}

/// Natural logarithm.
#[inline(always)]
pub(super) fn log<A: Arith>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let y = if tiny { x * 8_388_608.0 } else { x };
    let shift = if tiny { -23 } else { 0 };
    let (e, m) = split(y);
    specials(x, finish::<A>(e.wrapping_add(shift) as f32, m - 1.0))
}

/// Natural logarithm in f64.
#[inline(always)]
pub(super) fn log64<A: Arith>(x: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let y = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    let shift = if tiny { -54 } else { 0 };
    let (e, m) = split64(y);
    specials64(x, finish64::<A>(exponent64(e.wrapping_add(shift)), m - 1.0, 0.0))
}

/// `log(1 + x)`, accurate near zero.
#[inline(always)]
pub(super) fn log1p<A: Arith>(x: f32) -> f32 {
    // 1 + x = u + lost, exactly (Knuth's two-sum).
    let u = 1.0 + x;
    let back = u - 1.0;
    let lost = (1.0 - (u - back)) + (x - back);
    let (e, m) = split(u);
    let f = (m - 1.0) + lost * power(if e > 126 { -126 } else { e.wrapping_neg() });
    let result = specials(u, finish::<A>(e as f32, f));
    if x == 0.0 { x } else { result }
}

/// `log(1 + x)` in f64.
#[inline(always)]
pub(super) fn log1p64<A: Arith>(x: f64) -> f64 {
    let u = 1.0 + x;
    let back = u - 1.0;
    let lost = (1.0 - (u - back)) + (x - back);
    let (e, m) = split64(u);
    let rest = lost * power64(if e > 1022 { -1022 } else { e.wrapping_neg() });
    // For e = 0 the rest joins f without loss; otherwise it is far below f.
    let f = (m - 1.0) + rest;
    let correction = ((m - 1.0) - f) + rest;
    let result = specials64(u, finish64::<A>(exponent64(e), f, correction));
    if x == 0.0 { x } else { result }
}
