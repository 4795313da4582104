//! Transposed convolution over a sequence.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::ops::ConvTransposeOptions;
use kiln_tensor::{Device, Tensor, module};

use super::kernels::Kernels;
use crate::initializer::default_initializer;

/// Configuration of [`ConvTranspose1d`].
#[derive(Config, Debug)]
pub struct ConvTranspose1dConfig {
    /// The numbers of input and output channels.
    pub channels: [usize; 2],
    /// The size of the kernel.
    pub kernel_size: usize,
    /// The step between windows of the output. Default: 1.
    #[config(default = 1)]
    pub stride: usize,
    /// The step between elements of a window. Default: 1.
    #[config(default = 1)]
    pub dilation: usize,
    /// The number of groups that channels are split into. Default: 1.
    #[config(default = 1)]
    pub groups: usize,
    /// The elements cut off both sides of the output. Default: 0.
    #[config(default = 0)]
    pub padding: usize,
    /// The elements added at the end of the output. Default: 0.
    #[config(default = 0)]
    pub padding_out: usize,
    /// Whether a bias is added. Default: true.
    #[config(default = true)]
    pub bias: bool,
    /// How weight and bias start. Default: uniform in `±1 / √fan-in`, where an input reaches `fan-in` outputs.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
}

/// Transposed convolution: the map that takes gradients back through [`Conv1d`](super::Conv1d), as a layer.
///
/// Each axis of the output has size `(input - 1) · stride + dilation · (kernel - 1) + 1 - 2 · padding + padding_out`.
///
/// ```
/// use kiln_nn::conv::ConvTranspose1dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let conv = ConvTranspose1dConfig::new([3, 5], 3).init(&device);
/// assert_eq!(conv.forward(Tensor::ones([2, 3, 8], &device)).dims(), [2, 5, 10]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct ConvTranspose1d {
    /// The kernels, `[channels in, channels out / groups, kernel]`.
    pub weight: Param<Tensor<3>>,
    /// The bias, `[channels out]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// The step between windows of the output.
    pub stride: usize,
    /// The size of the kernel.
    pub kernel_size: usize,
    /// The step between elements of a window.
    pub dilation: usize,
    /// The number of groups that channels are split into.
    pub groups: usize,
    /// The elements cut off both sides of the output.
    pub padding: usize,
    /// The elements added at the end of the output.
    pub padding_out: usize,
    /// The numbers of input and output channels.
    pub channels: [usize; 2],
}

impl ConvTranspose1dConfig {
    /// A layer with parameters on `device`.
    ///
    /// # Panics
    ///
    /// When the channels are no multiples of the groups.
    #[track_caller]
    pub fn init(&self, device: &Device) -> ConvTranspose1d {
        let (channels, groups, size) = (self.channels, self.groups, [self.kernel_size]);
        let kernels = Kernels { op: "conv_transpose1d", channels, groups, size, bias: self.bias, initializer: &self.initializer };
        let (weight, bias) = kernels.init_transposed(device);
        ConvTranspose1d {
            weight,
            bias,
            stride: self.stride,
            kernel_size: self.kernel_size,
            dilation: self.dilation,
            groups: self.groups,
            padding: self.padding,
            padding_out: self.padding_out,
            channels: self.channels,
        }
    }
}

impl ConvTranspose1d {
    /// Maps `[batch, channels, length]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<3>) -> Tensor<3> {
        let options = ConvTransposeOptions::new([self.stride], [self.padding], [self.padding_out], [self.dilation], self.groups);
        let bias = self.bias.as_ref().map(Param::val);
        module::conv_transpose1d(input, self.weight.val(), bias, options)
    }
}

inline_display!(ConvTranspose1d, layer, content => content
    .add_debug_attribute("channels", &layer.channels)
    .add_debug_attribute("stride", &layer.stride)
    .add_debug_attribute("kernel_size", &layer.kernel_size)
    .add_debug_attribute("dilation", &layer.dilation)
    .add("groups", &layer.groups)
    .add_debug_attribute("padding", &layer.padding)
    .add_debug_attribute("padding_out", &layer.padding_out));
