//! The operators `+ - * / %`, `& | ^ !` and unary `-`.

use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Sub};

use kiln_ir::Elementwise;

use super::Tensor;
use super::kind::{Bool, Float, Numeric};
use crate::element::ElementConversion;

/// An operator between tensors, and between a tensor and a scalar.
macro_rules! binary {
    ($($op:ident $operator:ident $method:ident $scalar:ident;)*) => {$(
        impl<const D: usize, K: Numeric> $op for Tensor<D, K> {
            type Output = Tensor<D, K>;

            #[track_caller]
            fn $operator(self, other: Self) -> Self {
                Tensor::$method(self, other)
            }
        }

        impl<E: ElementConversion, const D: usize, K: Numeric> $op<E> for Tensor<D, K> {
            type Output = Tensor<D, K>;

            #[track_caller]
            fn $operator(self, other: E) -> Self {
                Tensor::$scalar(self, other)
            }
        }
    )*};
}
binary! {
    Add add add add_scalar;
    Sub sub sub sub_scalar;
    Mul mul mul mul_scalar;
    Div div div div_scalar;
    Rem rem remainder remainder_scalar;
}

/// Operators with a scalar on the left.
macro_rules! from_left {
    ($($t:ty),*) => {$(
        impl<const D: usize, K: Numeric> Add<Tensor<D, K>> for $t {
            type Output = Tensor<D, K>;

            #[track_caller]
            fn add(self, tensor: Tensor<D, K>) -> Tensor<D, K> {
                Tensor::add_scalar(tensor, self)
            }
        }

        impl<const D: usize, K: Numeric> Mul<Tensor<D, K>> for $t {
            type Output = Tensor<D, K>;

            #[track_caller]
            fn mul(self, tensor: Tensor<D, K>) -> Tensor<D, K> {
                Tensor::mul_scalar(tensor, self)
            }
        }

        impl<const D: usize, K: Numeric> Sub<Tensor<D, K>> for $t {
            type Output = Tensor<D, K>;

            #[track_caller]
            fn sub(self, tensor: Tensor<D, K>) -> Tensor<D, K> {
                let scalar = tensor.scalar(self);
                Tensor::from_raw(tensor.raw.scalar_with(Elementwise::Sub, scalar))
            }
        }
    )*};
}
from_left!(f32, f64, i32, i64, u32, u64);

/// Division of a scalar by a float tensor.
macro_rules! divided {
    ($($t:ty),*) => {$(
        impl<const D: usize> Div<Tensor<D, Float>> for $t {
            type Output = Tensor<D, Float>;

            #[track_caller]
            fn div(self, tensor: Tensor<D, Float>) -> Tensor<D, Float> {
                let scalar = tensor.scalar(self);
                Tensor::from_raw(tensor.raw.scalar_with(Elementwise::Div, scalar))
            }
        }
    )*};
}
divided!(f32, f64);

impl<const D: usize, K: Numeric> Neg for Tensor<D, K> {
    type Output = Tensor<D, K>;

    #[track_caller]
    fn neg(self) -> Self {
        Tensor::neg(self)
    }
}

impl<const D: usize> BitAnd for Tensor<D, Bool> {
    type Output = Self;

    #[track_caller]
    fn bitand(self, rhs: Self) -> Self {
        self.bool_and(rhs)
    }
}

impl<const D: usize> BitOr for Tensor<D, Bool> {
    type Output = Self;

    #[track_caller]
    fn bitor(self, rhs: Self) -> Self {
        self.bool_or(rhs)
    }
}

impl<const D: usize> BitXor for Tensor<D, Bool> {
    type Output = Self;

    #[track_caller]
    fn bitxor(self, rhs: Self) -> Self {
        self.bool_xor(rhs)
    }
}

impl<const D: usize> Not for Tensor<D, Bool> {
    type Output = Self;

    #[track_caller]
    fn not(self) -> Self {
        self.bool_not()
    }
}
