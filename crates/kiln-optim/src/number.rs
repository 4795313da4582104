//! Settings that are stored in single precision, as the numbers their users wrote.

use alloc::string::ToString;

/// The `f64` with the shortest decimal form of `value`.
///
/// `1.0 - 0.999f32 as f64` is off by 5e-5 of itself, which would make every Adam step differ from the one that other
/// libraries take with `0.999`.
pub(crate) fn exact(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// `base` to a whole power.
pub(crate) fn power(base: f64, exponent: usize) -> f64 {
    libm::pow(base, exponent as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_the_numbers_that_were_written() {
        assert_eq!(exact(0.999), 0.999);
        assert_eq!(exact(1e-5), 1e-5);
        assert_eq!(exact(-3.4445), -3.4445);
        assert!(exact(f32::NAN).is_nan());
    }
}
