//! Between tensors and the primitives of a backend.

use alloc::format;
use alloc::string::String;
use core::fmt;

#[cfg(feature = "cpu")]
use super::{Autodiff, CheckpointStrategy, IntoGradientCheckpointingStrategy};
use super::{Backend, BackendTypes, Dispatch, Primitive};
#[cfg(feature = "cpu")]
use crate::api::DispatchAutodiffContext;
#[cfg(feature = "cpu")]
use crate::api::TensorMetadata;
use crate::api::kind::{Basic, Bool, Float, Int};
use crate::api::{DispatchTensor, Tensor};
use crate::dtype::DType;
use crate::raw::RawTensor;

/// A primitive of any kind.
#[derive(Clone, Debug)]
pub enum BackendTensor<B: BackendTypes> {
    /// Floats.
    Float(B::FloatTensorPrimitive),
    /// Integers.
    Int(B::IntTensorPrimitive),
    /// Truth values.
    Bool(B::BoolTensorPrimitive),
    /// Quantized floats.
    Quantized(B::QuantizedTensorPrimitive),
}

impl<B: BackendTypes> BackendTensor<B> {
    /// The primitive of a recorded tensor, of the kind that its type has.
    fn of(raw: RawTensor) -> Self {
        match raw.api_dtype() {
            DType::QFloat(_) => Self::Quantized(Primitive::from_raw(raw)),
            dtype if dtype.is_bool() => Self::Bool(Primitive::from_raw(raw)),
            dtype if dtype.is_float() => Self::Float(Primitive::from_raw(raw)),
            _ => Self::Int(Primitive::from_raw(raw)),
        }
    }

    fn into_raw(self) -> RawTensor {
        match self {
            Self::Float(x) => x.into_raw(),
            Self::Int(x) => x.into_raw(),
            Self::Bool(x) => x.into_raw(),
            Self::Quantized(x) => x.into_raw(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Float(_) => "Float",
            Self::Int(_) => "Int",
            Self::Bool(_) => "Bool",
            Self::Quantized(_) => "Quantized",
        }
    }
}

/// A tensor that is not one of the backend or kind asked for.
#[derive(Debug, PartialEq)]
pub enum PrimitiveConversionError {
    /// It lives on another device, or takes part in autodiff in another way.
    BackendMismatch(String),
    /// Its elements are of another kind.
    KindMismatch(String),
}

impl fmt::Display for PrimitiveConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BackendMismatch(message) => write!(f, "another backend: {message}"),
            Self::KindMismatch(message) => write!(f, "another kind: {message}"),
        }
    }
}

impl core::error::Error for PrimitiveConversionError {}

/// Kinds of tensors as a backend knows them.
pub trait BackendPrimitive<B: Backend> {
    /// The backend's tensors of this kind.
    type Primitive;

    /// The primitive, if it is of this kind.
    ///
    /// # Errors
    /// [`PrimitiveConversionError::KindMismatch`] when it is of another.
    fn try_into_primitive(tensor: BackendTensor<B>) -> Result<Self::Primitive, PrimitiveConversionError>;

    /// The primitive of any kind.
    fn from_primitive(primitive: Self::Primitive) -> BackendTensor<B>;
}

fn mismatch<B: Backend>(tensor: &BackendTensor<B>, expected: &str) -> PrimitiveConversionError {
    PrimitiveConversionError::KindMismatch(format!("expected {expected}, found {}", tensor.kind()))
}

impl<B: Backend> BackendPrimitive<B> for Float {
    type Primitive = <B as BackendTypes>::FloatTensorPrimitive;

    fn try_into_primitive(tensor: BackendTensor<B>) -> Result<Self::Primitive, PrimitiveConversionError> {
        match tensor {
            BackendTensor::Float(x) => Ok(x),
            other => Err(mismatch(&other, "Float")),
        }
    }

    fn from_primitive(primitive: Self::Primitive) -> BackendTensor<B> {
        BackendTensor::Float(primitive)
    }
}

impl<B: Backend> BackendPrimitive<B> for Int {
    type Primitive = <B as BackendTypes>::IntTensorPrimitive;

    fn try_into_primitive(tensor: BackendTensor<B>) -> Result<Self::Primitive, PrimitiveConversionError> {
        match tensor {
            BackendTensor::Int(x) => Ok(x),
            other => Err(mismatch(&other, "Int")),
        }
    }

    fn from_primitive(primitive: Self::Primitive) -> BackendTensor<B> {
        BackendTensor::Int(primitive)
    }
}

impl<B: Backend> BackendPrimitive<B> for Bool {
    type Primitive = <B as BackendTypes>::BoolTensorPrimitive;

    fn try_into_primitive(tensor: BackendTensor<B>) -> Result<Self::Primitive, PrimitiveConversionError> {
        match tensor {
            BackendTensor::Bool(x) => Ok(x),
            other => Err(mismatch(&other, "Bool")),
        }
    }

