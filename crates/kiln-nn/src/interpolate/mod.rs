//! Resizing of sequences and images.

mod interpolate1d;
mod interpolate2d;
mod mode;

pub use interpolate1d::{Interpolate1d, Interpolate1dConfig};
pub use interpolate2d::{Interpolate2d, Interpolate2dConfig};
pub use mode::InterpolateMode;
