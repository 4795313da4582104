//! Windows: weights that fade a stretch of signal in and out.

use alloc::vec::Vec;
use core::f64::consts::TAU;

use crate::api::Tensor;
use crate::api::creation::TensorCreationOptions;
use crate::data::TensorData;

/// A sum of cosines over one period of `size` elements, or of `size - 1` for a symmetric window.
#[track_caller]
fn cosines(size: usize, periodic: bool, weights: &[f64], options: TensorCreationOptions) -> Tensor<1> {
    let period = if periodic { size } else { size.saturating_sub(1) } as f64;
    let at = |i: usize| -> f64 {
        if size == 1 {
            return 1.0;
        }
        weights.iter().enumerate().map(|(k, weight)| weight * libm::cos(TAU * k as f64 * i as f64 / period)).sum()
    };
    let values: Vec<f64> = (0..size).map(at).collect();
    Tensor::from_data(TensorData::new(values, [size]), options)
}

/// The Blackman window, `0.42 - 0.5 cos(x) + 0.08 cos(2x)`: shape `[size]`. Periodic for spectra, symmetric for filters.
///
/// ```
/// use kiln_tensor::{Device, signal::blackman_window};
/// let w = blackman_window(5, false, &Device::default()).try_into_vec_as::<f32>().unwrap();
/// assert!((w[1] - 0.34).abs() < 1e-6 && w[2] == 1.0);
/// ```
#[track_caller]
pub fn blackman_window(size: usize, periodic: bool, options: impl Into<TensorCreationOptions>) -> Tensor<1> {
    cosines(size, periodic, &[0.42, -0.5, 0.08], options.into())
}

/// The Hamming window, `0.54 - 0.46 cos(x)`: shape `[size]`. Periodic for spectra, symmetric for filters.
///
/// ```
/// use kiln_tensor::{Device, signal::hamming_window};
/// let w = hamming_window(3, false, &Device::default()).try_into_vec_as::<f32>().unwrap();
/// assert!((w[0] - 0.08).abs() < 1e-6 && w[1] == 1.0);
/// ```
#[track_caller]
pub fn hamming_window(size: usize, periodic: bool, options: impl Into<TensorCreationOptions>) -> Tensor<1> {
    cosines(size, periodic, &[0.54, -0.46], options.into())
}

/// The Hann window, `0.5 - 0.5 cos(x)`: shape `[size]`. Periodic for spectra, symmetric for filters.
///
/// ```
/// use kiln_tensor::{Device, signal::hann_window};
/// let w = hann_window(4, true, &Device::default()).try_into_vec_as::<f32>().unwrap();
/// assert_eq!(w, [0.0, 0.5, 1.0, 0.5]);
/// ```
#[track_caller]
pub fn hann_window(size: usize, periodic: bool, options: impl Into<TensorCreationOptions>) -> Tensor<1> {
    cosines(size, periodic, &[0.5, -0.5], options.into())
}
