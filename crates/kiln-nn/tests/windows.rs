//! Convolutions, pools, folds and interpolation against PyTorch, with every option.

use kiln_nn::conv::{
    Conv1d, Conv1dConfig, Conv2d, Conv2dConfig, Conv3d, Conv3dConfig, ConvTranspose1d, ConvTranspose1dConfig, ConvTranspose2d, ConvTranspose2dConfig,
    ConvTranspose3d, ConvTranspose3dConfig,
};
use kiln_nn::interpolate::{Interpolate1dConfig, Interpolate2dConfig, InterpolateMode};
use kiln_nn::pool::{
    AdaptiveAvgPool1dConfig, AdaptiveAvgPool2dConfig, AdaptiveAvgPool3dConfig, AvgPool1dConfig, AvgPool2dConfig, MaxPool1dConfig, MaxPool2dConfig,
};
use kiln_nn::{Fold4dConfig, PaddingConfig1d, PaddingConfig2d, PaddingConfig3d, Unfold4dConfig};
use kiln_tensor::Tensor;

use crate::golden::Case;
use crate::graded::{backward, cases, device, leaf, param, same_gradient};

/// Checks a layer with `weight` and `bias` that is given as a configuration, its parameters replaced by the case's.
macro_rules! check_layer {
    ($case:expr, $rank:literal, $layer:ident, $config:expr) => {{
        let case = $case;
        let bias = case.get("bias").is_some();
        let layer = $layer { weight: param(case, "weight"), bias: bias.then(|| param(case, "bias")), ..$config.with_bias(bias).init(&device()) };
        let x = leaf::<$rank>(case, "x");
        let gradients = backward(case, layer.forward(x.clone()));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "weight", &layer.weight, &gradients);
        if let Some(bias) = &layer.bias {
            same_gradient(case, "bias", bias, &gradients);
        }
    }};
}

/// Checks a layer without parameters.
fn check<const D: usize, const E: usize>(case: &Case, forward: impl FnOnce(Tensor<D>) -> Tensor<E>) {
    let x = leaf::<D>(case, "x");
    let gradients = backward(case, forward(x.clone()));
    same_gradient(case, "x", &x, &gradients);
}

#[test]
fn convolutions_match_pytorch() {
    for case in &cases("conv.txt", "conv1d") {
        let padding = case.size("padding");
        let config = Conv1dConfig::new(2, 4, case.size("kernel")).with_stride(case.size("stride")).with_dilation(case.size("dilation"));
        let config = config.with_groups(case.size("groups")).with_padding(PaddingConfig1d::Explicit(padding, padding));
        check_layer!(case, 3, Conv1d, config);
    }
    for case in &cases("conv.txt", "conv2d") {
        let (padding, stride, dilation) = (case.size("padding"), case.size("stride"), case.size("dilation"));
        let config = Conv2dConfig::new([2, 4], case.sizes("kernel")).with_stride([stride; 2]).with_dilation([dilation; 2]);
        let config = config.with_groups(case.size("groups")).with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding));
        check_layer!(case, 4, Conv2d, config);
    }
    for case in &cases("conv.txt", "conv3d") {
        let (padding, stride, dilation) = (case.size("padding"), case.size("stride"), case.size("dilation"));
        let config = Conv3dConfig::new([2, 4], case.sizes("kernel")).with_stride([stride; 3]).with_dilation([dilation; 3]);
        let config = config.with_groups(case.size("groups")).with_padding(PaddingConfig3d::Explicit(padding, padding, padding));
        check_layer!(case, 5, Conv3d, config);
    }
}

#[test]
fn transposed_convolutions_match_pytorch() {
    for case in &cases("conv.txt", "conv_transpose1d") {
        let config = ConvTranspose1dConfig::new([2, 4], case.size("kernel")).with_stride(case.size("stride")).with_dilation(case.size("dilation"));
        let config = config.with_groups(case.size("groups")).with_padding(case.size("padding")).with_padding_out(case.size("padding_out"));
        check_layer!(case, 3, ConvTranspose1d, config);
    }
    for case in &cases("conv.txt", "conv_transpose2d") {
        let [stride, dilation, padding, out] = ["stride", "dilation", "padding", "padding_out"].map(|name| [case.size(name); 2]);
        let config = ConvTranspose2dConfig::new([2, 4], case.sizes("kernel")).with_stride(stride).with_dilation(dilation);
        let config = config.with_groups(case.size("groups")).with_padding(padding).with_padding_out(out);
        check_layer!(case, 4, ConvTranspose2d, config);
    }
    for case in &cases("conv.txt", "conv_transpose3d") {
        let [stride, dilation, padding, out] = ["stride", "dilation", "padding", "padding_out"].map(|name| [case.size(name); 3]);
        let config = ConvTranspose3dConfig::new([2, 4], case.sizes("kernel")).with_stride(stride).with_dilation(dilation);
        let config = config.with_groups(case.size("groups")).with_padding(padding).with_padding_out(out);
        check_layer!(case, 5, ConvTranspose3d, config);
    }
}

