//! Safetensors files as a store of modules.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::PathBuf;

use kiln_tensor::Bytes;
use regex::Regex;

use crate::burn_pack::Tensor;
use crate::burnpack_store::added;
use crate::options::{Options, Renumber};
use crate::safetensors::{SafeTensorError, SafetensorsReader, SafetensorsWriter};
use crate::{ApplyResult, KeyRemapper, ModuleAdapter, ModuleSnapshot, ModuleStore, PathFilter};

/// A safetensors file, on the disk or in memory, that modules are saved into and loaded from.
///
/// By default a module must be wholly in the file and fit it, and a file that is there already is not replaced.
pub enum SafetensorsStore {
    /// On the disk.
    File(FileStore),
    /// In memory.
    Memory(MemoryStore),
}

/// A safetensors file on the disk.
pub struct FileStore {
    path: PathBuf,
    state: State,
}

/// A safetensors file in memory.
pub struct MemoryStore {
    bytes: Option<Bytes>,
    state: State,
}

struct State {
    options: Options,
    /// The tensors of the file, once they were read.
    tensors: Option<BTreeMap<String, Tensor>>,
}

/// A store of safetensors could not be read or written.
#[derive(Debug)]
pub enum SafetensorsStoreError {
    /// The file cannot be read or written.
    Safetensors(SafeTensorError),
    /// The system refuses.
    Io(io::Error),
    /// The file has no such tensor.
    TensorNotFound(String),
    /// The file does not fit the module: how.
    ValidationFailed(String),
    /// Something else.
    Other(String),
}

impl fmt::Display for SafetensorsStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Safetensors(error) => write!(f, "{error}"),
            Self::Io(error) => write!(f, "{error}"),
            Self::TensorNotFound(name) => write!(f, "no tensor `{name}`"),
            Self::ValidationFailed(how) => write!(f, "does not fit the module: {how}"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for SafetensorsStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Safetensors(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::TensorNotFound(_) | Self::ValidationFailed(_) | Self::Other(_) => None,
        }
    }
}

impl From<SafeTensorError> for SafetensorsStoreError {
    fn from(error: SafeTensorError) -> Self {
        Self::Safetensors(error)
    }
}

impl From<io::Error> for SafetensorsStoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The name in errors of what lies in memory.
const IN_MEMORY: &str = "safetensors bytes";

impl Default for SafetensorsStore {
    /// A store in memory that holds nothing yet.
    fn default() -> Self {
        Self::from_bytes(None)
    }
}

impl SafetensorsStore {
    /// The metadata that is written unless it is cleared: format, producer, version.
    pub fn default_metadata() -> HashMap<String, String> {
        Options::default_metadata("safetensors").into_iter().collect()
    }

