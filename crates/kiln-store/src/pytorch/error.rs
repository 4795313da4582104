//! What can be wrong with a PyTorch file.

use std::fmt;

use super::OpCode;

/// A PyTorch file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PytorchError {
    /// The file, or what else the bytes come from.
    pub file: String,
    /// What is wrong.
    pub kind: PytorchErrorKind,
}

/// What is wrong with a PyTorch file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PytorchErrorKind {
    /// The system refused to read: its message.
    Io(String),
    /// The first bytes are those of no format that PyTorch has written: what they are.
    UnknownFormat(Vec<u8>),
    /// The archive around the data is malformed: how.
    Archive(String),
    /// The pickled program is malformed or too large.
    Pickle(PickleError),
    /// A tensor is malformed or of a kind that is not supported: which and why.
    Tensor {
        /// The tensor's path.
        name: String,
        /// Why.
        reason: String,
    },
    /// The file has no value under this key.
    MissingKey {
        /// The key asked for.
        key: String,
        /// The keys that are there.
        found: Vec<String>,
    },
    /// The file is no optimizer's state dict, or does not fit the module: how.
    Optimizer(String),
}

/// A pickled program is malformed or too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickleError {
    /// The program ends before its end mark.
    UnexpectedEnd,
    /// A byte is no instruction.
    UnknownOpCode {
        /// The byte.
        byte: u8,
        /// Where it is.
        offset: usize,
    },
    /// An instruction that files of PyTorch don't have.
    Unsupported(OpCode),
    /// An instruction finds something else on the stack than it needs.
    Stack {
        /// The instruction.
        opcode: OpCode,
        /// Where it is.
        offset: usize,
    },
    /// A value that was never remembered is asked for.
    Memo(u64),
    /// A text or number in the program is malformed: what was expected.
    Malformed(&'static str),
    /// There are more values than are read.
    TooManyValues,
    /// Values are nested more deeply than is read.
    TooDeep,
}

impl PytorchErrorKind {
    /// The error of this kind in `file`.
    pub fn in_file(self, file: &str) -> PytorchError {
        PytorchError { file: file.into(), kind: self }
    }
}

impl From<PickleError> for PytorchErrorKind {
    fn from(error: PickleError) -> Self {
        Self::Pickle(error)
    }
}

impl fmt::Display for PickleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnexpectedEnd => f.write_str("the pickled data ends too early"),
            Self::UnknownOpCode { byte, offset } => write!(f, "byte {byte:#04x} at {offset} of the pickled data is no instruction"),
            Self::Unsupported(opcode) => write!(f, "the pickled data has the instruction {opcode:?}, which is not supported"),
            Self::Stack { opcode, offset } => write!(f, "{opcode:?} at {offset} of the pickled data has not the operands it needs"),
            Self::Memo(number) => write!(f, "the pickled data asks for the remembered value {number}, which there is none of"),
            Self::Malformed(expected) => write!(f, "the pickled data is malformed: expected {expected}"),
            Self::TooManyValues => f.write_str("the pickled data has more values than are read"),
            Self::TooDeep => f.write_str("the pickled data is nested more deeply than is read"),
        }
    }
}

impl std::error::Error for PickleError {}

impl fmt::Display for PytorchErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(message) => f.write_str(message),
            Self::UnknownFormat(start) => write!(f, "is no file of torch.save: it starts with the bytes {start:02x?}"),
            Self::Archive(how) => write!(f, "its archive is malformed: {how}"),
            Self::Pickle(error) => write!(f, "{error}"),
            Self::Tensor { name, reason } => write!(f, "tensor `{name}` {reason}"),
            Self::MissingKey { key, found } => write!(f, "has no key `{key}`; its keys are {}", found.join(", ")),
            Self::Optimizer(how) => write!(f, "is no optimizer's state that fits: {how}"),
        }
    }
}

impl fmt::Display for PytorchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.kind)
    }
}

impl std::error::Error for PytorchError {}
