//! Walking a sequence step by step.

use alloc::vec::Vec;

use kiln_tensor::{Device, Tensor};

/// Runs `step` over the positions of sequences `[batch, length, features]` of the same length, from the end if `reverse`,
/// and returns the results in the order of positions, `[batch, length, hidden]`.
#[track_caller]
pub(super) fn scan<const N: usize>(inputs: [Tensor<3>; N], reverse: bool, mut step: impl FnMut([Tensor<2>; N]) -> Tensor<2>) -> Tensor<3> {
    let length = inputs[0].dims()[1];
    assert!(length > 0, "recurrent layer: the sequence is empty");
    let mut outputs = Vec::with_capacity(length);
    for index in 0..length {
        let position = if reverse { length - 1 - index } else { index };
        let at = |input: &Tensor<3>| {
            let [batch, _, features] = input.dims();
            input.clone().narrow(1, position, 1).reshape([batch, features])
        };
        outputs.push(step(inputs.each_ref().map(at)));
    }
    if reverse {
        outputs.reverse();
    }
    Tensor::stack(outputs, 1)
}

/// `[batch, length, ..]` from either layout, and back: the swap is its own inverse.
pub(super) fn batch_first(x: Tensor<3>, is_batch_first: bool) -> Tensor<3> {
    if is_batch_first { x } else { x.swap_dims(0, 1) }
}

/// A state of zeros that goes with `input`.
pub(super) fn zeros<const D: usize>(shape: [usize; D], input: &Tensor<3>) -> Tensor<D> {
    let device: Device = input.device();
    Tensor::zeros(shape, (&device, input.dtype()))
}

/// The two parts of a state `[2, batch, hidden]`.
#[track_caller]
pub(super) fn both(state: Tensor<3>) -> [Tensor<2>; 2] {
    let [directions, batch, hidden] = state.dims();
    assert!(directions == 2, "recurrent layer: a bidirectional state has two parts, got {directions}");
    [0, 1].map(|index| state.clone().narrow(0, index, 1).reshape([batch, hidden]))
}

/// Keeps values within `±clip`.
pub(super) fn clipped(x: Tensor<2>, clip: Option<f64>) -> Tensor<2> {
    match clip {
        Some(clip) => x.clamp(-clip, clip),
        None => x,
    }
}
