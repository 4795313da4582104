//! Values in and out of tensors, devices, and the text of tensors.

use alloc::vec::Vec;
use core::fmt;
use core::future::Future;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Tensor;
use super::creation::TensorCreationOptions;
use super::kind::{self, Basic};
use crate::data::{TensorData, TensorReadError};
use crate::device::Device;
use crate::dtype::{BoolStore, DType};
use crate::element::Element;
use crate::error::ExecutionError;
use crate::raw::RawTensor;

impl RawTensor {
    /// A tensor of the data's values. Quantized data stays quantized.
    ///
    /// # Panics
    /// When quantized data does not have the bytes that its shape and scheme need.
    #[track_caller]
    pub fn from_data(data: TensorData, device: &Device) -> Self {
        if let DType::QFloat(scheme) = data.dtype() {
            return Self::from_quantized_data(data, scheme, device);
        }
        let dtype = kiln_ir::DType::from(data.dtype());
        // All booleans are stored as one byte on a device.
        let stated = data.dtype();
        let data = if stated.is_bool() { data.convert::<bool>() } else { data };
        let (bytes, shape, _) = data.into_parts();
        Self::from_memory(device, &shape, dtype, bytes).labelled(stated)
    }

    /// The values. Computes them if they are pending.
    ///
    /// # Errors
    /// What went wrong while the tensor was computed or copied.
    pub fn to_data(&self) -> Result<TensorData, ExecutionError> {
        if let Some(data) = self.to_quantized_data() {
            return data;
        }
        let bytes = self.to_memory()?;
        Ok(match self.api_dtype() {
            crate::DType::Bool(store) => {
                TensorData::from_bytes(bytes, self.dims(), crate::DType::Bool(BoolStore::Native)).convert_dtype(store.into())
            }
            dtype => TensorData::from_bytes(bytes, self.dims(), dtype),
        })
    }
}

#[track_caller]
fn expect<T, E: fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("into_data: cannot read a tensor: {error}"),
    }
}

fn converted(raw: &RawTensor, dtype: DType) -> Result<TensorData, TensorReadError> {
    Ok(raw.to_data()?.try_cast(dtype)?)
}

