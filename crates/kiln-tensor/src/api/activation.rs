//! Activation functions.

use kiln_ir::Elementwise::{Add, Ge, Gt, Le, Lt, Max, Min, Mul, Sub};

use super::Tensor;
use crate::autodiff::{self, Keep};
use crate::raw::RawTensor;
use crate::shape::AsIndex;

/// The threshold of [`softplus`], above which it is the identity.
pub const DEFAULT_SOFTPLUS_THRESHOLD: f64 = 20.0;

/// `max(x, 0)`; its slope at 0 is 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::relu};
/// let x = Tensor::<1>::from_data([-1.0, 2.0], &Device::default());
/// assert_eq!(relu(x).try_to_vec_as::<f32>().unwrap(), [0.0, 2.0]);
/// ```
#[track_caller]
pub fn relu<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.relu())
}

/// The elements limited to `min_val..=max_val`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::hardtanh};
/// let x = Tensor::<1>::from_data([-3.0, 0.5, 3.0], &Device::default());
/// assert_eq!(hardtanh(x, -1.0, 1.0).try_to_vec_as::<f32>().unwrap(), [-1.0, 0.5, 1.0]);
/// ```
#[track_caller]
pub fn hardtanh<const D: usize>(tensor: Tensor<D>, min_val: f64, max_val: f64) -> Tensor<D> {
    Tensor::from_raw(limit(&tensor.raw, min_val, max_val))
}

/// `x - tanh(x)`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::tanhshrink};
/// let x = Tensor::<1>::from_data([1.0], &Device::default());
/// assert!((tanhshrink(x).into_scalar::<f32>() - 0.238_405_8).abs() < 1e-6);
/// ```
#[track_caller]
pub fn tanhshrink<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.sub(&tensor.raw.tanh()))
}

/// The elements limited to `0..=6`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::relu6};
/// let x = Tensor::<1>::from_data([-1.0, 7.0], &Device::default());
/// assert_eq!(relu6(x).try_to_vec_as::<f32>().unwrap(), [0.0, 6.0]);
/// ```
#[track_caller]
pub fn relu6<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(limit(&tensor.raw, 0.0, 6.0))
}

/// `x`, and `negative_slope * x` below 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::leaky_relu};
/// let x = Tensor::<1>::from_data([-2.0, 2.0], &Device::default());
/// assert_eq!(leaky_relu(x, 0.5).try_to_vec_as::<f32>().unwrap(), [-1.0, 2.0]);
/// ```
#[track_caller]
pub fn leaky_relu<const D: usize>(tensor: Tensor<D>, negative_slope: f64) -> Tensor<D> {
    let x = &tensor.raw;
    Tensor::from_raw(x.mask_where(&x.with_constant(Le, 0.0), &x.with_constant(Mul, negative_slope)))
}

/// `x * P(X <= x)` for a standard normal `X`. Any shape.
///
/// D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::gelu};
/// let x = Tensor::<1>::from_data([1.0], &Device::default());
/// assert!((gelu(x).into_scalar::<f32>() - 0.841_344_7).abs() < 1e-6);
/// ```
#[track_caller]
pub fn gelu<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.gelu())
}

/// [`gelu`] approximated with a hyperbolic tangent. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::gelu_approximate};
/// let x = Tensor::<1>::from_data([1.0], &Device::default());
/// assert!((gelu_approximate(x).into_scalar::<f32>() - 0.841_192).abs() < 1e-6);
/// ```
#[track_caller]
pub fn gelu_approximate<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.gelu_tanh())
}

/// `x`, and `alpha * x` below 0, where `alpha` has one element or one for each channel (axis 1 of `[batch, channels, ..]`).
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::prelu};
/// let device = Device::default();
/// let x = Tensor::<2>::from_data([[-2.0, -2.0]], &device);
/// let alpha = Tensor::<1>::from_data([0.5, 0.25], &device);
/// assert_eq!(prelu(x, alpha).try_to_vec_as::<f32>().unwrap(), [-1.0, -0.5]);
/// ```
///
/// # Panics
/// When `alpha` has neither one element nor one for each channel.
#[track_caller]
pub fn prelu<const D: usize>(tensor: Tensor<D>, alpha: Tensor<1>) -> Tensor<D> {
    let count = alpha.raw.dims()[0];
    let channels = tensor.raw.dims().get(1).copied();
    assert!(
        count == 1 || channels == Some(count),
        "prelu: alpha has {count} elements, the input shape {:?}: it needs one, or one for each channel",
        tensor.raw.dims()
    );
    let mut dims = [1; D];
    if count != 1 {
        dims[1] = count;
    }
    let (x, alpha) = (&tensor.raw, alpha.raw.reshape(&dims));
    Tensor::from_raw(x.mask_where(&x.with_constant(Le, 0.0), &x.mul(&alpha)))
}

