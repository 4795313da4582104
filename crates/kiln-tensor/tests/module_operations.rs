//! The functions of `module` as a table like that of the operations: over layouts, sizes and dtypes against the interpreter, and gradients of every float operand that is made
//! of the table's against central differences.
use kiln_tensor::module::*;
use kiln_tensor::ops::*;
use kiln_tensor::raw::RawTensor;
use kiln_tensor::{Bool, IndexingUpdateOp, Int, Tensor};

use crate::operations::{Parts, Row, differing_slopes, other, places, rows, some, sweep_with};

/// A pattern of numbers from -0.75 to 0.75 in a tensor's dtype, with gradients where that has them: it depends on the tensor's sum.
fn pattern<const D: usize>(x: &Tensor<2>, dims: [usize; D]) -> Tensor<D> {
    let fixed = places(x, dims, 7).float().cast(x.dtype()).mul_scalar(0.25).sub_scalar(0.75);
    let fixed = if x.is_autodiff() { fixed.autodiff() } else { fixed };
    let rest = x.clone().slice([0..some(x, 0, 1), 0..some(x, 1, 1)]).sum().mul_scalar(0.125);
    fixed.add(rest.reshape([1; D]))
}

/// Two channels of one image.
fn planes(x: &Tensor<2>) -> Tensor<4> {
    Tensor::stack::<3>(vec![x.clone(), other(x)], 0).unsqueeze_dim(0)
}

/// As many rows of one channel as there are rows, as images.
fn lines(x: Tensor<2>) -> Tensor<3> {
    x.unsqueeze_dim(1)
}

fn interpolated(x: &Tensor<2>, mode: InterpolateMode, corners: bool) -> (Tensor<4>, Tensor<4>) {
    let options = |size| InterpolateOptions::new(mode.clone()).with_align_corners(corners).with_output_size(size);
    (interpolate(planes(x), options([4, 3])), interpolate(planes(x), options([1, 7])))
}

