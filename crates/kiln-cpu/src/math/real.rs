//! One trait over f32 and f64 with every function of the op table.
use super::{Arith, erf, exp, log, pow, round, trig};

/// A float type with the functions of the op table.
pub trait Real:
    Copy
    + PartialOrd
    + Send
    + Sync
    + 'static
    + core::ops::Add<Output = Self>
    + core::ops::Sub<Output = Self>
    + core::ops::Mul<Output = Self>
    + core::ops::Div<Output = Self>
    + core::ops::Neg<Output = Self>
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Not a number.
    const NAN: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// From f64, rounded.
    fn from_f64(x: f64) -> Self;
    /// To f64, exact.
    fn to_f64(self) -> f64;
    /// `|x|`.
    fn abs(self) -> Self;
    /// The magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;
    /// Whether this is NaN.
    fn is_nan(self) -> bool;
    /// `self * b + c`, in the precision of `A`.
    fn fma<A: Arith>(self, b: Self, c: Self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `e^x`.
    fn exp<A: Arith>(self) -> Self;
    /// `e^x` where [`Real::has_normal_exp`].
    fn exp_normal<A: Arith>(self) -> Self;
    /// Whether `e^x` is a normal number: then [`Real::exp_normal`] gives it at a lower cost.
    fn has_normal_exp(self) -> bool;
    /// Natural logarithm.
    fn log<A: Arith>(self) -> Self;
    /// `log(1 + x)`.
    fn log1p<A: Arith>(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh<A: Arith>(self) -> Self;
    /// Error function.
    fn erf<A: Arith>(self) -> Self;
    /// Sine where [`Real::is_moderate`].
    fn sin<A: Arith>(self) -> Self;
    /// Cosine where [`Real::is_moderate`].
    fn cos<A: Arith>(self) -> Self;
    /// Tangent where [`Real::is_moderate`].
    fn tan<A: Arith>(self) -> Self;
    /// Whether the vector forms of sine, cosine and tangent hold.
    fn is_moderate(self) -> bool;
    /// Sine anywhere.
    fn sin_far(self) -> Self;
    /// Cosine anywhere.
    fn cos_far(self) -> Self;
    /// Tangent anywhere.
    fn tan_far(self) -> Self;
    /// Arc sine.
    fn asin(self) -> Self;
    /// Arc cosine.
    fn acos(self) -> Self;
    /// Arc tangent.
    fn atan(self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// `self^y`.
    fn pow<A: Arith>(self, y: Self) -> Self;
    /// Angle of the point `(x, self)`.
    fn atan2(self, x: Self) -> Self;
    /// Truncated remainder.
    fn fmod(self, y: Self) -> Self;
    /// Largest integer not above.
    fn floor(self) -> Self;
    /// Smallest integer not below.
    fn ceil(self) -> Self;
    /// Nearest integer, ties to even.
    fn round(self) -> Self;
    /// Integer part.
    fn trunc(self) -> Self;
}

macro_rules! real {
    ($float:ident, {$($own:tt)*}, $($name:ident = $libm:ident ( $($arg:ident)? );)*) => {
        impl Real for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = $float::NAN;
            const INFINITY: Self = $float::INFINITY;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $float
            }

            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn abs(self) -> Self {
                $float::abs(self)
            }

            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $float::copysign(self, sign)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                $float::is_nan(self)
            }

            $($own)*

            $(
                #[inline(always)]
                fn $name(self $(, $arg: Self)?) -> Self {
                    libm::$libm(self $(, $arg)?)
                }
            )*
        }
    };
}

/// Methods that forward to a function of this module's siblings.
macro_rules! forward {
    ($($name:ident => $path:path;)*) => {
        $(
            #[inline(always)]
            fn $name(self) -> Self {
                $path(self)
            }
        )*
    };
}

