//! The linear part of a recurrent gate.

use kiln_module::module::{Initializer, Module};
use kiln_tensor::{Device, Tensor};

use crate::{Linear, LinearConfig};

/// Two linear layers: of the input and of the hidden state.
#[derive(Module, Debug)]
pub struct GateController {
    /// The layer of the input.
    pub input_transform: Linear,
    /// The layer of the hidden state.
    pub hidden_transform: Linear,
}

impl GateController {
    /// A gate for inputs of size `d_input` and states of size `d_output`.
    pub fn new(d_input: usize, d_output: usize, bias: bool, initializer: Initializer, device: &Device) -> Self {
        let linear = |size| LinearConfig::new(size, d_output).with_bias(bias).with_initializer(initializer.clone()).init(device);
        Self { input_transform: linear(d_input), hidden_transform: linear(d_output) }
    }

    /// The sum of both layers.
    #[track_caller]
    pub fn gate_product(&self, input: Tensor<2>, hidden: Tensor<2>) -> Tensor<2> {
        self.input_transform.forward(input) + self.hidden_transform.forward(hidden)
    }
}
