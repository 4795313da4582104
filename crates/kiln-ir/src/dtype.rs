//! Element types of buffers and of the values computed in kernels.

/// The type of one element of a buffer.
///
/// `Bool` is stored as one byte that is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// 64-bit IEEE float.
    F64,
    /// 32-bit IEEE float.
    F32,
    /// 16-bit IEEE float.
    F16,
    /// bfloat16: the upper half of an `F32`.
    BF16,
    /// Signed 64-bit integer.
    I64,
    /// Signed 32-bit integer.
    I32,
    /// Signed 16-bit integer.
    I16,
    /// Signed 8-bit integer.
    I8,
    /// Unsigned 64-bit integer.
    U64,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 8-bit integer.
    U8,
    /// Truth value, one byte, 0 or 1.
    Bool,
}

/// The representation a kernel computes a value in: the "register class" of a dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// `f32` arithmetic: dtypes F32, F16, BF16 (half types are rounded at a store or an explicit cast only).
    F32,
    /// `f64` arithmetic.
    F64,
    /// 64-bit integer arithmetic, wrapped to the dtype's width after every op.
    Int,
    /// One byte, 0 or 1.
    Bool,
}

impl DType {
    /// Every dtype, widest first within a kind.
    pub const ALL: [DType; 13] = [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
    ];

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::F64 | DType::I64 | DType::U64 => 8,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 | DType::BF16 | DType::I16 | DType::U16 => 2,
            DType::I8 | DType::U8 | DType::Bool => 1,
        }
    }

    /// Lower-case name, as in error messages.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F64 => "f64",
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::I64 => "i64",
            DType::I32 => "i32",
            DType::I16 => "i16",
            DType::I8 => "i8",
            DType::U64 => "u64",
            DType::U32 => "u32",
            DType::U16 => "u16",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
    }

    /// Whether this is a signed or unsigned integer type.
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, DType::Bool)
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, DType::U64 | DType::U32 | DType::U16 | DType::U8)
    }

    /// The representation kernels compute this dtype in.
    pub const fn lane(self) -> Lane {
        match self {
            DType::F64 => Lane::F64,
            DType::F32 | DType::F16 | DType::BF16 => Lane::F32,
            DType::Bool => Lane::Bool,
            DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U64 | DType::U32 | DType::U16 | DType::U8 => Lane::Int,
        }
    }

    /// Wraps an integer to this integer dtype's width in two's complement; the result is the value an element of this dtype holds.
    /// `Bool` maps to 0 or 1. Floats are returned unchanged.
    pub const fn wrap(self, v: i128) -> i128 {
        match self {
            DType::I64 => v as i64 as i128,
            DType::I32 => v as i32 as i128,
            DType::I16 => v as i16 as i128,
            DType::I8 => v as i8 as i128,
            DType::U64 => v as u64 as i128,
            DType::U32 => v as u32 as i128,
            DType::U16 => v as u16 as i128,
            DType::U8 => v as u8 as i128,
            DType::Bool => (v != 0) as i128,
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => v,
        }
    }

    /// Smallest and largest value of an integer dtype or `Bool`; floats give the `i128` range.
    pub const fn int_range(self) -> (i128, i128) {
        match self {
            DType::I64 => (i64::MIN as i128, i64::MAX as i128),
            DType::I32 => (i32::MIN as i128, i32::MAX as i128),
            DType::I16 => (i16::MIN as i128, i16::MAX as i128),
            DType::I8 => (i8::MIN as i128, i8::MAX as i128),
            DType::U64 => (0, u64::MAX as i128),
            DType::U32 => (0, u32::MAX as i128),
            DType::U16 => (0, u16::MAX as i128),
            DType::U8 => (0, u8::MAX as i128),
            DType::Bool => (0, 1),
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => (i128::MIN, i128::MAX),
        }
    }
}

impl core::fmt::Display for DType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
