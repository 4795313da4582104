//! Resizing of a sequence.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::{Tensor, module};

use super::InterpolateMode;
use super::interpolate2d::resizing;

/// Configuration of [`Interpolate1d`].
#[derive(Config, Debug)]
pub struct Interpolate1dConfig {
    /// The size of the output. Default: from the scale factor.
    #[config(default = None)]
    pub output_size: Option<usize>,
    /// The factor by which the size grows, used without an output size. Default: none.
    #[config(default = None)]
    pub scale_factor: Option<f32>,
    /// How values between samples are worked out. Default: the nearest sample.
    #[config(default = InterpolateMode::Nearest)]
    pub mode: InterpolateMode,
    /// Whether the first and last samples of input and output coincide (not for the nearest modes). Default: true.
    #[config(default = true)]
    pub align_corners: bool,
}

/// Resizes a sequence.
///
/// ```
/// use kiln_nn::interpolate::Interpolate1dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let resize = Interpolate1dConfig::new().with_output_size(Some(8)).init();
/// let input = Tensor::ones([1, 3, 4], &Device::default());
/// assert_eq!(resize.forward(input).dims(), [1, 3, 8]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Interpolate1d {
    /// The size of the output.
    pub output_size: Option<usize>,
    /// The factor by which the size grows.
    pub scale_factor: Option<f32>,
    /// How values between samples are worked out.
    #[module(skip)]
    pub mode: InterpolateMode,
    /// Whether the first and last samples of input and output coincide.
    pub align_corners: bool,
}

impl Interpolate1dConfig {
    /// The layer.
    pub fn init(self) -> Interpolate1d {
        Interpolate1d { output_size: self.output_size, scale_factor: self.scale_factor, mode: self.mode, align_corners: self.align_corners }
    }
}

impl Interpolate1d {
    /// Resizes `[batch, channels, length]`.
    ///
    /// # Panics
    ///
    /// When neither an output size nor a scale factor is set.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        let [batch, channels, length] = input.dims();
        let options =
            resizing(&self.mode, self.align_corners, self.output_size.map(|length| [1, length]), self.scale_factor.map(|factor| [1.0, factor]));
        // A sequence is an image of height one.
        let resized = module::interpolate(input.reshape([batch, channels, 1, length]), options);
        resized.squeeze_dim(2)
    }
}

inline_display!(Interpolate1d, layer, content => content
    .add_debug_attribute("mode", &layer.mode)
    .add_debug_attribute("output_size", &layer.output_size)
    .add_debug_attribute("scale_factor", &layer.scale_factor)
    .add("align_corners", &layer.align_corners));
