//! The average of windows of a sequence.

use kiln_module::config::Config;
use kiln_module::module::Module;
use kiln_tensor::ops::AvgPoolOptions;
use kiln_tensor::{Tensor, module};

use crate::PaddingConfig1d;
use crate::padding::windows;

/// Configuration of [`AvgPool1d`].
#[derive(Config, Debug)]
pub struct AvgPool1dConfig {
    /// The size of a window.
    pub kernel_size: usize,
    /// The step between windows. Default: the size of a window.
    #[config(default = kernel_size)]
    pub stride: usize,
    /// The zeros around the input. Default: none.
    #[config(default = PaddingConfig1d::Valid)]
    pub padding: PaddingConfig1d,
    /// Whether the padding counts as elements of a window. Default: true.
    #[config(default = true)]
    pub count_include_pad: bool,
    /// Whether a window may reach beyond the end. Default: false.
    #[config(default = false)]
    pub ceil_mode: bool,
}

/// Takes the average of each window.
///
/// ```
/// use kiln_nn::pool::AvgPool1dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let pool = AvgPool1dConfig::new(2).init();
/// let input = Tensor::ones([1, 3, 8], &Device::default());
/// assert_eq!(pool.forward(input).dims(), [1, 3, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct AvgPool1d {
    /// The step between windows.
    pub stride: usize,
    /// The size of a window.
    pub kernel_size: usize,
    /// The zeros around the input.
    #[module(skip)]
    pub padding: PaddingConfig1d,
    /// Whether the padding counts as elements of a window.
    pub count_include_pad: bool,
    /// Whether a window may reach beyond the end.
    pub ceil_mode: bool,
}

impl AvgPool1dConfig {
    /// The layer.
    pub fn init(&self) -> AvgPool1d {
        AvgPool1d {
            stride: self.stride,
            kernel_size: self.kernel_size,
            padding: self.padding.clone(),
            count_include_pad: self.count_include_pad,
            ceil_mode: self.ceil_mode,
        }
    }
}

impl AvgPool1d {
    /// Pools `[batch, channels, length]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        let (kernel, stride) = ([self.kernel_size], [self.stride]);
        let windows = windows(&input.dims(), kernel, stride, [1]);
        let options = AvgPoolOptions::new(kernel)
            .with_stride(stride)
            .with_padding_pairs(self.padding.pairs(windows))
            .with_count_include_pad(self.count_include_pad)
            .with_ceil_mode(self.ceil_mode);
        module::avg_pool1d(input, options)
    }
}

inline_display!(AvgPool1d, layer, content => content
    .add_debug_attribute("kernel_size", &layer.kernel_size)
    .add_debug_attribute("stride", &layer.stride)
    .add_debug_attribute("padding", &layer.padding)
    .add("count_include_pad", &layer.count_include_pad)
    .add("ceil_mode", &layer.ceil_mode));
