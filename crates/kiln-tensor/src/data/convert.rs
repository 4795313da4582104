//! Conversion of tensor data between element types, and its values as vectors and iterators.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use half::{bf16, f16};

use super::{Bytes, DataError, TensorData};
use crate::dtype::{BoolStore, DType};
use crate::element::{Element, ElementConversion, flex32};

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
        // Any byte but 0 is true, so booleans are converted too.
        if E::dtype().is_bool() || self.check_dtype::<E>().is_err() {
            let mut values = Vec::with_capacity(self.num_elements());
            return match convert_into(self, &mut values) {
                Ok(()) => Box::new(values.into_iter()),
                Err(error) => panic!("iter: {error}"),
            };
        }
        match elements::<E>(&self.bytes) {
            Ok(Cow::Borrowed(values)) => Box::new(values.iter().copied()),
            Ok(Cow::Owned(values)) => Box::new(values.into_iter()),
            Err(error) => panic!("iter: {error}"),
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

/// Values on their way from one type to another, in a type that holds them all: one loop for each type in and one for each type out, not one for
/// each pair.
enum Wide {
    F([f64; WIDE]),
    I([i64; WIDE]),
    U([u64; WIDE]),
}

/// Values converted at a time.
const WIDE: usize = 256;

/// Appends the values converted to `E`.
fn convert_into<E: Element>(data: &TensorData, out: &mut Vec<E>) -> Result<(), DataError> {
    if matches!(data.dtype, DType::QFloat(_)) {
        return Err(DataError::UnsupportedConversion { from: data.dtype, to: E::dtype() });
    }
    for part in data.as_bytes().chunks(WIDE * data.dtype.size()) {
        let n = part.len() / data.dtype.size();
        match widen(data.dtype, part)? {
            Wide::F(values) => out.extend(values[..n].iter().map(|value| value.elem::<E>())),
            Wide::I(values) => out.extend(values[..n].iter().map(|value| value.elem::<E>())),
            Wide::U(values) => out.extend(values[..n].iter().map(|value| value.elem::<E>())),
        }
    }
    Ok(())
}

/// At most [`WIDE`] values.
fn widen(dtype: DType, bytes: &[u8]) -> Result<Wide, DataError> {
    fn fill<S: Element, W: Copy + Default>(bytes: &[u8], wide: impl Fn(S) -> W) -> Result<[W; WIDE], DataError> {
        let mut out = [W::default(); WIDE];
        out.iter_mut().zip(elements::<S>(bytes)?.iter()).for_each(|(out, value)| *out = wide(*value));
        Ok(out)
    }
    Ok(match dtype {
        DType::F64 => Wide::F(fill(bytes, |x: f64| x)?),
        DType::F32 => Wide::F(fill(bytes, |x: f32| x.into())?),
        DType::Flex32 => Wide::F(fill(bytes, |x: flex32| x.to_f64())?),
        DType::F16 => Wide::F(fill(bytes, |x: f16| x.into())?),
        DType::BF16 => Wide::F(fill(bytes, |x: bf16| x.into())?),
        DType::I64 => Wide::I(fill(bytes, |x: i64| x)?),
        DType::I32 => Wide::I(fill(bytes, |x: i32| x.into())?),
        DType::I16 => Wide::I(fill(bytes, |x: i16| x.into())?),
        DType::I8 => Wide::I(fill(bytes, |x: i8| x.into())?),
        DType::U64 => Wide::U(fill(bytes, |x: u64| x)?),
        DType::U32 => Wide::U(fill(bytes, |x: u32| x.into())?),
        DType::U16 => Wide::U(fill(bytes, |x: u16| x.into())?),
        DType::U8 => Wide::U(fill(bytes, |x: u8| x.into())?),
        DType::Bool(BoolStore::Native | BoolStore::U8) => Wide::U(fill(bytes, |x: u8| (x != 0).into())?),
        DType::Bool(BoolStore::U32) => Wide::U(fill(bytes, |x: u32| (x != 0).into())?),
        DType::QFloat(_) => return Err(DataError::UnsupportedConversion { from: dtype, to: DType::F64 }),
    })
}
