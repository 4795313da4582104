//! `TensorData`: the values of a tensor on the host.

mod access;
mod allocation;
mod assert;
mod bytes;
mod controller;
mod convert;
mod error;
mod from;
mod tolerance;
mod view;

pub use access::{AccessPolicy, Reader, SplitError, SplitPolicy, Writer};
pub use allocation::AllocationProperty;
pub use bytes::{Bytes, ViewError};
pub use controller::AllocationController;
pub use error::{AccessError, DataError, TensorReadError};
pub use tolerance::Tolerance;
pub use view::{TensorDataView, TensorDataViewMut};

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use half::{bf16, f16};
use rand::Rng;
use serde::{Deserialize, Deserializer, Serialize};

use crate::distribution::Distribution;
use crate::dtype::{BoolStore, DType};
use crate::element::{Element, Scalar, flex32};
use crate::quantization::{BlockLayout, QuantScheme, QuantizedBytes, quantizable, quantized_data_len};
use crate::shape::Shape;

/// The values of a tensor on the host: dense, row-major bytes with a shape and an element type.
///
/// ```
/// use kiln_tensor::{DType, TensorData};
/// let data = TensorData::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(data.shape().as_slice(), [2, 2]);
/// assert_eq!(data.dtype(), DType::F32);
/// assert_eq!(data.convert::<i64>().try_to_vec::<i64>().unwrap(), [1, 2, 3, 4]);
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct TensorData {
    bytes: Bytes,
    shape: Shape,
    dtype: DType,
}

impl TensorData {
    /// The data with the given values in row-major order.
    ///
    /// # Panics
    /// When the number of values is not that of the shape.
    #[track_caller]
    pub fn new<E: Element, S: Into<Shape>>(value: Vec<E>, shape: S) -> Self {
        let shape = shape.into();
        assert!(value.len() == shape.num_elements(), "tensor data: shape {shape} needs {} values, found {}", shape.num_elements(), value.len());
        Self { bytes: Bytes::from_elems(value), shape, dtype: E::dtype() }
    }

    /// Quantized data: one 8-bit code a value, or packed bytes or words; then a scale for each block, or one, and the second scale of a scheme with scales of
    /// two levels.
    ///
    /// ```
    /// use kiln_tensor::quantization::QuantScheme;
    /// use kiln_tensor::{Device, Tensor, TensorData};
    /// let data = TensorData::quantized(vec![-4i8, 0, 127], [3], QuantScheme::default(), &[0.5], None);
    /// let x = Tensor::<1>::from_data(data, &Device::default());
    /// assert_eq!(x.dequantize().try_to_vec_as::<f32>().unwrap(), [-2.0, 0.0, 63.5]);
    /// ```
    ///
    /// # Panics
    /// When the number of values or of scales is not what shape and scheme need.
    #[track_caller]
    pub fn quantized<E: Element, S: Into<Shape>>(value: Vec<E>, shape: S, scheme: QuantScheme, qparams: &[f32], global: Option<f32>) -> Self {
        let QuantizedBytes { bytes, scheme, shape } = QuantizedBytes::new(value, shape, scheme, qparams, global);
        Self::from_bytes(bytes, shape, DType::QFloat(scheme))
    }

    /// Whether quantized data has the bytes that its shape and scheme need, in whole blocks. Data of other types always has.
    ///
    /// # Errors
    /// [`DataError::InvalidByteLength`] when it does not.
    pub fn check_quantized(&self) -> Result<(), DataError> {
        let DType::QFloat(scheme) = self.dtype else {
            return Ok(());
        };
        // A value has two bits at least, which keeps the lengths below within bounds.
        let count = self.shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
        let plausible = count.is_some_and(|count| count <= self.bytes.len().saturating_mul(4));
        let blocks = scheme.block_size().is_none_or(|block| block.len() <= self.rank() && BlockLayout::new(&self.shape, &block).divides());
        let fits = plausible && blocks && quantizable(&scheme) && quantized_data_len(&scheme, &self.shape) == self.bytes.len();
        if fits { Ok(()) } else { Err(DataError::InvalidByteLength { shape: self.shape.clone(), dtype: self.dtype, len: self.bytes.len() }) }
    }

