//! Training, validation, clones and records of whole models.

use kiln_module::module::{Module, ParamGroup};
use kiln_nn::conv::{Conv2d, Conv2dConfig};
use kiln_nn::{BatchNorm, BatchNormConfig, Dropout, DropoutConfig, Linear, LinearConfig, Relu};
use kiln_tensor::{Device, Distribution, Tensor};

#[derive(Module, Debug)]
struct Net {
    conv: Conv2d,
    norm: BatchNorm,
    dropout: Dropout,
    activation: Relu,
    head: Linear,
}

impl Net {
    fn new(device: &Device) -> Self {
        Self {
            conv: Conv2dConfig::new([1, 4], [3, 3]).init(device),
            norm: BatchNormConfig::new(4).init(device),
            dropout: DropoutConfig::new(0.5).init(),
            activation: Relu::new(),
            head: LinearConfig::new(4 * 4 * 4, 3).init(device),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = self.activation.forward(self.norm.forward(self.conv.forward(x)));
        self.head.forward(self.dropout.forward(x.flatten(1, 3)))
    }
}

fn images(device: &Device) -> Tensor<4> {
    Tensor::random([2, 1, 6, 6], Distribution::Normal(0.0, 1.0), device)
}

#[test]
fn every_trained_parameter_gets_a_gradient() {
    let device = Device::default().autodiff();
    let net = Net::new(&device);
    let gradients = net.forward(images(&device)).square().sum().backward();
    assert!(net.conv.weight.grad(&gradients).is_some());
    assert!(net.norm.gamma.grad(&gradients).is_some());
    assert!(net.norm.beta.grad(&gradients).is_some());
    assert!(net.head.weight.grad(&gradients).is_some());
    assert!(net.head.bias.as_ref().unwrap().grad(&gradients).is_some());
}

#[test]
fn validation_is_repeatable_and_tracks_nothing() {
    let device = Device::default().autodiff();
    let net = Net::new(&device);
    let x = images(&device.clone().without_autodiff());
    let valid = net.valid();
    let first = valid.forward(x.clone());
    assert!(!first.is_autodiff());
    let again = valid.valid().no_grad().forward(x.clone()).into_data();
    again.assert_eq(&first.to_data(), true);
    // And back: training again tracks, with the same parameters trained.
    let trained = valid.train();
    assert!(trained.conv.weight.is_require_grad());
    assert!(trained.dropout.training.is_enabled());
    assert!(trained.forward(images(&device)).is_autodiff());
}

#[test]
fn frozen_parameters_stay_frozen_through_validation() {
    let device = Device::default().autodiff();
    let net = Net::new(&device).freeze_group(ParamGroup::from_path("conv"));
    let net = net.valid().train();
    assert!(!net.conv.weight.is_require_grad());
    assert!(net.head.weight.is_require_grad());
    let net = net.unfreeze();
    assert!(net.conv.weight.is_require_grad());
    let net = net.no_grad();
    assert!(!net.head.weight.is_require_grad());
    assert!(net.dropout.training.is_enabled(), "no_grad leaves flags alone");
    assert!(!net.freeze().dropout.training.is_enabled());
}

#[test]
fn clones_of_uninitialised_layers_share_their_values() {
    let device = Device::default();
    let layer = LinearConfig::new(3, 3).init(&device);
    let clone = layer.clone();
    assert!(!layer.weight.is_initialized());
    let first = clone.weight.val().into_data();
    assert!(layer.weight.is_initialized());
    layer.weight.val().into_data().assert_eq(&first, true);
}

#[test]
fn a_record_restores_every_value() {
    let device = Device::default();
    let net = Net::new(&device);
    net.norm.running_mean.update(Tensor::from_floats([1.0, 2.0, 3.0, 4.0], &device));
    let x = images(&device);
    let expected = net.forward(x.clone()).into_data();
    let bytes = net.into_record().into_bytes().unwrap();
    let record = kiln_module::record::ModuleRecord::from_bytes(bytes).unwrap();
    assert_eq!(record.len(), 8);
    let loaded = Net::new(&device).load_record(record);
    loaded.forward(x).into_data().assert_eq(&expected, true);
}

#[test]
fn parameters_are_counted_with_running_statistics() {
    let net = Net::new(&Device::default());
    assert_eq!(net.num_params(), (4 * 9 + 4) + 16 + (64 * 3 + 3));
    assert_eq!(net.norm.num_params(), 16);
}

#[test]
fn a_model_prints_as_a_tree() {
    let expected = "Net {
  conv: Conv2d {ch_in: 1, ch_out: 4, stride: [1, 1], kernel_size: [3, 3], dilation: [1, 1], groups: 1, padding: Valid, params: 40}
  norm: BatchNorm {num_features: 4, momentum: 0.1, epsilon: 0.00001, params: 16}
  dropout: Dropout {prob: 0.5}
  activation: Relu
  head: Linear {d_input: 64, d_output: 3, bias: true, params: 195}
  params: 251
}";
    assert_eq!(Net::new(&Device::default()).to_string(), expected);
}

#[test]
fn forked_models_train_on_their_own() {
    let device = Device::default().autodiff();
    let net = Net::new(&device);
    let copy = net.clone().fork(&device);
    assert!(copy.head.weight.is_require_grad());
    let gradients = copy.forward(images(&device)).sum().backward();
    assert!(copy.head.weight.grad(&gradients).is_some());
    assert!(net.head.weight.grad(&gradients).is_none());
}
