//! Recurrent layers.

use kiln_nn::{
    BiGruConfig, BiLstmConfig, BiRnnConfig, GateController, Gru, GruConfig, Linear, Lstm, LstmConfig, LstmState, Rnn, RnnConfig, RnnState,
};
use kiln_tensor::{Device, Distribution, Gradients, Tensor, Tolerance};

use crate::golden::Case;
use crate::graded::{backward, cases, device, leaf, param, same, same_gradient};

fn gate(case: &Case, name: &str) -> GateController {
    let linear = |part: &str| Linear { weight: param(case, &format!("w{part}_{name}")), bias: Some(param(case, &format!("b{part}_{name}"))) };
    GateController { input_transform: linear("i"), hidden_transform: linear("h") }
}

#[track_caller]
fn same_gate(case: &Case, name: &str, gate: &GateController, gradients: &Gradients) {
    for (part, linear) in [("i", &gate.input_transform), ("h", &gate.hidden_transform)] {
        same_gradient(case, &format!("w{part}_{name}"), &linear.weight, gradients);
        same_gradient(case, &format!("b{part}_{name}"), linear.bias.as_ref().unwrap(), gradients);
    }
}

fn state(case: &Case, name: &str) -> Option<Tensor<3>> {
    case.get(name).map(|_| leaf(case, name))
}

#[test]
fn lstm_matches_pytorch() {
    for case in cases("recurrent.txt", "lstm") {
        let case = &case;
        let layer = Lstm {
            input_gate: gate(case, "i"),
            forget_gate: Some(gate(case, "f")),
            cell_gate: gate(case, "g"),
            output_gate: gate(case, "o"),
            ..LstmConfig::new(3, 4, true).init(&device())
        };
        let x = leaf::<3>(case, "x");
        let (h0, c0) = (state(case, "h0"), state(case, "c0"));
        let start = h0.clone().zip(c0.clone()).map(|(hidden, cell)| LstmState::new(cell, hidden).squeeze_dim(0));
        let (output, end) = layer.forward(x.clone(), start);
        same(case, "hidden", end.hidden);
        same(case, "cell", end.cell);
        let gradients = backward(case, output);
        same_gradient(case, "x", &x, &gradients);
        for (name, tensor) in [("h0", &h0), ("c0", &c0)] {
            if let Some(tensor) = tensor {
                same_gradient(case, name, tensor, &gradients);
            }
        }
        for (name, gate) in [("i", &layer.input_gate), ("f", layer.forget_gate.as_ref().unwrap()), ("g", &layer.cell_gate), ("o", &layer.output_gate)]
        {
            same_gate(case, name, gate, &gradients);
        }
    }
}

#[test]
fn gru_matches_pytorch() {
    for case in cases("recurrent.txt", "gru") {
        let case = &case;
        let layer = Gru {
            reset_gate: gate(case, "r"),
            update_gate: gate(case, "z"),
            new_gate: gate(case, "n"),
            ..GruConfig::new(3, 4, true).init(&device())
        };
        let x = leaf::<3>(case, "x");
        let h0 = state(case, "h0");
        let output = layer.forward(x.clone(), h0.clone().map(|state| state.squeeze_dim(0)));
        let last = output.clone().narrow(1, output.dims()[1] - 1, 1).squeeze_dim::<2>(1);
        same(case, "hidden", last);
        let gradients = backward(case, output);
        same_gradient(case, "x", &x, &gradients);
        if let Some(h0) = &h0 {
            same_gradient(case, "h0", h0, &gradients);
        }
        for (name, gate) in [("r", &layer.reset_gate), ("z", &layer.update_gate), ("n", &layer.new_gate)] {
            same_gate(case, name, gate, &gradients);
        }
    }
}

#[test]
fn rnn_matches_pytorch() {
    for case in cases("recurrent.txt", "rnn") {
        let case = &case;
        let layer = Rnn { gate: gate(case, "n"), ..RnnConfig::new(3, 4, true).init(&device()) };
        let x = leaf::<3>(case, "x");
        let h0 = state(case, "h0");
        let (output, end) = layer.forward(x.clone(), h0.clone().map(|state| RnnState::new(state.squeeze_dim(0))));
        same(case, "hidden", end.hidden);
        let gradients = backward(case, output);
        same_gradient(case, "x", &x, &gradients);
        if let Some(h0) = &h0 {
            same_gradient(case, "h0", h0, &gradients);
        }
        same_gate(case, "n", &layer.gate, &gradients);
    }
}

