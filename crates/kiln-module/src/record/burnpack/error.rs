//! What can be wrong with a burnpack file.

use alloc::string::String;
use core::fmt;

use super::{CborError, FORMAT_VERSION, MAGIC_NUMBER, MAX_FILE_SIZE, MAX_METADATA_SIZE, MAX_TENSOR_COUNT, MAX_TENSOR_SIZE};

/// A burnpack file could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFileError {
    /// The file, or what else the bytes come from.
    pub file: String,
    /// What is wrong.
    pub kind: PackErrorKind,
}

/// What is wrong with a burnpack file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackErrorKind {
    /// The system refused to read or write: its message.
    Io(String),
    /// There is a file already and it was not to be replaced.
    AlreadyExists,
    /// The file is larger than any that is read.
    FileTooLarge {
        /// Its size in bytes.
        size: u64,
    },
    /// The file is shorter than a header.
    Header {
        /// Its size in bytes.
        size: u64,
    },
    /// The file does not start with the magic number.
    Magic {
        /// The number found.
        found: u32,
    },
    /// The file has a newer version than is known.
    Version {
        /// The version found.
        found: u16,
    },
    /// The header claims longer metadata than is read or than the file has.
    MetadataSize {
        /// The length claimed, in bytes.
        claimed: u64,
        /// The bytes behind the header.
        available: u64,
    },
    /// The metadata is not what it should be.
    Metadata(CborError),
    /// A record of an older format is malformed: how.
    Malformed(String),
    /// The file does not fit the module: how.
    Validation(String),
    /// There are more tensors than are read or written.
    TooManyTensors {
        /// Their number.
        count: usize,
    },
    /// Two entries have this name.
    Duplicate {
        /// The name.
        name: String,
    },
    /// No tensor has this name.
    TensorNotFound {
        /// The name.
        name: String,
    },
    /// The tensor's range does not lie in the data section.
    OutOfRange {
        /// The tensor.
        name: String,
        /// The start and the end of its bytes in the data section.
        range: [u64; 2],
        /// The length of the data section.
        available: u64,
    },
    /// The tensor's bytes are more or fewer than its shape and dtype call for, or more than are read.
    TensorSize {
        /// The tensor.
        name: String,
        /// What shape and dtype call for, `None` if that is beyond any memory.
        expected: Option<u64>,
        /// The number of its bytes.
        found: u64,
    },
    /// The bytes of two tensors overlap.
    Overlap {
        /// The tensor that starts first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A deferred tensor's bytes could not be had: the reason.
    Provider {
        /// The tensor.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The buffer to be written into has another size than the file.
    BufferSize {
        /// The size of the file in bytes.
        expected: usize,
        /// The size of the buffer in bytes.
        found: usize,
    },
}

impl PackErrorKind {
    /// The error of this kind in `file`.
    pub fn in_file(self, file: &str) -> PackFileError {
        PackFileError { file: file.into(), kind: self }
    }
}

impl fmt::Display for PackErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(message) => f.write_str(message),
            Self::AlreadyExists => f.write_str("exists already"),
            Self::FileTooLarge { size } => {
                write!(f, "is {size} bytes, more than {MAX_FILE_SIZE}")
            }
            Self::Header { size } => write!(f, "is {size} bytes, too short for a burnpack header"),
            Self::Magic { found } => write!(f, "is no burnpack file: magic number is {found:#010x}, not {MAGIC_NUMBER:#010x}"),
            Self::Version { found } => write!(f, "has format version {found}; the newest known is {FORMAT_VERSION}"),
            Self::MetadataSize { claimed, available } => {
                write!(f, "claims {claimed} bytes of metadata; {available} follow, at most {MAX_METADATA_SIZE} are read")
            }
            Self::Metadata(error) => write!(f, "{error}"),
            Self::Malformed(how) => write!(f, "is malformed: {how}"),
            Self::Validation(how) => write!(f, "does not fit the module: {how}"),
            Self::TooManyTensors { count } => {
                write!(f, "has {count} tensors, more than {MAX_TENSOR_COUNT}")
            }
            Self::Duplicate { name } => write!(f, "has two entries named `{name}`"),
            Self::TensorNotFound { name } => write!(f, "has no tensor `{name}`"),
            Self::OutOfRange { name, range: [start, end], available } => {
                write!(f, "tensor `{name}` lies at {start}..{end} of a data section of {available} bytes")
            }
            Self::TensorSize { name, expected, found } => match expected {
                Some(expected) if expected == found => write!(f, "tensor `{name}` has {found} bytes, more than {MAX_TENSOR_SIZE}"),
                Some(expected) => write!(f, "tensor `{name}` has {found} bytes; its shape and dtype call for {expected}"),
                None => write!(f, "tensor `{name}` has {found} bytes; its shape and dtype call for more than any memory has"),
            },
            Self::Overlap { first, second } => {
                write!(f, "the bytes of tensors `{first}` and `{second}` overlap")
            }
            Self::Provider { name, reason } => {
                write!(f, "tensor `{name}` cannot be written: {reason}")
            }
            Self::BufferSize { expected, found } => {
                write!(f, "needs a buffer of {expected} bytes, not {found}")
            }
        }
    }
}

impl fmt::Display for PackFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.kind)
    }
}

impl core::error::Error for PackFileError {}
