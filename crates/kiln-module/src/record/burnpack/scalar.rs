//! Numbers stored beside tensors: steps, counters, flags.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::cbor::{CborError, Decoder, Encoder, Number};

/// A number stored beside the tensors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Scalar {
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

/// A [`Scalar`] is of another kind than asked for, or its value does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalarConversionError;

impl fmt::Display for ScalarConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scalar is of another kind or out of range")
    }
}

impl core::error::Error for ScalarConversionError {}

const EXPECTED: &str = "a scalar, {\"Int\" | \"UInt\" | \"Float\" | \"Bool\": value}";

impl Scalar {
    pub(super) fn encode(self, to: &mut Encoder) {
        to.map(1);
        match self {
            Self::Int(value) => {
                to.text("Int");
                to.int(value);
            }
            Self::UInt(value) => {
                to.text("UInt");
                to.uint(value);
            }
            Self::Float(value) => {
                to.text("Float");
                to.float(value);
            }
            Self::Bool(value) => {
                to.text("Bool");
                to.bool(value);
            }
        }
    }

    pub(super) fn decode(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let error = from.expected(EXPECTED);
        if from.map(EXPECTED)? != 1 {
            return Err(error);
        }
        let kind = from.text(EXPECTED)?;
        match (kind, from.number(EXPECTED)?) {
            ("Int", Number::Int(value)) => Ok(Self::Int(value)),
            ("Int", Number::UInt(value)) => i64::try_from(value).map(Self::Int).map_err(|_| error),
            ("UInt", Number::UInt(value)) => Ok(Self::UInt(value)),
            ("Float", Number::Float(value)) => Ok(Self::Float(value)),
            ("Bool", Number::Bool(value)) => Ok(Self::Bool(value)),
            _ => Err(error),
        }
    }
}

/// Conversions from and to number types; the way back fails where the value does not fit.
macro_rules! convert {
    ($($variant:ident($wide:ty): $($ty:ty),+;)+) => {$($(
        impl From<$ty> for Scalar {
            fn from(value: $ty) -> Self {
                Self::$variant(value as $wide)
            }
        }
    )+)+};
}

convert! {
    Int(i64): i8, i16, i32, i64, isize;
    UInt(u64): u8, u16, u32, u64, usize;
    Float(f64): f32, f64;
    Bool(bool): bool;
}

/// The way back to an integer type: from either integer kind, if the value fits.
macro_rules! integer {
    ($($ty:ty),+) => {$(
        impl TryFrom<Scalar> for $ty {
            type Error = ScalarConversionError;

            fn try_from(scalar: Scalar) -> Result<Self, ScalarConversionError> {
                match scalar {
                    Scalar::Int(value) => value.try_into().map_err(|_| ScalarConversionError),
                    Scalar::UInt(value) => value.try_into().map_err(|_| ScalarConversionError),
                    Scalar::Float(_) | Scalar::Bool(_) => Err(ScalarConversionError),
                }
            }
        }
    )+};
}

integer!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

impl TryFrom<Scalar> for f64 {
    type Error = ScalarConversionError;

    fn try_from(scalar: Scalar) -> Result<Self, ScalarConversionError> {
        match scalar {
            Scalar::Float(value) => Ok(value),
            Scalar::Int(_) | Scalar::UInt(_) | Scalar::Bool(_) => Err(ScalarConversionError),
        }
    }
}

impl TryFrom<Scalar> for f32 {
    type Error = ScalarConversionError;

    /// Rounds to the nearest `f32`.
    fn try_from(scalar: Scalar) -> Result<Self, ScalarConversionError> {
        f64::try_from(scalar).map(|value| value as f32)
    }
}

impl TryFrom<Scalar> for bool {
    type Error = ScalarConversionError;

    fn try_from(scalar: Scalar) -> Result<Self, ScalarConversionError> {
        match scalar {
            Scalar::Bool(value) => Ok(value),
            Scalar::Int(_) | Scalar::UInt(_) | Scalar::Float(_) => Err(ScalarConversionError),
        }
    }
}
