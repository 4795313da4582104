//! Burnpack files as such: see [`kiln_module::record::burnpack`], which is re-exported here under the names of Burn's `burn_pack`.

pub use kiln_module::record::burnpack::{
    AtomicFile, EXTENSION, FORMAT_VERSION, HEADER_SIZE, Header, MAGIC_NUMBER, MAX_CBOR_RECURSION_DEPTH, MAX_FILE_SIZE, MAX_METADATA_SIZE,
    MAX_TENSOR_COUNT, MAX_TENSOR_SIZE, PackError as Error, PackErrorKind, PackTensor as Tensor, Reader, Scalar, ScalarConversionError,
    TENSOR_ALIGNMENT, Writer, aligned_data_section_start,
};
pub use kiln_tensor::{Bytes, DType, Shape};
