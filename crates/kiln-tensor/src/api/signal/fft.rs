//! Fourier transforms of any length, with gradients.

use alloc::vec;

use super::host::{Kind, transformed};
use crate::api::Tensor;
use crate::autodiff::{self, Keep};
use crate::raw::RawTensor;
use crate::shape::AsIndex;

/// The Fourier transform of a real signal along an axis, as real and imaginary part of the frequencies from 0 to half the sampling rate: the
/// axis becomes `n / 2 + 1` long. The signal is cut or filled up with zeros to `n`, which is the axis's size by default.
///
/// ```
/// use kiln_tensor::{Device, Tensor, signal::rfft};
/// let x = Tensor::<1>::from_data([1.0, 0.0, -1.0, 0.0], &Device::default());
/// let (re, im) = rfft(x, 0, None);
/// assert_eq!(re.try_into_vec_as::<f32>().unwrap(), [0.0, 2.0, 0.0]);
/// assert_eq!(im.dims(), [3]);
/// ```
///
/// # Panics
/// When the axis does not exist or `n` is 0.
#[track_caller]
pub fn rfft<const D: usize>(signal: Tensor<D>, dim: impl AsIndex, n: Option<usize>) -> (Tensor<D>, Tensor<D>) {
    let axis = signal.axis("rfft", dim);
    let (re, im) = real_forward(&signal.raw, axis, n.unwrap_or(signal.raw.dims()[axis]));
    (Tensor::from_raw(re), Tensor::from_raw(im))
}

/// The real signal of `n` elements whose [`rfft`] is given; `2 * (size - 1)` elements by default. The imaginary parts of frequency 0, and of the
/// highest for an even `n`, do not count.
///
/// ```
/// use kiln_tensor::{Device, Tensor, signal::{irfft, rfft}};
/// let x = Tensor::<1>::from_data([1.0, 2.0, 3.0, 4.0, 5.0], &Device::default());
/// let (re, im) = rfft(x.clone(), 0, None);
/// assert!(irfft(re, im, 0, Some(5)).all_close(x, Some(1e-4), Some(1e-5)));
/// ```
///
/// # Panics
/// When the axis does not exist, the shapes differ, or `n` is 0.
#[track_caller]
pub fn irfft<const D: usize>(spectrum_re: Tensor<D>, spectrum_im: Tensor<D>, dim: impl AsIndex, n: Option<usize>) -> Tensor<D> {
    let axis = spectrum_re.axis("irfft", dim);
    let size = spectrum_re.raw.dims()[axis];
    let n = n.unwrap_or(2 * size.saturating_sub(1));
    Tensor::from_raw(real_backward(&spectrum_re.raw, &spectrum_im.raw, axis, n))
}

/// The Fourier transform of a complex signal along an axis, given and returned as real and imaginary part. The signal is cut or filled up with
/// zeros to `n`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, signal::cfft};
/// let device = Device::default();
/// let (re, im) = cfft(Tensor::<1>::from_data([0, 1], &device), Tensor::zeros([2], &device), 0, None);
/// assert_eq!(re.try_into_vec_as::<f32>().unwrap(), [1.0, -1.0]);
/// assert!(im.abs().max().into_scalar::<f32>() < 1e-6);
/// ```
///
/// # Panics
/// When the axis does not exist, the shapes differ, or `n` is 0.
#[track_caller]
pub fn cfft<const D: usize>(signal_re: Tensor<D>, signal_im: Tensor<D>, dim: impl AsIndex, n: Option<usize>) -> (Tensor<D>, Tensor<D>) {
    let axis = signal_re.axis("cfft", dim);
    let n = n.unwrap_or(signal_re.raw.dims()[axis]);
    let (re, im) = complex(&resized(&signal_re.raw, axis, n), &resized(&signal_im.raw, axis, n), axis, false);
    (Tensor::from_raw(re), Tensor::from_raw(im))
}

/// Real and imaginary part of what `[.., 2, n]` holds, the transformed axis back in its place.
#[track_caller]
fn parts(y: &RawTensor, axis: usize) -> (RawTensor, RawTensor) {
    let last = y.rank() - 2;
    let part = |i: usize| y.narrow(last, i, 1).squeeze(last).swap_dims(axis, last);
    (part(0), part(1))
}

