//! `flex32`: a float stored in 32 bits that devices may compute with less precision.

use core::cmp::Ordering;
use core::fmt;
use core::num::FpCategory;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign};

use bytemuck::{Pod, Zeroable};
use num_traits::{Float, Num, NumCast, One, ToPrimitive, Zero};
use serde::{Deserialize, Serialize};

/// A float stored in 32 bits that devices may compute with less precision. On the host it computes as `f32`.
///
/// ```
/// use kiln_tensor::flex32;
/// assert_eq!((flex32::from_f32(1.5) + flex32::from_f32(1.0)).to_f64(), 2.5);
/// assert_eq!((flex32::from_f32(1.5) * 2.0f32).to_f64(), 3.0);
/// ```
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, PartialOrd, Serialize)]
#[repr(transparent)]
#[serde(transparent)]
pub struct flex32(f32);

impl flex32 {
    /// The smallest positive normal number that every device can compute with: that of `f16`.
    pub const MIN_POSITIVE: Self = Self(half::f16::MIN_POSITIVE.to_f32_const());
    /// The smallest finite number that can be stored.
    pub const MIN: Self = Self(f32::MIN);
    /// The largest finite number that can be stored.
    pub const MAX: Self = Self(f32::MAX);

    /// The number nearest to the given one.
    pub const fn from_f32(val: f32) -> Self {
        Self(val)
    }

    /// The number nearest to the given one.
    pub const fn from_f64(val: f64) -> Self {
        Self(val as f32)
    }

    /// As `f32`.
    pub const fn to_f32(self) -> f32 {
        self.0
    }

    /// As `f64`.
    pub const fn to_f64(self) -> f64 {
        self.0 as f64
    }

    /// The total order of IEEE 754.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }

    /// Whether this is NaN.
    pub fn is_nan(&self) -> bool {
        self.0.is_nan()
    }

    /// The number with the given bits of an `f32`.
    pub fn from_bits(bits: u32) -> Self {
        Self(f32::from_bits(bits))
    }

    /// The bits as of an `f32`.
    pub fn to_bits(&self) -> u32 {
        self.0.to_bits()
    }
}

// SAFETY: a transparent wrapper of `f32`, for which the all-zero pattern is valid.
unsafe impl Zeroable for flex32 {}
// SAFETY: a transparent wrapper of `f32`, which is plain old data.
unsafe impl Pod for flex32 {}

impl fmt::Display for flex32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<f32> for flex32 {
    fn from(val: f32) -> Self {
        Self(val)
    }
}

impl From<flex32> for f32 {
    fn from(val: flex32) -> Self {
        val.0
    }
}

impl Neg for flex32 {
    type Output = Self;

    fn neg(self) -> Self {
        Self(-self.0)
    }
}

/// The arithmetic operators, delegated to `f32`.
macro_rules! operators {
    ($($op:ident $method:ident $assign:ident $assign_method:ident;)*) => {$(
        impl $op for flex32 {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self($op::$method(self.0, other.0))
            }
        }
        impl $assign for flex32 {
            fn $assign_method(&mut self, other: Self) {
                $assign::$assign_method(&mut self.0, other.0);
            }
        }
    )*};
}
operators! {
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
    Rem rem RemAssign rem_assign;
}

/// The scaling operators also take whatever an `f32` takes: `flex32 * f32`.
macro_rules! scalings {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => {$(
        impl<Rhs> $trait<Rhs> for flex32
        where
            f32: $trait<Rhs, Output = f32>,
        {
            type Output = Self;

            fn $method(self, rhs: Rhs) -> Self {
                Self(self.0.$method(rhs))
            }
        }
        impl<Rhs> $assign<Rhs> for flex32
        where
            f32: $assign<Rhs>,
        {
            fn $assign_method(&mut self, rhs: Rhs) {
                self.0.$assign_method(rhs);
            }
        }
    )*};
}
scalings! {
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
    Rem rem RemAssign rem_assign;
}

impl Zero for flex32 {
    fn zero() -> Self {
        Self(0.0)
    }

    fn is_zero(&self) -> bool {
        self.0 == 0.0
    }
}

impl One for flex32 {
    fn one() -> Self {
        Self(1.0)
    }
}

impl Num for flex32 {
    type FromStrRadixErr = <f32 as Num>::FromStrRadixErr;

    fn from_str_radix(str: &str, radix: u32) -> Result<Self, Self::FromStrRadixErr> {
        <f32 as Num>::from_str_radix(str, radix).map(Self)
    }
}

impl ToPrimitive for flex32 {
    fn to_i64(&self) -> Option<i64> {
        self.0.to_i64()
    }

    fn to_u64(&self) -> Option<u64> {
        self.0.to_u64()
    }

    fn to_f32(&self) -> Option<f32> {
        Some(self.0)
    }

    fn to_f64(&self) -> Option<f64> {
        Some(Self::to_f64(*self))
    }
}

impl NumCast for flex32 {
    fn from<T: ToPrimitive>(n: T) -> Option<Self> {
        n.to_f32().map(Self)
    }
}

/// The methods of [`Float`], delegated to `f32`.
macro_rules! float_methods {
    ($($name:ident($($arg:ident),*);)*) => {$(
        fn $name(self $(, $arg: Self)*) -> Self {
            Self(Float::$name(self.0 $(, $arg.0)*))
        }
    )*};
    (values $($name:ident;)*) => {$(
        fn $name() -> Self {
            Self(<f32 as Float>::$name())
        }
    )*};
    (tests $($name:ident;)*) => {$(
        fn $name(self) -> bool {
            Float::$name(self.0)
        }
    )*};
}

impl Float for flex32 {
    float_methods!(values nan; infinity; neg_infinity; neg_zero; min_value; max_value;);
    float_methods!(tests is_nan; is_infinite; is_finite; is_normal; is_sign_positive; is_sign_negative;);
    float_methods! {
        floor(); ceil(); round(); trunc(); fract(); abs(); signum(); recip(); sqrt(); cbrt();
        exp(); exp2(); exp_m1(); ln(); log2(); log10(); ln_1p(); sin(); cos(); tan(); asin(); acos(); atan();
        sinh(); cosh(); tanh(); asinh(); acosh(); atanh();
        mul_add(a, b); powf(n); log(base); max(other); min(other); abs_sub(other); hypot(other); atan2(other);
    }

    fn min_positive_value() -> Self {
        Self::MIN_POSITIVE
    }

    fn epsilon() -> Self {
        Self(half::f16::EPSILON.to_f32())
    }

    fn classify(self) -> FpCategory {
        Float::classify(self.0)
    }

    fn powi(self, n: i32) -> Self {
        Self(Float::powi(self.0, n))
    }

    fn sin_cos(self) -> (Self, Self) {
        let (sin, cos) = Float::sin_cos(self.0);
        (Self(sin), Self(cos))
    }

    fn integer_decode(self) -> (u64, i16, i8) {
        Float::integer_decode(self.0)
    }
}
