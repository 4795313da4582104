//! Options of convolutions, pools and interpolation against PyTorch: padding that keeps the size, pads that differ by side, steps that differ by axis.

use kiln_nn::PaddingConfig1d as Pad1;
use kiln_nn::PaddingConfig2d as Pad2;
use kiln_nn::PaddingConfig3d as Pad3;
use kiln_nn::conv::{
    Conv1dConfig, Conv2dConfig, Conv3dConfig, ConvTranspose1dConfig, ConvTranspose2dConfig, ConvTranspose3dConfig, DeformConv2dConfig,
};
use kiln_nn::interpolate::{Interpolate1dConfig, Interpolate2dConfig, InterpolateMode};
use kiln_nn::pool::{AvgPool1dConfig, AvgPool2dConfig, MaxPool1dConfig, MaxPool2dConfig};
use kiln_tensor::Tensor;

use crate::golden::Case;
use crate::graded::{backward, cases, device, leaf, same_gradient};
use crate::paths::{filled, same_gradients};

const FILE: &str = "window_options.txt";

/// `Same`, or the pads of the case.
fn pad1(case: &Case) -> Pad1 {
    let [before, after] = case.sizes("pads");
    if case.number("mode") == 1.0 { Pad1::Same } else { Pad1::Explicit(before, after) }
}

fn pad2(case: &Case) -> Pad2 {
    let [top, bottom, left, right] = case.sizes("pads");
    if case.has_attr("mode") && case.number("mode") == 1.0 { Pad2::Same } else { Pad2::Explicit(top, left, bottom, right) }
}

fn pad3(case: &Case) -> Pad3 {
    let [depth, _, height, _, width, _] = case.sizes("pads");
    if case.number("mode") == 1.0 { Pad3::Same } else { Pad3::Explicit(depth, height, width) }
}

/// Checks layers with a weight and a bias, given as configurations.
macro_rules! check_layers {
    ($name:literal, $rank:literal, |$case:ident| $config:expr) => {
        for case in &cases(FILE, $name) {
            let $case = case;
            let layer = filled(case, $config.init(&device()));
            let x = leaf::<$rank>(case, "x");
            let gradients = backward(case, layer.forward(x.clone()));
            same_gradient(case, "x", &x, &gradients);
            same_gradients(case, &layer, &gradients, 2);
        }
    };
}

/// Checks layers without parameters.
fn check<const D: usize>(name: &str, forward: impl Fn(&Case, Tensor<D>) -> Tensor<D>) {
    for case in &cases(FILE, name) {
        let x = leaf::<D>(case, "x");
        let gradients = backward(case, forward(case, x.clone()));
        same_gradient(case, "x", &x, &gradients);
    }
}

#[test]
fn padding_of_convolutions_matches_pytorch() {
    check_layers!("conv1d", 3, |case| {
        let config = Conv1dConfig::new(4, 4, case.size("kernel")).with_stride(case.size("stride")).with_dilation(case.size("dilation"));
        config.with_groups(case.size("groups")).with_padding(pad1(case))
    });
    check_layers!("conv2d", 4, |case| {
        let config = Conv2dConfig::new([4, 4], case.sizes("kernel")).with_stride(case.sizes("stride")).with_dilation(case.sizes("dilation"));
        config.with_groups(case.size("groups")).with_padding(pad2(case))
    });
    check_layers!("conv3d", 5, |case| {
        let config = Conv3dConfig::new([4, 4], case.sizes("kernel")).with_stride(case.sizes("stride")).with_dilation(case.sizes("dilation"));
        config.with_groups(case.size("groups")).with_padding(pad3(case))
    });
}

#[test]
fn transposed_convolutions_with_a_setting_an_axis_match_pytorch() {
    check_layers!("conv_transpose1d", 3, |case| {
        let config = ConvTranspose1dConfig::new([4, 4], case.size("kernel")).with_stride(case.size("stride")).with_dilation(case.size("dilation"));
        config.with_groups(2).with_padding(case.size("padding")).with_padding_out(case.size("padding_out"))
    });
    check_layers!("conv_transpose2d", 4, |case| {
        let config = ConvTranspose2dConfig::new([4, 4], case.sizes("kernel")).with_stride(case.sizes("stride"));
        let config = config.with_dilation(case.sizes("dilation")).with_groups(2);
        config.with_padding(case.sizes("padding")).with_padding_out(case.sizes("padding_out"))
    });
    check_layers!("conv_transpose3d", 5, |case| {
        let config = ConvTranspose3dConfig::new([4, 4], case.sizes("kernel")).with_stride(case.sizes("stride"));
        let config = config.with_dilation(case.sizes("dilation")).with_groups(2);
        config.with_padding(case.sizes("padding")).with_padding_out(case.sizes("padding_out"))
    });
}

