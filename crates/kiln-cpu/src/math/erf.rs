//! The error function.
use super::{Arith, polynomial};

/// `erf(x) = x + x P(x^2 - 1.125)` for `|x| < 1.5`, error 2^-26. Centred, so that the terms don't cancel.
const NEAR: [f32; 8] = [-0.183_163_84, -0.200_224_5, 0.052_076_39, -0.011_439_191, 0.002_112_058_2, -0.000_333_850_2, 4.743_594e-5, -5.665_325e-6];
/// `erf(x) = P(x - 2.71875)` for x in `[1.5, 3.92]`, error 2^-25.
const FAR: [f32; 12] = [
    0.999_879_4,
    0.000_695_382_2,
    -0.001_892_116_1,
    0.003_198_264_7,
    -0.003_704_844,
    0.003_067_033,
    -0.001_826_272_6,
    0.000_692_767,
    -3.428_929e-5,
    -0.000_117_509_39,
    4.278_005e-5,
    -7.324_06e-7,
];

/// Error function.
#[inline(always)]
pub(super) fn erf<A: Arith>(x: f32) -> f32 {
    let a = x.abs();
    // From here on erf rounds to 1.
    let b = if a > 3.92 { 3.92 } else { a };
    let near = A::fma(x, polynomial::<A, 8>(A::fma(b, b, -1.125), NEAR), x);
    let far = polynomial::<A, 12>(b - 2.718_75, FAR).copysign(x);
    if a < 1.5 { near } else { far }
}
