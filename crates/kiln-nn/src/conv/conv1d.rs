//! Convolution over a sequence.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::ops::ConvOptions;
use kiln_tensor::{Device, Tensor, module};

use super::kernels::Kernels;
use crate::PaddingConfig1d;
use crate::initializer::default_initializer;
use crate::padding::windows;

/// Configuration of [`Conv1d`].
#[derive(Config, Debug)]
pub struct Conv1dConfig {
    /// The number of input channels.
    pub channels_in: usize,
    /// The number of output channels.
    pub channels_out: usize,
    /// The size of the kernel.
    pub kernel_size: usize,
    /// The step between windows. Default: 1.
    #[config(default = 1)]
    pub stride: usize,
    /// The step between elements of a window. Default: 1.
    #[config(default = 1)]
    pub dilation: usize,
    /// The number of groups that channels are split into. Default: 1.
    #[config(default = 1)]
    pub groups: usize,
    /// The zeros around the input. Default: none.
    #[config(default = PaddingConfig1d::Valid)]
    pub padding: PaddingConfig1d,
    /// Whether a bias is added. Default: true.
    #[config(default = true)]
    pub bias: bool,
    /// How weight and bias start. Default: uniform in `±1 / √fan-in`.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
}

/// Convolution (cross-correlation) over sequences.
///
/// ```
/// use kiln_nn::conv::Conv1dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let conv = Conv1dConfig::new(3, 8, 3).init(&device);
/// assert_eq!(conv.forward(Tensor::ones([2, 3, 10], &device)).dims(), [2, 8, 8]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Conv1d {
    /// The kernels, `[channels out, channels in / groups, kernel]`.
    pub weight: Param<Tensor<3>>,
    /// The bias, `[channels out]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// The step between windows.
    pub stride: usize,
    /// The size of the kernel.
    pub kernel_size: usize,
    /// The step between elements of a window.
    pub dilation: usize,
    /// The number of groups that channels are split into.
    pub groups: usize,
    /// The zeros around the input.
    #[module(skip)]
    pub padding: PaddingConfig1d,
}

impl Conv1dConfig {
    /// A layer with parameters on `device`.
    ///
    /// # Panics
    ///
    /// When the channels are no multiples of the groups.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Conv1d {
        let (channels, groups, size) = ([self.channels_in, self.channels_out], self.groups, [self.kernel_size]);
        let kernels = Kernels { op: "conv1d", channels, groups, size, bias: self.bias, initializer: &self.initializer };
        let (weight, bias) = kernels.init(device);
        Conv1d {
            weight,
            bias,
            stride: self.stride,
            kernel_size: self.kernel_size,
            dilation: self.dilation,
            groups: self.groups,
            padding: self.padding.clone(),
        }
    }
}

impl Conv1d {
    /// Convolves `[batch, channels, length]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        let (stride, dilation) = ([self.stride], [self.dilation]);
        let windows = windows(&input.dims(), [self.kernel_size], stride, dilation);
        let padding = self.padding.pairs(windows);
        let options = ConvOptions::new_with_padding(stride, padding, dilation, self.groups);
        let bias = self.bias.as_ref().map(Param::val);
        module::conv1d(input, self.weight.val(), bias, options)
    }
}

inline_display!(Conv1d, layer, content => {
    let shape = layer.weight.lazy_shape();
    content
        .add("ch_in", &(shape[1] * layer.groups))
        .add("ch_out", &shape[0])
        .add_debug_attribute("stride", &layer.stride)
        .add_debug_attribute("kernel_size", &layer.kernel_size)
        .add_debug_attribute("dilation", &layer.dilation)
        .add("groups", &layer.groups)
        .add_debug_attribute("padding", &layer.padding)
});
