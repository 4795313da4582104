//! Errors of reading and converting tensor data.

use alloc::string::String;
use core::fmt;

use bytemuck::checked::CheckedCastError;

use super::ViewError;
use crate::dtype::DType;
use crate::error::ExecutionError;
use crate::shape::Shape;

/// Tensor data that cannot be read as asked.
#[derive(Debug, Eq, PartialEq)]
pub enum DataError {
    /// The memory of the data cannot be accessed.
    StorageAccess(AccessError),
    /// The bytes are not valid elements of the type asked for.
    InvalidRepresentation(CheckedCastError),
    /// The data holds another element type.
    DTypeMismatch {
        /// The type asked for.
        expected: DType,
        /// The type of the data.
        actual: DType,
    },
    /// There is no conversion between the two types.
    UnsupportedConversion {
        /// The type of the data.
        from: DType,
        /// The type asked for.
        to: DType,
    },
    /// The data has another number of elements.
    ElementCountMismatch {
        /// The number asked for.
        expected: usize,
        /// The number there is.
        actual: usize,
    },
    /// The number of bytes is not what shape and type need.
    InvalidByteLength {
        /// The shape.
        shape: Shape,
        /// The element type.
        dtype: DType,
        /// The number of bytes there are.
        len: usize,
    },
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StorageAccess(error) => error.fmt(f),
            Self::InvalidRepresentation(error) => {
                write!(f, "the bytes are not valid elements: {error}")
            }
            Self::DTypeMismatch { expected, actual } => {
                write!(f, "the data holds {}, not {}: convert it, or use a method that converts", actual.name(), expected.name())
            }
            Self::UnsupportedConversion { from, to } => {
                write!(f, "no conversion from {} to {}", from.name(), to.name())
            }
            Self::ElementCountMismatch { expected, actual } => {
                write!(f, "expected {expected} elements, found {actual}")
            }
            Self::InvalidByteLength { shape, dtype: DType::QFloat(scheme), len } => {
                write!(f, "{len} bytes are not those of shape {shape} in whole blocks of a scheme that can be quantized by: {scheme:?}")
            }
            Self::InvalidByteLength { shape, dtype, len } => {
                // A shape from a file may be larger than any memory.
                let needed = shape.iter().fold(dtype.size() as u128, |needed, size| needed.saturating_mul(*size as u128));
                write!(f, "shape {shape} of {} needs {needed} bytes, found {len}", dtype.name())
            }
        }
    }
}

impl core::error::Error for DataError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::StorageAccess(error) => Some(error),
            Self::InvalidRepresentation(_)
            | Self::DTypeMismatch { .. }
            | Self::UnsupportedConversion { .. }
            | Self::ElementCountMismatch { .. }
            | Self::InvalidByteLength { .. } => None,
        }
    }
}

impl From<AccessError> for DataError {
    fn from(error: AccessError) -> Self {
        Self::StorageAccess(error)
    }
}

/// Memory of tensor data that cannot be accessed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AccessError {
    /// The range asked for is not within the memory.
    OutOfBounds(ViewError),
    /// The bytes can only be had by a copy, which the policy forbids; why.
    WouldCopy(String),
    /// The bytes cannot be read; which, and why.
    Unreadable(String),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds(error) => error.fmt(f),
            Self::WouldCopy(why) => write!(f, "a copy is needed and forbidden: {why}"),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for AccessError {}

/// A tensor that cannot be read into host data.
#[derive(Debug)]
pub enum TensorReadError {
    /// The device failed to compute or to hand over the values.
    Execution(ExecutionError),
    /// The values cannot be converted as asked.
    Data(DataError),
    /// The tensor has another number of elements.
    InvalidShape {
        /// The number of elements asked for.
        expected: usize,
        /// The number there is.
        actual: usize,
    },
}

impl fmt::Display for TensorReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execution(error) => write!(f, "the device failed: {error}"),
            Self::Data(error) => error.fmt(f),
            Self::InvalidShape { expected, actual } => {
                write!(f, "expected {expected} elements, the tensor has {actual}")
            }
        }
    }
}

impl core::error::Error for TensorReadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Execution(error) => Some(error),
            Self::Data(error) => Some(error),
            Self::InvalidShape { .. } => None,
        }
    }
}

impl From<DataError> for TensorReadError {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<ExecutionError> for TensorReadError {
    fn from(error: ExecutionError) -> Self {
        Self::Execution(error)
    }
}
