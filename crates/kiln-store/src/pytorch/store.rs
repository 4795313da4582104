//! PyTorch files as a store that modules are loaded from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fmt, io};

use regex::Regex;

use super::{PytorchError, PytorchReader};
use crate::burn_pack::Tensor;
use crate::burnpack_store::added;
use crate::options::{Options, Renumber};
use crate::{ApplyResult, KeyRemapper, ModuleSnapshot, ModuleStore, PathFilter, PyTorchToBurnAdapter};

/// A file of `torch.save` that modules are loaded from: a state dict, or what holds one.
///
/// Tensors are brought into the form that modules have ([`PyTorchToBurnAdapter`]), and the indices of a `Sequential`, which count members without
/// parameters too, are renumbered without gaps. By default a module must be wholly in the file and fit it. Files can't be written.
///
/// ```no_run
/// use kiln_store::{ModuleSnapshot, PytorchStore};
/// # fn load(mut model: impl ModuleSnapshot) -> Result<(), kiln_store::PytorchStoreError> {
/// let mut store = PytorchStore::from_file("checkpoint.pt").with_top_level_key("state_dict").with_key_remapping(r"^module\.", "");
/// let result = model.load_from(&mut store)?;
/// println!("{result}");
/// # Ok(())
/// # }
/// ```
pub struct PytorchStore {
    path: PathBuf,
    top_level_key: Option<String>,
    options: Options,
    /// The tensors of the file, once they were read.
    tensors: Option<BTreeMap<String, Tensor>>,
}

/// A PyTorch file could not be loaded.
#[derive(Debug)]
pub enum PytorchStoreError {
    /// The file cannot be read.
    Reader(PytorchError),
    /// The system refuses.
    Io(io::Error),
    /// The file has no such tensor.
    TensorNotFound(String),
    /// The file does not fit the module: how.
    ValidationFailed(String),
    /// Something else.
    Other(String),
}

impl fmt::Display for PytorchStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reader(error) => write!(f, "{error}"),
            Self::Io(error) => write!(f, "{error}"),
            Self::TensorNotFound(name) => write!(f, "no tensor `{name}`"),
            Self::ValidationFailed(how) => write!(f, "does not fit the module: {how}"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for PytorchStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Reader(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::TensorNotFound(_) | Self::ValidationFailed(_) | Self::Other(_) => None,
        }
    }
}

impl From<PytorchError> for PytorchStoreError {
    fn from(error: PytorchError) -> Self {
        Self::Reader(error)
    }
}

impl From<io::Error> for PytorchStoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl PytorchStore {
    /// The file at `path`.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        let mut options = Options::new(BTreeMap::new());
        options.renumber = Renumber::Always;
        options.from_adapter = Some(Box::new(PyTorchToBurnAdapter));
        Self { path: path.into(), top_level_key: None, options, tensors: None }
    }

    fn with(mut self, change: impl FnOnce(&mut Options)) -> Self {
        self.tensors = None;
        change(&mut self.options);
        self
    }

    fn with_filter(self, change: impl FnOnce(PathFilter) -> PathFilter) -> Self {
        self.with(|options| options.filter = change(std::mem::take(&mut options.filter)))
    }

    /// Loads what lies under a key of the outermost dictionary, such as `state_dict`.
    pub fn with_top_level_key(mut self, key: impl Into<String>) -> Self {
        self.tensors = None;
        self.top_level_key = Some(key.into());
        self
    }

    /// Loads only what `filter` chooses, by the module's paths.
    pub fn filter(self, filter: PathFilter) -> Self {
        self.with_filter(|_| filter)
    }

    /// Also loads paths in which `pattern` matches; without any filter, everything is.
    ///
    /// # Panics
    ///
    /// If `pattern` is no regular expression.
    #[track_caller]
    pub fn with_regex<S: AsRef<str>>(self, pattern: S) -> Self {
        self.with_filter(|filter| filter.with_regex(pattern))
    }

    /// Also loads paths in which any of `patterns` matches.
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

    /// Also loads this path.
    pub fn with_full_path<S: Into<String>>(self, path: S) -> Self {
        self.with_filter(|filter| filter.with_full_path(path))
    }

    /// Also loads these paths.
    pub fn with_full_paths<I, S>(self, paths: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        self.with_filter(|filter| filter.with_full_paths(paths))
    }

    /// Also loads where `predicate` holds for the path and the types of the modules around it.
    pub fn with_predicate(self, predicate: fn(&str, &str) -> bool) -> Self {
        self.with_filter(|filter| filter.with_predicate(predicate))
    }

    /// Also loads where any of `predicates` holds.
    pub fn with_predicates<I>(self, predicates: I) -> Self
    where
        I: IntoIterator<Item = fn(&str, &str) -> bool>,
    {
        self.with_filter(|filter| filter.with_predicates(predicates))
    }

    /// Loads everything.
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
    #[track_caller]
    pub fn with_key_remapping(self, from_pattern: impl AsRef<str>, to_pattern: impl Into<String>) -> Self {
        self.with(|options| options.remapper = added(std::mem::take(&mut options.remapper), from_pattern.as_ref(), to_pattern.into()))
    }

    /// Whether tensors that do not fit their parameters are an error. By default they are.
    pub fn validate(self, validate: bool) -> Self {
        self.with(|options| options.validate = validate)
    }

    /// Whether parameters that the file lacks keep their values instead of being an error.
    pub fn allow_partial(self, allow: bool) -> Self {
        self.with(|options| options.allow_partial = allow)
    }

    /// Whether the names of enum variants are left out of paths, as files of PyTorch know no such enums.
    pub fn skip_enum_variants(self, skip: bool) -> Self {
        self.with(|options| options.skip_enum_variants = skip)
    }

    /// Whether indices in the file's paths are renumbered without gaps: see [`map_indices_contiguous`](crate::map_indices_contiguous). By default
    /// they are.
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

    fn read(&self) -> Result<Vec<Tensor>, PytorchError> {
        let reader = match &self.top_level_key {
            Some(key) => PytorchReader::with_top_level_key(&self.path, key)?,
            None => PytorchReader::new(&self.path)?,
        };
        let tensors = reader.tensors().map(|tensor| tensor.clone().into_pack()).collect();
        Ok(self.options.named(tensors))
    }
}

impl ModuleStore for PytorchStore {
    type Error = PytorchStoreError;

    /// Files of PyTorch can't be written.
    fn collect_from<M: ModuleSnapshot>(&mut self, _module: &M) -> Result<(), PytorchStoreError> {
        let path = self.path.display();
        let how = "can't be written: save safetensors with `BurnToPyTorchAdapter` instead, which PyTorch reads";
        Err(PytorchStoreError::Other(format!("{path}: files of PyTorch {how}")))
    }

    fn apply_to<M: ModuleSnapshot>(&mut self, module: &mut M) -> Result<ApplyResult, PytorchStoreError> {
        let tensors = self.read()?;
        let unfit = |how| PytorchStoreError::ValidationFailed(format!("{}: {how}", self.path.display()));
        self.options.apply(tensors, module).map_err(unfit)
    }

    fn get_all_tensors(&mut self) -> Result<&BTreeMap<String, Tensor>, PytorchStoreError> {
        if self.tensors.is_none() {
            self.tensors = Some(self.read()?.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect());
        }
        Ok(self.tensors.as_ref().expect("they were read above"))
    }
}
