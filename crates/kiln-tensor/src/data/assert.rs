//! Assertions on tensor data, for tests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Debug, Write};
use core::ops::{Range, RangeInclusive};

use half::{bf16, f16};
use num_traits::Float;

use super::{TensorData, Tolerance};
use crate::dtype::DType;
use crate::element::{Element, ElementComparison, ElementEq, ElementOrdered, ToElement, flex32};

/// The number of differing values that a message shows.
const SHOWN: usize = 5;

impl TensorData {
    /// Asserts that shapes and values are equal; NaN equals NaN. With `strict`, types must be equal too; without, the other's values are
    /// converted to this type first.
    ///
    /// # Panics
    /// When they differ, with the first differences.
    #[track_caller]
    pub fn assert_eq(&self, other: &Self, strict: bool) {
        assert!(!strict || self.dtype == other.dtype, "data types differ: left {:?}, right {:?}", self.dtype, other.dtype);
        match self.dtype {
            DType::F64 => self.assert_equal::<f64>(other),
            DType::F32 => self.assert_equal::<f32>(other),
            DType::Flex32 => self.assert_equal::<flex32>(other),
            DType::F16 => self.assert_equal::<f16>(other),
            DType::BF16 => self.assert_equal::<bf16>(other),
            DType::I64 => self.assert_equal::<i64>(other),
            DType::I32 => self.assert_equal::<i32>(other),
            DType::I16 => self.assert_equal::<i16>(other),
            DType::I8 => self.assert_equal::<i8>(other),
            DType::U64 => self.assert_equal::<u64>(other),
            DType::U32 => self.assert_equal::<u32>(other),
            DType::U16 => self.assert_equal::<u16>(other),
            DType::U8 => self.assert_equal::<u8>(other),
            DType::Bool(_) => self.assert_equal::<bool>(other),
            DType::QFloat(_) => {
                self.assert_shape(other);
                assert!(self.dtype == other.dtype && self.bytes == other.bytes, "quantized data differ");
            }
        }
    }

    #[track_caller]
    fn assert_equal<E: Element>(&self, other: &Self) {
        self.assert_shape(other);
        let differences = self.differences::<E>(other, |a, b| ElementEq::eq(a, b));
        assert!(
            differences.is_empty(),
            "values differ: {differences}",
            differences = report(&differences, self.num_elements(), |a, b| {
                let mut text = String::new();
                let _ = write!(text, "{a} != {b}");
                text
            })
        );
    }

    /// Asserts that shapes are equal and values, taken as `F`, within the tolerance; NaN equals NaN.
    ///
    /// # Panics
    /// When they are not, with the first differences.
    #[track_caller]
    pub fn assert_approx_eq<F: Float + Element>(&self, other: &Self, tolerance: Tolerance<F>) {
        self.assert_shape(other);
        let close = |a: &F, b: &F| tolerance.approx_eq(*a, *b) || (a.is_nan() && b.is_nan());
        let differences = self.differences::<F>(other, close);
        assert!(
            differences.is_empty(),
            "values differ by more than {tolerance:?}: {differences}",
            differences = report(&differences, self.num_elements(), |a, b| {
                let (a, b) = (ToElement::to_f64(a), ToElement::to_f64(b));
                let difference = (a - b).abs();
                let relative = difference / (a + b).abs();
                format!("{a} != {b}, difference {difference:e}, relative to |a + b| {relative:e}")
            })
        );
    }

    /// Asserts that every value lies in `start..end`.
    ///
    /// # Panics
    /// When one does not.
    #[track_caller]
    pub fn assert_within_range<E: ElementOrdered>(&self, range: Range<E>) {
        let inside = |x: &E| ElementComparison::cmp(x, &range.start).is_ge() && ElementComparison::cmp(x, &range.end).is_lt();
        self.assert_all(inside, &format!("{}..{}", range.start, range.end));
    }

    /// Asserts that every value lies in `start..=end`.
    ///
    /// # Panics
    /// When one does not.
    #[track_caller]
    pub fn assert_within_range_inclusive<E: ElementOrdered>(&self, range: RangeInclusive<E>) {
        let (start, end) = range.into_inner();
        let inside = |x: &E| ElementComparison::cmp(x, &start).is_ge() && ElementComparison::cmp(x, &end).is_le();
        self.assert_all(inside, &format!("{start}..={end}"));
    }

    #[track_caller]
    fn assert_all<E: Element>(&self, inside: impl Fn(&E) -> bool, range: &str) {
        for (position, x) in self.iter::<E>().enumerate() {
            assert!(inside(&x), "value {x} at position {position} is outside of {range}");
        }
    }

    #[track_caller]
    fn assert_shape(&self, other: &Self) {
        assert!(self.shape == other.shape, "shapes differ: left {}, right {}", self.shape, other.shape);
    }

    fn differences<E: Element>(&self, other: &Self, equal: impl Fn(&E, &E) -> bool) -> Vec<(usize, E, E)> {
        (self.iter::<E>().zip(other.iter::<E>()).enumerate()).filter(|(_, (a, b))| !equal(a, b)).map(|(position, (a, b))| (position, a, b)).collect()
    }
}

fn report<E: Debug>(differences: &[(usize, E, E)], total: usize, describe: impl Fn(&E, &E) -> String) -> String {
    let mut text = format!("{} of {total}", differences.len());
    for (position, a, b) in differences.iter().take(SHOWN) {
        let _ = write!(text, "\n  position {position}: {}", describe(a, b));
    }
    if differences.len() > SHOWN {
        text.push_str("\n  ...");
    }
    text
}
