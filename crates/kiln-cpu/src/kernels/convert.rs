//! Rows of elements, read as the type that arithmetic runs in and written from it.
use super::element::Element;
use super::vector::{Body, vectorize};
use crate::math::Arith;

/// Reads elements `step` apart into adjacent ones of the arithmetic type.
///
/// # Safety
/// Both sides have `n` elements.
pub(crate) unsafe fn widen_row<T: Element>(from: *const T, step: isize, to: *mut T::Wide, n: usize) {
    vectorize(Widen { from, step, to, n });
}

/// Writes adjacent elements of the arithmetic type to places `step` apart, rounded.
///
/// # Safety
/// Both sides have `n` elements.
pub(crate) unsafe fn narrow_row<T: Element>(from: *const T::Wide, to: *mut T, step: isize, n: usize) {
    vectorize(Narrow { from, to, step, n });
}

struct Widen<T: Element> {
    from: *const T,
    step: isize,
    to: *mut T::Wide,
    n: usize,
}

impl<T: Element> Body for Widen<T> {
    type Out = ();
    const WIDE: bool = false;
    const ONCE: bool = T::PLAIN;

    #[inline(always)]
    fn run<A: Arith>(self) {
        // SAFETY: the maker's promise: `n` elements on both sides.
        unsafe {
            if self.step == 1 {
                for i in 0..self.n {
                    *self.to.add(i) = (*self.from.add(i)).widen();
                }
            } else {
                for i in 0..self.n {
                    *self.to.add(i) = (*self.from.wrapping_offset(i as isize * self.step)).widen();
                }
            }
        }
    }
}

struct Narrow<T: Element> {
    from: *const T::Wide,
    to: *mut T,
    step: isize,
    n: usize,
}

impl<T: Element> Body for Narrow<T> {
    type Out = ();
    const WIDE: bool = false;
    const ONCE: bool = T::PLAIN;

    #[inline(always)]
    fn run<A: Arith>(self) {
        // SAFETY: the maker's promise: `n` elements on both sides.
        unsafe {
            if self.step == 1 {
                for i in 0..self.n {
                    *self.to.add(i) = T::narrow(*self.from.add(i));
                }
            } else {
                for i in 0..self.n {
                    *self.to.wrapping_offset(i as isize * self.step) = T::narrow(*self.from.add(i));
                }
            }
        }
    }
}
