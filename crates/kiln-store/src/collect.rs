//! From a module to stored tensors.

use kiln_module::module::{ModuleVisitor, Param};
use kiln_tensor::{Bool, Int, Tensor};

use crate::place::Place;
use crate::{ModuleAdapter, PathFilter, bridge, burn_pack};

/// Collects the parameters of a module as stored tensors, in the order of visits. Their data is read from the device when their bytes are asked
/// for.
#[derive(Default)]
pub struct Collector {
    /// The tensors collected so far.
    pub tensors: Vec<burn_pack::Tensor>,
    filter: Option<PathFilter>,
    adapter: Option<Box<dyn ModuleAdapter>>,
    place: Place,
}

impl Collector {
    /// A collector of the parameters that `filter` chooses (all without one), changed by `adapter`. With `skip_enum_variants`, the names of enum
    /// variants are left out of paths.
    pub fn new(filter: Option<PathFilter>, adapter: Option<Box<dyn ModuleAdapter>>, skip_enum_variants: bool) -> Self {
        Self { tensors: Vec::new(), filter, adapter, place: Place::new(skip_enum_variants) }
    }

    /// The tensors.
    pub fn into_tensors(self) -> Vec<burn_pack::Tensor> {
        self.tensors
    }

    fn add(&mut self, tensor: impl FnOnce(String) -> burn_pack::Tensor) {
        let path = self.place.path();
        if self.filter.as_ref().is_some_and(|filter| !filter.matches_with_container_path_str(&path, &self.place.container_path())) {
            return;
        }
        let tensor = tensor(path);
        self.tensors.push(match &self.adapter {
            Some(adapter) => adapter.adapt(tensor, self.place.context()),
            None => tensor,
        });
    }
}

impl ModuleVisitor for Collector {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.place.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.place.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.add(|path| bridge::from_tensor(&param.transform_for_save().val(), path, Some(param.id.val())));
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add(|path| bridge::from_tensor(&param.transform_for_save().val(), path, Some(param.id.val())));
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.add(|path| bridge::from_tensor(&param.transform_for_save().val(), path, Some(param.id.val())));
    }
}
