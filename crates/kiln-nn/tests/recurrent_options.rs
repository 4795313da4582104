//! Options of recurrent layers: both orders of axes, directions, bounds, activations, gates without bias and gates left out.
//!
//! The values are PyTorch's where it has the option, and those of a formula that was compared with it elsewhere.

use kiln_nn::activation::{ActivationConfig, HardSigmoidConfig};
use kiln_nn::{BiGruConfig, BiLstmConfig, BiRnnConfig, GruConfig, LstmConfig, LstmState, RnnConfig, RnnState};
use kiln_tensor::{Gradients, Tensor};

use crate::golden::Case;
use crate::graded::{backward, cases, device, leaf, same, same_gradient};
use crate::paths::{filled, same_gradients};

const FILE: &str = "recurrent_options.txt";

fn activation(case: &Case, name: &str) -> ActivationConfig {
    match case.size(name) {
        0 => ActivationConfig::Sigmoid,
        1 => ActivationConfig::HardSigmoid(HardSigmoidConfig::new()),
        2 => ActivationConfig::Tanh,
        3 => ActivationConfig::Relu,
        _ => ActivationConfig::Softsign,
    }
}

/// Input and initial state of a case.
struct Start {
    x: Tensor<3>,
    h0: Tensor<3>,
    clip: Option<f64>,
    reverse: bool,
    both: bool,
    bias: bool,
    batch_first: bool,
}

impl Start {
    fn of(case: &Case) -> Self {
        let clip = case.number("clip");
        Self {
            x: leaf(case, "x"),
            h0: leaf(case, "h0"),
            clip: (clip > 0.0).then_some(clip),
            reverse: case.size("ways") == 1,
            both: case.size("ways") == 2,
            bias: case.flag("bias"),
            batch_first: case.flag("batch_first"),
        }
    }

    fn hidden(&self) -> Tensor<2> {
        self.h0.clone().squeeze_dim(0)
    }

    #[track_caller]
    fn same(&self, case: &Case, gradients: &Gradients) {
        same_gradient(case, "x", &self.x, gradients);
        same_gradient(case, "h0", &self.h0, gradients);
    }

    /// The number of parameters of both directions, if there are two, of layers with `gates` gates.
    fn parameters(&self, gates: usize) -> usize {
        gates * if self.bias { 4 } else { 2 } * if self.both { 2 } else { 1 }
    }
}

#[test]
fn rnn_options_match() {
    for case in &cases(FILE, "rnn") {
        let start = Start::of(case);
        let gradients = if start.both {
            let config = BiRnnConfig::new(2, 2, start.bias).with_batch_first(start.batch_first).with_clip(start.clip);
            let layer = filled(case, config.with_hidden_activation(activation(case, "hidden")).init(&device()));
            let (y, end) = layer.forward(start.x.clone(), Some(RnnState::new(start.h0.clone())));
            same(case, "hidden_end", end.hidden);
            let gradients = backward(case, y);
            same_gradients(case, &layer, &gradients, start.parameters(1));
            gradients
        } else {
            let config = RnnConfig::new(2, 2, start.bias).with_batch_first(start.batch_first).with_clip(start.clip).with_reverse(start.reverse);
            let layer = filled(case, config.with_hidden_activation(activation(case, "hidden")).init(&device()));
            let (y, end) = layer.forward(start.x.clone(), Some(RnnState::new(start.hidden())));
            same(case, "hidden_end", end.hidden.unsqueeze_dim::<3>(0));
            let gradients = backward(case, y);
            same_gradients(case, &layer, &gradients, start.parameters(1));
            gradients
        };
        start.same(case, &gradients);
    }
}

#[test]
fn gru_options_match() {
    for case in &cases(FILE, "gru") {
        let start = Start::of(case);
        let after = case.flag("reset_after");
        let gradients = if start.both {
            let config = BiGruConfig::new(2, 2, start.bias).with_batch_first(start.batch_first).with_clip(start.clip).with_reset_after(after);
            let config = config.with_gate_activation(activation(case, "gate")).with_hidden_activation(activation(case, "hidden"));
            let layer = filled(case, config.init(&device()));
            let (y, end) = layer.forward(start.x.clone(), Some(start.h0.clone()));
            same(case, "hidden_end", end);
            let gradients = backward(case, y);
            same_gradients(case, &layer, &gradients, start.parameters(3));
            gradients
        } else {
            let config = GruConfig::new(2, 2, start.bias).with_clip(start.clip).with_reset_after(after);
            let config = config.with_gate_activation(activation(case, "gate")).with_hidden_activation(activation(case, "hidden"));
            let layer = filled(case, config.init(&device()));
            let gradients = backward(case, layer.forward(start.x.clone(), Some(start.hidden())));
            same_gradients(case, &layer, &gradients, start.parameters(3));
            gradients
        };
        start.same(case, &gradients);
    }
}

#[test]
fn lstm_options_match() {
    for case in &cases(FILE, "lstm") {
        let start = Start::of(case);
        let c0 = leaf::<3>(case, "c0");
        let input_forget = !case.flag("forgets");
        let gates = if input_forget { 3 } else { 4 };
        let gradients = if start.both {
            let config = BiLstmConfig::new(2, 2, start.bias).with_batch_first(start.batch_first).with_clip(start.clip);
            let config = config.with_input_forget(input_forget).with_gate_activation(activation(case, "gate"));
            let config = config.with_cell_activation(activation(case, "cell")).with_hidden_activation(activation(case, "hidden"));
            let layer = filled(case, config.init(&device()));
            let (y, end) = layer.forward(start.x.clone(), Some(LstmState::new(c0.clone(), start.h0.clone())));
            same(case, "hidden_end", end.hidden);
            same(case, "cell_end", end.cell);
            let gradients = backward(case, y);
            same_gradients(case, &layer, &gradients, start.parameters(gates));
            gradients
        } else {
            let config = LstmConfig::new(2, 2, start.bias).with_batch_first(start.batch_first).with_clip(start.clip).with_reverse(start.reverse);
            let config = config.with_input_forget(input_forget).with_gate_activation(activation(case, "gate"));
            let config = config.with_cell_activation(activation(case, "cell")).with_hidden_activation(activation(case, "hidden"));
            let layer = filled(case, config.init(&device()));
            let (y, end) = layer.forward(start.x.clone(), Some(LstmState::new(c0.clone().squeeze_dim(0), start.hidden())));
            same(case, "hidden_end", end.hidden.unsqueeze_dim::<3>(0));
            same(case, "cell_end", end.cell.unsqueeze_dim::<3>(0));
            let gradients = backward(case, y);
            same_gradients(case, &layer, &gradients, start.parameters(gates));
            gradients
        };
        start.same(case, &gradients);
        same_gradient(case, "c0", &c0, &gradients);
    }
}
