//! A program written for Burn 0.22: only the dependency's line in `Cargo.toml` is another.

#[cfg(test)]
mod backends;
#[cfg(test)]
mod guide_basics;
#[cfg(test)]
mod guide_functions;
#[cfg(test)]
mod tensors;

use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::prelude::*;
use burn::tensor::activation::relu;

#[derive(Config, Debug)]
struct ModelConfig {
    inputs: usize,
    #[config(default = 16)]
    hidden: usize,
}

#[derive(Module, Debug)]
struct Model {
    first: Linear,
    second: Linear,
}

impl ModelConfig {
    fn init(&self, device: &Device) -> Model {
        Model { first: LinearConfig::new(self.inputs, self.hidden).init(device), second: LinearConfig::new(self.hidden, 1).init(device) }
    }
}

impl Model {
    fn forward(&self, input: Tensor<2>) -> Tensor<2> {
        self.second.forward(relu(self.first.forward(input)))
    }
}

/// The first and the last loss of a short training run.
fn train(steps: usize) -> (f32, f32) {
    let device = Device::flex().autodiff();
    let input = Tensor::<2>::from_data([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 0.5]], &device);
    let target = input.clone().sum_dim(1);
    let mut model = ModelConfig::new(2).with_hidden(32).init(&device);
    let mut optimizer = AdamConfig::new().init();
    let mut losses = Vec::new();
    for _ in 0..steps {
        let loss = MseLoss::new().forward(model.forward(input.clone()), target.clone(), Reduction::Mean);
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(1e-2, model, gradients);
        losses.push(loss.into_scalar::<f32>());
    }
    (losses[0], losses[steps - 1])
}

fn main() {
    let (first, last) = train(200);
    println!("loss {first:.4} at first, {last:.6} at last");
}

#[cfg(test)]
mod tests {
    use super::{ModelConfig, train};
    use burn::prelude::*;

    #[test]
    fn the_program_trains() {
        let (first, last) = train(200);
        assert!(last < first / 20.0, "the loss goes from {first} to {last}");
    }

    #[test]
    fn derives_find_the_crate_under_its_new_name() {
        let config = ModelConfig::new(3);
        assert_eq!((config.inputs, config.hidden), (3, 16));
        assert_eq!(config.init(&Device::flex()).num_params(), 3 * 16 + 16 + 16 + 1);
    }
}
