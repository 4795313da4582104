//! The error of Burn's `burn_pack`, which programs match on.

use alloc::string::{String, ToString};
use core::fmt;

use super::{FORMAT_VERSION, MAGIC_NUMBER, PackErrorKind, PackFileError};

/// A burnpack file could not be read or written, told as Burn 0.22 tells it. The texts name the file and say what [`PackErrorKind`] knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The file is shorter than a header.
    InvalidHeader,
    /// The file does not start with the magic number.
    InvalidMagicNumber,
    /// The file has a newer version than is known.
    InvalidVersion,
    /// The metadata can't be written.
    MetadataSerializationError(String),
    /// The metadata is not what it should be.
    MetadataDeserializationError(String),
    /// The system refused to read or write, or a tensor's bytes could not be had.
    IoError(String),
    /// No tensor has this name.
    TensorNotFound(String),
    /// A tensor's bytes are more or fewer than its shape and dtype call for.
    TensorBytesSizeMismatch(String),
    /// The file is inconsistent, too large, or does not fit the module.
    ValidationError(String),
    /// There is a file already and it was not to be replaced.
    AlreadyExists(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidHeader => f.write_str("is too short for a burnpack header"),
            Self::InvalidMagicNumber => write!(f, "is no burnpack file: it does not start with {MAGIC_NUMBER:#010x}"),
            Self::InvalidVersion => write!(f, "has a format version above {FORMAT_VERSION}, the newest known"),
            Self::MetadataSerializationError(text)
            | Self::MetadataDeserializationError(text)
            | Self::IoError(text)
            | Self::TensorNotFound(text)
            | Self::TensorBytesSizeMismatch(text)
            | Self::ValidationError(text)
            | Self::AlreadyExists(text) => f.write_str(text),
        }
    }
}

impl core::error::Error for Error {}

impl From<PackFileError> for Error {
    fn from(error: PackFileError) -> Self {
        let text = error.to_string();
        match error.kind {
            PackErrorKind::Header { .. } => Self::InvalidHeader,
            PackErrorKind::Magic { .. } => Self::InvalidMagicNumber,
            PackErrorKind::Version { .. } => Self::InvalidVersion,
            PackErrorKind::MetadataSize { .. } | PackErrorKind::Metadata(_) | PackErrorKind::Malformed(_) => Self::MetadataDeserializationError(text),
            PackErrorKind::Io(_) | PackErrorKind::Provider { .. } => Self::IoError(text),
            PackErrorKind::AlreadyExists => Self::AlreadyExists(text),
            PackErrorKind::TensorNotFound { .. } => Self::TensorNotFound(text),
            PackErrorKind::TensorSize { .. } => Self::TensorBytesSizeMismatch(text),
            PackErrorKind::FileTooLarge { .. }
            | PackErrorKind::Validation(_)
            | PackErrorKind::TooManyTensors { .. }
            | PackErrorKind::Duplicate { .. }
            | PackErrorKind::OutOfRange { .. }
            | PackErrorKind::Overlap { .. }
            | PackErrorKind::BufferSize { .. } => Self::ValidationError(text),
        }
    }
}
