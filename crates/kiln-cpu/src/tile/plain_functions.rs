//! What the elementwise ops mean on integers and bools, and those that mean the same on every type.
use core::marker::PhantomData;

use super::function::Function;
use crate::math::Arith;

/// Declares functions of any type with the given operators.
macro_rules! plain_functions {
    ($($name:ident<$t:ident: $($bound:path),*>($a:ident, $b:ident) -> $out:ty => $value:expr;)*) => {
        $(
            pub(super) struct $name<T>(PhantomData<T>);

            impl<$t: Copy + Default + 'static $(+ $bound)*> Function for $name<$t> {
                type A = $t;
                type B = $t;
                type C = u8;
                type Out = $out;
                const ONCE: bool = size_of::<$t>() == 1;

                #[inline(always)]
                fn eval<F: Arith>($a: $t, $b: $t, _: u8) -> $out {
                    $value
                }
            }
        )*
    };
}

plain_functions! {
    EqP<T: PartialEq>(x, y) -> u8 => (x == y) as u8;
    NeP<T: PartialEq>(x, y) -> u8 => (x != y) as u8;
    LtP<T: PartialOrd>(x, y) -> u8 => (x < y) as u8;
    LeP<T: PartialOrd>(x, y) -> u8 => (x <= y) as u8;
    GtP<T: PartialOrd>(x, y) -> u8 => (x > y) as u8;
    GeP<T: PartialOrd>(x, y) -> u8 => (x >= y) as u8;
    AndP<T: core::ops::BitAnd<Output = T>>(x, y) -> T => x & y;
    OrP<T: core::ops::BitOr<Output = T>>(x, y) -> T => x | y;
    XorP<T: core::ops::BitXor<Output = T>>(x, y) -> T => x ^ y;
    NegI<T: Integer>(x, _y) -> T => T::wrap(0i64.wrapping_sub(x.word()));
    AbsI<T: Integer>(x, _y) -> T => if x < T::default() { T::wrap(0i64.wrapping_sub(x.word())) } else { x };
    SignI<T: Integer>(x, _y) -> T => T::wrap((x > T::default()) as i64 - (x < T::default()) as i64);
    NotI<T: Integer>(x, _y) -> T => T::wrap(!x.word());
    NotB<T: Integer>(x, _y) -> T => T::wrap(x.word() ^ 1);
    AddI<T: Integer>(x, y) -> T => T::wrap(x.word().wrapping_add(y.word()));
    SubI<T: Integer>(x, y) -> T => T::wrap(x.word().wrapping_sub(y.word()));
    MulI<T: Integer>(x, y) -> T => T::wrap(x.word().wrapping_mul(y.word()));
    DivI<T: Integer>(x, y) -> T => x.quotient(y);
    RemI<T: Integer>(x, y) -> T => x.floor_remainder(y);
    MaxI<T: Integer>(x, y) -> T => if x > y { x } else { y };
    MinI<T: Integer>(x, y) -> T => if x < y { x } else { y };
    ShlI<T: Integer>(x, y) -> T => if (y.word() as u64) < 64 { T::wrap(x.word() << y.word()) } else { T::default() };
    ShrI<T: Integer>(x, y) -> T => x.shift_right(y);
}

/// `i64`, `u64` and the bool byte.
pub(super) trait Integer: PartialOrd + Copy + Default {
    fn word(self) -> i64;
    fn wrap(word: i64) -> Self;
    fn quotient(self, by: Self) -> Self;
    fn floor_remainder(self, by: Self) -> Self;
    fn shift_right(self, by: Self) -> Self;
}

impl Integer for i64 {
    #[inline(always)]
    fn word(self) -> i64 {
        self
    }

    #[inline(always)]
    fn wrap(word: i64) -> Self {
        word
    }

    #[inline(always)]
    fn quotient(self, by: Self) -> Self {
        if by == 0 { 0 } else { self.wrapping_div(by) }
    }

    #[inline(always)]
    fn floor_remainder(self, by: Self) -> Self {
        if by == 0 {
            return 0;
        }
        let r = self.wrapping_rem(by);
        if r != 0 && (r < 0) != (by < 0) { r + by } else { r }
    }

    #[inline(always)]
    fn shift_right(self, by: Self) -> Self {
        self >> if (by as u64) < 64 { by } else { 63 }
    }
}

impl Integer for u64 {
    #[inline(always)]
    fn word(self) -> i64 {
        self as i64
    }

    #[inline(always)]
    fn wrap(word: i64) -> Self {
        word as u64
    }

    #[inline(always)]
    fn quotient(self, by: Self) -> Self {
        self.checked_div(by).unwrap_or(0)
    }

    #[inline(always)]
    fn floor_remainder(self, by: Self) -> Self {
        self.checked_rem(by).unwrap_or(0)
    }

    #[inline(always)]
    fn shift_right(self, by: Self) -> Self {
        if by < 64 { self >> by } else { 0 }
    }
}

impl Integer for u8 {
    #[inline(always)]
    fn word(self) -> i64 {
        self as i64
    }

    #[inline(always)]
    fn wrap(word: i64) -> Self {
        word as u8
    }

    #[inline(always)]
    fn quotient(self, by: Self) -> Self {
        self.checked_div(by).unwrap_or(0)
    }

    #[inline(always)]
    fn floor_remainder(self, by: Self) -> Self {
        self.checked_rem(by).unwrap_or(0)
    }

    #[inline(always)]
    fn shift_right(self, by: Self) -> Self {
        if by < 8 { self >> by } else { 0 }
    }
}

/// Selection of whole elements.
pub(super) struct WhereP<T>(PhantomData<T>);

impl<T: Copy + Default + 'static> Function for WhereP<T> {
    type A = u8;
    type B = T;
    type C = T;
    type Out = T;
    const ONCE: bool = size_of::<T>() == 1;

    #[inline(always)]
    fn eval<F: Arith>(condition: u8, x: T, y: T) -> T {
        if condition != 0 { x } else { y }
    }
}
