//! Long short-term memory.

use alloc::vec;
use alloc::vec::Vec;

use kiln_module::config::Config;
use kiln_module::module::{Initializer, Module};
use kiln_tensor::{AsIndex, Device, Shape, SliceArg, Tensor};

use super::GateController;
use super::sequence::{batch_first, both, clipped, scan, zeros};
use crate::activation::{Activation, ActivationConfig};

/// The state of a long short-term memory.
#[derive(Clone, Debug)]
pub struct LstmState<const D: usize> {
    /// The cell state, `[batch, d_hidden]`, with a leading `2` for both directions.
    pub cell: Tensor<D>,
    /// The hidden state, of the same shape.
    pub hidden: Tensor<D>,
}

impl<const D: usize> LstmState<D> {
    /// A state.
    pub fn new(cell: Tensor<D>, hidden: Tensor<D>) -> Self {
        Self { cell, hidden }
    }

    /// A state of zeros.
    pub fn initial<S>(shape: S, device: &Device) -> Self
    where
        S: Into<Shape>,
    {
        let zeros = Tensor::zeros(shape, device);
        Self::new(zeros.clone(), zeros)
    }

    /// The shape of either part.
    pub fn shape(&self) -> Shape {
        self.cell.shape()
    }

    /// The device of the state.
    pub fn device(&self) -> Device {
        self.cell.device()
    }

    /// Cell and hidden state.
    pub fn unpack(self) -> (Tensor<D>, Tensor<D>) {
        (self.cell, self.hidden)
    }

    /// The state with both parts mapped.
    pub fn map_state<const D2: usize, F>(self, f: F) -> LstmState<D2>
    where
        F: Fn(Tensor<D>) -> Tensor<D2>,
    {
        LstmState::new(f(self.cell), f(self.hidden))
    }

    /// A slice of both parts.
    #[track_caller]
    pub fn slice<S>(self, slices: S) -> Self
    where
        S: SliceArg,
    {
        let slices = slices.into_slices(&self.cell.shape());
        self.map_state(|tensor| tensor.slice(slices.as_slice()))
    }

    /// Both parts without the axis `dim`, which has size one.
    #[track_caller]
    pub fn squeeze_dim<const D2: usize>(self, dim: impl AsIndex) -> LstmState<D2> {
        self.map_state(|tensor| tensor.squeeze_dim(dim))
    }

    /// Both parts with an axis of size one at `dim`.
    #[track_caller]
    pub fn unsqueeze_dim<const D2: usize>(self, dim: impl AsIndex) -> LstmState<D2> {
        self.map_state(|tensor| tensor.unsqueeze_dim(dim))
    }

    /// States side by side along a new axis.
    #[track_caller]
    pub fn stack<const D2: usize>(states: Vec<LstmState<D>>, dim: impl AsIndex) -> LstmState<D2> {
        let (cells, hidden) = states.into_iter().map(LstmState::unpack).unzip();
        LstmState::new(Tensor::stack(cells, dim), Tensor::stack(hidden, dim))
    }

    /// At most `n` parts along an axis.
    #[track_caller]
    pub fn chunk(self, n: usize, dim: impl AsIndex) -> Vec<LstmState<D>> {
        let cells = self.cell.chunk(n, dim);
        let hidden = self.hidden.chunk(n, dim);
        cells.into_iter().zip(hidden).map(|(cell, hidden)| LstmState::new(cell, hidden)).collect()
    }
}

/// A state that starts at zero if it is not given.
pub trait OptionalInitialLstmState<const D: usize> {
    /// The state, or zeros of the given shape.
    fn unwrap_or_initial<S>(self, shape: S, device: &Device) -> LstmState<D>
    where
        S: Into<Shape>;
}

impl<const D: usize> OptionalInitialLstmState<D> for Option<LstmState<D>> {
    fn unwrap_or_initial<S>(self, shape: S, device: &Device) -> LstmState<D>
    where
        S: Into<Shape>,
    {
        self.unwrap_or_else(|| LstmState::initial(shape, device))
    }
}

/// Configuration of an [`Lstm`].
#[derive(Config, Debug)]
pub struct LstmConfig {
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
    /// Keeps the cell state within these bounds. Default: none.
    pub clip: Option<f64>,
    /// Whether the forget gate is one minus the input gate, without parameters of its own. Default: false.
    #[config(default = false)]
    pub input_forget: bool,
    /// The activation of the gates. Default: the logistic function.
    #[config(default = ActivationConfig::Sigmoid)]
    pub gate_activation: ActivationConfig,
    /// The activation of the new cell value. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub cell_activation: ActivationConfig,
    /// The activation of the cell state on its way out. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub hidden_activation: ActivationConfig,
}

