//! Losses.

use kiln_nn::loss::*;
use kiln_tensor::{Device, Int, Tensor, TensorData, activation};

use crate::golden::Case;
use crate::graded::{backward, cases, constant, int, leaf, panic_of, same_gradient};

/// The cases of a loss with each of its reductions.
fn reduced(name: &str) -> Vec<(Case, Reduction)> {
    let of =
        |suffix: &str, reduction: Reduction| cases("loss.txt", &format!("{name}_{suffix}")).into_iter().map(move |case| (case, reduction.clone()));
    of("mean", Reduction::Mean).chain(of("sum", Reduction::Sum)).collect()
}

/// Checks a loss of two tensors of the same shape, the second of which is a constant.
#[track_caller]
fn check_pair(name: &str, loss: impl Fn(&Case, Tensor<2>, Tensor<2>, Reduction) -> Tensor<1>) {
    for (case, reduction) in reduced(name) {
        let x = leaf::<2>(&case, "x");
        let gradients = backward(&case, loss(&case, x.clone(), constant(&case, "target"), reduction));
        same_gradient(&case, "x", &x, &gradients);
    }
}

#[test]
fn losses_of_differences_match_pytorch() {
    check_pair("mse", |_, x, y, reduction| MseLoss::new().forward(x, y, reduction));
    check_pair("l1", |_, x, y, reduction| LpLossConfig::l1().forward(x, y, reduction));
    check_pair("smooth_l1", |case, x, y, reduction| {
        let beta = case.number("beta") as f32;
        SmoothL1LossConfig::new().with_beta(beta).init().forward_with_reduction(x, y, reduction)
    });
    check_pair("huber", |case, x, y, reduction| HuberLossConfig::new(case.number("delta") as f32).init().forward(x, y, reduction));
}

#[test]
fn losses_of_probabilities_match_pytorch() {
    check_pair("kl_div", |case, x, y, reduction| KLDivLossConfig::new().with_log_target(case.flag("log_target")).init().forward(x, y, reduction));
    check_pair("poisson_nll", |case, x, y, reduction| {
        let config = PoissonNllLossConfig::new().with_log_input(case.flag("log_input")).with_full(case.flag("full"));
        config.init().forward(x, y, reduction)
    });
    for (case, reduction) in reduced("gaussian_nll") {
        let (x, var) = (leaf::<2>(&case, "x"), leaf::<2>(&case, "var"));
        let loss = GaussianNLLLossConfig::new().with_full(case.flag("full")).init();
        let gradients = backward(&case, loss.forward(x.clone(), constant(&case, "target"), var.clone(), reduction));
        same_gradient(&case, "x", &x, &gradients);
        same_gradient(&case, "var", &var, &gradients);
    }
}

#[test]
fn losses_of_margins_match_pytorch() {
    check_pair("hinge_embedding", |case, x, y, reduction| {
        HingeEmbeddingLossConfig::new().with_margin(case.number("margin")).init().forward(x, y, reduction)
    });
    check_pair("soft_margin", |_, x, y, reduction| SoftMarginLoss::new().forward(x, y, reduction));
    for (case, reduction) in reduced("margin_ranking") {
        let (a, b) = (leaf::<1>(&case, "a"), leaf::<1>(&case, "b"));
        let loss = MarginRankingLossConfig::new().with_margin(case.number("margin")).init();
        let gradients = backward(&case, loss.forward(a.clone(), b.clone(), constant(&case, "target"), reduction));
        same_gradient(&case, "a", &a, &gradients);
        same_gradient(&case, "b", &b, &gradients);
    }
    for (case, reduction) in reduced("cosine_embedding") {
        let (a, b) = (leaf::<2>(&case, "a"), leaf::<2>(&case, "b"));
        let loss = CosineEmbeddingLossConfig::new().with_margin(case.number("margin") as f32).with_reduction(reduction).init();
        let gradients = backward(&case, loss.forward(a.clone(), b.clone(), int(&case, "target")));
        same_gradient(&case, "a", &a, &gradients);
        same_gradient(&case, "b", &b, &gradients);
    }
    for (case, reduction) in reduced("triplet_margin") {
        let [anchor, positive, negative] = ["anchor", "positive", "negative"].map(|name| leaf::<2>(&case, name));
        let loss = TripletMarginLossConfig::new().with_margin(case.number("margin")).with_p(case.number("p")).init();
        let gradients = backward(&case, loss.forward(anchor.clone(), positive.clone(), negative.clone(), reduction));
        for (name, tensor) in [("anchor", &anchor), ("positive", &positive), ("negative", &negative)] {
            same_gradient(&case, name, tensor, &gradients);
        }
    }
    for (case, reduction) in reduced("multi_margin") {
        let x = leaf::<2>(&case, "x");
        let loss = MultiMarginLossConfig::new().with_margin(case.number("margin")).with_p(case.number("p") as i32).init();
        let gradients = backward(&case, loss.forward(x.clone(), int(&case, "target"), reduction));
        same_gradient(&case, "x", &x, &gradients);
    }
}

