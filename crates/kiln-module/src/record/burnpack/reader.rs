//! Reading a burnpack file: its index at once, a tensor's bytes when asked for.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use kiln_tensor::Bytes;

use super::{Entry, Index, MAX_FILE_SIZE, PackErrorKind, PackFileError, PackTensor};

/// An open burnpack file. Cloning shares it.
#[derive(Clone)]
pub struct Reader {
    file: String,
    bytes: Bytes,
    index: Arc<Index>,
    /// Where the data section starts.
    start: u64,
    /// Positions in `index.tensors`, sorted by name.
    by_name: Arc<[usize]>,
}

impl Reader {
    /// Reads the index of a file that lies in memory. `file` names it in errors.
    ///
    /// # Errors
    ///
    /// The file is malformed: see [`PackErrorKind`].
    pub fn from_bytes(file: &str, bytes: Bytes) -> Result<Self, PackFileError> {
        Self::new(file, bytes.shared()).map_err(|kind| kind.in_file(file))
    }

    /// Maps the file at `path`, or at `path` with the extension `bpk` if no file is at `path` itself, and reads its index. The tensors'
    /// bytes come from the file when they are asked for; it must not be changed in place as long as they live, nor as
    /// long as tensors live that were made of them: on the CPU these read the file's memory themselves ([`AtomicFile`](super::AtomicFile)
    /// replaces it instead).
    ///
    /// # Errors
    ///
    /// The file cannot be opened or is malformed: see [`PackErrorKind`].
    #[cfg(feature = "std")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Result<Self, PackFileError> {
        let path = path.as_ref();
        if path.extension().is_none() && !path.is_file() {
            return Self::open_exact(path.with_extension(super::EXTENSION));
        }
        Self::open_exact(path)
    }

    /// As [`open`](Self::open), of the path as it is.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    #[cfg(feature = "std")]
    pub fn open_exact(path: impl AsRef<std::path::Path>) -> Result<Self, PackFileError> {
        let path = path.as_ref();
        let name = alloc::format!("{}", path.display());
        Self::map(&name, path).map_err(|kind| kind.in_file(&name))
    }

    #[cfg(feature = "std")]
    fn map(name: &str, path: &std::path::Path) -> Result<Self, PackErrorKind> {
        use alloc::string::ToString;
        let io = |error: std::io::Error| PackErrorKind::Io(error.to_string());
        // Opening something else than a file, such as a pipe, may wait forever.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(PackErrorKind::Io("is not a file".into()));
        }
        let file = std::fs::File::open(path).map_err(io)?;
        match file.metadata().map_err(io)?.len() {
            // An empty range cannot be mapped.
            0 => return Err(PackErrorKind::Header { size: 0 }),
            size if size > MAX_FILE_SIZE => return Err(PackErrorKind::FileTooLarge { size }),
            _ => {}
        }
        // SAFETY: the mapping is read-only and private. Changing a mapped file in place is ruled out by the contract of `open`, and
        // everything that Kiln writes replaces files whole.
        let mapped = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        Self::new(name, Bytes::from_owner(mapped))
    }

    fn new(file: &str, bytes: Bytes) -> Result<Self, PackErrorKind> {
        let size = bytes.len() as u64;
        if size > MAX_FILE_SIZE {
            return Err(PackErrorKind::FileTooLarge { size });
        }
        let (index, start) = Index::decode(&bytes, size)?;
        let mut by_name: Vec<usize> = (0..index.tensors.len()).collect();
        by_name.sort_by(|a, b| index.tensors[*a].name.cmp(&index.tensors[*b].name));
        Ok(Self { file: file.into(), bytes, index: Arc::new(index), start, by_name: by_name.into() })
    }

    /// The file's name, as given when it was opened.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The tensors, text and scalars of the file.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The entry of the tensor `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let tensors = &self.index.tensors;
        let found = self.by_name.binary_search_by(|position| tensors[*position].name.as_str().cmp(name));
        found.ok().map(|found| &tensors[self.by_name[found]])
    }

    /// The bytes of the tensor `name`, little-endian elements in row-major order. They share the file: nothing is copied.
    ///
    /// # Errors
    ///
    /// There is no such tensor.
    pub fn bytes(&self, name: &str) -> Result<Bytes, PackFileError> {
        match self.entry(name) {
            Some(entry) => Ok(self.view(entry)),
            None => Err(PackErrorKind::TensorNotFound { name: name.into() }.in_file(&self.file)),
        }
    }

    /// All tensors in the order of their bytes. They share the file: nothing is read or copied before a tensor's bytes are asked for.
    pub fn tensors(&self) -> Vec<PackTensor> {
        let tensor = |entry: &Entry| PackTensor::new(entry.name.clone(), entry.dtype, entry.shape.clone(), entry.param_id, self.view(entry));
        self.index.tensors.iter().map(tensor).collect()
    }

    fn view(&self, entry: &Entry) -> Bytes {
        let [start, end] = match entry.byte_len() {
            // The data section may be missing altogether.
            0 => [0, 0],
            _ => entry.data_offsets.map(|offset| (self.start + offset) as usize),
        };
        self.bytes.view(start, end).expect("reading the index has checked the ranges")
    }
}