fn scalar<E: Element>(raw: &RawTensor) -> Result<E, TensorReadError> {
    if raw.numel() != 1 {
        return Err(TensorReadError::InvalidShape { expected: 1, actual: raw.numel() });
    }
    let value = raw.to_data()?.try_into_vec_as::<E>()?;
    Ok(value[0])
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// The values. Computes what is pending. Large ones on the CPU share the tensor's memory until somebody writes them.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, TensorData};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default()) * 2;
    /// x.into_data().assert_eq(&TensorData::from([2.0f32, 4.0]), true);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    #[track_caller]
    pub fn into_data(self) -> TensorData {
        expect(self.raw.to_data())
    }

    /// The values.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_into_data().unwrap().try_to_vec::<f32>().unwrap(), [1.0, 2.0]);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    pub fn try_into_data(self) -> Result<TensorData, ExecutionError> {
        self.raw.to_data()
    }

    /// The values. Computes what is pending. Large ones on the CPU share the tensor's memory until somebody writes them.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.to_data().try_to_vec::<f32>().unwrap(), [1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    #[track_caller]
    pub fn to_data(&self) -> TensorData {
        expect(self.raw.to_data())
    }

    /// The values.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_to_data().unwrap().num_elements(), 2);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    pub fn try_to_data(&self) -> Result<TensorData, ExecutionError> {
        self.raw.to_data()
    }

    /// The values, for code that awaits.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, read_sync};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(read_sync(x.into_data_async()).unwrap().num_elements(), 2);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    #[allow(clippy::manual_async_fn)] // The signature promises `Send`, which an `async fn` does not.
    pub fn into_data_async(self) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        async move { self.try_into_data() }
    }

    /// The values, for code that awaits.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, read_sync};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(read_sync(x.to_data_async()).unwrap().num_elements(), 2);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    pub fn to_data_async(&self) -> impl Future<Output = Result<TensorData, ExecutionError>> + Send {
        self.clone().into_data_async()
    }

    /// The values converted to `E`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.to_data_as::<i64>().try_to_vec::<i64>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    #[track_caller]
    pub fn to_data_as<E: Element>(&self) -> TensorData {
        self.to_data_dtype(E::dtype())
    }

    /// The values converted to `E`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_to_data_as::<i64>().unwrap().try_to_vec::<i64>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    pub fn try_to_data_as<E: Element>(&self) -> Result<TensorData, TensorReadError> {
        self.try_to_data_dtype(E::dtype())
    }

    /// The values converted to `E`, in row-major order.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_to_vec_as::<i64>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    pub fn try_to_vec_as<E: Element>(&self) -> Result<Vec<E>, TensorReadError> {
        Ok(self.raw.to_data()?.try_into_vec_as()?)
    }

    /// The values converted to a type.
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.to_data_dtype(DType::F64).dtype(), DType::F64);
    /// ```
    ///
    /// # Panics
    /// When the device fails or the type is quantized.
    #[track_caller]
    pub fn to_data_dtype(&self, dtype: DType) -> TensorData {
        expect(self.try_to_data_dtype(dtype))
    }

    /// The values converted to a type.
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_to_data_dtype(DType::F64).unwrap().dtype(), DType::F64);
    /// ```
    ///
    /// # Errors
    /// When the device fails or the type is quantized.
    pub fn try_to_data_dtype(&self, dtype: DType) -> Result<TensorData, TensorReadError> {
        converted(&self.raw, dtype)
    }

    /// The values converted to `E`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.into_data_as::<i64>().try_to_vec::<i64>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When the device fails.
    #[track_caller]
    pub fn into_data_as<E: Element>(self) -> TensorData {
        self.to_data_dtype(E::dtype())
    }

    /// The values converted to `E`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_into_data_as::<i64>().unwrap().try_to_vec::<i64>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    pub fn try_into_data_as<E: Element>(self) -> Result<TensorData, TensorReadError> {
        self.try_to_data_dtype(E::dtype())
    }

    /// The values converted to `E`, in row-major order.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_into_vec_as::<i64>().unwrap(), [1, 2]);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    pub fn try_into_vec_as<E: Element>(self) -> Result<Vec<E>, TensorReadError> {
        self.try_to_vec_as()
    }

    /// The values converted to a type.
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.into_data_dtype(DType::F64).dtype(), DType::F64);
    /// ```
    ///
    /// # Panics
    /// When the device fails or the type is quantized.
    #[track_caller]
    pub fn into_data_dtype(self, dtype: DType) -> TensorData {
        self.to_data_dtype(dtype)
    }

    /// The values converted to a type.
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.try_into_data_dtype(DType::F64).unwrap().dtype(), DType::F64);
    /// ```
    ///
    /// # Errors
    /// When the device fails or the type is quantized.
    pub fn try_into_data_dtype(self, dtype: DType) -> Result<TensorData, TensorReadError> {
        self.try_to_data_dtype(dtype)
    }

    /// The one element of the tensor, converted to `E`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<2>::from_data([[3.5]], &Device::default());
    /// assert_eq!(x.into_scalar::<f64>(), 3.5);
    /// ```
    ///
    /// # Panics
    /// When the tensor does not have one element, or the device fails.
    #[track_caller]
    pub fn into_scalar<E: Element>(self) -> E {
        let dims = self.dims();
        match self.try_into_scalar() {
            Ok(value) => value,
            Err(error) => panic!("into_scalar: cannot read a tensor: {error}: shape {dims:?}"),
        }
    }

    /// The one element of the tensor, converted to `E`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.clone().sum().try_into_scalar::<f32>().unwrap(), 3.0);
    /// assert!(x.try_into_scalar::<f32>().is_err());
    /// ```
    ///
    /// # Errors
    /// When the tensor does not have one element, or the device fails.
    pub fn try_into_scalar<E: Element>(self) -> Result<E, TensorReadError> {
        scalar(&self.raw)
    }

    /// The one element of the tensor, for code that awaits.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, read_sync};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(read_sync(x.sum().into_scalar_async::<f32>()).unwrap(), 3.0);
    /// ```
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When the tensor does not have one element.
    pub async fn into_scalar_async<E: Element>(self) -> Result<E, ExecutionError> {
        let dims = self.dims();
        match self.try_into_scalar() {
            Ok(value) => Ok(value),
            Err(TensorReadError::Execution(error)) => Err(error),
            Err(error @ (TensorReadError::Data(_) | TensorReadError::InvalidShape { .. })) => {
                panic!("into_scalar_async: cannot read a tensor: {error}: shape {dims:?}")
            }
        }
    }

    /// The one element of the tensor, for code that awaits.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, read_sync};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(read_sync(x.sum().try_into_scalar_async::<f32>()).unwrap(), 3.0);
    /// ```
    ///
    /// # Errors
    /// When the tensor does not have one element, or the device fails.
    pub async fn try_into_scalar_async<E: Element>(self) -> Result<E, TensorReadError> {
        self.try_into_scalar()
    }

    /// The tensor on another device. Its autodiff settings stay, and gradients flow back.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0], &Device::default());
    /// assert_eq!(x.to_device(&Device::default()).device(), Device::default());
    /// ```
    #[track_caller]
    pub fn to_device(self, device: &Device) -> Self {
        Self::from_raw(self.raw.to_device(device))
    }

    /// Takes the tensor out of a variable and leaves an empty one.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// let mut slot = x;
    /// let x = slot.extract();
    /// assert_eq!((x.dims(), slot.dims()), ([2], [0]));
    /// ```
    pub fn extract(&mut self) -> Self {
        let empty = Self::from_raw(RawTensor::zeros(&self.raw.device(), &[0; D], self.raw.dtype()).labelled(self.dtype()));
        core::mem::replace(self, empty)
    }

    /// Replaces the tensor by a function of it; nothing else holds it meanwhile, so that its memory may be reused.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let mut x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// x.inplace(|x| x + 1);
    /// assert_eq!(x.try_to_vec_as::<f32>().unwrap(), [2.0, 3.0]);
    /// ```
    pub fn inplace<F: FnOnce(Self) -> Self>(&mut self, func: F) {
        let tensor = self.extract();
        *self = func(tensor);
    }
}

