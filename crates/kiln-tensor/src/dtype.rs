//! `DType`: the element types of tensors, and the subsets for floats, integers and booleans.

use serde::{Deserialize, Serialize};

use crate::quantization::QuantScheme;

/// The type of a tensor's elements.
///
/// ```
/// use kiln_tensor::{BoolStore, DType};
/// assert_eq!(DType::BF16.size(), 2);
/// assert!(DType::U8.is_uint() && !DType::Bool(BoolStore::Native).is_int());
/// assert_eq!(DType::F32.name(), "f32");
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum DType {
    /// 64-bit IEEE float.
    F64,
    /// 32-bit IEEE float.
    F32,
    /// A float stored in 32 bits that may be computed with less precision.
    Flex32,
    /// 16-bit IEEE float.
    F16,
    /// 16-bit float with the exponent range of `F32`.
    BF16,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 16-bit signed integer.
    I16,
    /// 8-bit signed integer.
    I8,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit unsigned integer.
    U32,
    /// 16-bit unsigned integer.
    U16,
    /// 8-bit unsigned integer.
    U8,
    /// Boolean, with the way it is stored.
    Bool(BoolStore),
    /// Quantized float, with its scheme.
    QFloat(QuantScheme),
}

impl DType {
    /// Bytes of one stored element; for quantized types, bytes of the unit that is stored (a packed byte or word).
    pub const fn size(&self) -> usize {
        match self {
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::F32 | Self::Flex32 | Self::I32 | Self::U32 | Self::Bool(BoolStore::U32) => 4,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            Self::I8 | Self::U8 | Self::Bool(BoolStore::Native | BoolStore::U8) => 1,
            Self::QFloat(scheme) => scheme.unit_bytes(),
        }
    }

    /// Whether this is a float type; quantized types are not.
    pub fn is_float(&self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::Flex32 | Self::F16 | Self::BF16)
    }

    /// Whether this is a signed integer type.
    pub fn is_int(&self) -> bool {
        matches!(self, Self::I64 | Self::I32 | Self::I16 | Self::I8)
    }

    /// Whether this is an unsigned integer type.
    pub fn is_uint(&self) -> bool {
        matches!(self, Self::U64 | Self::U32 | Self::U16 | Self::U8)
    }

    /// Whether this is a boolean type.
    pub fn is_bool(&self) -> bool {
        matches!(self, Self::Bool(_))
    }

    /// The numeric limits of a float type; `None` for other types.
    pub const fn finfo(&self) -> Option<FloatInfo> {
        match self {
            Self::F64 => Some(FloatDType::F64.finfo()),
            Self::F32 => Some(FloatDType::F32.finfo()),
            Self::Flex32 => Some(FloatDType::Flex32.finfo()),
            Self::F16 => Some(FloatDType::F16.finfo()),
            Self::BF16 => Some(FloatDType::BF16.finfo()),
            Self::I64 | Self::I32 | Self::I16 | Self::I8 => None,
            Self::U64 | Self::U32 | Self::U16 | Self::U8 => None,
            Self::Bool(_) | Self::QFloat(_) => None,
        }
    }

    /// The type's name in lower case: `f32`, `bf16`, `i64`, `bool`, `qfloat`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::Flex32 => "flex32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U64 => "u64",
            Self::U32 => "u32",
            Self::U16 => "u16",
            Self::U8 => "u8",
            Self::Bool(_) => "bool",
            Self::QFloat(_) => "qfloat",
        }
    }
}

/// How a boolean is stored.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum BoolStore {
    /// One byte, 0 or 1, as Rust's `bool`.
    Native,
    /// One byte; every value but 0 is true.
    U8,
    /// Four bytes; every value but 0 is true.
    U32,
}

/// The boolean element types: they differ in how they are stored.
pub type BoolDType = BoolStore;

/// The float element types.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum FloatDType {
    /// 64-bit IEEE float.
    F64,
    /// 32-bit IEEE float.
    F32,
    /// A float stored in 32 bits that may be computed with less precision.
    Flex32,
    /// 16-bit IEEE float.
    F16,
    /// 16-bit float with the exponent range of `F32`.
    BF16,
}

impl FloatDType {
    /// The numeric limits of the type.
    pub const fn finfo(self) -> FloatInfo {
        match self {
            Self::F64 => FloatInfo { epsilon: f64::EPSILON, max: f64::MAX, min: f64::MIN, min_positive: f64::MIN_POSITIVE },
            Self::F32 => {
                FloatInfo { epsilon: f32::EPSILON as f64, max: f32::MAX as f64, min: f32::MIN as f64, min_positive: f32::MIN_POSITIVE as f64 }
            }
            // What a computation in it guarantees is half precision; what can be stored is single precision.
            Self::Flex32 => FloatInfo {
                epsilon: half::f16::EPSILON.to_f64_const(),
                max: half::f16::MAX.to_f64_const(),
                min: half::f16::MIN.to_f64_const(),
                min_positive: half::f16::MIN_POSITIVE.to_f64_const(),
            },
            Self::F16 => FloatInfo {
                epsilon: half::f16::EPSILON.to_f64_const(),
                max: half::f16::MAX.to_f64_const(),
                min: half::f16::MIN.to_f64_const(),
                min_positive: half::f16::MIN_POSITIVE.to_f64_const(),
            },
            Self::BF16 => FloatInfo {
                epsilon: half::bf16::EPSILON.to_f64_const(),
                max: half::bf16::MAX.to_f64_const(),
                min: half::bf16::MIN.to_f64_const(),
                min_positive: half::bf16::MIN_POSITIVE.to_f64_const(),
            },
        }
    }
}

