//! Rounding to integers and square roots, without instructions or library calls that some targets lack.

/// Nearest integer, ties to even.
#[inline(always)]
pub(super) fn round(x: f32) -> f32 {
    const LIMIT: f32 = 8_388_608.0;
    let a = x.abs();
    let r = ((a + LIMIT) - LIMIT).copysign(x);
    if a < LIMIT { r } else { x }
}

/// Nearest integer, ties to even.
#[inline(always)]
pub(super) fn round64(x: f64) -> f64 {
    const LIMIT: f64 = 4_503_599_627_370_496.0;
    let a = x.abs();
    let r = ((a + LIMIT) - LIMIT).copysign(x);
    if a < LIMIT { r } else { x }
}

macro_rules! directed {
    ($float:ident, $round:ident, $floor:ident, $ceil:ident, $trunc:ident) => {
        /// Largest integer not above x.
        #[inline(always)]
        pub(super) fn $floor(x: $float) -> $float {
            let r = $round(x);
            (if r > x { r - 1.0 } else { r }).copysign(x)
        }

        /// Smallest integer not below x.
        #[inline(always)]
        pub(super) fn $ceil(x: $float) -> $float {
            let r = $round(x);
            (if r < x { r + 1.0 } else { r }).copysign(x)
        }

        /// Integer part.
        #[inline(always)]
        pub(super) fn $trunc(x: $float) -> $float {
            $floor(x.abs()).copysign(x)
        }
    };
}

directed!(f32, round, floor, ceil, trunc);
directed!(f64, round64, floor64, ceil64, trunc64);

/// Square root, correctly rounded.
#[inline(always)]
pub(super) fn sqrt(x: f32) -> f32 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrtf(x)
}

/// Square root, correctly rounded.
#[inline(always)]
pub(super) fn sqrt64(x: f64) -> f64 {
    #[cfg(feature = "std")]
    return x.sqrt();
    #[cfg(not(feature = "std"))]
    libm::sqrt(x)
}