    fn from_primitive(primitive: Self::Primitive) -> BackendTensor<B> {
        BackendTensor::Bool(primitive)
    }
}

/// Untyped tensors as tensors of a backend.
pub trait DispatchKindConversion<B: Backend>: Sized {
    /// The backend's primitive.
    ///
    /// # Errors
    /// [`PrimitiveConversionError::BackendMismatch`] when the tensor lives on another device, or takes part in autodiff in another way.
    fn try_into_backend(self) -> Result<BackendTensor<B>, PrimitiveConversionError>;

    /// The untyped tensor of a primitive.
    fn from_backend(tensor: BackendTensor<B>) -> Self;
}

#[cfg(feature = "cpu")]
fn backend_mismatch(tensor: &DispatchTensor, expected: &str) -> PrimitiveConversionError {
    PrimitiveConversionError::BackendMismatch(format!("expected {expected}, found a tensor of {:?}", tensor.device()))
}

impl DispatchKindConversion<Dispatch> for DispatchTensor {
    fn try_into_backend(self) -> Result<BackendTensor<Dispatch>, PrimitiveConversionError> {
        Ok(BackendTensor::of(self.into_raw()))
    }

    fn from_backend(tensor: BackendTensor<Dispatch>) -> Self {
        DispatchTensor::from_raw(tensor.into_raw())
    }
}

#[cfg(feature = "cpu")]
impl DispatchKindConversion<super::Flex> for DispatchTensor {
    fn try_into_backend(self) -> Result<BackendTensor<super::Flex>, PrimitiveConversionError> {
        if self.device().is_autodiff() || !self.device().is_cpu() {
            return Err(backend_mismatch(&self, "Flex"));
        }
        Ok(BackendTensor::of(self.into_raw()))
    }

    fn from_backend(tensor: BackendTensor<super::Flex>) -> Self {
        DispatchTensor::from_raw(tensor.into_raw().without_autodiff())
    }
}

#[cfg(feature = "cpu")]
impl<C: CheckpointStrategy + IntoGradientCheckpointingStrategy> DispatchKindConversion<Autodiff<super::Flex, C>> for DispatchTensor {
    fn try_into_backend(self) -> Result<BackendTensor<Autodiff<super::Flex, C>>, PrimitiveConversionError> {
        if !self.device().is_cpu() || self.autodiff != DispatchAutodiffContext::Enabled(C::STRATEGY) {
            return Err(backend_mismatch(&self, &format!("Autodiff<Flex> with checkpointing {:?}", C::STRATEGY)));
        }
        Ok(BackendTensor::of(self.into_raw()))
    }

    fn from_backend(tensor: BackendTensor<Autodiff<super::Flex, C>>) -> Self {
        let raw = tensor.into_raw().autodiff().with_gradient_checkpointing_strategy(C::STRATEGY);
        DispatchTensor::from_raw(raw)
    }
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// The primitive that the tensor is made of, for code over a backend.
    ///
    /// ```
    /// use kiln_tensor::backend::{Dispatch, PrimitiveConversionError};
    /// use kiln_tensor::{Device, Tensor, TensorMetadata};
    /// let x = Tensor::<2>::ones([2, 3], &Device::default()).try_into_primitive::<Dispatch>()?;
    /// assert_eq!(x.rank(), 2);
    /// # Ok::<(), PrimitiveConversionError>(())
    /// ```
    ///
    /// # Errors
    /// [`PrimitiveConversionError::BackendMismatch`] when the tensor lives on another device, or takes part in autodiff in another way;
    /// [`PrimitiveConversionError::KindMismatch`] when a float tensor is quantized.
    pub fn try_into_primitive<B: Backend>(self) -> Result<<K as BackendPrimitive<B>>::Primitive, PrimitiveConversionError>
    where
        K: BackendPrimitive<B>,
        DispatchTensor: DispatchKindConversion<B>,
    {
        K::try_into_primitive(self.into_dispatch().try_into_backend()?)
    }

    /// The tensor of a backend's primitive.
    ///
    /// ```
    /// use kiln_tensor::backend::Dispatch;
    /// use kiln_tensor::{Device, Int, Tensor};
    /// let x = Tensor::<1, Int>::arange(0..3, &Device::default()).try_into_primitive::<Dispatch>().unwrap();
    /// let x = Tensor::<1, Int>::from_primitive::<Dispatch>(x);
    /// assert_eq!(x.try_to_vec_as::<i32>().unwrap(), [0, 1, 2]);
    /// ```
    ///
    /// # Panics
    /// When its rank is not `D` or its elements are not of kind `K`.
    #[track_caller]
    pub fn from_primitive<B: Backend>(primitive: <K as BackendPrimitive<B>>::Primitive) -> Self
    where
        K: BackendPrimitive<B>,
        DispatchTensor: DispatchKindConversion<B>,
    {
        Self::from_dispatch(DispatchTensor::from_backend(K::from_primitive(primitive)))
    }
}
