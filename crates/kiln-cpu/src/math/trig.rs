//! Sine, cosine and tangent of moderate arguments.
use super::exp::{MAGIC, MAGIC64};
use super::{Arith, polynomial};

/// Above this magnitude the reduction below loses accuracy and the caller takes `libm`'s functions.
pub const TRIG_LIMIT: f32 = 60_000.0;

/// `sin(r) = r + r^3 P(r^2)` for `|r| <= pi / 4`, error 2^-28.
const SIN: [f32; 3] = [-0.166_666_55, 0.008_332_156, -0.000_195_146_32];
/// `cos(r) = 1 - r^2 / 2 + r^4 P(r^2)`, error 2^-33.
const COS: [f32; 3] = [0.041_666_646, -0.001_388_731, 2.443_241_2e-5];
/// `tan(r) = r + r^3 P(r^2)`, error 2^-26.
const TAN: [f32; 6] = [0.333_331_54, 0.133_388_67, 0.053_405_56, 0.024_450_946, 0.003_085_944_5, 0.009_405_85];

/// pi / 2 in three parts.
const PI_2: [f32; 3] = [1.570_796_4, -4.371_139e-8, -1.715_124_5e-15];

/// `x = n pi / 2 + r`: the quadrant and r, `|r| <= pi / 4` up to rounding.
#[inline(always)]
fn reduce<A: Arith>(x: f32) -> (i32, f32) {
    if A::FUSED {
        let shifted = A::fma(x, core::f32::consts::FRAC_2_PI, MAGIC);
        let n = shifted - MAGIC;
        let r = A::fma(n, -PI_2[2], A::fma(n, -PI_2[1], A::fma(n, -PI_2[0], x)));
        (shifted.to_bits() as i32, r)
    } else {
        // Without a fused multiply-add the products above would be rounded: f64 has room for them.
        let shifted = x as f64 * core::f64::consts::FRAC_2_PI + MAGIC64;
        let n = shifted - MAGIC64;
        // 33 bits of pi / 2, and the rest.
        let r = (x as f64 - n * 1.570_796_326_734_125_6) - n * 6.077_100_506_506_192e-11;
        (shifted.to_bits() as i32, r as f32)
    }
}

#[inline(always)]
fn sine<A: Arith>(r: f32) -> f32 {
    let s = r * r;
    A::fma(r * s, polynomial::<A, 3>(s, SIN), r)
}

#[inline(always)]
fn cosine<A: Arith>(r: f32) -> f32 {
    let s = r * r;
    A::fma(s * s, polynomial::<A, 3>(s, COS), A::fma(s, -0.5, 1.0))
}

/// Flips the sign of x where bit 1 of `quadrant` is set.
#[inline(always)]
fn flip(x: f32, quadrant: i32) -> f32 {
    f32::from_bits(x.to_bits() ^ ((quadrant as u32 & 2) << 30))
}

/// Sine, for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub(super) fn sin<A: Arith>(x: f32) -> f32 {
    let (quadrant, r) = reduce::<A>(x);
    let (s, c) = (sine::<A>(r), cosine::<A>(r));
    let result = flip(if quadrant & 1 == 0 { s } else { c }, quadrant);
    // The reduction makes +0 of -0.
    if x == 0.0 { x } else { result }
}

/// Cosine, for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub(super) fn cos<A: Arith>(x: f32) -> f32 {
    let (quadrant, r) = reduce::<A>(x);
    let (s, c) = (sine::<A>(r), cosine::<A>(r));
    flip(if quadrant & 1 == 0 { c } else { s }, quadrant.wrapping_add(1))
}

/// Tangent, for `|x| <= TRIG_LIMIT`.
#[inline(always)]
pub(super) fn tan<A: Arith>(x: f32) -> f32 {
    let (quadrant, r) = reduce::<A>(x);
    let s = r * r;
    let t = A::fma(r * s, polynomial::<A, 6>(s, TAN), r);
    let result = if quadrant & 1 == 0 { t } else { -1.0 / t };
    if x == 0.0 { x } else { result }
}