#[track_caller]
fn equal<const D: usize>(found: Tensor<D>, expected: Tensor<D>) {
    found.into_data().assert_approx_eq(&expected.into_data(), Tolerance::<f32>::rel_abs(1e-4, 1e-5));
}

#[test]
fn a_sequence_read_from_its_end_is_the_flipped_sequence() {
    let device = Device::default();
    let x = Tensor::<3>::random([2, 5, 3], Distribution::Normal(0.0, 1.0), &device);
    let forward = LstmConfig::new(3, 4, true).init(&device);
    let reverse = Lstm { reverse: true, ..forward.clone() };
    let (expected, end) = forward.forward(x.clone().flip([1]), None);
    let (found, state) = reverse.forward(x, None);
    equal(found, expected.flip([1]));
    equal(state.cell, end.cell);
}

#[test]
fn layouts_differ_only_in_the_order_of_axes() {
    let device = Device::default();
    let x = Tensor::<3>::random([2, 5, 3], Distribution::Normal(0.0, 1.0), &device);
    let swapped = x.clone().swap_dims(0, 1);
    let rnn = BiRnnConfig::new(3, 4, true).init(&device);
    let other = kiln_nn::BiRnn { batch_first: false, ..rnn.clone() };
    equal(other.forward(swapped.clone(), None).0.swap_dims(0, 1), rnn.forward(x.clone(), None).0);
    let gru = BiGruConfig::new(3, 4, true).init(&device);
    let other = kiln_nn::BiGru { batch_first: false, ..gru.clone() };
    equal(other.forward(swapped.clone(), None).0.swap_dims(0, 1), gru.forward(x.clone(), None).0);
    let lstm = BiLstmConfig::new(3, 4, true).init(&device);
    let other = kiln_nn::BiLstm { batch_first: false, ..lstm.clone() };
    equal(other.forward(swapped, None).0.swap_dims(0, 1), lstm.forward(x, None).0);
}

#[test]
fn both_directions_are_two_layers_side_by_side() {
    let device = Device::default();
    let x = Tensor::<3>::random([2, 5, 3], Distribution::Normal(0.0, 1.0), &device);
    let both = BiLstmConfig::new(3, 4, true).init(&device);
    let start = LstmState::new(
        Tensor::<3>::random([2, 2, 4], Distribution::Normal(0.0, 1.0), &device),
        Tensor::<3>::random([2, 2, 4], Distribution::Normal(0.0, 1.0), &device),
    );
    let parts = start.clone().chunk(2, 0);
    let (ahead, first) = both.forward.forward(x.clone(), Some(parts[0].clone().squeeze_dim(0)));
    let (back, second) = both.reverse.forward(x.clone(), Some(parts[1].clone().squeeze_dim(0)));
    let (found, end) = both.forward(x, Some(start));
    equal(found, Tensor::cat(vec![ahead, back], 2));
    let expected = LstmState::stack::<3>(vec![first, second], 0);
    equal(end.cell, expected.cell);
    equal(end.hidden, expected.hidden);
}

#[test]
fn steps_from_an_iterator_equal_the_sequence() {
    let device = Device::default();
    let x = Tensor::<3>::random([2, 5, 3], Distribution::Normal(0.0, 1.0), &device);
    for input_forget in [false, true] {
        let lstm = LstmConfig::new(3, 4, true).with_input_forget(input_forget).with_clip(Some(0.2)).init(&device);
        assert_eq!(lstm.forget_gate.is_none(), input_forget);
        let (expected, _) = lstm.forward(x.clone(), None);
        let (found, end) = lstm.forward_iter(x.clone().iter_dim(1).enumerate(), None, 2, 5, &device);
        equal(found, expected);
        let most: f32 = end.cell.abs().max().into_scalar();
        assert!(most <= 0.2);
    }
}

#[test]
fn a_gru_may_reset_before_the_product() {
    let device = Device::default();
    let x = Tensor::<3>::random([2, 3, 3], Distribution::Normal(0.0, 1.0), &device);
    let after = GruConfig::new(3, 4, false).init(&device);
    let before = Gru { reset_after: false, ..after.clone() };
    let state = Some(Tensor::<2>::random([2, 4], Distribution::Normal(0.0, 1.0), &device));
    let difference: f32 = (after.forward(x.clone(), state.clone()) - before.forward(x, state)).abs().max().into_scalar();
    assert!(difference > 1e-4);
}
