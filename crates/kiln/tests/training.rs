//! Small models learn what they can learn, and the same seed gives the same run.

use kiln::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use kiln::nn::{Linear, LinearConfig};
use kiln::optim::{AdamConfig, GradientsParams, SgdConfig};
use kiln::prelude::*;
use kiln::tensor::activation::{relu, tanh};

#[derive(Module, Debug)]
struct Net {
    hidden: Linear,
    output: Linear,
}

impl Net {
    fn new(inputs: usize, hidden: usize, outputs: usize, device: &Device) -> Self {
        Self { hidden: LinearConfig::new(inputs, hidden).init(device), output: LinearConfig::new(hidden, outputs).init(device) }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(tanh(self.hidden.forward(x)))
    }
}

fn training_device(seed: u64) -> Device {
    let device = Device::default();
    device.seed(seed);
    device.autodiff()
}

#[test]
fn exclusive_or_is_learned() {
    let device = training_device(5);
    let x = Tensor::<2>::from_data([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], &device);
    let y = Tensor::<1, Int>::from_data([0, 1, 1, 0], &device);
    let entropy = CrossEntropyLossConfig::new().init(&device);
    let mut model = Net::new(2, 16, 2, &device);
    let mut optimizer = AdamConfig::new().init();
    for _ in 0..300 {
        let loss = entropy.forward(model.forward(x.clone()), y.clone());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(2e-2, model, gradients);
    }
    let read = model.valid().forward(x.inner()).argmax(1).into_data().try_to_vec_as::<i64>().expect("numbers");
    assert_eq!(read, [0, 1, 1, 0]);
}

/// The losses of a short regression.
fn losses(seed: u64) -> Vec<f32> {
    let device = training_device(seed);
    let x = Tensor::<2>::from_data(TensorData::new((0..64).map(|i| i as f32 / 32.0 - 1.0).collect::<Vec<_>>(), [64, 1]), &device);
    let y = x.clone() * x.clone();
    let weight = Tensor::<2>::from_data(TensorData::new((0..8).map(|i| (i as f32 - 3.5) / 4.0).collect::<Vec<_>>(), [1, 8]), &device);
    let mut model = Net::new(1, 8, 1, &device);
    model.hidden.weight = kiln::module::Param::from_tensor(weight);
    model.hidden.bias = None;
    model.output.weight = kiln::module::Param::from_tensor(Tensor::zeros([8, 1], &device));
    model.output.bias = Some(kiln::module::Param::from_tensor(Tensor::zeros([1], &device)));
    let mut optimizer = SgdConfig::new().init();
    (0..50)
        .map(|_| {
            let loss = MseLoss::new().forward(model.forward(x.clone()), y.clone(), Reduction::Mean);
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            let current = std::mem::replace(&mut model, Net::new(1, 1, 1, &device));
            model = optimizer.step(0.1, current, gradients);
            loss.into_scalar::<f32>()
        })
        .collect()
}

#[test]
fn a_replayed_step_computes_what_the_first_one_did() {
    let first = losses(1);
    assert!(first[49] < first[0] * 0.6, "the loss goes from {} to {}", first[0], first[49]);
    // The second run finds every program in the cache.
    assert_eq!(first, losses(1));
}

#[test]
fn gradients_of_a_gradient_free_part_are_absent() {
    let device = training_device(2);
    let model = Net::new(3, 4, 2, &device);
    let model = Net { hidden: model.hidden.no_grad(), ..model };
    let loss = relu(model.forward(Tensor::ones([2, 3], &device))).sum();
    let gradients = GradientsParams::from_grads(loss.backward(), &model);
    assert_eq!(gradients.len(), 2);
    assert!(gradients.get::<2>(model.output.weight.id).is_some());
    assert!(gradients.get::<2>(model.hidden.weight.id).is_none());
}
