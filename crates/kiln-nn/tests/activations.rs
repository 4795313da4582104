//! Activation modules against PyTorch, on both sides of every bend and far out.

use kiln_module::module::Module;
use kiln_nn::Linear;
use kiln_nn::activation::{
    Activation, ActivationConfig, CeluConfig, EluConfig, GLU, Gelu, HardShrinkConfig, HardSigmoidConfig, HardSwish, HardtanhConfig, LeakyReluConfig,
    LogSigmoid, Mish, PReluConfig, RReluConfig, Relu, Relu6, Selu, ShrinkConfig, SiLU, Sigmoid, SoftShrinkConfig, SoftplusConfig, Softsign, SwiGlu,
    SwiGluConfig, Tanh, Tanhshrink, ThresholdConfig, ThresholdedReluConfig,
};
use kiln_tensor::{Device, Tensor};

use crate::golden::Case;
use crate::graded::{backward, cases, device, leaf, param, same_gradient};

fn check(name: &str, forward: impl Fn(&Case, Tensor<1>) -> Tensor<1>) {
    for case in &cases("activation.txt", name) {
        let x = leaf::<1>(case, "x");
        let gradients = backward(case, forward(case, x.clone()));
        same_gradient(case, "x", &x, &gradients);
    }
}

#[test]
fn activations_with_settings_match_pytorch() {
    check("celu", |case, x| CeluConfig::new().with_alpha(case.number("alpha")).init().forward(x));
    check("elu", |case, x| EluConfig::new().with_alpha(case.number("alpha")).init().forward(x));
    check("hard_shrink", |case, x| HardShrinkConfig::new().with_lambda(case.number("bound")).init().forward(x));
    check("hard_sigmoid", |case, x| HardSigmoidConfig::new().with_alpha(case.number("alpha")).with_beta(case.number("beta")).init().forward(x));
    check("hardtanh", |case, x| HardtanhConfig::new().with_min_val(case.number("low")).with_max_val(case.number("high")).init().forward(x));
    check("leaky_relu", |case, x| LeakyReluConfig::new().with_negative_slope(case.number("slope")).init().forward(x));
    check("prelu", |case, x| PReluConfig::new().with_alpha(case.number("alpha")).init(&device()).forward(x.unsqueeze::<2>()).squeeze_dim(0));
    check("rrelu", |case, x| {
        let layer = RReluConfig::new().with_lower(case.number("low")).with_upper(case.number("high")).init();
        layer.valid().forward(x)
    });
    check("shrink", |case, x| ShrinkConfig::new().with_lambda(case.number("bound")).with_bias(case.number("bias")).init().forward(x));
    check("soft_shrink", |case, x| SoftShrinkConfig::new().with_lambda(case.number("bound")).init().forward(x));
    check("softplus", |case, x| SoftplusConfig::new().with_beta(case.number("beta")).with_threshold(case.number("threshold")).init().forward(x));
    check("threshold", |case, x| ThresholdConfig::new(case.number("threshold"), case.number("value")).init().forward(x));
    check("thresholded_relu", |case, x| ThresholdedReluConfig::new().with_alpha(case.number("alpha")).init().forward(x));
}

#[test]
fn activations_without_settings_match_pytorch() {
    check("gelu", |_, x| Gelu::new().forward(x));
    check("gelu_approximate", |_, x| Gelu::new_approximate().forward(x));
    check("hard_swish", |_, x| HardSwish::new().forward(x));
    check("log_sigmoid", |_, x| LogSigmoid::new().forward(x));
    check("mish", |_, x| Mish::new().forward(x));
    check("relu", |_, x| Relu::new().forward(x));
    check("relu6", |_, x| Relu6::new().forward(x));
    check("selu", |_, x| Selu::new().forward(x));
    check("sigmoid", |_, x| Sigmoid::new().forward(x));
    check("silu", |_, x| SiLU::new().forward(x));
    check("softsign", |_, x| Softsign::new().forward(x));
    check("tanh", |_, x| Tanh::new().forward(x));
    check("tanhshrink", |_, x| Tanhshrink::new().forward(x));
}

#[test]
fn gated_activations_match_pytorch() {
    for case in &cases("activation.txt", "glu") {
        let x = leaf::<1>(case, "x");
        let gradients = backward(case, GLU::new(1).forward(x.clone().reshape([4, 4])));
        same_gradient(case, "x", &x, &gradients);
    }
    for case in &cases("activation.txt", "swi_glu") {
        let linear = |name: &str| Linear { weight: param(case, name), bias: None };
        let layer = SwiGlu { linear_inner: linear("inner"), linear_outer: linear("outer") };
        let x = leaf::<2>(case, "x");
        let gradients = backward(case, layer.forward(x.clone()));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "inner", &layer.linear_inner.weight, &gradients);
        same_gradient(case, "outer", &layer.linear_outer.weight, &gradients);
    }
}

#[test]
fn the_enum_computes_what_its_variants_do() {
    let plain = Device::default();
    let x = || Tensor::<2>::from_floats([[-2.0, -0.5, 0.0, 0.3, 1.5, 4.0]], &plain);
    let table: Vec<(ActivationConfig, Tensor<2>)> = vec![
        (ActivationConfig::Identity, x()),
        (ActivationConfig::Gelu, Gelu::new().forward(x())),
        (ActivationConfig::GeluApproximate, Gelu::new_approximate().forward(x())),
        (ActivationConfig::PRelu(PReluConfig::new()), PReluConfig::new().init(&plain).forward(x())),
        (ActivationConfig::Relu, Relu::new().forward(x())),
        (ActivationConfig::LeakyRelu(LeakyReluConfig::new()), LeakyReluConfig::new().init().forward(x())),
        (ActivationConfig::Selu, Selu::new().forward(x())),
        (ActivationConfig::Sigmoid, Sigmoid::new().forward(x())),
        (ActivationConfig::Tanh, Tanh::new().forward(x())),
        (ActivationConfig::HardSigmoid(HardSigmoidConfig::new()), HardSigmoidConfig::new().init().forward(x())),
        (ActivationConfig::HardSwish, HardSwish::new().forward(x())),
        (ActivationConfig::Softplus(SoftplusConfig::new()), SoftplusConfig::new().init().forward(x())),
        (ActivationConfig::Softsign, Softsign::new().forward(x())),
        (ActivationConfig::Elu(EluConfig::new()), EluConfig::new().init().forward(x())),
        (ActivationConfig::Celu(CeluConfig::new()), CeluConfig::new().init().forward(x())),
        (ActivationConfig::ThresholdedRelu(ThresholdedReluConfig::new()), ThresholdedReluConfig::new().init().forward(x())),
        (ActivationConfig::HardShrink(HardShrinkConfig::new()), HardShrinkConfig::new().init().forward(x())),
        (ActivationConfig::SoftShrink(SoftShrinkConfig::new()), SoftShrinkConfig::new().init().forward(x())),
        (ActivationConfig::Shrink(ShrinkConfig::new()), ShrinkConfig::new().init().forward(x())),
    ];
    for (config, expected) in table {
        let activation: Activation = config.init(&plain);
        assert_eq!(activation.forward(x()).into_data(), expected.into_data(), "{config}");
    }
    let gated = ActivationConfig::SwiGlu(SwiGluConfig::new(6, 3)).init(&plain);
    assert_eq!(gated.forward(x()).dims(), [1, 3]);
}