#[test]
fn cross_entropy_matches_pytorch() {
    for case in cases("loss.txt", "cross_entropy") {
        let smoothing = case.number("smoothing") as f32;
        let ignore = case.number("ignore");
        let config = CrossEntropyLossConfig::new()
            .with_smoothing((smoothing > 0.0).then_some(smoothing))
            .with_pad_tokens((ignore >= 0.0).then(|| vec![ignore as usize]))
            .with_weights(case.get("weights").map(|weights| weights.f32()));
        let x = leaf::<2>(&case, "x");
        let loss = config.init(&Device::default());
        let gradients = backward(&case, loss.forward(x.clone(), int(&case, "target")));
        same_gradient(&case, "x", &x, &gradients);
    }
}

fn cross_entropy(config: CrossEntropyLossConfig, targets: [i64; 2]) -> f32 {
    let device = Device::default();
    let targets = Tensor::<1, Int>::from_ints(targets, &device);
    config.init(&device).forward(Tensor::zeros([2, 2], &device), targets).into_scalar()
}

#[test]
fn cross_entropy_leaves_padding_out_of_the_mean() {
    let padded = CrossEntropyLossConfig::new().with_pad_tokens(Some(vec![1]));
    let ln2 = std::f32::consts::LN_2;
    assert!((cross_entropy(padded.clone(), [0, 1]) - ln2).abs() < 1e-6);
    assert!((cross_entropy(padded.clone().with_weights(Some(vec![1.0, 3.0])), [0, 1]) - ln2).abs() < 1e-6);
    assert!((cross_entropy(padded.clone().with_smoothing(Some(0.1)), [0, 1]) - ln2).abs() < 1e-6);
    assert!(cross_entropy(padded, [1, 1]).is_nan());
    // A padding token need not be a class.
    let outside = CrossEntropyLossConfig::new().with_pad_tokens(Some(vec![7, 9]));
    assert!((cross_entropy(outside, [0, 9]) - ln2).abs() < 1e-6);
}

#[test]
fn cross_entropy_of_probabilities_equals_that_of_logits() {
    let device = Device::default();
    let logits = Tensor::<2>::from_floats([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], &device);
    let targets = Tensor::<1, Int>::from_ints([2, 0], &device);
    let expected: f32 = CrossEntropyLossConfig::new().init(&device).forward(logits.clone(), targets.clone()).into_scalar();
    let loss = CrossEntropyLossConfig::new().with_logits(false).init(&device);
    let found: f32 = loss.forward(activation::softmax(logits, 1), targets).into_scalar();
    assert!((found - expected).abs() < 1e-6);
}

#[test]
fn binary_cross_entropy_matches_pytorch() {
    for case in cases("loss.txt", "binary_cross_entropy") {
        let config =
            BinaryCrossEntropyLossConfig::new().with_logits(case.flag("logits")).with_weights(case.get("weights").map(|weights| weights.f32()));
        let x = leaf::<2>(&case, "x");
        let gradients = backward(&case, config.init(&Device::default()).forward(x.clone(), int(&case, "target")));
        same_gradient(&case, "x", &x, &gradients);
    }
}

