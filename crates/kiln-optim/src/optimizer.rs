//! The algorithm of an optimizer, for one tensor.

use kiln_tensor::{Device, Tensor};

use crate::{LearningRate, RecordState};

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
}
