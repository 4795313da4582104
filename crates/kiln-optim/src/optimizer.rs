//! The algorithm of an optimizer, for one tensor.

use alloc::vec::Vec;

use kiln_tensor::{Device, Tensor};

use crate::{DynState, LearningRate, RecordState};

/// Improves one tensor by its gradient. [`ModuleOptimizer`](crate::ModuleOptimizer) applies it to a module.
///
/// Numbers such as the learning rate go into the tensor operations as they are: they are arguments of the compiled step,
/// so that a schedule compiles nothing anew.
pub trait Optimizer: Send + Sync + Clone + 'static {
    /// What is kept from one step to the next, for a tensor of rank `D`.
    type State<const D: usize>: Clone + RecordState;

    /// The tensor and state after one step; no state on the first.
    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>);

    /// The state on another device.
    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D>;

    /// How matrices of one shape are stepped together, where that takes fewer kernels than one after the other. Nothing unless an algorithm says so.
    fn together(&self) -> Option<&dyn Together> {
        None
    }
}

/// One matrix and what its step needs.
pub struct MatrixStep {
    /// The learning rate.
    pub lr: LearningRate,
    /// The parameter.
    pub tensor: Tensor<2>,
    /// Its gradient, of the same shape.
    pub grad: Tensor<2>,
    /// Its state; none on the first step.
    pub state: Option<DynState>,
}

/// Steps matrices of one shape, dtype and device together; see [`Optimizer::together`].
pub trait Together {
    /// Each matrix and state after one step, in order.
    fn step_matrices(&self, steps: Vec<MatrixStep>) -> Vec<(Tensor<2>, DynState)>;
}
