//! `Gradients`: what a backward pass gives.
use alloc::collections::BTreeMap;

use crate::raw::RawTensor;

/// Gradients of the tensors that retain them, in the order those were made.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    by_leaf: BTreeMap<u64, RawTensor>,
}

impl Gradients {
    /// No gradients.
    pub fn new() -> Self {
        Self::default()
    }

    /// The gradient of a tensor, if it retains one and the graph reached it.
    pub fn get(&self, leaf: &RawTensor) -> Option<&RawTensor> {
        self.by_leaf.get(&leaf.leaf_id()?)
    }

    /// Takes the gradient of a tensor out.
    pub fn remove(&mut self, leaf: &RawTensor) -> Option<RawTensor> {
        self.by_leaf.remove(&leaf.leaf_id()?)
    }

    /// Sets the gradient of a tensor that retains one.
    ///
    /// Panics at the caller if it retains none, or the sizes differ.
    #[track_caller]
    pub fn replace(&mut self, leaf: &RawTensor, grad: RawTensor) {
        let Some(id) = leaf.leaf_id() else {
            panic!("grad_replace: the tensor retains no gradient: call require_grad first: shape {:?}", leaf.dims());
        };
        if leaf.dims() != grad.dims() {
            panic!("grad_replace: shapes differ: tensor {:?}, gradient {:?}", leaf.dims(), grad.dims());
        }
        self.by_leaf.insert(id, grad.without_autodiff());
    }

    /// Number of gradients.
    pub fn len(&self) -> usize {
        self.by_leaf.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_leaf.is_empty()
    }

    /// Every gradient with the number of its leaf ([`RawTensor::leaf_id`]), oldest leaf first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &RawTensor)> {
        self.by_leaf.iter().map(|(id, g)| (*id, g))
    }

    /// The gradient of the leaf of this number.
    #[cfg(feature = "std")]
    pub(crate) fn by_number(&self, leaf: u64) -> Option<&RawTensor> {
        self.by_leaf.get(&leaf)
    }

    pub(crate) fn insert(&mut self, id: u64, grad: RawTensor) {
        self.by_leaf.insert(id, grad);
    }
}
