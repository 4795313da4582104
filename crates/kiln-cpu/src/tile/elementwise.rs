//! The vector loops of the elementwise ops: one meaning per op and kind of element, compiled for each operand form and instruction set.
use core::marker::PhantomData;

use kiln_ir::{DType, Elementwise};

use crate::math::{Arith, Real};
use crate::simd::{Level, Loop, LoopFn, compiled};

/// Elements handled at once: constant-size inner loops become straight vector code.
pub(super) const BLOCK: usize = 16;

/// How elements of a dtype are held and computed with in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `f32`: F32, F16, BF16.
    F32,
    /// `f64`.
    F64,
    /// `i64`: every integer dtype but U64; values are in the dtype's range.
    I64,
    /// `u64`: U64.
    U64,
    /// One byte, 0 or 1.
    Bool,
}

impl Kind {
    /// The kind of a dtype.
    pub fn of(dtype: DType) -> Kind {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Kind::F32,
            DType::F64 => Kind::F64,
            DType::I64 | DType::I32 | DType::I16 | DType::I8 | DType::U32 | DType::U16 | DType::U8 => Kind::I64,
            DType::U64 => Kind::U64,
            DType::Bool => Kind::Bool,
        }
    }

    /// Bytes of one element in a tile.
    pub fn size(self) -> usize {
        match self {
            Kind::F32 => 4,
            Kind::F64 | Kind::I64 | Kind::U64 => 8,
            Kind::Bool => 1,
        }
    }
}

/// A function of up to three elements.
pub(super) trait Function: 'static {
    type A: Copy + Default;
    type B: Copy + Default;
    type C: Copy + Default;
    type Out: Copy + Default;
    /// Whether padding a short block to a full one is cheaper than going element by element.
    const HEAVY: bool = false;
    /// Whether the function is a library call that does not vectorise.
    const SCALAR: bool = false;

    fn eval<F: Arith>(a: Self::A, b: Self::B, c: Self::C) -> Self::Out;

    /// Whether `eval` holds for this operand; otherwise `far` is called.
    #[inline(always)]
    fn fits(_: Self::A) -> bool {
        true
    }

    #[inline(always)]
    fn far(_: Self::A) -> Self::Out {
        Self::Out::default()
    }
}

/// Applies a function of `ARITY` operands; bit `k` of `SCALARS` says that operand `k` is one element for the whole loop.
pub(super) struct Map<F, const ARITY: usize, const SCALARS: usize>(PhantomData<F>);

/// The elements of an operand from `at` on.
///
/// # Safety
/// `at .. at + BLOCK` is readable, or one element if this is a scalar, or nothing if the operand is not used.
#[inline(always)]
unsafe fn block<T: Copy + Default>(pointer: *const u8, at: usize, used: bool, scalar: bool) -> [T; BLOCK] {
    let pointer = pointer as *const T;
    if !used {
        [T::default(); BLOCK]
    } else if scalar {
        // SAFETY: one element is readable.
        [unsafe { *pointer }; BLOCK]
    } else {
        // SAFETY: the caller's promise.
        unsafe { *(pointer.add(at) as *const [T; BLOCK]) }
    }
}

/// As [`block`], for the last `rest` elements; the others are of no account.
///
/// # Safety
/// As [`block`], with `rest` elements.
#[inline(always)]
unsafe fn part<T: Copy + Default>(pointer: *const u8, at: usize, rest: usize, used: bool, scalar: bool) -> [T; BLOCK] {
    if !used || scalar {
        // SAFETY: the caller's promise.
        return unsafe { block(pointer, at, used, scalar) };
    }
    let mut elements = [T::default(); BLOCK];
    for (k, element) in elements.iter_mut().enumerate() {
        if k < rest {
            // SAFETY: the caller's promise.
            *element = unsafe { *(pointer as *const T).add(at + k) };
        }
    }
    elements
}

/// An operand as a slice, or as one value.
struct Elements<'a, T> {
    slice: &'a [T],
    value: T,
}

impl<T: Copy + Default> Elements<'_, T> {
    /// # Safety
    /// The pointer is readable for `n` elements, or one if this is a scalar, or none if it is not used.
    #[inline(always)]
    unsafe fn new(pointer: *const u8, n: usize, used: bool, scalar: bool) -> Self {
        let pointer = pointer as *const T;
        // SAFETY: the caller's promise.
        unsafe {
            Elements {
                slice: if used && !scalar { core::slice::from_raw_parts(pointer, n) } else { &[] },
                value: if used && scalar { *pointer } else { T::default() },
            }
        }
    }
}

