//! `FloatTensorOps`: the operations on float primitives that code over a backend may call.

use core::future::Future;

use super::{Backend, BackendDevice, FloatTensor, Primitive};
use crate::data::TensorData;
use crate::raw::RawTensor;
use crate::shape::Shape;
use crate::{ExecutionError, Scalar};

/// Operations on float primitives. Every backend has them, and they are recorded like those of tensors; what is missing here a tensor has, and
/// [`Tensor::from_primitive`](crate::Tensor::from_primitive) makes one.
///
/// Operands of a binary operation are broadcast. Axes count from 0. Mistakes of shape panic at the caller's line as those of tensors do.
///
/// ```
/// use kiln_tensor::backend::{Dispatch, FloatTensorOps};
/// use kiln_tensor::{Device, TensorData, TensorMetadata, read_sync};
/// let x = Dispatch::float_from_data(TensorData::from([[1.0f32, 2.0], [3.0, 4.0]]), &Device::default());
/// let y = Dispatch::float_matmul(x.clone(), Dispatch::float_transpose(x));
/// assert_eq!(y.shape().as_slice(), [2, 2]);
/// assert_eq!(read_sync(Dispatch::float_into_data(y)).unwrap(), TensorData::from([[5.0f32, 11.0], [11.0, 25.0]]));
/// ```
pub trait FloatTensorOps<B: Backend> {
    /// A primitive of the data's values on a device.
    ///
    /// # Panics
    /// When the data is quantized.
    #[track_caller]
    fn float_from_data(data: TensorData, device: &BackendDevice<B>) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(RawTensor::from_data(data, &B::tensor_device(device)))
    }

    /// The values.
    ///
    /// # Errors
    /// When the device fails.
    fn float_into_data(tensor: FloatTensor<B>) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        let raw = tensor.into_raw();
        async move { raw.to_data() }
    }

    /// `lhs + rhs`.
    #[track_caller]
    fn float_add(lhs: FloatTensor<B>, rhs: FloatTensor<B>) -> FloatTensor<B> {
        binary::<B>(lhs, rhs, RawTensor::add)
    }

    /// `lhs + rhs`.
    #[track_caller]
    fn float_add_scalar(lhs: FloatTensor<B>, rhs: Scalar) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(lhs.into_raw().add_scalar(rhs))
    }

    /// `lhs - rhs`.
    #[track_caller]
    fn float_sub(lhs: FloatTensor<B>, rhs: FloatTensor<B>) -> FloatTensor<B> {
        binary::<B>(lhs, rhs, RawTensor::sub)
    }

    /// `lhs - rhs`.
    #[track_caller]
    fn float_sub_scalar(lhs: FloatTensor<B>, rhs: Scalar) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(lhs.into_raw().sub_scalar(rhs))
    }

    /// `lhs · rhs`, element by element.
    #[track_caller]
    fn float_mul(lhs: FloatTensor<B>, rhs: FloatTensor<B>) -> FloatTensor<B> {
        binary::<B>(lhs, rhs, RawTensor::mul)
    }

    /// `lhs · rhs`.
    #[track_caller]
    fn float_mul_scalar(lhs: FloatTensor<B>, rhs: Scalar) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(lhs.into_raw().mul_scalar(rhs))
    }

    /// `lhs / rhs`, element by element.
    #[track_caller]
    fn float_div(lhs: FloatTensor<B>, rhs: FloatTensor<B>) -> FloatTensor<B> {
        binary::<B>(lhs, rhs, RawTensor::div)
    }

    /// `lhs / rhs`.
    #[track_caller]
    fn float_div_scalar(lhs: FloatTensor<B>, rhs: Scalar) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(lhs.into_raw().div_scalar(rhs))
    }

    /// Matrix products of the last two axes.
    #[track_caller]
    fn float_matmul(lhs: FloatTensor<B>, rhs: FloatTensor<B>) -> FloatTensor<B> {
        binary::<B>(lhs, rhs, RawTensor::matmul)
    }

    /// `-x`.
    #[track_caller]
    fn float_neg(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::neg)
    }

    /// `1 / x`.
    #[track_caller]
    fn float_recip(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::recip)
    }

    /// `eˣ`.
    #[track_caller]
    fn float_exp(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::exp)
    }

    /// The natural logarithm.
    #[track_caller]
    fn float_log(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::log)
    }

    /// The square root.
    #[track_caller]
    fn float_sqrt(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::sqrt)
    }

    /// `|x|`.
    #[track_caller]
    fn float_abs(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::abs)
    }

    /// The sine.
    #[track_caller]
    fn float_sin(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::sin)
    }

    /// The cosine.
    #[track_caller]
    fn float_cos(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::cos)
    }

    /// The hyperbolic tangent.
    #[track_caller]
    fn float_tanh(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::tanh)
    }

    /// The error function.
    #[track_caller]
    fn float_erf(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::erf)
    }

    /// `max(x, 0)`.
    #[track_caller]
    fn relu(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::relu)
    }

    /// `1 / (1 + e⁻ˣ)`.
    #[track_caller]
    fn sigmoid(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::sigmoid)
    }

    /// The last two axes swapped.
    #[track_caller]
    fn float_transpose(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, RawTensor::transpose)
    }

    /// Two axes swapped.
    #[track_caller]
    fn float_swap_dims(tensor: FloatTensor<B>, dim1: usize, dim2: usize) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(tensor.into_raw().swap_dims(dim1, dim2))
    }

    /// The same elements in another shape.
    #[track_caller]
    fn float_reshape(tensor: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(tensor.into_raw().reshape(shape.as_slice()))
    }

    /// The sum of all elements, of shape `[1]`.
    #[track_caller]
    fn float_sum(tensor: FloatTensor<B>) -> FloatTensor<B> {
        unary::<B>(tensor, |x| x.sum_all().reshape(&[1]))
    }

    /// Sums along an axis, which becomes 1 long.
    #[track_caller]
    fn float_sum_dim(tensor: FloatTensor<B>, dim: usize) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(tensor.into_raw().sum(&[dim]))
    }

    /// Means along an axis, which becomes 1 long.
    #[track_caller]
    fn float_mean_dim(tensor: FloatTensor<B>, dim: usize) -> FloatTensor<B> {
        FloatTensor::<B>::from_raw(tensor.into_raw().mean(&[dim]))
    }
}

impl<B: Backend> FloatTensorOps<B> for B {}

#[track_caller]
fn unary<B: Backend>(x: FloatTensor<B>, op: fn(&RawTensor) -> RawTensor) -> FloatTensor<B> {
    FloatTensor::<B>::from_raw(op(&x.into_raw()))
}

#[track_caller]
fn binary<B: Backend>(lhs: FloatTensor<B>, rhs: FloatTensor<B>, op: fn(&RawTensor, &RawTensor) -> RawTensor) -> FloatTensor<B> {
    FloatTensor::<B>::from_raw(op(&lhs.into_raw(), &rhs.into_raw()))
}
