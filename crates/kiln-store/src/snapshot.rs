//! A module's parameters, out of it and back into it.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};

use kiln_module::module::Module;

use crate::{Applier, ApplyResult, Collector, ModuleAdapter, PathFilter, burn_pack};

/// Takes a module's parameters as stored tensors and gives them back. Every module has it.
pub trait ModuleSnapshot: Module {
    /// The parameters that `filter` chooses (all without one), changed by `adapter`, as stored tensors in the order of visits. With
    /// `skip_enum_variants`, the names of enum variants are left out of paths. Data is read from the device when a tensor's bytes are asked for.
    fn collect(&self, filter: Option<PathFilter>, adapter: Option<Box<dyn ModuleAdapter>>, skip_enum_variants: bool) -> Vec<burn_pack::Tensor> {
        let mut collector = Collector::new(filter, adapter, skip_enum_variants);
        self.visit(&mut collector);
        collector.into_tensors()
    }

    /// Gives the parameters that `filter` chooses the stored tensors of their paths, changed by `adapter`. A parameter whose tensor is missing or
    /// does not fit keeps its value; the result says which.
    fn apply(
        &mut self,
        tensors: Vec<burn_pack::Tensor>,
        filter: Option<PathFilter>,
        adapter: Option<Box<dyn ModuleAdapter>>,
        skip_enum_variants: bool,
    ) -> ApplyResult
    where
        Self: Sized,
    {
        let mut applier = Applier::new(tensors, filter, adapter, skip_enum_variants);
        *self = self.clone().map(&mut applier);
        applier.into_result()
    }

    /// Saves the module.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    fn save_into<P>(&self, store: &mut P) -> Result<(), P::Error>
    where
        P: ModuleStore,
    {
        store.collect_from(self)
    }

    /// Loads the module.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or what it holds does not fit the module and the store was not told to allow that.
    fn load_from<P>(&mut self, store: &mut P) -> Result<ApplyResult, P::Error>
    where
        P: ModuleStore,
    {
        store.apply_to(self)
    }
}

impl<M: Module> ModuleSnapshot for M {}

/// Where stored tensors are kept.
pub trait ModuleStore {
    /// Why a store cannot be read or written.
    type Error: Debug + Display;

    /// Saves a module.
    ///
    /// # Errors
    ///
    /// The store cannot be written.
    fn collect_from<M: ModuleSnapshot>(&mut self, module: &M) -> Result<(), Self::Error>;

    /// Loads a module.
    ///
    /// # Errors
    ///
    /// The store cannot be read, or what it holds does not fit the module and that is not allowed.
    fn apply_to<M: ModuleSnapshot>(&mut self, module: &mut M) -> Result<ApplyResult, Self::Error>;

    /// The stored tensor `name`, under the name that a module knows it by.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn get_tensor(&mut self, name: &str) -> Result<Option<&burn_pack::Tensor>, Self::Error> {
        Ok(self.get_all_tensors()?.get(name))
    }

    /// All stored tensors by name.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn get_all_tensors(&mut self) -> Result<&BTreeMap<String, burn_pack::Tensor>, Self::Error>;

    /// The names of all stored tensors.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    fn keys(&mut self) -> Result<Vec<String>, Self::Error> {
        Ok(self.get_all_tensors()?.keys().cloned().collect())
    }
}
