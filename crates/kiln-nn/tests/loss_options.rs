//! Losses with every reduction and with options away from their defaults, against PyTorch.

use kiln_nn::loss::*;
use kiln_tensor::{Tensor, activation};

use crate::golden::Case;
use crate::graded::{backward, cases, constant, device, int, leaf, same_gradient};

const FILE: &str = "loss_options.txt";

/// The case's reduction; none for a loss an element.
fn reduction(case: &Case) -> Option<Reduction> {
    match case.size("reduction") {
        0 => Some(Reduction::Mean),
        1 => Some(Reduction::Sum),
        2 => Some(Reduction::BatchMean),
        _ => None,
    }
}

/// Checks losses of `x` and a constant of its shape: reduced, and an element.
#[track_caller]
fn check_pair(
    name: &str,
    reduced: impl Fn(&Case, Tensor<2>, Tensor<2>, Reduction) -> Tensor<1>,
    each: impl Fn(&Case, Tensor<2>, Tensor<2>) -> Tensor<2>,
) {
    for case in &cases(FILE, name) {
        let (x, target) = (leaf::<2>(case, "x"), constant(case, "target"));
        let gradients = match reduction(case) {
            Some(reduction) => backward(case, reduced(case, x.clone(), target, reduction)),
            None => backward(case, each(case, x.clone(), target)),
        };
        same_gradient(case, "x", &x, &gradients);
    }
}

#[test]
fn losses_of_differences_match_with_every_reduction() {
    let mse = MseLoss::new();
    check_pair("mse", |_, x, y, r| mse.forward(x, y, r), |_, x, y| mse.forward_no_reduction(x, y));
    let lp = |case: &Case| LpLossConfig::new(case.number("p")).init();
    check_pair("lp", |case, x, y, r| lp(case).forward(x, y, r), |case, x, y| lp(case).forward_no_reduction(x, y));
    let smooth = |case: &Case| SmoothL1LossConfig::new().with_beta(case.number("beta") as f32).init();
    check_pair("smooth_l1", |case, x, y, r| smooth(case).forward_with_reduction(x, y, r), |case, x, y| smooth(case).forward(x, y));
    let huber = |case: &Case| HuberLossConfig::new(case.number("delta") as f32).init();
    check_pair("huber", |case, x, y, r| huber(case).forward(x, y, r), |case, x, y| huber(case).forward_no_reduction(x, y));
}

#[test]
fn losses_of_probabilities_match_with_every_reduction() {
    let kl = |case: &Case| KLDivLossConfig::new().with_log_target(case.flag("log_target")).init();
    check_pair("kl_div", |case, x, y, r| kl(case).forward(x, y, r), |case, x, y| kl(case).forward_no_reduction(x, y));
    let poisson = |case: &Case| {
        let config = PoissonNllLossConfig::new().with_log_input(case.flag("log_input")).with_full(case.flag("full"));
        config.with_eps(case.number("eps")).init()
    };
    check_pair("poisson_nll", |case, x, y, r| poisson(case).forward(x, y, r), |case, x, y| poisson(case).forward_no_reduction(x, y));
    for case in &cases(FILE, "gaussian_nll") {
        let (x, target, var) = (leaf::<2>(case, "x"), constant(case, "target"), leaf::<2>(case, "var"));
        let loss = GaussianNLLLossConfig::new().with_full(case.flag("full")).with_eps(case.number("eps")).init();
        let gradients = match reduction(case) {
            Some(reduction) => backward(case, loss.forward(x.clone(), target, var.clone(), reduction)),
            None => backward(case, loss.forward_no_reduction(x.clone(), target, var.clone())),
        };
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "var", &var, &gradients);
    }
}

