//! Options of norms, encodings, attention and transformers away from their defaults, against PyTorch or its parts.

use kiln_module::module::{Module, Param, RunningState};
use kiln_nn::activation::{ActivationConfig, GLU, PReluConfig, SwiGluConfig};
use kiln_nn::attention::{CrossAttentionConfig, MhaInput, MultiHeadAttentionConfig};
use kiln_nn::transformer::{
    PositionWiseFeedForwardConfig, TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoderConfig, TransformerEncoderInput,
};
use kiln_nn::{
    BatchNorm, BatchNormConfig, CosineSimilarityConfig, GroupNormConfig, InstanceNormConfig, LocalResponseNormConfig, PairwiseDistanceConfig,
    PositionalEncodingConfig, RmsNormConfig, RotaryEncodingConfig,
};
use kiln_tensor::Tensor;

use crate::golden::Case;
use crate::graded::{backward, cases, constant, device, leaf, mask, param, same, same_gradient};
use crate::paths::{filled, same_gradients};

const FILE: &str = "layer_options.txt";

/// Checks a layer of one input `x`, with `parameters` parameters.
#[track_caller]
fn check<const D: usize, M: Module>(case: &Case, layer: M, parameters: usize, forward: impl Fn(&M, Tensor<D>) -> Tensor<D>) {
    let layer = filled(case, layer);
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, forward(&layer, x.clone()));
    same_gradient(case, "x", &x, &gradients);
    same_gradients(case, &layer, &gradients, parameters);
}

/// Runs `$body` with the rank of the case's input as `$rank`.
macro_rules! by_rank {
    ($case:expr, $rank:ident => $body:expr) => {
        match $case.tensor("x").shape.len() {
            2 => {
                const $rank: usize = 2;
                $body
            }
            3 => {
                const $rank: usize = 3;
                $body
            }
            4 => {
                const $rank: usize = 4;
                $body
            }
            _ => {
                const $rank: usize = 5;
                $body
            }
        }
    };
}