/// The numeric limits of a float type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatInfo {
    /// The difference between 1 and the next larger number.
    pub epsilon: f64,
    /// The largest finite number.
    pub max: f64,
    /// The smallest finite number, `-max`.
    pub min: f64,
    /// The smallest positive normal number.
    pub min_positive: f64,
}

/// The integer element types.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum IntDType {
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 16-bit signed integer.
    I16,
    /// 8-bit signed integer.
    I8,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit unsigned integer.
    U32,
    /// 16-bit unsigned integer.
    U16,
    /// 8-bit unsigned integer.
    U8,
}

impl From<FloatDType> for DType {
    fn from(dtype: FloatDType) -> Self {
        match dtype {
            FloatDType::F64 => Self::F64,
            FloatDType::F32 => Self::F32,
            FloatDType::Flex32 => Self::Flex32,
            FloatDType::F16 => Self::F16,
            FloatDType::BF16 => Self::BF16,
        }
    }
}

impl From<IntDType> for DType {
    fn from(dtype: IntDType) -> Self {
        match dtype {
            IntDType::I64 => Self::I64,
            IntDType::I32 => Self::I32,
            IntDType::I16 => Self::I16,
            IntDType::I8 => Self::I8,
            IntDType::U64 => Self::U64,
            IntDType::U32 => Self::U32,
            IntDType::U16 => Self::U16,
            IntDType::U8 => Self::U8,
        }
    }
}

impl From<BoolStore> for DType {
    fn from(store: BoolStore) -> Self {
        Self::Bool(store)
    }
}

impl From<DType> for FloatDType {
    /// # Panics
    /// When the type is not a float type.
    #[track_caller]
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F64 => Self::F64,
            DType::F32 => Self::F32,
            DType::Flex32 => Self::Flex32,
            DType::F16 => Self::F16,
            DType::BF16 => Self::BF16,
            other => panic!("dtype: expected a float dtype, found {other:?}"),
        }
    }
}

impl From<DType> for IntDType {
    /// # Panics
    /// When the type is not an integer type.
    #[track_caller]
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::I64 => Self::I64,
            DType::I32 => Self::I32,
            DType::I16 => Self::I16,
            DType::I8 => Self::I8,
            DType::U64 => Self::U64,
            DType::U32 => Self::U32,
            DType::U16 => Self::U16,
            DType::U8 => Self::U8,
            other => panic!("dtype: expected an integer dtype, found {other:?}"),
        }
    }
}

impl From<DType> for BoolStore {
    /// # Panics
    /// When the type is not a boolean type.
    #[track_caller]
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::Bool(store) => store,
            other => panic!("dtype: expected a bool dtype, found {other:?}"),
        }
    }
}

impl From<kiln_ir::DType> for DType {
    fn from(dtype: kiln_ir::DType) -> Self {
        match dtype {
            kiln_ir::DType::F64 => Self::F64,
            kiln_ir::DType::F32 => Self::F32,
            kiln_ir::DType::F16 => Self::F16,
            kiln_ir::DType::BF16 => Self::BF16,
            kiln_ir::DType::I64 => Self::I64,
            kiln_ir::DType::I32 => Self::I32,
            kiln_ir::DType::I16 => Self::I16,
            kiln_ir::DType::I8 => Self::I8,
            kiln_ir::DType::U64 => Self::U64,
            kiln_ir::DType::U32 => Self::U32,
            kiln_ir::DType::U16 => Self::U16,
            kiln_ir::DType::U8 => Self::U8,
            kiln_ir::DType::Bool => Self::Bool(BoolStore::Native),
        }
    }
}

impl From<DType> for kiln_ir::DType {
    /// The type that programs compute with: `Flex32` is `F32`, and all booleans are one type.
    ///
    /// # Panics
    /// When the type is quantized: quantized values are stored as integers, with their scales apart.
    #[track_caller]
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F64 => Self::F64,
            DType::F32 | DType::Flex32 => Self::F32,
            DType::F16 => Self::F16,
            DType::BF16 => Self::BF16,
            DType::I64 => Self::I64,
            DType::I32 => Self::I32,
            DType::I16 => Self::I16,
            DType::I8 => Self::I8,
            DType::U64 => Self::U64,
            DType::U32 => Self::U32,
            DType::U16 => Self::U16,
            DType::U8 => Self::U8,
            DType::Bool(_) => Self::Bool,
            DType::QFloat(scheme) => panic!("no program computes with quantized values: {scheme:?}"),
        }
    }
}
