//! `Slice`: a range of positions on one axis, with a step; and what `slice` accepts.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::shape::{AsIndex, ExpressionError, MetadataError, Shape};

/// Positions `start..end` of an axis, every `step`-th of them; a negative step takes them from the last to the first.
/// Negative positions count from the end of the axis.
///
/// ```
/// use kiln_tensor::{Slice, s};
/// assert_eq!(s![1..4], Slice::new(1, Some(4), 1));
/// assert_eq!(s![-3..], Slice::new(-3, None, 1));
/// assert_eq!(s![0..10; -2].into_vec(), [9, 7, 5, 3, 1]);
/// assert_eq!(s![..; 2].output_size(5), 3);
/// assert_eq!(s![0..2, 1, ..].len(), 3);
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Slice {
    /// The first position.
    pub start: isize,
    /// The position behind the last; `None` for the end of the axis.
    pub end: Option<isize>,
    /// The distance between taken positions, not 0; negative to take them backwards.
    pub step: isize,
}

impl Default for Slice {
    fn default() -> Self {
        Self::full()
    }
}

impl Slice {
    /// The slice `start..end` with a step.
    ///
    /// # Panics
    /// When the step is 0.
    #[track_caller]
    pub const fn new(start: isize, end: Option<isize>, step: isize) -> Self {
        assert!(step != 0, "slice: the step must not be 0");
        Self { start, end, step }
    }

    /// The whole axis.
    pub const fn full() -> Self {
        Self::new(0, None, 1)
    }

    /// The one position `idx`.
    pub fn index(idx: isize) -> Self {
        Self::new(idx, behind(idx), 1)
    }

    /// The positions, in the order they are taken.
    ///
    /// # Panics
    /// When the slice has no end.
    #[track_caller]
    pub fn into_vec(self) -> Vec<isize> {
        assert!(self.end.is_some(), "slice: {self} has no end to list");
        self.into_iter().collect()
    }

    /// The slice with its end cut to the size of the axis.
    #[must_use]
    pub fn bound_to(self, size: usize) -> Self {
        let size = size as isize;
        let end = match self.end {
            Some(end) => end.min(size),
            None => size,
        };
        Self { end: Some(end), ..self }
    }

    /// The slice `start..end` with a step; the same as [`new`](Self::new).
    ///
    /// # Panics
    /// When the step is 0.
    #[track_caller]
    pub fn with_step(start: isize, end: Option<isize>, step: isize) -> Self {
        Self::new(start, end, step)
    }

    /// A range with a step.
    ///
    /// # Panics
    /// When the step is 0.
    #[track_caller]
    pub fn from_range_stepped<R: Into<Slice>>(range: R, step: isize) -> Self {
        let range = range.into();
        Self::new(range.start, range.end, step)
    }

    /// The distance between taken positions.
    pub fn step(&self) -> isize {
        self.step
    }

    /// The positions `start..end` on an axis of the given size, without the step. Positions outside of the axis are cut off.
    pub fn range(&self, size: usize) -> Range<usize> {
        let clamp = |position: isize| {
            let position = if position < 0 { position + size as isize } else { position };
            position.clamp(0, size as isize) as usize
        };
        let start = clamp(self.start);
        let end = self.end.map_or(size, clamp);
        start..end.max(start)
    }

    /// The positions `start..end` on an axis of the given size; the same as [`range`](Self::range).
    pub fn to_range(&self, size: usize) -> Range<usize> {
        self.range(size)
    }

    /// The positions `start..end` on an axis of the given size, and the step.
    pub fn to_range_and_step(&self, size: usize) -> (Range<usize>, isize) {
        (self.range(size), self.step)
    }

    /// Whether positions are taken from the last to the first.
    pub fn is_reversed(&self) -> bool {
        self.step < 0
    }

    /// The number of positions taken on an axis of the given size.
    #[track_caller]
    pub fn output_size(&self, dim_size: usize) -> usize {
        assert!(self.step != 0, "slice: the step of {self} on an axis of size {dim_size} is 0");
        self.range(dim_size).len().div_ceil(self.step.unsigned_abs())
    }

    /// Checks that the slice lies within an axis of the given size.
    ///
    /// # Errors
    /// The rule that is broken, in words.
    pub fn check(&self, size: usize) -> Result<(), &'static str> {
        let bound = size as isize;
        if self.step == 0 {
            return Err("the step is 0");
        }
        if self.start < -bound || self.start > bound {
            return Err("the start is out of range");
        }
        if self.end.is_some_and(|end| end < -bound || end > bound) {
            return Err("the end is out of range");
        }
        Ok(())
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.start != 0 {
            write!(f, "{}", self.start)?;
        }
        f.write_str("..")?;
        if let Some(end) = self.end {
            write!(f, "{end}")?;
        }
        if self.step != 1 {
            write!(f, ";{}", self.step)?;
        }
        Ok(())
    }
}