    /// The file at `path`.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self::File(FileStore { path: path.into(), state: State::new() })
    }

    /// A file in memory: `bytes` to be loaded from, or nothing yet.
    pub fn from_bytes(bytes: Option<Vec<u8>>) -> Self {
        Self::Memory(MemoryStore { bytes: bytes.map(Bytes::from_bytes_vec), state: State::new() })
    }

    fn state(&self) -> &State {
        match self {
            Self::File(store) => &store.state,
            Self::Memory(store) => &store.state,
        }
    }

    fn state_mut(&mut self) -> &mut State {
        match self {
            Self::File(store) => &mut store.state,
            Self::Memory(store) => &mut store.state,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        change(&mut self.state_mut().options);
        self
    }

    fn with_filter(self, change: impl FnOnce(PathFilter) -> PathFilter) -> Self {
        self.with(|options| options.filter = change(std::mem::take(&mut options.filter)))
    }

    /// Saves and loads only what `filter` chooses.
    pub fn filter(self, filter: PathFilter) -> Self {
        self.with_filter(|_| filter)
    }

    /// Also saves and loads paths in which `pattern` matches; without any filter, everything is.
    ///
    /// # Panics
    ///
    /// If `pattern` is no regular expression.
    pub fn with_regex<S: AsRef<str>>(self, pattern: S) -> Self {
        self.with_filter(|filter| filter.with_regex(pattern))
    }

    /// Also saves and loads paths in which any of `patterns` matches.
    ///
    /// # Panics
    ///
    /// As [`with_regex`](Self::with_regex).
    pub fn with_regexes<I, S>(self, patterns: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<str>,
    {
        self.with_filter(|filter| filter.with_regexes(patterns))
    }

    /// Also saves and loads this path.
    pub fn with_full_path<S: Into<String>>(self, path: S) -> Self {
        self.with_filter(|filter| filter.with_full_path(path))
    }

    /// Also saves and loads these paths.
    pub fn with_full_paths<I, S>(self, paths: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        self.with_filter(|filter| filter.with_full_paths(paths))
    }

    /// Also saves and loads where `predicate` holds for the path and the types of the modules around it.
    pub fn with_predicate(self, predicate: fn(&str, &str) -> bool) -> Self {
        self.with_filter(|filter| filter.with_predicate(predicate))
    }

    /// Also saves and loads where any of `predicates` holds.
    pub fn with_predicates<I>(self, predicates: I) -> Self
    where
        I: IntoIterator<Item = fn(&str, &str) -> bool>,
    {
        self.with_filter(|filter| filter.with_predicates(predicates))
    }

    /// Saves and loads everything.
    pub fn match_all(self) -> Self {
        self.with_filter(PathFilter::match_all)
    }

    /// Renames tensors.
    pub fn remap(self, remapper: KeyRemapper) -> Self {
        self.with(|options| options.remapper = remapper)
    }

    /// Also replaces `from_pattern` by `to_pattern` in names.
    ///
    /// # Panics
    ///
    /// If `from_pattern` is no regular expression.
    pub fn with_key_remapping(self, from_pattern: impl AsRef<str>, to_pattern: impl Into<String>) -> Self {
        self.with(|options| options.remapper = added(std::mem::take(&mut options.remapper), from_pattern.as_ref(), to_pattern.into()))
    }

    /// Adds text to the metadata.
    pub fn metadata(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|options| drop(options.metadata.insert(key.into(), value.into())))
    }

    /// Removes all metadata.
    pub fn clear_metadata(self) -> Self {
        self.with(|options| options.metadata.clear())
    }

    /// Whether tensors that do not fit their parameters are an error.
    pub fn validate(self, validate: bool) -> Self {
        self.with(|options| options.validate = validate)
    }

    /// Whether parameters that the file lacks keep their values instead of being an error.
    pub fn allow_partial(self, allow: bool) -> Self {
        self.with(|options| options.allow_partial = allow)
    }

    /// Whether the names of enum variants are left out of paths, as in files that know no such enums.
    pub fn skip_enum_variants(self, skip: bool) -> Self {
        self.with(|options| options.skip_enum_variants = skip)
    }

    /// Whether indices in the file's paths are renumbered without gaps: see [`map_indices_contiguous`](crate::map_indices_contiguous).
    pub fn map_indices_contiguous(self, map: bool) -> Self {
        self.with(|options| options.renumber = if map { Renumber::Always } else { Renumber::Never })
    }

    /// Renumbers indices except in paths in which `pattern` matches.
    ///
    /// # Panics
    ///
    /// If `pattern` is no regular expression.
    #[track_caller]
    pub fn map_indices_contiguous_except<S: AsRef<str>>(self, pattern: S) -> Self {
        match Regex::new(pattern.as_ref()) {
            Ok(pattern) => self.with(|options| options.renumber = Renumber::Except(pattern)),
            Err(error) => panic!("map indices: `{}` is no regular expression: {error}", pattern.as_ref()),
        }
    }

    /// Whether a file that is there already is replaced.
    pub fn overwrite(self, overwrite: bool) -> Self {
        self.with(|options| options.overwrite = overwrite)
    }

    /// Changes tensors when loading.
    pub fn with_from_adapter(self, adapter: impl ModuleAdapter + 'static) -> Self {
        self.with(|options| options.from_adapter = Some(Box::new(adapter)))
    }

    /// Changes tensors when saving.
    pub fn with_to_adapter(self, adapter: impl ModuleAdapter + 'static) -> Self {
        self.with(|options| options.to_adapter = Some(Box::new(adapter)))
    }

    /// The bytes that were saved into memory.
    ///
    /// # Errors
    ///
    /// Nothing was saved yet, or the store is a file that cannot be read.
    pub fn get_bytes(&self) -> Result<Vec<u8>, SafetensorsStoreError> {
        match self {
            Self::Memory(MemoryStore { bytes: Some(bytes), .. }) => Ok(bytes.to_vec()),
            Self::Memory(_) => Err(SafetensorsStoreError::Other(format!("{IN_MEMORY}: nothing was saved yet"))),
            Self::File(store) => Ok(std::fs::read(&store.path)?),
        }
    }

    fn read(&self) -> Result<Vec<Tensor>, SafetensorsStoreError> {
        let reader = match self {
            Self::File(store) => SafetensorsReader::open(&store.path)?,
            Self::Memory(MemoryStore { bytes: Some(bytes), .. }) => SafetensorsReader::from_bytes(IN_MEMORY, bytes.clone())?,
            Self::Memory(_) => return Err(SafetensorsStoreError::Other(format!("{IN_MEMORY}: nothing was saved yet"))),
        };
        Ok(self.state().options.named(reader.tensors()))
    }
}

impl State {
    fn new() -> Self {
        Self { options: Options::new(Options::default_metadata("safetensors")), tensors: None }
    }
}

impl ModuleStore for SafetensorsStore {
    type Error = SafetensorsStoreError;

    fn collect_from<M: ModuleSnapshot>(&mut self, module: &M) -> Result<(), SafetensorsStoreError> {
        self.state_mut().tensors = None;
        let options = &self.state().options;
        let mut writer = SafetensorsWriter::new(options.collect(module)).overwrite(options.overwrite);
        for (key, text) in &options.metadata {
            writer = writer.with_metadata(key, text);
        }
        match self {
            Self::File(store) => writer.write_to_file(&store.path)?,
            Self::Memory(store) => store.bytes = Some(writer.into_bytes()?.shared()),
        }
        Ok(())
    }

    fn apply_to<M: ModuleSnapshot>(&mut self, module: &mut M) -> Result<ApplyResult, SafetensorsStoreError> {
        let tensors = self.read()?;
        self.state().options.apply(tensors, module).map_err(SafetensorsStoreError::ValidationFailed)
    }

    fn get_all_tensors(&mut self) -> Result<&BTreeMap<String, Tensor>, SafetensorsStoreError> {
        if self.state().tensors.is_none() {
            let tensors = self.read()?.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
            self.state_mut().tensors = Some(tensors);
        }
        Ok(self.state().tensors.as_ref().expect("they were read above"))
    }
}