fn table() -> Vec<Row<kiln_tensor::Float>> {
    rows! {
        "linear": |x| { let w = pattern(&x, [x.dims()[1], 3]); let b = pattern(&x, [3]); linear(x, w, Some(b)) },
        "embedding": |x| { let n = some(&x, 0, 2); let at = places(&x, [n, 3], x.dims()[0]); embedding(x, at) },
        "conv1d": |x| {
            let (w, b) = (pattern(&x, [2, 1, 3]), pattern(&x, [2]));
            conv1d(lines(x), w, Some(b), ConvOptions::new([1], [1], [1], 1))
        },
        "conv2d": |x| {
            let (w, b) = (pattern(&x, [4, 1, 3, 2]), pattern(&x, [4]));
            conv2d(planes(&x), w, Some(b), ConvOptions::new([1, 2], [1, 1], [1, 1], 2))
        },
        "conv2d": |x| {
            let w = pattern(&x, [3, 2, 3, 3]);
            conv2d(planes(&x), w, None, ConvOptions::new_with_padding([1, 1], [(2, 1), (2, 3)], [2, 1], 1))
        },
        "conv3d": |x| {
            let w = pattern(&x, [2, 1, 2, 3, 2]);
            conv3d(planes(&x).unsqueeze_dim(1), w, None, ConvOptions::new([1, 1, 2], [1, 1, 1], [1, 1, 1], 1))
        },
        "conv_transpose1d": |x| {
            let (w, b) = (pattern(&x, [1, 2, 3]), pattern(&x, [2]));
            conv_transpose1d(lines(x), w, Some(b), ConvTransposeOptions::new([2], [1], [1], [1], 1))
        },
        "conv_transpose2d": |x| {
            let w = pattern(&x, [2, 2, 3, 2]);
            conv_transpose2d(planes(&x), w, None, ConvTransposeOptions::new([1, 2], [1, 0], [0, 1], [1, 2], 2))
        },
        "conv_transpose3d": |x| {
            let w = pattern(&x, [1, 2, 2, 2, 3]);
            conv_transpose3d(planes(&x).unsqueeze_dim(1), w, None, ConvTransposeOptions::new([1, 1, 2], [0, 0, 1], [0, 0, 0], [1, 1, 1], 1))
        },
        "conv2d_weight_backward": |x| {
            let (w, y) = (pattern(&x, [2, 2, 1, 1]), planes(&x));
            conv2d_weight_backward(planes(&x).mul_scalar(0.5), w, y, ConvOptions::new([1, 1], [0, 0], [1, 1], 1))
        },
        "deform_conv2d": |x| {
            let [r, c] = x.dims();
            let (offset, w, mask) = (pattern(&x, [1, 8, r + 1, c + 1]), pattern(&x, [2, 2, 2, 2]), pattern(&x, [1, 4, r + 1, c + 1]));
            let options = DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1);
            deform_conv2d(planes(&x), offset.mul_scalar(0.9).add_scalar(0.03), w, Some(mask), None, options)
        },
        "max_pool1d": |x| max_pool1d(lines(x), MaxPoolOptions::new([2]).with_stride([2]).with_padding([1])),
        "max_pool2d": |x| max_pool2d(planes(&x), MaxPoolOptions::new([3, 2]).with_stride([2, 1]).with_padding([1, 1]).with_ceil_mode(true)),
        "max_pool1d_with_indices": |x| max_pool1d_with_indices(lines(x), MaxPoolOptions::new([3]).with_stride([1]).with_padding([1])),
        "max_pool2d_with_indices": |x| {
            max_pool2d_with_indices(planes(&x), MaxPoolOptions::new([2, 2]).with_stride([1, 2]).with_padding([1, 1]).with_dilation([1, 1]))
        },
        "avg_pool1d": |x| avg_pool1d(lines(x), AvgPoolOptions::new([2]).with_stride([1]).with_padding([1])),
        "avg_pool2d": |x| {
            let options = AvgPoolOptions::new([3, 2]).with_stride([2, 2]).with_padding([1, 1]).with_count_include_pad(false).with_ceil_mode(true);
            avg_pool2d(planes(&x), options)
        },
        "adaptive_avg_pool1d": |x| adaptive_avg_pool1d(lines(x), 3),
        "adaptive_avg_pool2d": |x| adaptive_avg_pool2d(planes(&x), [2, 3]),
        "adaptive_avg_pool3d": |x| adaptive_avg_pool3d(planes(&x).unsqueeze_dim(0), [1, 2, 3]),
        "interpolate": |x| interpolated(&x, InterpolateMode::Nearest, true),
        "interpolate": |x| interpolated(&x, InterpolateMode::NearestExact, true),
        "interpolate": |x| interpolated(&x, InterpolateMode::Bilinear, true),
        "interpolate": |x| interpolated(&x, InterpolateMode::Bilinear, false),
        "interpolate": |x| interpolated(&x, InterpolateMode::Bicubic, false),
        "interpolate": |x| interpolated(&x, InterpolateMode::Lanczos3, false),
        "unfold4d": |x| unfold4d(planes(&x), [2, 2], UnfoldOptions::new([1, 2], [1, 1], [1, 1])),
        "fold4d": |x| {
            let [r, c] = x.dims();
            let windows = unfold4d(planes(&x), [2, 2], UnfoldOptions::new([1, 1], [1, 1], [1, 1]));
            fold4d(windows, [r, c], [2, 2], UnfoldOptions::new([1, 1], [1, 1], [1, 1]))
        },
        "attention": |x| {
            let (key, value) = (planes(&x).flip([2]), planes(&x).mul_scalar(0.5));
            attention(planes(&x), key, value, None, None, AttentionModuleOptions { is_causal: true, ..Default::default() })
        },
        "attention": |x| {
            let n = x.dims()[0];
            let (key, value) = (planes(&x).flip([3]), planes(&x));
            let mask: Tensor<4, Bool> = places(&x, [1, 2, n, n], 5).equal_elem(0);
            let (bias, options) = (pattern(&x, [1, 1, n, n]), AttentionModuleOptions { softcap: Some(2.0), scale: Some(0.7), is_causal: false });
            attention(planes(&x), key, value, Some(mask), Some(bias), options)
        },
        "attention_fallback": |x| attention_fallback(planes(&x), planes(&x), planes(&x), None, None, AttentionModuleOptions::default()),
        "layer_norm": |x| { let n = x.dims()[1]; let (g, b) = (pattern(&x, [n]), pattern(&x, [n])); layer_norm(x.clone().add(x.cumsum(1)), g, Some(b), 1e-3) },
        "batch_norm": |x| {
            let n = x.dims()[1];
            let (g, b, m, v) = (pattern(&x, [n]), pattern(&x, [n]), pattern(&x, [n]), pattern(&x, [n]).square());
            batch_norm(x, g, b, m, v, 1e-2)
        },
        "batch_norm_train": |x| {
            let n = x.dims()[1];
            let (g, b) = (pattern(&x, [n]), pattern(&x, [n]));
            batch_norm_train(x, g, b, 1e-2).output
        },
        "ctc_loss": |x| {
            // As many steps as there are columns, two sequences, four classes.
            let steps = x.dims()[1];
            let scores = pattern(&x, [steps, 2, 4]).add(x.sum_dim(0).reshape([steps, 1, 1]));
            let (targets, lengths) = (places(&scores_of(&scores), [2, 1], 3).add_scalar(1), places(&scores_of(&scores), [2], 1));
            ctc_loss(kiln_tensor::activation::log_softmax(scores, 2), targets, lengths.clone().add_scalar(steps as i64), lengths.add_scalar(1), 0)
        },
        "scatter": |x| updated(&x, IndexingUpdateOp::Mul),
        "scatter": |x| updated(&x, IndexingUpdateOp::Min),
        "scatter": |x| updated(&x, IndexingUpdateOp::Max),
        "scatter": |x| updated(&x, IndexingUpdateOp::Assign),
    }
}

/// A tensor of two axes on the same device, to make places from.
fn scores_of(x: &Tensor<3>) -> Tensor<2> {
    x.clone().flatten(0, 1)
}

/// The same rows of a tensor updated in three ways.
fn updated(x: &Tensor<2>, op: IndexingUpdateOp) -> Vec<Tensor<2>> {
    let n = some(x, 0, 2).min(x.dims()[0]);
    let at: Tensor<2, Int> = places(x, [n, x.dims()[1]], x.dims()[0]);
    let values = other(x).slice(0..n).mul_scalar(0.5).add_scalar(0.3);
    let rows: Tensor<1, Int> = Tensor::from_raw(RawTensor::iota(&x.device().without_autodiff(), &[n], kiln_ir::DType::I64, 0));
    vec![
        x.clone().scatter(0, at, values.clone(), op),
        x.clone().select_assign(0, rows.clone(), values.clone(), op),
        x.clone().scatter_nd::<2, 2>(rows.unsqueeze_dim(1), values, op),
    ]
}

#[test]
fn functions_of_modules_agree_with_the_interpreter() {
    use kiln_ir::DType::{BF16, F16, F32, F64};
    // A window may be larger than a small image.
    sweep_with(&table(), &[(F32, true), (F64, false), (F16, false), (BF16, false)], &[false, true], |_, size| size.iter().any(|n| *n < 2));
}

#[test]
fn gradients_of_functions_of_modules_are_slopes() {
    let wrong = differing_slopes(&table());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
