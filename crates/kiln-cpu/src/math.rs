//! Vector functions: branch-free scalar code that the compiler turns into vector code inside the loops of [`crate::simd`].
//!
//! Every function takes its arithmetic as a type parameter: [`Fused`] where the CPU has a fused multiply-add, [`Split`] elsewhere. f32 functions are
//! accurate to 2 units in the last place (measured in `tests/math.rs`); what is rare goes through `libm`, element by element.
//!
//! The polynomials are minimax fits (Remez exchange in 40 digits) of this project; the reductions follow Cody and Waite, "Software manual for
//! the elementary functions", 1980.
mod erf;
mod exp;
mod half;
mod log;
mod pow;
mod real;
mod round;
mod trig;

pub use half::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
pub use real::Real;
pub use trig::TRIG_LIMIT;

/// How a function multiplies and adds.
pub trait Arith: Copy + Send + Sync + 'static {
    /// Whether [`Arith::fma`] rounds once.
    const FUSED: bool;
    /// `a * b + c`.
    fn fma(a: f32, b: f32, c: f32) -> f32;
    /// `a * b + c` in f64.
    fn fma64(a: f64, b: f64, c: f64) -> f64;
}

/// One rounding: only for code compiled with a fused multiply-add instruction.
#[derive(Clone, Copy, Debug)]
pub struct Fused;

/// Two roundings.
#[derive(Clone, Copy, Debug)]
pub struct Split;

#[cfg(feature = "std")]
impl Arith for Fused {
    const FUSED: bool = true;

    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

impl Arith for Split {
    const FUSED: bool = false;

    #[inline(always)]
    fn fma(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// Horner's scheme, lowest coefficient first.
#[inline(always)]
fn polynomial<A: Arith, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        sum = A::fma(sum, x, coefficients[k]);
    }
    sum
}

/// Horner's scheme in f64, lowest coefficient first.
#[inline(always)]
fn polynomial64<A: Arith, const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    let mut k = N - 1;
    while k > 0 {
        k -= 1;
        sum = A::fma64(sum, x, coefficients[k]);
    }
    sum
}
