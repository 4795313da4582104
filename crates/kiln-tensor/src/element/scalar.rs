//! `Scalar`: one number of any element type.

use half::{bf16, f16};
use num_traits::ToPrimitive;

use super::{Element, ElementConversion};
use crate::dtype::DType;

/// One number, in the widest type of its class.
///
/// ```
/// use kiln_tensor::{DType, Scalar};
/// let s = Scalar::new(2.5f32, &DType::I32);
/// assert_eq!(s.elem::<f64>(), 2.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A float.
    Float(f64),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A boolean.
    Bool(bool),
}

impl Scalar {
    /// The value converted to the class of `dtype`: float (quantized included), signed, unsigned or bool.
    pub fn new<E: ElementConversion>(value: E, dtype: &DType) -> Self {
        if dtype.is_int() {
            Self::Int(value.elem())
        } else if dtype.is_uint() {
            Self::UInt(value.elem())
        } else if dtype.is_bool() {
            Self::Bool(value.elem())
        } else {
            Self::Float(value.elem())
        }
    }

    /// The value converted to an element type, by the rules of [`ElementConversion`].
    #[must_use]
    pub fn elem<E: Element>(self) -> E {
        match self {
            Self::Float(x) => x.elem(),
            Self::Int(x) => x.elem(),
            Self::UInt(x) => x.elem(),
            Self::Bool(x) => x.elem(),
        }
    }

    /// The value as an integer, if it is a whole number that fits; booleans are 0 and 1.
    pub fn try_as_integer(&self) -> Option<Self> {
        match *self {
            Self::Float(x) if libm::floor(x) == x && x.is_finite() => {
                if let Some(int) = x.to_i64() {
                    Some(Self::Int(int))
                } else {
                    x.to_u64().map(Self::UInt)
                }
            }
            Self::Float(_) => None,
            Self::Int(_) | Self::UInt(_) => Some(*self),
            Self::Bool(x) => Some(Self::Int(i64::from(x))),
        }
    }
}

impl ToPrimitive for Scalar {
    fn to_i64(&self) -> Option<i64> {
        match self {
            Self::Float(x) => x.to_i64(),
            Self::Int(x) => Some(*x),
            Self::UInt(x) => x.to_i64(),
            Self::Bool(x) => Some(i64::from(*x)),
        }
    }

    fn to_u64(&self) -> Option<u64> {
        match self {
            Self::Float(x) => x.to_u64(),
            Self::Int(x) => x.to_u64(),
            Self::UInt(x) => Some(*x),
            Self::Bool(x) => Some(u64::from(*x)),
        }
    }

    fn to_f64(&self) -> Option<f64> {
        match self {
            Self::Float(x) => Some(*x),
            Self::Int(x) => x.to_f64(),
            Self::UInt(x) => x.to_f64(),
            Self::Bool(x) => Some(f64::from(u8::from(*x))),
        }
    }
}

/// Implements `From` for the primitive types of one variant.
macro_rules! from_numbers {
    ($($variant:ident($to:ident): $($t:ty),*;)*) => {$($(
        impl From<$t> for Scalar {
            fn from(value: $t) -> Self {
                Self::$variant(crate::element::ToElement::$to(&value))
            }
        }
    )*)*};
}
from_numbers! {
    Float(to_f64): f64, f32, f16, bf16, super::flex32;
    Int(to_i64): i64, i32, i16, i8, isize;
    UInt(to_u64): u64, u32, u16, u8, usize;
    Bool(to_bool): bool;
}
