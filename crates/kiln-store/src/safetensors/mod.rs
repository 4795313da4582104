//! Codec of safetensors files: a JSON header that names tensors, then their bytes.
//!
//! ```text
//! 0      header length N, u64 little-endian
//! 8      JSON: { "__metadata__"?: { text: text }, name: { "dtype", "shape", "data_offsets": [start, end] }, ... }, spaces up to a multiple of 8
//! 8+N    tensors, one directly behind the other
//! ```
//!
//! A file is not trusted: lengths and offsets are checked before memory is asked for.

mod error;
mod header;
mod reader;
mod writer;

pub use error::{SafeTensorError, SafeTensorErrorKind};
pub use reader::SafetensorsReader;
pub use writer::SafetensorsWriter;

/// The longest header that is read, in bytes.
pub const MAX_HEADER_SIZE: u64 = 100_000_000;
