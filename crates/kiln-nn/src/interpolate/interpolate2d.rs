//! Resizing of an image.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::InterpolateOptions;
use kiln_tensor::{Tensor, module};

use super::InterpolateMode;

/// Configuration of [`Interpolate2d`].
#[derive(Config, Debug)]
pub struct Interpolate2dConfig {
    /// The size of the output. Default: from the scale factor.
    #[config(default = None)]
    pub output_size: Option<[usize; 2]>,
    /// The factor by which the size grows, used without an output size. Default: none.
    #[config(default = None)]
    pub scale_factor: Option<[f32; 2]>,
    /// How values between samples are worked out. Default: the nearest sample.
    #[config(default = InterpolateMode::Nearest)]
    pub mode: InterpolateMode,
    /// Whether the first and last samples of input and output coincide (not for the nearest modes). Default: true.
    #[config(default = true)]
    pub align_corners: bool,
}

/// Resizes an image.
///
/// ```
/// use kiln_nn::interpolate::Interpolate2dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let resize = Interpolate2dConfig::new().with_output_size(Some([8, 6])).init();
/// let input = Tensor::ones([1, 3, 4, 3], &Device::default());
/// assert_eq!(resize.forward(input).dims(), [1, 3, 8, 6]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Interpolate2d {
    /// The size of the output.
    pub output_size: Option<[usize; 2]>,
    /// The factor by which the size grows.
    pub scale_factor: Option<[f32; 2]>,
    /// How values between samples are worked out.
    #[module(skip)]
    pub mode: InterpolateMode,
    /// Whether the first and last samples of input and output coincide.
    pub align_corners: bool,
}

impl Interpolate2dConfig {
    /// The layer.
    pub fn init(self) -> Interpolate2d {
        Interpolate2d { output_size: self.output_size, scale_factor: self.scale_factor, mode: self.mode, align_corners: self.align_corners }
    }
}

impl Interpolate2d {
    /// Resizes `[batch, channels, height, width]`.
    ///
    /// # Panics
    ///
    /// When neither an output size nor a scale factor is set.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let options = resizing(&self.mode, self.align_corners, self.output_size, self.scale_factor);
        module::interpolate(input, options)
    }
}

/// The options of the functional form. The scale factor counts only without a size.
#[track_caller]
pub(super) fn resizing(
    mode: &InterpolateMode,
    align_corners: bool,
    output_size: Option<[usize; 2]>,
    scale_factor: Option<[f32; 2]>,
) -> InterpolateOptions {
    let options = InterpolateOptions::new(mode.clone().into()).with_align_corners(align_corners);
    match (output_size, scale_factor) {
        (Some(size), _) => options.with_output_size(size),
        (None, Some(factor)) => options.with_scale_factor(factor),
        (None, None) => panic!("interpolate: needs an output size or a scale factor"),
    }
}

inline_display!(Interpolate2d, layer, content => content
    .add_debug_attribute("mode", &layer.mode)
    .add_debug_attribute("output_size", &layer.output_size)
    .add_debug_attribute("scale_factor", &layer.scale_factor)
    .add("align_corners", &layer.align_corners));
