//! `SignalOps`: the Fourier transforms that code over a backend may call.

use super::fft::{real_backward, real_forward};
#[cfg(feature = "cpu")]
use crate::backend::Flex;
use crate::backend::{Autodiff, Backend, CheckpointStrategy, Dispatch, FloatTensor, Primitive};
use crate::raw::RawTensor;

/// Fourier transforms on the primitives of a backend. Gradients flow where the primitive is tracked.
///
/// ```
/// use kiln_tensor::backend::Dispatch;
/// use kiln_tensor::signal::SignalOps;
/// use kiln_tensor::{Device, Tensor};
///
/// let x = Tensor::<1>::from_data([1.0, 0.0, -1.0, 0.0], &Device::default());
/// let (re, im) = Dispatch::rfft(x.clone().try_into_primitive::<Dispatch>().unwrap(), 0, None);
/// assert_eq!(Tensor::<1>::from_primitive::<Dispatch>(re.clone()).try_into_vec_as::<f32>().unwrap(), [0.0, 2.0, 0.0]);
/// let back = Tensor::<1>::from_primitive::<Dispatch>(Dispatch::irfft(re, im, 0, Some(4)));
/// assert!(back.all_close(x, Some(1e-4), Some(1e-5)));
/// ```
pub trait SignalOps: Backend {
    /// Real and imaginary part of the frequencies of a real signal along an axis, as [`rfft`](super::rfft) gives them.
    ///
    /// # Panics
    /// When the axis does not exist or `n` is 0.
    fn rfft(signal: FloatTensor<Self>, dim: usize, n: Option<usize>) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The real signal of the frequencies along an axis, as [`irfft`](super::irfft) gives it.
    ///
    /// # Panics
    /// When the axis does not exist, the shapes differ, or `n` is 0.
    fn irfft(real: FloatTensor<Self>, imag: FloatTensor<Self>, dim: usize, n: Option<usize>) -> FloatTensor<Self>;
}

#[track_caller]
fn forward<P: Primitive>(signal: P, axis: usize, n: Option<usize>) -> (P, P) {
    let x = signal.into_raw();
    x.check_axis("rfft", axis);
    let (re, im) = real_forward(&x, axis, n.unwrap_or(x.dims()[axis]));
    (P::from_raw(re), P::from_raw(im))
}

#[track_caller]
fn backward<P: Primitive>(real: P, imag: P, axis: usize, n: Option<usize>) -> P {
    let (re, im): (RawTensor, RawTensor) = (real.into_raw(), imag.into_raw());
    re.check_axis("irfft", axis);
    let n = n.unwrap_or(2 * re.dims()[axis].saturating_sub(1));
    P::from_raw(real_backward(&re, &im, axis, n))
}

impl SignalOps for Dispatch {
    #[track_caller]
    fn rfft(signal: FloatTensor<Self>, dim: usize, n: Option<usize>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        forward(signal, dim, n)
    }

    #[track_caller]
    fn irfft(real: FloatTensor<Self>, imag: FloatTensor<Self>, dim: usize, n: Option<usize>) -> FloatTensor<Self> {
        backward(real, imag, dim, n)
    }
}

#[cfg(feature = "cpu")]
impl SignalOps for Flex {
    #[track_caller]
    fn rfft(signal: FloatTensor<Self>, dim: usize, n: Option<usize>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        forward(signal, dim, n)
    }

    #[track_caller]
    fn irfft(real: FloatTensor<Self>, imag: FloatTensor<Self>, dim: usize, n: Option<usize>) -> FloatTensor<Self> {
        backward(real, imag, dim, n)
    }
}

impl<B: SignalOps, C: CheckpointStrategy> SignalOps for Autodiff<B, C> {
    #[track_caller]
    fn rfft(signal: FloatTensor<Self>, dim: usize, n: Option<usize>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        forward(signal, dim, n)
    }

    #[track_caller]
    fn irfft(real: FloatTensor<Self>, imag: FloatTensor<Self>, dim: usize, n: Option<usize>) -> FloatTensor<Self> {
        backward(real, imag, dim, n)
    }
}
