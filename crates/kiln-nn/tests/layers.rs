//! Layers without parameters, and those of positions.

use kiln_module::module::Module;
use kiln_nn::conv::{Conv1dConfig, Conv2dConfig, ConvTranspose2dConfig};
use kiln_nn::pool::{AvgPool2dConfig, MaxPool2dConfig};
use kiln_nn::{
    CosineSimilarityConfig, DropoutConfig, GaussianNoiseConfig, PaddingConfig1d, PaddingConfig2d, PairwiseDistanceConfig, PixelShuffleConfig,
    PixelUnshuffleConfig, PositionalEncodingConfig, RotaryEncodingConfig,
};
use kiln_tensor::{Device, Distribution, Tensor, TensorData, Tolerance};

use crate::graded::{backward, cases, device, leaf, same_gradient};

#[test]
fn pixel_shuffles_match_pytorch() {
    for case in cases("layer.txt", "pixel_shuffle") {
        let x = leaf::<4>(&case, "x");
        let layer = PixelShuffleConfig::new(case.size("factor")).init();
        let gradients = backward(&case, layer.forward(x.clone()));
        same_gradient(&case, "x", &x, &gradients);
    }
    for case in cases("layer.txt", "pixel_unshuffle") {
        let x = leaf::<4>(&case, "x");
        let layer = PixelUnshuffleConfig::new(case.size("factor")).init();
        let gradients = backward(&case, layer.forward(x.clone()));
        same_gradient(&case, "x", &x, &gradients);
    }
}

#[test]
fn similarities_and_distances_match_pytorch() {
    for case in cases("layer.txt", "cosine_similarity") {
        let (a, b) = (leaf::<2>(&case, "a"), leaf::<2>(&case, "b"));
        let gradients = backward(&case, CosineSimilarityConfig::new().init().forward(a.clone(), b.clone()));
        same_gradient(&case, "a", &a, &gradients);
        same_gradient(&case, "b", &b, &gradients);
    }
    for case in cases("layer.txt", "pairwise_distance") {
        let (a, b) = (leaf::<2>(&case, "a"), leaf::<2>(&case, "b"));
        let layer = PairwiseDistanceConfig::new().with_p(case.number("p")).init();
        let gradients = backward(&case, layer.forward(a.clone(), b.clone()));
        same_gradient(&case, "a", &a, &gradients);
        same_gradient(&case, "b", &b, &gradients);
    }
}

#[test]
fn dropout_is_the_identity_outside_training() {
    for case in cases("layer.txt", "dropout_eval") {
        let x = leaf::<2>(&case, "x");
        let layer = DropoutConfig::new(case.number("prob")).init().valid();
        let gradients = backward(&case, layer.forward(x.clone()));
        same_gradient(&case, "x", &x, &gradients);
    }
}

#[test]
fn dropout_drops_its_share_and_scales_the_rest() {
    let device = device();
    device.seed(3);
    let layer = DropoutConfig::new(0.25).init();
    let output = layer.forward(Tensor::<1>::ones([10_000], &device)).into_data().try_to_vec::<f32>().unwrap();
    let dropped = output.iter().filter(|value| **value == 0.0).count();
    assert!((2_300..2_700).contains(&dropped), "{dropped}");
    assert!(output.iter().all(|value| *value == 0.0 || (*value - 4.0 / 3.0).abs() < 1e-6));
    let all = DropoutConfig::new(1.0).init().forward(Tensor::<1>::ones([4], &device));
    assert_eq!(all.sum().into_scalar::<f32>(), 0.0);
}

#[test]
fn dropout_acts_only_on_inputs_that_are_trained_with() {
    let layer = DropoutConfig::new(0.9).init();
    let plain = Tensor::<1>::ones([100], &Device::default());
    assert_eq!(layer.forward(plain).sum().into_scalar::<f32>(), 100.0);
    let frozen = layer.freeze().forward(Tensor::<1>::ones([100], &device()));
    assert_eq!(frozen.sum().into_scalar::<f32>(), 100.0);
}

#[test]
fn noise_has_its_standard_deviation() {
    let device = device();
    device.seed(5);
    let noisy = GaussianNoiseConfig::new(0.5).init().forward(Tensor::<1>::zeros([10_000], &device));
    let spread: f32 = noisy.square().mean().sqrt().into_scalar();
    assert!((spread - 0.5).abs() < 0.02, "{spread}");
}

