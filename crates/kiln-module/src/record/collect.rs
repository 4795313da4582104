//! From a module to its record.

use alloc::string::String;
use alloc::vec::Vec;

use kiln_tensor::{Bool, Int, Tensor, TensorData};

use crate::module::{ModuleVisitor, Param, ParamGroup, ParamId};

/// The values of the parameters of a group, with path and id, in the order of declaration.
pub(super) struct Collect<'a> {
    group: &'a ParamGroup,
    path: Vec<String>,
    pub(super) found: Vec<(String, ParamId, TensorData)>,
}

impl<'a> Collect<'a> {
    pub(super) fn new(group: &'a ParamGroup) -> Self {
        Self { group, path: Vec::new(), found: Vec::new() }
    }

    fn add(&mut self, id: ParamId, data: impl FnOnce() -> TensorData) {
        let path = self.path.join(".");
        if self.group.matches(&id, Some(&path)) {
            self.found.push((path, id, data()));
        }
    }
}

impl ModuleVisitor for Collect<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.add(param.id, || param.transform_for_save().into_value().into_data());
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.add(param.id, || param.transform_for_save().into_value().into_data());
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.add(param.id, || param.transform_for_save().into_value().into_data());
    }
}
