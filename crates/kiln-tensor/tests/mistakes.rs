//! Mistakes in options, slices, shapes, types and devices: each names what was called and with what, at the caller's line, also where public fields go around constructors.

use kiln_tensor::module;
use kiln_tensor::ops::*;
use kiln_tensor::*;
use rand::SeedableRng;

use crate::errors::{check, index, int, mask, of, x};

/// Takes what a call would have given.
fn gone<T>(_: T) {}

/// Two steps, of which one is 0.
const NONE_2: [usize; 2] = [1, 0];

#[test]
fn steps_and_groups_of_zero_are_named_by_their_constructors() {
    check(&[
        ("conv", || gone(ConvOptions::new(NONE_2, [0, 0], [1, 1], 1)), &["stride [1, 0]"]),
        ("conv", || gone(ConvOptions::new([1, 1], [0, 0], NONE_2, 1)), &["dilation [1, 0]"]),
        ("conv", || gone(ConvOptions::new([1, 1], [0, 0], [1, 1], 0)), &["groups"]),
        ("conv", || gone(ConvOptions::new_with_padding([1], [(0, 1)], [1], 0)), &["groups"]),
        ("conv", || gone(ConvOptions::new_with_padding([1], [(0, 1)], [1], 1).symmetric_padding()), &["(0, 1)", "not symmetric"]),
        ("conv_transpose", || gone(ConvTransposeOptions::new(NONE_2, [0, 0], [0, 0], [1, 1], 1)), &["stride [1, 0]"]),
        ("conv_transpose", || gone(ConvTransposeOptions::new([1], [0], [0], [0], 1)), &["dilation [0]"]),
        ("conv_transpose", || gone(ConvTransposeOptions::new([1], [0], [0], [1], 0)), &["groups"]),
        ("deform_conv", || gone(DeformConvOptions::new(NONE_2, [0, 0], [1, 1], 1, 1)), &["stride [1, 0]"]),
        ("deform_conv", || gone(DeformConvOptions::new([1, 1], [0, 0], [1, 1], 0, 1)), &["groups"]),
        ("deform_conv", || gone(DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 0)), &["groups"]),
        ("unfold", || gone(UnfoldOptions::new(NONE_2, [0, 0], [1, 1])), &["stride [1, 0]"]),
        ("unfold", || gone(UnfoldOptions::new([1, 1], [0, 0], NONE_2)), &["dilation [1, 0]"]),
        ("pad", || gone(x().pad([(0, 0), (0, 0), (1, 1)], PadMode::Edge)), &["3 pairs", "rank 2"]),
    ]);
}

