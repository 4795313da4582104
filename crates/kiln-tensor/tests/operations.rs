//! Every operation of `Tensor` and every activation under its public name, as one table: over layouts, sizes and dtypes against the interpreter, and gradients against
//! central differences. A test reads the sources, so that no operation is left out.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kiln_ir::DType;
use kiln_tensor::activation as act;
use kiln_tensor::kind::{Basic, Numeric, Ordered};
use kiln_tensor::ops::PadMode;
use kiln_tensor::raw::RawTensor;
use kiln_tensor::{Bool, BoolStore, Device, FloatDType, IndexingUpdateOp, Int, IntDType, Scalar, Tensor};

use crate::cpu;
use crate::sweep::{LAYOUTS, agree, tolerance, view_of};

/// What an operation gives, as untyped tensors.
pub trait Parts {
    fn parts(self) -> Vec<RawTensor>;
}

impl<const D: usize, K: Basic> Parts for Tensor<D, K> {
    fn parts(self) -> Vec<RawTensor> {
        vec![self.into_raw()]
    }
}

impl<A: Parts, B: Parts> Parts for (A, B) {
    fn parts(self) -> Vec<RawTensor> {
        [self.0.parts(), self.1.parts()].concat()
    }
}

impl<A: Parts> Parts for Vec<A> {
    fn parts(self) -> Vec<RawTensor> {
        self.into_iter().flat_map(Parts::parts).collect()
    }
}

