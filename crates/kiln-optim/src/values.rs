//! Arithmetic of steps on tensors whose rank is a value: what a step computes is compiled once, and not for each of eleven ranks.
use core::ops::{Add, Div, Mul, Sub};

use kiln_tensor::Tensor;
use kiln_tensor::raw::RawTensor;

/// A float tensor of any rank.
#[derive(Clone)]
pub(crate) struct Values(RawTensor);

impl<const D: usize> From<Tensor<D>> for Values {
    fn from(tensor: Tensor<D>) -> Self {
        Self(tensor.into_raw())
    }
}

impl Values {
    /// The tensor with its rank, which is what it was before the step.
    #[track_caller]
    pub(crate) fn typed<const D: usize>(self) -> Tensor<D> {
        Tensor::from_raw(self.0)
    }

    #[track_caller]
    pub(crate) fn square(&self) -> Self {
        Self(self.0.square())
    }

    #[track_caller]
    pub(crate) fn sqrt(&self) -> Self {
        Self(self.0.sqrt())
    }

    #[track_caller]
    pub(crate) fn neg(&self) -> Self {
        Self(self.0.neg())
    }

    #[track_caller]
    pub(crate) fn max_pair(&self, other: &Self) -> Self {
        Self(self.0.max_pair(&other.0))
    }
}

/// Operators of two tensors, and of a tensor and a number.
macro_rules! operators {
    ($($trait:ident $method:ident $scalar:ident;)*) => {$(
        impl $trait for Values {
            type Output = Values;

            #[track_caller]
            fn $method(self, other: Values) -> Values {
                Values(self.0.$method(&other.0))
            }
        }

        impl $trait<f64> for Values {
            type Output = Values;

            #[track_caller]
            fn $method(self, other: f64) -> Values {
                Values(self.0.$scalar(other))
            }
        }
    )*};
}

operators! {
    Add add add_scalar;
    Sub sub sub_scalar;
    Mul mul mul_scalar;
    Div div div_scalar;
}
