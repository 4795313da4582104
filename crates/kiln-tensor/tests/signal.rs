//! Fourier transforms against the sum that defines them, their gradients, and the short-time transform there and back.

use std::f64::consts::TAU;

use crate::gradients::check_twice_at;
use kiln_tensor::signal::*;
use kiln_tensor::{DType, Device, Tensor, TensorData, Tolerance};

use crate::check_panics;

fn values(count: usize, salt: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * i * 7 + i * 11 + salt * 5) % 53) as f64 / 13.0 - 2.0).collect()
}

fn tensor<const D: usize>(shape: [usize; D], salt: usize) -> Tensor<D> {
    let data = TensorData::new(values(shape.iter().product(), salt), shape);
    Tensor::from_data(data, (&Device::default(), DType::F64))
}

/// The transform by its definition.
fn by_definition(re: &[f64], im: &[f64]) -> Vec<(f64, f64)> {
    let n = re.len();
    let frequency = |k: usize| {
        let term = |j: usize| {
            let (sin, cos) = (-TAU * ((j * k) % n) as f64 / n as f64).sin_cos();
            (re[j] * cos - im[j] * sin, re[j] * sin + im[j] * cos)
        };
        (0..n).map(term).fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1))
    };
    (0..n).map(frequency).collect()
}

