//! `Tensor`: the typed shell over the untyped core. Every method resolves its arguments and makes one call.

pub mod activation;
mod analysis;
mod arithmetic;
mod boolean;
mod bridge;
pub mod cast;
#[cfg(feature = "std")]
mod closeness;
mod comparison;
mod creation;
mod einsum;
mod float;
mod gradient;
pub mod grid;
#[cfg(any(feature = "linalg", feature = "signal"))]
mod host_float;
mod indexing;
mod integer;
pub mod kind;
#[cfg(feature = "linalg")]
pub mod linalg;
pub mod loss;
pub mod module;
mod operators;
pub mod options;
mod order;
mod part;
mod quantize;
mod reduction;
mod shape_assert;
#[cfg(feature = "signal")]
pub mod signal;
mod transfer;
mod view;

pub use bridge::{BridgeKind, BridgeTensor, DispatchAutodiffContext, DispatchDevice, DispatchTensor, DispatchTensorKind, TensorMetadata};
#[cfg(feature = "std")]
pub use closeness::check_closeness;
pub use comparison::{DEFAULT_ATOL, DEFAULT_RTOL};
pub use creation::TensorCreationOptions;
pub use einsum::{EinsumOperand, check_einsum_equation};
pub use integer::cartesian_grid;
pub use part::DimIter;
pub use shape_assert::{ShapeSlot, check_shape, shape_of_any_rank, shape_of_rank};
pub use transfer::{Transaction, read_sync, try_read_sync};

use core::fmt;
use core::marker::PhantomData;

use kind::{Basic, Float};

use crate::device::Device;
use crate::dtype::DType;
use crate::raw::RawTensor;
use crate::shape::Shape;

/// A tensor of rank `D` and kind `K` ([`Float`], [`Int`](kind::Int) or [`Bool`](kind::Bool)).
///
/// A tensor is a handle: cloning is cheap, and operations are recorded first and computed together when a value is read.
/// Operations that do not fit panic at the caller's line and name the shapes.
///
/// ```
/// use kiln_tensor::{Device, Tensor};
/// let device = Device::default();
/// let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
/// let y = (x.clone() * 2.0 + x).sum_dim(1);
/// assert_eq!(y.try_to_vec_as::<f32>().unwrap(), [9.0, 21.0]);
/// ```
pub struct Tensor<const D: usize, K = Float>
where
    K: Basic,
{
    raw: RawTensor,
    kind: PhantomData<K>,
}

impl<const D: usize, K: Basic> Clone for Tensor<D, K> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), kind: PhantomData }
    }
}

impl<const D: usize, K: Basic> fmt::Debug for Tensor<D, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{D}, {}>({:?})", K::name(), self.raw)
    }
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// The typed tensor of an untyped one.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// let x = Tensor::<1>::from_raw(x.into_raw().exp());
    /// assert_eq!(x.dims(), [2]);
    /// ```
    ///
    /// # Panics
    /// When its rank is not `D` or its elements are not of kind `K`.
    #[inline]
    #[track_caller]
    pub fn from_raw(raw: RawTensor) -> Self {
        if raw.rank() != D || !K::KIND.holds(raw.dtype()) {
            refuse(&raw, D, K::KIND);
        }
        Self { raw, kind: PhantomData }
    }

    /// The untyped tensor.
    pub fn into_raw(self) -> RawTensor {
        self.raw
    }

    /// The untyped tensor, borrowed.
    pub fn as_raw(&self) -> &RawTensor {
        &self.raw
    }

    /// The rank, `D`.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// assert_eq!(Tensor::<2>::zeros([2, 3], &Device::default()).rank(), 2);
    /// ```
    pub fn rank(&self) -> usize {
        D
    }

    /// The type of the elements.
    ///
    /// ```
    /// use kiln_tensor::{DType, Device, Tensor};
    /// assert_eq!(Tensor::<1>::zeros([2], &Device::default()).dtype(), DType::F32);
    /// ```
    pub fn dtype(&self) -> DType {
        self.raw.api_dtype()
    }

    /// The sizes of the axes.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let [rows, columns] = Tensor::<2>::zeros([2, 3], &Device::default()).dims();
    /// assert_eq!((rows, columns), (2, 3));
    /// ```
    pub fn dims(&self) -> [usize; D] {
        let mut dims = [0; D];
        dims.copy_from_slice(self.raw.dims());
        dims
    }

    /// The shape.
    ///
    /// ```
    /// use kiln_tensor::{Device, Shape, Tensor};
    /// assert_eq!(Tensor::<2>::zeros([2, 3], &Device::default()).shape(), Shape::new([2, 3]));
    /// ```
    pub fn shape(&self) -> Shape {
        self.raw.dims().into()
    }

    /// Where the tensor lives, with its autodiff settings.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// assert_eq!(Tensor::<1>::zeros([2], &Device::default()).device(), Device::default());
    /// ```
    pub fn device(&self) -> Device {
        self.raw.device()
    }

    /// Whether nobody else holds the elements, so that an operation may reuse their memory.
    ///
    /// ```
    /// use kiln_tensor::{Device, Tensor};
    /// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::default());
    /// assert!(x.can_mut());
    /// let y = x.clone();
    /// assert!(!x.can_mut());
    /// drop(y);
    /// ```
    pub fn can_mut(&self) -> bool {
        self.raw.is_unique()
    }
}

#[cold]
#[track_caller]
fn refuse(raw: &RawTensor, rank: usize, kind: kind::Kind) -> ! {
    assert!(raw.rank() == rank, "from_raw: a tensor of shape {:?} is not of rank {rank}", raw.dims());
    panic!("from_raw: a tensor of {} is not of kind {}: shape {:?}", raw.dtype(), kind.as_str(), raw.dims())
}
