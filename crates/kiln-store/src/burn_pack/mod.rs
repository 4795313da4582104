//! Burnpack files as such, under the names and with the errors of Burn's `burn_pack`; the codec is [`kiln_module::record::burnpack`].

mod files;
mod reader;
mod writer;

pub use files::{AtomicFile, Header};
pub use kiln_module::record::burnpack::{
    EXTENSION, Error, FORMAT_VERSION, HEADER_SIZE, MAGIC_NUMBER, MAX_CBOR_RECURSION_DEPTH, MAX_FILE_SIZE, MAX_METADATA_SIZE, MAX_TENSOR_COUNT,
    MAX_TENSOR_SIZE, PackTensor as Tensor, Scalar, ScalarConversionError, TENSOR_ALIGNMENT, aligned_data_section_start,
};
pub use kiln_tensor::{Bytes, DType, Shape};
pub use reader::Reader;
pub use writer::Writer;

/// The name in errors of what lies in memory.
const IN_MEMORY: &str = "burnpack bytes";
