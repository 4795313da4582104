//! ResNet-18 for 1000 classes.

use kiln::module::Module;
use kiln::nn::conv::{Conv2d, Conv2dConfig};
use kiln::nn::pool::{MaxPool2d, MaxPool2dConfig};
use kiln::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use kiln::tensor::activation::relu;
use kiln::tensor::{Device, Tensor};

fn conv(channels: [usize; 2], kernel: usize, stride: usize, device: &Device) -> Conv2d {
    let p = kernel / 2;
    Conv2dConfig::new(channels, [kernel, kernel])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(p, p, p, p))
        .with_bias(false)
        .init(device)
}

#[derive(Module, Debug)]
struct Shortcut {
    conv: Conv2d,
    norm: BatchNorm,
}

#[derive(Module, Debug)]
struct Basic {
    c1: Conv2d,
    b1: BatchNorm,
    c2: Conv2d,
    b2: BatchNorm,
    shortcut: Option<Shortcut>,
}

impl Basic {
    fn new(from: usize, to: usize, stride: usize, device: &Device) -> Self {
        let norm = || BatchNormConfig::new(to).init(device);
        let shortcut = (stride != 1 || from != to).then(|| Shortcut { conv: conv([from, to], 1, stride, device), norm: norm() });
        Self { c1: conv([from, to], 3, stride, device), b1: norm(), c2: conv([to, to], 3, 1, device), b2: norm(), shortcut }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let y = relu(self.b1.forward(self.c1.forward(x.clone())));
        let y = self.b2.forward(self.c2.forward(y));
        let x = match &self.shortcut {
            Some(s) => s.norm.forward(s.conv.forward(x)),
            None => x,
        };
        relu(y + x)
    }
}

/// The model.
#[derive(Module, Debug)]
pub struct ResNet18 {
    stem: Conv2d,
    norm: BatchNorm,
    pool: MaxPool2d,
    body: Vec<Basic>,
    classes: Linear,
}

impl ResNet18 {
    /// A model with random weights.
    pub fn new(device: &Device) -> Self {
        let mut body = Vec::new();
        for (from, to, stride) in [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)] {
            body.push(Basic::new(from, to, stride, device));
            body.push(Basic::new(to, to, 1, device));
        }
        Self {
            stem: conv([3, 64], 7, 2, device),
            norm: BatchNormConfig::new(64).init(device),
            pool: MaxPool2dConfig::new([3, 3]).with_strides([2, 2]).with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init(),
            body,
            classes: LinearConfig::new(512, 1000).init(device),
        }
    }

    /// `[batch, 3, height, width]` images to `[batch, 1000]` logits.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = self.pool.forward(relu(self.norm.forward(self.stem.forward(images))));
        for block in &self.body {
            x = block.forward(x);
        }
        let [n, c, h, w] = x.dims();
        self.classes.forward(x.reshape([n, c, h * w]).mean_dim(2).reshape([n, c]))
    }
}
