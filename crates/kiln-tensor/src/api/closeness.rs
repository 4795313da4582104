//! `check_closeness`: how far two tensors are apart, printed.

use alloc::string::String;
use core::fmt::Write;

use super::Tensor;
use crate::data::TensorReadError;

/// The tolerances that are tried, from tight to loose.
const TOLERANCES: [f64; 8] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];

/// Prints which part of the elements are close at tolerances from 1e-8 to 0.1 (absolute, and relative to the expected value), and the largest
/// difference: a look at numerical drift.
///
/// ```
/// use kiln_tensor::{Device, Tensor, check_closeness};
/// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
/// check_closeness(&(x.clone() + 1e-3), &x);
/// ```
///
/// # Panics
/// When the shapes differ or the device fails.
#[track_caller]
pub fn check_closeness<const D: usize>(output: &Tensor<D>, expected: &Tensor<D>) {
    assert!(output.dims() == expected.dims(), "check_closeness: shapes differ: {:?}, {:?}", output.dims(), expected.dims());
    match report(output, expected) {
        Ok(text) => std::print!("{text}"),
        Err(error) => panic!("check_closeness: cannot read a tensor: {error}: shape {:?}", output.dims()),
    }
}

fn report<const D: usize>(output: &Tensor<D>, expected: &Tensor<D>) -> Result<String, TensorReadError> {
    let (output, expected) = (output.try_to_vec_as::<f64>()?, expected.try_to_vec_as::<f64>()?);
    let difference = |a: f64, b: f64| if a == b || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() };
    let pairs = || output.iter().copied().zip(expected.iter().copied());
    let mut text = String::new();
    for tolerance in TOLERANCES {
        // The difference of anything to NaN is NaN, which is not close.
        let close = pairs().filter(|(a, b)| difference(*a, *b) <= tolerance * (1.0 + b.abs())).count();
        let share = if output.is_empty() { 100.0 } else { 100.0 * close as f64 / output.len() as f64 };
        let _ = writeln!(text, "tolerance {tolerance:.0e}: {share:6.2} % of {} elements are close", output.len());
    }
    let largest = pairs().map(|(a, b)| difference(a, b)).fold(0.0, |a, b| if b > a || b.is_nan() { b } else { a });
    let _ = writeln!(text, "largest difference: {largest:e}");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn the_report_counts_what_is_close() {
        let tensor = |values: [f64; 4]| Tensor::<1>::from_data(values, (&Device::default(), crate::DType::F64));
        let text = report(&tensor([1.0, 2.0, f64::INFINITY, 5.0]), &tensor([1.0, 2.001, f64::INFINITY, 4.0])).unwrap();
        let lines: alloc::vec::Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "tolerance 1e-8:  50.00 % of 4 elements are close");
        assert_eq!(lines[5], "tolerance 1e-3:  75.00 % of 4 elements are close");
        assert_eq!(lines[8], "largest difference: 1e0");
    }
}
