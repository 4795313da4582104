//! Functions of elements, and the loop that applies one to tiles.
use core::marker::PhantomData;

use crate::math::Arith;
use crate::simd::Loop;

/// Elements that costly functions handle at once.
const BLOCK: usize = 16;

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
    /// Whether one loop for all instruction sets is enough.
    const ONCE: bool = Self::SCALAR;

    fn eval<F: Arith>(a: Self::A, b: Self::B, c: Self::C) -> Self::Out;

    /// Whether `eval` holds for these operands; otherwise `far` is called.
    #[inline(always)]
    fn fits(_: Self::A, _: Self::B) -> bool {
        true
    }

    #[inline(always)]
    fn far<F: Arith>(_: Self::A, _: Self::B) -> Self::Out {
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

/// The element of an operand that is one element for the whole loop, read once in front of it.
///
/// # Safety
/// One element is readable if the operand is used and a scalar.
#[inline(always)]
unsafe fn fixed<T: Copy + Default>(pointer: *const u8, used: bool, scalar: bool) -> T {
    // SAFETY: the caller's promise.
    if used && scalar { unsafe { *(pointer as *const T) } } else { T::default() }
}

impl<F: Function, const ARITY: usize, const SCALARS: usize> Map<F, ARITY, SCALARS> {
    #[inline(always)]
    fn apply<R: Arith>(a: [F::A; BLOCK], b: [F::B; BLOCK], c: [F::C; BLOCK]) -> [F::Out; BLOCK] {
        let mut out = [F::Out::default(); BLOCK];
        let mut fits = true;
        for k in 0..BLOCK {
            fits &= F::fits(a[k], b[k]);
        }
        if fits {
            for k in 0..BLOCK {
                out[k] = F::eval::<R>(a[k], b[k], c[k]);
            }
        } else {
            for k in 0..BLOCK {
                out[k] = F::far::<R>(a[k], b[k]);
            }
        }
        out
    }
}

impl<F: Function, const ARITY: usize, const SCALARS: usize> Loop for Map<F, ARITY, SCALARS> {
    const ONCE: bool = F::ONCE;
    // Only f32 is worth code for the widest vectors.
    const NARROW: bool = size_of::<F::A>() == 8;

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
                *dst.add(at) = if F::fits(x, y) { F::eval::<R>(x, y, z) } else { F::far::<R>(x, y) };
            }
        };
        if F::SCALAR {
            for at in 0..n {
                one(at);
            }
            return;
        }
        if !F::HEAVY {
            // One index and plain pointers: there are hundreds of these loops, and iterators over slices are four times the code to compile.
            // SAFETY: every operand is readable for `n` elements (one if it is a scalar), and the destination is writable and apart from them.
            unsafe {
                let (x, y, z) = (fixed::<F::A>(a, true, fix_a), fixed::<F::B>(b, has_b, fix_b), fixed::<F::C>(c, has_c, fix_c));
                let mut at = 0;
                while at < n {
                    let x = if fix_a { x } else { *(a as *const F::A).add(at) };
                    let y = if has_b && !fix_b { *(b as *const F::B).add(at) } else { y };
                    let z = if has_c && !fix_c { *(c as *const F::C).add(at) } else { z };
                    *dst.add(at) = F::eval::<R>(x, y, z);
                    at += 1;
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
        if n - at > 2 {
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
            while at < n {
                one(at);
                at += 1;
            }
        }
    }
}