#[test]
fn steps_and_groups_of_zero_are_named_where_fields_hold_them() {
    fn conv() -> ConvOptions<2> {
        ConvOptions::new([1, 1], [0, 0], [1, 1], 1)
    }
    fn transposed() -> ConvTransposeOptions<2> {
        ConvTransposeOptions::new([1, 1], [0, 0], [0, 0], [1, 1], 1)
    }
    fn deformed(options: DeformConvOptions<2>) {
        module::deform_conv2d(of([1, 1, 3, 3]), of([1, 8, 2, 2]), of([1, 1, 2, 2]), None, None, options);
    }
    fn deform() -> DeformConvOptions<2> {
        DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1)
    }
    fn unfold() -> UnfoldOptions {
        UnfoldOptions::new([1, 1], [0, 0], [1, 1])
    }
    fn image() -> Tensor<4> {
        of([1, 1, 3, 3])
    }
    fn kernel() -> Tensor<4> {
        of([1, 1, 2, 2])
    }
    const IMAGE: &[&str] = &["[1, 1, 3, 3]"];
    check(&[
        ("conv", || gone(module::conv2d(image(), kernel(), None, ConvOptions { stride: NONE_2, ..conv() })), IMAGE),
        ("conv", || gone(module::conv2d(image(), kernel(), None, ConvOptions { dilation: NONE_2, ..conv() })), IMAGE),
        ("conv", || gone(module::conv2d(image(), kernel(), None, ConvOptions { groups: 0, ..conv() })), IMAGE),
        ("conv", || gone(module::conv2d(image(), of([1, 1, 0, 2]), None, conv())), IMAGE),
        (
            "conv_transpose",
            || gone(module::conv_transpose2d(image(), kernel(), None, ConvTransposeOptions { stride: NONE_2, ..transposed() })),
            IMAGE,
        ),
        (
            "conv_transpose",
            || gone(module::conv_transpose2d(image(), kernel(), None, ConvTransposeOptions { dilation: NONE_2, ..transposed() })),
            IMAGE,
        ),
        ("conv_transpose", || gone(module::conv_transpose2d(image(), kernel(), None, ConvTransposeOptions { groups: 0, ..transposed() })), IMAGE),
        ("conv_transpose", || gone(module::conv_transpose2d(image(), of([1, 1, 0, 2]), None, transposed())), IMAGE),
        ("deform_conv2d", || deformed(DeformConvOptions { stride: NONE_2, ..deform() }), IMAGE),
        ("deform_conv2d", || deformed(DeformConvOptions { dilation: NONE_2, ..deform() }), IMAGE),
        ("deform_conv2d", || deformed(DeformConvOptions { weight_groups: 0, ..deform() }), IMAGE),
        ("deform_conv2d", || deformed(DeformConvOptions { offset_groups: 0, ..deform() }), IMAGE),
        ("unfold4d", || gone(module::unfold4d(image(), [2, 2], UnfoldOptions { stride: NONE_2, ..unfold() })), IMAGE),
        ("unfold4d", || gone(module::unfold4d(image(), [2, 2], UnfoldOptions { dilation: NONE_2, ..unfold() })), IMAGE),
        ("unfold4d", || gone(module::unfold4d(image(), [0, 2], unfold())), IMAGE),
        ("fold4d", || gone(module::fold4d(of([1, 4, 4]), [3, 3], [2, 2], UnfoldOptions { stride: NONE_2, ..unfold() })), &["[1, 4, 4]"]),
        ("fold4d", || gone(module::fold4d(of([1, 4, 4]), [3, 3], [0, 2], unfold())), &["[1, 4, 4]"]),
        ("max_pool", || gone(module::max_pool2d(image(), MaxPoolOptions::new(NONE_2))), IMAGE),
        ("max_pool", || gone(module::max_pool2d(image(), MaxPoolOptions::new([2, 2]).with_stride(NONE_2))), IMAGE),
        ("max_pool", || gone(module::max_pool2d(image(), MaxPoolOptions::new([2, 2]).with_dilation(NONE_2))), IMAGE),
        ("max_pool", || gone(module::max_pool2d_with_indices(image(), MaxPoolOptions::new([2, 2]).with_stride(NONE_2))), IMAGE),
        ("max_pool", || gone(module::max_pool1d(of([1, 1, 3]), MaxPoolOptions::new([0]))), &["[1, 1, 3]"]),
        ("avg_pool", || gone(module::avg_pool2d(image(), AvgPoolOptions::new(NONE_2))), IMAGE),
        ("avg_pool", || gone(module::avg_pool2d(image(), AvgPoolOptions::new([2, 2]).with_stride(NONE_2))), IMAGE),
        ("avg_pool", || gone(module::avg_pool1d(of([1, 1, 3]), AvgPoolOptions::new([0]))), &["[1, 1, 3]"]),
        ("adaptive_avg_pool", || gone(module::adaptive_avg_pool2d(of([1, 1, 0, 3]), [1, 1])), &["[1, 1, 0, 3]"]),
        ("interpolate", || gone(module::interpolate(image(), InterpolateOptions::new(InterpolateMode::Bilinear).with_output_size([0, 2]))), IMAGE),
        (
            "interpolate",
            || gone(module::interpolate(image(), InterpolateOptions::new(InterpolateMode::Bilinear).with_scale_factor([0.1, 1.0]))),
            IMAGE,
        ),
        (
            "interpolate",
            || gone(module::interpolate(image(), InterpolateOptions::new(InterpolateMode::Bilinear).with_scale_factor([f32::NAN, 1.0]))),
            IMAGE,
        ),
    ]);
}

