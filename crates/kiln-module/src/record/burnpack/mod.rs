//! Codec of burnpack (`.bpk`), the file format of records: named tensors, scalars and text, byte for byte as Burn 0.22 writes them.
//!
//! ```text
//! 0        magic 4E 52 55 42
//! 4        format version, u16 little-endian
//! 6        metadata length M, u32 little-endian
//! 10       metadata: a CBOR map { tensors, metadata?, scalars? }
//! ...      zeros up to a multiple of 256: the data section starts there
//! ...      tensors, each at a multiple of 256 from the start of the section
//! ```
//!
//! The codec knows nothing of modules or tensors: an [`Entry`] is a name, a dtype, a shape, an id and a range of bytes. [`Index`] is the
//! whole metadata; [`Writer`] lays entries out and writes them; [`Reader`] gives the bytes of one entry at a time, from memory or from a
//! mapped file. Files are not trusted: every length and offset is checked against what is there before memory is asked for.
//!
//! Start reading at [`Index`].

#[cfg(feature = "std")]
mod atomic;
mod cbor;
mod codec_error;
mod dtype;
mod error;
mod header;
mod index;
mod reader;
mod scalar;
mod writer;

#[cfg(feature = "std")]
pub use atomic::AtomicFile;
pub use cbor::CborError;
pub use codec_error::Error;
pub use error::{PackErrorKind, PackFileError};
pub use header::Header;
pub use index::{Entry, Index};
pub use reader::Reader;
pub use scalar::{Scalar, ScalarConversionError};
pub use writer::{PackTensor, Writer};

/// The first four bytes of a file, read as a little-endian number.
pub const MAGIC_NUMBER: u32 = 0x4255_524e;
/// The newest version of the format, the one written.
pub const FORMAT_VERSION: u16 = 1;
/// The length of the [`Header`], in bytes.
pub const HEADER_SIZE: usize = 10;
/// What the start of every tensor is a multiple of, from the start of the data section; and the start of that section, from the start of the file.
pub const TENSOR_ALIGNMENT: u64 = 256;
/// The longest metadata that is read, in bytes.
pub const MAX_METADATA_SIZE: u32 = 100 << 20;
/// The most tensors that are read.
pub const MAX_TENSOR_COUNT: usize = 100_000;
/// The largest tensor that is read, in bytes.
#[cfg(target_pointer_width = "64")]
pub const MAX_TENSOR_SIZE: usize = 10 << 30;
/// The largest tensor that is read, in bytes.
#[cfg(not(target_pointer_width = "64"))]
pub const MAX_TENSOR_SIZE: usize = 2 << 30;
/// The largest file that is read, in bytes.
pub const MAX_FILE_SIZE: u64 = 100 << 30;
/// The deepest nesting of the metadata that is read.
pub const MAX_CBOR_RECURSION_DEPTH: usize = 128;
/// The extension of a burnpack file.
pub const EXTENSION: &str = "bpk";

/// Where the data section starts in a file whose metadata is `metadata_size` bytes long.
pub fn aligned_data_section_start(metadata_size: usize) -> usize {
    (HEADER_SIZE + metadata_size).next_multiple_of(TENSOR_ALIGNMENT as usize)
}
