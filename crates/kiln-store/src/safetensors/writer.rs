//! Writing a safetensors file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use kiln_module::record::burnpack::{Entry, Index};
use kiln_tensor::Bytes;

use super::header::{self, spelling};
use super::{SafeTensorError, SafeTensorErrorKind};
use kiln_module::record::burnpack::{AtomicFile, PackErrorKind};

use crate::burn_pack::Tensor;

/// Writes safetensors files, laid out as the format's own library does: wider dtypes first, then by name.
pub struct SafetensorsWriter {
    tensors: Vec<Tensor>,
    metadata: BTreeMap<String, String>,
    overwrite: bool,
}

impl SafetensorsWriter {
    /// A file of `tensors`.
    pub fn new(tensors: Vec<Tensor>) -> Self {
        Self { tensors, metadata: BTreeMap::new(), overwrite: true }
    }

    /// Adds text; it replaces what `key` had.
    pub fn with_metadata(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Whether a file that is there already is replaced. By default it is.
    pub fn overwrite(self, overwrite: bool) -> Self {
        Self { overwrite, ..self }
    }

    /// The file's bytes.
    ///
    /// # Errors
    ///
    /// Two tensors have the same name, one has a dtype that the format lacks, or a deferred tensor's bytes could not be had.
    pub fn into_bytes(self) -> Result<Bytes, SafeTensorError> {
        let mut bytes = Vec::new();
        self.emit("safetensors bytes", &mut bytes)?;
        Ok(Bytes::from_bytes_vec(bytes))
    }

    /// Writes to a file next to `path` and moves it there when it is whole and on the disk: a crash or an error leaves what was there before.
    /// The folder is made if it is missing.
    ///
    /// # Errors
    ///
    /// As [`into_bytes`](Self::into_bytes), the file system refuses, or the file exists and is not to be replaced.
    pub fn write_to_file(self, path: impl AsRef<Path>) -> Result<(), SafeTensorError> {
        let (path, overwrite) = (path.as_ref(), self.overwrite);
        let name = path.display().to_string();
        if !overwrite && path.exists() {
            return Err(SafeTensorErrorKind::Tensor(PackErrorKind::AlreadyExists).in_file(&name));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| failed(&name, error))?;
        }
        let (atomic, file) = AtomicFile::create(path)?;
        self.write_all(&name, file)?;
        match overwrite {
            true => atomic.commit()?,
            false => atomic.commit_new()?,
        }
        Ok(())
    }

    fn write_all(self, name: &str, file: File) -> Result<(), SafeTensorError> {
        let mut file = BufWriter::with_capacity(1 << 16, file);
        self.emit(name, &mut file)?;
        file.flush().map_err(|error| failed(name, error))
    }

    fn emit(mut self, file: &str, to: &mut impl Write) -> Result<(), SafeTensorError> {
        let index = self.layout().map_err(|kind| kind.in_file(file))?;
        let header = header::encode(&index);
        let mut put = |bytes: &[u8]| to.write_all(bytes).map_err(|error| failed(file, error));
        put(&(header.len() as u64).to_le_bytes())?;
        put(&header)?;
        for tensor in self.tensors {
            put(&tensor.bytes_for(file)?)?;
        }
        Ok(())
    }

    /// Brings the tensors into the order of the file and gives their places.
    fn layout(&mut self) -> Result<Index, SafeTensorErrorKind> {
        let unknown = self.tensors.iter().find(|tensor| spelling(tensor.dtype).is_none());
        if let Some(tensor) = unknown {
            let (name, dtype) = (tensor.name.clone(), format!("{:?}", tensor.dtype));
            return Err(SafeTensorErrorKind::DType { name, dtype });
        }
        let place = |tensor: &Tensor| spelling(tensor.dtype).map(|(place, _)| place);
        self.tensors.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.name.cmp(&b.name)));
        let mut names: Vec<&str> = self.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PackErrorKind::Duplicate { name: pair[0].into() }.into());
        }
        let mut end = 0;
        let entry = |tensor: &Tensor| {
            let start = end;
            end += tensor.byte_len() as u64;
            Entry { name: tensor.name.clone(), dtype: tensor.dtype, shape: tensor.shape.clone(), param_id: None, data_offsets: [start, end] }
        };
        let tensors = self.tensors.iter().map(entry).collect();
        let index = Index { tensors, metadata: std::mem::take(&mut self.metadata), ..Index::default() };
        index.check_ranges(u64::MAX)?;
        Ok(index)
    }
}

fn failed(file: &str, error: io::Error) -> SafeTensorError {
    SafeTensorErrorKind::Tensor(PackErrorKind::Io(error.to_string())).in_file(file)
}