#[test]
fn operands_of_functions_of_modules_that_do_not_fit_are_named() {
    check(&[
        ("conv", || gone(module::conv1d(of([1, 2, 4]), of([3, 1, 2]), None, ConvOptions::new([1], [0], [1], 2))), &["[1, 2, 4]", "[3, 1, 2]"]),
        (
            "conv",
            || gone(module::conv3d(of([1, 1, 2, 2, 2]), of([1, 1, 3, 1, 1]), None, ConvOptions::new([1; 3], [0; 3], [1; 3], 1))),
            &["[1, 1, 2, 2, 2]"],
        ),
        (
            "conv_transpose",
            || {
                drop(module::conv_transpose3d(
                    of([1, 2, 2, 2, 2]),
                    of([1, 1, 1, 1, 1]),
                    None,
                    ConvTransposeOptions::new([1; 3], [0; 3], [0; 3], [1; 3], 1),
                ))
            },
            &["[1, 2, 2, 2, 2]", "[1, 1, 1, 1, 1]"],
        ),
        (
            "conv_transpose",
            || gone(module::conv_transpose1d(of([1, 1, 1]), of([1, 1, 2]), None, ConvTransposeOptions::new([1], [5], [0], [1], 1))),
            &["padding [5]", "[1, 1, 1]"],
        ),
        ("linear", || gone(module::linear(x(), of([3, 2]), Some(of([3])))), &["bias [3]", "[3, 2]"]),
        ("gather", || gone(module::embedding(of([0, 2]), index([1, 2]))), &["[0, 2]"]),
        ("layer_norm", || gone(module::layer_norm(x(), of([3]), Some(of([2])), 1e-5)), &["[2, 3]", "[2]"]),
        ("batch_norm", || gone(module::batch_norm(x(), of([2]), of([3]), of([3]), of([3]), 1e-5)), &["[2, 3]", "[2]"]),
        ("batch_norm", || gone(module::batch_norm_train(x(), of([3]), of([4]), 1e-5)), &["[2, 3]", "[4]"]),
        (
            "grid_sample_2d",
            || gone(of([1, 1, 2, 2]).grid_sample_2d(of([1, 1, 1, 3]), GridSampleOptions::default())),
            &["[1, 1, 2, 2]", "[1, 1, 1, 3]"],
        ),
        (
            "grid_sample_2d",
            || gone(of([1, 1, 2, 2]).grid_sample_2d(of([1, 1, 1, 2]).cast(DType::F64), GridSampleOptions::default())),
            &["f32", "f64", "[1, 1, 2, 2]"],
        ),
        (
            "attention",
            || gone(module::attention(of([1, 1, 2, 4]), of([1, 1, 3, 5]), of([1, 1, 3, 4]), None, None, Default::default())),
            &["[1, 1, 2, 4]", "[1, 1, 3, 5]"],
        ),
        (
            "attention",
            || gone(module::attention(of([1, 1, 2, 4]), of([1, 1, 3, 4]), of([1, 1, 2, 4]), None, None, Default::default())),
            &["[1, 1, 3, 4]", "[1, 1, 2, 4]"],
        ),
        (
            "attention",
            || gone(module::attention(of([1, 1, 2, 4]), of([1, 1, 3, 4]), of([1, 1, 3, 4]), Some(mask([1, 1, 3, 3])), None, Default::default())),
            &["[1, 1, 2, 4]", "[1, 1, 3, 3]"],
        ),
        (
            "attention",
            || gone(module::attention_fallback(of([1, 1, 2, 4]), of([1, 2, 3, 4]), of([1, 1, 3, 4]), None, None, Default::default())),
            &["[1, 1, 2, 4]", "[1, 2, 3, 4]"],
        ),
        (
            "attention",
            || gone(module::attention_fallback(of([1, 2, 2, 4]), of([1, 2, 3, 5]), of([1, 2, 3, 4]), None, None, Default::default())),
            &["[1, 2, 2, 4]", "[1, 2, 3, 5]"],
        ),
        ("affine_grid_2d", || gone(grid::affine_grid_2d(of([1, 2, 2]), [1, 1, 2, 2])), &["[1, 2, 2]", "[1, 2, 3]"]),
        ("cross_entropy_with_logits", || gone(loss::cross_entropy_with_logits(x(), of([3, 2]))), &["[2, 3]", "[3, 2]"]),
        ("check_closeness", || check_closeness(&x(), &of([3, 2])), &["[2, 3]", "[3, 2]"]),
    ]);
}

