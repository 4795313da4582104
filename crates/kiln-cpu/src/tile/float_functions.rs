//! What the elementwise ops mean on floats.
use core::marker::PhantomData;

use super::function::Function;
use crate::math::{Arith, Real};
use crate::simd::Loop;

/// Declares functions of floats: `Name(operands) { associated constants } => result`.
macro_rules! float_functions {
    ($($(#[$doc:meta])* $name:ident<$r:ident, $arith:ident>($a:ident $(, $b:ident)?) -> $out:ty { $($item:tt)* } => $value:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) struct $name<T>(PhantomData<T>);

            impl<$r: Real + Default> Function for $name<$r> {
                type A = $r;
                type B = $r;
                type C = u8;
                type Out = $out;
                $($item)*

                #[inline(always)]
                fn eval<$arith: Arith>($a: $r, _b: $r, _: u8) -> $out {
                    $( let $b = _b; )?
                    $value
                }
            }
        )*
    };
}

float_functions! {
    NegF<R, A>(x) -> R {} => -x;
    AbsF<R, A>(x) -> R {} => x.abs();
    SignF<R, A>(x) -> R {} => {
        let positive = if x > R::ZERO { R::ONE } else { R::ZERO };
        let signed = if x < R::ZERO { -R::ONE } else { positive };
        if x.is_nan() { x } else { signed }
    };
    RecipF<R, A>(x) -> R {} => R::ONE / x;
    SqrtF<R, A>(x) -> R {} => x.sqrt();
    ExpF<R, A>(x) -> R {
        const HEAVY: bool = true;

        #[inline(always)]
        fn fits(x: R, _: R) -> bool {
            x.has_normal_exp()
        }

        #[inline(always)]
        fn far<A: Arith>(x: R, _: R) -> R {
            x.exp::<A>()
        }
    } => x.exp_normal::<A>();
    LogF<R, A>(x) -> R { const HEAVY: bool = true; } => x.log::<A>();
    Log1pF<R, A>(x) -> R { const HEAVY: bool = true; } => x.log1p::<A>();
    TanhF<R, A>(x) -> R { const HEAVY: bool = true; } => x.tanh::<A>();
    ErfF<R, A>(x) -> R { const HEAVY: bool = true; } => x.erf::<A>();
    SinF<R, A>(x) -> R {
        const HEAVY: bool = true;

        #[inline(always)]
        fn fits(x: R, _: R) -> bool {
            x.is_moderate()
        }

        #[inline(always)]
        fn far<A: Arith>(x: R, _: R) -> R {
            x.sin_far()
        }
    } => x.sin::<A>();
    CosF<R, A>(x) -> R {
        const HEAVY: bool = true;

        #[inline(always)]
        fn fits(x: R, _: R) -> bool {
            x.is_moderate()
        }

        #[inline(always)]
        fn far<A: Arith>(x: R, _: R) -> R {
            x.cos_far()
        }
    } => x.cos::<A>();
    TanF<R, A>(x) -> R {
        const HEAVY: bool = true;

        #[inline(always)]
        fn fits(x: R, _: R) -> bool {
            x.is_moderate()
        }

        #[inline(always)]
        fn far<A: Arith>(x: R, _: R) -> R {
            x.tan_far()
        }
    } => x.tan::<A>();
    AsinF<R, A>(x) -> R { const SCALAR: bool = true; } => x.asin();
    AcosF<R, A>(x) -> R { const SCALAR: bool = true; } => x.acos();
    AtanF<R, A>(x) -> R { const SCALAR: bool = true; } => x.atan();
    SinhF<R, A>(x) -> R { const SCALAR: bool = true; } => x.sinh();
    CoshF<R, A>(x) -> R { const SCALAR: bool = true; } => x.cosh();
    AsinhF<R, A>(x) -> R { const SCALAR: bool = true; } => x.asinh();
    AcoshF<R, A>(x) -> R { const SCALAR: bool = true; } => x.acosh();
    AtanhF<R, A>(x) -> R { const SCALAR: bool = true; } => x.atanh();
    FloorF<R, A>(x) -> R {} => x.floor();
    CeilF<R, A>(x) -> R {} => x.ceil();
    RoundF<R, A>(x) -> R {} => x.round();
    TruncF<R, A>(x) -> R {} => x.trunc();
    AddF<R, A>(x, y) -> R {} => x + y;
    SubF<R, A>(x, y) -> R {} => x - y;
    MulF<R, A>(x, y) -> R {} => x * y;
    DivF<R, A>(x, y) -> R {} => x / y;
    RemF<R, A>(x, y) -> R { const SCALAR: bool = true; } => {
        let r = x.fmod(y);
        if r != R::ZERO && (r < R::ZERO) != (y < R::ZERO) { r + y } else { r }
    };
    FmodF<R, A>(x, y) -> R { const SCALAR: bool = true; } => x.fmod(y);
    PowF<R, A>(x, y) -> R { const HEAVY: bool = true; } => x.pow::<A>(y);
    Atan2F<R, A>(x, y) -> R { const SCALAR: bool = true; } => x.atan2(y);
    MaxF<R, A>(x, y) -> R {} => if (x > y) | x.is_nan() { x } else { y };
    MinF<R, A>(x, y) -> R {} => if (x < y) | x.is_nan() { x } else { y };
}

/// Divides `n` elements of `a` by the one number `b`: a product with its reciprocal, corrected to the very quotient (P. Markstein, "Computation of elementary
/// functions on the IBM RISC System/6000", 1990), where nothing can overflow or vanish on the way.
pub(super) struct DivideByOne;

impl Loop for DivideByOne {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        const PIECE: usize = 256;
        /// 2^60.
        const HIGH: f32 = 1.152_921_5e18;
        const LOW: f32 = 1.0 / HIGH;
        // SAFETY: `n` elements and one number are readable; the destination is writable for `n` elements, apart from them.
        let (dst, x, by) =
            unsafe { (core::slice::from_raw_parts_mut(dst as *mut f32, n), core::slice::from_raw_parts(a as *const f32, n), *(b as *const f32)) };
        if !A::FUSED || !(LOW..=HIGH).contains(&by.abs()) {
            dst.iter_mut().zip(x).for_each(|(d, x)| *d = x / by);
            return;
        }
        let recip = 1.0 / by;
        // Plain loops over pieces: the compiler turns them into vector code, which it fails to do for branches inside.
        for (d, x) in dst.chunks_mut(PIECE).zip(x.chunks(PIECE)) {
            let mut extreme = 0u32;
            for x in x {
                let size = x.to_bits() & 0x7fff_ffff;
                extreme |= ((size.wrapping_sub(LOW.to_bits()) > HIGH.to_bits() - LOW.to_bits()) & (size != 0)) as u32;
            }
            if extreme == 0 {
                d.iter_mut().zip(x).for_each(|(d, &x)| {
                    let q = x * recip;
                    // The sign is that of the product, also for zero.
                    *d = A::fma(A::fma(-q, by, x), recip, q).copysign(q);
                });
            } else {
                d.iter_mut().zip(x).for_each(|(d, x)| *d = x / by);
            }
        }
    }
}