impl<F: Function, const ARITY: usize, const SCALARS: usize> Map<F, ARITY, SCALARS> {
    #[inline(always)]
    fn apply<R: Arith>(a: [F::A; BLOCK], b: [F::B; BLOCK], c: [F::C; BLOCK]) -> [F::Out; BLOCK] {
        let mut out = [F::Out::default(); BLOCK];
        let mut fits = true;
        for &x in &a {
            fits &= F::fits(x);
        }
        if fits {
            for k in 0..BLOCK {
                out[k] = F::eval::<R>(a[k], b[k], c[k]);
            }
        } else {
            for k in 0..BLOCK {
                out[k] = F::far(a[k]);
            }
        }
        out
    }
}

impl<F: Function, const ARITY: usize, const SCALARS: usize> Loop for Map<F, ARITY, SCALARS> {
    /// Maps `n` elements.
    #[inline(always)]
    unsafe fn run<R: Arith>(dst: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) {
        let dst = dst as *mut F::Out;
        let (has_b, has_c) = (ARITY > 1, ARITY > 2);
        let (fix_a, fix_b, fix_c) = (SCALARS & 1 != 0, SCALARS & 2 != 0, SCALARS & 4 != 0);
        let one = |at: usize| {
            // SAFETY: `at < n`, so each operand is readable there and the destination writable.
            unsafe {
                let x = *(a as *const F::A).add(if fix_a { 0 } else { at });
                let y = if has_b { *(b as *const F::B).add(if fix_b { 0 } else { at }) } else { F::B::default() };
                let z = if has_c { *(c as *const F::C).add(if fix_c { 0 } else { at }) } else { F::C::default() };
                *dst.add(at) = if F::fits(x) { F::eval::<R>(x, y, z) } else { F::far(x) };
            }
        };
        if F::SCALAR {
            (0..n).for_each(one);
            return;
        }
        if !F::HEAVY {
            // SAFETY: every operand is readable for `n` elements (one if it is a scalar), and the destination is writable and apart from them.
            unsafe {
                let a = Elements::<F::A>::new(a, n, true, fix_a);
                let b = Elements::<F::B>::new(b, n, has_b, fix_b);
                let c = Elements::<F::C>::new(c, n, has_c, fix_c);
                let dst = core::slice::from_raw_parts_mut(dst, n);
                match (has_b && !fix_b, has_c && !fix_c) {
                    (false, false) => dst.iter_mut().zip(a.slice).for_each(|(d, &x)| *d = F::eval::<R>(x, b.value, c.value)),
                    (true, false) if fix_a => dst.iter_mut().zip(b.slice).for_each(|(d, &y)| *d = F::eval::<R>(a.value, y, c.value)),
                    (true, false) => dst.iter_mut().zip(a.slice).zip(b.slice).for_each(|((d, &x), &y)| *d = F::eval::<R>(x, y, c.value)),
                    (false, true) => dst.iter_mut().zip(a.slice).zip(c.slice).for_each(|((d, &x), &z)| *d = F::eval::<R>(x, b.value, z)),
                    (true, true) => dst.iter_mut().zip(a.slice).zip(b.slice).zip(c.slice).for_each(|(((d, &x), &y), &z)| *d = F::eval::<R>(x, y, z)),
                }
            }
            return;
        }
        let whole = n - n % BLOCK;
        let mut at = 0;
        while at < whole {
            // SAFETY: `at + BLOCK <= n`.
            unsafe {
                let out = Self::apply::<R>(block(a, at, true, fix_a), block(b, at, has_b, fix_b), block(c, at, has_c, fix_c));
                *(dst.add(at) as *mut [F::Out; BLOCK]) = out;
            }
            at += BLOCK;
        }
        if F::HEAVY && n - at > 2 {
            let rest = n - at;
            // SAFETY: `rest` elements are left; only those are read and written.
            unsafe {
                let out = Self::apply::<R>(part(a, at, rest, true, fix_a), part(b, at, rest, has_b, fix_b), part(c, at, rest, has_c, fix_c));
                for (k, &value) in out.iter().enumerate() {
                    if k < rest {
                        *dst.add(at + k) = value;
                    }
                }
            }
        } else {
            (at..n).for_each(one);
        }
    }
}

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
    ExpF<R, A>(x) -> R { const HEAVY: bool = true; } => x.exp::<A>();
    LogF<R, A>(x) -> R { const HEAVY: bool = true; } => x.log::<A>();
    Log1pF<R, A>(x) -> R { const HEAVY: bool = true; } => x.log1p::<A>();
    TanhF<R, A>(x) -> R { const HEAVY: bool = true; } => x.tanh::<A>();
    ErfF<R, A>(x) -> R { const HEAVY: bool = true; } => x.erf::<A>();
    SinF<R, A>(x) -> R {
        const HEAVY: bool = true;

        #[inline(always)]
        fn fits(x: R) -> bool {
            x.is_moderate()
        }

        #[inline(always)]
        fn far(x: R) -> R {
            x.sin_far()
        }
    } => x.sin::<A>();
    CosF<R, A>(x) -> R {
        const HEAVY: bool = true;

        #[inline(always)]
        fn fits(x: R) -> bool {
            x.is_moderate()
        }

        #[inline(always)]
        fn far(x: R) -> R {
            x.cos_far()
        }
    } => x.cos::<A>();
    TanF<R, A>(x) -> R {
        const HEAVY: bool = true;

        #[inline(always)]
        fn fits(x: R) -> bool {
            x.is_moderate()
        }

        #[inline(always)]
        fn far(x: R) -> R {
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

    #[inline(always)]
    fn eval<F: Arith>(condition: u8, x: T, y: T) -> T {
        if condition != 0 { x } else { y }
    }
}

fn unary<F: Function>(level: Level) -> LoopFn {
    compiled::<Map<F, 1, 0>>(level)
}

fn binary<F: Function>(level: Level, scalars: usize) -> LoopFn {
    match scalars & 3 {
        1 => compiled::<Map<F, 2, 1>>(level),
        2 => compiled::<Map<F, 2, 2>>(level),
        _ => compiled::<Map<F, 2, 0>>(level),
    }
}

fn ternary<F: Function>(level: Level, scalars: usize) -> LoopFn {
    match scalars & 7 {
        2 => compiled::<Map<F, 3, 2>>(level),
        4 => compiled::<Map<F, 3, 4>>(level),
        6 => compiled::<Map<F, 3, 6>>(level),
        _ => compiled::<Map<F, 3, 0>>(level),
    }
}

/// Which operands may be given as one element: bit `k` for operand `k`. A loop for any subset of these bits exists, except that not all operands of a
/// binary op can be scalars at once.
pub fn scalar_operands(op: Elementwise) -> usize {
    match op.arity() {
        1 => 0,
        2 => 3,
        _ => 6,
    }
}

/// The loop of an op on operands of `kind` (for `where`, the kind of the selected values), with the operands in the mask `scalars` given as one element.
/// `None` when the op is not defined on the kind.
pub fn select(op: Elementwise, kind: Kind, scalars: usize, level: Level) -> Option<LoopFn> {
    match kind {
        Kind::F32 => float::<f32>(op, scalars, level),
        Kind::F64 => float::<f64>(op, scalars, level),
        Kind::I64 => integer::<i64>(op, scalars, level),
        Kind::U64 => integer::<u64>(op, scalars, level),
        Kind::Bool => truth(op, scalars, level),
    }
}

fn float<R: Real + Default>(op: Elementwise, scalars: usize, level: Level) -> Option<LoopFn> {
    use Elementwise::*;
    Some(match op {
        Neg => unary::<NegF<R>>(level),
        Abs => unary::<AbsF<R>>(level),
        Sign => unary::<SignF<R>>(level),
        Recip => unary::<RecipF<R>>(level),
        Sqrt => unary::<SqrtF<R>>(level),
        Exp => unary::<ExpF<R>>(level),
        Log => unary::<LogF<R>>(level),
        Log1p => unary::<Log1pF<R>>(level),
        Sin => unary::<SinF<R>>(level),
        Cos => unary::<CosF<R>>(level),
        Tan => unary::<TanF<R>>(level),
        Asin => unary::<AsinF<R>>(level),
        Acos => unary::<AcosF<R>>(level),
        Atan => unary::<AtanF<R>>(level),
        Sinh => unary::<SinhF<R>>(level),
        Cosh => unary::<CoshF<R>>(level),
        Asinh => unary::<AsinhF<R>>(level),
        Acosh => unary::<AcoshF<R>>(level),
        Atanh => unary::<AtanhF<R>>(level),
        Tanh => unary::<TanhF<R>>(level),
        Erf => unary::<ErfF<R>>(level),
        Floor => unary::<FloorF<R>>(level),
        Ceil => unary::<CeilF<R>>(level),
        Round => unary::<RoundF<R>>(level),
        Trunc => unary::<TruncF<R>>(level),
        Add => binary::<AddF<R>>(level, scalars),
        Sub => binary::<SubF<R>>(level, scalars),
        Mul => binary::<MulF<R>>(level, scalars),
        Div => binary::<DivF<R>>(level, scalars),
        Rem => binary::<RemF<R>>(level, scalars),
        Fmod => binary::<FmodF<R>>(level, scalars),
        Pow => binary::<PowF<R>>(level, scalars),
        Atan2 => binary::<Atan2F<R>>(level, scalars),
        Max => binary::<MaxF<R>>(level, scalars),
        Min => binary::<MinF<R>>(level, scalars),
        Eq => binary::<EqP<R>>(level, scalars),
        Ne => binary::<NeP<R>>(level, scalars),
        Lt => binary::<LtP<R>>(level, scalars),
        Le => binary::<LeP<R>>(level, scalars),
        Gt => binary::<GtP<R>>(level, scalars),
        Ge => binary::<GeP<R>>(level, scalars),
        Where => ternary::<WhereP<R>>(level, scalars),
        Not | And | Or | Xor | Shl | Shr => return None,
    })
}

fn integer<T>(op: Elementwise, scalars: usize, level: Level) -> Option<LoopFn>
where
    T: Integer + core::ops::BitAnd<Output = T> + core::ops::BitOr<Output = T> + core::ops::BitXor<Output = T> + 'static,
{
    use Elementwise::*;
    Some(match op {
        Neg => unary::<NegI<T>>(level),
        Abs => unary::<AbsI<T>>(level),
        Sign => unary::<SignI<T>>(level),
        Not => unary::<NotI<T>>(level),
        Add => binary::<AddI<T>>(level, scalars),
        Sub => binary::<SubI<T>>(level, scalars),
        Mul => binary::<MulI<T>>(level, scalars),
        Div => binary::<DivI<T>>(level, scalars),
        Rem => binary::<RemI<T>>(level, scalars),
        Max => binary::<MaxI<T>>(level, scalars),
        Min => binary::<MinI<T>>(level, scalars),
        And => binary::<AndP<T>>(level, scalars),
        Or => binary::<OrP<T>>(level, scalars),
        Xor => binary::<XorP<T>>(level, scalars),
        Shl => binary::<ShlI<T>>(level, scalars),
        Shr => binary::<ShrI<T>>(level, scalars),
        Eq => binary::<EqP<T>>(level, scalars),
        Ne => binary::<NeP<T>>(level, scalars),
        Lt => binary::<LtP<T>>(level, scalars),
        Le => binary::<LeP<T>>(level, scalars),
        Gt => binary::<GtP<T>>(level, scalars),
        Ge => binary::<GeP<T>>(level, scalars),
        Where => ternary::<WhereP<T>>(level, scalars),
        Recip | Sqrt | Exp | Log | Log1p | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Tanh | Erf | Floor | Ceil
        | Round | Trunc | Fmod | Pow | Atan2 => return None,
    })
}

fn truth(op: Elementwise, scalars: usize, level: Level) -> Option<LoopFn> {
    use Elementwise::*;
    Some(match op {
        Not => unary::<NotB<u8>>(level),
        And => binary::<AndP<u8>>(level, scalars),
        Or => binary::<OrP<u8>>(level, scalars),
        Xor => binary::<XorP<u8>>(level, scalars),
        Eq => binary::<EqP<u8>>(level, scalars),
        Ne => binary::<NeP<u8>>(level, scalars),
        Where => ternary::<WhereP<u8>>(level, scalars),
        Neg | Abs | Sign | Recip | Sqrt | Exp | Log | Log1p | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Tanh
        | Erf | Floor | Ceil | Round | Trunc | Add | Sub | Mul | Div | Rem | Fmod | Pow | Atan2 | Max | Min | Shl | Shr | Lt | Le | Gt | Ge => {
            return None;
        }
    })
}