#[test]
fn slices_without_a_step_or_an_end_say_so() {
    const STILL: Slice = Slice { start: 0, end: Some(2), step: 0 };
    check(&[
        ("slice", || gone(Slice::new(0, None, 0).to_string()), &["step"]),
        ("slice", || gone(Slice::with_step(0, None, 0).to_string()), &["step"]),
        ("slice", || gone(s![0..2; 0].to_string()), &["step"]),
        ("slice", || gone(x().slice(s![.., 0..2; 0])), &["step"]),
        ("slice", || gone(x().slice(STILL)), &["the step is 0", "axis 0", "[2, 3]"]),
        ("slice_assign", || gone(x().slice_assign(STILL, x())), &["the step is 0", "axis 0", "[2, 3]"]),
        ("slice_fill", || gone(x().slice_fill(STILL, 1.0)), &["the step is 0", "axis 0", "[2, 3]"]),
        ("slice_dim", || gone(x().slice_dim(1, STILL)), &["the step is 0", "axis 1", "[2, 3]"]),
        ("slice", || gone(STILL.into_vec()), &["step", "..2"]),
        ("slice", || gone(STILL.into_iter().count()), &["step"]),
        ("slice", || gone(STILL.output_size(3).to_string()), &["step", "size 3"]),
        (
            "slice",
            || gone(SliceOps::slice(Shape::new([2, 3]), &[STILL]).map(|shape| shape.to_string()).unwrap_or_else(|e| panic!("slice: {e}"))),
            &["step"],
        ),
        ("slice", || gone(Slice::full().into_vec()), &["no end", ".."]),
        ("slice", || gone(Slice::new(0, None, -1).into_iter().count()), &["no end"]),
        ("slice", || gone(Shape::new([2]).into_slices([0..1, 0..1])), &["2 slices", "[2]"]),
    ]);
}

