//! Operations and their gradients against values that PyTorch computed.

use kiln_tensor::module::*;
use kiln_tensor::ops::*;
use kiln_tensor::{Bool, Device, Int, Tensor, TensorData, activation as act, grid, s};

use crate::golden::{self, Case};

const TOLERANCE: f64 = 2e-5;

fn cases(file: &str) -> Vec<Case> {
    golden::read(env!("CARGO_MANIFEST_DIR"), file)
}

/// An input of a case, which requires a gradient.
fn input<const D: usize>(case: &Case, name: &str) -> Tensor<D> {
    let golden = case.tensor(name);
    let device = Device::default().autodiff();
    Tensor::from_data(TensorData::new(golden.f32(), golden.shape.clone()), &device).require_grad()
}

fn optional<const D: usize>(case: &Case, name: &str) -> Option<Tensor<D>> {
    case.get(name).map(|_| input(case, name))
}

fn indices<const D: usize>(case: &Case, name: &str) -> Tensor<D, Int> {
    let golden = case.tensor(name);
    Tensor::from_data(TensorData::new(golden.i64(), golden.shape.clone()), &Device::default())
}

/// Compares a result with a stored tensor.
#[track_caller]
fn check<const D: usize>(case: &Case, name: &str, got: Tensor<D>) {
    let what = format!("{} {name}", case.name);
    let shape = got.dims();
    case.tensor(name).assert_close(&what, &shape, &got.try_into_vec_as::<f32>().unwrap(), TOLERANCE);
}

#[track_caller]
fn check_indices<const D: usize>(case: &Case, got: Tensor<D, Int>) {
    assert_eq!(got.dims().as_slice(), case.tensor("indices").shape, "{} indices: shape", case.name);
    assert_eq!(got.try_into_vec_as::<i64>().unwrap(), case.tensor("indices").i64(), "{} indices", case.name);
}

/// Compares a result and the gradients of inputs of one rank.
#[track_caller]
fn check_graded<const D: usize, const DI: usize>(case: &Case, y: Tensor<D>, inputs: &[(&str, &Tensor<DI>)]) {
    check(case, "y", y.clone());
    let dy = case.tensor("dy");
    let weights = Tensor::<D>::from_data(TensorData::new(dy.f32(), dy.shape.clone()), &Device::default());
    let gradients = (y * weights).sum().backward();
    for (name, x) in inputs {
        let grad = x.grad(&gradients).unwrap_or_else(|| panic!("{} has no gradient for {name}", case.name));
        check(case, &format!("d_{name}"), grad);
    }
}

#[test]
fn activations() {
    for case in &cases("activation.txt") {
        match case.tensor("x").shape.len() {
            1 => check_activation::<1>(case),
            2 => check_activation::<2>(case),
            3 => check_activation::<3>(case),
            4 => check_activation::<4>(case),
            other => panic!("no test for rank {other}"),
        }
    }
}

fn check_activation<const D: usize>(case: &Case) {
    let x = input::<D>(case, "x");
    let n = |name: &str| case.number(name);
    let dim = || case.size("dim");
    if case.name == "prelu" {
        let alpha = input::<1>(case, "alpha");
        let y = act::prelu(x.clone(), alpha.clone());
        check_graded(case, y.clone(), &[("x", &x)]);
        let y = act::prelu(x, alpha.clone());
        check_graded(case, y, &[("alpha", &alpha)]);
        return;
    }
    let y = match case.name.as_str() {
        "relu" => act::relu(x.clone()),
        "relu6" => act::relu6(x.clone()),
        "hardtanh" => act::hardtanh(x.clone(), n("min"), n("max")),
        "tanhshrink" => act::tanhshrink(x.clone()),
        "leaky_relu" => act::leaky_relu(x.clone(), n("slope")),
        "gelu" => act::gelu(x.clone()),
        "gelu_approximate" => act::gelu_approximate(x.clone()),
        "softmax" => act::softmax(x.clone(), dim()),
        "softmin" => act::softmin(x.clone(), dim()),
        "log_softmax" => act::log_softmax(x.clone(), dim()),
        "softplus" => act::softplus(x.clone(), n("beta")),
        "sigmoid" => act::sigmoid(x.clone()),
        "hard_sigmoid" => act::hard_sigmoid(x.clone(), n("alpha"), n("beta")),
        "log_sigmoid" => act::log_sigmoid(x.clone()),
        "silu" => act::silu(x.clone()),
        "hard_swish" => act::hard_swish(x.clone()),
        "mish" => act::mish(x.clone()),
        "tanh" => act::tanh(x.clone()),
        "elu" => act::elu(x.clone(), n("alpha")),
        "celu" => act::celu(x.clone(), n("alpha")),
        "selu" => act::selu(x.clone()),
        "threshold" => act::threshold(x.clone(), n("threshold"), n("value")),
        "glu" => act::glu(x.clone(), dim()),
        "softsign" => act::softsign(x.clone()),
        "hard_shrink" => act::hard_shrink(x.clone(), n("lambda")),
        "soft_shrink" => act::soft_shrink(x.clone(), n("lambda")),
        other => panic!("no test for {other}"),
    };
    check_graded(case, y, &[("x", &x)]);
}

