//! ResNet-50 for 1000 classes: weights in f32, convolutions in bf16.

use kiln::module::Module;
use kiln::nn::conv::{Conv2d, Conv2dConfig};
use kiln::nn::pool::{MaxPool2d, MaxPool2dConfig};
use kiln::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use kiln::tensor::activation::relu;
use kiln::tensor::module::conv2d;
use kiln::tensor::ops::ConvOptions;
use kiln::tensor::{DType, Device, Tensor};

/// A convolution without bias, and its norm.
#[derive(Module, Debug)]
struct Layer {
    conv: Conv2d,
    norm: BatchNorm,
    stride: usize,
    padding: usize,
}

impl Layer {
    fn new(channels: [usize; 2], kernel: usize, stride: usize, device: &Device) -> Self {
        let conv = Conv2dConfig::new(channels, [kernel, kernel]).with_bias(false).init(device);
        Self { conv, norm: BatchNormConfig::new(channels[1]).init(device), stride, padding: kernel / 2 }
    }

    /// bf16 in and out; the norm is computed in f32.
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let options = ConvOptions::new([self.stride; 2], [self.padding; 2], [1; 2], 1);
        let y = conv2d(x, self.conv.weight.val().cast(DType::BF16), None, options);
        self.norm.forward(y.cast(DType::F32)).cast(DType::BF16)
    }
}

#[derive(Module, Debug)]
struct Bottleneck {
    a: Layer,
    b: Layer,
    c: Layer,
    shortcut: Option<Layer>,
}

impl Bottleneck {
    fn new(from: usize, inner: usize, stride: usize, device: &Device) -> Self {
        let to = 4 * inner;
        Self {
            a: Layer::new([from, inner], 1, 1, device),
            b: Layer::new([inner, inner], 3, stride, device),
            c: Layer::new([inner, to], 1, 1, device),
            shortcut: (stride != 1 || from != to).then(|| Layer::new([from, to], 1, stride, device)),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let y = relu(self.b.forward(relu(self.a.forward(x.clone()))));
        let y = self.c.forward(y);
        let x = match &self.shortcut {
            Some(s) => s.forward(x),
            None => x,
        };
        relu(y + x)
    }
}

/// The model.
#[derive(Module, Debug)]
pub struct ResNet50 {
    stem: Layer,
    pool: MaxPool2d,
    body: Vec<Bottleneck>,
    classes: Linear,
}

impl ResNet50 {
    /// A model with random weights.
    pub fn new(device: &Device) -> Self {
        let mut body = Vec::new();
        let mut from = 64;
        for (inner, count, stride) in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)] {
            for n in 0..count {
                body.push(Bottleneck::new(from, inner, if n == 0 { stride } else { 1 }, device));
                from = 4 * inner;
            }
        }
        Self {
            stem: Layer::new([3, 64], 7, 2, device),
            pool: MaxPool2dConfig::new([3, 3]).with_strides([2, 2]).with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(),
            body,
            classes: LinearConfig::new(2048, 1000).init(device),
        }
    }

    /// `[batch, 3, height, width]` images in bf16 to `[batch, 1000]` logits in f32.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = self.pool.forward(relu(self.stem.forward(images)));
        for block in &self.body {
            x = block.forward(x);
        }
        let [n, c, h, w] = x.dims();
        self.classes.forward(x.cast(DType::F32).reshape([n, c, h * w]).mean_dim(2).reshape([n, c]))
    }
}
