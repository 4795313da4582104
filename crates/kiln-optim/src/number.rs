//! Settings that are stored in single precision, as the numbers their users wrote.

use alloc::string::ToString;

/// The `f64` with the shortest decimal form of `value`.
///
/// `1.0 - 0.999f32 as f64` is off by 5e-5 of itself, which would make every Adam step differ from the one that other
/// libraries take with `0.999`.
pub(crate) fn exact(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// `base` to a whole power, by squaring: every parameter of every step asks for some.
pub(crate) fn power(base: f64, mut exponent: usize) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result *= square;
        }
        square *= square;
        exponent /= 2;
    }
    result
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

    #[test]
    fn powers_are_those_of_the_exponential() {
        for base in [0.0, 0.9, 0.95, 0.999, 1.0, 1.5] {
            for exponent in [0, 1, 2, 3, 7, 64, 1000, 12_345] {
                let (found, expected) = (power(base, exponent), libm::pow(base, exponent as f64));
                assert!(
                    found == expected || (found - expected).abs() <= 1e-15 * exponent as f64 * expected,
                    "{base}^{exponent}: {found}, {expected}"
                );
            }
        }
    }
}
