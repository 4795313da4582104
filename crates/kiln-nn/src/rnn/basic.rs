//! The basic recurrent layer.

use alloc::vec;

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module};
use kiln_tensor::{Device, Tensor};

use super::GateController;
use super::sequence::{batch_first, both, clipped, scan, zeros};
use crate::activation::{Activation, ActivationConfig};

/// The state of a basic recurrent layer.
#[derive(Clone, Debug)]
pub struct RnnState<const D: usize> {
    /// The hidden state, `[batch, d_hidden]`, with a leading `2` for both directions.
    pub hidden: Tensor<D>,
}

impl<const D: usize> RnnState<D> {
    /// A state.
    pub fn new(hidden: Tensor<D>) -> Self {
        Self { hidden }
    }
}

/// Configuration of an [`Rnn`].
#[derive(Config, Debug)]
pub struct RnnConfig {
    /// The size of the input vectors.
    pub d_input: usize,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// Whether a bias is added.
    pub bias: bool,
    /// How the linear layers start. Default: Xavier normal.
    #[config(default = Initializer::XavierNormal { gain: 1.0 })]
    pub initializer: Initializer,
    /// Whether the batch is the first axis, before the sequence. Default: true.
    #[config(default = true)]
    pub batch_first: bool,
    /// Whether the sequence is read from its end. Default: false.
    #[config(default = false)]
    pub reverse: bool,
    /// Keeps the hidden state within these bounds. Default: none.
    pub clip: Option<f64>,
    /// The activation. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub hidden_activation: ActivationConfig,
}

/// `h' = tanh(W x + U h)`, along a sequence.
///
/// ```
/// use kiln_nn::RnnConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let rnn = RnnConfig::new(3, 4, true).init(&device);
/// let (output, state) = rnn.forward(Tensor::ones([2, 5, 3], &device), None);
/// assert_eq!(output.dims(), [2, 5, 4]);
/// assert_eq!(state.hidden.dims(), [2, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Rnn {
    /// The linear layers.
    pub gate: GateController,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
    /// Whether the sequence is read from its end.
    pub reverse: bool,
    /// Keeps the hidden state within these bounds.
    pub clip: Option<f64>,
    /// The activation.
    pub hidden_activation: Activation,
}

impl RnnConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> Rnn {
        let start = self.initializer.clone();
        Rnn {
            gate: GateController::new(self.d_input, self.d_hidden, self.bias, start, device),
            d_hidden: self.d_hidden,
            batch_first: self.batch_first,
            reverse: self.reverse,
            clip: self.clip,
            hidden_activation: self.hidden_activation.init(device),
        }
    }
}

impl Rnn {
    /// All hidden states `[batch, length, d_hidden]` for inputs `[batch, length, d_input]` (first axes swapped unless
    /// `batch_first`), and the last state. Without a state, it starts at zero.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<RnnState<2>>) -> (Tensor<3>, RnnState<2>) {
        let input = batch_first(batched_input, self.batch_first);
        let mut hidden = match state {
            Some(state) => state.hidden,
            None => zeros([input.dims()[0], self.d_hidden], &input),
        };
        let products = self.gate.input_transform.forward(input);
        let output = scan([products], self.reverse, |[product]| {
            let sum = product + self.gate.hidden_transform.forward(hidden.clone());
            hidden = clipped(self.hidden_activation.forward(sum), self.clip);
            hidden.clone()
        });
        (batch_first(output, self.batch_first), RnnState::new(hidden))
    }
}

inline_display!(Rnn, layer, content => content
    .add("d_input", &layer.gate.input_transform.weight.lazy_shape()[0])
    .add("d_hidden", &layer.d_hidden)
    .add("bias", &layer.gate.input_transform.bias.is_some())
    .add("batch_first", &layer.batch_first)
    .add("reverse", &layer.reverse)
    .add("clip", &layer.clip));

/// Configuration of a [`BiRnn`].
#[derive(Config, Debug)]
pub struct BiRnnConfig {
    /// The size of the input vectors.
    pub d_input: usize,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// Whether a bias is added.
    pub bias: bool,
    /// How the linear layers start. Default: Xavier normal.
    #[config(default = Initializer::XavierNormal { gain: 1.0 })]
    pub initializer: Initializer,
    /// Whether the batch is the first axis, before the sequence. Default: true.
    #[config(default = true)]
    pub batch_first: bool,
    /// Keeps the hidden state within these bounds. Default: none.
    pub clip: Option<f64>,
    /// The activation. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub hidden_activation: ActivationConfig,
}

/// Two [`Rnn`]s, one from each end; their hidden states side by side.
///
/// ```
/// use kiln_nn::BiRnnConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let rnn = BiRnnConfig::new(3, 4, true).init(&device);
/// let (output, state) = rnn.forward(Tensor::ones([2, 5, 3], &device), None);
/// assert_eq!(output.dims(), [2, 5, 8]);
/// assert_eq!(state.hidden.dims(), [2, 2, 4]);
/// ```
#[derive(Module, Debug)]
pub struct BiRnn {
    /// From the beginning.
    pub forward: Rnn,
    /// From the end.
    pub reverse: Rnn,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

impl BiRnnConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> BiRnn {
        let config = RnnConfig::new(self.d_input, self.d_hidden, self.bias)
            .with_initializer(self.initializer.clone())
            .with_hidden_activation(self.hidden_activation.clone())
            .with_clip(self.clip);
        BiRnn {
            forward: config.clone().init(device),
            reverse: config.with_reverse(true).init(device),
            d_hidden: self.d_hidden,
            batch_first: self.batch_first,
        }
    }
}

impl BiRnn {
    /// All hidden states `[batch, length, 2 · d_hidden]` for inputs `[batch, length, d_input]` (first axes swapped unless
    /// `batch_first`), and the last states `[2, batch, d_hidden]`.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<RnnState<3>>) -> (Tensor<3>, RnnState<3>) {
        let input = batch_first(batched_input, self.batch_first);
        let [first, second] = match state {
            Some(state) => both(state.hidden).map(|hidden| Some(RnnState::new(hidden))),
            None => [None, None],
        };
        let (ahead, first) = self.forward.forward(input.clone(), first);
        let (back, second) = self.reverse.forward(input, second);
        let output = Tensor::cat(vec![ahead, back], 2);
        let hidden = Tensor::stack(vec![first.hidden, second.hidden], 0);
        (batch_first(output, self.batch_first), RnnState::new(hidden))
    }
}