/// The options of a convolution with `N` spatial axes.
fn conv_options<const N: usize>(case: &Case) -> ConvOptions<N> {
    let (before, after): ([usize; N], [usize; N]) = (case.sizes("padding"), case.sizes("padding_end"));
    let padding = std::array::from_fn(|i| (before[i], after[i]));
    ConvOptions::new_with_padding(case.sizes("stride"), padding, case.sizes("dilation"), case.size("groups"))
}

fn transpose_options<const N: usize>(case: &Case) -> ConvTransposeOptions<N> {
    ConvTransposeOptions::new(case.sizes("stride"), case.sizes("padding"), case.sizes("padding_out"), case.sizes("dilation"), case.size("groups"))
}

/// Compares a convolution `f` and its gradients for input, weight and bias.
#[track_caller]
fn check_conv<const D: usize>(case: &Case, f: impl Fn(Tensor<D>, Tensor<D>, Option<Tensor<1>>) -> Tensor<D>) {
    let (x, weight, bias) = (input::<D>(case, "x"), input::<D>(case, "weight"), optional::<1>(case, "bias"));
    let y = || f(x.clone(), weight.clone(), bias.clone());
    check_graded(case, y(), &[("x", &x), ("weight", &weight)]);
    if let Some(bias) = &bias {
        check_graded(case, y(), &[("bias", bias)]);
    }
}

#[test]
fn convolutions() {
    for case in &cases("conv.txt") {
        match case.name.as_str() {
            "conv1d" => check_conv(case, |x, w, b| conv1d(x, w, b, conv_options::<1>(case))),
            "conv2d" => check_conv(case, |x, w, b| conv2d(x, w, b, conv_options::<2>(case))),
            "conv3d" => check_conv(case, |x, w, b| conv3d(x, w, b, conv_options::<3>(case))),
            "conv_transpose1d" => check_conv(case, |x, w, b| conv_transpose1d(x, w, b, transpose_options(case))),
            "conv_transpose2d" => check_conv(case, |x, w, b| conv_transpose2d(x, w, b, transpose_options(case))),
            "conv_transpose3d" => check_conv(case, |x, w, b| conv_transpose3d(x, w, b, transpose_options(case))),
            "unfold4d" => {
                let x = input::<4>(case, "x");
                let options = UnfoldOptions::new(case.sizes("stride"), case.sizes("padding"), case.sizes("dilation"));
                check_graded(case, unfold4d(x.clone(), case.sizes("kernel"), options), &[("x", &x)]);
            }
            "fold4d" => {
                let x = input::<3>(case, "x");
                let options = UnfoldOptions::new(case.sizes("stride"), case.sizes("padding"), case.sizes("dilation"));
                check_graded(case, fold4d(x.clone(), case.sizes("output"), case.sizes("kernel"), options), &[("x", &x)]);
            }
            other => panic!("no test for {other}"),
        }
    }
}

#[test]
fn the_weight_gradient_of_a_convolution_alone() {
    for case in cases("conv.txt").iter().filter(|case| case.name == "conv2d") {
        let constant = |name: &str| input::<4>(case, name).inner();
        let dw = conv2d_weight_backward(constant("x"), constant("weight"), constant("dy"), conv_options(case));
        check(case, "d_weight", dw);
    }
}

fn max_options<const N: usize>(case: &Case) -> MaxPoolOptions<N> {
    MaxPoolOptions::new(case.sizes("kernel"))
        .with_stride(case.sizes("stride"))
        .with_padding(case.sizes("padding"))
        .with_dilation(case.sizes("dilation"))
        .with_ceil_mode(case.flag("ceil_mode"))
}

fn avg_options<const N: usize>(case: &Case) -> AvgPoolOptions<N> {
    AvgPoolOptions::new(case.sizes("kernel"))
        .with_stride(case.sizes("stride"))
        .with_padding(case.sizes("padding"))
        .with_count_include_pad(case.flag("count_include_pad"))
        .with_ceil_mode(case.flag("ceil_mode"))
}