#[test]
fn binary_cross_entropy_of_certain_predictions_is_bounded() {
    let device = Device::default().autodiff();
    let loss = BinaryCrossEntropyLossConfig::new().init(&device);
    for (predictions, expected) in [([1.0, 0.0, 1.0, 0.0], 0.0), ([0.0, 1.0, 0.0, 1.0], 100.0)] {
        let x = Tensor::<1>::from_floats(predictions, &device).require_grad();
        let value = loss.forward(x.clone(), Tensor::<1, Int>::from_ints([1, 0, 1, 0], &device));
        let gradients = value.backward();
        assert!((value.into_scalar::<f32>() - expected).abs() < 1e-4);
        let gradient = x.grad(&gradients).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert!(gradient.iter().all(|value| value.is_finite()), "{gradient:?}");
    }
}

#[test]
fn binary_cross_entropy_of_one_label_is_the_weighted_mean() {
    let device = Device::default();
    let loss = BinaryCrossEntropyLossConfig::new().with_weights(Some(vec![3.0, 7.0])).init(&device);
    let p = [0.2f32, 0.7, 0.4, 0.9];
    let value: f32 = loss.forward(Tensor::<1>::from_floats(p, &device), Tensor::<1, Int>::from_ints([0, 1, 0, 1], &device)).into_scalar();
    let expected = -(3.0 * 0.8f32.ln() + 7.0 * 0.7f32.ln() + 3.0 * 0.6f32.ln() + 7.0 * 0.9f32.ln()) / 20.0;
    assert!((value - expected).abs() < 1e-5, "{value} {expected}");
}

#[test]
fn ctc_matches_pytorch() {
    for case in cases("loss.txt", "ctc") {
        let x = leaf::<3>(&case, "x");
        let log_probs = activation::log_softmax(x.clone(), 2);
        let loss = CTCLossConfig::new().with_blank(case.size("blank")).init();
        let losses = loss.forward(log_probs, int(&case, "target"), int(&case, "input_lengths"), int(&case, "target_lengths"));
        let gradients = backward(&case, losses);
        same_gradient(&case, "x", &x, &gradients);
    }
}

#[test]
fn ctc_of_an_impossible_target_is_infinite_or_zero() {
    let device = Device::default();
    let loss = |zero_infinity| -> f32 {
        let log_probs = activation::log_softmax(Tensor::<3>::zeros([1, 1, 3], &device), 2);
        let lengths = |length: i64| Tensor::<1, Int>::from_ints([length], &device);
        let loss = CTCLossConfig::new().with_zero_infinity(zero_infinity).init();
        loss.forward(log_probs, Tensor::<2, Int>::from_ints([[1, 2]], &device), lengths(1), lengths(2)).into_scalar()
    };
    assert_eq!(loss(false), f32::INFINITY);
    assert_eq!(loss(true), 0.0);
}

#[test]
fn reductions_differ_by_their_divisor() {
    let device = Device::default();
    let x = Tensor::<2>::from_data(TensorData::from([[1.0f32, 2.0], [3.0, 4.0]]), &device);
    let zero = x.zeros_like();
    let value = |reduction: Reduction| -> f32 { LpLossConfig::l1().forward(x.clone(), zero.clone(), reduction).into_scalar() };
    assert_eq!([value(Reduction::Sum), value(Reduction::Mean), value(Reduction::Auto), value(Reduction::BatchMean)], [10.0, 2.5, 2.5, 5.0]);
    let rows = LpLossConfig::l1().forward_reduce_dims(x, zero, &[1]);
    assert_eq!(rows.into_data().try_to_vec::<f32>().unwrap(), [1.5, 3.5]);
}

#[test]
fn losses_refuse_shapes_that_do_not_agree() {
    let device = Device::default();
    let message = panic_of(|| {
        let targets = Tensor::<1, Int>::from_ints([0, 1, 1], &device);
        CrossEntropyLossConfig::new().init(&device).forward(Tensor::zeros([2, 2], &device), targets)
    });
    assert_eq!(message, "cross entropy: predictions have shape [2, 2], targets [3]");
}