#[test]
fn shapes_that_cannot_be_are_named() {
    check(&[
        ("shape", || gone(Shape::from([-1i32])), &["-1", "axis 0"]),
        ("shape", || gone(Shape::from(vec![2i64, -3])), &["-3", "axis 1", "[2, -3]"]),
        ("shape", || gone(Shape::new([2, 3])[2].to_string()), &["out of range", "[2, 3]"]),
        ("shape", || gone(Shape::new([2, 3])[1..4].to_vec()), &["out of range", "[2, 3]"]),
        ("shape", || Shape::new([2, 3])[2] = 1, &["out of range", "[2, 3]"]),
        ("shape", || gone(Shape::new([usize::MAX, 3]).num_elements().to_string()), &["too many elements", "3]"]),
        ("shape", || gone(Shape::new([usize::MAX, 3]).flatten()), &["too many elements"]),
        ("dims", || gone(Shape::new([2, 3]).dims::<3>()), &["[2, 3]", "rank 2"]),
        ("insert", || Shape::new([2, 3]).insert(3, 1), &["axis 3", "[2, 3]"]),
        ("remove", || gone(Shape::new([2, 3]).remove(2).to_string()), &["axis 2", "[2, 3]"]),
        ("flatten", || gone(Shape::new([2, 3]).flatten_dims(1, 0)), &["axis 1", "axis 0", "[2, 3]"]),
        ("flatten", || gone(Shape::new([2, 3]).flatten_dims(0, 2)), &["axis 2", "[2, 3]"]),
        ("ravel_index", || gone(Shape::new([2, 3]).ravel_index(&[0, 3]).to_string()), &["3", "[2, 3]"]),
        ("ravel_index", || gone(Shape::new([2, 3]).ravel_index(&[0]).to_string()), &["1 indices", "[2, 3]"]),
        ("reshape", || gone(x().reshape([-1, -1])), &["more than one size is -1", "[2, 3]"]),
        ("reshape", || gone(x().reshape([-1, 4])), &["[2, 3]"]),
        ("reshape", || gone(x().reshape([-2, 3])), &["negative", "[2, 3]"]),
        ("reshape", || gone(x().reshape([2, 3, 0])), &["[2, 3]"]),
        ("reshape", || gone(x().reshape::<2, _>(Shape::new([6]))), &["rank 1", "rank 2"]),
        ("reshape", || gone(x().reshape([i64::MAX, i64::MAX])), &["[2, 3]"]),
        ("expand", || gone(x().expand([-2, 3])), &["-2", "[2, 3]"]),
        ("expand", || gone(x().expand([3])), &["[2, 3]"]),
        ("expand", || gone(x().expand([-1, 2, 3])), &["-1", "[2, 3]"]),
        ("zeros", || gone(Tensor::<2>::zeros([1usize << 40, 1 << 40], &Device::default())), &["too many elements", "1099511627776"]),
        ("ones", || gone(Tensor::<2>::ones([1usize << 40, 1 << 40], &Device::default())), &["too many elements", "1099511627776"]),
        ("zeros", || gone(Tensor::<2>::empty([1usize << 40, 1 << 40], &Device::default())), &["too many elements", "1099511627776"]),
        ("full", || gone(Tensor::<2>::full([1usize << 40, 1 << 40], 1.0, &Device::default())), &["too many elements", "1099511627776"]),
        ("random", || gone(Tensor::<2>::random([1usize << 40, 1 << 40], Distribution::Default, &Device::default())), &["too many elements"]),
        ("expand", || gone(of([1, 1]).expand([1usize << 40, 1 << 40])), &["too many elements", "[1, 1]"]),
        ("repeat", || gone(of([1, 1]).repeat(&[1 << 40, 1 << 40])), &["too many elements"]),
        ("repeat", || gone(of([1, 3]).repeat_dim(1, usize::MAX)), &["too many elements", "[1, 3]"]),
        ("pad", || gone(x().pad([(usize::MAX, 1)], PadMode::Constant(0.0))), &["too many elements", "[2, 3]"]),
    ]);
}