/// Exponentials along an axis, scaled to add up to 1. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::softmax};
/// let x = Tensor::<1>::from_data([1000.0, 1000.0], &Device::default());
/// assert_eq!(softmax(x, 0).try_to_vec_as::<f32>().unwrap(), [0.5, 0.5]);
/// ```
///
/// # Panics
/// When the axis does not exist or is empty.
#[track_caller]
pub fn softmax<const D: usize>(tensor: Tensor<D>, dim: impl AsIndex) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.softmax(tensor.axis("softmax", dim)))
}

/// [`softmax`] of `-x`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::softmin};
/// let x = Tensor::<1>::from_data([0.0, 1000.0], &Device::default());
/// assert_eq!(softmin(x, 0).try_to_vec_as::<f32>().unwrap(), [1.0, 0.0]);
/// ```
///
/// # Panics
/// When the axis does not exist or is empty.
#[track_caller]
pub fn softmin<const D: usize>(tensor: Tensor<D>, dim: impl AsIndex) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.neg().softmax(tensor.axis("softmin", dim)))
}

/// `ln(1 + exp(beta x)) / beta`, and `x` itself where `beta x` exceeds [`DEFAULT_SOFTPLUS_THRESHOLD`]. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::softplus};
/// let x = Tensor::<1>::from_data([0.0], &Device::default());
/// assert!((softplus(x, 1.0).into_scalar::<f32>() - 2f32.ln()).abs() < 1e-6);
/// ```
#[track_caller]
pub fn softplus<const D: usize>(tensor: Tensor<D>, beta: f64) -> Tensor<D> {
    softplus_with_threshold(tensor, beta, DEFAULT_SOFTPLUS_THRESHOLD)
}

/// [`softplus`] with another threshold.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::softplus_with_threshold};
/// let x = Tensor::<1>::from_data([3.0], &Device::default());
/// assert_eq!(softplus_with_threshold(x, 1.0, 2.0).into_scalar::<f32>(), 3.0);
/// ```
#[track_caller]
pub fn softplus_with_threshold<const D: usize>(tensor: Tensor<D>, beta: f64, threshold: f64) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.softplus(beta, threshold))
}

/// Exponentials along an axis, divided by 1 plus their sum, so that all may be near 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::quiet_softmax};
/// let x = Tensor::<1>::from_data([-1000.0, 0.0], &Device::default());
/// assert_eq!(quiet_softmax(x, 0).try_to_vec_as::<f32>().unwrap(), [0.0, 0.5]);
/// ```
///
/// # Panics
/// When the axis does not exist or is empty.
#[track_caller]
pub fn quiet_softmax<const D: usize>(tensor: Tensor<D>, dim: impl AsIndex) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.quiet_softmax(tensor.axis("quiet_softmax", dim)))
}

/// The logarithm of [`softmax`], computed without loss of range.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::log_softmax};
/// let x = Tensor::<1>::from_data([0.0, 1000.0], &Device::default());
/// assert_eq!(log_softmax(x, 0).try_to_vec_as::<f32>().unwrap(), [-1000.0, 0.0]);
/// ```
///
/// # Panics
/// When the axis does not exist or is empty.
#[track_caller]
pub fn log_softmax<const D: usize>(tensor: Tensor<D>, dim: impl AsIndex) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.log_softmax(tensor.axis("log_softmax", dim)))
}

/// `1 / (1 + exp(-x))`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::sigmoid};
/// let x = Tensor::<1>::from_data([0.0, 1000.0], &Device::default());
/// assert_eq!(sigmoid(x).try_to_vec_as::<f32>().unwrap(), [0.5, 1.0]);
/// ```
#[track_caller]
pub fn sigmoid<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.sigmoid())
}

/// `alpha x + beta` limited to `0..=1`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::hard_sigmoid};
/// let x = Tensor::<1>::from_data([-9.0, 1.0], &Device::default());
/// assert_eq!(hard_sigmoid(x, 0.25, 0.5).try_to_vec_as::<f32>().unwrap(), [0.0, 0.75]);
/// ```
#[track_caller]
pub fn hard_sigmoid<const D: usize>(tensor: Tensor<D>, alpha: f64, beta: f64) -> Tensor<D> {
    Tensor::from_raw(limit(&tensor.raw.with_constant(Mul, alpha).with_constant(Add, beta), 0.0, 1.0))
}

/// The logarithm of [`sigmoid`], computed without loss of range.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::log_sigmoid};
/// let x = Tensor::<1>::from_data([-1000.0, 1000.0], &Device::default());
/// assert_eq!(log_sigmoid(x).try_to_vec_as::<f32>().unwrap(), [-1000.0, 0.0]);
/// ```
#[track_caller]
pub fn log_sigmoid<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.log_sigmoid())
}