/// A recurrent layer with a cell state, and gates for input `i`, forgetting `f` and output `o`.
///
/// `c' = f · c + i · tanh(W x + U h)`, `h' = o · tanh(c')`. Hochreiter and Schmidhuber 1997, "Long Short-Term Memory".
///
/// ```
/// use kiln_nn::LstmConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let lstm = LstmConfig::new(3, 4, true).init(&device);
/// let (output, state) = lstm.forward(Tensor::ones([2, 5, 3], &device), None);
/// assert_eq!(output.dims(), [2, 5, 4]);
/// assert_eq!(state.cell.dims(), [2, 4]);
/// ```
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Lstm {
    /// The gate `i`.
    pub input_gate: GateController,
    /// The gate `f`; none if it is one minus `i`.
    pub forget_gate: Option<GateController>,
    /// The gate `o`.
    pub output_gate: GateController,
    /// The new cell value.
    pub cell_gate: GateController,
    /// The size of the hidden state.
    pub d_hidden: usize,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
    /// Whether the sequence is read from its end.
    pub reverse: bool,
    /// Keeps the cell state within these bounds.
    pub clip: Option<f64>,
    /// Whether the forget gate is one minus the input gate.
    pub input_forget: bool,
    /// The activation of the gates.
    pub gate_activation: Activation,
    /// The activation of the new cell value.
    pub cell_activation: Activation,
    /// The activation of the cell state on its way out.
    pub hidden_activation: Activation,
}

impl LstmConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> Lstm {
        let gate = || {
            let start = self.initializer.clone();
            GateController::new(self.d_input, self.d_hidden, self.bias, start, device)
        };
        Lstm {
            input_gate: gate(),
            forget_gate: (!self.input_forget).then(gate),
            output_gate: gate(),
            cell_gate: gate(),
            d_hidden: self.d_hidden,
            batch_first: self.batch_first,
            reverse: self.reverse,
            clip: self.clip,
            input_forget: self.input_forget,
            gate_activation: self.gate_activation.init(device),
            cell_activation: self.cell_activation.init(device),
            hidden_activation: self.hidden_activation.init(device),
        }
    }
}

/// The products of the inputs with a gate's layers.
struct Products {
    input: Tensor<2>,
    forget: Option<Tensor<2>>,
    output: Tensor<2>,
    cell: Tensor<2>,
}

impl Lstm {
    /// All hidden states `[batch, length, d_hidden]` for inputs `[batch, length, d_input]` (first axes swapped unless
    /// `batch_first`), and the last state. Without a state, it starts at zero.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<LstmState<2>>) -> (Tensor<3>, LstmState<2>) {
        let x = batch_first(batched_input, self.batch_first);
        let mut state = match state {
            Some(state) => state,
            None => {
                let zero = zeros([x.dims()[0], self.d_hidden], &x);
                LstmState::new(zero.clone(), zero)
            }
        };
        // One product a gate for the whole sequence.
        let input = self.input_gate.input_transform.forward(x.clone());
        let output = self.output_gate.input_transform.forward(x.clone());
        let cell = self.cell_gate.input_transform.forward(x.clone());
        let hidden = match &self.forget_gate {
            Some(gate) => {
                let forget = gate.input_transform.forward(x);
                let products = [input, output, cell, forget];
                scan(products, self.reverse, |[input, output, cell, forget]| {
                    let forget = Some(forget);
                    self.step(Products { input, forget, output, cell }, &mut state)
                })
            }
            None => scan([input, output, cell], self.reverse, |[input, output, cell]| {
                let forget = None;
                self.step(Products { input, forget, output, cell }, &mut state)
            }),
        };
        (batch_first(hidden, self.batch_first), state)
    }

    /// The same from an iterator of positions and their inputs `[batch, 1, d_input]`; the results are
    /// `[batch, seq_length, d_hidden]`, each at its position.
    ///
    /// # Panics
    ///
    /// When a position is not below `seq_length`, or one is left out.
    #[track_caller]
    pub fn forward_iter<I: Iterator<Item = (usize, Tensor<3>)>>(
        &self,
        input_timestep_iter: I,
        state: Option<LstmState<2>>,
        batch_size: usize,
        seq_length: usize,
        device: &Device,
    ) -> (Tensor<3>, LstmState<2>) {
        let mut state = state.unwrap_or_initial([batch_size, self.d_hidden], device);
        let mut outputs: Vec<Option<Tensor<2>>> = vec![None; seq_length];
        for (position, x) in input_timestep_iter {
            assert!(position < seq_length, "lstm: position {position} is beyond the sequence of length {seq_length}");
            let x = x.squeeze_dim::<2>(1);
            let products = Products {
                input: self.input_gate.input_transform.forward(x.clone()),
                forget: self.forget_gate.as_ref().map(|gate| gate.input_transform.forward(x.clone())),
                output: self.output_gate.input_transform.forward(x.clone()),
                cell: self.cell_gate.input_transform.forward(x),
            };
            outputs[position] = Some(self.step(products, &mut state));
        }
        let outputs = outputs
            .into_iter()
            .enumerate()
            .map(|(position, output)| match output {
                Some(output) => output,
                None => panic!("lstm: position {position} was left out"),
            })
            .collect();
        (Tensor::stack(outputs, 1), state)
    }

    fn step(&self, products: Products, state: &mut LstmState<2>) -> Tensor<2> {
        let hidden = &state.hidden;
        let gated = |product: Tensor<2>, gate: &GateController| product + gate.hidden_transform.forward(hidden.clone());
        let input = self.gate_activation.forward(gated(products.input, &self.input_gate));
        let forget = match (products.forget, &self.forget_gate) {
            (Some(product), Some(gate)) => self.gate_activation.forward(gated(product, gate)),
            _ => 1.0 - input.clone(),
        };
        let output = self.gate_activation.forward(gated(products.output, &self.output_gate));
        let value = self.cell_activation.forward(gated(products.cell, &self.cell_gate));
        let cell = clipped(forget * state.cell.clone() + input * value, self.clip);
        state.hidden = output * self.hidden_activation.forward(cell.clone());
        state.cell = cell;
        state.hidden.clone()
    }
}

