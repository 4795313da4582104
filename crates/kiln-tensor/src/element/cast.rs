//! `ToElement`: one value converted to every element type.

use half::{bf16, f16};

use super::flex32;

/// Conversion to the primitive types. Floats to integers truncate and saturate (NaN becomes 0); integers to narrower integers wrap;
/// to floats round to nearest even; to `bool`, non-zero is true.
///
/// ```
/// use kiln_tensor::cast::ToElement;
/// assert_eq!((-1.9f32).to_i32(), -1);
/// assert_eq!(1e10f64.to_i32(), i32::MAX);
/// assert_eq!(300i32.to_u8(), 44);
/// ```
pub trait ToElement {
    /// As `isize`.
    fn to_isize(&self) -> isize {
        self.to_i64() as isize
    }
    /// As `i8`.
    fn to_i8(&self) -> i8 {
        self.to_i64() as i8
    }
    /// As `i16`.
    fn to_i16(&self) -> i16 {
        self.to_i64() as i16
    }
    /// As `i32`.
    fn to_i32(&self) -> i32 {
        self.to_i64() as i32
    }
    /// As `i64`.
    fn to_i64(&self) -> i64;
    /// As `i128`.
    fn to_i128(&self) -> i128 {
        i128::from(self.to_i64())
    }
    /// As `usize`.
    fn to_usize(&self) -> usize {
        self.to_u64() as usize
    }
    /// As `u8`.
    fn to_u8(&self) -> u8 {
        self.to_u64() as u8
    }
    /// As `u16`.
    fn to_u16(&self) -> u16 {
        self.to_u64() as u16
    }
    /// As `u32`.
    fn to_u32(&self) -> u32 {
        self.to_u64() as u32
    }
    /// As `u64`.
    fn to_u64(&self) -> u64;
    /// As `u128`.
    fn to_u128(&self) -> u128 {
        u128::from(self.to_u64())
    }
    /// As `f16`.
    fn to_f16(&self) -> f16 {
        f16::from_f32(round_to_odd(self.to_f64()))
    }
    /// As `bf16`.
    fn to_bf16(&self) -> bf16 {
        bf16::from_f32(round_to_odd(self.to_f64()))
    }
    /// As `flex32`.
    fn to_flex32(&self) -> flex32 {
        flex32::from_f32(self.to_f32())
    }
    /// As `f32`.
    fn to_f32(&self) -> f32 {
        self.to_i64() as f32
    }
    /// As `f64`.
    fn to_f64(&self) -> f64 {
        self.to_i64() as f64
    }
    /// As `bool`: whether the value is not zero.
    fn to_bool(&self) -> bool {
        self.to_f64() != 0.0
    }
}

/// Narrows to `f32` so that rounding the result to a half float gives what rounding `x` at once would: an inexact result gets an odd last bit
/// (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
fn round_to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    if back == x || x.is_nan() {
        return near;
    }
    let towards_zero = if back.abs() > x.abs() { near.to_bits() - 1 } else { near.to_bits() };
    f32::from_bits(towards_zero | 1)
}

/// Implements [`ToElement`] with `as` conversions from `$x`, an expression of a primitive number made from the value.
macro_rules! to_element {
    ($($t:ty: |$v:ident| $x:expr;)*) => {$(
        impl ToElement for $t {
            #[inline]
            fn to_isize(&self) -> isize { let $v = *self; $x as isize }
            #[inline]
            fn to_i8(&self) -> i8 { let $v = *self; $x as i8 }
            #[inline]
            fn to_i16(&self) -> i16 { let $v = *self; $x as i16 }
            #[inline]
            fn to_i32(&self) -> i32 { let $v = *self; $x as i32 }
            #[inline]
            fn to_i64(&self) -> i64 { let $v = *self; $x as i64 }
            #[inline]
            fn to_i128(&self) -> i128 { let $v = *self; $x as i128 }
            #[inline]
            fn to_usize(&self) -> usize { let $v = *self; $x as usize }
            #[inline]
            fn to_u8(&self) -> u8 { let $v = *self; $x as u8 }
            #[inline]
            fn to_u16(&self) -> u16 { let $v = *self; $x as u16 }
            #[inline]
            fn to_u32(&self) -> u32 { let $v = *self; $x as u32 }
            #[inline]
            fn to_u64(&self) -> u64 { let $v = *self; $x as u64 }
            #[inline]
            fn to_u128(&self) -> u128 { let $v = *self; $x as u128 }
            #[inline]
            fn to_f32(&self) -> f32 { let $v = *self; $x as f32 }
            #[inline]
            fn to_f64(&self) -> f64 { let $v = *self; $x as f64 }
            #[inline]
            fn to_bool(&self) -> bool { let $v = *self; $x as f64 != 0.0 }
        }
    )*};
}
to_element! {
    f64: |x| x;
    f32: |x| x;
    flex32: |x| x.to_f32();
    f16: |x| x.to_f32();
    bf16: |x| x.to_f32();
    i8: |x| x;
    i16: |x| x;
    i32: |x| x;
    i64: |x| x;
    i128: |x| x;
    isize: |x| x;
    u8: |x| x;
    u16: |x| x;
    u32: |x| x;
    u64: |x| x;
    u128: |x| x;
    usize: |x| x;
    bool: |x| u8::from(x);
}
