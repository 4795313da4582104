//! Writing a burnpack file: layout, metadata and bytes.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use kiln_tensor::{Bytes, DType, Shape};

use super::index::byte_len;
use super::{
    Entry, Error, Header, Index, MAX_METADATA_SIZE, MAX_TENSOR_COUNT, PackErrorKind, PackFileError, Scalar, TENSOR_ALIGNMENT,
    aligned_data_section_start,
};

type Provider = Arc<dyn Fn() -> Result<Bytes, Error> + Send + Sync>;

/// A named tensor to be written, or one that was read. Cloning copies no bytes that are shared.
#[derive(Clone)]
pub struct PackTensor {
    /// The path of the parameter, such as `layers.0.weight`.
    pub name: String,
    /// The dtype of its elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// The id of the parameter.
    pub param_id: Option<u64>,
    data: Data,
}

#[derive(Clone)]
enum Data {
    Held(Bytes),
    Deferred { len: usize, provider: Provider },
}

impl PackTensor {
    /// A tensor of `bytes`: little-endian elements in row-major order.
    pub fn new(name: String, dtype: DType, shape: impl Into<Shape>, param_id: Option<u64>, bytes: Bytes) -> Self {
        Self { name, dtype, shape: shape.into(), param_id, data: Data::Held(bytes.shared()) }
    }

    /// A tensor whose `byte_len` bytes `provider` makes when they are asked for, such as by reading them from a device.
    pub fn deferred(
        name: String,
        dtype: DType,
        shape: impl Into<Shape>,
        param_id: Option<u64>,
        byte_len: usize,
        provider: impl Fn() -> Result<Bytes, Error> + Send + Sync + 'static,
    ) -> Self {
        let provider: Provider = Arc::new(provider);
        Self { name, dtype, shape: shape.into(), param_id, data: Data::Deferred { len: byte_len, provider } }
    }

    /// The number of bytes.
    pub fn byte_len(&self) -> usize {
        match &self.data {
            Data::Held(bytes) => bytes.len(),
            Data::Deferred { len, .. } => *len,
        }
    }

    /// The bytes; those that are held are shared, not copied.
    ///
    /// # Errors
    ///
    /// The bytes could not be made, or are not as many as was said.
    pub fn to_bytes(&self) -> Result<Bytes, Error> {
        Ok(self.bytes_for(IN_MEMORY)?)
    }

    /// The bytes, for a file that is written.
    ///
    /// # Errors
    ///
    /// As [`to_bytes`](Self::to_bytes), naming the file.
    pub fn bytes_for(&self, file: &str) -> Result<Bytes, PackFileError> {
        match &self.data {
            Data::Held(bytes) => Ok(bytes.clone()),
            Data::Deferred { len, provider } => match provider() {
                Ok(bytes) if bytes.len() == *len => Ok(bytes),
                Ok(bytes) => {
                    let (expected, found) = (Some(*len as u64), bytes.len() as u64);
                    Err(PackErrorKind::TensorSize { name: self.name.clone(), expected, found }.in_file(file))
                }
                Err(error) => Err(PackErrorKind::Provider { name: self.name.clone(), reason: format!("{error}") }.in_file(file)),
            },
        }
    }

    /// The bytes, given up by the tensor.
    ///
    /// # Errors
    ///
    /// As [`to_bytes`](Self::to_bytes).
    pub fn into_bytes(self) -> Result<Bytes, Error> {
        self.into_parts().map(|(.., bytes)| bytes)
    }

    /// Name, dtype, shape, parameter id and bytes.
    ///
    /// # Errors
    ///
    /// As [`to_bytes`](Self::to_bytes).
    pub fn into_parts(self) -> Result<(String, DType, Shape, Option<u64>, Bytes), Error> {
        let bytes = self.to_bytes()?;
        Ok((self.name, self.dtype, self.shape, self.param_id, bytes))
    }
}

impl fmt::Debug for PackTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackTensor")
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .field("param_id", &self.param_id)
            .field("byte_len", &self.byte_len())
            .finish()
    }
}

/// Writes burnpack files. The tensors' bytes are laid out in the order given.
pub struct Writer {
    tensors: Vec<PackTensor>,
    metadata: BTreeMap<String, String>,
    scalars: BTreeMap<String, Scalar>,
    #[cfg(feature = "std")]
    auto_extension: bool,
    #[cfg(feature = "std")]
    overwrite: bool,
}

