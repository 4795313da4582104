//! What the stores have in common: which tensors, under which names, and what may go wrong.

use std::collections::BTreeMap;

use regex::Regex;

use crate::{ApplyResult, KeyRemapper, ModuleAdapter, ModuleSnapshot, PathFilter, burn_pack, map_indices_contiguous, map_indices_contiguous_except};

/// Whether indices in paths are renumbered when loading.
#[derive(Clone)]
pub(crate) enum Renumber {
    Never,
    Always,
    /// Except for paths that match.
    Except(Regex),
}

/// How a store treats tensors on their way.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) filter: PathFilter,
    pub(crate) remapper: KeyRemapper,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) validate: bool,
    pub(crate) allow_partial: bool,
    pub(crate) overwrite: bool,
    pub(crate) skip_enum_variants: bool,
    pub(crate) renumber: Renumber,
    pub(crate) from_adapter: Option<Box<dyn ModuleAdapter>>,
    pub(crate) to_adapter: Option<Box<dyn ModuleAdapter>>,
}

impl Options {
    pub(crate) fn new(metadata: BTreeMap<String, String>) -> Self {
        Self {
            filter: PathFilter::new(),
            remapper: KeyRemapper::new(),
            metadata,
            validate: true,
            allow_partial: false,
            overwrite: false,
            skip_enum_variants: false,
            renumber: Renumber::Never,
            from_adapter: None,
            to_adapter: None,
        }
    }

    /// The metadata that says what a file is and what wrote it.
    pub(crate) fn default_metadata(format: &str) -> BTreeMap<String, String> {
        let entries = [("format", format), ("producer", "kiln"), ("version", env!("CARGO_PKG_VERSION"))];
        entries.map(|(key, text)| (key.into(), text.into())).into()
    }

    /// Without criteria, everything is meant.
    fn filter(&self) -> Option<PathFilter> {
        (!self.filter.is_empty()).then(|| self.filter.clone())
    }

    /// The tensors of a module as they are saved.
    pub(crate) fn collect<M: ModuleSnapshot>(&self, module: &M) -> Vec<burn_pack::Tensor> {
        let tensors = module.collect(self.filter(), self.to_adapter.clone(), self.skip_enum_variants);
        self.remapper.remap(tensors).0
    }

    /// The tensors of a file under the names that a module knows them by.
    pub(crate) fn named(&self, tensors: Vec<burn_pack::Tensor>) -> Vec<burn_pack::Tensor> {
        let tensors = self.remapper.remap(tensors).0;
        match &self.renumber {
            Renumber::Never => tensors,
            Renumber::Always => map_indices_contiguous(tensors).0,
            Renumber::Except(pattern) => map_indices_contiguous_except(tensors, |path| pattern.is_match(path)).0,
        }
    }

    /// Loads a module; an error is what does not fit and is not allowed. The module is then as it was.
    pub(crate) fn apply<M: ModuleSnapshot>(&self, tensors: Vec<burn_pack::Tensor>, module: &mut M) -> Result<ApplyResult, String> {
        let mut loaded = module.clone();
        let result = loaded.apply(tensors, self.filter(), self.from_adapter.clone(), self.skip_enum_variants);
        let unfit = self.validate && !result.is_success();
        let incomplete = !self.allow_partial && !result.missing.is_empty();
        if unfit || incomplete {
            return Err(result.to_string());
        }
        *module = loaded;
        Ok(result)
    }
}
