//! Powers of f32, computed in f64 so that one rounding is left.
use super::exp::{MAGIC64, power64};
use super::log::{exponent64, split64};
use super::round::trunc;
use super::{Arith, polynomial64};

/// `log(1 + f) = s P(s^2)`, `s = f / (2 + f)`; error 2^-45.
const LOG: [f64; 6] = [
    1.999_999_999_999_946_4,
    0.666_666_666_797_173_7,
    0.399_999_948_533_072_6,
    0.285_721_699_029_802_1,
    0.221_741_004_818_204_5,
    0.196_101_742_216_771_03,
];
/// `exp(r)` for `|r| <= ln 2 / 2`; error 2^-34.
const EXP: [f64; 8] = [
    0.999_999_999_961_375_5,
    1.000_000_000_245_03,
    0.500_000_010_516_126,
    0.166_666_651_169_148_9,
    0.041_666_223_665_606_615,
    0.008_333_561_996_352_83,
    0.001_394_830_164_988_667,
    0.000_197_750_426_503_742_67,
];

/// `x^y` as IEEE 754 defines `pow`.
#[inline(always)]
pub(super) fn pow<A: Arith>(x: f32, y: f32) -> f32 {
    let a = x.abs();
    let wide = a as f64;
    let (e, m) = split64(wide);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let log = A::fma64(exponent64(e), core::f64::consts::LN_2, s * polynomial64::<A, 6>(s * s, LOG));
    let log = if a == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if a == f32::INFINITY { f64::INFINITY } else { log };
    let power = y as f64 * log;
    // Far beyond the range of f32, and NaN stays.
    let power = if power > 150.0 { 150.0 } else { power };
    let power = if power < -150.0 { -150.0 } else { power };
    let shifted = A::fma64(power, core::f64::consts::LOG2_E, MAGIC64);
    let n = (shifted.to_bits() as i64).wrapping_sub(MAGIC64.to_bits() as i64);
    let r = A::fma64(shifted - MAGIC64, -core::f64::consts::LN_2, power);
    let size = (polynomial64::<A, 8>(r, EXP) * power64(n)) as f32;

    let size = if a == 1.0 { 1.0 } else { size };
    let size = if a.is_nan() | y.is_nan() { f32::NAN } else { size };
    let integer = trunc(y) == y;
    let half = y * 0.5;
    let odd = integer & (trunc(half) != half);
    let negative = x.is_sign_negative();
    let result = if negative & odd { -size } else { size };
    let result = if (x < 0.0) & (a < f32::INFINITY) & !integer { f32::NAN } else { result };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { result }
}