fn batch_norm<const D: usize>(case: &Case) {
    let config = BatchNormConfig::new(3).with_momentum(case.number("momentum")).with_epsilon(case.number("eps"));
    let layer = BatchNorm {
        training: Param::from_bool(case.flag("training")),
        running_mean: RunningState::new(constant(case, "mean")),
        running_var: RunningState::new(constant(case, "var")),
        gamma: param(case, "gamma"),
        beta: param(case, "beta"),
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
fn options_of_norms_match_pytorch() {
    for case in &cases(FILE, "batch_norm") {
        by_rank!(case, D => batch_norm::<D>(case));
    }
    for case in &cases(FILE, "group_norm") {
        let config = GroupNormConfig::new(case.size("groups"), case.tensor("x").shape[1]);
        let config = config.with_epsilon(case.number("eps")).with_affine(case.flag("affine"));
        let parameters = if case.flag("affine") { 2 } else { 0 };
        by_rank!(case, D => check::<D, _>(case, config.init(&device()), parameters, |layer, x| layer.forward(x)));
    }
    for case in &cases(FILE, "instance_norm") {
        let config = InstanceNormConfig::new(case.tensor("x").shape[1]).with_epsilon(case.number("eps")).with_affine(case.flag("affine"));
        let parameters = if case.flag("affine") { 2 } else { 0 };
        by_rank!(case, D => check::<D, _>(case, config.init(&device()), parameters, |layer, x| layer.forward(x)));
    }
    for case in &cases(FILE, "rms_norm") {
        let config = RmsNormConfig::new(case.tensor("gamma").shape[0]).with_epsilon(case.number("eps"));
        by_rank!(case, D => check::<D, _>(case, config.init(&device()), 1, |layer, x| layer.forward(x)));
    }
    for case in &cases(FILE, "local_response_norm") {
        let config = LocalResponseNormConfig::new(case.size("size")).with_alpha(case.number("alpha"));
        let config = config.with_beta(case.number("beta")).with_k(case.number("k"));
        by_rank!(case, D => check::<D, _>(case, config.init(), 0, |layer, x| layer.forward(x)));
    }
}

#[test]
fn options_of_distances_match_pytorch() {
    let pair = |case: &Case, y: &dyn Fn(Tensor<2>, Tensor<2>) -> Tensor<1>| {
        let (a, b) = (leaf::<2>(case, "a"), leaf::<2>(case, "b"));
        let gradients = backward(case, y(a.clone(), b.clone()));
        same_gradient(case, "a", &a, &gradients);
        same_gradient(case, "b", &b, &gradients);
    };
    for case in &cases(FILE, "cosine_similarity") {
        let layer = CosineSimilarityConfig::new().with_dim(case.number("dim") as isize).with_eps(case.number("eps")).init();
        pair(case, &|a, b| layer.forward(a, b));
    }
    for case in &cases(FILE, "pairwise_distance") {
        let layer = PairwiseDistanceConfig::new().with_p(case.number("p")).with_eps(case.number("eps")).init();
        pair(case, &|a, b| layer.forward(a, b));
    }
}

#[test]
fn options_of_encodings_match_their_formulas() {
    for case in &cases(FILE, "positional_encoding") {
        let config = PositionalEncodingConfig::new(6).with_max_sequence_size(4).with_max_timescale(case.size("longest"));
        check::<3, _>(case, config.init(&device()), 0, |layer, x| layer.forward(x));
    }
    for case in &cases(FILE, "rotary_encoding") {
        let config = RotaryEncodingConfig::new(6, 4).with_theta(case.number("theta") as f32);
        let layer = config.init_with_frequency_scaling(|rates| rates * case.number("factor"), &device());
        check::<4, _>(case, layer, 0, |layer, x| layer.apply(x, case.size("start")));
    }
}

#[test]
fn options_of_activations_match_pytorch() {
    for case in &cases(FILE, "prelu") {
        let config = PReluConfig::new().with_num_parameters(3);
        by_rank!(case, D => check::<D, _>(case, config.init(&device()), 1, |layer, x| layer.forward(x)));
    }
    for case in &cases(FILE, "glu") {
        check::<3, _>(case, GLU::new(case.size("dim")), 0, |layer, x| layer.forward(x));
    }
    for case in &cases(FILE, "swi_glu") {
        let layer = filled(case, SwiGluConfig::new(4, 5).with_bias(true).init(&device()));
        let x = leaf::<2>(case, "x");
        let gradients = backward(case, layer.forward(x.clone()));
        same_gradient(case, "x", &x, &gradients);
        same_gradients(case, &layer, &gradients, 4);
    }
}

#[test]
fn options_of_attention_match_its_formula() {
    for case in &cases(FILE, "multi_head_attention") {
        let config = MultiHeadAttentionConfig::new(4, 2).with_dropout(0.0).with_quiet_softmax(case.flag("quiet"));
        let config = config.with_min_float(case.number("least")).with_query_bias(case.flag("query")).with_key_bias(case.flag("key"));
        let config = config.with_value_bias(case.flag("value")).with_output_bias(case.flag("output"));
        let layer = filled(case, config.init(&device()));
        let x = leaf::<3>(case, "x");
        let mut input = MhaInput::self_attn(x.clone());
        if let (Some(attn), Some(pad)) = (mask(case, "mask"), mask(case, "pad")) {
            input = input.mask_attn(attn).mask_pad(pad);
        }
        let output = layer.forward(input);
        same(case, "weights", output.weights);
        let gradients = backward(case, output.context);
        same_gradient(case, "x", &x, &gradients);
        let biases = ["query", "key", "value", "output"].iter().filter(|name| case.flag(name)).count();
        same_gradients(case, &layer, &gradients, 4 + biases);
    }
    for case in &cases(FILE, "cross_attention") {
        let config = CrossAttentionConfig::new(4, 3, 2, 2, 2).with_dropout(0.0).with_quiet_softmax(case.flag("quiet"));
        let layer = filled(case, config.with_min_float(case.number("least")).init(&device()));
        let (x, context) = (leaf::<3>(case, "x"), leaf::<3>(case, "context"));
        let gradients = backward(case, layer.forward(x.clone(), context.clone(), mask(case, "pad")));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "context", &context, &gradients);
        same_gradients(case, &layer, &gradients, 8);
    }
}

#[test]
fn options_of_transformers_match_pytorch() {
    for case in &cases(FILE, "transformer_encoder") {
        let config = TransformerEncoderConfig::new(4, 6, 2, 1).with_dropout(0.0).with_norm_first(case.flag("norm_first"));
        let config = config.with_quiet_softmax(case.flag("quiet")).with_layer_norm_eps(case.number("eps"));
        let encoder = filled(case, config.with_activation(ActivationConfig::Relu).init(&device()));
        let x = leaf::<3>(case, "x");
        let input = TransformerEncoderInput::new(x.clone());
        let input = input.mask_attn(mask(case, "causal").expect("is there")).mask_pad(mask(case, "pad").expect("is there"));
        let gradients = backward(case, encoder.forward(input));
        same_gradient(case, "x", &x, &gradients);
        same_gradients(case, &encoder, &gradients, 16);
    }
    for case in &cases(FILE, "transformer_decoder") {
        let config = TransformerDecoderConfig::new(4, 6, 2, 1).with_dropout(0.0).with_norm_first(case.flag("norm_first"));
        let config = config.with_quiet_softmax(case.flag("quiet")).with_layer_norm_eps(case.number("eps"));
        let decoder = filled(case, config.with_activation(ActivationConfig::Relu).init(&device()));
        let (x, memory) = (leaf::<3>(case, "x"), leaf::<3>(case, "memory"));
        let input = TransformerDecoderInput::new(x.clone(), memory.clone())
            .target_mask_attn(mask(case, "causal").expect("is there"))
            .target_mask_pad(mask(case, "pad").expect("is there"))
            .memory_mask_attn(mask(case, "seen").expect("is there"))
            .memory_mask_pad(mask(case, "hidden").expect("is there"));
        let gradients = backward(case, decoder.forward(input));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "memory", &memory, &gradients);
        same_gradients(case, &decoder, &gradients, 26);
    }
    for case in &cases(FILE, "pwff") {
        let config = PositionWiseFeedForwardConfig::new(4, 6).with_dropout(0.0).with_activation(ActivationConfig::Tanh);
        check::<2, _>(case, config.init(&device()), 4, |layer, x| layer.forward(x));
    }
}