/// `x * sigmoid(x)`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::silu};
/// let x = Tensor::<1>::from_data([1.0], &Device::default());
/// assert!((silu(x).into_scalar::<f32>() - 0.731_058_6).abs() < 1e-6);
/// ```
#[track_caller]
pub fn silu<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.silu())
}

/// `x * relu6(x + 3) / 6`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::hard_swish};
/// let x = Tensor::<1>::from_data([-4.0, 0.0, 3.0], &Device::default());
/// assert_eq!(hard_swish(x).try_to_vec_as::<f32>().unwrap(), [0.0, 0.0, 3.0]);
/// ```
#[track_caller]
pub fn hard_swish<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let gate = limit(&tensor.raw.with_constant(Add, 3.0), 0.0, 6.0).with_constant(Mul, 1.0 / 6.0);
    Tensor::from_raw(tensor.raw.mul(&gate))
}

/// `x * tanh(softplus(x))`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::mish};
/// let x = Tensor::<1>::from_data([1.0], &Device::default());
/// assert!((mish(x).into_scalar::<f32>() - 0.865_098_4).abs() < 1e-6);
/// ```
#[track_caller]
pub fn mish<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    let gate = tensor.raw.softplus(1.0, DEFAULT_SOFTPLUS_THRESHOLD).tanh();
    Tensor::from_raw(tensor.raw.mul(&gate))
}

/// The hyperbolic tangent. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::tanh};
/// let x = Tensor::<1>::from_data([0.0, 100.0], &Device::default());
/// assert_eq!(tanh(x).try_to_vec_as::<f32>().unwrap(), [0.0, 1.0]);
/// ```
#[track_caller]
pub fn tanh<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    tensor.tanh()
}

/// `x`, and `alpha * (exp(x) - 1)` below 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::elu};
/// let x = Tensor::<1>::from_data([-1000.0, 1000.0], &Device::default());
/// assert_eq!(elu(x, 2.0).try_to_vec_as::<f32>().unwrap(), [-2.0, 1000.0]);
/// ```
#[track_caller]
pub fn elu<const D: usize>(tensor: Tensor<D>, alpha: f64) -> Tensor<D> {
    Tensor::from_raw(elu_scaled(&tensor.raw, alpha, 1.0))
}

/// `x`, and `alpha * (exp(x / alpha) - 1)` below 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::celu};
/// let x = Tensor::<1>::from_data([-1000.0, 3.0], &Device::default());
/// assert_eq!(celu(x, 2.0).try_to_vec_as::<f32>().unwrap(), [-2.0, 3.0]);
/// ```
///
/// # Panics
/// When `alpha` is 0.
#[track_caller]
pub fn celu<const D: usize>(tensor: Tensor<D>, alpha: f64) -> Tensor<D> {
    assert!(alpha != 0.0, "celu: alpha must not be 0: shape {:?}", tensor.raw.dims());
    Tensor::from_raw(elu_scaled(&tensor.raw, alpha, 1.0 / alpha))
}

/// `1.0507 * x`, and `1.0507 * 1.6733 * (exp(x) - 1)` below 0, which keeps mean and variance of a deep network. Any shape.
///
/// G. Klambauer et al., "Self-normalizing neural networks", 2017.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::selu};
/// let x = Tensor::<1>::from_data([1.0], &Device::default());
/// assert!((selu(x).into_scalar::<f32>() - 1.050_701).abs() < 1e-6);
/// ```
#[track_caller]
pub fn selu<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    const ALPHA: f64 = 1.673_263_242_354_377_2;
    const SCALE: f64 = 1.050_700_987_355_480_5;
    Tensor::from_raw(elu_scaled(&tensor.raw, ALPHA, 1.0).with_constant(Mul, SCALE))
}

/// `x` above `alpha`, else 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::thresholded_relu};
/// let x = Tensor::<1>::from_data([0.5, 2.0], &Device::default());
/// assert_eq!(thresholded_relu(x, 1.0).try_to_vec_as::<f32>().unwrap(), [0.0, 2.0]);
/// ```
#[track_caller]
pub fn thresholded_relu<const D: usize>(tensor: Tensor<D>, alpha: f64) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.with_constant(Gt, alpha).choose_or_zero(&tensor.raw))
}

/// `x` above the threshold, else `value`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::threshold};
/// let x = Tensor::<1>::from_data([0.5, 2.0], &Device::default());
/// assert_eq!(threshold(x, 1.0, -7.0).try_to_vec_as::<f32>().unwrap(), [-7.0, 2.0]);
/// ```
#[track_caller]
pub fn threshold<const D: usize>(tensor: Tensor<D>, threshold: f64, value: f64) -> Tensor<D> {
    let above = tensor.raw.with_constant(Gt, threshold);
    Tensor::from_raw(tensor.raw.fill_constant(&above.not(), value))
}

