//! Between stored tensors and tensor data.

use kiln_tensor::kind::Basic;
use kiln_tensor::quantization::quantized_data_len;
use kiln_tensor::{Bytes, DType, Shape, TensorData};

use crate::burn_pack::{Error, Tensor};

/// What can be shared between threads.
pub trait MaybeSendSync: Send + Sync {}

impl<T: Send + Sync> MaybeSendSync for T {}

/// The number of bytes of a tensor of `dtype` and `shape`.
pub fn data_len(dtype: DType, shape: &Shape) -> usize {
    match dtype {
        DType::QFloat(scheme) => quantized_data_len(&scheme, shape),
        _ => shape.num_elements() * dtype.size(),
    }
}

/// A stored tensor whose data is made when its bytes are asked for.
pub fn deferred(
    name: String,
    dtype: DType,
    shape: Shape,
    param_id: Option<u64>,
    data_fn: impl Fn() -> Result<TensorData, Error> + MaybeSendSync + 'static,
) -> Tensor {
    let len = data_len(dtype, &shape);
    Tensor::deferred(name, dtype, shape, param_id, len, move || data_fn().map(TensorData::into_bytes))
}

/// A stored tensor of a tensor, whose data is read from the device when its bytes are asked for.
pub fn from_tensor<const D: usize, K: Basic + 'static>(tensor: &kiln_tensor::Tensor<D, K>, name: String, param_id: Option<u64>) -> Tensor {
    let (dtype, shape) = (tensor.dtype(), tensor.shape());
    let (tensor, path) = (tensor.clone(), name.clone());
    deferred(name, dtype, shape, param_id, move || tensor.try_to_data().map_err(|error| Error::IoError(format!("tensor `{path}`: {error}"))))
}

/// A stored tensor of `data`.
pub fn from_data(data: TensorData, name: String, param_id: Option<u64>) -> Tensor {
    let (bytes, shape, dtype) = data.into_parts();
    Tensor::new(name, dtype, shape, param_id, bytes)
}

/// A stored tensor of a tensor of a PyTorch file, which it shares where the elements lie in order.
#[cfg(feature = "pytorch")]
pub fn from_pytorch(tensor: crate::pytorch::Tensor) -> Tensor {
    tensor.into_pack()
}

/// The data of a stored tensor.
///
/// # Errors
///
/// Its bytes cannot be had, or are not as many as its shape and dtype call for.
pub fn to_data(tensor: &Tensor) -> Result<TensorData, Error> {
    data(&tensor.name, tensor.dtype, tensor.shape.clone(), tensor.to_bytes()?)
}

/// The data of a stored tensor, given up by it.
///
/// # Errors
///
/// As [`to_data`].
pub fn into_data(tensor: Tensor) -> Result<TensorData, Error> {
    let (name, dtype, shape, _, bytes) = tensor.into_parts()?;
    data(&name, dtype, shape, bytes)
}

fn data(name: &str, dtype: DType, shape: Shape, bytes: Bytes) -> Result<TensorData, Error> {
    let data = TensorData::try_from_bytes(bytes, shape, dtype).and_then(|data| data.check_quantized().map(|()| data));
    data.map_err(|error| Error::ValidationError(format!("tensor `{name}`: {error}")))
}

/// A stored tensor of another name, dtype or shape, whose data `f` makes of that of `tensor` when its bytes are asked for.
pub fn map_data(tensor: Tensor, name: String, dtype: DType, shape: Shape, f: impl Fn(TensorData) -> TensorData + MaybeSendSync + 'static) -> Tensor {
    let param_id = tensor.param_id;
    deferred(name, dtype, shape, param_id, move || to_data(&tensor).map(&f))
}
