//! Element types of buffers, and the types their arithmetic runs in.
use crate::math::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// An element as it lies in a buffer.
pub(crate) trait Element: Copy + Send + Sync + 'static {
    /// What arithmetic on elements runs in: `f32` for half types, else the type itself.
    type Wide: Wide;
    /// Whether `Wide` is the type itself.
    const PLAIN: bool;
    /// Whether elements are floats. Loops over the others are compiled once and not for every instruction set: models have few of them, dtypes are many.
    const FLOAT: bool;
    /// To the arithmetic type, exact.
    fn widen(self) -> Self::Wide;
    /// From the arithmetic type, rounded.
    fn narrow(v: Self::Wide) -> Self;
}

/// A type that arithmetic runs in. Integers wrap; on bools addition is "or" and multiplication "and".
pub(crate) trait Wide: Element<Wide = Self> {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Below or equal to everything but NaN.
    const LOWEST: Self;
    /// Sum.
    fn add(self, y: Self) -> Self;
    /// Product.
    fn mul(self, y: Self) -> Self;
    /// Larger operand; NaN if either is.
    fn larger(self, y: Self) -> Self;
    /// Smaller; NaN if either is.
    fn smaller(self, y: Self) -> Self;
    /// Quotient by a count; integers truncate, and give 0 for a count of 0.
    fn over(self, count: usize) -> Self;
    /// Whether `self` takes the place of an earlier maximum `best`.
    fn beats(self, best: Self) -> bool;
}

/// A 16-bit IEEE float.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(pub u16);
/// A bfloat16.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct BF16(pub u16);
/// A truth value, 0 or 1.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
#[repr(transparent)]
pub(crate) struct Bit(pub u8);

impl Element for F16 {
    type Wide = f32;
    const PLAIN: bool = false;
    const FLOAT: bool = true;
    #[inline(always)]
    fn widen(self) -> f32 {
        f16_to_f32(self.0)
    }
    #[inline(always)]
    fn narrow(v: f32) -> Self {
        F16(f32_to_f16(v))
    }
}

impl Element for BF16 {
    type Wide = f32;
    const PLAIN: bool = false;
    const FLOAT: bool = true;
    #[inline(always)]
    fn widen(self) -> f32 {
        bf16_to_f32(self.0)
    }
    #[inline(always)]
    fn narrow(v: f32) -> Self {
        BF16(f32_to_bf16(v))
    }
}

macro_rules! plain {
    ($float:literal: $($t:ty)*) => { $(
        impl Element for $t {
            type Wide = $t;
            const PLAIN: bool = true;
            const FLOAT: bool = $float;
            #[inline(always)]
            fn widen(self) -> $t {
                self
            }
            #[inline(always)]
            fn narrow(v: $t) -> $t {
                v
            }
        }
    )* };
}

plain!(true: f64 f32);
plain!(false: i64 i32 i16 i8 u64 u32 u16 u8 Bit);

macro_rules! wide_float {
    ($($t:ty)*) => { $(
        impl Wide for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::NEG_INFINITY;
            #[inline(always)]
            fn add(self, y: Self) -> Self {
                self + y
            }
            #[inline(always)]
            fn mul(self, y: Self) -> Self {
                self * y
            }
            #[inline(always)]
            fn larger(self, y: Self) -> Self {
                if self > y || self.is_nan() { self } else { y }
            }
            #[inline(always)]
            fn smaller(self, y: Self) -> Self {
                if self < y || self.is_nan() { self } else { y }
            }
            #[inline(always)]
            fn over(self, count: usize) -> Self {
                self / count as $t
            }
            #[inline(always)]
            fn beats(self, best: Self) -> bool {
                self > best || (self.is_nan() & !best.is_nan())
            }
        }
    )* };
}

wide_float!(f32 f64);

macro_rules! wide_int {
    ($($t:ty)*) => { $(
        impl Wide for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$t>::MIN;
            #[inline(always)]
            fn add(self, y: Self) -> Self {
                self.wrapping_add(y)
            }
            #[inline(always)]
            fn mul(self, y: Self) -> Self {
                self.wrapping_mul(y)
            }
            #[inline(always)]
            fn larger(self, y: Self) -> Self {
                Ord::max(self, y)
            }
            #[inline(always)]
            fn smaller(self, y: Self) -> Self {
                Ord::min(self, y)
            }
            #[inline(always)]
            fn over(self, count: usize) -> Self {
                if count == 0 { 0 } else { (self as i128 / count as i128) as $t }
            }
            #[inline(always)]
            fn beats(self, best: Self) -> bool {
                self > best
            }
        }
    )* };
}

wide_int!(i64 i32 i16 i8 u64 u32 u16 u8);

impl Wide for Bit {
    const ZERO: Self = Bit(0);
    const ONE: Self = Bit(1);
    const LOWEST: Self = Bit(0);
    #[inline(always)]
    fn add(self, y: Self) -> Self {
        Bit(self.0 | y.0)
    }
    #[inline(always)]
    fn mul(self, y: Self) -> Self {
        Bit(self.0 & y.0)
    }
    #[inline(always)]
    fn larger(self, y: Self) -> Self {
        Bit(self.0 | y.0)
    }
    #[inline(always)]
    fn smaller(self, y: Self) -> Self {
        Bit(self.0 & y.0)
    }
    #[inline(always)]
    fn over(self, count: usize) -> Self {
        Bit((self.0 as usize).checked_div(count).unwrap_or(0) as u8)
    }
    #[inline(always)]
    fn beats(self, best: Self) -> bool {
        self.0 > best.0
    }
}

/// Evaluates an expression with a type parameter bound to the element type of a dtype: `with_element!(dtype, T => f::<T>())`.
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            kiln_ir::DType::F64 => {
                type $t = f64;
                $body
            }
            kiln_ir::DType::F32 => {
                type $t = f32;
                $body
            }
            kiln_ir::DType::F16 => {
                type $t = $crate::kernels::element::F16;
                $body
            }
            kiln_ir::DType::BF16 => {
                type $t = $crate::kernels::element::BF16;
                $body
            }
            kiln_ir::DType::I64 => {
                type $t = i64;
                $body
            }
            kiln_ir::DType::I32 => {
                type $t = i32;
                $body
            }
            kiln_ir::DType::I16 => {
                type $t = i16;
                $body
            }
            kiln_ir::DType::I8 => {
                type $t = i8;
                $body
            }
            kiln_ir::DType::U64 => {
                type $t = u64;
                $body
            }
            kiln_ir::DType::U32 => {
                type $t = u32;
                $body
            }
            kiln_ir::DType::U16 => {
                type $t = u16;
                $body
            }
            kiln_ir::DType::U8 => {
                type $t = u8;
                $body
            }
            kiln_ir::DType::Bool => {
                type $t = $crate::kernels::element::Bit;
                $body
            }
        }
    };
}
pub(crate) use with_element;

/// Evaluates an expression with a type parameter bound to an unsigned type of an element's size: for kernels that only move elements.
macro_rules! with_size {
    ($size:expr, $t:ident => $body:expr) => {
        match $size {
            1 => {
                type $t = u8;
                $body
            }
            2 => {
                type $t = u16;
                $body
            }
            4 => {
                type $t = u32;
                $body
            }
            _ => {
                type $t = u64;
                $body
            }
        }
    };
}
pub(crate) use with_size;