#[test]
fn positional_encodings_are_sines_and_cosines() {
    let device = Device::default();
    let layer = PositionalEncodingConfig::new(6).init(&device);
    let output = layer.forward(Tensor::zeros([2, 3, 6], &device)).into_data().try_to_vec::<f32>().unwrap();
    for position in 0..3 {
        for pair in 0..3 {
            let angle = position as f64 / 10_000f64.powf(2.0 * pair as f64 / 6.0);
            for batch in 0..2 {
                let at = batch * 18 + position * 6 + pair * 2;
                assert!((f64::from(output[at]) - angle.sin()).abs() < 1e-6);
                assert!((f64::from(output[at + 1]) - angle.cos()).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn rotary_encodings_rotate_pairs() {
    let device = Device::default();
    let layer = RotaryEncodingConfig::new(10, 4).init(&device);
    let x = Tensor::<3>::from_floats([[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]], &device);
    let output = layer.forward(x).into_data().try_to_vec::<f32>().unwrap();
    assert_eq!(output[..4], [1.0, 2.0, 3.0, 4.0]);
    for (pair, angle) in [(0, 1.0f64), (1, 0.01)] {
        let (a, b) = (2.0 * pair as f64 + 1.0, 2.0 * pair as f64 + 2.0);
        let (first, second) = (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin());
        assert!((f64::from(output[4 + 2 * pair]) - first).abs() < 1e-5);
        assert!((f64::from(output[5 + 2 * pair]) - second).abs() < 1e-5);
    }
}

#[test]
fn rotary_encodings_take_any_rank_and_any_start() {
    let device = Device::default();
    let mut layer = RotaryEncodingConfig::new(10, 4).init(&device);
    let x = Tensor::<3>::random([2, 6, 4], Distribution::Normal(0.0, 1.0), &device);
    let whole = layer.forward(x.clone());
    let with_heads = layer.forward(x.clone().reshape([2, 1, 6, 4])).reshape([2, 6, 4]);
    with_heads.into_data().assert_eq(&whole.to_data(), true);
    let tail = whole.narrow(1, 4, 2).into_data();
    layer.apply(x.clone().narrow(1, 4, 2), 4).into_data().assert_eq(&tail, true);
    layer.shift(4);
    layer.forward(x.clone().narrow(1, 4, 2)).into_data().assert_eq(&tail, true);
    layer.reset();
    layer.apply(x.narrow(1, 4, 2), 4).into_data().assert_eq(&tail, true);
}

#[test]
fn same_padding_keeps_the_size() {
    let device = Device::default();
    for kernel in 1..5 {
        let conv = Conv1dConfig::new(2, 3, kernel).with_padding(PaddingConfig1d::Same).with_dilation(2).init(&device);
        assert_eq!(conv.forward(Tensor::ones([1, 2, 9], &device)).dims(), [1, 3, 9]);
        let conv = Conv2dConfig::new([2, 4], [kernel, 3]).with_padding(PaddingConfig2d::Same).with_groups(2).init(&device);
        assert_eq!(conv.forward(Tensor::ones([1, 2, 7, 9], &device)).dims(), [1, 4, 7, 9]);
    }
}

#[test]
fn pools_leave_out_padding_on_request() {
    let device = Device::default();
    let x = Tensor::<4>::from_floats([[[[1.0, 2.0], [3.0, 4.0]]]], &device);
    let pool = AvgPool2dConfig::new([2, 2]).with_strides([1, 1]).with_padding(PaddingConfig2d::Explicit(1, 1, 0, 0)).with_count_include_pad(false);
    let output = pool.init().forward(x.clone());
    output.into_data().assert_eq(&TensorData::from([[[[1.0f32, 1.5], [2.0, 2.5]]]]), true);
    let pool = MaxPool2dConfig::new([2, 2]).with_strides([1, 1]).with_padding(PaddingConfig2d::Explicit(1, 1, 0, 0));
    let output = pool.init().forward(x);
    output.into_data().assert_eq(&TensorData::from([[[[1.0f32, 2.0], [3.0, 4.0]]]]), true);
}

#[test]
fn a_transposed_convolution_is_the_adjoint_of_the_convolution() {
    let device = device();
    let back = ConvTranspose2dConfig::new([3, 2], [3, 2]).with_stride([2, 1]).with_bias(false).init(&device);
    let mut conv = Conv2dConfig::new([2, 3], [3, 2]).with_stride([2, 1]).with_bias(false).init(&device);
    conv.weight = back.weight.clone();
    let x = Tensor::<4>::random([1, 2, 7, 5], Distribution::Normal(0.0, 1.0), &device).require_grad();
    let y = Tensor::<4>::random([1, 3, 3, 4], Distribution::Normal(0.0, 1.0), &device);
    let gradients = (conv.forward(x.clone()) * y.clone()).sum().backward();
    let expected = x.grad(&gradients).unwrap().into_data();
    back.forward(y).into_data().assert_approx_eq(&expected, Tolerance::<f32>::rel_abs(1e-4, 1e-5));
}

#[test]
fn layers_print_their_settings_on_one_line() {
    let device = Device::default();
    let conv = Conv2dConfig::new([1, 8], [3, 3]).init(&device);
    assert_eq!(
        conv.to_string(),
        "Conv2d {ch_in: 1, ch_out: 8, stride: [1, 1], kernel_size: [3, 3], dilation: [1, 1], groups: 1, padding: Valid, params: 80}"
    );
    assert_eq!(DropoutConfig::new(0.5).init().to_string(), "Dropout {prob: 0.5}");
    assert_eq!(kiln_nn::Relu::new().to_string(), "Relu");
}