impl FromStr for Slice {
    type Err = ExpressionError;

    /// Parses `start..end;step`, where each part may be absent, `start..=end`, or one position.
    fn from_str(source: &str) -> Result<Self, ExpressionError> {
        let number = |text: &str| (text.trim().parse::<isize>()).map_err(|e| ExpressionError::parse_error(e.to_string(), source));
        let optional = |text: &str| {
            if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) }
        };
        let (range, step) = match source.split_once(';') {
            Some((range, step)) => (range, Some(number(step)?)),
            None => (source, None),
        };
        if step == Some(0) {
            return Err(ExpressionError::invalid_expression("the step must not be 0", source));
        }
        let slice = match range.split_once("..") {
            Some((start, end)) => {
                let end = match end.trim_start().strip_prefix('=') {
                    // `..=-1` ends with the axis.
                    Some(last) => behind(number(last)?),
                    None => optional(end)?,
                };
                Self::new(optional(start)?.unwrap_or(0), end, 1)
            }
            None => Self::index(number(range)?),
        };
        Ok(Self { step: step.unwrap_or(1), ..slice })
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Self::full()
    }
}

impl<I: AsIndex> From<Range<I>> for Slice {
    fn from(range: Range<I>) -> Self {
        Self::new(position(range.start), Some(position(range.end)), 1)
    }
}

impl<I: AsIndex> From<RangeFrom<I>> for Slice {
    fn from(range: RangeFrom<I>) -> Self {
        Self::new(position(range.start), None, 1)
    }
}

impl<I: AsIndex> From<RangeTo<I>> for Slice {
    fn from(range: RangeTo<I>) -> Self {
        Self::new(0, Some(position(range.end)), 1)
    }
}

/// A position of a slice. One beyond the machine's word lies outside of every axis, as the nearest one does: slicing refuses it with the op and the shape.
fn position(index: impl AsIndex) -> isize {
    index.fitted().unwrap_or_else(|nearest| nearest)
}

/// The position behind an inclusive end; -1 is the last position, and behind it the axis ends.
fn behind(last: isize) -> Option<isize> {
    if last == -1 { None } else { Some(last.saturating_add(1)) }
}

impl<I: AsIndex + Copy> From<RangeInclusive<I>> for Slice {
    fn from(range: RangeInclusive<I>) -> Self {
        Self::new(position(*range.start()), behind(position(*range.end())), 1)
    }
}

impl<I: AsIndex> From<RangeToInclusive<I>> for Slice {
    fn from(range: RangeToInclusive<I>) -> Self {
        Self::new(0, behind(position(range.end)), 1)
    }
}

/// Single positions as slices.
macro_rules! from_positions {
    ($($t:ty),*) => {$(
        impl From<$t> for Slice {
            fn from(position: $t) -> Self {
                Self::index(self::position(position))
            }
        }
    )*};
}
from_positions!(i32, i64, isize, usize);

/// The positions of a [`Slice`], in the order they are taken; endless when the slice has no end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct SliceIter {
    slice: Slice,
    next: isize,
}

impl Iterator for SliceIter {
    type Item = isize;

    fn next(&mut self) -> Option<isize> {
        let Slice { start, end, step } = self.slice;
        let inside = if step > 0 { end.is_none_or(|end| self.next < end) } else { self.next >= start };
        inside.then(|| {
            let position = self.next;
            self.next += step;
            position
        })
    }
}

impl IntoIterator for Slice {
    type Item = isize;
    type IntoIter = SliceIter;

    /// # Panics
    /// When the step is negative and there is no end to begin at.
    #[track_caller]
    fn into_iter(self) -> SliceIter {
        assert!(self.step != 0, "slice: the step of {self} is 0");
        let next = if self.step > 0 {
            self.start
        } else {
            match self.end {
                Some(end) => end - 1,
                None => panic!("slice: {self} has no end to begin at"),
            }
        };
        SliceIter { slice: self, next }
    }
}

/// What `slice` accepts: one slice-like value for the first axis, or an array or slice of them for the first axes. Axes that are not
/// named are taken whole.
pub trait SliceArg {
    /// One slice for each axis of the shape.
    ///
    /// # Panics
    /// When there are more slices than axes.
    fn into_slices(self, shape: &Shape) -> Vec<Slice>;
}

