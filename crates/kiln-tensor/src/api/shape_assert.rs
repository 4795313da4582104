//! `assert_shape!`: checks of a tensor's shape against a pattern.

use super::Tensor;
use super::kind::Basic;
use crate::shape::Shape;

/// One slot of a shape pattern.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum ShapeSlot {
    /// `_`: any size.
    Any,
    /// `..`: any number of axes.
    Rest,
    /// The axis has this size.
    Size(usize),
}

/// The shape of a tensor whose rank is checked by the type checker.
#[doc(hidden)]
pub fn shape_of_rank<const D: usize, K: Basic>(tensor: &Tensor<D, K>, _rank: [(); D]) -> Shape {
    tensor.shape()
}

/// The shape of a tensor of any rank.
#[doc(hidden)]
pub fn shape_of_any_rank<const D: usize, K: Basic>(tensor: &Tensor<D, K>) -> Shape {
    tensor.shape()
}

/// Compares a shape with a pattern that has at most one `..`.
#[doc(hidden)]
#[track_caller]
pub fn check_shape(shape: &Shape, pattern: &[ShapeSlot], tensor: &str, text: &str) {
    let rest = pattern.iter().position(|slot| matches!(slot, ShapeSlot::Rest));
    let fixed = pattern.len() - usize::from(rest.is_some());
    assert!(
        if rest.is_some() { shape.rank() >= fixed } else { shape.rank() == fixed },
        "assert_shape: `{tensor}` has shape {shape} of rank {}, the pattern is [{text}]",
        shape.rank()
    );
    for (position, slot) in pattern.iter().enumerate() {
        let axis = match rest {
            Some(rest) if position > rest => position + shape.rank() - pattern.len(),
            _ => position,
        };
        if let ShapeSlot::Size(size) = slot {
            assert!(
                shape[axis] == *size,
                "assert_shape: axis {axis} of `{tensor}` has size {}, expected {size}: shape {shape}, pattern [{text}]",
                shape[axis]
            );
        }
    }
}

/// Asserts the shape of a tensor. The pattern has one slot an axis: an expression of type `usize`, `_` for any size; one slot may be `..`,
/// which stands for any number of axes. Without `..` a pattern of the wrong length does not compile. The tensor is borrowed.
///
/// ```
/// use kiln_tensor::{Device, Tensor, assert_shape};
/// let x = Tensor::<3>::zeros([2, 5, 8], &Device::default());
/// let [batch, length, _] = x.dims();
/// assert_shape!(x, [batch, length, 8]);
/// assert_shape!(x, [_, length, 4 * batch]);
/// assert_shape!(x, [batch, ..]);
/// ```
///
/// ```compile_fail
/// use kiln_tensor::{Device, Tensor, assert_shape};
/// let x = Tensor::<3>::zeros([2, 5, 8], &Device::default());
/// assert_shape!(x, [2, 5]);
/// ```
///
/// # Panics
/// When a size differs, or there are fewer axes than the pattern needs.
#[macro_export]
macro_rules! assert_shape {
    ($tensor:expr, [$($pattern:tt)*] $(,)?) => {
        $crate::__shape_pattern!($tensor, (exact), [], [], ($($pattern)*), $($pattern)*)
    };
}

/// As [`assert_shape!`], in builds with debug assertions only; the check of the rank by the compiler stays.
#[macro_export]
macro_rules! debug_assert_shape {
    ($($arguments:tt)*) => {
        if cfg!(debug_assertions) {
            $crate::assert_shape!($($arguments)*);
        }
    };
}

/// Collects the slots of a pattern, and one unit for each of them.
#[doc(hidden)]
#[macro_export]
macro_rules! __shape_pattern {
    ($tensor:expr, (exact), [$($slot:expr,)*], [$($unit:expr,)*], $text:tt,) => {
        $crate::check_shape(
            &$crate::shape_of_rank(&$tensor, [$($unit),*]),
            &[$($slot),*],
            stringify!($tensor),
            $crate::__pattern_text!($text),
        )
    };
    ($tensor:expr, (rest), [$($slot:expr,)*], [$($unit:expr,)*], $text:tt,) => {
        $crate::check_shape(
            &$crate::shape_of_any_rank(&$tensor),
            &[$($slot),*],
            stringify!($tensor),
            $crate::__pattern_text!($text),
        )
    };
    ($tensor:expr, $kind:tt, [$($slot:expr,)*], [$($unit:expr,)*], $text:tt, _ $(, $($more:tt)*)?) => {
        $crate::__shape_pattern!(
            $tensor, $kind, [$($slot,)* $crate::ShapeSlot::Any,], [$($unit,)* (),], $text, $($($more)*)?
        )
    };
    ($tensor:expr, (exact), [$($slot:expr,)*], [$($unit:expr,)*], $text:tt, .. $(, $($more:tt)*)?) => {
        $crate::__shape_pattern!(
            $tensor, (rest), [$($slot,)* $crate::ShapeSlot::Rest,], [$($unit,)* (),], $text, $($($more)*)?
        )
    };
    ($tensor:expr, (rest), [$($slot:expr,)*], [$($unit:expr,)*], $text:tt, .. $(, $($more:tt)*)?) => {
        compile_error!("a shape pattern has at most one `..`")
    };
    ($tensor:expr, $kind:tt, [$($slot:expr,)*], [$($unit:expr,)*], $text:tt, $size:expr $(, $($more:tt)*)?) => {
        $crate::__shape_pattern!(
            $tensor, $kind, [$($slot,)* $crate::ShapeSlot::Size($size),], [$($unit,)* (),], $text, $($($more)*)?
        )
    };
}

/// The text of a pattern.
#[doc(hidden)]
#[macro_export]
macro_rules! __pattern_text {
    (($($pattern:tt)*)) => {
        stringify!($($pattern)*)
    };
}
