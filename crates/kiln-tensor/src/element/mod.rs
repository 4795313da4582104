//! `Element`: the Rust types that tensors hold, and what can be done with one value.

mod cast;
mod flexible;
mod scalar;

pub use cast::ToElement;
pub use flexible::flex32;
pub use scalar::Scalar;

use core::cmp::Ordering;
use core::fmt::{Debug, Display};

use bytemuck::{CheckedBitPattern, NoUninit, Zeroable};
use half::{bf16, f16};
use rand::Rng;

use crate::distribution::Distribution;
use crate::dtype::{BoolStore, DType};

/// A Rust type that tensors can hold.
///
/// ```
/// use kiln_tensor::{DType, Element};
/// assert_eq!(f32::dtype(), DType::F32);
/// ```
pub trait Element:
    ToElement
    + ElementRandom
    + ElementConversion
    + ElementEq
    + CheckedBitPattern
    + NoUninit
    + Zeroable
    + Debug
    + Display
    + Default
    + Send
    + Sync
    + Copy
    + 'static
{
    /// The element type of tensors that hold this type.
    fn dtype() -> DType;
}

/// An element with an order and limits.
pub trait ElementOrdered: Element + ElementComparison + ElementLimits {}

/// Conversion between element types: floats to integers truncate and saturate (NaN becomes 0), integers wrap, non-zero is true.
///
/// ```
/// use kiln_tensor::ElementConversion;
/// assert_eq!(300.7f32.elem::<i64>(), 300);
/// assert_eq!(300.7f32.elem::<u8>(), 255);
/// assert_eq!(f32::NAN.elem::<i32>(), 0);
/// assert!(0.5f64.elem::<bool>());
/// assert_eq!(i32::from_elem(true), 1);
/// ```
pub trait ElementConversion {
    /// This type's value nearest to `elem`.
    #[must_use]
    fn from_elem<E: ToElement>(elem: E) -> Self;

    /// The value converted to the element type `E`.
    #[must_use]
    fn elem<E: Element>(self) -> E;
}

/// Drawing a random element.
pub trait ElementRandom {
    /// Draws one value from the distribution. Integers draw from half-open ranges; `Default` covers all values of an integer type.
    fn random<R: Rng>(distribution: Distribution, rng: &mut R) -> Self;
}

/// Equality of elements, where NaN equals NaN.
pub trait ElementEq {
    /// Whether the two are equal.
    fn eq(&self, other: &Self) -> bool;
}

/// The total order of elements: as usual, with NaN after everything else.
pub trait ElementComparison {
    /// Compares the two.
    fn cmp(&self, other: &Self) -> Ordering;
}

/// The limits of an element type.
pub trait ElementLimits {
    /// The smallest finite value.
    const MIN: Self;
    /// The largest finite value.
    const MAX: Self;
}

/// Addition of elements; integers wrap.
pub trait ElementAdd {
    /// The sum.
    #[must_use]
    fn add(self, other: Self) -> Self;
}

/// Implements the element traits for one type, given its dtype, its method of [`ToElement`], its comparison, its limits and how a
/// uniform draw from `f64` bounds is made.
macro_rules! element {
    ($t:ty, $dtype:expr, $to:ident, $cmp:expr, $eq:expr, $min:expr, $max:expr, $random:path) => {
        impl Element for $t {
            fn dtype() -> DType {
                $dtype
            }
        }
        impl ElementOrdered for $t {}
        impl ElementConversion for $t {
            #[inline]
            fn from_elem<E: ToElement>(elem: E) -> Self {
                elem.$to()
            }
            #[inline]
            fn elem<E: Element>(self) -> E {
                E::from_elem(self)
            }
        }
        impl ElementRandom for $t {
            fn random<R: Rng>(distribution: Distribution, rng: &mut R) -> Self {
                $random(distribution, rng)
            }
        }
        impl ElementEq for $t {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                $eq(*self, *other)
            }
        }
        impl ElementComparison for $t {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                $cmp(*self, *other)
            }
        }
        impl ElementLimits for $t {
            const MIN: Self = $min;
            const MAX: Self = $max;
        }
    };
}

/// The element traits for floats and integers.
macro_rules! floats {
    ($($t:ty, $dtype:expr, $to:ident;)*) => {$(
        element!(
            $t, $dtype, $to,
            |a: $t, b: $t| a.partial_cmp(&b).unwrap_or_else(|| Ord::cmp(&a.is_nan(), &b.is_nan())),
            |a: $t, b: $t| a == b || (a.is_nan() && b.is_nan()),
            <$t>::MIN, <$t>::MAX, crate::distribution::random_float
        );
        impl ElementAdd for $t {
            #[inline]
            fn add(self, other: Self) -> Self {
                self + other
            }
        }
    )*};
}
floats! {
    f64, DType::F64, to_f64;
    f32, DType::F32, to_f32;
    flex32, DType::Flex32, to_flex32;
    f16, DType::F16, to_f16;
    bf16, DType::BF16, to_bf16;
}

/// The element traits for integers.
macro_rules! integers {
    ($($t:ty, $dtype:expr, $to:ident;)*) => {$(
        element!(
            $t, $dtype, $to,
            |a: $t, b: $t| Ord::cmp(&a, &b),
            |a: $t, b: $t| a == b,
            <$t>::MIN, <$t>::MAX, crate::distribution::random_int
        );
        impl ElementAdd for $t {
            #[inline]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}
integers! {
    i64, DType::I64, to_i64;
    i32, DType::I32, to_i32;
    i16, DType::I16, to_i16;
    i8, DType::I8, to_i8;
    u64, DType::U64, to_u64;
    u32, DType::U32, to_u32;
    u16, DType::U16, to_u16;
    u8, DType::U8, to_u8;
}

element!(
    bool,
    DType::Bool(BoolStore::Native),
    to_bool,
    |a: bool, b: bool| Ord::cmp(&a, &b),
    |a: bool, b: bool| a == b,
    false,
    true,
    crate::distribution::random_bool
);