#[test]
fn counts_that_do_not_fit_are_named() {
    check(&[
        ("chunk", || gone(x().chunk(0, 0)), &["[2, 3]"]),
        ("split", || gone(x().split(0, 0)), &["[2, 3]"]),
        ("narrow", || gone(x().narrow(0, usize::MAX, 2)), &["axis 0", "[2, 3]"]),
        ("narrow", || gone(x().narrow(0, 1, usize::MAX)), &["axis 0", "[2, 3]"]),
        ("unfold", || gone(x().unfold::<3, _>(1, 0, 1)), &["[2, 3]"]),
        ("unfold", || gone(x().unfold::<3, _>(1, 2, 0)), &["[2, 3]"]),
        ("arange", || gone(Tensor::<1, Int>::arange_step(0..4, 0, &Device::default())), &["step", "0..4"]),
        ("one_hot", || gone(index([2]).one_hot::<3>(3)), &["rank 1", "[2]"]),
        ("topk", || gone(x().topk(usize::MAX, 1)), &["axis 1", "[2, 3]"]),
        ("select_dim", || gone(x().select_dim::<1>(0, -3)), &["-3", "axis 0", "[2, 3]"]),
        ("select_dim", || gone(x().select_dim::<2>(0, 0)), &["rank 2", "[2, 3]"]),
        ("split_with_sizes", || gone(x().split_with_sizes(vec![usize::MAX, 4], 0)), &["axis 0", "[2, 3]"]),
        ("cartesian_grid", || gone(Tensor::<2, Int>::cartesian_grid::<_, 2>([2, 3], &Device::default())), &["[2, 3]", "rank 3"]),
        ("stack", || gone(Tensor::stack::<2>(vec![x(), x()], 0)), &["rank 2", "[2, 3]"]),
        ("squeeze", || gone(x().squeeze_dims::<1>(&[0])), &["size 2", "[2, 3]"]),
        ("squeeze", || gone(of([1, 1]).squeeze_dims::<1>(&[0, 0])), &["twice", "[1, 1]"]),
        ("squeeze", || gone(of([1, 3]).squeeze::<2>()), &["rank 2", "[1, 3]"]),
        ("unsqueeze", || gone(x().unsqueeze_dims::<4>(&[0])), &["rank 4", "[2, 3]"]),
        ("triangle", || gone(Tensor::<1, Bool>::triu_mask([3], 0, &Device::default())), &["[3]"]),
        ("gather_nd", || gone(x().gather_nd::<2, 3>(index([1, 1]))), &["rank 3", "[2, 3]"]),
        ("take", || gone(x().take::<1, 3>(0, index([1]))), &["rank 3", "[2, 3]"]),
        ("iter_dim", || gone(x().iter_dim(-3)), &["-3", "[2, 3]"]),
        ("sum", || gone(x().sum_dims_squeeze::<2, _>(&[0])), &["rank 2", "[3]"]),
        ("sum", || gone(x().sum_dims(&[0, 0])), &["twice", "[2, 3]"]),
        ("median", || gone(of([0, 2]).median_with_indices(0)), &["[0, 2]"]),
        ("meshgrid_stack", || gone(grid::meshgrid_stack::<1, 3, kiln_tensor::Float>(&[of([2])], grid::IndexPos::Last)), &["rank 2"]),
        ("dot", || gone(index([2]).dot(index([3]))), &["[2]", "[3]"]),
        ("cov", || gone(of([2]).cov(0, 5)), &["[2]"]),
    ]);
}

#[test]
fn data_that_do_not_fit_are_named() {
    fn data() -> TensorData {
        TensorData::new(vec![1.0f32, 2.0], [2])
    }
    check(&[
        ("tensor data", || gone(TensorData::new(vec![1.0f32], [2])), &["[2]", "needs 2", "found 1"]),
        (
            "random",
            || gone(TensorData::random::<f32, _, _>([2], Distribution::Bernoulli(-1.0), &mut rand::rngs::StdRng::seed_from_u64(1))),
            &["-1", "[2]"],
        ),
        ("view", || gone(data().view::<i64>()), &["f32"]),
        ("from_data", || gone(Tensor::<1, Int>::from_data(data(), (&Device::default(), DType::F32))), &["f32", "[2]"]),
        ("into_scalar", || gone(int().into_scalar::<i32>().to_string()), &["[2, 3]"]),
        ("into_scalar", || gone(of([0]).into_scalar::<f32>().to_string()), &["[0]"]),
    ]);
}

#[test]
fn devices_that_are_not_there_are_named() {
    check(&[("device", || gone(DeviceIndex::from(-1i32)), &["-1"]), ("device", || gone(DeviceIndex::from(-2i64)), &["-2"])]);
}