#[test]
fn pools() {
    for case in &cases("pool.txt") {
        match case.name.as_str() {
            "max_pool1d" => {
                let x = input::<3>(case, "x");
                check_graded(case, max_pool1d(x.clone(), max_options(case)), &[("x", &x)]);
                check_indices(case, max_pool1d_with_indices(x, max_options(case)).1);
            }
            "max_pool2d" => {
                let x = input::<4>(case, "x");
                check_graded(case, max_pool2d(x.clone(), max_options(case)), &[("x", &x)]);
                check_indices(case, max_pool2d_with_indices(x, max_options(case)).1);
            }
            "avg_pool1d" => {
                let x = input::<3>(case, "x");
                check_graded(case, avg_pool1d(x.clone(), avg_options(case)), &[("x", &x)]);
            }
            "avg_pool2d" => {
                let x = input::<4>(case, "x");
                check_graded(case, avg_pool2d(x.clone(), avg_options(case)), &[("x", &x)]);
            }
            "adaptive_avg_pool1d" => {
                let x = input::<3>(case, "x");
                check_graded(case, adaptive_avg_pool1d(x.clone(), case.size("output")), &[("x", &x)]);
            }
            "adaptive_avg_pool2d" => {
                let x = input::<4>(case, "x");
                check_graded(case, adaptive_avg_pool2d(x.clone(), case.sizes("output")), &[("x", &x)]);
            }
            "adaptive_avg_pool3d" => {
                let x = input::<5>(case, "x");
                check_graded(case, adaptive_avg_pool3d(x.clone(), case.sizes("output")), &[("x", &x)]);
            }
            other => panic!("no test for {other}"),
        }
    }
}

#[test]
fn attention_fused_and_composed() {
    for case in &cases("attention.txt") {
        for composed in [false, true] {
            let [q, k, v] = ["q", "k", "v"].map(|name| input::<4>(case, name));
            let bias = optional::<4>(case, "bias");
            let mask =
                case.get("mask").map(|mask| Tensor::<4, Bool>::from_data(TensorData::new(mask.bool(), mask.shape.clone()), &Device::default()));
            let options = AttentionModuleOptions { scale: Some(case.number("scale")), softcap: None, is_causal: case.flag("is_causal") };
            let f = if composed { attention_fallback } else { attention };
            let y = f(q.clone(), k.clone(), v.clone(), mask, bias.clone(), options);
            let mut inputs = vec![("q", &q), ("k", &k), ("v", &v)];
            inputs.extend(bias.as_ref().map(|bias| ("bias", bias)));
            check_graded(case, y, &inputs);
        }
    }
}

#[test]
fn sampling() {
    for case in &cases("sampling.txt") {
        if case.name == "affine_grid" {
            if case.flag("align_corners") {
                let theta = input::<3>(case, "theta");
                let [height, width] = case.sizes("size");
                check_graded(case, grid::affine_grid_2d(theta.clone(), [2, 1, height, width]), &[("theta", &theta)]);
            }
            continue;
        }
        let x = input::<4>(case, "x");
        let corners = case.flag("align_corners");
        if let Some(mode) = case.name.strip_prefix("interpolate_") {
            let mode = match mode {
                "nearest" => InterpolateMode::Nearest,
                "nearest-exact" => InterpolateMode::NearestExact,
                "bilinear" => InterpolateMode::Bilinear,
                "bicubic" => InterpolateMode::Bicubic,
                "lanczos3" => InterpolateMode::Lanczos3,
                other => panic!("no test for {other}"),
            };
            let options = InterpolateOptions::new(mode).with_align_corners(corners).with_output_size(case.sizes("output"));
            check_graded(case, interpolate(x.clone(), options), &[("x", &x)]);
            continue;
        }
        let (mode, padding) = case.name.strip_prefix("grid_sample_").and_then(|rest| rest.split_once('_')).expect("a known case");
        let mode = match mode {
            "nearest" => InterpolateMode::Nearest,
            "bilinear" => InterpolateMode::Bilinear,
            "bicubic" => InterpolateMode::Bicubic,
            other => panic!("no test for {other}"),
        };
        let padding = match padding {
            "zeros" => GridSamplePaddingMode::Zeros,
            "border" => GridSamplePaddingMode::Border,
            "reflection" => GridSamplePaddingMode::Reflection,
            other => panic!("no test for {other}"),
        };
        let options = GridSampleOptions::new(mode).with_padding_mode(padding).with_align_corners(corners);
        let at = input::<4>(case, "grid");
        let mut inputs = vec![("x", &x)];
        inputs.extend(case.get("d_grid").map(|_| ("grid", &at)));
        check_graded(case, x.clone().grid_sample_2d(at.clone(), options), &inputs);
    }
}

