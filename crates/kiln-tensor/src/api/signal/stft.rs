//! The short-time Fourier transform: spectra of overlapping stretches of a signal.

use kiln_ir::op::WindowAxis;

use super::fft::{real_backward, real_forward};
use crate::api::Tensor;
use crate::raw::RawTensor;

/// Options of the short-time Fourier transform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StftOptions {
    /// Elements of each transformed stretch.
    pub n_fft: usize,
    /// Distance between stretches.
    pub hop_length: usize,
    /// Elements of the window, which is centred in the stretch; `n_fft` without.
    pub win_length: Option<usize>,
    /// Whether stretches are centred at their places, with the signal mirrored at its ends.
    pub center: bool,
    /// Whether only the frequencies up to half the sampling rate are given.
    pub onesided: bool,
}

impl StftOptions {
    /// Centred stretches of `n_fft` elements that overlap by three quarters.
    pub fn new(n_fft: usize) -> Self {
        Self { n_fft, hop_length: (n_fft / 4).max(1), win_length: None, center: true, onesided: true }
    }
}

impl Default for StftOptions {
    /// Stretches of 400 elements: 25 ms at 16 kHz.
    fn default() -> Self {
        Self::new(400)
    }
}

/// The spectra of overlapping stretches of signals `[batch, length]`, weighed by a window (ones by default):
/// `[batch, frequencies, stretches, 2]` with real and imaginary part.
///
/// ```
/// use kiln_tensor::{Device, Tensor, signal::{StftOptions, hann_window, stft}};
/// let device = Device::default();
/// let x = Tensor::<2>::ones([1, 16], &device);
/// let spectra = stft(x, Some(hann_window(8, true, &device)), StftOptions::new(8));
/// assert_eq!(spectra.dims(), [1, 5, 9, 2]);
/// ```
///
/// # Panics
/// When the signal is shorter than a stretch, or the window does not fit.
#[track_caller]
pub fn stft(signal: Tensor<2>, window: Option<Tensor<1>>, options: StftOptions) -> Tensor<4> {
    Tensor::from_raw(forward(&signal.raw, window.as_ref().map(Tensor::as_raw), &options))
}

/// The signals `[batch, length]` whose [`stft`] is given, by adding the stretches and dividing by the added squares of the window. Elements that
/// the window leaves out are 0.
///
/// ```
/// use kiln_tensor::{Device, Distribution, Tensor, signal::{StftOptions, hann_window, istft, stft}};
/// let device = Device::default();
/// let x = Tensor::<2>::random([1, 32], Distribution::Default, &device);
/// let window = hann_window(8, true, &device);
/// let spectra = stft(x.clone(), Some(window.clone()), StftOptions::new(8));
/// let y = istft(spectra, Some(window), Some(32), StftOptions::new(8));
/// assert!(y.all_close(x, Some(1e-4), Some(1e-4)));
/// ```
///
/// # Panics
/// When the spectra or the window do not fit the options.
#[track_caller]
pub fn istft(stft_matrix: Tensor<4>, window: Option<Tensor<1>>, length: Option<usize>, options: StftOptions) -> Tensor<2> {
    Tensor::from_raw(backward(&stft_matrix.raw, window.as_ref().map(Tensor::as_raw), length, &options))
}

/// The window, centred in `n_fft` elements.
#[track_caller]
fn centred(like: &RawTensor, window: Option<&RawTensor>, options: &StftOptions) -> RawTensor {
    let StftOptions { n_fft, hop_length, win_length, .. } = *options;
    let length = win_length.unwrap_or(n_fft);
    assert!(n_fft > 0 && hop_length > 0 && length > 0 && length <= n_fft, "stft: the options do not fit: {options:?}");
    let window = match window {
        Some(window) => {
            assert!(window.dims() == [length], "stft: the window has shape {:?}, expected [{length}]", window.dims());
            window.cast(like.dtype())
        }
        None => RawTensor::ones(&like.device().without_autodiff(), &[length], like.dtype()),
    };
    let before = (n_fft - length) / 2;
    window.pad_zeros(&[(before, n_fft - length - before)])
}

fn stretches(options: &StftOptions) -> [WindowAxis; 1] {
    [WindowAxis { axis: 1, size: options.n_fft, stride: options.hop_length, dilation: 1 }]
}

#[track_caller]
fn forward(signal: &RawTensor, window: Option<&RawTensor>, options: &StftOptions) -> RawTensor {
    let n = options.n_fft;
    let window = centred(signal, window, options);
    let signal = if options.center { signal.pad_reflect(&[(0, 0), (n / 2, n / 2)]) } else { signal.clone() };
    assert!(signal.dims()[1] >= n, "stft: a stretch of {n} is longer than the signal: shape {:?}", signal.dims());
    let stretches = signal.windows(&stretches(options)).mul(&window);
    let (re, im) = real_forward(&stretches, 2, n);
    let (re, im) = if options.onesided { (re, im) } else { mirrored(&re, &im, n) };
    RawTensor::cat(&[re.unsqueeze(3), im.unsqueeze(3)], 3).swap_dims(1, 2)
}

/// All frequencies of a real signal, from the first half.
fn mirrored(re: &RawTensor, im: &RawTensor, n: usize) -> (RawTensor, RawTensor) {
    let other = |x: &RawTensor| x.narrow(2, 1, (n - 1) / 2).flip(&[2]);
    (RawTensor::cat(&[re.clone(), other(re)], 2), RawTensor::cat(&[im.clone(), other(im).neg()], 2))
}

#[track_caller]
fn backward(spectra: &RawTensor, window: Option<&RawTensor>, length: Option<usize>, options: &StftOptions) -> RawTensor {
    let n = options.n_fft;
    let frequencies = if options.onesided { n / 2 + 1 } else { n };
    let [batch, given, count, parts] = [spectra.dims()[0], spectra.dims()[1], spectra.dims()[2], spectra.dims()[3]];
    assert!(
        given == frequencies && parts == 2 && count > 0,
        "istft: spectra of shape {:?}, expected [batch, {frequencies}, stretches, 2]",
        spectra.dims()
    );
    let window = centred(spectra, window, options);
    let part = |i: usize| spectra.narrow(1, 0, n / 2 + 1).narrow(3, i, 1).squeeze(3).swap_dims(1, 2);
    let stretch = real_backward(&part(0), &part(1), 2, n).mul(&window);
    let total = n + (count - 1) * options.hop_length;
    let sum = stretch.fold(&stretches(options), &[batch, total]);
    let weights = window.square().expand(&[1, count, n]).fold(&stretches(options), &[1, total]);
    let covered = weights.with_constant(kiln_ir::Elementwise::Gt, 1e-11);
    let ones = RawTensor::ones(&weights.device().without_autodiff(), weights.dims(), weights.dtype());
    let signal = covered.choose_or_zero(&sum.div(&ones.mask_where(&covered, &weights)));
    let margin = if options.center { n / 2 } else { 0 };
    let inner = total - 2 * margin.min(total / 2);
    let kept = length.unwrap_or(inner).min(total - margin);
    let signal = signal.narrow(1, margin, kept);
    match length {
        Some(length) if length > kept => signal.pad_zeros(&[(0, 0), (0, length - kept)]),
        Some(_) | None => signal,
    }
}
