//! The norm of all gradients of a module together.

use alloc::vec::Vec;

use kiln_module::module::{Module, ModuleVisitor, Param};
use kiln_tensor::Tensor;

use crate::grad_clipping::{factor, scaled, squares};
use crate::{GradAdaptor, GradientsParams};

impl GradientsParams {
    /// The norm of the gradients of `module` together, `√Σ g²`; zero without gradients is told by `None`.
    ///
    /// ```
    /// use kiln_module::module::{Module, Param};
    /// use kiln_optim::GradientsParams;
    /// use kiln_tensor::{Device, Tensor};
    ///
    /// #[derive(Module, Debug)]
    /// struct Pair {
    ///     a: Param<Tensor<1>>,
    ///     b: Param<Tensor<1>>,
    /// }
    ///
    /// let device = Device::default().autodiff();
    /// let pair = Pair { a: Param::from_data([3.0], &device), b: Param::from_data([4.0], &device) };
    /// let loss = (pair.a.val().square() + pair.b.val().square()).sum() * 0.5;
    /// let gradients = GradientsParams::from_grads(loss.backward(), &pair);
    /// let (gradients, norm) = gradients.clip_global_norm(&pair, 1.0);
    /// assert_eq!(norm.unwrap().into_scalar::<f32>(), 5.0);
    /// let a: f32 = gradients.get::<1>(pair.a.id).unwrap().into_scalar();
    /// assert!((a - 0.6).abs() < 1e-5);
    /// ```
    pub fn global_norm<M: Module>(&self, module: &M) -> Option<Tensor<1>> {
        let mut squares = Squares { gradients: self, of_each: Vec::new() };
        module.visit(&mut squares);
        // One sum of all squares, in place of a chain of sums that wait for each other.
        (!squares.of_each.is_empty()).then(|| Tensor::cat(squares.of_each, 0).sum().sqrt())
    }

    /// The gradients of `module`, scaled together so that their norm is at most `max_norm`, and the norm that they had; `None` without gradients.
    ///
    /// PyTorch's `clip_grad_norm_` computes the same.
    pub fn clip_global_norm<M: Module>(self, module: &M, max_norm: f32) -> (Self, Option<Tensor<1>>) {
        let Some(norm) = self.global_norm(module) else {
            return (self, None);
        };
        let mut scale = Scale { gradients: self, factor: factor(norm.clone(), max_norm) };
        module.visit(&mut scale);
        (scale.gradients, Some(norm))
    }
}

/// The sum of the squares of each gradient, on the device and of the type of the first.
struct Squares<'a> {
    gradients: &'a GradientsParams,
    of_each: Vec<Tensor<1>>,
}

impl ModuleVisitor for Squares<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else {
            return;
        };
        let squares = squares(gradient);
        let squares = match self.of_each.first() {
            Some(first) => squares.to_device(&first.device()).cast(first.dtype()),
            None => squares,
        };
        self.of_each.push(squares);
    }
}

struct Scale {
    gradients: GradientsParams,
    factor: Tensor<1>,
}

impl ModuleVisitor for Scale {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients.register(param.id, scaled(gradient, self.factor.clone()));
        }
    }
}

/// Gradients from several devices as their sums; those from one are left as they are.
pub(crate) fn summed<M: Module>(module: &M, gradients: GradAdaptor) -> GradientsParams {
    let mut summing = Summing { gradients, sums: GradientsParams::new() };
    match summing.gradients {
        GradAdaptor::Single(gradients) => gradients,
        GradAdaptor::Multi(_) => {
            module.visit(&mut summing);
            summing.sums
        }
    }
}

struct Summing {
    gradients: GradAdaptor,
    sums: GradientsParams,
}

impl ModuleVisitor for Summing {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some((gradient, _)) = self.gradients.remove::<D>(param.id) {
            self.sums.register(param.id, gradient);
        }
    }
}
