//! Fourier transforms of any length, computed on the host in `f64`.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::{PI, TAU};

use kiln_ir::op::{HostOp, HostShapes, HostTensor};
use kiln_ir::{DType, Dims, Op};

use crate::api::Tensor;
use crate::api::host_float::{read, write};
use crate::autodiff::{self, Keep};
use crate::raw::{RawTensor, apply};
use crate::shape::AsIndex;
use crate::trace::Operand;

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

#[track_caller]
pub(super) fn real_forward(x: &RawTensor, axis: usize, n: usize) -> (RawTensor, RawTensor) {
    let x = resized(x, axis, n);
    let zeros = RawTensor::zeros(&x.device().without_autodiff(), x.dims(), x.dtype());
    let (re, im) = complex(&x, &zeros, axis, false);
    (re.narrow(axis, 0, n / 2 + 1), im.narrow(axis, 0, n / 2 + 1))
}

#[track_caller]
pub(super) fn real_backward(re: &RawTensor, im: &RawTensor, axis: usize, n: usize) -> RawTensor {
    assert!(re.dims() == im.dims(), "irfft: shapes differ: {:?}, {:?}", re.dims(), im.dims());
    assert!(n > 0, "irfft: the length must not be 0: shape {:?}", re.dims());
    let half = n / 2 + 1;
    let (re, im) = (resized(re, axis, half), resized(im, axis, half));
    // The other half are the conjugates, in reverse.
    let mirrored = |x: &RawTensor| x.narrow(axis, 1, (n - 1) / 2).flip(&[axis]);
    let inner = |x: &RawTensor| x.narrow(axis, 1, (n - 1) / 2);
    let edge = |x: &RawTensor| {
        let mut dims = x.dims().to_vec();
        dims[axis] = 1;
        RawTensor::zeros(&x.device().without_autodiff(), &dims, x.dtype())
    };
    let mut im_parts = vec![edge(&im), inner(&im)];
    if n.is_multiple_of(2) {
        im_parts.push(edge(&im));
    }
    im_parts.push(mirrored(&im).neg());
    let full_re = RawTensor::cat(&[re.clone(), mirrored(&re)], axis);
    let full_im = RawTensor::cat(&im_parts, axis);
    complex(&full_re, &full_im, axis, true).0.scale_by(1.0 / n as f64)
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
    let last = re.rank() - 1;
    let row = |x: &RawTensor| x.swap_dims(axis, last).unsqueeze(last);
    let y = packed(&RawTensor::cat(&[row(re), row(im)], last), inverse);
    let part = |i: usize| y.narrow(last, i, 1).squeeze(last).swap_dims(axis, last);
    (part(0), part(1))
}

/// The transform of `[.., 2, n]`. Its adjoint is the transform with the other sign.
#[track_caller]
fn packed(x: &RawTensor, inverse: bool) -> RawTensor {
    let op = HostOp { name: "fft", attrs: [u64::from(inverse)].into_iter().collect(), infer, run };
    let y = apply(Op::Host(op), &[Operand::Tensor(&x.untracked())]);
    autodiff::custom(&[x], y, Keep::Nothing, move |call| [Some(packed(call.dy, !inverse))].into())
}

fn infer(_: &[u64], operands: &[(&[usize], DType)]) -> Result<HostShapes, String> {
    match operands {
        [(dims @ [.., 2, _], dtype)] if dtype.is_float() => Ok(vec![(Dims::from_slice(dims), *dtype)]),
        _ => Err(format!("fft: needs floats, real and imaginary parts on the last axis but one: {operands:?}")),
    }
}

