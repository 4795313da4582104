//! Decoding step by step equals decoding at once.

use kiln_nn::attention::{CrossAttentionCache, CrossAttentionConfig, MhaCache, MhaInput, MultiHeadAttentionConfig, generate_autoregressive_mask};
use kiln_nn::transformer::{TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoderConfig, TransformerEncoderInput};
use kiln_tensor::{Device, Distribution, Int, Tensor, Tolerance};

const BATCH: usize = 2;
const LENGTH: usize = 5;
const SIZE: usize = 8;

fn sequence(length: usize, device: &Device) -> Tensor<3> {
    Tensor::random([BATCH, length, SIZE], Distribution::Normal(0.0, 1.0), device)
}

#[track_caller]
fn same(found: Tensor<3>, expected: &Tensor<3>) {
    found.into_data().assert_approx_eq(&expected.to_data(), Tolerance::<f32>::rel_abs(1e-4, 1e-4));
}

/// Feeds ever longer prefixes; the first has two positions.
fn prefixes(x: &Tensor<3>) -> impl Iterator<Item = Tensor<3>> + '_ {
    (2..=LENGTH).map(|length| x.clone().narrow(1, 0, length))
}

#[test]
fn self_attention_with_a_cache_equals_masked_attention() {
    let device = Device::default();
    let layer = MultiHeadAttentionConfig::new(SIZE, 2).init(&device);
    let x = sequence(LENGTH, &device);
    let mask = generate_autoregressive_mask(BATCH, LENGTH, &device);
    let expected = layer.forward(MhaInput::self_attn(x.clone()).mask_attn(mask.clone())).context;
    let mut cache = MhaCache::autoregressive();
    let mut last = None;
    for prefix in prefixes(&x) {
        let length = prefix.dims()[1];
        let mask = generate_autoregressive_mask(BATCH, length, &device);
        last = Some(layer.forward_cache(MhaInput::self_attn(prefix).mask_attn(mask), &mut cache).context);
    }
    same(last.unwrap(), &expected);
    // A sequence that did not grow changes nothing.
    let again = layer.forward_cache(MhaInput::self_attn(x), &mut cache).context;
    same(again, &expected);
}

#[test]
fn encoder_with_a_cache_equals_the_masked_encoder() {
    let device = Device::default();
    for norm_first in [false, true] {
        let encoder = TransformerEncoderConfig::new(SIZE, 16, 2, 3).with_norm_first(norm_first).init(&device);
        let x = sequence(LENGTH, &device);
        let mask = generate_autoregressive_mask(BATCH, LENGTH, &device);
        let expected = encoder.forward(TransformerEncoderInput::new(x.clone()).mask_attn(mask));
        let mut cache = encoder.new_autoregressive_cache();
        let mut last = None;
        for prefix in prefixes(&x) {
            let mask = generate_autoregressive_mask(BATCH, prefix.dims()[1], &device);
            let input = TransformerEncoderInput::new(prefix).mask_attn(mask);
            last = Some(encoder.forward_autoregressive_inference(input, &mut cache));
        }
        same(last.unwrap(), &expected);
    }
}

#[test]
fn decoder_with_a_cache_equals_the_masked_decoder() {
    let device = Device::default();
    for norm_first in [false, true] {
        let decoder = TransformerDecoderConfig::new(SIZE, 16, 2, 2).with_norm_first(norm_first).init(&device);
        let (x, memory) = (sequence(LENGTH, &device), sequence(7, &device));
        let mask = generate_autoregressive_mask(BATCH, LENGTH, &device);
        let expected = decoder.forward(TransformerDecoderInput::new(x.clone(), memory.clone()).target_mask_attn(mask));
        let mut cache = decoder.new_autoregressive_cache();
        let mut last = None;
        for prefix in prefixes(&x) {
            let mask = generate_autoregressive_mask(BATCH, prefix.dims()[1], &device);
            let input = TransformerDecoderInput::new(prefix, memory.clone()).target_mask_attn(mask);
            last = Some(decoder.forward_autoregressive_inference(input, &mut cache));
        }
        same(last.unwrap(), &expected);
    }
}

#[test]
fn attention_to_a_context_with_a_cache_equals_the_plain_one() {
    let device = Device::default();
    let (x, context) = (sequence(LENGTH, &device), Tensor::random([BATCH, 7, 6], Distribution::Normal(0.0, 1.0), &device));
    let hidden = Tensor::<2, Int>::from_ints([[0, 0, 0, 0, 0, 1, 1], [1, 0, 0, 1, 0, 0, 0]], &device).bool();
    for quiet in [false, true] {
        let layer = CrossAttentionConfig::new(SIZE, 6, 4, 2, 3).with_quiet_softmax(quiet).init(&device);
        for mask in [None, Some(hidden.clone())] {
            let expected = layer.forward(x.clone(), context.clone(), mask.clone());
            let mut cache = CrossAttentionCache::new();
            // Each position on its own: the keys and values of the context are made once.
            let steps = (0..LENGTH).map(|at| layer.forward_cache(x.clone().narrow(1, at, 1), context.clone(), mask.clone(), &mut cache));
            same(Tensor::cat(steps.collect(), 1), &expected);
        }
    }
}

#[test]
fn attention_with_fixed_keys_and_a_cache_equals_the_plain_one() {
    let device = Device::default();
    let layer = MultiHeadAttentionConfig::new(SIZE, 2).init(&device);
    let (x, memory) = (sequence(LENGTH, &device), sequence(7, &device));
    let hidden = Tensor::<2, Int>::from_ints([[0, 0, 0, 0, 0, 1, 1], [1, 0, 0, 1, 0, 0, 0]], &device).bool();
    let input = |queries: Tensor<3>| MhaInput::new(queries, memory.clone(), memory.clone()).mask_pad(hidden.clone());
    let expected = layer.forward(input(x.clone()));
    let mut cache = MhaCache::autoregressive_cross_attention();
    for prefix in prefixes(&x) {
        let length = prefix.dims()[1];
        let found = layer.forward_cache(input(prefix), &mut cache);
        same(found.context, &expected.context.clone().narrow(1, 0, length));
    }
}

/// Layers that decode are those whose source names a cache, and all of them are above.
#[test]
fn every_layer_with_a_cache_is_tested() {
    let mut with_cache = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if ["pub fn forward_cache", "pub fn forward_autoregressive_inference"]
                .iter()
                .any(|name| std::fs::read_to_string(&path).unwrap().contains(name))
            {
                with_cache.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    with_cache.sort();
    assert_eq!(with_cache, ["cross", "decoder", "encoder", "multi_head"]);
}
