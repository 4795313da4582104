//! Reading a safetensors file: its header at once, a tensor's bytes when asked for.

use std::fs::{self, File};
use std::path::Path;

use kiln_module::record::burnpack::{Entry, Index};
use kiln_tensor::Bytes;

use super::{MAX_HEADER_SIZE, SafeTensorError, SafeTensorErrorKind, header};
use kiln_module::record::burnpack::PackErrorKind;

use crate::burn_pack::Tensor;

/// An open safetensors file.
pub struct SafetensorsReader {
    bytes: Bytes,
    index: Index,
    /// Where the tensors' bytes start.
    start: u64,
}

impl SafetensorsReader {
    /// Reads the header of a file that lies in memory. `file` names it in errors.
    ///
    /// # Errors
    ///
    /// The file is malformed: see [`SafeTensorErrorKind`].
    pub fn from_bytes(file: &str, bytes: Bytes) -> Result<Self, SafeTensorError> {
        Self::new(bytes.shared()).map_err(|kind| kind.in_file(file))
    }

    /// Maps the file at `path` and reads its header. The tensors' bytes come from the file when they are asked for; it must not be changed in
    /// place as long as they live, nor as long as tensors live that were made of them: on the CPU these read the file's memory themselves. Replacing the
    /// file by another of its name, as Kiln's writers do, is no change in place.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or is malformed: see [`SafeTensorErrorKind`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SafeTensorError> {
        let path = path.as_ref();
        Self::map(path).map_err(|kind| kind.in_file(&path.display().to_string()))
    }

    fn map(path: &Path) -> Result<Self, SafeTensorErrorKind> {
        let io = |error: std::io::Error| PackErrorKind::Io(error.to_string());
        // Opening something else than a file, such as a pipe, may wait forever.
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Err(PackErrorKind::Io("is not a file".into()).into());
        }
        let file = File::open(path).map_err(io)?;
        // An empty range cannot be mapped.
        if file.metadata().map_err(io)?.len() == 0 {
            return Err(SafeTensorErrorKind::TooShort { size: 0 });
        }
        // SAFETY: the mapping is read-only and private. Changing a mapped file in place is ruled out by the contract of `open`, and
        // everything that Kiln writes replaces files whole.
        let mapped = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        Self::new(Bytes::from_owner(mapped))
    }

    fn new(bytes: Bytes) -> Result<Self, SafeTensorErrorKind> {
        let size = bytes.len() as u64;
        let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
            return Err(SafeTensorErrorKind::TooShort { size });
        };
        let (claimed, available) = (u64::from_le_bytes(*length), rest.len() as u64);
        if claimed > available || claimed > MAX_HEADER_SIZE {
            return Err(SafeTensorErrorKind::HeaderSize { claimed, available });
        }
        let index = header::decode(&rest[..claimed as usize])?;
        index.check_ranges(available - claimed)?;
        Ok(Self { bytes, index, start: 8 + claimed })
    }

    /// The tensors and the text of the file.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// All tensors in the order of their bytes. They share the file: nothing is read or copied before a tensor's bytes are asked for.
    pub fn tensors(&self) -> Vec<Tensor> {
        let tensor = |entry: &Entry| {
            let [start, end] = entry.data_offsets.map(|offset| (self.start + offset) as usize);
            let bytes = self.bytes.view(start, end).expect("opening the file has checked the ranges");
            Tensor::new(entry.name.clone(), entry.dtype, entry.shape.clone(), None, bytes)
        };
        self.index.tensors.iter().map(tensor).collect()
    }
}
