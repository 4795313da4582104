//! Mistakes of the caller: every op names itself, the rule that is broken and the shapes, at the caller's line.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Once;

use kiln_tensor::activation::{celu, glu, log_softmax, prelu, quiet_softmax, softmax, softmin};
use kiln_tensor::module;
use kiln_tensor::ops::{
    AttentionModuleOptions, AvgPoolOptions, ConvOptions, ConvTransposeOptions, DeformConvOptions, GridSampleOptions, InterpolateMode,
    InterpolateOptions, MaxPoolOptions, PadMode, UnfoldOptions,
};
use kiln_tensor::{Bool, DType, Device, Distribution, GradientCheckpointingStrategy, IndexingUpdateOp, Int, Shape, Tensor, ravel_index};

thread_local! {
    static LAST: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// What `body` panics with, and in which file.
fn panic_of(body: impl FnOnce()) -> Option<(String, String)> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let message = info.payload_as_str().unwrap_or_default().to_string();
            let file = info.location().map(Location::file).unwrap_or_default().to_string();
            LAST.with(|last| *last.borrow_mut() = Some((message, file)));
            before(info);
        }));
    });
    catch_unwind(AssertUnwindSafe(body)).err()?;
    LAST.with(|last| last.borrow_mut().take())
}

/// One mistake: the op as its message names it, the call, and what else the message holds.
pub type Case = (&'static str, fn(), &'static [&'static str]);

pub fn check(cases: &[Case]) {
    let mut wrong = Vec::new();
    for (op, call, parts) in cases {
        match panic_of(call) {
            None => wrong.push(format!("{op}: nothing panicked; expected {parts:?}")),
            Some((message, file)) => {
                if !message.starts_with(&format!("{op}:")) || parts.iter().any(|part| !message.contains(part)) {
                    wrong.push(format!("{op}: {message:?} does not hold {parts:?}"));
                }
                if !["tests/errors.rs", "tests/mistakes.rs"].iter().any(|own| file.ends_with(own)) {
                    wrong.push(format!("{op}: reported at {file}: {message:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

pub fn x() -> Tensor<2> {
    Tensor::ones([2, 3], &Device::default())
}

pub fn of<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::ones(shape, &Device::default())
}

pub fn int() -> Tensor<2, Int> {
    Tensor::ones([2, 3], &Device::default())
}

pub fn index<const D: usize>(shape: [usize; D]) -> Tensor<D, Int> {
    Tensor::zeros(shape, &Device::default())
}

pub fn mask<const D: usize>(shape: [usize; D]) -> Tensor<D, Bool> {
    Tensor::zeros(shape, &Device::default())
}

/// The axis 2, or -3, of a tensor of rank 2.
const AXIS: &[&str] = &["axis 2 is out of range", "rank 2", "[2, 3]"];
const BELOW: &[&str] = &["axis -3 is out of range", "rank 2", "[2, 3]"];

#[test]
fn every_axis_out_of_range_is_named_with_op_and_shape() {
    check(&[
        ("sum", || drop(x().sum_dim(2)), AXIS),
        ("sum", || drop(x().sum_dims(&[0, -3])), BELOW),
        ("sum", || drop(x().sum_dims_squeeze::<1, _>(&[2])), AXIS),
        ("mean", || drop(x().mean_dim(2)), AXIS),
        ("mean", || drop(x().mean_dims(&[-3])), BELOW),
        ("prod", || drop(x().prod_dim(2)), AXIS),
        ("prod", || drop(x().prod_dims(&[2])), AXIS),
        ("max", || drop(x().max_dims(&[2])), AXIS),
        ("max_dim", || drop(x().max_dim_with_indices(2)), AXIS),
        ("min", || drop(x().min_dims(&[2])), AXIS),
        ("min_dim", || drop(x().min_dim_with_indices(-3)), BELOW),
        ("argmax", || drop(x().argmax(2)), AXIS),
        ("argmin", || drop(x().argmin(2)), AXIS),
        ("topk", || drop(x().topk_with_indices(1, 2)), AXIS),
        ("topk", || drop(x().topk(1, 2)), AXIS),
        ("sort", || drop(x().sort(2)), AXIS),
        ("sort", || drop(x().sort_descending(2)), AXIS),
        ("sort", || drop(x().argsort(2)), AXIS),
        ("sort", || drop(x().sort_with_indices(-3)), BELOW),
        ("cumsum", || drop(x().cumsum(2)), AXIS),
        ("cumprod", || drop(x().cumprod(2)), AXIS),
        ("cummax", || drop(x().cummax(2)), AXIS),
        ("cummin", || drop(x().cummin(2)), AXIS),
        ("any_dim", || drop(x().any_dim(2)), AXIS),
        ("all_dim", || drop(x().all_dim(2)), AXIS),
        ("var_mean", || drop(x().var_mean(2)), AXIS),
        ("var_mean", || drop(x().var_mean_bias(2)), AXIS),
        ("var_mean", || drop(x().var(2)), AXIS),
        ("median", || drop(x().median(2)), AXIS),
        ("cov", || drop(x().cov(2, 1)), AXIS),
        ("cross", || drop(x().cross(x(), 2)), AXIS),
        ("select", || drop(x().select(2, index([1]))), AXIS),
        ("select_assign", || drop(x().select_assign(2, index([1]), x(), IndexingUpdateOp::Add)), AXIS),
        ("take", || drop(x().take::<1, 2>(2, index([1]))), AXIS),
        ("gather", || drop(x().gather(2, index([2, 3]))), AXIS),
        ("scatter", || drop(x().scatter(2, index([2, 3]), x(), IndexingUpdateOp::Add)), AXIS),
        ("slice_dim", || drop(x().slice_dim(2, 0..1)), AXIS),
        ("select_dim", || drop(x().select_dim::<1>(2, 0)), AXIS),
        ("narrow", || drop(x().narrow(2, 0, 1)), AXIS),
        ("chunk", || drop(x().chunk(2, 2)), AXIS),
        ("split", || drop(x().split(1, 2)), AXIS),
        ("split_with_sizes", || drop(x().split_with_sizes(vec![1], 2)), AXIS),
        ("iter_dim", || drop(x().iter_dim(2)), AXIS),
        ("cat", || drop(Tensor::cat(vec![x()], 2)), AXIS),
        ("stack", || drop(Tensor::stack::<3>(vec![x()], 3)), &["axis 3", "rank 3", "[2, 3]"]),
        ("repeat_dim", || drop(x().repeat_dim(2, 2)), AXIS),
        ("swap_dims", || drop(x().swap_dims(0, 2)), AXIS),
        ("permute", || drop(x().permute([0, 2])), AXIS),
        ("movedim", || drop(x().movedim(0, 2)), AXIS),
        ("movedim", || drop(x().movedim(vec![0, -3], vec![0, 1])), BELOW),
        ("flip", || drop(x().flip([2])), AXIS),
        ("flatten", || drop(x().flatten::<1>(0, 2)), AXIS),
        ("squeeze", || drop(x().squeeze_dim::<1>(2)), AXIS),
        ("squeeze", || drop(x().squeeze_dims::<1>(&[-3])), BELOW),
        ("unsqueeze", || drop(x().unsqueeze_dim::<3>(3)), &["axis 3", "rank 3", "[2, 3]"]),
        ("roll", || drop(x().roll_dim(1, 2)), AXIS),
        ("roll", || drop(x().roll(&[1], &[2])), AXIS),
        ("unfold", || drop(x().unfold::<3, _>(2, 1, 1)), AXIS),
        ("one_hot", || drop(int().one_hot_fill::<3>(2, 1.0, 0.0, 3)), &["axis 3", "rank 3", "[2, 3]"]),
        ("softmax", || drop(softmax(x(), 2)), AXIS),
        ("softmin", || drop(softmin(x(), 2)), AXIS),
        ("log_softmax", || drop(log_softmax(x(), 2)), AXIS),
        ("quiet_softmax", || drop(quiet_softmax(x(), 2)), AXIS),
        ("glu", || drop(glu(x(), 2)), AXIS),
    ]);
}

#[test]
fn shapes_that_do_not_fit_are_named_with_the_op() {
    check(&[
        ("add", || drop(x() + of([4, 3])), &["[2, 3]", "[4, 3]"]),
        ("sub", || drop(x() - of([4, 3])), &["[2, 3]", "[4, 3]"]),
        ("mul", || drop(x() * of([4, 3])), &["[2, 3]", "[4, 3]"]),
        ("div", || drop(x() / of([4, 3])), &["[2, 3]", "[4, 3]"]),
        ("rem", || drop(x().remainder(of([4, 3]))), &["[2, 3]", "[4, 3]"]),
        ("atan2", || drop(x().atan2(of([4, 3]))), &["[2, 3]", "[4, 3]"]),
        ("max", || drop(x().max_pair(of([4, 3]))), &["[2, 3]", "[4, 3]"]),
        ("min", || drop(x().min_pair(of([4, 3]))), &["[2, 3]", "[4, 3]"]),
        ("eq", || drop(x().equal(of([4, 3]))), &["[2, 3]", "[4, 3]"]),
        ("lt", || drop(x().lower(of([4, 3]))), &["[2, 3]", "[4, 3]"]),
        ("and", || drop(int().bitwise_and(Tensor::ones([4, 3], &Device::default()))), &["[2, 3]", "[4, 3]"]),
        ("where", || drop(x().mask_where(mask([4, 3]), x())), &["[2, 3]", "[4, 3]"]),
        ("where", || drop(x().mask_fill(mask([4, 3]), 1.0)), &["[2, 3]", "[4, 3]"]),
        ("matmul", || drop(x().matmul(of([4, 5]))), &["inner sizes", "[2, 3]", "[4, 5]"]),
        ("matmul", || drop(of([2, 2, 3]).matmul(of([3, 3, 5]))), &["leading sizes", "[2, 2, 3]", "[3, 3, 5]"]),
        ("dot", || drop(of([2]).dot(of([3]))), &["[2]", "[3]"]),
        ("cross", || drop(x().cross(x(), 0)), &["not of size 3", "[2, 3]"]),
        ("reshape", || drop(x().reshape([4, 2])), &["[2, 3]"]),
        ("expand", || drop(x().expand([2, 4])), &["[2, 3]", "[2, 4]"]),
        ("squeeze", || drop(x().squeeze_dim::<1>(0)), &["size 2", "[2, 3]"]),
        ("unsqueeze", || drop(x().unsqueeze::<1>()), &["[2, 3]"]),
        ("flatten", || drop(x().flatten::<2>(0, 1)), &["[2, 3]", "rank 2"]),
        ("flip", || drop(x().flip([0, 0])), &["named twice", "[2, 3]"]),
        ("permute", || drop(x().permute([0, 0])), &["named twice", "[2, 3]"]),
        ("movedim", || drop(x().movedim(vec![0, 0], vec![0, 1])), &["named twice", "[2, 3]"]),
        ("unfold", || drop(x().unfold::<3, _>(1, 4, 1)), &["4", "[2, 3]"]),
        ("unfold", || drop(x().unfold::<2, _>(1, 2, 1)), &["[2, 3]", "rank 2"]),
        ("slice", || drop(x().slice([0..3, 0..3])), &["axis 0", "[2, 3]"]),
        ("slice_assign", || drop(x().slice_assign([0..1, 0..3], of([2, 3]))), &["[2, 3]"]),
        ("narrow", || drop(x().narrow(1, 2, 2)), &["axis 1", "[2, 3]"]),
        ("split_with_sizes", || drop(x().split_with_sizes(vec![1, 1], 1)), &["axis 1", "[2, 3]"]),
        ("chunk", || drop(x().chunk(0, 1)), &["[2, 3]"]),
        ("cat", || drop(Tensor::cat(vec![x(), of([2, 4])], 0)), &["[2, 3]", "[2, 4]"]),
        ("cat", || drop(Tensor::<2>::cat(vec![], 0)), &["no tensor"]),
        ("stack", || drop(Tensor::stack::<3>(vec![x(), of([2, 4])], 0)), &["[2, 3]", "[2, 4]"]),
        ("stack", || drop(Tensor::<2>::stack::<3>(vec![], 0)), &["no tensor"]),
        ("topk", || drop(x().topk(4, 1)), &["4", "axis 1", "[2, 3]"]),
        ("gather", || drop(x().gather(0, index([2, 4]))), &["[2, 3]", "[2, 4]"]),
        ("scatter", || drop(x().scatter(0, index([2, 4]), of([2, 4]), IndexingUpdateOp::Add)), &["[2, 3]", "[2, 4]"]),
        ("gather_nd", || drop(x().gather_nd::<2, 1>(index([1, 3]))), &["3 coordinates", "[2, 3]"]),
        ("scatter_nd", || drop(x().scatter_nd::<2, 2>(index([1, 1]), of([2, 3]), IndexingUpdateOp::Add)), &["[2, 3]", "[1, 1]"]),
        ("layer_norm", || drop(module::layer_norm(x(), of([2]), None, 1e-5)), &["[2, 3]", "[2]"]),
        ("linear", || drop(module::linear(x(), of([4, 5]), None)), &["[2, 3]", "[4, 5]"]),
        ("grad_replace", || drop_replace(), &["[2, 3]", "[3, 2]"]),
        ("require_grad", || drop(x().require_grad()), &["autodiff", "[2, 3]"]),
        ("max", || drop(of([2, 0]).max_dim(1)), &["[2, 0]"]),
        ("argmax", || drop(of([2, 0]).argmax(1)), &["[2, 0]"]),
        ("one_hot", || drop(int().one_hot::<3>(0)), &["[2, 3]"]),
        (
            "grid_sample_2d",
            || drop(of([1, 1, 2, 2]).grid_sample_2d(of([2, 1, 1, 2]), GridSampleOptions::default())),
            &["[1, 1, 2, 2]", "[2, 1, 1, 2]"],
        ),
    ]);
}

fn drop_replace() {
    let x = Tensor::<2>::ones([2, 3], &Device::default().autodiff()).require_grad();
    let mut gradients = x.clone().sum().backward();
    x.grad_replace(&mut gradients, of([3, 2]));
}

#[test]
fn convolutions_and_windows_that_do_not_fit_are_named_with_the_shapes() {
    check(&[
        (
            "conv",
            || drop(module::conv2d(of([1, 3, 4, 4]), of([2, 2, 3, 3]), None, ConvOptions::new([1, 1], [0, 0], [1, 1], 1))),
            &["[1, 3, 4, 4]", "[2, 2, 3, 3]"],
        ),
        (
            "conv",
            || drop(module::conv2d(of([1, 2, 2, 2]), of([2, 2, 3, 3]), None, ConvOptions::new([1, 1], [0, 0], [1, 1], 1))),
            &["[1, 2, 2, 2]", "[2, 2, 3, 3]"],
        ),
        ("conv", || drop(module::conv1d(of([1, 2, 4]), of([2, 2, 3]), Some(of([3])), ConvOptions::new([1], [0], [1], 1))), &["bias [3]"]),
        (
            "conv_transpose",
            || drop(module::conv_transpose1d(of([1, 3, 4]), of([2, 2, 3]), None, ConvTransposeOptions::new([1], [0], [0], [1], 1))),
            &["[1, 3, 4]", "[2, 2, 3]"],
        ),
        ("max_pool", || drop(module::max_pool2d(of([1, 1, 2, 2]), MaxPoolOptions::new([3, 3]))), &["[1, 1, 2, 2]"]),
        (
            "max_pool",
            || drop(module::max_pool2d(of([1, 1, 2, 2]), MaxPoolOptions::new([1, 1]).with_stride([1, 1]).with_padding([1, 0]))),
            &["window 0 on spatial axis 0", "nothing but padding", "[1, 1, 2, 2]"],
        ),
        (
            "max_pool",
            || drop(module::max_pool1d_with_indices(of([1, 1, 1]), MaxPoolOptions::new([2]).with_stride([1]).with_padding([1]).with_dilation([2]))),
            &["window 0", "nothing but padding", "[1, 1, 1]"],
        ),
        ("avg_pool", || drop(module::avg_pool2d(of([1, 1, 2, 2]), AvgPoolOptions::new([3, 3]))), &["[1, 1, 2, 2]"]),
        ("unfold4d", || drop(module::unfold4d(of([1, 1, 2, 2]), [3, 3], UnfoldOptions::new([1, 1], [0, 0], [1, 1]))), &["[3, 3]", "[2, 2]"]),
        (
            "interpolate",
            || drop(module::interpolate(of([1, 1, 0, 2]), InterpolateOptions::new(InterpolateMode::Nearest).with_output_size([2, 2]))),
            &["[0, 2]"],
        ),
    ]);
}

#[test]
fn dtypes_that_do_not_fit_are_named_with_the_op() {
    check(&[
        ("add", || drop(x() + x().cast(DType::F64)), &["f32[2, 3]", "f64[2, 3]"]),
        ("matmul", || drop(x().matmul(of([3, 2]).cast(DType::F64))), &["f32[2, 3]", "f64[3, 2]"]),
        ("cat", || drop(Tensor::cat(vec![x(), x().cast(DType::F64)], 0)), &["f32", "f64"]),
        ("gather", || drop(x().as_raw().gather(0, x().as_raw())), &["f32"]),
    ]);
}

#[cfg(feature = "linalg")]
#[test]
fn linear_algebra_names_the_op_and_the_shapes() {
    use kiln_tensor::linalg::{cosine_similarity, det, l1_norm_dims, lu, matvec, outer, outer_dim, vector_norm};
    check(&[
        ("vector_norm", || drop(vector_norm(x(), 2.0, 2)), AXIS),
        ("l1_norm", || drop(l1_norm_dims(x(), &[2])), AXIS),
        ("cosine_similarity", || drop(cosine_similarity(x(), x(), 2, None)), AXIS),
        ("outer", || drop(outer_dim::<2, 3, _, _>(x(), x(), 2)), AXIS),
        ("outer", || drop(outer::<2, 2, _>(x(), x())), &["rank 2", "[2, 3]"]),
        ("matvec", || drop(matvec::<4, 2, _>(of([1, 1, 2, 3]), x())), &["[1, 1, 2, 3]", "[2, 3]"]),
        ("det", || drop(det::<2, 1, 1>(x())), &["[2, 3]"]),
        ("lu", || drop(lu::<1, 1>(of([2]))), &["[2]"]),
    ]);
}

#[cfg(feature = "signal")]
#[test]
fn transforms_name_the_op_and_the_shapes() {
    use kiln_tensor::signal::{StftOptions, cfft, irfft, rfft, stft};
    check(&[
        ("rfft", || drop(rfft(x(), 2, None)), AXIS),
        ("irfft", || drop(irfft(x(), x(), 2, None)), AXIS),
        ("cfft", || drop(cfft(x(), x(), 2, None)), AXIS),
        ("irfft", || drop(irfft(x(), of([2, 4]), 1, None)), &["[2, 3]", "[2, 4]"]),
        ("stft", || drop(stft(of([1, 2]), None, StftOptions { center: false, ..StftOptions::new(8) })), &["[1, 2]"]),
    ]);
}

#[test]
fn indices_beyond_the_machine_word_are_named_with_their_op() {
    const HUGE: u64 = u64::MAX;
    check(&[
        ("sum", || drop(x().sum_dim(HUGE)), &["18446744073709551615", "[2, 3]"]),
        ("argmax", || drop(x().argmax(HUGE)), &["18446744073709551615", "[2, 3]"]),
        ("swap_dims", || drop(x().swap_dims(0u64, HUGE)), &["18446744073709551615", "[2, 3]"]),
        ("softmax", || drop(softmax(x(), HUGE)), &["18446744073709551615", "[2, 3]"]),
        ("reshape", || drop(x().reshape([HUGE, 1])), &["18446744073709551615", "[2, 3]"]),
        ("expand", || drop(x().expand([HUGE, 3])), &["18446744073709551615", "[2, 3]"]),
        ("roll", || drop(x().roll_dim(HUGE, 0u64)), &["18446744073709551615", "[2, 3]"]),
        ("slice", || drop(x().slice(0..HUGE)), &["the end is out of range", "axis 0", "[2, 3]"]),
        ("slice", || drop(x().slice(0..=HUGE)), &["the end is out of range", "axis 0", "[2, 3]"]),
        ("slice", || drop(x().slice([usize::MAX])), &["the start is out of range", "axis 0", "[2, 3]"]),
        ("slice", || drop(x().slice([0..1, -9..1])), &["the start is out of range", "axis 1", "[2, 3]"]),
        ("slice", || drop(x().slice([0..1, 0..1, 0..1])), &["3 slices", "[2, 3]", "rank 2"]),
        ("slice_dim", || drop(x().slice_dim(0, 0..HUGE)), &["the end is out of range", "axis 0", "[2, 3]"]),
    ]);
}

#[test]
fn tensors_that_cannot_be_made_are_named_with_the_op_and_the_shape() {
    check(&[
        ("zeros", || drop(Tensor::<2>::zeros([2], &Device::default())), &["[2]", "rank 2"]),
        ("ones", || drop(Tensor::<2>::ones([2], &Device::default())), &["[2]", "rank 2"]),
        ("full", || drop(Tensor::<2>::full([2], 1.0, &Device::default())), &["[2]", "rank 2"]),
        ("from_data", || drop(Tensor::<2>::from_data([1.0], &Device::default())), &["[1]", "rank 2"]),
        ("zeros", || drop(Tensor::<2>::zeros([2, 3], (&Device::default(), DType::I64))), &["i64", "[2, 3]"]),
        ("random", || drop(Tensor::<1>::random([2, 3], Distribution::Default, &Device::default())), &["[2, 3]", "rank 1"]),
        ("random", || drop(Tensor::<2>::random([2, 3], Distribution::Bernoulli(1.5), &Device::default())), &["probability 1.5", "[2, 3]"]),
        ("random", || drop(Tensor::<2>::random([2, 3], Distribution::Uniform(1.0, 0.0), &Device::default())), &["1..0", "[2, 3]"]),
        ("random", || drop(Tensor::<2>::random([2, 3], Distribution::Normal(0.0, -1.0), &Device::default())), &["deviation -1", "[2, 3]"]),
        ("from_raw", || drop(Tensor::<1>::from_raw(x().into_raw())), &["[2, 3]", "rank 1"]),
        ("from_raw", || drop(Tensor::<2, Int>::from_raw(x().into_raw())), &["f32", "[2, 3]"]),
        ("shape", || drop(Shape::from([2i64, -3])), &["-3", "axis 1", "[2, -3]"]),
        ("ravel_index", || assert!(ravel_index(&[1, 4], &[2, 3]) < 6), &["[1, 4]", "[2, 3]"]),
    ]);
}

#[test]
fn misuse_of_gradients_names_the_shape() {
    check(&[
        ("backward", || drop(x().backward()), &["require_grad", "[2, 3]"]),
        ("backward", || drop_backward(), &["consumed", "[1]"]),
        ("grad_replace", || x().grad_replace(&mut tracked().sum().backward(), x()), &["require_grad", "[2, 3]"]),
        ("require_grad", || drop((tracked() * 2.0).require_grad()), &["detach", "[2, 3]"]),
        (
            "with_gradient_checkpointing_strategy",
            || drop(x().with_gradient_checkpointing_strategy(GradientCheckpointingStrategy::Balanced)),
            &["autodiff is off", "[2, 3]"],
        ),
        ("into_scalar", || assert!(x().into_scalar::<f32>() == 1.0), &["[2, 3]"]),
    ]);
}

fn tracked() -> Tensor<2> {
    Tensor::<2>::ones([2, 3], &Device::default().autodiff()).require_grad()
}

/// A graph is walked twice.
fn drop_backward() {
    let loss = tracked().exp().sum();
    let _ = loss.backward();
    let _ = loss.backward();
}

#[test]
fn options_and_equations_that_do_not_fit_name_the_shapes() {
    check(&[
        ("interpolate", || drop(module::interpolate(of([1, 1, 2, 2]), InterpolateOptions::new(InterpolateMode::Nearest))), &["[1, 1, 2, 2]"]),
        (
            "grid_sample_2d",
            || drop(of([1, 1, 2, 2]).grid_sample_2d(of([1, 1, 1, 2]), GridSampleOptions::new(InterpolateMode::Lanczos3))),
            &["Lanczos3", "[1, 1, 2, 2]", "[1, 1, 1, 2]"],
        ),
        ("select_dim", || drop(x().select_dim::<1>(1, 3)), &["position 3", "axis 1", "[2, 3]"]),
        ("celu", || drop(celu(x(), 0.0)), &["alpha", "[2, 3]"]),
        ("glu", || drop(glu(x(), 1)), &["odd size 3", "[2, 3]"]),
        ("prelu", || drop(prelu(x(), of([2]))), &["[2, 3]", "2 elements"]),
        ("einsum", || drop(Tensor::<2>::einsum("ij,jk->ik", [(&x()).into()])), &["ij,jk->ik", "[2, 3]"]),
        ("einsum", || drop(Tensor::<2>::einsum("ij->ik", [(&x()).into()])), &["no operand", "[2, 3]"]),
        ("einsum", || drop(Tensor::<2>::einsum("ijk->ik", [(&x()).into()])), &["names 3 axes", "[2, 3]"]),
        ("einsum", || drop(Tensor::<1>::einsum("ii->i", [(&x()).into()])), &["2 and 3", "[2, 3]"]),
        ("einsum", || drop(Tensor::<2>::einsum("ij,jk->ik", [(&x()).into(), (&x()).into()])), &["3 and 2", "[2, 3]"]),
        (
            "attention",
            || drop(module::attention(of([1, 3, 2, 4]), of([1, 2, 2, 4]), of([1, 2, 2, 4]), None, None, AttentionModuleOptions::default())),
            &["[1, 3, 2, 4]", "[1, 2, 2, 4]"],
        ),
        ("ctc_loss", || drop(module::ctc_loss(of([2, 1, 3]), index([1, 1]), index([2]), index([1]), 0)), &["[2, 1, 3]", "[1, 1]", "[2]"]),
        ("deform_conv2d", || drop_deformed(), &["[1, 1, 3, 3]"]),
        ("fold4d", || drop(module::fold4d(of([1, 4, 3]), [3, 3], [2, 2], UnfoldOptions::new([1, 1], [0, 0], [1, 1]))), &["[1, 4, 3]"]),
        ("cast", || drop(x().cast(DType::I64)), &["i64", "[2, 3]"]),
        ("mask_select", || drop(x().mask_select(mask([3, 2]))), &["[2, 3]", "[3, 2]"]),
        ("categorical", || drop(of([2, 0]).categorical(1)), &["[2, 0]"]),
        ("median", || drop(of([2, 0]).median(1)), &["[2, 0]"]),
        ("pad", || drop(x().pad([(3, 0)], PadMode::Reflect)), &["axis 1", "[2, 3]"]),
        ("repeat", || drop(x().repeat(&[1, 1, 1])), &["[2, 3]"]),
    ]);
}

fn drop_deformed() {
    let options = DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1);
    module::deform_conv2d(of([1, 1, 3, 3]), of([1, 8, 1, 1]), of([1, 1, 2, 2]), None, None, options);
}
