//! The model: two convolutions with batch norm and pooling, then two linear layers.

use kiln::nn::conv::{Conv2d, Conv2dConfig};
use kiln::nn::pool::{MaxPool2d, MaxPool2dConfig};
use kiln::nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig};
use kiln::prelude::*;
use kiln::tensor::activation::relu;

/// Reads a digit from an image of 28 × 28 pixels.
#[derive(Module, Debug)]
pub struct Model {
    conv1: Conv2d,
    norm1: BatchNorm,
    conv2: Conv2d,
    norm2: BatchNorm,
    pool: MaxPool2d,
    hidden: Linear,
    dropout: Dropout,
    output: Linear,
}

impl Model {
    /// A model with random weights.
    pub fn new(device: &Device) -> Self {
        Self {
            conv1: Conv2dConfig::new([1, 32], [3, 3]).init(device),
            norm1: BatchNormConfig::new(32).init(device),
            conv2: Conv2dConfig::new([32, 64], [3, 3]).init(device),
            norm2: BatchNormConfig::new(64).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            hidden: LinearConfig::new(64 * 5 * 5, 128).init(device),
            dropout: DropoutConfig::new(0.3).init(),
            output: LinearConfig::new(128, 10).init(device),
        }
    }

    /// `[batch, 1, 28, 28]` images to `[batch, 10]` logits.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = self.pool.forward(relu(self.norm1.forward(self.conv1.forward(images))));
        let x = self.pool.forward(relu(self.norm2.forward(self.conv2.forward(x))));
        let x = relu(self.hidden.forward(x.flatten::<2>(1, 3)));
        self.output.forward(self.dropout.forward(x))
    }
}
