//! The maximum of windows of a sequence.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::MaxPoolOptions;
use kiln_tensor::{Tensor, module};

use crate::PaddingConfig1d;
use crate::padding::windows;

/// Configuration of [`MaxPool1d`].
#[derive(Config, Debug)]
pub struct MaxPool1dConfig {
    /// The size of a window.
    pub kernel_size: usize,
    /// The step between windows. Default: the size of a window.
    #[config(default = kernel_size)]
    pub stride: usize,
    /// The elements (less than any other) around the input. Default: none.
    #[config(default = PaddingConfig1d::Valid)]
    pub padding: PaddingConfig1d,
    /// The step between elements of a window. Default: 1.
    #[config(default = 1)]
    pub dilation: usize,
    /// Whether a window may reach beyond the end. Default: false.
    #[config(default = false)]
    pub ceil_mode: bool,
}

/// Takes the maximum of each window.
///
/// ```
/// use kiln_nn::pool::MaxPool1dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let pool = MaxPool1dConfig::new(2).init();
/// let input = Tensor::ones([1, 3, 8], &Device::default());
/// assert_eq!(pool.forward(input).dims(), [1, 3, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct MaxPool1d {
    /// The step between windows.
    pub stride: usize,
    /// The size of a window.
    pub kernel_size: usize,
    /// The elements (less than any other) around the input.
    #[module(skip)]
    pub padding: PaddingConfig1d,
    /// The step between elements of a window.
    pub dilation: usize,
    /// Whether a window may reach beyond the end.
    pub ceil_mode: bool,
}

impl MaxPool1dConfig {
    /// The layer.
    pub fn init(&self) -> MaxPool1d {
        MaxPool1d {
            stride: self.stride,
            kernel_size: self.kernel_size,
            padding: self.padding.clone(),
            dilation: self.dilation,
            ceil_mode: self.ceil_mode,
        }
    }
}

impl MaxPool1d {
    /// Pools `[batch, channels, length]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        let (kernel, stride) = ([self.kernel_size], [self.stride]);
        let windows = windows(&input.dims(), kernel, stride, [self.dilation]);
        let options = MaxPoolOptions::new(kernel)
            .with_stride(stride)
            .with_padding_pairs(self.padding.pairs(windows))
            .with_dilation([self.dilation])
            .with_ceil_mode(self.ceil_mode);
        module::max_pool1d(input, options)
    }
}

inline_display!(MaxPool1d, layer, content => content
    .add_debug_attribute("kernel_size", &layer.kernel_size)
    .add_debug_attribute("stride", &layer.stride)
    .add_debug_attribute("padding", &layer.padding)
    .add_debug_attribute("dilation", &layer.dilation)
    .add("ceil_mode", &layer.ceil_mode));
