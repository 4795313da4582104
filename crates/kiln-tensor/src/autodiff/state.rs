//! Whether a tensor takes part in autodiff: requiring gradients, cutting the graph, changing the context.
use super::Entry;
use crate::device::GradientCheckpointingStrategy;
use crate::raw::RawTensor;

impl RawTensor {
    /// Makes this a leaf that retains its gradient.
    ///
    /// A quantized tensor has no gradient and stays as it is. Panics at the caller on a tensor without autodiff, and on one that was computed from others that
    /// require gradients.
    #[track_caller]
    pub fn require_grad(self) -> RawTensor {
        match &self.tape {
            _ if self.is_quantized() => self,
            Some(entry) if entry.leaf => self,
            Some(_) => panic!("require_grad: the tensor was computed from tensors that require gradients: detach it first: shape {:?}", self.dims()),
            None if !self.context.autodiff => {
                panic!("require_grad: autodiff is off for this tensor: make it on `device.autodiff()`: shape {:?}", self.dims())
            }
            None if !self.dtype().is_float() => panic!("require_grad: {} tensors have no gradient: shape {:?}", self.dtype(), self.dims()),
            None => RawTensor { tape: Some(Entry::leaf()), ..self },
        }
    }

    /// [`RawTensor::require_grad`], or the tensor cut off its graph and without gradient.
    #[track_caller]
    pub fn set_require_grad(self, require_grad: bool) -> RawTensor {
        if require_grad { self.require_grad() } else { RawTensor { tape: None, ..self } }
    }

    /// Whether this is a leaf that retains its gradient.
    pub fn is_require_grad(&self) -> bool {
        self.tape.as_ref().is_some_and(|e| e.leaf)
    }

    /// Whether a gradient may flow through this tensor. Stays true after a backward pass.
    pub fn is_tracked(&self) -> bool {
        self.tape.is_some()
    }

    /// Cuts the graph. A leaf becomes another leaf with a gradient of its own.
    pub fn detach(self) -> RawTensor {
        let tape = self.is_require_grad().then(Entry::leaf);
        RawTensor { tape, ..self }
    }

    /// Whether the tensor takes part in autodiff.
    pub fn is_autodiff(&self) -> bool {
        self.context.autodiff
    }

    /// The same elements without autodiff.
    pub fn without_autodiff(self) -> RawTensor {
        RawTensor { tape: None, context: self.context.without_autodiff(), ..self }
    }

    /// The same elements taking part in autodiff; nothing changes if they do already.
    pub fn autodiff(mut self) -> RawTensor {
        self.context.autodiff = true;
        self
    }

    /// What is kept for the backward pass; `None` without autodiff.
    pub fn gradient_checkpointing_strategy(&self) -> Option<GradientCheckpointingStrategy> {
        self.context.autodiff.then_some(self.context.checkpointing)
    }

    /// The tensor with another strategy for what is kept, which what is computed from it takes over.
    ///
    /// Panics at the caller on a tensor without autodiff.
    #[track_caller]
    pub fn with_gradient_checkpointing_strategy(mut self, strategy: GradientCheckpointingStrategy) -> RawTensor {
        if !self.context.autodiff {
            panic!("with_gradient_checkpointing_strategy: autodiff is off for this tensor: shape {:?}", self.dims());
        }
        self.context.checkpointing = strategy;
        self
    }

    /// Marks this leaf as the copy of a parameter that other devices have too.
    ///
    /// Panics at the caller on a tensor that is no leaf, and on a copy of another parameter.
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn set_distributed(self, param: crate::distributed::DistributedParamId) -> RawTensor {
        let Some(entry) = self.tape.as_ref().filter(|entry| entry.leaf) else {
            panic!("set_distributed: the tensor retains no gradient: call require_grad first: shape {:?}", self.dims());
        };
        let known = *entry.distributed.get_or_init(|| param);
        if known != param {
            panic!("set_distributed: the tensor is a copy of parameter {} already, not of {}: shape {:?}", known.value, param.value, self.dims());
        }
        self
    }

    /// The parameter that this leaf is a copy of.
    #[cfg(feature = "std")]
    pub fn distributed(&self) -> Option<crate::distributed::DistributedParamId> {
        self.tape.as_ref().and_then(|entry| entry.distributed.get().copied())
    }

    /// The number of the leaf this is, under which [`Gradients`](super::Gradients) keeps its gradient.
    pub fn leaf_id(&self) -> Option<u64> {
        self.tape.as_ref().filter(|e| e.leaf).map(|e| e.id)
    }
}