#[track_caller]
fn close(got: Vec<f64>, expected: impl IntoIterator<Item = f64>) {
    for (i, (got, expected)) in got.into_iter().zip(expected).enumerate() {
        assert!((got - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{i}: {got} {expected}");
    }
}

#[test]
fn every_length_matches_the_definition() {
    for n in (1..20).chain([31, 32, 60, 64, 97]) {
        let (re, im) = (tensor([n], n), tensor([n], n + 1));
        let expected = by_definition(&values(n, n), &values(n, n + 1));
        let (yr, yi) = cfft(re.clone(), im, 0, None);
        close(yr.try_into_vec_as().unwrap(), expected.iter().map(|y| y.0));
        close(yi.try_into_vec_as().unwrap(), expected.iter().map(|y| y.1));
        let expected = by_definition(&values(n, n), &vec![0.0; n]);
        let (yr, yi) = rfft(re.clone(), 0, None);
        assert_eq!(yr.dims(), [n / 2 + 1]);
        close(yr.clone().try_into_vec_as().unwrap(), expected.iter().map(|y| y.0));
        close(yi.clone().try_into_vec_as().unwrap(), expected.iter().map(|y| y.1));
        close(irfft(yr, yi, 0, Some(n)).try_into_vec_as().unwrap(), values(n, n));
    }
}

#[test]
fn any_axis_and_length() {
    let x = tensor([3, 5, 2], 1);
    let (re, im) = rfft(x.clone(), 1, Some(8));
    assert_eq!(re.dims(), [3, 5, 2]);
    let padded = x.clone().pad([(0, 3), (0, 0)], 0).swap_dims(1, 2);
    let (expected_re, expected_im) = rfft(padded, 2, None);
    close(re.try_into_vec_as().unwrap(), expected_re.swap_dims(1, 2).try_into_vec_as::<f64>().unwrap());
    close(im.try_into_vec_as().unwrap(), expected_im.swap_dims(1, 2).try_into_vec_as::<f64>().unwrap());
    let (short, _) = rfft(x.clone(), -2, Some(4));
    let (expected, _) = rfft(x.clone().slice([0..3, 0..4]), 1, None);
    close(short.try_into_vec_as().unwrap(), expected.try_into_vec_as::<f64>().unwrap());
    check_panics(|| rfft(x, 1, Some(0)), "fft: the length must not be 0");
}

/// Compares the gradient of a weighted sum with differences.
#[track_caller]
fn check_gradient<const D: usize>(x: Tensor<D>, f: impl Fn(Tensor<D>) -> Tensor<1>) {
    let start = x.clone().into_data().try_into_vec::<f64>().unwrap();
    let shape = x.dims();
    let tracked = x.autodiff().require_grad();
    let grad = tracked.grad(&f(tracked.clone()).backward()).unwrap().try_into_vec_as::<f64>().unwrap();
    for (i, grad) in grad.iter().enumerate() {
        let at = |shift: f64| {
            let mut values = start.clone();
            values[i] += shift;
            f(Tensor::from_data(TensorData::new(values, shape), (&Device::default(), DType::F64))).into_scalar::<f64>()
        };
        let difference = (at(1e-4) - at(-1e-4)) / 2e-4;
        assert!((grad - difference).abs() < 1e-6 * (1.0 + difference.abs()), "{i}: {grad} {difference}");
    }
}

fn weighted<const D: usize>(x: Tensor<D>, salt: usize) -> Tensor<1> {
    (x.clone() * tensor(x.dims(), salt)).sum()
}

#[test]
fn gradients() {
    for n in [5, 8] {
        check_gradient(tensor([2, n], 3), |x| {
            let (re, im) = rfft(x, 1, None);
            weighted(re, 4) + weighted(im, 5)
        });
        check_gradient(tensor([n], 6), |x| weighted(irfft(x.clone(), x * 2, 0, Some(n)), 7));
        check_gradient(tensor([n], 8), |x| {
            let (re, im) = cfft(x.clone(), x * 3, 0, None);
            weighted(re, 9) + weighted(im, 10)
        });
    }
    let window = || hann_window(6, true, (&Device::default(), DType::F64));
    let options = StftOptions { hop_length: 2, ..StftOptions::new(6) };
    check_gradient(tensor([1, 12], 11), |x| weighted(stft(x, Some(window()), options), 12));
}

#[test]
fn stretches_are_transformed_one_by_one() {
    let x = tensor([2, 20], 2);
    let window = hamming_window(5, false, (&Device::default(), DType::F64));
    let options = StftOptions { n_fft: 8, hop_length: 3, win_length: Some(5), center: false, onesided: false };
    let y = stft(x.clone(), Some(window.clone()), options);
    assert_eq!(y.dims(), [2, 8, 5, 2]);
    let y = y.try_into_vec_as::<f64>().unwrap();
    let (x, window) = (values(40, 2), window.try_into_vec_as::<f64>().unwrap());
    for b in 0..2 {
        for t in 0..5 {
            let weight = |j: usize| if (1..6).contains(&j) { window[j - 1] } else { 0.0 };
            let stretch: Vec<f64> = (0..8).map(|j| x[b * 20 + t * 3 + j] * weight(j)).collect();
            for (k, (re, im)) in by_definition(&stretch, &[0.0; 8]).into_iter().enumerate() {
                let at = ((b * 8 + k) * 5 + t) * 2;
                assert!((y[at] - re).abs() < 1e-9 && (y[at + 1] - im).abs() < 1e-9, "{b} {t} {k}");
            }
        }
    }
}

#[test]
fn the_short_time_transform_comes_back() {
    for (onesided, center, n_fft) in [(true, true, 8), (false, true, 8), (true, true, 7)] {
        let options = StftOptions { onesided, center, hop_length: 2, ..StftOptions::new(n_fft) };
        let x = tensor([2, 30], 3);
        let window = || Some(hann_window(n_fft, true, (&Device::default(), DType::F64)));
        let y = istft(stft(x.clone(), window(), options), window(), Some(30), options);
        y.into_data().assert_approx_eq::<f64>(&x.into_data(), Tolerance::rel_abs(1e-9, 1e-9));
    }
    let options = StftOptions::new(8);
    check_panics(|| stft(tensor([1, 20], 1), Some(tensor([5], 1)), options), "the window has shape [5], expected [8]");
    check_panics(|| istft(tensor([1, 4, 3, 2], 1), None, None, options), "expected [batch, 5, stretches, 2]");
}

#[test]
fn windows_of_one_element_and_none() {
    for window in [hann_window, hamming_window, blackman_window] {
        let of = |size| -> Vec<f64> {
            let options = kiln_tensor::TensorCreationOptions::new(Device::default());
            window(size, false, options).try_into_vec_as().unwrap()
        };
        assert_eq!(of(1), [1.0]);
        assert!(of(0).is_empty());
        let w = of(9);
        assert!((0..9).all(|i| (w[i] - w[8 - i]).abs() < 1e-7));
    }
}

#[test]
fn second_derivatives() {
    let values = values(6, 3);
    check_twice_at("rfft", &[6], &values, |x| {
        let (re, im) = rfft(Tensor::<1>::from_raw(x.clone()), 0, None);
        (re.powi_scalar(2) + im.powi_scalar(3)).into_raw()
    });
    check_twice_at("irfft", &[6], &values, |x| {
        let x = Tensor::<1>::from_raw(x.clone());
        irfft(x.clone().powi_scalar(2), x * 2, 0, Some(6)).powi_scalar(2).into_raw()
    });
}