    /// The data with the given bytes.
    ///
    /// # Panics
    /// When the number of bytes is not what shape and type need; use [`try_from_bytes`](Self::try_from_bytes) for untrusted input.
    #[track_caller]
    pub fn from_bytes<S: Into<Shape>>(bytes: Bytes, shape: S, dtype: DType) -> Self {
        match Self::try_from_bytes(bytes, shape, dtype) {
            Ok(data) => data,
            Err(error) => panic!("tensor data: {error}"),
        }
    }

    /// The data with the given bytes; see [`from_bytes`](Self::from_bytes).
    ///
    /// # Panics
    /// When the number of bytes is not what shape and type need.
    #[track_caller]
    pub fn from_bytes_vec<S: Into<Shape>>(bytes: Vec<u8>, shape: S, dtype: DType) -> Self {
        Self::from_bytes(Bytes::from_bytes_vec(bytes), shape, dtype)
    }

    /// The data with the given bytes.
    ///
    /// # Errors
    /// [`DataError::InvalidByteLength`] when the number of bytes is not what shape and type need. Quantized data is not checked.
    pub fn try_from_bytes<S: Into<Shape>>(bytes: Bytes, shape: S, dtype: DType) -> Result<Self, DataError> {
        let shape = shape.into();
        let needed = (shape.iter()).try_fold(dtype.size(), |product, size| product.checked_mul(*size));
        let fits = matches!(dtype, DType::QFloat(_)) || needed == Some(bytes.len());
        if fits {
            // Elements can be borrowed from the memory only when it is aligned for them.
            let aligned = bytes.as_ptr().align_offset(dtype.size()) == 0;
            Ok(Self { bytes: if aligned { bytes } else { Bytes::copy_of::<u8>(&bytes) }, shape, dtype })
        } else {
            let len = bytes.len();
            Err(DataError::InvalidByteLength { shape, dtype, len })
        }
    }

    /// The data with the given bytes.
    ///
    /// # Errors
    /// [`DataError::InvalidByteLength`] when the number of bytes is not what shape and type need.
    pub fn try_from_bytes_vec<S: Into<Shape>>(bytes: Vec<u8>, shape: S, dtype: DType) -> Result<Self, DataError> {
        Self::try_from_bytes(Bytes::from_bytes_vec(bytes), shape, dtype)
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The memory.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes: elements in row-major order.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The memory, taken out.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The memory, the shape and the element type.
    pub fn into_parts(self) -> (Bytes, Shape, DType) {
        (self.bytes, self.shape, self.dtype)
    }

    /// Runs `f` on the memory of several data at once. The lengths may not change.
    ///
    /// # Panics
    /// When `f` changes the length of some memory.
    #[track_caller]
    pub fn with_bytes_mut<'a, R>(data: impl IntoIterator<Item = &'a mut TensorData>, f: impl FnOnce(Vec<&mut Bytes>) -> R) -> R {
        let mut data: Vec<_> = data.into_iter().collect();
        let lengths: Vec<_> = data.iter().map(|data| data.bytes.len()).collect();
        let result = f(data.iter_mut().map(|data| &mut data.bytes).collect());
        for (data, before) in data.iter().zip(lengths) {
            let after = data.bytes.len();
            assert!(before == after, "with_bytes_mut: the length of the memory changed from {before} to {after} bytes: shape {}", data.shape);
        }
        result
    }

    /// The values, if they are of type `E`.
    ///
    /// # Errors
    /// [`DataError::DTypeMismatch`] for another element type, [`DataError::InvalidRepresentation`] when the bytes are not valid
    /// values.
    pub fn as_slice<E: Element>(&self) -> Result<&[E], DataError> {
        self.check_dtype::<E>()?;
        bytemuck::checked::try_cast_slice(&self.bytes).map_err(DataError::InvalidRepresentation)
    }