#[test]
fn pools_match_pytorch() {
    for case in &cases("pool.txt", "max_pool1d") {
        let padding = case.size("padding");
        let config = MaxPool1dConfig::new(case.size("kernel")).with_stride(case.size("stride")).with_dilation(case.size("dilation"));
        let config = config.with_padding(PaddingConfig1d::Explicit(padding, padding)).with_ceil_mode(case.flag("ceil_mode"));
        check::<3, 3>(case, |x| config.init().forward(x));
    }
    for case in &cases("pool.txt", "max_pool2d") {
        let padding = case.size("padding");
        let config = MaxPool2dConfig::new(case.sizes("kernel")).with_strides([case.size("stride"); 2]).with_dilation([case.size("dilation"); 2]);
        let config = config.with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding)).with_ceil_mode(case.flag("ceil_mode"));
        check::<4, 4>(case, |x| config.init().forward(x));
    }
    for case in &cases("pool.txt", "avg_pool1d") {
        let padding = case.size("padding");
        let config = AvgPool1dConfig::new(case.size("kernel")).with_stride(case.size("stride")).with_ceil_mode(case.flag("ceil_mode"));
        let config = config.with_padding(PaddingConfig1d::Explicit(padding, padding)).with_count_include_pad(case.flag("count_include_pad"));
        check::<3, 3>(case, |x| config.init().forward(x));
    }
    for case in &cases("pool.txt", "avg_pool2d") {
        let padding = case.size("padding");
        let config = AvgPool2dConfig::new(case.sizes("kernel")).with_strides([case.size("stride"); 2]).with_ceil_mode(case.flag("ceil_mode"));
        let config = config.with_padding(PaddingConfig2d::Explicit(padding, padding, padding, padding));
        check::<4, 4>(case, |x| config.with_count_include_pad(case.flag("count_include_pad")).init().forward(x));
    }
}

#[test]
fn adaptive_pools_match_pytorch() {
    for case in &cases("pool.txt", "adaptive_avg_pool1d") {
        check::<3, 3>(case, |x| AdaptiveAvgPool1dConfig::new(case.size("size")).init().forward(x));
    }
    for case in &cases("pool.txt", "adaptive_avg_pool2d") {
        check::<4, 4>(case, |x| AdaptiveAvgPool2dConfig::new(case.sizes("size")).init().forward(x));
    }
    for case in &cases("pool.txt", "adaptive_avg_pool3d") {
        check::<5, 5>(case, |x| AdaptiveAvgPool3dConfig::new(case.sizes("size")).init().forward(x));
    }
}

#[test]
fn interpolation_matches_pytorch() {
    for case in &cases("resize.txt", "interpolate1d_nearest") {
        check::<3, 3>(case, |x| Interpolate1dConfig::new().with_output_size(Some(case.size("size"))).init().forward(x));
    }
    for case in &cases("resize.txt", "interpolate1d_linear") {
        let config = Interpolate1dConfig::new().with_output_size(Some(case.size("size"))).with_mode(InterpolateMode::Linear);
        check::<3, 3>(case, |x| config.with_align_corners(case.flag("corners")).init().forward(x));
    }
    let modes = [
        ("interpolate2d_nearest", InterpolateMode::Nearest),
        ("interpolate2d_nearest_exact", InterpolateMode::NearestExact),
        ("interpolate2d_bilinear", InterpolateMode::Linear),
        ("interpolate2d_bicubic", InterpolateMode::Cubic),
    ];
    for (name, mode) in modes {
        for case in &cases("resize.txt", name) {
            let config = Interpolate2dConfig::new().with_output_size(Some(case.sizes("size"))).with_mode(mode.clone());
            check::<4, 4>(case, |x| config.with_align_corners(case.flag("corners")).init().forward(x));
        }
    }
    for case in &cases("resize.txt", "interpolate2d_scale") {
        let scale = [case.attr("scale")[0] as f32, case.attr("scale")[1] as f32];
        let config = Interpolate2dConfig::new().with_scale_factor(Some(scale)).with_mode(InterpolateMode::Linear).with_align_corners(false);
        check::<4, 4>(case, |x| config.init().forward(x));
    }
}

#[test]
fn folds_match_pytorch() {
    for case in &cases("resize.txt", "unfold") {
        let config = Unfold4dConfig::new(case.sizes("kernel")).with_stride(case.sizes("stride")).with_dilation(case.sizes("dilation"));
        check::<4, 3>(case, |x| config.with_padding(case.sizes("padding")).init().forward(x));
    }
    for case in &cases("resize.txt", "fold") {
        let config = Fold4dConfig::new(case.sizes("size"), case.sizes("kernel")).with_stride(case.sizes("stride"));
        let config = config.with_dilation(case.sizes("dilation")).with_padding(case.sizes("padding"));
        check::<3, 4>(case, |x| config.init().forward(x));
    }
}