inline_display!(Lstm, layer, content => content
    .add("d_input", &layer.input_gate.input_transform.weight.lazy_shape()[0])
    .add("d_hidden", &layer.d_hidden)
    .add("bias", &layer.input_gate.input_transform.bias.is_some())
    .add("batch_first", &layer.batch_first)
    .add("reverse", &layer.reverse)
    .add("clip", &layer.clip)
    .add("input_forget", &layer.input_forget));

/// Configuration of a [`BiLstm`].
#[derive(Config, Debug)]
pub struct BiLstmConfig {
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
    /// Keeps the cell state within these bounds. Default: none.
    pub clip: Option<f64>,
    /// Whether the forget gate is one minus the input gate. Default: false.
    #[config(default = false)]
    pub input_forget: bool,
    /// The activation of the gates. Default: the logistic function.
    #[config(default = ActivationConfig::Sigmoid)]
    pub gate_activation: ActivationConfig,
    /// The activation of the new cell value. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub cell_activation: ActivationConfig,
    /// The activation of the cell state on its way out. Default: the hyperbolic tangent.
    #[config(default = ActivationConfig::Tanh)]
    pub hidden_activation: ActivationConfig,
}

/// Two [`Lstm`]s, one from each end; their hidden states side by side.
///
/// ```
/// use kiln_nn::BiLstmConfig;
/// use kiln_tensor::{Device, Tensor};
///
/// let device = Device::default();
/// let lstm = BiLstmConfig::new(3, 4, true).init(&device);
/// let (output, state) = lstm.forward(Tensor::ones([2, 5, 3], &device), None);
/// assert_eq!(output.dims(), [2, 5, 8]);
/// assert_eq!(state.hidden.dims(), [2, 2, 4]);
/// ```
#[derive(Module, Debug)]
pub struct BiLstm {
    /// From the beginning.
    pub forward: Lstm,
    /// From the end.
    pub reverse: Lstm,
    /// The size of the hidden state of each direction.
    pub d_hidden: usize,
    /// Whether the batch is the first axis.
    pub batch_first: bool,
}

impl BiLstmConfig {
    /// A layer with parameters on `device`.
    pub fn init(&self, device: &Device) -> BiLstm {
        let config = LstmConfig::new(self.d_input, self.d_hidden, self.bias)
            .with_initializer(self.initializer.clone())
            .with_input_forget(self.input_forget)
            .with_gate_activation(self.gate_activation.clone())
            .with_cell_activation(self.cell_activation.clone())
            .with_hidden_activation(self.hidden_activation.clone())
            .with_clip(self.clip);
        BiLstm {
            forward: config.clone().init(device),
            reverse: config.with_reverse(true).init(device),
            d_hidden: self.d_hidden,
            batch_first: self.batch_first,
        }
    }
}

impl BiLstm {
    /// All hidden states `[batch, length, 2 · d_hidden]` for inputs `[batch, length, d_input]` (first axes swapped unless
    /// `batch_first`), and the last states `[2, batch, d_hidden]`.
    #[track_caller]
    pub fn forward(&self, batched_input: Tensor<3>, state: Option<LstmState<3>>) -> (Tensor<3>, LstmState<3>) {
        let input = batch_first(batched_input, self.batch_first);
        let (first, second) = match state {
            Some(state) => {
                let [cell_1, cell_2] = both(state.cell);
                let [hidden_1, hidden_2] = both(state.hidden);
                (Some(LstmState::new(cell_1, hidden_1)), Some(LstmState::new(cell_2, hidden_2)))
            }
            None => (None, None),
        };
        let (ahead, first) = self.forward.forward(input.clone(), first);
        let (back, second) = self.reverse.forward(input, second);
        let output = Tensor::cat(vec![ahead, back], 2);
        let state = LstmState::stack(vec![first, second], 0);
        (batch_first(output, self.batch_first), state)
    }
}
