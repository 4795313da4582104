//! The maximum of windows of an image.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::MaxPoolOptions;
use kiln_tensor::{Tensor, module};

use crate::PaddingConfig2d;
use crate::padding::windows;

/// Configuration of [`MaxPool2d`].
#[derive(Config, Debug)]
pub struct MaxPool2dConfig {
    /// The size of a window.
    pub kernel_size: [usize; 2],
    /// The step between windows. Default: the size of a window.
    #[config(default = kernel_size)]
    pub strides: [usize; 2],
    /// The elements (less than any other) around the input. Default: none.
    #[config(default = PaddingConfig2d::Valid)]
    pub padding: PaddingConfig2d,
    /// The step between elements of a window. Default: 1.
    #[config(default = [1, 1])]
    pub dilation: [usize; 2],
    /// Whether a window may reach beyond the end. Default: false.
    #[config(default = false)]
    pub ceil_mode: bool,
}

/// Takes the maximum of each window.
///
/// ```
/// use kiln_nn::pool::MaxPool2dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let pool = MaxPool2dConfig::new([2, 2]).init();
/// let input = Tensor::ones([1, 3, 8, 8], &Device::default());
/// assert_eq!(pool.forward(input).dims(), [1, 3, 4, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct MaxPool2d {
    /// The step between windows.
    pub stride: [usize; 2],
    /// The size of a window.
    pub kernel_size: [usize; 2],
    /// The elements (less than any other) around the input.
    #[module(skip)]
    pub padding: PaddingConfig2d,
    /// The step between elements of a window.
    pub dilation: [usize; 2],
    /// Whether a window may reach beyond the end.
    pub ceil_mode: bool,
}

impl MaxPool2dConfig {
    /// The layer.
    pub fn init(&self) -> MaxPool2d {
        MaxPool2d {
            stride: self.strides,
            kernel_size: self.kernel_size,
            padding: self.padding.clone(),
            dilation: self.dilation,
            ceil_mode: self.ceil_mode,
        }
    }
}

impl MaxPool2d {
    /// Pools `[batch, channels, height, width]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let (kernel, stride) = (self.kernel_size, self.stride);
        let windows = windows(&input.dims(), kernel, stride, self.dilation);
        let options = MaxPoolOptions::new(kernel)
            .with_stride(stride)
            .with_padding_pairs(self.padding.pairs(windows))
            .with_dilation(self.dilation)
            .with_ceil_mode(self.ceil_mode);
        module::max_pool2d(input, options)
    }
}

inline_display!(MaxPool2d, layer, content => content
    .add_debug_attribute("kernel_size", &layer.kernel_size)
    .add_debug_attribute("stride", &layer.stride)
    .add_debug_attribute("padding", &layer.padding)
    .add_debug_attribute("dilation", &layer.dilation)
    .add("ceil_mode", &layer.ceil_mode));
