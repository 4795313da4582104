//! What can be wrong with a safetensors file.

use std::fmt;

use super::MAX_HEADER_SIZE;
use kiln_module::record::burnpack::{PackErrorKind, PackFileError};

/// A safetensors file could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeTensorError {
    /// The file, or what else the bytes come from.
    pub file: String,
    /// What is wrong.
    pub kind: SafeTensorErrorKind,
}

/// What is wrong with a safetensors file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SafeTensorErrorKind {
    /// The file is shorter than the length of its header.
    TooShort {
        /// Its size in bytes.
        size: u64,
    },
    /// The header is longer than is read or than the file is.
    HeaderSize {
        /// The length claimed, in bytes.
        claimed: u64,
        /// The bytes that follow.
        available: u64,
    },
    /// The header is not the JSON it should be: where and why.
    Json(String),
    /// A tensor has a dtype that is not known, or that the format does not have.
    DType {
        /// The tensor.
        name: String,
        /// The dtype.
        dtype: String,
    },
    /// The file system refuses, or a tensor's range, size or name is wrong.
    Tensor(PackErrorKind),
}

impl SafeTensorErrorKind {
    /// The error of this kind in `file`.
    pub fn in_file(self, file: &str) -> SafeTensorError {
        SafeTensorError { file: file.into(), kind: self }
    }
}

impl From<PackErrorKind> for SafeTensorErrorKind {
    fn from(kind: PackErrorKind) -> Self {
        Self::Tensor(kind)
    }
}

impl From<PackFileError> for SafeTensorError {
    fn from(error: PackFileError) -> Self {
        Self { file: error.file, kind: error.kind.into() }
    }
}

impl fmt::Display for SafeTensorErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { size } => write!(f, "is {size} bytes, too short for a safetensors file"),
            Self::HeaderSize { claimed, available } => {
                write!(f, "claims a header of {claimed} bytes; {available} follow, at most {MAX_HEADER_SIZE} are read")
            }
            Self::Json(reason) => write!(f, "its header is malformed: {reason}"),
            Self::DType { name, dtype } => write!(f, "tensor `{name}` has the unsupported dtype {dtype}"),
            Self::Tensor(kind) => write!(f, "{kind}"),
        }
    }
}

impl fmt::Display for SafeTensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.kind)
    }
}

impl std::error::Error for SafeTensorError {}
