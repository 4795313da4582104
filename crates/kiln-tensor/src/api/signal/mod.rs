//! Signals: Fourier transforms and windows.

mod fft;
mod stft;
mod window;

pub use fft::{cfft, irfft, rfft};
pub use stft::{StftOptions, istft, stft};
pub use window::{blackman_window, hamming_window, hann_window};
