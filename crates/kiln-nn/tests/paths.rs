//! Parameters of golden cases by their paths in a module: filling them in, and comparing their gradients.

use kiln_module::module::{Module, ModuleMapper, ModuleVisitor, Param};
use kiln_tensor::{Gradients, Tensor};

use crate::golden::Case;
use crate::graded::{param, same_gradient};

/// A path that is walked.
#[derive(Default)]
struct Place(Vec<String>);

impl Place {
    fn name(&self) -> String {
        self.0.join(".")
    }
}

/// Gives parameters the case's tensors of their paths.
struct Fill<'a>(&'a Case, Place);

impl ModuleMapper for Fill<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.1.0.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.1.0.pop();
    }

    fn map_float<const D: usize>(&mut self, old: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let new = param::<D>(self.0, &self.1.name());
        assert_eq!(old.lazy_shape(), new.lazy_shape(), "{}", self.1.name());
        new
    }
}

/// Compares the gradients of parameters with the case's.
struct Compare<'a>(&'a Case, &'a Gradients, Place, usize);

impl ModuleVisitor for Compare<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.2.0.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.2.0.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        same_gradient(self.0, &self.2.name(), &param.val(), self.1);
        self.3 += 1;
    }
}

/// The module with the case's parameters.
pub fn filled<M: Module>(case: &Case, module: M) -> M {
    module.map(&mut Fill(case, Place::default()))
}

/// Compares the gradients of `parameters` parameters.
#[track_caller]
pub fn same_gradients<M: Module>(case: &Case, module: &M, gradients: &Gradients, parameters: usize) {
    let mut compare = Compare(case, gradients, Place::default(), 0);
    module.visit(&mut compare);
    assert_eq!(compare.3, parameters, "{}: parameters compared", case.name);
}
