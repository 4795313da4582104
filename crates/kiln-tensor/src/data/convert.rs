//! Conversion of tensor data between element types, and its values as vectors and iterators.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use half::{bf16, f16};

use super::{Bytes, DataError, TensorData};
use crate::dtype::{BoolStore, DType};
use crate::element::{Element, ElementConversion, ToElement, flex32};

impl TensorData {
    /// The values, if they are of type `E`.
    ///
    /// # Errors
    /// [`DataError::DTypeMismatch`] for another element type, [`DataError::InvalidRepresentation`] for bytes that are not valid values.
    pub fn try_to_vec<E: Element>(&self) -> Result<Vec<E>, DataError> {
        self.check_dtype::<E>()?;
        Ok(elements::<E>(&self.bytes)?.into_owned())
    }

    /// The values, if they are of type `E`, without a copy where the memory allows.
    ///
    /// # Errors
    /// As [`try_to_vec`](Self::try_to_vec).
    pub fn try_into_vec<E: Element>(self) -> Result<Vec<E>, DataError> {
        self.check_dtype::<E>()?;
        match self.bytes.try_into_vec() {
            Ok(values) => Ok(values),
            Err(bytes) => Ok(elements::<E>(&bytes)?.into_owned()),
        }
    }

    /// The values converted to `E`.
    ///
    /// # Errors
    /// [`DataError::UnsupportedConversion`] from quantized data; [`DataError::InvalidRepresentation`] for bytes that are not valid values.
    pub fn try_to_vec_as<E: Element>(&self) -> Result<Vec<E>, DataError> {
        if self.check_dtype::<E>().is_ok() {
            return self.try_to_vec();
        }
        let mut values = Vec::with_capacity(self.num_elements());
        convert_into(self, &mut values)?;
        Ok(values)
    }

    /// The values converted to `E`, without a copy where they are of that type.
    ///
    /// # Errors
    /// As [`try_to_vec_as`](Self::try_to_vec_as).
    pub fn try_into_vec_as<E: Element>(self) -> Result<Vec<E>, DataError> {
        if self.check_dtype::<E>().is_ok() {
            return self.try_into_vec();
        }
        self.try_to_vec_as()
    }

    /// The values, if they are of type `E`.
    ///
    /// # Errors
    /// As [`try_to_vec`](Self::try_to_vec).
    #[deprecated(note = "use `try_to_vec`, or `try_to_vec_as` to convert")]
    pub fn to_vec<E: Element>(&self) -> Result<Vec<E>, DataError> {
        self.try_to_vec()
    }

    /// The values, if they are of type `E`.
    ///
    /// # Errors
    /// As [`try_to_vec`](Self::try_to_vec).
    #[deprecated(note = "use `try_into_vec`, or `try_into_vec_as` to convert")]
    pub fn into_vec<E: Element>(self) -> Result<Vec<E>, DataError> {
        self.try_into_vec()
    }

