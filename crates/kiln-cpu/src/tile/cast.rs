//! Conversions between the dtypes of tile values.
use core::marker::PhantomData;

use kiln_ir::DType;

use super::elementwise::Kind;
use crate::math::{Arith, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::simd::{Level, Loop, LoopFn, compiled};

/// Converts one element.
trait Convert: 'static {
    type From: Copy + 'static;
    type To: Copy + 'static;
    /// Whether one loop for all instruction sets is enough.
    const ONCE: bool = false;

    fn convert(x: Self::From) -> Self::To;
}

struct Cast<C>(PhantomData<C>);

impl<C: Convert> Loop for Cast<C> {
    const ONCE: bool = C::ONCE;
    const NARROW: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable, and writable at the destination, apart from each other.
        unsafe {
            let (dst, src) = (dst as *mut C::To, a as *const C::From);
            let mut at = 0;
            while at < n {
                *dst.add(at) = C::convert(*src.add(at));
                at += 1;
            }
        }
    }
}

/// A number as the source of conversions.
trait Number: Copy + 'static {
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn is_nonzero(self) -> bool;
    fn to_f16(self) -> f32;
    fn to_bf16(self) -> f32;
}

impl Number for f32 {
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as f64
    }

    #[inline(always)]
    fn is_nonzero(self) -> bool {
        self != 0.0
    }

    #[inline(always)]
    fn to_f16(self) -> f32 {
        f16_to_f32(f32_to_f16(self))
    }

    #[inline(always)]
    fn to_bf16(self) -> f32 {
        bf16_to_f32(f32_to_bf16(self))
    }
}

/// Conversion of wider numbers to f32 that rounds to odd, so that a second rounding to a half type is as good as one.
#[inline(always)]
fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = near as f64;
    if back == x || x.is_nan() || near.is_infinite() {
        return near;
    }
    // Step to the neighbour with an odd mantissa on x's side.
    let bits = near.to_bits();
    let toward_zero = if (back.abs() > x.abs()) as u32 == 1 { bits - 1 } else { bits };
    f32::from_bits(toward_zero | 1)
}

macro_rules! number_through_f64 {
    ($($t:ty),*) => {
        $(
            impl Number for $t {
                #[inline(always)]
                fn to_f32(self) -> f32 {
                    self as f32
                }

                #[inline(always)]
                fn to_f64(self) -> f64 {
                    self as f64
                }

                #[inline(always)]
                fn is_nonzero(self) -> bool {
                    self != 0 as $t
                }

                #[inline(always)]
                fn to_f16(self) -> f32 {
                    to_odd(self as f64).to_f16()
                }

                #[inline(always)]
                fn to_bf16(self) -> f32 {
                    to_odd(self as f64).to_bf16()
                }
            }
        )*
    };
}

number_through_f64!(f64, i64, u64, u8);

macro_rules! to_float {
    ($($name:ident -> $to:ty: $method:ident;)*) => {
        $(
            struct $name<T>(PhantomData<T>);

            impl<T: Number> Convert for $name<T> {
                type From = T;
                type To = $to;

                #[inline(always)]
                fn convert(x: T) -> $to {
                    x.$method()
                }
            }
        )*
    };
}

to_float! {
    ToF32 -> f32: to_f32;
    ToF64 -> f64: to_f64;
    ToF16 -> f32: to_f16;
    ToBf16 -> f32: to_bf16;
}

struct ToBool<T>(PhantomData<T>);

impl<T: Number> Convert for ToBool<T> {
    type From = T;
    type To = u8;

    #[inline(always)]
    fn convert(x: T) -> u8 {
        x.is_nonzero() as u8
    }
}

/// To an integer dtype `I`, held in tiles as `W`: floats truncate and saturate, integers wrap.
struct ToInt<T, I, W>(PhantomData<(T, I, W)>);

macro_rules! to_int {
    ([$($from:ty),*] => $to:ty as $held:ty) => {
        $(
            impl Convert for ToInt<$from, $to, $held> {
                type From = $from;
                type To = $held;
                const ONCE: bool = true;

                #[inline(always)]
                fn convert(x: $from) -> $held {
                    x as $to as $held
                }
            }
        )*
    };
    ($($to:ty as $held:ty),*) => {
        $( to_int!([f32, f64, i64, u64, u8] => $to as $held); )*
    };
}

to_int!(i64 as i64, i32 as i64, i16 as i64, i8 as i64, u32 as i64, u16 as i64, u8 as i64, u64 as u64);

fn from<T: Number>(to: DType, level: Level) -> LoopFn
where
    ToInt<T, i64, i64>: Convert,
    ToInt<T, i32, i64>: Convert,
    ToInt<T, i16, i64>: Convert,
    ToInt<T, i8, i64>: Convert,
    ToInt<T, u32, i64>: Convert,
    ToInt<T, u16, i64>: Convert,
    ToInt<T, u8, i64>: Convert,
    ToInt<T, u64, u64>: Convert,
{
    match to {
        DType::F64 => compiled::<Cast<ToF64<T>>>(level),
        DType::F32 => compiled::<Cast<ToF32<T>>>(level),
        DType::F16 => compiled::<Cast<ToF16<T>>>(level),
        DType::BF16 => compiled::<Cast<ToBf16<T>>>(level),
        DType::I64 => compiled::<Cast<ToInt<T, i64, i64>>>(level),
        DType::I32 => compiled::<Cast<ToInt<T, i32, i64>>>(level),
        DType::I16 => compiled::<Cast<ToInt<T, i16, i64>>>(level),
        DType::I8 => compiled::<Cast<ToInt<T, i8, i64>>>(level),
        DType::U64 => compiled::<Cast<ToInt<T, u64, u64>>>(level),
        DType::U32 => compiled::<Cast<ToInt<T, u32, i64>>>(level),
        DType::U16 => compiled::<Cast<ToInt<T, u16, i64>>>(level),
        DType::U8 => compiled::<Cast<ToInt<T, u8, i64>>>(level),
        DType::Bool => compiled::<Cast<ToBool<T>>>(level),
    }
}

/// The loop that converts elements of a kind to a dtype. From and to the same integer dtype it wraps to the dtype's width.
pub(super) fn select(kind: Kind, to: DType, level: Level) -> LoopFn {
    let level = level.min(Level::Avx2);
    match kind {
        Kind::F32 => from::<f32>(to, level),
        Kind::F64 => from::<f64>(to, level),
        Kind::I64 => from::<i64>(to, level),
        Kind::U64 => from::<u64>(to, level),
        Kind::Bool => from::<u8>(to, level),
    }
}