#[track_caller]
fn fill(slices: impl ExactSizeIterator<Item = Slice>, shape: &Shape) -> Vec<Slice> {
    let given = slices.len();
    assert!(given <= shape.rank(), "slice: {given} slices given for shape {shape} of rank {}", shape.rank());
    let mut all = Vec::with_capacity(shape.rank());
    all.extend(slices);
    all.resize(shape.rank(), Slice::full());
    all
}

impl<T: Into<Slice>> SliceArg for T {
    #[track_caller]
    fn into_slices(self, shape: &Shape) -> Vec<Slice> {
        fill([self.into()].into_iter(), shape)
    }
}

impl<T: Into<Slice>, const R: usize> SliceArg for [T; R] {
    #[track_caller]
    fn into_slices(self, shape: &Shape) -> Vec<Slice> {
        fill(self.map(Into::into).into_iter(), shape)
    }
}

impl<S: Into<Slice> + Clone> SliceArg for &[S] {
    #[track_caller]
    fn into_slices(self, shape: &Shape) -> Vec<Slice> {
        fill(self.iter().map(|slice| slice.clone().into()), shape)
    }
}

impl SliceArg for &Vec<Slice> {
    #[track_caller]
    fn into_slices(self, shape: &Shape) -> Vec<Slice> {
        self.as_slice().into_slices(shape)
    }
}

/// Slicing of shapes.
pub trait SliceOps: Sized {
    /// The whole range of every axis.
    fn into_ranges(self) -> Vec<Range<usize>>;

    /// One slice for each axis.
    ///
    /// # Panics
    /// When there are more slices than axes.
    fn into_slices<S: SliceArg>(self, slices: S) -> Vec<Slice>;

    /// The shape of a tensor of this shape after slicing.
    ///
    /// # Errors
    /// When there are more slices than axes.
    fn slice(self, slices: &[Slice]) -> Result<Self, MetadataError>;
}

impl SliceOps for Shape {
    fn into_ranges(self) -> Vec<Range<usize>> {
        Shape::into_ranges(self)
    }

    #[track_caller]
    fn into_slices<S: SliceArg>(self, slices: S) -> Vec<Slice> {
        slices.into_slices(&self)
    }

    fn slice(mut self, slices: &[Slice]) -> Result<Self, MetadataError> {
        if slices.len() > self.rank() {
            return Err(MetadataError::RankMismatch { left: self.rank(), right: slices.len() });
        }
        for (axis, (size, slice)) in self.iter_mut().zip(slices).enumerate() {
            if slice.step == 0 {
                return Err(MetadataError::Invalid { reason: format!("the step of {slice} on axis {axis} is 0") });
            }
            *size = slice.output_size(*size);
        }
        Ok(self)
    }
}

/// Builds slices: `s![1..3]` is a [`Slice`], `s![1..3, 2, ..; -1]` an array with one [`Slice`] for each axis. An entry is a range or a
/// position, with an optional step after a semicolon; negative positions count from the end, a negative step takes backwards.
///
/// ```
/// use kiln_tensor::{Slice, s};
/// assert_eq!(s![.., -1, 0..4; 2], [Slice::full(), Slice::index(-1), Slice::new(0, Some(4), 2)]);
/// ```
#[macro_export]
macro_rules! s {
    (@collect [$($done:expr),*] $range:expr; $step:expr, $($rest:tt)+) => {
        $crate::s!(@collect [$($done,)* $crate::Slice::from_range_stepped($range, $step)] $($rest)+)
    };
    (@collect [$($done:expr),*] $range:expr, $($rest:tt)+) => {
        $crate::s!(@collect [$($done,)* $crate::Slice::from($range)] $($rest)+)
    };
    (@collect [$($done:expr),*] $range:expr; $step:expr $(,)?) => {
        [$($done,)* $crate::Slice::from_range_stepped($range, $step)]
    };
    (@collect [$($done:expr),*] $range:expr $(,)?) => {
        [$($done,)* $crate::Slice::from($range)]
    };
    ($range:expr; $step:expr) => {
        $crate::Slice::from_range_stepped($range, $step)
    };
    ($range:expr) => {
        $crate::Slice::from($range)
    };
    ($($rest:tt)+) => {
        $crate::s!(@collect [] $($rest)+)
    };
    () => {
        compile_error!("s![] needs at least one range or position")
    };
}