    /// Iterates over the values, converted to `E`.
    ///
    /// # Panics
    /// For quantized data, and for bytes that are not valid values.
    #[track_caller]
    pub fn iter<E: Element>(&self) -> Box<dyn Iterator<Item = E> + '_> {
        /// The values of type `S`, converted one by one.
        #[track_caller]
        fn values<S: Element, E: Element>(data: &TensorData) -> Box<dyn Iterator<Item = E> + '_> {
            match elements::<S>(&data.bytes) {
                Ok(Cow::Borrowed(values)) => Box::new(values.iter().map(|value| value.elem())),
                Ok(Cow::Owned(values)) => Box::new(values.into_iter().map(|value| value.elem())),
                Err(error) => panic!("iter: {error}"),
            }
        }
        match self.dtype {
            DType::F64 => values::<f64, E>(self),
            DType::F32 => values::<f32, E>(self),
            DType::Flex32 => values::<flex32, E>(self),
            DType::F16 => values::<f16, E>(self),
            DType::BF16 => values::<bf16, E>(self),
            DType::I64 => values::<i64, E>(self),
            DType::I32 => values::<i32, E>(self),
            DType::I16 => values::<i16, E>(self),
            DType::I8 => values::<i8, E>(self),
            DType::U64 => values::<u64, E>(self),
            DType::U32 => values::<u32, E>(self),
            DType::U16 => values::<u16, E>(self),
            DType::U8 => values::<u8, E>(self),
            DType::Bool(BoolStore::Native | BoolStore::U8) => Box::new(self.bytes.iter().map(|byte| (*byte != 0).elem())),
            DType::Bool(BoolStore::U32) => Box::new((self.bytes.chunks_exact(4)).map(|word| word.iter().any(|byte| *byte != 0).elem())),
            DType::QFloat(_) => panic!("iter: quantized data must be dequantized first"),
        }
    }

    /// The data with its values converted to `E`.
    ///
    /// # Panics
    /// For quantized data, and for bytes that are not valid values.
    #[must_use]
    #[track_caller]
    pub fn convert<E: Element>(self) -> Self {
        self.convert_dtype(E::dtype())
    }

    /// The data with its values converted to another type.
    ///
    /// # Panics
    /// As [`convert`](Self::convert), and when the type is quantized.
    #[must_use]
    #[track_caller]
    pub fn convert_dtype(self, dtype: DType) -> Self {
        match self.try_cast(dtype) {
            Ok(data) => data,
            Err(error) => panic!("convert: {error}"),
        }
    }

    /// The data with its values converted to `E`.
    ///
    /// # Errors
    /// As [`try_cast`](Self::try_cast).
    pub fn try_cast_as<E: Element>(self) -> Result<TensorData, DataError> {
        self.try_cast(E::dtype())
    }

    /// The data with its values converted to another type.
    ///
    /// # Errors
    /// [`DataError::UnsupportedConversion`] from or to quantized types, [`DataError::InvalidRepresentation`] for bytes that are not
    /// valid values.
    pub fn try_cast(self, dtype: DType) -> Result<TensorData, DataError> {
        if self.dtype == dtype {
            return Ok(self);
        }
        let bytes = match dtype {
            DType::F64 => converted::<f64>(&self)?,
            DType::F32 => converted::<f32>(&self)?,
            DType::Flex32 => converted::<flex32>(&self)?,
            DType::F16 => converted::<f16>(&self)?,
            DType::BF16 => converted::<bf16>(&self)?,
            DType::I64 => converted::<i64>(&self)?,
            DType::I32 => converted::<i32>(&self)?,
            DType::I16 => converted::<i16>(&self)?,
            DType::I8 => converted::<i8>(&self)?,
            DType::U64 => converted::<u64>(&self)?,
            DType::U32 => converted::<u32>(&self)?,
            DType::U16 => converted::<u16>(&self)?,
            DType::U8 => converted::<u8>(&self)?,
            DType::Bool(BoolStore::Native | BoolStore::U8) => converted::<bool>(&self)?,
            DType::Bool(BoolStore::U32) => {
                let mut values: Vec<bool> = Vec::with_capacity(self.num_elements());
                convert_into(&self, &mut values)?;
                Bytes::from_elems(values.into_iter().map(u32::from).collect())
            }
            DType::QFloat(_) => {
                return Err(DataError::UnsupportedConversion { from: self.dtype, to: dtype });
            }
        };
        Ok(TensorData { bytes, shape: self.shape, dtype })
    }
}

/// The bytes as elements; copied where they are not aligned.
fn elements<E: Element>(bytes: &[u8]) -> Result<Cow<'_, [E]>, DataError> {
    if bytes.is_empty() {
        return Ok(Cow::Borrowed(&[]));
    }
    if bytes.as_ptr().align_offset(align_of::<E>()) == 0 {
        return bytemuck::checked::try_cast_slice(bytes).map(Cow::Borrowed).map_err(DataError::InvalidRepresentation);
    }
    let values = bytes.chunks_exact(size_of::<E>()).map(bytemuck::checked::try_pod_read_unaligned).collect::<Result<Vec<E>, _>>();
    values.map(Cow::Owned).map_err(DataError::InvalidRepresentation)
}

fn converted<E: Element>(data: &TensorData) -> Result<Bytes, DataError> {
    let mut values: Vec<E> = Vec::with_capacity(data.num_elements());
    convert_into(data, &mut values)?;
    Ok(Bytes::from_elems(values))
}

/// Appends the values converted to `E`, with one loop for each pair of types.
fn convert_into<E: Element>(data: &TensorData, out: &mut Vec<E>) -> Result<(), DataError> {
    /// Appends the values of type `S`.
    fn from<S: Element, E: Element>(bytes: &[u8], out: &mut Vec<E>) -> Result<(), DataError> {
        out.extend(elements::<S>(bytes)?.iter().map(|value| value.elem::<E>()));
        Ok(())
    }
    let bytes = data.as_bytes();
    match data.dtype {
        DType::F64 => from::<f64, E>(bytes, out),
        DType::F32 => from::<f32, E>(bytes, out),
        DType::Flex32 => from::<flex32, E>(bytes, out),
        DType::F16 => from::<f16, E>(bytes, out),
        DType::BF16 => from::<bf16, E>(bytes, out),
        DType::I64 => from::<i64, E>(bytes, out),
        DType::I32 => from::<i32, E>(bytes, out),
        DType::I16 => from::<i16, E>(bytes, out),
        DType::I8 => from::<i8, E>(bytes, out),
        DType::U64 => from::<u64, E>(bytes, out),
        DType::U32 => from::<u32, E>(bytes, out),
        DType::U16 => from::<u16, E>(bytes, out),
        DType::U8 => from::<u8, E>(bytes, out),
        DType::Bool(BoolStore::Native | BoolStore::U8) => {
            out.extend(bytes.iter().map(|byte| E::from_elem(byte.to_bool())));
            Ok(())
        }
        DType::Bool(BoolStore::U32) => {
            let words = bytes.chunks_exact(4);
            out.extend(words.map(|word| E::from_elem(word.iter().any(|byte| *byte != 0))));
            Ok(())
        }
        DType::QFloat(_) => Err(DataError::UnsupportedConversion { from: data.dtype, to: E::dtype() }),
    }
}
