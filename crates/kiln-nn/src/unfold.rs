//! From an image to its windows.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::UnfoldOptions;
use kiln_tensor::{Tensor, module};

/// Configuration of [`Unfold4d`].
#[derive(Config, Debug)]
pub struct Unfold4dConfig {
    /// Height and width of a window.
    pub kernel_size: [usize; 2],
    /// The steps between windows. Default: 1.
    #[config(default = [1, 1])]
    pub stride: [usize; 2],
    /// The steps between elements of a window. Default: 1.
    #[config(default = [1, 1])]
    pub dilation: [usize; 2],
    /// The zeros around the image. Default: 0.
    #[config(default = [0, 0])]
    pub padding: [usize; 2],
}

/// Cuts an image into windows.
///
/// ```
/// use kiln_nn::Unfold4dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let unfold = Unfold4dConfig::new([2, 2]).init();
/// let image = Tensor::<4>::ones([1, 3, 3, 3], &Device::default());
/// assert_eq!(unfold.forward(image).dims(), [1, 12, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Unfold4d {
    /// Height and width of a window.
    pub kernel_size: [usize; 2],
    /// The steps between windows.
    pub stride: [usize; 2],
    /// The steps between elements of a window.
    pub dilation: [usize; 2],
    /// The zeros around the image.
    pub padding: [usize; 2],
}

impl Unfold4dConfig {
    /// The layer.
    pub fn init(&self) -> Unfold4d {
        Unfold4d { kernel_size: self.kernel_size, stride: self.stride, dilation: self.dilation, padding: self.padding }
    }
}

impl Unfold4d {
    /// Maps `[batch, channels, height, width]` to `[batch, channels · kernel elements, windows]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>) -> Tensor<3> {
        let options = UnfoldOptions::new(self.stride, self.padding, self.dilation);
        module::unfold4d(input, self.kernel_size, options)
    }
}

inline_display!(Unfold4d, layer, content => content
    .add_debug_attribute("kernel_size", &layer.kernel_size)
    .add_debug_attribute("stride", &layer.stride)
    .add_debug_attribute("dilation", &layer.dilation)
    .add_debug_attribute("padding", &layer.padding));
