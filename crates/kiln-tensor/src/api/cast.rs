//! Casts between element types and kinds.

use super::Tensor;
use super::kind::{Basic, Bool, Float, Int, Kind};
use crate::dtype::{DType, FloatDType, IntDType};

/// A type that tensors of kind `K` can be cast to; it determines the kind of the result.
pub trait Cast<const D: usize, K: Basic> {
    /// The kind of the result.
    type OutputKind: Basic;

    /// Casts the tensor.
    ///
    /// # Panics
    /// When the type is not of the result's kind, or the device does not have it.
    fn cast(tensor: Tensor<D, K>, dtype: Self) -> Tensor<D, Self::OutputKind>;
}

#[track_caller]
fn cast<const D: usize, K: Basic, K2: Basic>(tensor: Tensor<D, K>, dtype: DType) -> Tensor<D, K2> {
    Tensor::from_raw(tensor.raw.cast_to(dtype))
}

/// A cast to a type that has one kind.
macro_rules! to_kind {
    ($($from:ident, $dtype:ident, $to:ident;)*) => {$(
        impl<const D: usize> Cast<D, $from> for $dtype {
            type OutputKind = $to;

            #[track_caller]
            fn cast(tensor: Tensor<D, $from>, dtype: Self) -> Tensor<D, $to> {
                cast(tensor, dtype.into())
            }
        }
    )*};
}
to_kind! {
    Float, FloatDType, Float;
    Float, IntDType, Int;
    Int, FloatDType, Float;
    Int, IntDType, Int;
    Bool, FloatDType, Float;
    Bool, IntDType, Int;
}

/// A cast to any type of the tensor's own kind.
macro_rules! within_kind {
    ($($kind:ident),*) => {$(
        impl<const D: usize> Cast<D, $kind> for DType {
            type OutputKind = $kind;

            #[track_caller]
            fn cast(tensor: Tensor<D, $kind>, dtype: Self) -> Tensor<D, $kind> {
                let kind = Kind::$kind;
                assert!(
                    kind.contains(dtype),
                    "cast: {} is no element type of {} tensors: use a FloatDType or an IntDType: shape {:?}",
                    dtype.name(),
                    kind.as_str(),
                    tensor.raw.dims()
                );
                cast(tensor, dtype)
            }
        }
    )*};
}
within_kind!(Float, Int);

impl<const D: usize> Tensor<D, Float> {
    /// The elements in another type: a [`FloatDType`], an [`IntDType`] (which gives an integer tensor), or a float [`DType`].
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, FloatDType, Int, IntDType, Tensor};
    /// let x = Tensor::<1>::from_data([1.5, -2.5], &Device::default());
    /// assert_eq!(x.clone().cast(FloatDType::F64).dtype(), DType::F64);
    /// let y: Tensor<1, Int> = x.cast(IntDType::I8);
    /// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [1, -2]);
    /// ```
    ///
    /// # Panics
    /// When the type is a [`DType`] that is no float type, or the device does not have it.
    #[track_caller]
    pub fn cast<T: Cast<D, Float>>(self, dtype: T) -> Tensor<D, T::OutputKind> {
        T::cast(self, dtype)
    }
}

impl<const D: usize> Tensor<D, Int> {
    /// The elements in another type: an [`IntDType`], a [`FloatDType`] (which gives a float tensor), or an integer [`DType`].
    ///
    /// ```
    /// use kiln_tensor::{Device, Int, IntDType, Tensor};
    /// let x = Tensor::<1, Int>::from_data([300, -1], &Device::default());
    /// assert_eq!(x.cast(IntDType::U8).try_to_vec_as::<i32>().unwrap(), [44, 255]);
    /// ```
    ///
    /// # Panics
    /// When the type is a [`DType`] that is no integer type, or the device does not have it.
    #[track_caller]
    pub fn cast<T: Cast<D, Int>>(self, dtype: T) -> Tensor<D, T::OutputKind> {
        T::cast(self, dtype)
    }
}

impl<const D: usize> Tensor<D, Bool> {
    /// Ones and zeros of an [`IntDType`] or a [`FloatDType`].
    ///
    /// ```
    /// use kiln_tensor::{Bool, Device, FloatDType, Tensor};
    /// let x = Tensor::<1, Bool>::from_data([true, false], &Device::default());
    /// assert_eq!(x.cast(FloatDType::F32).try_to_vec_as::<f32>().unwrap(), [1.0, 0.0]);
    /// ```
    ///
    /// # Panics
    /// When the device does not have the type.
    #[track_caller]
    pub fn cast<T: Cast<D, Bool>>(self, dtype: T) -> Tensor<D, T::OutputKind> {
        T::cast(self, dtype)
    }
}
