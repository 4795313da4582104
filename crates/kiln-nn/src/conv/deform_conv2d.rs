//! Deformable convolution over an image.

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module, Param};
use kiln_tensor::ops::DeformConvOptions;
use kiln_tensor::{Device, Tensor, module};

use super::kernels::Kernels;
use crate::PaddingConfig2d;
use crate::initializer::default_initializer;
use crate::padding::windows;

/// Configuration of [`DeformConv2d`].
#[derive(Config, Debug)]
pub struct DeformConv2dConfig {
    /// The numbers of input and output channels.
    pub channels: [usize; 2],
    /// Height and width of the kernel.
    pub kernel_size: [usize; 2],
    /// The steps between windows. Default: 1.
    #[config(default = [1, 1])]
    pub stride: [usize; 2],
    /// The steps between elements of a window. Default: 1.
    #[config(default = [1, 1])]
    pub dilation: [usize; 2],
    /// The number of groups that channels are split into. Default: 1.
    #[config(default = 1)]
    pub weight_groups: usize,
    /// The number of groups of input channels that share offsets. Default: 1.
    #[config(default = 1)]
    pub offset_groups: usize,
    /// The zeros around the image. Default: none.
    #[config(default = PaddingConfig2d::Valid)]
    pub padding: PaddingConfig2d,
    /// Whether a bias is added. Default: true.
    #[config(default = true)]
    pub bias: bool,
    /// How weight and bias start. Default: uniform in `±1 / √fan-in`.
    #[config(default = default_initializer())]
    pub initializer: Initializer,
}

/// Convolution whose windows sample the image at offset positions, optionally weighted.
///
/// Dai et al. 2017, [arXiv:1703.06211](https://arxiv.org/abs/1703.06211); with a mask, Zhu et al. 2018,
/// [arXiv:1811.11168](https://arxiv.org/abs/1811.11168).
///
/// ```
/// use kiln_nn::conv::DeformConv2dConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let conv = DeformConv2dConfig::new([3, 5], [3, 3]).init(&device);
/// let image = Tensor::ones([1, 3, 8, 8], &device);
/// let offsets = Tensor::zeros([1, 2 * 9, 6, 6], &device);
/// assert_eq!(conv.forward(image, offsets, None).dims(), [1, 5, 6, 6]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct DeformConv2d {
    /// The kernels, `[channels out, channels in / weight groups, kernel height, kernel width]`.
    pub weight: Param<Tensor<4>>,
    /// The bias, `[channels out]`.
    pub bias: Option<Param<Tensor<1>>>,
    /// The steps between windows.
    pub stride: [usize; 2],
    /// Height and width of the kernel.
    pub kernel_size: [usize; 2],
    /// The steps between elements of a window.
    pub dilation: [usize; 2],
    /// The number of groups that channels are split into.
    pub weight_groups: usize,
    /// The number of groups of input channels that share offsets.
    pub offset_groups: usize,
    /// The zeros around the image.
    #[module(skip)]
    pub padding: PaddingConfig2d,
}

impl DeformConv2dConfig {
    /// A layer with parameters on `device`.
    ///
    /// # Panics
    ///
    /// When the channels are no multiples of the groups.
    #[track_caller]
    pub fn init(&self, device: &Device) -> DeformConv2d {
        let (channels, groups, size) = (self.channels, self.weight_groups, self.kernel_size);
        let kernels = Kernels { op: "deform_conv2d", channels, groups, size, bias: self.bias, initializer: &self.initializer };
        assert!(
            self.offset_groups > 0 && channels[0].is_multiple_of(self.offset_groups),
            "deform_conv2d: {} input channels are no multiple of {} offset groups",
            channels[0],
            self.offset_groups
        );
        let (weight, bias) = kernels.init(device);
        DeformConv2d {
            weight,
            bias,
            stride: self.stride,
            kernel_size: self.kernel_size,
            dilation: self.dilation,
            weight_groups: self.weight_groups,
            offset_groups: self.offset_groups,
            padding: self.padding.clone(),
        }
    }
}

impl DeformConv2d {
    /// Convolves `[batch, channels, height, width]`, sampled with offsets
    /// `[batch, offset groups · kernel elements · 2, output height, output width]` and, if given, weights
    /// `[batch, offset groups · kernel elements, output height, output width]`.
    #[track_caller]
    pub fn forward(&self, input: Tensor<4>, offset: Tensor<4>, mask: Option<Tensor<4>>) -> Tensor<4> {
        let windows = windows(&input.dims(), self.kernel_size, self.stride, self.dilation);
        let pairs = self.padding.pairs(windows);
        let even = pairs.map(|(before, after)| before.min(after));
        // The operation pads both sides alike; beyond the input it samples zeros, so that what one side has more can be there already.
        let input = if pairs.iter().all(|(before, after)| before == after) {
            input
        } else {
            let more = |axis: usize| (pairs[axis].0 - even[axis], pairs[axis].1 - even[axis]);
            input.pad([more(0), more(1)], 0.0f32)
        };
        let options = DeformConvOptions::new(self.stride, even, self.dilation, self.weight_groups, self.offset_groups);
        let bias = self.bias.as_ref().map(Param::val);
        module::deform_conv2d(input, offset, self.weight.val(), mask, bias, options)
    }
}

inline_display!(DeformConv2d, layer, content => {
    let shape = layer.weight.lazy_shape();
    content
        .add("ch_in", &(shape[1] * layer.weight_groups))
        .add("ch_out", &shape[0])
        .add_debug_attribute("stride", &layer.stride)
        .add_debug_attribute("kernel_size", &layer.kernel_size)
        .add_debug_attribute("dilation", &layer.dilation)
        .add("weight_groups", &layer.weight_groups)
        .add("offset_groups", &layer.offset_groups)
        .add_debug_attribute("padding", &layer.padding)
});
