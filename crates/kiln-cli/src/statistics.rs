//! Statistics of a tensor's elements.

use kiln_tensor::TensorData;

/// Statistics of a tensor's finite elements; `None` where there are none.
pub struct Statistics {
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
    /// The standard deviation of all elements, not an estimate from a sample.
    pub std: Option<f64>,
    /// The number of elements that are infinite or not a number.
    pub not_finite: usize,
}

impl Statistics {
    /// The statistics of `data`, in one pass (B. P. Welford, 1962).
    pub fn of(data: &TensorData) -> Self {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut count, mut mean, mut squares) = (0usize, 0.0, 0.0);
        let mut not_finite = 0;
        for value in data.iter::<f64>() {
            if !value.is_finite() {
                not_finite += 1;
                continue;
            }
            count += 1;
            (min, max) = (f64::min(min, value), f64::max(max, value));
            let distance = value - mean;
            mean += distance / count as f64;
            squares += distance * (value - mean);
        }
        let of_any = |value: f64| (count > 0).then_some(value);
        Self { min: of_any(min), max: of_any(max), mean: of_any(mean), std: of_any((squares / count as f64).sqrt()), not_finite }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_pass_over_what_is_not_finite() {
        let statistics = Statistics::of(&TensorData::from([1.0f32, f32::NAN, 3.0, f32::INFINITY, 5.0]));
        assert_eq!((statistics.min, statistics.max, statistics.mean), (Some(1.0), Some(5.0), Some(3.0)));
        assert!((statistics.std.expect("three elements") - (8.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(statistics.not_finite, 2);
        assert_eq!(Statistics::of(&TensorData::from([true, false, true, true])).mean, Some(0.75));
    }

    #[test]
    fn an_empty_tensor_has_none() {
        let statistics = Statistics::of(&TensorData::zeros::<f32, _>([0, 3]));
        assert_eq!((statistics.min, statistics.mean, statistics.std), (None, None, None));
    }
}