pub type Row<K> = (&'static str, fn(Tensor<2, K>) -> Vec<RawTensor>);

/// Rows of a table: the operation's name and what it is called with.
macro_rules! rows {
    ($($name:literal: |$x:ident| $body:expr),* $(,)?) => {
        vec![$(($name, |$x| Parts::parts($body))),*]
    };
}
pub(crate) use rows;

/// Another operand of the same sizes.
pub fn other<K: Basic>(x: &Tensor<2, K>) -> Tensor<2, K> {
    x.clone().flip([0, 1])
}

/// Places `(5 i + 2) mod size` on an axis.
pub fn places<K: Basic, const N: usize>(x: &Tensor<2, K>, shape: [usize; N], size: usize) -> Tensor<N, Int> {
    let n: usize = shape.iter().product();
    let places: Vec<i64> = (0..n).map(|i| (i as i64 * 5 + 2) % size.max(1) as i64).collect();
    Tensor::from_raw(RawTensor::from_slice(&x.device().without_autodiff(), &shape, DType::I64, &places))
}

/// True at every third element.
fn mask<K: Basic>(x: &Tensor<2, K>) -> Tensor<2, Bool> {
    let dims = x.dims();
    let n = dims[0] * dims[1];
    places(x, dims, n.max(1)).remainder_scalar(3).equal_elem(0)
}

/// As many indices on an axis as fit it: none where it is empty.
pub fn some<K: Basic>(x: &Tensor<2, K>, axis: usize, wanted: usize) -> usize {
    if x.dims()[axis] == 0 { 0 } else { wanted }
}

fn basic<K: Basic>() -> Vec<Row<K>> {
    rows! {
        "reshape": |x| x.clone().reshape::<1, _>([x.dims()[0] * x.dims()[1]]),
        "transpose": |x| x.transpose(),
        "t": |x| x.t(),
        "swap_dims": |x| x.swap_dims(-1, 0),
        "permute": |x| x.permute([1, 0]),
        "movedim": |x| x.movedim(0, -1),
        "flip": |x| x.flip([-1]),
        "flatten": |x| x.flatten::<1>(0, -1),
        "squeeze": |x| x.unsqueeze::<3>().squeeze_dim::<2>(0),
        "squeeze_dim": |x| x.unsqueeze_dim::<3>(1).squeeze_dim::<2>(-2),
        "squeeze_dims": |x| x.unsqueeze_dims::<4>(&[0, -1]).squeeze_dims::<2>(&[0, -1]),
        "unsqueeze": |x| x.unsqueeze::<3>(),
        "unsqueeze_dim": |x| x.unsqueeze_dim::<3>(2),
        "unsqueeze_dims": |x| x.unsqueeze_dims::<4>(&[-1, 0]),
        "roll_dim": |x| x.roll_dim(-2, 1),
        "roll": |x| x.roll(&[1, 5], &[0, -1]),
        "expand": |x| x.clone().unsqueeze::<3>().expand([2, x.dims()[0] as i64, -1]),
        "unfold": |x| if x.dims()[1] > 1 { x.unfold::<3, _>(1, 2, 1) } else { x.unsqueeze() },
        "slice": |x| x.clone().slice([0..x.dims()[0].min(2), 0..x.dims()[1].min(4)]),
        "slice_assign": |x| x.clone().slice_assign(0..x.dims()[0].min(1), other(&x).slice(0..x.dims()[0].min(1))),
        "slice_fill": |x| x.clone().slice_fill(0..x.dims()[0].min(1), 1u8),
        "slice_dim": |x| x.clone().slice_dim(-1, kiln_tensor::s![..;-2]),
        "select_dim": |x| if x.dims()[0] > 0 { x.select_dim::<1>(0, -1) } else { x.flatten(0, 1) },
        "narrow": |x| { let n = x.dims()[1]; x.narrow(1, n / 2, n - n / 2) },
        "select": |x| { let n = some(&x, 1, 4); x.clone().select(1, places(&x, [n], x.dims()[1])) },
        "select_assign": |x| {
            let n = some(&x, 0, 3);
            let values = x.clone().select(0, places(&x, [n], x.dims()[0]));
            x.clone().select_assign(0, places(&x, [n], x.dims()[0]), values, IndexingUpdateOp::Add)
        },
        "take": |x| { let n = some(&x, 1, 2); x.clone().take::<2, 3>(1, places(&x, [2, n], x.dims()[1])) },
        "mask_where": |x| x.clone().mask_where(mask(&x), other(&x)),
        "mask_fill": |x| x.clone().mask_fill(mask(&x), 1),
        "mask_select": |x| x.clone().mask_select(mask(&x)),
        "gather": |x| { let n = some(&x, 1, 3); x.clone().gather(1, places(&x, [x.dims()[0], n], x.dims()[1])) },
        "scatter": |x| {
            let n = some(&x, 0, 1);
            x.clone().scatter(0, places(&x, [n, x.dims()[1]], x.dims()[0]), x.clone().slice(0..n), IndexingUpdateOp::Add)
        },
        "gather_nd": |x| { let n = some(&x, 0, 4); x.clone().gather_nd::<2, 2>(places(&x, [n, 1], x.dims()[0])) },
        "scatter_nd": |x| {
            let n = some(&x, 0, 1);
            x.clone().scatter_nd::<2, 2>(places(&x, [n, 1], x.dims()[0]), other(&x).slice(0..n), IndexingUpdateOp::Assign)
        },
        "repeat_dim": |x| (x.clone().repeat_dim(1, 3), x.repeat_dim(0, 0)),
        "repeat": |x| x.repeat(&[2, 2]),
        "cat": |x| Tensor::cat(vec![x.clone(), other(&x), x], -1),
        "stack": |x| Tensor::stack::<3>(vec![x.clone(), other(&x)], 1),
        "chunk": |x| x.chunk(2, 1),
        "split": |x| x.split(2, 0),
        "split_with_sizes": |x| { let n = x.dims()[1]; x.split_with_sizes(vec![n / 2, n - n / 2], 1) },
        "iter_dim": |x| x.iter_dim(0).collect::<Vec<_>>(),
        "equal": |x| x.clone().equal(other(&x)),
        "not_equal": |x| x.clone().not_equal(other(&x)),
        "equal_scalar": |x| x.equal_scalar(1u8),
        "not_equal_scalar": |x| x.not_equal_scalar(1u8),
        "equal_elem": |x| x.equal_elem(0u8),
        "not_equal_elem": |x| x.not_equal_elem(0u8),
        "any": |x| x.any(),
        "any_dim": |x| x.any_dim(1),
        "all": |x| x.all(),
        "all_dim": |x| x.all_dim(0),
        "zeros_like": |x| x.zeros_like(),
        "ones_like": |x| x.ones_like(),
        "full_like": |x| x.full_like(1),
        "empty_like": |x| x.empty_like().zeros_like(),
        "triu_mask": |x| Tensor::<2, Bool>::triu_mask(x.dims(), 1, &x.device()),
        "tril_mask": |x| Tensor::<2, Bool>::tril_mask(x.dims(), -1, &x.device()),
        "diag_mask": |x| Tensor::<2, Bool>::diag_mask(x.dims(), 0, &x.device()),
        "extract": |x| { let mut x = x; x.extract() },
        "inplace": |x| { let mut x = x; x.inplace(|x| x.flip([0])); x },
    }
}

fn numeric<K: Numeric>() -> Vec<Row<K>> {
    rows! {
        "add": |x| x.clone().add(other(&x)),
        "add_scalar": |x| x.add_scalar(3),
        "sub": |x| x.clone().sub(other(&x)),
        "sub_scalar": |x| x.sub_scalar(3),
        "mul": |x| x.clone().mul(other(&x)),
        "mul_scalar": |x| x.mul_scalar(3),
        "div": |x| x.clone().div(x.clone().equal_elem(0).int_like(&x).add(other(&x).mul(other(&x).not_equal_elem(0).int_like(&x)).ones_like())),
        "div_scalar": |x| x.div_scalar(3),
        "remainder": |x| x.clone().remainder(x.clone().ones_like().mul_scalar(3)),
        "remainder_scalar": |x| x.remainder_scalar(3),
        "neg": |x| x.neg(),
        "sign": |x| x.sign(),
        "abs": |x| x.abs(),
        "sum": |x| x.sum(),
        "sum_dim": |x| x.sum_dim(-1),
        "sum_dims": |x| x.sum_dims(&[0, 1]),
        "sum_dims_squeeze": |x| x.sum_dims_squeeze::<1, _>(&[0]),
        "prod": |x| x.prod(),
        "prod_dim": |x| x.prod_dim(1),
        "prod_dims": |x| x.prod_dims(&[1, 0]),
        "cumsum": |x| x.cumsum(1),
        "cumprod": |x| x.cumprod(0),
        "triu": |x| x.triu(1),
        "tril": |x| x.tril(-1),
        "powi": |x| x.clone().powi(x.ones_like().mul_scalar(2)),
        "powi_scalar": |x| x.powi_scalar(3),
        "bool": |x| x.bool(),
        "matmul": |x| x.clone().matmul(x.transpose()),
        "dot": |x| x.clone().flatten::<1>(0, 1).dot(other(&x).flatten(0, 1)),
        "pad": |x| (x.clone().pad([(1, 0), (0, 2)], PadMode::Constant(2.0)), x.clone().pad([(0, 0)], PadMode::Edge)),
    }
}

/// A mask in the type of another tensor.
trait IntLike {
    fn int_like<K: Numeric>(self, x: &Tensor<2, K>) -> Tensor<2, K>;
}

impl IntLike for Tensor<2, Bool> {
    fn int_like<K: Numeric>(self, x: &Tensor<2, K>) -> Tensor<2, K> {
        x.zeros_like().mask_fill(self, 1)
    }
}

fn ordered<K: Ordered>() -> Vec<Row<K>> {
    rows! {
        "sort": |x| x.sort(1),
        "sort_descending": |x| x.sort_descending(0),
        "sort_with_indices": |x| x.sort_with_indices(-1),
        "sort_descending_with_indices": |x| x.sort_descending_with_indices(1),
        "argsort": |x| x.argsort(0),
        "argsort_descending": |x| x.argsort_descending(1),
        "topk": |x| { let k = x.dims()[1].min(2); x.topk(k, 1) },
        "topk_with_indices": |x| { let k = x.dims()[0].min(3); x.topk_with_indices(k, 0) },
        "argtopk": |x| { let k = x.dims()[1].min(2); x.argtopk(k, 1) },
        "one_hot": |x| x.zeros_like().one_hot::<3>(2),
        "one_hot_fill": |x| x.ones_like().one_hot_fill::<3>(3, 5.0, 2.0, 0),
        "greater": |x| x.clone().greater(other(&x)),
        "greater_equal": |x| x.clone().greater_equal(other(&x)),
        "lower": |x| x.clone().lower(other(&x)),
        "lower_equal": |x| x.clone().lower_equal(other(&x)),
        "greater_scalar": |x| x.greater_scalar(1),
        "greater_equal_scalar": |x| x.greater_equal_scalar(1),
        "lower_scalar": |x| x.lower_scalar(1),
        "lower_equal_scalar": |x| x.lower_equal_scalar(1),
        "greater_elem": |x| x.greater_elem(1),
        "greater_equal_elem": |x| x.greater_equal_elem(1),
        "lower_elem": |x| x.lower_elem(1),
        "lower_equal_elem": |x| x.lower_equal_elem(1),
        "max_pair": |x| x.clone().max_pair(other(&x)),
        "min_pair": |x| x.clone().min_pair(other(&x)),
        "clamp": |x| x.clamp(0, 1),
        "clamp_min": |x| x.clamp_min(1),
        "clamp_max": |x| x.clamp_max(1),
        "max": |x| x.max(),
        "max_dim": |x| x.max_dim(1),
        "max_dims": |x| x.max_dims(&[0, 1]),
        "max_dim_with_indices": |x| x.max_dim_with_indices(0),
        "argmax": |x| x.argmax(-1),
        "min": |x| x.min(),
        "min_dim": |x| x.min_dim(0),
        "min_dims": |x| x.min_dims(&[1, 0]),
        "min_dim_with_indices": |x| x.min_dim_with_indices(1),
        "argmin": |x| x.argmin(0),
        "max_abs": |x| x.max_abs(),
        "max_abs_dim": |x| x.max_abs_dim(1),
        "max_abs_dims": |x| x.max_abs_dims(&[0]),
        "cummax": |x| x.cummax(1),
        "cummin": |x| x.cummin(0),
        "mean": |x| x.mean(),
        "mean_dim": |x| x.mean_dim(0),
        "mean_dims": |x| x.mean_dims(&[0, 1]),
    }
}

/// Operations of floats only.
fn float() -> Vec<Row<kiln_tensor::Float>> {
    rows! {
        "square": |x| x.square(),
        "exp": |x| x.exp(),
        "log1p": |x| x.log1p(),
        "log": |x| x.log(),
        "sqrt": |x| x.sqrt(),
        "cos": |x| x.cos(),
        "sin": |x| x.sin(),
        "tan": |x| x.tan(),
        "cosh": |x| x.cosh(),
        "sinh": |x| x.sinh(),
        "tanh": |x| x.tanh(),
        "acos": |x| x.acos(),
        "acosh": |x| x.add_scalar(1).acosh(),
        "asin": |x| x.asin(),
        "asinh": |x| x.asinh(),
        "atan": |x| x.atan(),
        "atanh": |x| x.atanh(),
        "atan2": |x| x.clone().atan2(other(&x)),
        "fmod": |x| x.clone().fmod(x.ones_like().mul_scalar(0.7)),
        "fmod_scalar": |x| x.fmod_scalar(0.7),
        "trunc": |x| x.trunc(),
        "round": |x| x.round(),
        "floor": |x| x.floor(),
        "ceil": |x| x.ceil(),
        "erf": |x| x.erf(),
        "hypot": |x| x.clone().hypot(other(&x)),
        "recip": |x| x.recip(),
        "deg2rad": |x| x.deg2rad(),
        "rad2deg": |x| x.rad2deg(),
        "int": |x| x.int(),
        "cast": |x| (x.clone().cast(IntDType::U8), x.cast(FloatDType::F64)),
        "powf": |x| x.clone().powf(other(&x)),
        "powf_scalar": |x| x.powf_scalar(2.5),
        "cross": |x| x.clone().unsqueeze_dim::<3>(1).repeat_dim(1, 3).cross(other(&x).unsqueeze_dim::<3>(1).repeat_dim(1, 3).cumsum(1), 1),
        "var": |x| x.var(1),
        "var_bias": |x| x.var_bias(0),
        "var_mean": |x| x.var_mean(0),
        "var_mean_bias": |x| x.var_mean_bias(1),
        "median": |x| x.median(1),
        "median_with_indices": |x| x.median_with_indices(0),
        "cov": |x| x.cov(1, 0),
        "is_close": |x| x.clone().is_close(other(&x), Some(0.1), None),
        "is_nan": |x| x.is_nan(),
        "contains_nan": |x| x.contains_nan(),
        "is_inf": |x| x.is_inf(),
        "is_finite": |x| x.is_finite(),
        "detach": |x| x.detach(),
        "relu": |x| act::relu(x),
        "hardtanh": |x| act::hardtanh(x, -0.5, 0.5),
        "tanhshrink": |x| act::tanhshrink(x),
        "relu6": |x| act::relu6(x.mul_scalar(8)),
        "leaky_relu": |x| act::leaky_relu(x, 0.1),
        "gelu": |x| act::gelu(x),
        "gelu_approximate": |x| act::gelu_approximate(x),
        "prelu": |x| act::prelu(x.clone(), Tensor::full([1], 0.2, (&x.device(), x.dtype()))),
        "softmax": |x| act::softmax(x, 1),
        "softmin": |x| act::softmin(x, 0),
        "softplus": |x| act::softplus(x, 1.5),
        "softplus_with_threshold": |x| act::softplus_with_threshold(x, 1.0, 1.0),
        "quiet_softmax": |x| act::quiet_softmax(x, -1),
        "log_softmax": |x| act::log_softmax(x, 0),
        "sigmoid": |x| act::sigmoid(x),
        "hard_sigmoid": |x| act::hard_sigmoid(x, 0.2, 0.5),
        "log_sigmoid": |x| act::log_sigmoid(x),
        "silu": |x| act::silu(x),
        "hard_swish": |x| act::hard_swish(x),
        "mish": |x| act::mish(x),
        "elu": |x| act::elu(x, 1.2),
        "celu": |x| act::celu(x, 1.2),
        "selu": |x| act::selu(x),
        "thresholded_relu": |x| act::thresholded_relu(x, 0.1),
        "threshold": |x| act::threshold(x, 0.1, 0.3),
        "glu": |x| act::glu(x.repeat_dim(1, 2), 1),
        "softsign": |x| act::softsign(x),
        "hard_shrink": |x| act::hard_shrink(x, 0.1),
        "soft_shrink": |x| act::soft_shrink(x, 0.1),
        "shrink": |x| act::shrink(x, 0.1, 0.05),
    }
}

fn int() -> Vec<Row<Int>> {
    rows! {
        "square": |x| x.square(),
        "float": |x| x.float(),
        "cast": |x| (x.clone().cast(FloatDType::F32), x.cast(IntDType::U8)),
        "bitwise_and": |x| x.clone().bitwise_and(other(&x)),
        "bitwise_or": |x| x.clone().bitwise_or(other(&x)),
        "bitwise_xor": |x| x.clone().bitwise_xor(other(&x)),
        "bitwise_not": |x| x.bitwise_not(),
        "bitwise_and_scalar": |x| x.bitwise_and_scalar(5),
        "bitwise_or_scalar": |x| x.bitwise_or_scalar(5),
        "bitwise_xor_scalar": |x| x.bitwise_xor_scalar(5),
        "bitwise_left_shift": |x| x.clone().bitwise_left_shift(x.ones_like()),
        "bitwise_right_shift": |x| x.clone().bitwise_right_shift(x.ones_like()),
        "bitwise_left_shift_scalar": |x| x.bitwise_left_shift_scalar(2),
        "bitwise_right_shift_scalar": |x| x.bitwise_right_shift_scalar(2),
    }
}

fn boolean() -> Vec<Row<Bool>> {
    rows! {
        "int": |x| x.int(),
        "float": |x| x.float(),
        "cast": |x| (x.clone().cast(FloatDType::F16), x.cast(IntDType::I8)),
        "bool_not": |x| x.bool_not(),
        "bool_and": |x| x.clone().bool_and(other(&x)),
        "bool_or": |x| x.clone().bool_or(other(&x)),
        "bool_xor": |x| x.clone().bool_xor(other(&x)),
        "nonzero": |x| x.nonzero(),
        "argwhere": |x| x.argwhere(),
    }
}

/// Operations that have no answer for a tensor without elements and say so.
const REFUSE_NOTHING: [&str; 18] = [
    "max",
    "max_dim",
    "max_dims",
    "max_dim_with_indices",
    "argmax",
    "min",
    "min_dim",
    "min_dims",
    "min_dim_with_indices",
    "argmin",
    "max_abs",
    "max_abs_dim",
    "max_abs_dims",
    "median",
    "median_with_indices",
    "cov",
    "stack",
    "pad",
];

/// Numbers with ties and both signs; floats with NaN and infinities, integers with the ends of their type, where they are wanted.
fn elements(n: usize, dtype: DType, special: bool) -> Vec<f64> {
    let number = |i: usize| match (i * 7 + 3) % 23 {
        5 if special && dtype.is_float() => f64::NAN,
        9 if special && dtype.is_float() => f64::INFINITY,
        11 if special && dtype.is_float() => f64::NEG_INFINITY,
        5 | 9 if special && dtype.is_int() => 2e19,
        11 if special && dtype.is_int() => -2e19,
        13 if dtype.is_float() => -0.0,
        k if dtype == DType::Bool => (k % 3 == 0) as u8 as f64,
        k => (k % 9) as f64 * 0.25 - if dtype.is_int() { 0.0 } else { 1.0 },
    };
    (0..n).map(|i| if dtype.is_int() { number(i) * 4.0 - 3.0 } else { number(i) }).collect()
}

fn operand(device: &Device, layout: &str, size: [usize; 2], dtype: DType, special: bool) -> RawTensor {
    let made = |dims: &[usize]| {
        let n = dims.iter().product();
        RawTensor::from_slice(device, dims, DType::F64, &elements(n, dtype, special)).cast(dtype)
    };
    view_of(made, layout, size)
}

/// Sizes, dtype and elements of a result.
type Outcome = (Vec<usize>, DType, Vec<f64>);

/// What an operation gives; `None` where it panics.
fn results<K: Basic>(f: fn(Tensor<2, K>) -> Vec<RawTensor>, x: RawTensor) -> Option<Vec<Outcome>> {
    let compute = || f(Tensor::from_raw(x)).into_iter().map(|y| (y.dims().to_vec(), y.dtype(), y.to_f64s().expect("it can be computed"))).collect();
    catch_unwind(AssertUnwindSafe(compute)).ok()
}

/// Runs a table on views of some types; `all` of their layouts and sizes, or a few.
fn sweep<K: Basic>(rows: &[Row<K>], dtypes: &[(DType, bool)]) {
    sweep_with(rows, dtypes, &[false, true], |name, size| size.contains(&0) && REFUSE_NOTHING.contains(&name));
}

/// The same with finite elements alone (`specials` holds `false`), or with others too, where operations may refuse some sizes, the device and the interpreter alike.
pub fn sweep_with<K: Basic>(rows: &[Row<K>], dtypes: &[(DType, bool)], specials: &[bool], may_refuse: impl Fn(&str, [usize; 2]) -> bool) {
    let (device, oracle) = (cpu(), Device::reference());
    let mut compared = 0;
    let mut wrong = Vec::new();
    for &(dtype, all) in dtypes {
        let layouts: &[&str] = if all { &LAYOUTS } else { &["transposed", "stepped", "broadcast columns"] };
        let sizes: &[[usize; 2]] = if all { &[[0, 3], [3, 0], [1, 1], [2, 3], [5, 5], [3, 67], [67, 2]] } else { &[[0, 3], [1, 1], [3, 19]] };
        for (name, f) in rows {
            for layout in layouts {
                for &size in sizes {
                    let nothing = size.contains(&0);
                    for &special in specials {
                        if nothing && special {
                            continue;
                        }
                        let what = format!("{name} of {dtype} {size:?}, {layout}, special values {special}");
                        let got = results(*f, operand(&device, layout, size, dtype, special));
                        let expected = results(*f, operand(&oracle, layout, size, dtype, special));
                        let (Some(got), Some(expected)) = (&got, &expected) else {
                            if got.is_some() != expected.is_some() || !may_refuse(name, size) {
                                wrong.push(format!("{what}: panics: device {}, interpreter {}", got.is_none(), expected.is_none()));
                            }
                            continue;
                        };
                        for (k, (g, e)) in got.iter().zip(expected).enumerate() {
                            compared += 1;
                            if (&g.0, g.1) != (&e.0, e.1) {
                                wrong.push(format!("{what}: result {k} is {}{:?}, not {}{:?}", g.1, g.0, e.1, e.0));
                            } else if let Some(i) = (0..g.2.len()).find(|i| !agree(g.2[*i], e.2[*i], 4.0 * tolerance(e.1))) {
                                wrong.push(format!("{what}: result {k}, element {i}: {} for {}", g.2[i], e.2[i]));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(compared > rows.len() * 40 * specials.len(), "only {compared} results of {} operations were compared", rows.len());
}

#[test]
fn operations_of_floats_agree_with_the_interpreter() {
    let dtypes = [(DType::F32, true), (DType::F64, false), (DType::F16, false), (DType::BF16, false)];
    sweep(&[basic(), numeric(), ordered(), float()].concat(), &dtypes);
}

#[test]
fn operations_of_integers_agree_with_the_interpreter() {
    let few = [DType::I64, DType::I16, DType::I8, DType::U64, DType::U32, DType::U16, DType::U8].map(|dtype| (dtype, false));
    sweep(&[basic(), numeric(), ordered(), int()].concat(), &[&[(DType::I32, true)], few.as_slice()].concat());
}

#[test]
fn operations_of_booleans_agree_with_the_interpreter() {
    sweep(&[basic(), boolean()].concat(), &[(DType::Bool, true)]);
    // However a device is asked to store them.
    let x = Tensor::<1, Bool>::from_data([true, false], (&cpu(), kiln_tensor::DType::Bool(BoolStore::U32)));
    assert_eq!(x.bool_not().try_to_vec_as::<bool>().unwrap(), [false, true]);
}

/// Operations whose gradient is not their slope.
const NO_QUOTIENT: [&str; 1] = ["detach"];

#[test]
fn gradients_of_operations_are_slopes() {
    let wrong = differing_slopes(&[basic(), numeric(), ordered(), float()].concat());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// The operations of a table whose gradients are not their slopes.
pub fn differing_slopes(rows: &[Row<kiln_tensor::Float>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, f) in rows.iter().filter(|(name, _)| !NO_QUOTIENT.contains(name)) {
        for layout in ["dense", "transposed"] {
            for (low, high) in [(0.15, 0.85), (-0.85, -0.15)] {
                if let Err(why) = slope(*f, layout, low, high) {
                    wrong.push(format!("{name} on a {layout} operand in {low}..{high}: {why}"));
                }
            }
        }
    }
    wrong
}

/// Compares the gradient of the weighted sum of an operation's float results with central differences.
fn slope(f: fn(Tensor<2>) -> Vec<RawTensor>, layout: &str, low: f64, high: f64) -> Result<(), String> {
    let spread = |i: usize| low + (high - low) * ((i * 7 + 3) as f64 * 0.618_033_988_749_895).fract();
    let values: Vec<f64> = (0..6).map(spread).collect();
    let loss = |device: &Device, values: &[f64]| -> (RawTensor, Option<RawTensor>) {
        let x = RawTensor::from_slice(device, if layout == "dense" { &[2, 3] } else { &[3, 2] }, DType::F64, values);
        let x = if device.is_autodiff() { x.require_grad() } else { x };
        let view = if layout == "dense" { x.clone() } else { x.transpose() };
        let weighted = |(k, y): (usize, &RawTensor)| {
            let places = RawTensor::iota(&device.clone().without_autodiff(), &[y.numel()], DType::I64, 0).cast(DType::F64);
            let weights = places.mul_scalar(Scalar::Float(0.3)).add_scalar(Scalar::Float(1.0 + k as f64));
            y.cast(DType::F64).reshape(&[y.numel()]).mul(&weights).sum(&[0])
        };
        let parts = f(Tensor::from_raw(view));
        let sums: Vec<RawTensor> = parts.iter().filter(|y| y.dtype().is_float()).enumerate().map(weighted).collect();
        let none = || RawTensor::zeros(device, &[1], DType::F64);
        (sums.into_iter().reduce(|a, b| a.add(&b)).unwrap_or_else(none), Some(x))
    };
    let plain = cpu();
    let at = |values: &[f64]| loss(&plain, values).0.to_f64s().expect("it can be computed")[0];
    let (y, x) = loss(&cpu().autodiff(), &values);
    let got = if y.is_tracked() { y.backward().get(&x.expect("it was made")).map(|g| g.to_f64s().expect("it can be computed")) } else { None };
    let got = got.unwrap_or_else(|| vec![0.0; values.len()]);
    let h = 1e-6;
    for (i, g) in got.iter().enumerate() {
        let moved = |by: f64| {
            let mut values = values.clone();
            values[i] += by;
            at(&values)
        };
        let quotient = (moved(h) - moved(-h)) / (2.0 * h);
        let outside = quotient.is_nan() && g.is_nan();
        if !outside && (g - quotient).abs() > 1e-4 * quotient.abs().max(1.0) {
            return Err(format!("element {i}: {g}, difference quotient {quotient}"));
        }
    }
    Ok(())
}

/// Methods that are no operations on elements, with the file that tests them.
const ELSEWHERE: [(&str, &str); 73] = [
    ("all_close", "operations.rs"),
    ("arange", "tensor.rs"),
    ("arange_step", "faults.rs"),
    ("argwhere_async", "reading.rs"),
    ("as_raw", "errors.rs"),
    ("autodiff", "autodiff.rs"),
    ("backward", "autodiff.rs"),
    ("can_mut", "operations.rs"),
    ("cartesian_grid", "operations.rs"),
    ("categorical", "operations.rs"),
    ("dequantize", "quantization.rs"),
    ("device", "autodiff.rs"),
    ("dims", "tensor.rs"),
    ("dtype", "dtypes.rs"),
    ("einsum", "einsum.rs"),
    ("empty", "operations.rs"),
    ("eye", "linalg.rs"),
    ("from_bool", "operations.rs"),
    ("from_bridge", "quantization.rs"),
    ("from_data", "tensor.rs"),
    ("from_dispatch", "operations.rs"),
    ("from_floats", "operations.rs"),
    ("from_inner", "operations.rs"),
    ("from_ints", "operations.rs"),
    ("from_raw", "errors.rs"),
    ("full", "tensor.rs"),
    ("grad", "tensor.rs"),
    ("grad_remove", "tensor.rs"),
    ("grad_replace", "tensor.rs"),
    ("gradient_checkpointing_strategy", "autodiff.rs"),
    ("inner", "tensor.rs"),
    ("into_bridge", "quantization.rs"),
    ("into_data", "reading.rs"),
    ("into_data_as", "operations.rs"),
    ("into_data_async", "reading.rs"),
    ("into_data_dtype", "operations.rs"),
    ("into_dispatch", "operations.rs"),
    ("into_raw", "errors.rs"),
    ("into_scalar", "tensor.rs"),
    ("into_scalar_async", "reading.rs"),
    ("is_autodiff", "autodiff.rs"),
    ("is_require_grad", "autodiff.rs"),
    ("is_tracked", "autodiff.rs"),
    ("mask_select_async", "reading.rs"),
    ("new", "operations.rs"),
    ("nonzero_async", "reading.rs"),
    ("ones", "trace.rs"),
    ("quantize", "quantization.rs"),
    ("quantize_dynamic", "quantization.rs"),
    ("random", "faults.rs"),
    ("random_like", "dtypes.rs"),
    ("rank", "operations.rs"),
    ("require_grad", "autodiff.rs"),
    ("set_require_grad", "autodiff.rs"),
    ("shape", "tensor_data.rs"),
    ("to_data", "reading.rs"),
    ("to_data_as", "tensor.rs"),
    ("to_data_async", "reading.rs"),
    ("to_data_dtype", "tensor.rs"),
    ("to_device", "autodiff.rs"),
    ("try_into_data", "tensor.rs"),
    ("try_into_data_as", "operations.rs"),
    ("try_into_data_dtype", "operations.rs"),
    ("try_into_scalar", "tensor.rs"),
    ("try_into_scalar_async", "reading.rs"),
    ("try_into_vec_as", "tensor.rs"),
    ("try_to_data", "operations.rs"),
    ("try_to_data_as", "operations.rs"),
    ("try_to_data_dtype", "tensor.rs"),
    ("try_to_vec_as", "tensor.rs"),
    ("with_gradient_checkpointing_strategy", "autodiff.rs"),
    ("without_autodiff", "autodiff.rs"),
    ("zeros", "tensor.rs"),
];

/// Names of the public methods of `Tensor`, and of the functions of the module of activations.
fn public() -> BTreeSet<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the sources are there").flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else {
            continue;
        };
        let free = entry.file_name() == "activation.rs";
        let mut inside = false;
        for line in text.lines() {
            if line.starts_with("impl") {
                inside = line.contains("> Tensor<") || line.starts_with("impl Tensor<");
            }
            let line = line.trim_start();
            let rest = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub async fn "));
            if let Some(rest) = rest.filter(|_| inside || free) {
                names.insert(rest.split(['<', '(']).next().unwrap_or_default().to_string());
            }
        }
    }
    names
}

#[test]
fn every_operation_has_a_row() {
    let mut rows: BTreeSet<&str> = [basic::<Int>(), numeric(), ordered(), int()].concat().iter().map(|(name, _)| *name).collect();
    rows.extend(float().iter().map(|(name, _)| *name));
    rows.extend(boolean().iter().map(|(name, _)| *name));
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for (name, file) in ELSEWHERE {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let called = [".", "::"].iter().any(|at| text.contains(&format!("{at}{name}(")) || text.contains(&format!("{at}{name}::<")));
        assert!(called, "{file} does not call {name}");
    }
    let known: BTreeSet<&str> = rows.into_iter().chain(ELSEWHERE.map(|(name, _)| name)).collect();
    let public = public();
    assert!(public.len() > 200, "{} methods were found", public.len());
    let missing: Vec<&String> = public.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no row and no test: {missing:?}");
    let gone: Vec<&&str> = known.iter().filter(|name| !public.contains(**name)).collect();
    assert!(gone.is_empty(), "rows of what is no method: {gone:?}");
}

#[test]
fn what_is_made_is_what_is_read() {
    let device = cpu();
    let x = Tensor::<1>::from_floats([1.0, f32::NAN, f32::INFINITY], &device);
    assert!(!x.clone().all_close(x.clone(), None, None), "NaN is close to nothing");
    let y = Tensor::<1>::from_floats([1.0, 2.0], &device);
    assert!(y.clone().all_close(y.clone() + 1e-7, None, None) && !y.clone().all_close(y.clone() + 1e-3, None, None));
    let mut copy = y.clone();
    assert!(!y.can_mut());
    copy = copy + 1.0;
    assert_eq!(copy.try_to_vec_as::<f32>().unwrap(), [2.0, 3.0]);
    assert!(y.can_mut() && copy.can_mut());
    let grid = Tensor::<2, Int>::cartesian_grid::<_, 3>([2, 3], &device);
    assert_eq!((grid.rank(), grid.dims()), (3, [2, 3, 2]));
    assert_eq!(grid.try_to_vec_as::<i32>().unwrap(), [0, 0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 2]);
    assert_eq!(Tensor::<2, Int>::cartesian_grid::<_, 3>([0, 3], &device).dims(), [0, 3, 2]);
    assert_eq!(Tensor::<2, Bool>::empty([0, 4], &device).dims(), [0, 4]);
    assert_eq!(Tensor::<1, Bool>::from_bool([true, false], &device).int().try_to_vec_as::<i64>().unwrap(), [1, 0]);
    let ints = Tensor::<1, Int>::from_ints([-3, 300], &device);
    assert_eq!(ints.to_data_as::<i64>().try_to_vec::<i64>().unwrap(), [-3, 300]);
    assert_eq!(ints.clone().into_data_as::<f64>().try_to_vec::<f64>().unwrap(), [-3.0, 300.0]);
    assert_eq!(ints.clone().into_data_dtype(kiln_tensor::DType::I16).dtype(), kiln_tensor::DType::I16);
    assert_eq!(ints.try_to_data_as::<i16>().unwrap(), ints.clone().try_into_data_as::<i16>().unwrap());
    assert_eq!(ints.try_to_data().unwrap(), ints.clone().try_into_data_dtype(kiln_tensor::DType::I32).unwrap());
    let through = Tensor::<1, Int>::from_dispatch(ints.clone().into_dispatch());
    assert_eq!(through.try_to_data().unwrap(), Tensor::<1, Int>::new(ints.clone().into_bridge()).try_to_data().unwrap());
    let tracked = Tensor::<1>::from_inner(y).autodiff().require_grad();
    assert!(tracked.is_tracked() && !tracked.inner().is_tracked());
}

#[test]
fn categorical_draws_only_what_has_weight() {
    for device in [cpu(), Device::reference()] {
        let weights = Tensor::<2>::from_data([[0.0, 3.0, 0.0, 1.0], [5.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1e-30, 0.0]], &device);
        let drawn = weights.categorical(4000);
        assert_eq!(drawn.dims(), [3, 4000]);
        let drawn = drawn.try_into_vec_as::<i64>().unwrap();
        assert!(drawn[..4000].iter().all(|class| [1, 3].contains(class)), "{device:?}");
        let threes = drawn[..4000].iter().filter(|class| **class == 3).count();
        assert!((800..1200).contains(&threes), "{threes} of 4000 with a chance of a quarter");
        assert!(drawn[4000..8000].iter().all(|class| *class == 0) && drawn[8000..].iter().all(|class| *class == 2), "{device:?}");
    }
}