#[test]
fn deformable_convolutions_with_a_setting_an_axis_match_their_formula() {
    for case in &cases(FILE, "deform_conv2d") {
        let config = DeformConv2dConfig::new([2, 2], case.sizes("kernel")).with_stride(case.sizes("stride"));
        let layer = filled(case, config.with_dilation(case.sizes("dilation")).with_padding(pad2(case)).init(&device()));
        let (x, offset) = (leaf::<4>(case, "x"), leaf::<4>(case, "offset"));
        let gradients = backward(case, layer.forward(x.clone(), offset.clone(), None));
        same_gradient(case, "x", &x, &gradients);
        same_gradient(case, "offset", &offset, &gradients);
        same_gradients(case, &layer, &gradients, 2);
    }
}

#[test]
fn padding_of_pools_matches_pytorch() {
    check::<3>("max_pool1d", |case, x| {
        let config = MaxPool1dConfig::new(case.size("kernel")).with_stride(case.size("stride")).with_dilation(case.size("dilation"));
        config.with_padding(pad1(case)).with_ceil_mode(case.flag("ceil_mode")).init().forward(x)
    });
    check::<4>("max_pool2d", |case, x| {
        let config = MaxPool2dConfig::new(case.sizes("kernel")).with_strides(case.sizes("stride")).with_dilation(case.sizes("dilation"));
        config.with_padding(pad2(case)).with_ceil_mode(case.flag("ceil_mode")).init().forward(x)
    });
    check::<3>("avg_pool1d", |case, x| {
        let config = AvgPool1dConfig::new(case.size("kernel")).with_stride(case.size("stride")).with_padding(pad1(case));
        config.with_count_include_pad(case.flag("count_include_pad")).init().forward(x)
    });
    check::<4>("avg_pool2d", |case, x| {
        let config = AvgPool2dConfig::new(case.sizes("kernel")).with_strides(case.sizes("stride")).with_padding(pad2(case));
        config.with_count_include_pad(case.flag("count_include_pad")).init().forward(x)
    });
}

#[test]
fn pools_step_by_their_kernel_unless_told_otherwise() {
    check::<3>("max_pool1d_default", |case, x| MaxPool1dConfig::new(case.size("kernel")).init().forward(x));
    check::<4>("max_pool2d_default", |case, x| MaxPool2dConfig::new(case.sizes("kernel")).init().forward(x));
    check::<3>("avg_pool1d_default", |case, x| AvgPool1dConfig::new(case.size("kernel")).init().forward(x));
    check::<4>("avg_pool2d_default", |case, x| AvgPool2dConfig::new(case.sizes("kernel")).init().forward(x));
}

fn mode(case: &Case) -> InterpolateMode {
    match case.size("mode") {
        0 => InterpolateMode::Nearest,
        1 => InterpolateMode::NearestExact,
        2 => InterpolateMode::Linear,
        3 => InterpolateMode::Cubic,
        _ => InterpolateMode::Lanczos,
    }
}

#[test]
fn every_mode_of_interpolation_matches_pytorch_by_size_and_by_factor() {
    let one = |case: &Case| Interpolate1dConfig::new().with_mode(mode(case)).with_align_corners(case.flag("corners"));
    check::<3>("interpolate1d", |case, x| one(case).with_output_size(Some(case.size("size"))).init().forward(x));
    check::<3>("interpolate1d_scale", |case, x| one(case).with_scale_factor(Some(case.number("scale") as f32)).init().forward(x));
    let two = |case: &Case| Interpolate2dConfig::new().with_mode(mode(case)).with_align_corners(case.flag("corners"));
    check::<4>("interpolate2d", |case, x| two(case).with_output_size(Some(case.sizes("size"))).init().forward(x));
    check::<4>("interpolate2d_scale", |case, x| {
        let scale = [case.attr("scale")[0] as f32, case.attr("scale")[1] as f32];
        two(case).with_scale_factor(Some(scale)).init().forward(x)
    });
}