/// The first half of an axis times the [`sigmoid`] of the second: the axis becomes half as long.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::glu};
/// let x = Tensor::<1>::from_data([3.0, 0.0], &Device::default());
/// assert_eq!(glu(x, 0).try_to_vec_as::<f32>().unwrap(), [1.5]);
/// ```
///
/// # Panics
/// When the axis does not exist or its size is odd.
#[track_caller]
pub fn glu<const D: usize>(tensor: Tensor<D>, dim: impl AsIndex) -> Tensor<D> {
    let axis = tensor.axis("glu", dim);
    let size = tensor.raw.dims()[axis];
    assert!(size.is_multiple_of(2), "glu: axis {axis} has odd size {size}: shape {:?}", tensor.raw.dims());
    let half = |start: usize| tensor.raw.narrow(axis, start, size / 2);
    Tensor::from_raw(half(0).mul(&half(size / 2).sigmoid()))
}

/// `x / (1 + |x|)`. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::softsign};
/// let x = Tensor::<1>::from_data([-1.0, 3.0], &Device::default());
/// assert_eq!(softsign(x).try_to_vec_as::<f32>().unwrap(), [-0.5, 0.75]);
/// ```
#[track_caller]
pub fn softsign<const D: usize>(tensor: Tensor<D>) -> Tensor<D> {
    Tensor::from_raw(tensor.raw.div(&tensor.raw.abs().with_constant(Add, 1.0)))
}

/// `x` where `|x|` exceeds `lambda`, else 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::hard_shrink};
/// let x = Tensor::<1>::from_data([-1.0, 0.25], &Device::default());
/// assert_eq!(hard_shrink(x, 0.5).try_to_vec_as::<f32>().unwrap(), [-1.0, 0.0]);
/// ```
#[track_caller]
pub fn hard_shrink<const D: usize>(tensor: Tensor<D>, lambda: f64) -> Tensor<D> {
    shrink(tensor, lambda, 0.0)
}

/// `x` moved by `lambda` towards 0 where `|x|` exceeds it, else 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::soft_shrink};
/// let x = Tensor::<1>::from_data([-1.0, 0.25], &Device::default());
/// assert_eq!(soft_shrink(x, 0.5).try_to_vec_as::<f32>().unwrap(), [-0.5, 0.0]);
/// ```
#[track_caller]
pub fn soft_shrink<const D: usize>(tensor: Tensor<D>, lambda: f64) -> Tensor<D> {
    shrink(tensor, lambda, lambda)
}

/// `x` moved by `bias` towards 0 where `|x|` exceeds `lambda`, else 0. Any shape.
///
/// ```
/// use kiln_tensor::{Device, Tensor, activation::shrink};
/// let x = Tensor::<1>::from_data([-1.0, 0.25], &Device::default());
/// assert_eq!(shrink(x, 0.5, 0.25).try_to_vec_as::<f32>().unwrap(), [-0.75, 0.0]);
/// ```
#[track_caller]
pub fn shrink<const D: usize>(tensor: Tensor<D>, lambda: f64, bias: f64) -> Tensor<D> {
    let x = &tensor.raw;
    let above = x.with_constant(Gt, lambda).choose_or_zero(&x.with_constant(Sub, bias));
    let below = x.with_constant(Lt, -lambda);
    Tensor::from_raw(above.mask_where(&below, &x.with_constant(Add, bias)))
}

/// Limited to `[min, max]`. The slope is 0 outside of the range and at its ends, as PyTorch has it.
#[track_caller]
fn limit(x: &RawTensor, min: f64, max: f64) -> RawTensor {
    let y = x.untracked().with_constant(Max, min).with_constant(Min, max);
    autodiff::custom(&[x], y, Keep::Output, move |call| {
        let y = call.output();
        let flat = y.with_constant(Le, min).or(&y.with_constant(Ge, max));
        [Some(call.dy.fill_constant(&flat, 0.0))].into()
    })
}

/// `x`, and `alpha * (exp(slope * x) - 1)` from 0 down. The exponent is limited first, so that the unused side has no infinite slope.
#[track_caller]
fn elu_scaled(x: &RawTensor, alpha: f64, slope: f64) -> RawTensor {
    let negative = x.with_constant(Le, 0.0);
    let below = negative.choose_or_zero(x).with_constant(Mul, slope).exp().with_constant(Sub, 1.0).with_constant(Mul, alpha);
    x.mask_where(&negative, &below)
}
