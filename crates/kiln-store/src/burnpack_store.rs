//! Burnpack files as a store of modules.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kiln_tensor::Bytes;

use crate::burn_pack::{Error, Reader, Tensor, Writer};
use crate::options::Options;
use crate::{ApplyResult, KeyRemapper, ModuleAdapter, ModuleSnapshot, ModuleStore, PathFilter};

/// A burnpack file, on the disk or in memory, that modules are saved into and loaded from.
///
/// By default a module must be wholly in the file and fit it, and a file that is there already is not replaced.
pub struct BurnpackStore {
    place: Place,
    options: Options,
    auto_extension: bool,
    /// The tensors of the file, once they were read.
    tensors: Option<BTreeMap<String, Tensor>>,
}

enum Place {
    File(PathBuf),
    Memory(Option<Bytes>),
}

/// The name in errors of what lies in memory.
const IN_MEMORY: &str = "burnpack bytes";

impl BurnpackStore {
    fn new(place: Place) -> Self {
        Self { place, options: Options::new(Self::default_metadata()), auto_extension: true, tensors: None }
    }

    /// The metadata that is written unless it is cleared: format, producer, version.
    pub fn default_metadata() -> BTreeMap<String, String> {
        Options::default_metadata("burnpack")
    }

    /// The file at `path`; without an extension, `.bpk` is added.
    pub fn from_file<P: AsRef<Path>>(path: P) -> Self {
        Self::new(Place::File(path.as_ref().into()))
    }

    /// A file in memory: `bytes` to be loaded from, or nothing yet.
    pub fn from_bytes(bytes: Option<Bytes>) -> Self {
        Self::new(Place::Memory(bytes))
    }

    /// A file that is part of the program.
    pub fn from_static(data: &'static [u8]) -> Self {
        Self::from_bytes(Some(Bytes::from_owner(data)))
    }

    /// Adds text to the metadata.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.metadata.insert(key.into(), value.into());
        self
    }

    /// Removes all metadata.
    pub fn clear_metadata(mut self) -> Self {
        self.options.metadata.clear();
        self
    }

    /// Whether parameters that the file lacks keep their values instead of being an error.
    pub fn allow_partial(mut self, allow: bool) -> Self {
        self.options.allow_partial = allow;
        self
    }

    /// Whether tensors that do not fit their parameters are an error.
    pub fn validate(mut self, validate: bool) -> Self {
        self.options.validate = validate;
        self
    }

    /// Whether a file that is there already is replaced.
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.options.overwrite = overwrite;
        self
    }

    /// Whether `.bpk` is added to a path without an extension.
    pub fn auto_extension(mut self, enable: bool) -> Self {
        self.auto_extension = enable;
        self
    }

    /// Changes tensors when loading.
    pub fn with_from_adapter(mut self, adapter: impl ModuleAdapter + 'static) -> Self {
        self.options.from_adapter = Some(Box::new(adapter));
        self
    }

    /// Changes tensors when saving.
    pub fn with_to_adapter(mut self, adapter: impl ModuleAdapter + 'static) -> Self {
        self.options.to_adapter = Some(Box::new(adapter));
        self
    }

    /// Saves and loads only what `filter` chooses.
    pub fn with_filter(mut self, filter: PathFilter) -> Self {
        self.options.filter = filter;
        self
    }

    /// The same as [`with_filter`](Self::with_filter).
    pub fn filter(self, filter: PathFilter) -> Self {
        self.with_filter(filter)
    }

    /// Also saves and loads paths in which `pattern` matches; without any filter, everything is.
    ///
    /// # Panics
    ///
    /// If `pattern` is no regular expression.
    #[track_caller]
    pub fn with_regex(mut self, pattern: &str) -> Self {
        self.options.filter = self.options.filter.with_regex(pattern);
        self
    }

    /// Also saves and loads this path; without any filter, everything is.
    pub fn with_full_path(mut self, path: impl Into<String>) -> Self {
        self.options.filter = self.options.filter.with_full_path(path);
        self
    }

    /// Saves and loads everything.
    pub fn match_all(mut self) -> Self {
        self.options.filter = self.options.filter.match_all();
        self
    }

    /// Renames tensors.
    pub fn remap(mut self, remapper: KeyRemapper) -> Self {
        self.options.remapper = remapper;
        self
    }

    /// Also replaces `from` by `to` in names.
    ///
    /// # Panics
    ///
    /// If `from` is no regular expression.
    #[track_caller]
    pub fn with_remap_pattern<S1, S2>(mut self, from: S1, to: S2) -> Self
    where
        S1: AsRef<str>,
        S2: Into<String>,
    {
        self.options.remapper = added(self.options.remapper, from.as_ref(), to.into());
        self
    }

    /// The bytes that were saved into memory.
    ///
    /// # Errors
    ///
    /// Nothing was saved yet, or the store is a file that cannot be read.
    pub fn get_bytes(&self) -> Result<Bytes, Error> {
        match &self.place {
            Place::Memory(Some(bytes)) => Ok(bytes.clone()),
            Place::Memory(None) => Err(Error::IoError(format!("{IN_MEMORY}: nothing was saved yet"))),
            Place::File(path) => {
                let bytes = std::fs::read(path).map(Bytes::from_bytes_vec);
                bytes.map_err(|error| Error::IoError(format!("{}: {error}", path.display())))
            }
        }
    }

    fn name(&self) -> String {
        match &self.place {
            Place::File(path) => path.display().to_string(),
            Place::Memory(_) => IN_MEMORY.into(),
        }
    }

    fn read(&self) -> Result<Vec<Tensor>, Error> {
        let reader = match &self.place {
            Place::File(path) if self.auto_extension => Reader::from_file(path)?,
            Place::File(path) => Reader::from_file_exact(path)?,
            Place::Memory(_) => Reader::from_bytes(self.get_bytes()?)?,
        };
        Ok(self.options.named(reader.into_tensors()?))
    }
}

/// A remapper with one more pattern.
#[track_caller]
pub(crate) fn added(remapper: KeyRemapper, from: &str, to: String) -> KeyRemapper {
    match remapper.add_pattern(from, to) {
        Ok(remapper) => remapper,
        Err(error) => panic!("key remapping: `{from}` is no regular expression: {error}"),
    }
}

impl ModuleStore for BurnpackStore {
    type Error = Error;

    fn collect_from<M: ModuleSnapshot>(&mut self, module: &M) -> Result<(), Error> {
        self.tensors = None;
        let mut writer = Writer::new(self.options.collect(module)).auto_extension(self.auto_extension).overwrite(self.options.overwrite);
        for (key, text) in &self.options.metadata {
            writer = writer.with_metadata(key, text);
        }
        match &mut self.place {
            Place::File(path) => writer.write_to_file(path),
            Place::Memory(bytes) => {
                *bytes = Some(writer.into_bytes()?);
                Ok(())
            }
        }
    }

    fn apply_to<M: ModuleSnapshot>(&mut self, module: &mut M) -> Result<ApplyResult, Error> {
        let tensors = self.read()?;
        self.options.apply(tensors, module).map_err(|unfit| Error::ValidationError(format!("{}: does not fit the module: {unfit}", self.name())))
    }

    fn get_all_tensors(&mut self) -> Result<&BTreeMap<String, Tensor>, Error> {
        if self.tensors.is_none() {
            self.tensors = Some(self.read()?.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect());
        }
        Ok(self.tensors.as_ref().expect("they were read above"))
    }
}
