//! Attention layers and their masks.

use kiln_module::module::Module;
use kiln_nn::Linear;
use kiln_nn::attention::{
    CrossAttentionConfig, MhaInput, MultiHeadAttention, MultiHeadAttentionConfig, SeqLengthOption, generate_autoregressive_mask,
    generate_padding_mask,
};
use kiln_tensor::{Bool, Device, Distribution, Tensor, Tolerance};

use crate::golden::Case;
use crate::graded::{backward, cases, device, leaf, mask, param, same, same_gradient};

fn layer_of(case: &Case) -> MultiHeadAttention {
    let linear = |name: &str| Linear { weight: param(case, &format!("w{name}")), bias: Some(param(case, &format!("b{name}"))) };
    let config = MultiHeadAttentionConfig::new(4, case.size("heads")).with_dropout(0.0);
    MultiHeadAttention { query: linear("q"), key: linear("k"), value: linear("v"), output: linear("o"), ..config.init(&device()) }
}

#[test]
fn multi_head_attention_matches_pytorch() {
    for case in cases("attention.txt", "multi_head_attention") {
        let case = &case;
        let layer = layer_of(case);
        let [q, k, v] = ["q", "k", "v"].map(|name| leaf::<3>(case, name));
        let mut input = MhaInput::new(q.clone(), k.clone(), v.clone());
        if let Some(mask) = mask(case, "mask") {
            input = input.mask_attn(mask);
        }
        if let Some(mask) = mask(case, "pad") {
            input = input.mask_pad(mask);
        }
        let output = layer.forward(input);
        same(case, "weights", output.weights);
        let gradients = backward(case, output.context);
        for (name, tensor) in [("q", &q), ("k", &k), ("v", &v)] {
            same_gradient(case, name, tensor, &gradients);
        }
        for (name, linear) in [("q", &layer.query), ("k", &layer.key), ("v", &layer.value), ("o", &layer.output)] {
            same_gradient(case, &format!("w{name}"), &linear.weight, &gradients);
            same_gradient(case, &format!("b{name}"), linear.bias.as_ref().unwrap(), &gradients);
        }
    }
}

#[test]
fn a_query_that_sees_nothing_attends_to_nothing() {
    let device = Device::default();
    let layer = MultiHeadAttentionConfig::new(4, 2).with_output_bias(false).init(&device);
    let x = Tensor::random([1, 3, 4], Distribution::Normal(0.0, 1.0), &device);
    let hide = Tensor::<3, Bool>::from_data([[[true, true, true], [false, true, true], [false, false, true]]], &device);
    for layer in [layer.clone(), MultiHeadAttention { quiet_softmax: true, ..layer }] {
        let output = layer.forward(MhaInput::self_attn(x.clone()).mask_attn(hide.clone()));
        let first: f32 = output.context.narrow(1, 0, 1).abs().max().into_scalar();
        assert_eq!(first, 0.0);
        let weights: f32 = output.weights.narrow(2, 0, 1).sum().into_scalar();
        assert_eq!(weights, 0.0);
    }
}

#[test]
fn quiet_softmax_leaves_weight_unused() {
    let device = Device::default();
    let layer = MultiHeadAttentionConfig::new(4, 2).with_quiet_softmax(true).init(&device);
    let x = Tensor::random([1, 3, 4], Distribution::Normal(0.0, 1.0), &device);
    let output = layer.forward(MhaInput::self_attn(x));
    let most: f32 = output.weights.sum_dim(3).max().into_scalar();
    assert!(most < 0.999, "{most}");
}

#[test]
fn dropout_of_weights_keeps_their_mean() {
    let device = device();
    device.seed(7);
    let layer = MultiHeadAttentionConfig::new(4, 2).with_dropout(0.5).init(&device);
    let x = Tensor::random([64, 8, 4], Distribution::Normal(0.0, 1.0), &device);
    let dropped = layer.forward(MhaInput::self_attn(x.clone())).context;
    let plain = layer.valid().forward(MhaInput::self_attn(x.without_autodiff())).context;
    let difference: f32 = (dropped.without_autodiff().clone() - plain.clone()).mean().into_scalar();
    assert!(difference.abs() < 0.05, "{difference}");
}

#[test]
fn shared_heads_equal_repeated_ones() {
    let device = Device::default();
    let shared = CrossAttentionConfig::new(6, 5, 4, 2, 3).with_dropout(0.0).init(&device);
    let single = CrossAttentionConfig::new(6, 5, 4, 4, 3).with_dropout(0.0).init(&device);
    // Give each head of the second layer the keys and values that it shares in the first.
    let repeat = |weight: Tensor<2>| {
        let [rows, _] = weight.dims();
        weight.reshape([rows, 2, 1, 3]).expand([rows, 2, 2, 3]).reshape([rows, 12])
    };
    let mut record = shared.clone().into_record().tensors().to_vec();
    for tensor in &mut record {
        if tensor.name.starts_with("key") || tensor.name.starts_with("value") {
            let data = kiln_module::record::data_of(tensor).unwrap();
            let is_bias = data.rank() == 1;
            let weight: Tensor<2> = if is_bias { Tensor::<1>::from_data(data, &device).unsqueeze() } else { Tensor::from_data(data, &device) };
            let data = if is_bias { repeat(weight).squeeze_dim::<1>(0).into_data() } else { repeat(weight).into_data() };
            *tensor = kiln_module::record::tensor_of(&tensor.name, tensor.param_id, data);
        }
    }
    let single = single.load_record(kiln_module::record::ModuleRecord::from_tensors(record));
    let query = Tensor::random([2, 3, 6], Distribution::Normal(0.0, 1.0), &device);
    let context = Tensor::random([2, 7, 5], Distribution::Normal(0.0, 1.0), &device);
    let hide = Some(Tensor::<2, Bool>::from_data([[false, false, true, false, false, true, true], [false; 7]], &device));
    let expected = single.forward(query.clone(), context.clone(), hide.clone()).into_data();
    let found = shared.forward(query, context, hide).into_data();
    found.assert_approx_eq(&expected, Tolerance::<f32>::relative(1e-4));
}

#[test]
fn padding_masks_hide_what_was_added() {
    let device = Device::default();
    let tokens = vec![vec![3, 3, 3], vec![3, 3, 3], vec![3, 3, 3, 4], vec![3, 3, 3, 4, 10, 15]];
    let padded = generate_padding_mask(0, tokens.clone(), SeqLengthOption::NoMax, &device);
    assert_eq!(padded.tensor.dims(), [4, 6]);
    let hidden = padded.mask.into_data().try_to_vec::<bool>().unwrap();
    assert_eq!(hidden.iter().filter(|hidden| **hidden).count(), 8);
    assert_eq!(generate_padding_mask(0, tokens.clone(), Some(4), &device).tensor.dims(), [4, 4]);
    assert_eq!(generate_padding_mask(0, tokens.clone(), Some(100), &device).tensor.dims(), [4, 6]);
    assert_eq!(generate_padding_mask(0, tokens, SeqLengthOption::Fixed(9), &device).tensor.dims(), [4, 9]);
}

#[test]
fn autoregressive_masks_hide_the_future() {
    let hidden = generate_autoregressive_mask(2, 3, &Device::default()).into_data().try_to_vec::<bool>().unwrap();
    assert_eq!(hidden, [false, true, true, false, false, true, false, false, false].repeat(2));
}