/// Cases of a function of one tensor of rank 3 along an axis.
#[test]
fn order_and_reductions() {
    for case in &cases("order.txt") {
        match case.name.as_str() {
            "matmul" => check_matmul(case),
            "gather" | "scatter_add" | "select" | "select_assign_add" => check_index(case),
            _ => check_along_axis(case),
        }
    }
}

fn check_along_axis(case: &Case) {
    let x = input::<3>(case, "x");
    let dim = case.size("dim");
    let (y, at) = match case.name.as_str() {
        "sort" if case.flag("descending") => x.clone().sort_descending_with_indices(dim).into_pair(),
        "sort" => x.clone().sort_with_indices(dim).into_pair(),
        "topk" => x.clone().topk_with_indices(case.size("k"), dim).into_pair(),
        "max_dim" => x.clone().max_dim_with_indices(dim).into_pair(),
        "min_dim" => x.clone().min_dim_with_indices(dim).into_pair(),
        "cumsum" => (x.clone().cumsum(dim), None),
        "cumprod" => (x.clone().cumprod(dim), None),
        "cummax" => (x.clone().cummax(dim), None),
        "cummin" => (x.clone().cummin(dim), None),
        "prod" => (x.clone().prod_dim(dim), None),
        "var" if case.size("correction") == 1 => (x.clone().var(dim), None),
        "var" => (x.clone().var_bias(dim), None),
        other => panic!("no test for {other}"),
    };
    check_graded(case, y, &[("x", &x)]);
    if let Some(at) = at {
        check_indices(case, at);
    }
}

/// Values with optional indices.
trait IntoPair {
    fn into_pair(self) -> (Tensor<3>, Option<Tensor<3, Int>>);
}

impl IntoPair for (Tensor<3>, Tensor<3, Int>) {
    fn into_pair(self) -> (Tensor<3>, Option<Tensor<3, Int>>) {
        (self.0, Some(self.1))
    }
}

fn check_matmul(case: &Case) {
    /// One rank of both sides.
    fn of_rank<const D: usize>(case: &Case) {
        let (a, b) = (input::<D>(case, "a"), input::<D>(case, "b"));
        check_graded(case, a.clone().matmul(b.clone()), &[("a", &a), ("b", &b)]);
    }
    match (case.tensor("a").shape.len(), case.tensor("b").shape.len()) {
        (2, 2) => of_rank::<2>(case),
        (3, 3) => of_rank::<3>(case),
        (4, 4) => of_rank::<4>(case),
        other => panic!("no test for matrices of ranks {other:?}"),
    }
}

fn check_index(case: &Case) {
    /// The operation on tensors of one rank.
    fn of_rank<const D: usize>(case: &Case) {
        let (x, dim) = (input::<D>(case, "x"), case.size("dim"));
        let add = kiln_tensor::IndexingUpdateOp::Add;
        if case.name == "gather" {
            let y = x.clone().gather(dim, indices::<D>(case, "indices"));
            return check_graded(case, y, &[("x", &x)]);
        }
        if case.name == "select" {
            let y = x.clone().select(dim, indices::<1>(case, "indices"));
            return check_graded(case, y, &[("x", &x)]);
        }
        let values = input::<D>(case, "values");
        let y = match case.name.as_str() {
            "scatter_add" => x.clone().scatter(dim, indices::<D>(case, "indices"), values.clone(), add),
            _ => x.clone().select_assign(dim, indices::<1>(case, "indices"), values.clone(), add),
        };
        check_graded(case, y, &[("x", &x), ("values", &values)]);
    }
    match case.tensor("x").shape.len() {
        2 => of_rank::<2>(case),
        3 => of_rank::<3>(case),
        other => panic!("no test for rank {other}"),
    }
}

/// What a case computes must not depend on how its input lies in memory.
#[test]
fn convolutions_of_views() {
    for case in cases("conv.txt").iter().filter(|case| case.name == "conv2d") {
        let x = input::<4>(case, "x").inner();
        let weight = input::<4>(case, "weight").inner();
        let bias = optional::<1>(case, "bias").map(Tensor::inner);
        let transposed = x.clone().swap_dims(2, 3).swap_dims(0, 1).mul_scalar(1.0).swap_dims(0, 1).swap_dims(2, 3);
        let sliced = x.clone().pad([(1, 2), (2, 1)], 7).slice(s![.., .., 1..1 + x.dims()[2], 2..2 + x.dims()[3]]);
        for view in [transposed, sliced] {
            let y = conv2d(view, weight.clone(), bias.clone(), conv_options(case));
            check(case, "y", y);
        }
    }
}
