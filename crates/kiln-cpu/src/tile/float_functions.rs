//! What the elementwise ops mean on floats.
use core::marker::PhantomData;

use super::function::Function;
use crate::math::{Arith, Real};

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
