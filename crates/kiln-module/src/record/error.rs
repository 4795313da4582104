//! Why a record could not be read, written or applied.

use alloc::string::{String, ToString};
use core::fmt::{self, Display};

use super::burnpack::{Error, PackFileError};

/// Why a record could not be read, written or applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The file or its bytes could not be read or written; names the file and the reason.
    Io(String),
    /// The record does not fit the module; lists missing, unused and unfit tensors by path.
    Validation(String),
}

impl Display for RecordError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(reason) => formatter.write_str(reason),
            Self::Validation(reason) => {
                write!(formatter, "the record does not fit the module: {reason}")
            }
        }
    }
}

impl core::error::Error for RecordError {}

impl From<PackFileError> for RecordError {
    fn from(error: PackFileError) -> Self {
        Self::Io(error.to_string())
    }
}

impl From<Error> for RecordError {
    fn from(error: Error) -> Self {
        Self::Io(error.to_string())
    }
}
