//! Normalisations.

use kiln_module::module::{Module, Param, RunningState};
use kiln_nn::{
    BatchNorm, BatchNormConfig, GroupNorm, GroupNormConfig, InstanceNorm, InstanceNormConfig, LayerNormConfig, LocalResponseNormConfig, RmsNorm,
    RmsNormConfig,
};
use kiln_tensor::{Tensor, Tolerance};

use crate::golden::Case;
use crate::graded::{backward, cases, constant, device, leaf, param, same, same_gradient};

/// Runs `check` for the rank of the case's input.
macro_rules! by_rank {
    ($case:expr, $check:ident) => {
        match $case.tensor("x").shape.len() {
            2 => $check::<2>($case),
            3 => $check::<3>($case),
            4 => $check::<4>($case),
            5 => $check::<5>($case),
            rank => panic!("no test for rank {rank}"),
        }
    };
}

fn layer_norm<const D: usize>(case: &Case) {
    let config = LayerNormConfig::new(case.tensor("gamma").shape[0]).with_epsilon(case.number("eps"));
    let beta = case.get("beta").map(|_| param(case, "beta"));
    let mut layer = config.init(&device());
    layer.gamma = param(case, "gamma");
    layer.beta = beta;
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, layer.forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
    same_gradient(case, "gamma", &layer.gamma, &gradients);
    if let Some(beta) = &layer.beta {
        same_gradient(case, "beta", beta, &gradients);
    }
}

#[test]
fn layer_norm_matches_pytorch() {
    for case in cases("norm.txt", "layer_norm") {
        let case = &case;
        by_rank!(case, layer_norm);
    }
}

#[test]
fn layer_norm_adds_epsilon_to_the_variance() {
    let x = [-0.6897, -2.7106, 2.2222, -1.0330, -0.8933, 1.1765, 0.0601, 1.5252, -0.3630, 0.6728];
    let expected = [-0.4863, -1.9180, 1.5766, -0.7295, -0.6305, 0.8358, 0.0449, 1.0828, -0.2548, 0.4790];
    let layer = LayerNormConfig::new(10).with_epsilon(0.1).init(&device());
    let output = layer.forward(Tensor::<1>::from_floats(x, &device()));
    output.into_data().assert_approx_eq(&Tensor::<1>::from_floats(expected, &device()).into_data(), Tolerance::<f32>::absolute(1e-3));
}

fn batch_norm<const D: usize>(case: &Case) {
    let config = BatchNormConfig::new(3).with_momentum(case.number("momentum")).with_epsilon(case.number("eps"));
    let layer = BatchNorm {
        gamma: param(case, "gamma"),
        beta: param(case, "beta"),
        training: Param::from_bool(case.flag("training")),
        running_mean: RunningState::new(constant(case, "mean")),
        running_var: RunningState::new(constant(case, "var")),
        ..config.init(&device())
    };
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, layer.forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
    same_gradient(case, "gamma", &layer.gamma, &gradients);
    same_gradient(case, "beta", &layer.beta, &gradients);
    same(case, "mean_after", layer.running_mean.value());
    same(case, "var_after", layer.running_var.value());
}

#[test]
fn batch_norm_matches_pytorch() {
    for case in cases("norm.txt", "batch_norm") {
        let case = &case;
        by_rank!(case, batch_norm);
    }
}

#[test]
fn batch_norm_keeps_the_unbiased_variance() {
    let layer = BatchNormConfig::new(1).init(&device());
    layer.forward(Tensor::<2>::from_floats([[1.0], [2.0], [3.0], [4.0]], &device()));
    assert!((layer.running_mean.value().into_scalar::<f32>() - 0.25).abs() < 1e-6);
    assert!((layer.running_var.value().into_scalar::<f32>() - 1.066_666_7).abs() < 1e-5);
}

#[test]
fn batch_norm_uses_running_statistics_outside_training() {
    let layer = BatchNormConfig::new(1).init(&device());
    let input = Tensor::<2>::from_floats([[1.0], [3.0]], &device());
    layer.forward(input.clone());
    for still in [layer.valid(), layer.clone().freeze()] {
        let before = still.running_mean.value().into_scalar::<f32>();
        let output = still.forward(input.clone().without_autodiff()).into_data().try_to_vec::<f32>().unwrap();
        assert!((output[0] - output[1]).abs() > 1.0, "the batch's own statistics were used: {output:?}");
        assert_eq!(still.running_mean.value().into_scalar::<f32>(), before);
    }
}

fn group_norm<const D: usize>(case: &Case) {
    let config = GroupNormConfig::new(case.size("groups"), 4).with_epsilon(case.number("eps"));
    let layer = GroupNorm { gamma: Some(param(case, "gamma")), beta: Some(param(case, "beta")), ..config.init(&device()) };
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, layer.forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
    same_gradient(case, "gamma", layer.gamma.as_ref().unwrap(), &gradients);
    same_gradient(case, "beta", layer.beta.as_ref().unwrap(), &gradients);
}

#[test]
fn group_norm_matches_pytorch() {
    for case in cases("norm.txt", "group_norm") {
        let case = &case;
        by_rank!(case, group_norm);
    }
}

fn instance_norm<const D: usize>(case: &Case) {
    let config = InstanceNormConfig::new(4).with_epsilon(case.number("eps"));
    let layer = InstanceNorm { gamma: Some(param(case, "gamma")), beta: Some(param(case, "beta")), ..config.init(&device()) };
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, layer.forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
    same_gradient(case, "gamma", layer.gamma.as_ref().unwrap(), &gradients);
    same_gradient(case, "beta", layer.beta.as_ref().unwrap(), &gradients);
}

#[test]
fn instance_norm_matches_pytorch() {
    for case in cases("norm.txt", "instance_norm") {
        let case = &case;
        by_rank!(case, instance_norm);
    }
}

fn rms_norm<const D: usize>(case: &Case) {
    let config = RmsNormConfig::new(case.tensor("gamma").shape[0]).with_epsilon(case.number("eps"));
    let layer = RmsNorm { gamma: param(case, "gamma"), ..config.init(&device()) };
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, layer.forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
    same_gradient(case, "gamma", &layer.gamma, &gradients);
}

#[test]
fn rms_norm_matches_pytorch() {
    for case in cases("norm.txt", "rms_norm") {
        let case = &case;
        by_rank!(case, rms_norm);
    }
}

fn local_response_norm<const D: usize>(case: &Case) {
    let layer = LocalResponseNormConfig::new(case.size("size"))
        .with_alpha(case.number("alpha"))
        .with_beta(case.number("beta"))
        .with_k(case.number("k"))
        .init();
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, layer.forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
}

#[test]
fn local_response_norm_matches_pytorch() {
    for case in cases("norm.txt", "local_response_norm") {
        let case = &case;
        by_rank!(case, local_response_norm);
    }
}
