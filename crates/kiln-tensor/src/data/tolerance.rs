//! `Tolerance`: when two floats count as equal.

use core::marker::PhantomData;

use num_traits::{Float, ToPrimitive};

/// Two floats count as equal when `|x - y| < max(relative * |x + y|, absolute)`, or when they are the same (infinities too).
///
/// ```
/// use kiln_tensor::Tolerance;
/// let tolerance = Tolerance::<f32>::relative(0.01);
/// assert!(tolerance.approx_eq(100.0, 101.0));
/// assert!(!tolerance.approx_eq(100.0, 103.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tolerance<F> {
    relative: f64,
    absolute: f64,
    float: PhantomData<F>,
}

impl<F: Float> Default for Tolerance<F> {
    fn default() -> Self {
        Self::balanced()
    }
}

impl<F: Float> Tolerance<F> {
    /// No relative tolerance, and an absolute one of 64 times the smallest positive normal number.
    pub fn strict() -> Self {
        Self::new(0.0, 64.0 * number(F::min_positive_value()))
    }

    /// 0.5 % relative, 1e-5 absolute. The default.
    pub fn balanced() -> Self {
        Self::new(0.005, 1e-5)
    }

    /// 1 % relative, 0.01 absolute.
    pub fn permissive() -> Self {
        Self::new(0.01, 0.01)
    }

    /// The given relative and absolute tolerances.
    ///
    /// # Panics
    /// When the relative tolerance is not in 0..=1 or the absolute one is negative.
    #[track_caller]
    pub fn rel_abs<FF: ToPrimitive>(relative: FF, absolute: FF) -> Self {
        Self::new(check_relative(relative), check_absolute(absolute))
    }

    /// The given relative tolerance, and that of [`strict`](Self::strict) as the absolute one.
    ///
    /// # Panics
    /// When it is not in 0..=1.
    #[track_caller]
    pub fn relative<FF: ToPrimitive>(tolerance: FF) -> Self {
        Self::strict().set_relative(tolerance)
    }

    /// The given absolute tolerance, and no relative one.
    ///
    /// # Panics
    /// When it is negative.
    #[track_caller]
    pub fn absolute<FF: ToPrimitive>(tolerance: FF) -> Self {
        Self::new(0.0, check_absolute(tolerance))
    }

    /// Changes the relative tolerance.
    ///
    /// # Panics
    /// When it is not in 0..=1.
    #[must_use]
    #[track_caller]
    pub fn set_relative<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        Self::new(check_relative(tolerance), self.absolute)
    }

    /// Changes the relative tolerance for 16-bit floats only.
    ///
    /// # Panics
    /// When it is not in 0..=1.
    #[must_use]
    #[track_caller]
    pub fn set_half_precision_relative<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        self.when(2, |t| t.set_relative(tolerance))
    }

    /// Changes the relative tolerance for 32-bit floats only.
    ///
    /// # Panics
    /// When it is not in 0..=1.
    #[must_use]
    #[track_caller]
    pub fn set_single_precision_relative<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        self.when(4, |t| t.set_relative(tolerance))
    }

    /// Changes the relative tolerance for 64-bit floats only.
    ///
    /// # Panics
    /// When it is not in 0..=1.
    #[must_use]
    #[track_caller]
    pub fn set_double_precision_relative<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        self.when(8, |t| t.set_relative(tolerance))
    }

    /// Changes the absolute tolerance.
    ///
    /// # Panics
    /// When it is negative.
    #[must_use]
    #[track_caller]
    pub fn set_absolute<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        Self::new(self.relative, check_absolute(tolerance))
    }

    /// Changes the absolute tolerance for 16-bit floats only.
    ///
    /// # Panics
    /// When it is negative.
    #[must_use]
    #[track_caller]
    pub fn set_half_precision_absolute<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        self.when(2, |t| t.set_absolute(tolerance))
    }

    /// Changes the absolute tolerance for 32-bit floats only.
    ///
    /// # Panics
    /// When it is negative.
    #[must_use]
    #[track_caller]
    pub fn set_single_precision_absolute<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        self.when(4, |t| t.set_absolute(tolerance))
    }

    /// Changes the absolute tolerance for 64-bit floats only.
    ///
    /// # Panics
    /// When it is negative.
    #[must_use]
    #[track_caller]
    pub fn set_double_precision_absolute<FF: ToPrimitive>(self, tolerance: FF) -> Self {
        self.when(8, |t| t.set_absolute(tolerance))
    }

    /// Whether the two count as equal. NaN equals nothing.
    pub fn approx_eq(&self, x: F, y: F) -> bool {
        if x == y {
            return true;
        }
        // In f64, the sum of two large f16 does not overflow into "equal to anything".
        let (x, y) = (number(x), number(y));
        let difference = (x - y).abs();
        let relative = self.relative * (x / 2.0 + y / 2.0).abs() * 2.0;
        difference.is_finite() && difference < relative.max(self.absolute)
    }

    fn new(relative: f64, absolute: f64) -> Self {
        Self { relative, absolute, float: PhantomData }
    }

    fn when(self, size: usize, change: impl FnOnce(Self) -> Self) -> Self {
        if size_of::<F>() == size { change(self) } else { self }
    }
}

fn number<N: ToPrimitive>(x: N) -> f64 {
    x.to_f64().unwrap_or(f64::NAN)
}

#[track_caller]
fn check_relative<N: ToPrimitive>(tolerance: N) -> f64 {
    let tolerance = number(tolerance);
    assert!((0.0..=1.0).contains(&tolerance), "relative tolerance {tolerance} is outside of 0..=1");
    tolerance
}

#[track_caller]
fn check_absolute<N: ToPrimitive>(tolerance: N) -> f64 {
    let tolerance = number(tolerance);
    assert!(tolerance >= 0.0, "absolute tolerance {tolerance} is negative");
    tolerance
}
