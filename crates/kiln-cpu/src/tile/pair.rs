//! Pairs of f32 ops that run as one loop: half the passes over the tiles, with the same roundings.
use core::marker::PhantomData;

use kiln_ir::Elementwise;

use super::float_functions::*;
use super::function::{Function, Map};
use crate::math::Arith;
use crate::simd::{Level, LoopFn, compiled};

/// A function of two f32.
trait Inner: Function<A = f32, B = f32, C = u8, Out = f32> {}

impl<F: Function<A = f32, B = f32, C = u8, Out = f32>> Inner for F {}

/// `Second(First(a, b), c)`.
struct Then<First, Second>(PhantomData<(First, Second)>);

impl<First: Inner, Second: Inner> Function for Then<First, Second> {
    type A = f32;
    type B = f32;
    type C = f32;
    type Out = f32;

    #[inline(always)]
    fn eval<F: Arith>(a: f32, b: f32, c: f32) -> f32 {
        Second::eval::<F>(First::eval::<F>(a, b, 0), c, 0)
    }
}

/// `c - First(a, b)`.
struct From<First>(PhantomData<First>);

impl<First: Inner> Function for From<First> {
    type A = f32;
    type B = f32;
    type C = f32;
    type Out = f32;

    #[inline(always)]
    fn eval<F: Arith>(a: f32, b: f32, c: f32) -> f32 {
        c - First::eval::<F>(a, b, 0)
    }
}

/// `Second(First(a, b))` for a function of one operand.
struct Of<First, Second>(PhantomData<(First, Second)>);

impl<First: Inner, Second: Inner> Function for Of<First, Second> {
    type A = f32;
    type B = f32;
    type C = u8;
    type Out = f32;
    const HEAVY: bool = Second::HEAVY;

    #[inline(always)]
    fn eval<F: Arith>(a: f32, b: f32, _: u8) -> f32 {
        Second::eval::<F>(First::eval::<F>(a, b, 0), 0.0, 0)
    }

    #[inline(always)]
    fn fits(a: f32, b: f32) -> bool {
        Second::fits(First::eval::<crate::math::Split>(a, b, 0), 0.0)
    }

    #[inline(always)]
    fn far<F: Arith>(a: f32, b: f32) -> f32 {
        Second::far::<F>(First::eval::<F>(a, b, 0), 0.0)
    }
}

/// How the ops of a pair take their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub first: Elementwise,
    pub second: Elementwise,
    /// The second op takes the first one's result as its second operand.
    pub reversed: bool,
}

impl Pair {
    /// Whether a loop for the pair exists, for every subset of the operands but the first given as scalars.
    pub fn exists(self) -> bool {
        use Elementwise::*;
        matches!((self.first, self.second), (Add | Sub | Mul, Add | Sub | Mul) | (Sub | Mul | Neg, Exp) | (Mul, Erf | Tanh) | (Add, Recip | Sqrt))
    }

    /// The loop; bits 1 and 2 of `scalars` say which of the operands `b` and `c` are single elements.
    pub fn select(self, scalars: usize, level: Level) -> Option<LoopFn> {
        use Elementwise::*;
        Some(match (self.first, self.second) {
            (Neg, Exp) => compiled::<Map<Of<NegF<f32>, ExpF<f32>>, 1, 0>>(level),
            (Sub, Exp) => of::<SubF<f32>, ExpF<f32>>(scalars, level),
            (Mul, Exp) => of::<MulF<f32>, ExpF<f32>>(scalars, level),
            (Mul, Erf) => of::<MulF<f32>, ErfF<f32>>(scalars, level),
            (Mul, Tanh) => of::<MulF<f32>, TanhF<f32>>(scalars, level),
            (Add, Recip) => of::<AddF<f32>, RecipF<f32>>(scalars, level),
            (Add, Sqrt) => of::<AddF<f32>, SqrtF<f32>>(scalars, level),
            (Add, second) => self.then::<AddF<f32>>(second, scalars, level)?,
            (Sub, second) => self.then::<SubF<f32>>(second, scalars, level)?,
            (Mul, second) => self.then::<MulF<f32>>(second, scalars, level)?,
            _ => return None,
        })
    }

    fn then<First: Inner>(self, second: Elementwise, scalars: usize, level: Level) -> Option<LoopFn> {
        Some(match second {
            Elementwise::Add => ternary::<Then<First, AddF<f32>>>(scalars, level),
            Elementwise::Mul => ternary::<Then<First, MulF<f32>>>(scalars, level),
            Elementwise::Sub if self.reversed => ternary::<From<First>>(scalars, level),
            Elementwise::Sub => ternary::<Then<First, SubF<f32>>>(scalars, level),
            _ => return None,
        })
    }
}

fn of<First: Inner, Second: Inner>(scalars: usize, level: Level) -> LoopFn {
    match scalars {
        2 => compiled::<Map<Of<First, Second>, 2, 2>>(level),
        _ => compiled::<Map<Of<First, Second>, 2, 0>>(level),
    }
}

fn ternary<F: Function>(scalars: usize, level: Level) -> LoopFn {
    match scalars {
        2 => compiled::<Map<F, 3, 2>>(level),
        4 => compiled::<Map<F, 3, 4>>(level),
        6 => compiled::<Map<F, 3, 6>>(level),
        _ => compiled::<Map<F, 3, 0>>(level),
    }
}
