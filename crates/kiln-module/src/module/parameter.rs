//! What a `Param` can hold.

use core::fmt::Debug;

use kiln_tensor::{Bool, Device, Int, Shape, Tensor};

/// Keeps the set of parameter values closed.
pub mod sealed {
    /// How a value answers to training.
    pub trait Sealed: Sized + Sync + 'static {
        /// True if the value asks to be trained (a tensor that keeps its gradient, a flag that is on).
        fn trainable(&self) -> bool;

        /// Brings a value that a mapping returned in line with the configured trainability; returns both.
        ///
        /// A trainable tensor on an autodiff device must be a leaf that keeps its gradient: one that a mapping derived
        /// from the old leaf is cut from it here, or it would silently never be trained again.
        fn settle(self, trainable: bool) -> (Self, bool);

        /// The value that a reparameterization makes of this one. Only float tensors can have one.
        fn reparameterized(self, by: &dyn super::super::held::Held) -> Self {
            let _ = by;
            self
        }

        /// True if the value was deliberately made one that is not trained, although it could be.
        fn switched_off(&self) -> bool {
            false
        }
    }
}
use sealed::Sealed;

/// A value that a [`Param`](super::Param) can hold: a tensor of any kind, or a [`Flag`](super::Flag).
pub trait ParameterValue: Sealed + Clone + Debug + Send {}

/// A tensor that a [`Param`](super::Param) can hold.
pub trait Parameter: ParameterValue {
    /// True if the gradient of this tensor is kept.
    fn is_require_grad(&self) -> bool;

    /// The tensor with its gradient kept, or cut from the graph. A tensor without autodiff is returned as it is.
    #[must_use]
    fn set_require_grad(self, require_grad: bool) -> Self;

    /// The device of the tensor.
    fn device(&self) -> Device;

    /// The shape of the tensor.
    fn shape(&self) -> Shape;

    /// The tensor as an independent value on `device`, outside any graph.
    #[must_use]
    fn load_to_device(self, device: &Device) -> Self;
}

impl<const D: usize> Sealed for Tensor<D> {
    fn trainable(&self) -> bool {
        self.is_require_grad()
    }

    fn settle(self, trainable: bool) -> (Self, bool) {
        if self.as_raw().is_quantized() {
            // Codes have no gradient.
            return (self, false);
        }
        if !trainable {
            let trainable = self.is_require_grad();
            return (self, trainable);
        }
        if self.is_autodiff() && !self.is_require_grad() {
            return (self.detach().require_grad(), true);
        }
        (self, true)
    }

    fn reparameterized(self, by: &dyn super::held::Held) -> Self {
        Self::from_raw(by.apply(D, self.into_raw()))
    }

    fn switched_off(&self) -> bool {
        self.is_autodiff() && !self.is_require_grad() && !self.is_tracked()
    }
}

impl<const D: usize> ParameterValue for Tensor<D> {}

impl<const D: usize> Parameter for Tensor<D> {
    fn is_require_grad(&self) -> bool {
        Tensor::is_require_grad(self)
    }

    fn set_require_grad(self, require_grad: bool) -> Self {
        if !self.is_autodiff() || Tensor::is_require_grad(&self) == require_grad {
            return self;
        }
        if require_grad {
            // Only a leaf can keep its gradient.
            self.detach().require_grad()
        } else {
            Tensor::set_require_grad(self, false)
        }
    }

    fn device(&self) -> Device {
        Tensor::device(self)
    }

    fn shape(&self) -> Shape {
        Tensor::shape(self)
    }

    fn load_to_device(self, device: &Device) -> Self {
        let tensor = self.without_autodiff().to_device(device);
        if device.is_autodiff() { tensor.autodiff() } else { tensor }
    }
}

macro_rules! without_gradient {
    ($($kind:ty),*) => {$(
        impl<const D: usize> Sealed for Tensor<D, $kind> {
            fn trainable(&self) -> bool {
                false
            }

            fn settle(self, _trainable: bool) -> (Self, bool) {
                (self, false)
            }
        }

        impl<const D: usize> ParameterValue for Tensor<D, $kind> {}

        impl<const D: usize> Parameter for Tensor<D, $kind> {
            fn is_require_grad(&self) -> bool {
                false
            }

            fn set_require_grad(self, _require_grad: bool) -> Self {
                self
            }

            fn device(&self) -> Device {
                Tensor::device(self)
            }

            fn shape(&self) -> Shape {
                Tensor::shape(self)
            }

            fn load_to_device(self, device: &Device) -> Self {
                let tensor = self.without_autodiff().to_device(device);
                if device.is_autodiff() {
                    tensor.autodiff()
                } else {
                    tensor
                }
            }
        }
    )*};
}

without_gradient!(Int, Bool);
