//! How values between samples are worked out.

use kiln_module::config::Config;
use kiln_tensor::ops;

/// How values between samples are worked out.
#[derive(Config, Debug)]
pub enum InterpolateMode {
    /// The sample at the rounded down position.
    Nearest,
    /// The sample at the position of the output's middle.
    NearestExact,
    /// Linear between neighbours.
    Linear,
    /// Cubic through four neighbours.
    Cubic,
    /// Lanczos with six neighbours.
    Lanczos,
}

impl From<InterpolateMode> for ops::InterpolateMode {
    fn from(mode: InterpolateMode) -> Self {
        match mode {
            InterpolateMode::Nearest => Self::Nearest,
            InterpolateMode::NearestExact => Self::NearestExact,
            InterpolateMode::Linear => Self::Bilinear,
            InterpolateMode::Cubic => Self::Bicubic,
            InterpolateMode::Lanczos => Self::Lanczos3,
        }
    }
}
