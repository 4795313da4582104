//! Gradients: which tensors take part in autodiff, and what a backward pass gives.

use super::Tensor;
use super::kind::{Autodiff, Float};
use crate::autodiff::Gradients;
use crate::device::GradientCheckpointingStrategy;

impl<const D: usize> Tensor<D, Float> {
    /// The gradients of the sum of this tensor's elements for every tensor that requires one. Consumes the graph: a second pass over a part of
    /// it panics.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([2.0, 3.0], &device).require_grad();
    /// let gradients = (x.clone() * x.clone()).sum().backward();
    /// assert_eq!(x.grad(&gradients).unwrap().try_to_vec_as::<f32>().unwrap(), [4.0, 6.0]);
    /// ```
    ///
    /// # Panics
    /// When the tensor depends on none that requires a gradient, or the graph is consumed.
    #[track_caller]
    pub fn backward(&self) -> Gradients {
        self.raw.backward()
    }

    /// The gradient of this tensor, if it requires one and the backward pass reached it. The gradient is not tracked.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// let gradients = x.clone().square().sum().backward();
    /// assert_eq!(x.grad(&gradients).unwrap().try_to_vec_as::<f32>().unwrap(), [2.0, 6.0]);
    /// ```
    pub fn grad(&self, grads: &Gradients) -> Option<Tensor<D>> {
        grads.get(&self.raw).cloned().map(Tensor::from_raw)
    }

    /// The gradient of this tensor, taken out of the gradients.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// let mut gradients = x.clone().square().sum().backward();
    /// assert!(x.grad_remove(&mut gradients).is_some());
    /// assert!(x.grad(&gradients).is_none());
    /// ```
    pub fn grad_remove(&self, grads: &mut Gradients) -> Option<Tensor<D>> {
        grads.remove(&self.raw).map(Tensor::from_raw)
    }

    /// Replaces the gradient of this tensor.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// let mut gradients = x.clone().square().sum().backward();
    /// x.grad_replace(&mut gradients, Tensor::from_data([7.0, 8.0], &device.inner()));
    /// assert_eq!(x.grad(&gradients).unwrap().try_to_vec_as::<f32>().unwrap(), [7.0, 8.0]);
    /// ```
    ///
    /// # Panics
    /// When the tensor requires no gradient or the shapes differ.
    #[track_caller]
    pub fn grad_replace(&self, grads: &mut Gradients, grad: Tensor<D>) {
        grads.replace(&self.raw, grad.raw);
    }

    /// Whether gradients may flow through this tensor. It stays true after a backward pass.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// assert!(x.clone().exp().is_tracked());
    /// assert!(!Tensor::<1>::ones([2], &device).is_tracked());
    /// ```
    pub fn is_tracked(&self) -> bool {
        self.raw.is_tracked()
    }

    /// The tensor cut off the graph it was computed by. One that requires a gradient becomes another that does.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([2.0], &device).require_grad();
    /// assert!(!(x * 2).detach().is_tracked());
    /// ```
    pub fn detach(self) -> Self {
        Self::from_raw(self.raw.detach())
    }

    /// Marks the tensor as one whose gradient is kept.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// assert!(x.is_require_grad());
    /// ```
    ///
    /// # Panics
    /// When the tensor does not take part in autodiff, or was computed from tensors that require gradients.
    #[track_caller]
    pub fn require_grad(self) -> Self {
        Self::from_raw(self.raw.require_grad())
    }

    /// Whether the gradient of this tensor is kept.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// assert!(x.is_require_grad() && !x.exp().is_require_grad());
    /// ```
    pub fn is_require_grad(&self) -> bool {
        self.raw.is_require_grad()
    }

    /// [`require_grad`](Self::require_grad), or the tensor cut off its graph without a gradient.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// assert!(!x.set_require_grad(false).is_require_grad());
    /// ```
    ///
    /// # Panics
    /// As [`require_grad`](Self::require_grad), when `require_grad` is true.
    #[track_caller]
    pub fn set_require_grad(self, require_grad: bool) -> Self {
        Self::from_raw(self.raw.set_require_grad(require_grad))
    }
}

impl<const D: usize, K: Autodiff> Tensor<D, K> {
    /// Whether the tensor takes part in autodiff.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0], &Device::default());
    /// assert!(!x.is_autodiff());
    /// assert!(x.autodiff().is_autodiff());
    /// ```
    pub fn is_autodiff(&self) -> bool {
        self.raw.is_autodiff()
    }

    /// The tensor without autodiff: the same as [`without_autodiff`](Self::without_autodiff).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// assert!(!x.inner().is_autodiff());
    /// ```
    pub fn inner(self) -> Tensor<D, K> {
        self.without_autodiff()
    }

    /// The tensor without autodiff and without its graph.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let device = Device::default().autodiff();
    /// let x = Tensor::<1>::from_data([1.0, 3.0], &device).require_grad();
    /// assert!(!x.without_autodiff().is_autodiff());
    /// ```
    pub fn without_autodiff(self) -> Self {
        Self::from_raw(self.raw.without_autodiff())
    }

    /// The tensor taking part in autodiff; nothing changes if it does already.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert!(x.autodiff().is_autodiff());
    /// ```
    pub fn autodiff(self) -> Self {
        Self::from_raw(self.raw.autodiff())
    }

    /// The tensor taking part in autodiff: the same as [`autodiff`](Self::autodiff).
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert!(Tensor::from_inner(x).is_autodiff());
    /// ```
    pub fn from_inner(inner: Tensor<D, K>) -> Self {
        inner.autodiff()
    }

    /// What is kept for the backward pass; `None` without autodiff.
    ///
    /// ```
    /// use kiln_tensor::{Device, GradientCheckpointingStrategy, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert_eq!(x.gradient_checkpointing_strategy(), None);
    /// assert_eq!(x.autodiff().gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Disabled));
    /// ```
    pub fn gradient_checkpointing_strategy(&self) -> Option<GradientCheckpointingStrategy> {
        self.raw.gradient_checkpointing_strategy()
    }

    /// The tensor with another strategy for what is kept, which what is computed from it takes over.
    ///
    /// ```
    /// use kiln_tensor::{Device, GradientCheckpointingStrategy, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// let x = x.autodiff().with_gradient_checkpointing_strategy(GradientCheckpointingStrategy::Balanced);
    /// assert_eq!(x.exp().gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Balanced));
    /// ```
    ///
    /// # Panics
    /// When the tensor does not take part in autodiff.
    #[track_caller]
    pub fn with_gradient_checkpointing_strategy(self, strategy: GradientCheckpointingStrategy) -> Self {
        Self::from_raw(self.raw.with_gradient_checkpointing_strategy(strategy))
    }
}