    /// The values, mutable, if they are of type `E`.
    ///
    /// # Errors
    /// [`DataError::DTypeMismatch`] for another element type, [`DataError::InvalidRepresentation`] when the bytes are not valid values.
    pub fn as_mut_slice<E: Element>(&mut self) -> Result<&mut [E], DataError> {
        self.check_dtype::<E>()?;
        bytemuck::checked::try_cast_slice_mut(&mut self.bytes).map_err(DataError::InvalidRepresentation)
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The number of values.
    pub fn num_elements(&self) -> usize {
        self.shape.num_elements()
    }

    /// Random values.
    ///
    /// # Panics
    /// When a parameter of the distribution is not valid.
    #[track_caller]
    pub fn random<E: Element, R: Rng, S: Into<Shape>>(shape: S, distribution: Distribution, rng: &mut R) -> Self {
        let shape = shape.into();
        if let Err(why) = distribution.checked() {
            panic!("random: {why}: shape {shape}");
        }
        let values = (0..shape.num_elements()).map(|_| E::random(distribution, rng)).collect();
        Self::new::<E, _>(values, shape)
    }

    /// Zeros.
    pub fn zeros<E: Element, S: Into<Shape>>(shape: S) -> TensorData {
        Self::full(shape, E::zeroed())
    }

    /// Ones.
    pub fn ones<E: Element, S: Into<Shape>>(shape: S) -> TensorData {
        Self::full(shape, E::from_elem(1u8))
    }

    /// One value everywhere.
    pub fn full<E: Element, S: Into<Shape>>(shape: S, fill_value: E) -> TensorData {
        let shape = shape.into();
        Self::new(vec![fill_value; shape.num_elements()], shape)
    }

    /// One value everywhere, converted to the given type.
    ///
    /// # Panics
    /// For quantized types.
    #[track_caller]
    pub fn full_dtype<E: Into<Scalar>, S: Into<Shape>>(shape: S, fill_value: E, dtype: DType) -> TensorData {
        let value = fill_value.into();
        match dtype {
            DType::F64 => Self::full::<f64, _>(shape, value.elem()),
            DType::F32 => Self::full::<f32, _>(shape, value.elem()),
            DType::Flex32 => Self::full::<flex32, _>(shape, value.elem()),
            DType::F16 => Self::full::<f16, _>(shape, value.elem()),
            DType::BF16 => Self::full::<bf16, _>(shape, value.elem()),
            DType::I64 => Self::full::<i64, _>(shape, value.elem()),
            DType::I32 => Self::full::<i32, _>(shape, value.elem()),
            DType::I16 => Self::full::<i16, _>(shape, value.elem()),
            DType::I8 => Self::full::<i8, _>(shape, value.elem()),
            DType::U64 => Self::full::<u64, _>(shape, value.elem()),
            DType::U32 => Self::full::<u32, _>(shape, value.elem()),
            DType::U16 => Self::full::<u16, _>(shape, value.elem()),
            DType::U8 => Self::full::<u8, _>(shape, value.elem()),
            DType::Bool(BoolStore::Native) => Self::full::<bool, _>(shape, value.elem()),
            DType::Bool(store @ (BoolStore::U8 | BoolStore::U32)) => Self::full::<bool, _>(shape, value.elem()).convert_dtype(DType::Bool(store)),
            DType::QFloat(_) => {
                panic!("full_dtype: a quantized type needs scales: use TensorData::quantized")
            }
        }
    }

    /// Whether values of `E` are stored as this data's type is; a byte-sized boolean counts as `bool`.
    pub(crate) fn check_dtype<E: Element>(&self) -> Result<(), DataError> {
        let expected = E::dtype();
        let same = expected == self.dtype || (expected.is_bool() && self.dtype == DType::Bool(BoolStore::U8));
        if same { Ok(()) } else { Err(DataError::DTypeMismatch { expected, actual: self.dtype }) }
    }
}

impl<'de> Deserialize<'de> for TensorData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The fields as they are stored, before the check.
        #[derive(Deserialize)]
        #[serde(rename = "TensorData")]
        struct Unchecked {
            bytes: Bytes,
            shape: Shape,
            dtype: DType,
        }
        let Unchecked { bytes, shape, dtype } = Unchecked::deserialize(deserializer)?;
        Self::try_from_bytes(bytes, shape, dtype).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for TensorData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::print::format_values(self, f)
    }
}