#[test]
fn losses_of_margins_match_with_every_reduction() {
    let hinge = |case: &Case| HingeEmbeddingLossConfig::new().with_margin(case.number("margin")).init();
    check_pair("hinge_embedding", |case, x, y, r| hinge(case).forward(x, y, r), |case, x, y| hinge(case).forward_no_reduction(x, y));
    let soft = SoftMarginLoss::new();
    check_pair("soft_margin", |_, x, y, r| soft.forward(x, y, r), |_, x, y| soft.forward_no_reduction(x, y));
    for case in &cases(FILE, "margin_ranking") {
        let (a, b, target) = (leaf::<2>(case, "a"), leaf::<2>(case, "b"), constant(case, "target"));
        let loss = MarginRankingLossConfig::new().with_margin(case.number("margin")).init();
        let gradients = match reduction(case) {
            Some(reduction) => backward(case, loss.forward(a.clone(), b.clone(), target, reduction)),
            None => backward(case, loss.forward_no_reduction(a.clone(), b.clone(), target)),
        };
        same_gradient(case, "a", &a, &gradients);
        same_gradient(case, "b", &b, &gradients);
    }
    for case in &cases(FILE, "cosine_embedding") {
        let (a, b, target) = (leaf::<2>(case, "a"), leaf::<2>(case, "b"), int(case, "target"));
        let config = CosineEmbeddingLossConfig::new().with_margin(case.number("margin") as f32);
        let gradients = match reduction(case) {
            Some(reduction) => backward(case, config.with_reduction(reduction).init().forward(a.clone(), b.clone(), target)),
            None => backward(case, config.init().forward_no_reduction(a.clone(), b.clone(), target)),
        };
        same_gradient(case, "a", &a, &gradients);
        same_gradient(case, "b", &b, &gradients);
    }
    for case in &cases(FILE, "triplet_margin") {
        let [anchor, positive, negative] = ["anchor", "positive", "negative"].map(|name| leaf::<2>(case, name));
        let loss = TripletMarginLossConfig::new().with_margin(case.number("margin")).with_p(case.number("p")).init();
        let gradients = match reduction(case) {
            Some(reduction) => backward(case, loss.forward(anchor.clone(), positive.clone(), negative.clone(), reduction)),
            None => backward(case, loss.forward_no_reduction(anchor.clone(), positive.clone(), negative.clone())),
        };
        for (name, tensor) in [("anchor", &anchor), ("positive", &positive), ("negative", &negative)] {
            same_gradient(case, name, tensor, &gradients);
        }
    }
    for case in &cases(FILE, "multi_margin") {
        let (x, target) = (leaf::<2>(case, "x"), int(case, "target"));
        let loss = MultiMarginLossConfig::new().with_margin(case.number("margin")).with_p(case.number("p") as i32).init();
        let gradients = match reduction(case) {
            Some(reduction) => backward(case, loss.forward(x.clone(), target, reduction)),
            None => backward(case, loss.forward_no_reduction(x.clone(), target)),
        };
        same_gradient(case, "x", &x, &gradients);
    }
}

#[test]
fn cross_entropy_matches_with_its_options_together() {
    for case in &cases(FILE, "cross_entropy") {
        let smoothing = case.number("smoothing") as f32;
        let pads: Vec<usize> = case.attr("pads").iter().filter(|pad| **pad >= 0.0).map(|pad| *pad as usize).collect();
        let config = CrossEntropyLossConfig::new()
            .with_logits(case.flag("logits"))
            .with_smoothing((smoothing > 0.0).then_some(smoothing))
            .with_pad_tokens((!pads.is_empty()).then_some(pads))
            .with_weights(case.get("weights").map(|weights| weights.f32()));
        let x = leaf::<2>(case, "x");
        let gradients = backward(case, config.init(&device()).forward(x.clone(), int(case, "target")));
        same_gradient(case, "x", &x, &gradients);
    }
}

fn binary<const D: usize>(case: &Case) {
    let smoothing = case.number("smoothing") as f32;
    let config = BinaryCrossEntropyLossConfig::new()
        .with_logits(case.flag("logits"))
        .with_smoothing((smoothing > 0.0).then_some(smoothing))
        .with_weights(case.get("weights").map(|weights| weights.f32()));
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, config.init(&device()).forward(x.clone(), int(case, "target")));
    same_gradient(case, "x", &x, &gradients);
}

#[test]
fn binary_cross_entropy_matches_with_its_options_together() {
    for case in &cases(FILE, "binary_cross_entropy") {
        match case.tensor("x").shape.len() {
            1 => binary::<1>(case),
            2 => binary::<2>(case),
            _ => binary::<3>(case),
        }
    }
}

#[test]
fn ctc_matches_with_another_blank_empty_targets_and_infinite_losses() {
    for case in &cases(FILE, "ctc") {
        let x = leaf::<3>(case, "x");
        let loss = CTCLossConfig::new().with_blank(case.size("blank")).with_zero_infinity(true).init();
        let log_probs = activation::log_softmax(x.clone(), 2);
        let (target, inputs, targets) = (int(case, "target"), int(case, "input_lengths"), int(case, "target_lengths"));
        let losses = match reduction(case) {
            Some(reduction) => loss.forward_with_reduction(log_probs, target, inputs, targets, reduction),
            None => loss.forward(log_probs, target, inputs, targets),
        };
        let gradients = backward(case, losses);
        same_gradient(case, "x", &x, &gradients);
    }
}

#[test]
fn the_transducer_loss_takes_another_blank_and_logarithms_of_probabilities() {
    for case in &cases(FILE, "rnnt") {
        let x = leaf::<4>(case, "x");
        let loss = RNNTLossConfig::new().with_blank(case.size("blank")).with_logits(case.flag("logits")).init();
        let length = |n: i64| Tensor::<1, kiln_tensor::Int>::from_ints([n], &device());
        let losses = match reduction(case) {
            Some(reduction) => loss.forward_with_reduction(x.clone(), int(case, "target"), length(3), length(2), reduction),
            None => loss.forward(x.clone(), int(case, "target"), length(3), length(2)),
        };
        let gradients = backward(case, losses);
        same_gradient(case, "x", &x, &gradients);
    }
}