fn run(attrs: &[u64], operands: &[HostTensor<'_>], results: &mut [&mut [u8]]) -> Result<(), String> {
    let (x, out) = (&operands[0], &mut *results[0]);
    let (n, size) = (x.dims[x.dims.len() - 1], x.dtype.size());
    if n == 0 || out.is_empty() {
        return Ok(());
    }
    let transform = Transform::new(n, attrs[0] != 0);
    for (source, target) in x.bytes.chunks_exact(2 * n * size).zip(out.chunks_exact_mut(2 * n * size)) {
        let value = |i: usize| read(x.dtype, &source[i * size..][..size]);
        let mut signal: Vec<Complex> = (0..n).map(|i| Complex { re: value(i), im: value(n + i) }).collect();
        transform.apply(&mut signal);
        for (i, y) in signal.iter().enumerate() {
            write(x.dtype, &mut target[i * size..][..size], y.re);
            write(x.dtype, &mut target[(n + i) * size..][..size], y.im);
        }
    }
    Ok(())
}

/// A complex number.
#[derive(Clone, Copy, Default)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn turn(angle: f64) -> Self {
        Self { re: libm::cos(angle), im: libm::sin(angle) }
    }

    fn times(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }

    fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    fn minus(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }

    fn conjugate(self) -> Self {
        Self { re: self.re, im: -self.im }
    }
}

/// What transforms of one length and sign share.
struct Transform {
    /// The turns `exp(∓ 2πi k / size)` for half of the power of two that is computed.
    turns: Vec<Complex>,
    /// For a length that is no power of two: the chirp, and the transform of the filter that it is convolved with.
    chirp: Option<(Vec<Complex>, Vec<Complex>)>,
}

impl Transform {
    fn new(n: usize, inverse: bool) -> Self {
        let sign = if inverse { 1.0 } else { -1.0 };
        let turns = |size: usize, sign: f64| (0..size / 2).map(|k| Complex::turn(sign * TAU * k as f64 / size as f64)).collect();
        if n.is_power_of_two() {
            return Self { turns: turns(n, sign), chirp: None };
        }
        // L. Bluestein, "A linear filtering approach to the computation of the discrete Fourier transform", 1970: with
        // 2jk = j² + k² - (k - j)² the transform is a convolution, which a power of two computes.
        let size = (2 * n - 1).next_power_of_two();
        let turn = |k: usize| {
            // k² modulo 2n keeps the angle exact for long signals.
            let square = (k as u128 * k as u128 % (2 * n as u128)) as f64;
            Complex::turn(sign * PI * square / n as f64)
        };
        let chirp: Vec<Complex> = (0..n).map(turn).collect();
        let mut filter = vec![Complex::default(); size];
        for (k, turn) in chirp.iter().enumerate() {
            filter[k] = turn.conjugate();
            filter[(size - k) % size] = turn.conjugate();
        }
        let turns: Vec<Complex> = turns(size, -1.0);
        radix2(&mut filter, &turns);
        Self { turns, chirp: Some((chirp, filter)) }
    }

    fn apply(&self, signal: &mut [Complex]) {
        let Some((chirp, filter)) = &self.chirp else {
            return radix2(signal, &self.turns);
        };
        let size = filter.len();
        let mut work = vec![Complex::default(); size];
        for (slot, (x, turn)) in work.iter_mut().zip(signal.iter().zip(chirp)) {
            *slot = x.times(*turn);
        }
        radix2(&mut work, &self.turns);
        // The inverse transform is the conjugate of the transform of the conjugate.
        for (x, filter) in work.iter_mut().zip(filter) {
            *x = x.times(*filter).conjugate();
        }
        radix2(&mut work, &self.turns);
        for (x, (y, turn)) in signal.iter_mut().zip(work.iter().zip(chirp)) {
            let y = y.conjugate().times(*turn);
            *x = Complex { re: y.re / size as f64, im: y.im / size as f64 };
        }
    }
}

/// The transform of a power of two, in place (J. Cooley, J. Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965).
fn radix2(signal: &mut [Complex], turns: &[Complex]) {
    let n = signal.len();
    if n < 2 {
        return;
    }
    let shift = usize::BITS - n.trailing_zeros();
    for i in 0..n {
        let j = i.reverse_bits() >> shift;
        if i < j {
            signal.swap(i, j);
        }
    }
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for block in signal.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let turned = b.times(turns[k * stride]);
                (*a, *b) = (a.plus(turned), a.minus(turned));
            }
        }
        half *= 2;
    }
}
