//! The gated recurrent unit.

use alloc::vec;

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module};
use kiln_tensor::{Device, Tensor};

use super::GateController;
use super::sequence::{batch_first, both, clipped, scan, zeros};
use crate::activation::{Activation, ActivationConfig};

/// Configuration of a [`Gru`].
#[derive(Config, Debug)]
pub struct GruConfig {
    /// The size of the input vectors.
    pub d_input: usize,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// Whether a bias is added.
    pub bias: bool,
    /// Whether the reset gate acts after the product with the hidden state (as in PyTorch) or before. Default: after.
    #[config(default = true)]
    pub reset_after: bool,
    /// How the linear layers start. Default: Xavier normal.
    #[config(default = Initializer::XavierNormal { gain: 1.0 })]
    pub initializer: Initializer,
    /// The activation of the gates. Default: the logistic function.
    #[config(default = ActivationConfig::Sigmoid)]
    pub gate_activation: ActivationConfig,
    /// The activation of the new state. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub hidden_activation: ActivationConfig,
    /// Keeps the hidden state within these bounds. Default: none.
    pub clip: Option<f64>,
}

/// A recurrent layer with an update gate `z` and a reset gate `r`.
///
/// `h' = (1 - z) · n + z · h` with `n = tanh(Wₙ x + r · (Uₙ h))`. Cho et al. 2014,
/// [arXiv:1406.1078](https://arxiv.org/abs/1406.1078).
///
/// ```
/// use kiln_nn::GruConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let gru = GruConfig::new(3, 4, true).init(&device);
/// assert_eq!(gru.forward(Tensor::ones([2, 5, 3], &device), None).dims(), [2, 5, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Gru {
    /// The gate `z`.
    pub update_gate: GateController,
    /// The gate `r`.
    pub reset_gate: GateController,
    /// The new state.
    pub new_gate: GateController,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// Whether the reset gate acts after the product with the hidden state.
    pub reset_after: bool,
    /// The activation of the gates.
    pub gate_activation: Activation,
    /// The activation of the new state.
    pub hidden_activation: Activation,
    /// Keeps the hidden state within these bounds.
    pub clip: Option<f64>,
}

impl GruConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> Gru {
        let gate = || {
            let start = self.initializer.clone();
            GateController::new(self.d_input, self.d_hidden, self.bias, start, device)
        };
        Gru {
            update_gate: gate(),
            reset_gate: gate(),
            new_gate: gate(),
            d_hidden: self.d_hidden,
            reset_after: self.reset_after,
            gate_activation: self.gate_activation.init(device),
            hidden_activation: self.hidden_activation.init(device),
            clip: self.clip,
        }
    }
}

impl Gru {
    /// All hidden states `[batch, length, d_hidden]` for inputs `[batch, length, d_input]`. Without a state
    /// `[batch, d_hidden]`, it starts at zero.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<Tensor<2>>) -> Tensor<3> {
        self.run(batched_input, state, false).0
    }

    #[track_caller]
    fn run(&self, input: Tensor<3>, state: Option<Tensor<2>>, reverse: bool) -> (Tensor<3>, Tensor<2>) {
        let mut hidden = match state {
            Some(state) => state,
            None => zeros([input.dims()[0], self.d_hidden], &input),
        };
        let products = [
            self.update_gate.input_transform.forward(input.clone()),
            self.reset_gate.input_transform.forward(input.clone()),
            self.new_gate.input_transform.forward(input),
        ];
        let output = scan(products, reverse, |[update, reset, new]| {
            let h = hidden.clone();
            let of_hidden = |gate: &GateController, x: Tensor<2>| gate.hidden_transform.forward(x);
            let update = update + of_hidden(&self.update_gate, h.clone());
            let update = self.gate_activation.forward(update);
            let reset = reset + of_hidden(&self.reset_gate, h.clone());
            let reset = self.gate_activation.forward(reset);
            let candidate = if self.reset_after {
                new + reset * of_hidden(&self.new_gate, h.clone())
            } else {
                new + of_hidden(&self.new_gate, reset * h.clone())
            };
            let candidate = self.hidden_activation.forward(candidate);
            // (1 - z) n + z h, with one product.
            let next = candidate.clone() + update * (h - candidate);
            hidden = clipped(next, self.clip);
            hidden.clone()
        });
        (output, hidden)
    }
}

inline_display!(Gru, layer, content => content
    .add("d_input", &layer.new_gate.input_transform.weight.lazy_shape()[0])
    .add("d_hidden", &layer.d_hidden)
    .add("bias", &layer.new_gate.input_transform.bias.is_some())
    .add("reset_after", &layer.reset_after));

/// Configuration of a [`BiGru`].
#[derive(Config, Debug)]
pub struct BiGruConfig {
    /// The size of the input vectors.
    pub d_input: usize,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// Whether a bias is added.
    pub bias: bool,
    /// Whether the reset gate acts after the product with the hidden state. Default: after.
    #[config(default = true)]
    pub reset_after: bool,
    /// How the linear layers start. Default: Xavier normal.
    #[config(default = Initializer::XavierNormal { gain: 1.0 })]
    pub initializer: Initializer,
    /// Whether the batch is the first axis, before the sequence. Default: true.
    #[config(default = true)]
    pub batch_first: bool,
    /// The activation of the gates. Default: the logistic function.
    #[config(default = ActivationConfig::Sigmoid)]
    pub gate_activation: ActivationConfig,
    /// The activation of the new state. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub hidden_activation: ActivationConfig,
    /// Keeps the hidden state within these bounds. Default: none.
    pub clip: Option<f64>,
}

/// Two [`Gru`]s, one from each end; their hidden states side by side.
///
/// ```
/// use kiln_nn::BiGruConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let gru = BiGruConfig::new(3, 4, true).init(&device);
/// let (output, state) = gru.forward(Tensor::ones([2, 5, 3], &device), None);
/// assert_eq!(output.dims(), [2, 5, 8]);
/// assert_eq!(state.dims(), [2, 2, 4]);
/// ```
#[derive(Module, Debug)]
pub struct BiGru {
    /// From the beginning.
    pub forward: Gru,
    /// From the end.
    pub reverse: Gru,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

impl BiGruConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> BiGru {
        let config = GruConfig::new(self.d_input, self.d_hidden, self.bias)
            .with_reset_after(self.reset_after)
            .with_initializer(self.initializer.clone())
            .with_gate_activation(self.gate_activation.clone())
            .with_hidden_activation(self.hidden_activation.clone())
            .with_clip(self.clip);
        BiGru { forward: config.init(device), reverse: config.init(device), d_hidden: self.d_hidden, batch_first: self.batch_first }
    }
}

impl BiGru {
    /// All hidden states `[batch, length, 2 · d_hidden]` for inputs `[batch, length, d_input]` (first axes swapped unless
    /// `batch_first`), and the last states `[2, batch, d_hidden]`.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<Tensor<3>>) -> (Tensor<3>, Tensor<3>) {
        let input = batch_first(batched_input, self.batch_first);
        let [first, second] = match state {
            Some(state) => both(state).map(Some),
            None => [None, None],
        };
        let (ahead, first) = self.forward.run(input.clone(), first, false);
        let (back, second) = self.reverse.run(input, second, true);
        let output = Tensor::cat(vec![ahead, back], 2);
        let state = Tensor::stack(vec![first, second], 0);
        (batch_first(output, self.batch_first), state)
    }
}
