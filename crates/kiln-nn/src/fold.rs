//! From windows to an image.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::UnfoldOptions;
use kiln_tensor::{Tensor, module};

/// Configuration of [`Fold4d`].
#[derive(Config, Debug)]
pub struct Fold4dConfig {
    /// Height and width of the image.
    pub output_size: [usize; 2],
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

/// Sums windows back into an image: the adjoint of [`Unfold4d`](crate::Unfold4d).
///
/// ```
/// use kiln_nn::Fold4dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let fold = Fold4dConfig::new([3, 3], [2, 2]).init();
/// let windows = Tensor::<3>::ones([1, 4, 4], &Device::default());
/// assert_eq!(fold.forward(windows).dims(), [1, 1, 3, 3]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Fold4d {
    /// Height and width of the image.
    pub output_size: [usize; 2],
    /// Height and width of a window.
    pub kernel_size: [usize; 2],
    /// The steps between windows.
    pub stride: [usize; 2],
    /// The steps between elements of a window.
    pub dilation: [usize; 2],
    /// The zeros around the image.
    pub padding: [usize; 2],
}

impl Fold4dConfig {
    /// The layer.
    pub fn init(&self) -> Fold4d {
        Fold4d { output_size: self.output_size, kernel_size: self.kernel_size, stride: self.stride, dilation: self.dilation, padding: self.padding }
    }
}

impl Fold4d {
    /// Maps `[batch, channels · kernel elements, windows]` to `[batch, channels, height, width]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<4> {
        let options = UnfoldOptions::new(self.stride, self.padding, self.dilation);
        module::fold4d(input, self.output_size, self.kernel_size, options)
    }
}

inline_display!(Fold4d, layer, content => content
    .add_debug_attribute("output_size", &layer.output_size)
    .add_debug_attribute("kernel_size", &layer.kernel_size)
    .add_debug_attribute("stride", &layer.stride)
    .add_debug_attribute("dilation", &layer.dilation)
    .add_debug_attribute("padding", &layer.padding));
