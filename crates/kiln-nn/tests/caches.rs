//! Decoding step by step equals decoding at once.

use kiln_nn::attention::{MhaCache, MhaInput, MultiHeadAttentionConfig, generate_autoregressive_mask};
use kiln_nn::transformer::{TransformerDecoderConfig, TransformerDecoderInput, TransformerEncoderConfig, TransformerEncoderInput};
use kiln_tensor::{Device, Distribution, Tensor, Tolerance};

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
