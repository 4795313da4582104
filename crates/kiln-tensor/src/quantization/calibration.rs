//! Calibration: from a tensor's values to the range, and so to the scales, by which it is quantized.

use serde::{Deserialize, Serialize};

use super::{QuantScheme, QuantizationParameters, global_scale_dtype};
use crate::Tensor;

/// How the range that the quantized values have to cover is found.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum Calibration {
    /// From the smallest to the largest value.
    #[default]
    MinMax,
    /// The mean of the absolute values to both sides of zero: values beyond it are clipped. What ternary weights use (Ma et al. 2024,
    /// [arXiv:2402.17764](https://arxiv.org/abs/2402.17764)).
    AbsMean,
}

/// The ends of the ranges to be covered: one a block in row-major order, or one of the tensor.
#[derive(Clone, Debug)]
pub struct CalibrationRange {
    /// The lower ends.
    pub min: Tensor<1>,
    /// The upper ends.
    pub max: Tensor<1>,
}

/// The ranges of a tensor's values that a quantization by the scheme has to cover.
///
/// ```
/// use kiln_tensor::quantization::{Calibration, QuantScheme, ScaleDtype, compute_range};
/// use kiln_tensor::{Device, Tensor};
/// let x = Tensor::<1>::from_data([-1.0, 0.5, 2.0, 3.0], &Device::default());
/// let range = compute_range(&QuantScheme::default().per_block([2], ScaleDtype::F32), &x, &Calibration::MinMax);
/// assert_eq!(range.min.try_to_vec_as::<f32>().unwrap(), [-1.0, 2.0]);
/// assert_eq!(range.max.try_to_vec_as::<f32>().unwrap(), [0.5, 3.0]);
/// ```
///
/// # Panics
/// When the blocks of the scheme do not divide the tensor, or it has no elements.
#[track_caller]
pub fn compute_range<const D: usize>(scheme: &QuantScheme, tensor: &Tensor<D>, calibration: &Calibration) -> CalibrationRange {
    let [min, max] = tensor.as_raw().quantization_range(scheme, *calibration);
    CalibrationRange { min: Tensor::from_raw(min), max: Tensor::from_raw(max) }
}

/// The scales for ranges: for each, the smallest with which the scheme's values reach as far from zero as the range does.
///
/// With scales of two levels the second is the largest scale divided by the largest number of the blocks' type, and the others are relative to it.
///
/// ```
/// use kiln_tensor::quantization::{Calibration, QuantScheme, QuantValue, compute_q_params, compute_range};
/// use kiln_tensor::{Device, Tensor};
/// let x = Tensor::<1>::from_data([-1.0, 0.5, 25.4, 3.0], &Device::default());
/// let scheme = QuantScheme::default().with_value(QuantValue::Q8S);
/// let params = compute_q_params(&scheme, compute_range(&scheme, &x, &Calibration::MinMax));
/// assert_eq!(params.scales.into_scalar::<f32>(), 0.2);
/// ```
#[track_caller]
pub fn compute_q_params(scheme: &QuantScheme, range: CalibrationRange) -> QuantizationParameters {
    let (low, high) = scheme.value.range();
    let reach = range.min.abs().max_pair(range.max.abs());
    let scales = reach * 2.0 / (high - low);
    if global_scale_dtype(scheme).is_none() {
        return QuantizationParameters { scales, global: None };
    }
    let global = (scales.clone().max() / scheme.scale_dtype().max_representable()).clamp_min(f32::MIN_POSITIVE);
    QuantizationParameters { scales: scales / global.clone(), global: Some(global) }
}