/// `[.., 2, n]` of real and imaginary part, the axis to be transformed last.
#[track_caller]
fn joined(re: &RawTensor, im: &RawTensor, axis: usize) -> RawTensor {
    let last = re.rank() - 1;
    let row = |x: &RawTensor| x.swap_dims(axis, last).unsqueeze(last);
    RawTensor::cat(&[row(re), row(im)], last)
}

#[track_caller]
pub(super) fn real_forward(x: &RawTensor, axis: usize, n: usize) -> (RawTensor, RawTensor) {
    let x = resized(x, axis, n);
    parts(&spectrum(&x.swap_dims(axis, x.rank() - 1)), axis)
}

#[track_caller]
pub(super) fn real_backward(re: &RawTensor, im: &RawTensor, axis: usize, n: usize) -> RawTensor {
    assert!(re.dims() == im.dims(), "irfft: shapes differ: {:?}, {:?}", re.dims(), im.dims());
    assert!(n > 0, "irfft: the length must not be 0: shape {:?}", re.dims());
    let half = n / 2 + 1;
    let packed = joined(&resized(re, axis, half), &resized(im, axis, half), axis);
    signal(&packed, n).swap_dims(axis, re.rank() - 1).scale_by(1.0 / n as f64)
}

/// An axis cut or filled up with zeros at its end.
#[track_caller]
fn resized(x: &RawTensor, axis: usize, n: usize) -> RawTensor {
    assert!(n > 0, "fft: the length must not be 0: shape {:?}", x.dims());
    let size = x.dims()[axis];
    if size >= n {
        return x.narrow(axis, 0, n);
    }
    let mut pads = vec![(0, 0); x.rank()];
    pads[axis].1 = n - size;
    x.pad_zeros(&pads)
}

/// The transform along an axis, without a factor; `inverse` has the other sign in the exponent.
#[track_caller]
fn complex(re: &RawTensor, im: &RawTensor, axis: usize, inverse: bool) -> (RawTensor, RawTensor) {
    assert!(re.dims() == im.dims(), "fft: shapes differ: {:?}, {:?}", re.dims(), im.dims());
    parts(&turned(&joined(re, im, axis), inverse), axis)
}

/// The complex transform of `[.., 2, n]`. Its adjoint is the transform with the other sign.
#[track_caller]
fn turned(x: &RawTensor, inverse: bool) -> RawTensor {
    let kind = if inverse { Kind::ComplexBack } else { Kind::Complex };
    let y = transformed(&x.untracked(), kind, x.dims()[x.rank() - 1]);
    autodiff::custom(&[x], y, Keep::Nothing, move |call| [Some(turned(call.dy, !inverse))].into())
}

/// The frequencies `[.., 2, n / 2 + 1]` of real signals `[.., n]`. Their adjoint is the real part of the transform with the other sign.
#[track_caller]
fn spectrum(x: &RawTensor) -> RawTensor {
    let n = x.dims()[x.rank() - 1];
    let y = transformed(&x.untracked(), Kind::Real, n);
    autodiff::custom(&[x], y, Keep::Nothing, move |call| {
        let (pair, last) = (call.dy.rank() - 2, call.dy.rank() - 1);
        let dx = turned(&resized(call.dy, last, n), true).narrow(pair, 0, 1).squeeze(pair);
        [Some(dx)].into()
    })
}

/// The real signals `[.., n]` of frequencies `[.., 2, n / 2 + 1]`, without a factor. All frequencies but the ends count twice: for the other half too.
#[track_caller]
fn signal(x: &RawTensor, n: usize) -> RawTensor {
    let y = transformed(&x.untracked(), Kind::RealBack, n);
    autodiff::custom(&[x], y, Keep::Nothing, move |call| {
        let half = n / 2 + 1;
        let counts: vec::Vec<f64> = (0..half).map(|k| if k == 0 || 2 * k == n { 1.0 } else { 2.0 }).collect();
        let device = call.dy.device().without_autodiff();
        let counts = RawTensor::from_slice(&device, &[half], kiln_ir::DType::F64, &counts).cast(call.dy.dtype());
        [Some(spectrum(call.dy).mul(&counts))].into()
    })
}
