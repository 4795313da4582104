//! Layers of layers against PyTorch, and layers that PyTorch lacks against independent formulas: results and the gradients of inputs and all parameters.

use kiln_nn::PaddingConfig2d;
use kiln_nn::attention::{CrossAttention, CrossAttentionConfig, generate_autoregressive_mask};
use kiln_nn::conv::DeformConv2dConfig;
use kiln_nn::loss::{LpLossConfig, RNNTLossConfig, Reduction};
use kiln_nn::transformer::{
    PositionWiseFeedForwardConfig, TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoderConfig, TransformerEncoderInput,
};
use kiln_nn::{BiGruConfig, BiLstmConfig, BiRnnConfig, PositionalEncodingConfig, RotaryEncodingConfig};
use kiln_tensor::{Int, Tensor};

use crate::graded::{backward, cases, device, int, leaf, mask, same_gradient};
use crate::paths::{filled, same_gradients};

const FILE: &str = "composite.txt";

#[test]
fn stacked_recurrent_layers_in_both_directions_match_pytorch() {
    for case in &cases(FILE, "bi_lstm") {
        let config = |inputs| BiLstmConfig::new(inputs, case.size("hidden"), true).init(&device());
        let layers = filled(case, vec![config(case.size("input")), config(2 * case.size("hidden"))]);
        let x = leaf::<3>(case, "x");
        let y = layers.iter().fold(x.clone(), |x, layer| layer.forward(x, None).0);
        let gradients = backward(case, y);
        same_gradient(case, "x", &x, &gradients);
        same_gradients(case, &layers, &gradients, 64);
    }
    for case in &cases(FILE, "bi_gru") {
        let config = |inputs| BiGruConfig::new(inputs, case.size("hidden"), true).init(&device());
        let layers = filled(case, vec![config(case.size("input")), config(2 * case.size("hidden"))]);
        let x = leaf::<3>(case, "x");
        let y = layers.iter().fold(x.clone(), |x, layer| layer.forward(x, None).0);
        let gradients = backward(case, y);
        same_gradient(case, "x", &x, &gradients);
        same_gradients(case, &layers, &gradients, 48);
    }
    for case in &cases(FILE, "bi_rnn") {
        let config = |inputs| BiRnnConfig::new(inputs, case.size("hidden"), true).init(&device());
        let layers = filled(case, vec![config(case.size("input")), config(2 * case.size("hidden"))]);
        let x = leaf::<3>(case, "x");
        let y = layers.iter().fold(x.clone(), |x, layer| layer.forward(x, None).0);
        let gradients = backward(case, y);
        same_gradient(case, "x", &x, &gradients);
        same_gradients(case, &layers, &gradients, 16);
    }
}

#[test]
fn transformers_match_pytorch() {
    for case in &cases(FILE, "transformer_encoder") {
        let config = TransformerEncoderConfig::new(4, 6, 2, 2).with_dropout(0.0).with_norm_first(case.flag("norm_first"));
        let encoder = filled(case, config.init(&device()));
        let x = leaf::<3>(case, "x");
        let input = TransformerEncoderInput::new(x.clone()).mask_attn(generate_autoregressive_mask(2, 3, &device()));
        let gradients = backward(case, encoder.forward(input));
        same_gradient(case, "x", &x, &gradients);
        same_gradients(case, &encoder, &gradients, 32);
    }
    for case in &cases(FILE, "transformer_decoder") {
        let config = TransformerDecoderConfig::new(4, 6, 2, 2).with_dropout(0.0).with_norm_first(case.flag("norm_first"));
        let decoder = filled(case, config.init(&device()));
        let (x, memory) = (leaf::<3>(case, "x"), leaf::<3>(case, "memory"));
        let input = TransformerDecoderInput::new(x.clone(), memory.clone())
            .target_mask_attn(generate_autoregressive_mask(2, 3, &device()))
            .memory_mask_pad(mask(case, "pad").expect("the case has a mask"));
        let gradients = backward(case, decoder.forward(input));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "memory", &memory, &gradients);
        same_gradients(case, &decoder, &gradients, 52);
    }
}

#[test]
fn feed_forward_parts_match_pytorch() {
    for case in &cases(FILE, "pwff") {
        let layer = filled(case, PositionWiseFeedForwardConfig::new(4, 6).with_dropout(0.0).init(&device()));
        let x = leaf::<3>(case, "x");
        let gradients = backward(case, layer.forward(x.clone()));
        same_gradient(case, "x", &x, &gradients);
        same_gradients(case, &layer, &gradients, 4);
    }
}

#[test]
fn cross_attention_matches_pytorchs_attention_of_shared_heads() {
    for case in &cases(FILE, "cross_attention") {
        let layer: CrossAttention = filled(case, CrossAttentionConfig::new(4, 3, 4, 2, 2).with_dropout(0.0).init(&device()));
        let (x, context) = (leaf::<3>(case, "x"), leaf::<3>(case, "context"));
        let gradients = backward(case, layer.forward(x.clone(), context.clone(), mask(case, "pad")));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "context", &context, &gradients);
        same_gradients(case, &layer, &gradients, 8);
    }
}

#[test]
fn encodings_of_positions_match_their_formulas() {
    for case in &cases(FILE, "rotary_encoding") {
        let x = leaf::<3>(case, "x");
        let layer = RotaryEncodingConfig::new(10, 6).init(&device());
        let gradients = backward(case, layer.apply(x.clone(), case.size("start")));
        same_gradient(case, "x", &x, &gradients);
    }
    for case in &cases(FILE, "positional_encoding") {
        let x = leaf::<3>(case, "x");
        let gradients = backward(case, PositionalEncodingConfig::new(6).init(&device()).forward(x.clone()));
        same_gradient(case, "x", &x, &gradients);
    }
}

#[test]
fn deformable_convolutions_match_their_formula() {
    for case in &cases(FILE, "deform_conv2d") {
        let pair = |name| [case.size(name); 2];
        let padding = case.size("padding");
        let layer = DeformConv2dConfig::new([4, 4], [2, 2])
            .with_stride(pair("stride"))
            .with_dilation(pair("dilation"))
            .with_weight_groups(case.size("groups"))
            .with_offset_groups(case.size("sharing"))
            .with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding))
            .with_bias(case.get("bias").is_some())
            .init(&device());
        let layer = filled(case, layer);
        let (x, offset, weights) = (leaf::<4>(case, "x"), leaf::<4>(case, "offset"), case.get("mask").map(|_| leaf::<4>(case, "mask")));
        let gradients = backward(case, layer.forward(x.clone(), offset.clone(), weights.clone()));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "offset", &offset, &gradients);
        if let Some(weights) = weights {
            same_gradient(case, "mask", &weights, &gradients);
        }
        same_gradients(case, &layer, &gradients, 1 + usize::from(layer.bias.is_some()));
    }
}

#[test]
fn losses_that_pytorch_lacks_match_their_formulas() {
    for case in &cases(FILE, "lp") {
        let x = leaf::<2>(case, "x");
        let loss = LpLossConfig::new(case.number("p")).init();
        let gradients = backward(case, loss.forward(x.clone(), crate::graded::constant(case, "target"), Reduction::Mean));
        same_gradient(case, "x", &x, &gradients);
    }
    for case in &cases(FILE, "rnnt") {
        let x = leaf::<4>(case, "x");
        let length = |n: i64| Tensor::<1, Int>::from_ints([n], &device());
        let gradients = backward(case, RNNTLossConfig::new().init().forward(x.clone(), int(case, "target"), length(4), length(2)));
        same_gradient(case, "x", &x, &gradients);
    }
}
