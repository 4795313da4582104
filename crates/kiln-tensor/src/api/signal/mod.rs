//! Signals: Fourier transforms and windows.

mod fft;
mod host;
#[cfg(feature = "rustfft")]
mod library;
mod ops;
mod stft;
#[cfg(not(feature = "rustfft"))]
mod transform;
mod window;

pub use fft::{cfft, irfft, rfft};
pub use ops::SignalOps;
pub use stft::{StftOptions, istft, stft};
pub use window::{blackman_window, hamming_window, hann_window};