/// Reads several tensors in one synchronisation.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, Transaction};
/// let device = Device::default();
/// let x = Tensor::<1>::from_data([1.0, 2.0], &device);
/// let y = Tensor::<1, Int>::from_data([3], &device);
/// let [x, y]: [_; 2] = Transaction::default().register(x * 2).register(y).execute().try_into().unwrap();
/// assert_eq!(x.iter::<f32>().collect::<Vec<_>>(), [2.0, 4.0]);
/// assert_eq!(y.iter::<i64>().collect::<Vec<_>>(), [3]);
/// ```
#[derive(Default)]
pub struct Transaction {
    tensors: Vec<RawTensor>,
}

impl Transaction {
    /// Adds a tensor to be read.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, Transaction};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(Transaction::default().register(x).execute().len(), 1);
    /// ```
    #[must_use]
    pub fn register<const D: usize, K: kind::Transaction>(mut self, tensor: Tensor<D, K>) -> Self {
        self.tensors.push(tensor.into_raw());
        self
    }

    /// The values of all tensors, in the order they were added.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, Transaction};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(Transaction::default().register(x.clone()).register(x).execute().len(), 2);
    /// ```
    ///
    /// # Panics
    /// When a device fails.
    #[track_caller]
    pub fn execute(self) -> Vec<TensorData> {
        expect(self.try_execute())
    }

    /// The values of all tensors, in the order they were added.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, Transaction};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(Transaction::default().register(x).try_execute().unwrap().len(), 1);
    /// ```
    ///
    /// # Errors
    /// When a device fails.
    pub fn try_execute(self) -> Result<Vec<TensorData>, ExecutionError> {
        // Everything is started first, so that devices work side by side; the first copy of each waits for it, the others only copy.
        self.tensors.iter().try_for_each(RawTensor::realize)?;
        self.tensors.iter().map(RawTensor::to_data).collect()
    }

    /// The values of all tensors, for code that awaits.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor, Transaction, read_sync};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(read_sync(Transaction::default().register(x).execute_async()).unwrap().len(), 1);
    /// ```
    ///
    /// # Errors
    /// When a device fails.
    pub async fn execute_async(self) -> Result<Vec<TensorData>, ExecutionError> {
        self.try_execute()
    }
}

impl<const D: usize, K: Basic> fmt::Display for Tensor<D, K> {
    /// Reads the tensor and prints its values with shape, device, kind and type. Large tensors are summarised, see
    /// [`set_print_options`](crate::set_print_options), and only what is shown is read; `{:.2}` sets the number of decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::print::format_tensor(&self.raw, K::name(), f)
    }
}

impl<const D: usize, K: Basic> Serialize for Tensor<D, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.to_data().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de, const D: usize, K: Basic> Deserialize<'de> for Tensor<D, K> {
    /// Makes the tensor on the default device, with the type it was stored with.
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        let data = TensorData::deserialize(deserializer)?;
        let dtype = data.dtype();
        if data.rank() != D {
            return Err(serde::de::Error::custom(alloc::format!("expected a tensor of rank {D}, found shape {}", data.shape())));
        }
        if !K::KIND.contains(dtype) {
            let (found, kind) = (dtype.name(), K::name());
            return Err(serde::de::Error::custom(alloc::format!("expected a {kind} tensor, found {found}")));
        }
        Ok(Self::from_data(data, TensorCreationOptions::default().with_dtype(dtype)))
    }
}

/// Runs a future that never waits.
///
/// ```
/// assert_eq!(kiln_tensor::read_sync(async { 1 + 1 }), 2);
/// ```
///
/// # Panics
/// When it is not ready at once.
#[track_caller]
pub fn read_sync<F: Future<Output = T>, T>(f: F) -> T {
    try_read_sync(f).expect("the future is not ready: it must be awaited")
}

/// Runs a future that never waits; `None` if it is not ready at once.
///
/// ```
/// use kiln_tensor::{Device, Tensor, try_read_sync};
/// let x = Tensor::<1>::from_data([1.0], &Device::default());
/// assert!(try_read_sync(x.into_data_async()).unwrap().is_ok());
/// ```
pub fn try_read_sync<F: Future<Output = T>, T>(f: F) -> Option<T> {
    let mut future = core::pin::pin!(f);
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        core::task::Poll::Ready(value) => Some(value),
        core::task::Poll::Pending => None,
    }
}