real!(f32, {
    #[inline(always)]
    fn fma<A: Arith>(self, b: Self, c: Self) -> Self {
        A::fma(self, b, c)
    }

    #[inline(always)]
    fn pow<A: Arith>(self, y: Self) -> Self {
        pow::pow::<A>(self, y)
    }

    #[inline(always)]
    fn is_moderate(self) -> bool {
        self.abs() <= trig::TRIG_LIMIT
    }

    #[inline(always)]
    fn exp<A: Arith>(self) -> Self {
        exp::exp::<A>(self)
    }

    #[inline(always)]
    fn exp_normal<A: Arith>(self) -> Self {
        exp::exp_normal::<A>(self)
    }

    #[inline(always)]
    fn has_normal_exp(self) -> bool {
        (exp::NORMAL_LOW..=exp::NORMAL_HIGH).contains(&self)
    }

    #[inline(always)]
    fn log<A: Arith>(self) -> Self {
        log::log::<A>(self)
    }

    #[inline(always)]
    fn log1p<A: Arith>(self) -> Self {
        log::log1p::<A>(self)
    }

    #[inline(always)]
    fn tanh<A: Arith>(self) -> Self {
        exp::tanh::<A>(self)
    }

    #[inline(always)]
    fn erf<A: Arith>(self) -> Self {
        erf::erf::<A>(self)
    }

    #[inline(always)]
    fn sin<A: Arith>(self) -> Self {
        trig::sin::<A>(self)
    }

    #[inline(always)]
    fn cos<A: Arith>(self) -> Self {
        trig::cos::<A>(self)
    }

    #[inline(always)]
    fn tan<A: Arith>(self) -> Self {
        trig::tan::<A>(self)
    }

    #[inline(always)]
    fn acosh(self) -> Self {
        if self < 1.0 { f32::NAN } else { libm::acoshf(self) }
    }

    forward! {
        sqrt => round::sqrt;
        floor => round::floor;
        ceil => round::ceil;
        round => round::round;
        trunc => round::trunc;
    }
}, sin_far = sinf(); cos_far = cosf(); tan_far = tanf(); asin = asinf(); acos = acosf(); atan = atanf(); sinh = sinhf(); cosh = coshf();
    asinh = asinhf(); atanh = atanhf(); atan2 = atan2f(x); fmod = fmodf(y););

real!(f64, {
    #[inline(always)]
    fn fma<A: Arith>(self, b: Self, c: Self) -> Self {
        A::fma64(self, b, c)
    }

    #[inline(always)]
    fn pow<A: Arith>(self, y: Self) -> Self {
        libm::pow(self, y)
    }

    #[inline(always)]
    fn is_moderate(self) -> bool {
        true
    }

    #[inline(always)]
    fn exp<A: Arith>(self) -> Self {
        exp::exp64::<A>(self)
    }

    #[inline(always)]
    fn exp_normal<A: Arith>(self) -> Self {
        exp::exp64::<A>(self)
    }

    #[inline(always)]
    fn has_normal_exp(self) -> bool {
        true
    }

    #[inline(always)]
    fn log<A: Arith>(self) -> Self {
        log::log64::<A>(self)
    }

    #[inline(always)]
    fn log1p<A: Arith>(self) -> Self {
        log::log1p64::<A>(self)
    }

    #[inline(always)]
    fn tanh<A: Arith>(self) -> Self {
        exp::tanh64::<A>(self)
    }

    #[inline(always)]
    fn erf<A: Arith>(self) -> Self {
        libm::erf(self)
    }

    #[inline(always)]
    fn sin<A: Arith>(self) -> Self {
        libm::sin(self)
    }

    #[inline(always)]
    fn cos<A: Arith>(self) -> Self {
        libm::cos(self)
    }

    #[inline(always)]
    fn tan<A: Arith>(self) -> Self {
        libm::tan(self)
    }

    #[inline(always)]
    fn acosh(self) -> Self {
        if self < 1.0 { f64::NAN } else { libm::acosh(self) }
    }

    forward! {
        sqrt => round::sqrt64;
        floor => round::floor64;
        ceil => round::ceil64;
        round => round::round64;
        trunc => round::trunc64;
    }
}, sin_far = sin(); cos_far = cos(); tan_far = tan(); asin = asin(); acos = acos(); atan = atan(); sinh = sinh(); cosh = cosh();
    asinh = asinh(); atanh = atanh(); atan2 = atan2(x); fmod = fmod(y););