/// The name in errors of a file that is written to memory.
const IN_MEMORY: &str = "burnpack bytes";

impl Writer {
    /// A file of `tensors`.
    pub fn new(tensors: Vec<PackTensor>) -> Self {
        Self {
            tensors,
            metadata: BTreeMap::new(),
            scalars: BTreeMap::new(),
            #[cfg(feature = "std")]
            auto_extension: true,
            #[cfg(feature = "std")]
            overwrite: true,
        }
    }

    /// Adds text; it replaces what `key` had.
    pub fn with_metadata(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Adds a number; it replaces what `key` had.
    pub fn with_scalar(mut self, key: &str, value: Scalar) -> Self {
        self.scalars.insert(key.into(), value);
        self
    }

    /// The bytes before the data section, and the entries with their places in it.
    fn layout(&self) -> Result<(Vec<u8>, Vec<Entry>), PackErrorKind> {
        let count = self.tensors.len();
        if count > MAX_TENSOR_COUNT {
            return Err(PackErrorKind::TooManyTensors { count });
        }
        let mut names: Vec<&str> = self.tensors.iter().map(|t| t.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = pair[0].into();
            return Err(PackErrorKind::Duplicate { name });
        }
        let mut end = 0u64;
        let mut tensors = Vec::with_capacity(count);
        for tensor in &self.tensors {
            let found = tensor.byte_len() as u64;
            let expected = byte_len(tensor.dtype, &tensor.shape);
            if !expected.is_ok_and(|expected| expected.is_none_or(|len| len == found)) {
                return Err(PackErrorKind::TensorSize { name: tensor.name.clone(), expected: expected.unwrap_or(None), found });
            }
            let start = end.next_multiple_of(TENSOR_ALIGNMENT);
            end = start + found;
            tensors.push(Entry {
                name: tensor.name.clone(),
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                param_id: tensor.param_id,
                data_offsets: [start, end],
            });
        }
        let index = Index { tensors, metadata: self.metadata.clone(), scalars: self.scalars.clone() };
        let metadata = index.encode_metadata();
        let size = u32::try_from(metadata.len()).ok();
        let size = size.filter(|size| *size <= MAX_METADATA_SIZE);
        let size = size.ok_or(PackErrorKind::MetadataSize { claimed: metadata.len() as u64, available: metadata.len() as u64 })?;
        let mut head = Header::new(size).into_bytes().to_vec();
        head.extend(&metadata);
        head.resize(aligned_data_section_start(metadata.len()), 0);
        Ok((head, index.tensors))
    }

    /// Hands the file to `put`, piece by piece.
    fn emit(&self, file: &str, mut put: impl FnMut(&[u8]) -> Result<(), PackErrorKind>) -> Result<(), PackFileError> {
        const ZEROS: [u8; TENSOR_ALIGNMENT as usize] = [0; TENSOR_ALIGNMENT as usize];
        let mut put = |bytes: &[u8]| put(bytes).map_err(|kind| kind.in_file(file));
        let (head, entries) = self.layout().map_err(|kind| kind.in_file(file))?;
        put(&head)?;
        let mut at = 0;
        for (tensor, entry) in self.tensors.iter().zip(&entries) {
            let [start, end] = entry.data_offsets;
            put(&ZEROS[..(start - at) as usize])?;
            put(&tensor.bytes_for(file)?)?;
            at = end;
        }
        Ok(())
    }

    /// The size of the file in bytes.
    ///
    /// # Errors
    ///
    /// Two tensors have the same name, or one has more or fewer bytes than its shape and dtype call for.
    pub fn size(&self) -> Result<usize, PackFileError> {
        self.layout().map(|(head, entries)| total(&head, &entries)).map_err(|kind| kind.in_file(IN_MEMORY))
    }

    /// Writes the file into `buffer`, which must have its [`size`](Self::size).
    ///
    /// # Errors
    ///
    /// As [`size`](Self::size), or the buffer has another size, or a deferred tensor's bytes could not be had.
    pub fn write_into(self, buffer: &mut [u8]) -> Result<(), PackFileError> {
        let (expected, found) = (self.size()?, buffer.len());
        if expected != found {
            return Err(PackErrorKind::BufferSize { expected, found }.in_file(IN_MEMORY));
        }
        let mut at = 0;
        let put = |bytes: &[u8]| {
            buffer[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
            Ok(())
        };
        self.emit(IN_MEMORY, put)
    }

    /// The file's bytes.
    ///
    /// # Errors
    ///
    /// As [`size`](Self::size), or a deferred tensor's bytes could not be had.
    pub fn into_bytes(self) -> Result<Bytes, PackFileError> {
        let mut file = Vec::with_capacity(self.size()?);
        let put = |bytes: &[u8]| {
            file.extend_from_slice(bytes);
            Ok(())
        };
        self.emit(IN_MEMORY, put)?;
        Ok(Bytes::from_bytes_vec(file))
    }
}

fn total(head: &[u8], entries: &[Entry]) -> usize {
    head.len() + entries.last().map_or(0, |entry| entry.data_offsets[1]) as usize
}

#[cfg(feature = "std")]
mod files {
    //! Writing to the file system.

    use alloc::string::ToString;
    use std::fs::File;
    use std::io::{BufWriter, Write};
    use std::path::{Path, PathBuf};

    use super::super::{AtomicFile, EXTENSION, PackErrorKind, PackFileError};
    use super::Writer;

    impl Writer {
        /// Whether the extension `bpk` is added to a path without one. By default it is.
        pub fn auto_extension(mut self, enable: bool) -> Self {
            self.auto_extension = enable;
            self
        }

        /// Whether a file that is there already is replaced. By default it is.
        pub fn overwrite(mut self, enable: bool) -> Self {
            self.overwrite = enable;
            self
        }

        /// Writes to a file next to `path` and moves it there when it is whole and on the disk: a crash or an error leaves what was there
        /// before. The folder is made if it is missing.
        ///
        /// # Errors
        ///
        /// As [`into_bytes`](Self::into_bytes), the file system refuses, or the file exists and is not to be replaced.
        pub fn write_to_file(self, path: impl AsRef<Path>) -> Result<(), PackFileError> {
            let path = self.destination(path.as_ref())?;
            let (atomic, file) = AtomicFile::create(&path)?;
            self.write_all(&path, file)?;
            match self.overwrite {
                true => atomic.commit(),
                false => atomic.commit_new(),
            }
        }

        /// Writes straight to `path`: for a file system that has no room for two files. A crash or an error leaves a broken file. A file that is
        /// there is removed first, not written over: tensors that were loaded from it may still read its bytes where they lie.
        ///
        /// # Errors
        ///
        /// As [`write_to_file`](Self::write_to_file).
        pub fn write_to_file_in_place(self, path: impl AsRef<Path>) -> Result<(), PackFileError> {
            let path = self.destination(path.as_ref())?;
            let file = match self.overwrite {
                true => replaced(&path),
                false => File::create_new(&path),
            };
            let file = file.map_err(|error| io(&path, error))?;
            self.write_all(&path, file)
        }

        /// The path written to. Refuses early where a file is in the way, before any tensor is read.
        fn destination(&self, path: &Path) -> Result<PathBuf, PackFileError> {
            let mut path = path.to_path_buf();
            if self.auto_extension && path.extension().is_none() {
                path.set_extension(EXTENSION);
            }
            if !self.overwrite && path.exists() {
                return Err(PackErrorKind::AlreadyExists.in_file(&path.display().to_string()));
            }
            match path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => {
                    std::fs::create_dir_all(folder).map_err(|error| io(folder, error))?;
                }
                _ => {}
            }
            Ok(path)
        }

        fn write_all(&self, path: &Path, file: File) -> Result<(), PackFileError> {
            let kind = |error: std::io::Error| PackErrorKind::Io(error.to_string());
            let mut file = BufWriter::with_capacity(1 << 16, file);
            let put = |bytes: &[u8]| file.write_all(bytes).map_err(kind);
            self.emit(&path.display().to_string(), put)?;
            file.flush().map_err(|error| io(path, error))
        }
    }

    /// A new file in the place of what is there; a symbolic link stays one, and what is no file is written as it is.
    fn replaced(path: &Path) -> std::io::Result<File> {
        let path = if path.is_symlink() { std::fs::canonicalize(path)? } else { path.to_path_buf() };
        if path.is_file() {
            std::fs::remove_file(&path)?;
        }
        File::create(&path)
    }

    fn io(path: &Path, error: std::io::Error) -> PackFileError {
        let kind = match error.kind() {
            std::io::ErrorKind::AlreadyExists => PackErrorKind::AlreadyExists,
            _ => PackErrorKind::Io(error.to_string()),
        };
        kind.in_file(&path.display().to_string())
    }
}
