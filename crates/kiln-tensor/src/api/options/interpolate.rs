//! Options of interpolation and grid sampling.

use serde::{Deserialize, Serialize};

/// How values between the samples are found.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum InterpolateMode {
    /// The sample at the floor of the position.
    Nearest,
    /// The sample nearest to the position of the pixel's centre.
    NearestExact,
    /// Linear between the 2 × 2 samples around.
    Bilinear,
    /// Cubic through the 4 × 4 samples around.
    Bicubic,
    /// Windowed sinc over the 6 × 6 samples around.
    Lanczos3,
}

impl InterpolateMode {
    /// [`InterpolateMode::Nearest`].
    pub fn new_nearest() -> Self {
        Self::Nearest
    }

    /// [`InterpolateMode::NearestExact`].
    pub fn new_nearest_exact() -> Self {
        Self::NearestExact
    }

    /// [`InterpolateMode::Bilinear`].
    pub fn new_bilinear() -> Self {
        Self::Bilinear
    }

    /// [`InterpolateMode::Bicubic`].
    pub fn new_bicubic() -> Self {
        Self::Bicubic
    }

    /// [`InterpolateMode::Lanczos3`].
    pub fn new_lanczos3() -> Self {
        Self::Lanczos3
    }
}

/// Options of an interpolation. Give an output size or a scale factor.
#[derive(Clone, Debug)]
pub struct InterpolateOptions {
    /// How values between the samples are found.
    pub mode: InterpolateMode,
    /// Whether the corner samples of input and output coincide (else the corners of their pixels do).
    pub align_corners: bool,
    /// Height and width of the output.
    pub output_size: Option<[usize; 2]>,
    /// Factors on the height and the width of the input.
    pub scale_factor: Option<[f32; 2]>,
}

impl InterpolateOptions {
    /// Options with aligned corners.
    pub fn new(mode: InterpolateMode) -> Self {
        Self { mode, align_corners: true, output_size: None, scale_factor: None }
    }

    /// Sets whether the corner samples coincide.
    #[must_use]
    pub fn with_align_corners(self, align_corners: bool) -> Self {
        Self { align_corners, ..self }
    }

    /// Sets height and width of the output.
    #[must_use]
    pub fn with_output_size(self, output_size: [usize; 2]) -> Self {
        Self { output_size: Some(output_size), ..self }
    }

    /// Sets the factors on height and width.
    #[must_use]
    pub fn with_scale_factor(self, scale_factor: [f32; 2]) -> Self {
        Self { scale_factor: Some(scale_factor), ..self }
    }
}

/// What lies outside of the samples.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum GridSamplePaddingMode {
    /// Zeros.
    #[default]
    Zeros,
    /// The nearest sample of the border.
    Border,
    /// The samples mirrored at the border.
    Reflection,
}

/// Options of sampling at the places of a grid.
#[derive(Clone, Debug)]
pub struct GridSampleOptions {
    /// How values between the samples are found.
    pub mode: InterpolateMode,
    /// What lies outside of the samples.
    pub padding_mode: GridSamplePaddingMode,
    /// Whether -1 and 1 name the centres of the corner samples (else the corners of their pixels).
    pub align_corners: bool,
}

impl Default for GridSampleOptions {
    fn default() -> Self {
        Self::new(InterpolateMode::Bilinear)
    }
}

impl GridSampleOptions {
    /// Options with zeros outside and corners not aligned.
    pub fn new(mode: InterpolateMode) -> Self {
        Self { mode, padding_mode: GridSamplePaddingMode::Zeros, align_corners: false }
    }

    /// Sets what lies outside of the samples.
    #[must_use]
    pub fn with_padding_mode(self, padding_mode: GridSamplePaddingMode) -> Self {
        Self { padding_mode, ..self }
    }

    /// Sets what -1 and 1 name.
    #[must_use]
    pub fn with_align_corners(self, align_corners: bool) -> Self {
        Self { align_corners, ..self }
    }
}

impl From<InterpolateMode> for GridSampleOptions {
    fn from(mode: InterpolateMode) -> Self {
        Self::new(mode)
    }
}
