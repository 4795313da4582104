//! The low-level view of tensors: backends as types, and the primitives that a [`Tensor`](crate::Tensor) is made of.
//!
//! Ordinary code needs none of this: a [`Device`] chooses where tensors live at run time. Code below that line, which adds an operation of its own, is generic over
//! [`Backend`]: it takes primitives out of a tensor with [`Tensor::try_into_primitive`](crate::Tensor::try_into_primitive), computes with the operations of
//! [`FloatTensorOps`], [`LinalgOps`](crate::linalg::LinalgOps) or [`SignalOps`](crate::signal::SignalOps), and makes a tensor of the result with
//! [`Tensor::from_primitive`](crate::Tensor::from_primitive).
//!
//! Every backend of this crate has the same primitive, a [`RawTensor`], so going back and forth costs nothing and operations are recorded and fused with what is around them.
//!
//! ```
//! use kiln_tensor::backend::{Autodiff, Backend, Flex, FloatTensor};
//! use kiln_tensor::{DispatchKindConversion, DispatchTensor, Device, Tensor};
//!
//! /// `x² + 1` on primitives.
//! fn square_plus_one<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
//!     B::float_add_scalar(B::float_mul(x.clone(), x), 1.0.into())
//! }
//!
//! fn on<B: Backend>(x: Tensor<1>) -> Tensor<1>
//! where
//!     DispatchTensor: DispatchKindConversion<B>,
//! {
//!     Tensor::from_primitive::<B>(square_plus_one::<B>(x.try_into_primitive::<B>().unwrap()))
//! }
//!
//! # #[cfg(feature = "cpu")] {
//! let device = Device::flex();
//! let y = on::<Flex>(Tensor::from_data([1.0, 2.0], &device));
//! assert_eq!(y.try_to_vec_as::<f32>().unwrap(), [2.0, 5.0]);
//!
//! let x = Tensor::<1>::from_data([1.0, 2.0], &device.autodiff()).require_grad();
//! let gradients = on::<Autodiff<Flex>>(x.clone()).sum().backward();
//! assert_eq!(x.grad(&gradients).unwrap().try_to_vec_as::<f32>().unwrap(), [2.0, 4.0]);
//! # }
//! ```

mod convert;
mod ops;
mod runtimes;

use alloc::string::String;
use core::fmt::Debug;

pub use convert::{BackendPrimitive, BackendTensor, DispatchKindConversion, PrimitiveConversionError};
pub use ops::FloatTensorOps;
#[cfg(feature = "cpu")]
pub use runtimes::Flex;
pub use runtimes::{Autodiff, BalancedCheckpointing, CheckpointStrategy, Dispatch, IntoGradientCheckpointingStrategy, NoCheckpointing};

pub use crate::api::{DispatchAutodiffContext, DispatchDevice, DispatchTensor, DispatchTensorKind, TensorMetadata};
pub use crate::{ExecutionError, Scalar};

use crate::raw::RawTensor;
use crate::{DType, Device};

/// What backends call the tensors of each kind.
pub mod tensor {
    pub use super::{BoolTensor, FloatTensor, IntTensor, QuantizedTensor};
}

/// The primitive of float tensors.
pub type FloatTensor<B> = <B as BackendTypes>::FloatTensorPrimitive;
/// The primitive of integer tensors.
pub type IntTensor<B> = <B as BackendTypes>::IntTensorPrimitive;
/// The primitive of tensors of truth values.
pub type BoolTensor<B> = <B as BackendTypes>::BoolTensorPrimitive;
/// The primitive of quantized tensors.
pub type QuantizedTensor<B> = <B as BackendTypes>::QuantizedTensorPrimitive;
/// Where a backend's tensors live.
pub type BackendDevice<B> = <B as BackendTypes>::Device;

/// What a primitive is made of: a recorded tensor.
pub trait Primitive: TensorMetadata + Debug + Send + Sync + 'static {
    /// The primitive of a recorded tensor.
    fn from_raw(raw: RawTensor) -> Self;

    /// The recorded tensor.
    fn into_raw(self) -> RawTensor;
}

impl Primitive for RawTensor {
    fn from_raw(raw: RawTensor) -> Self {
        raw
    }

    fn into_raw(self) -> RawTensor {
        self
    }
}

impl Primitive for DispatchTensor {
    fn from_raw(raw: RawTensor) -> Self {
        DispatchTensor::from_raw(raw)
    }

    fn into_raw(self) -> RawTensor {
        DispatchTensor::into_raw(self)
    }
}

impl TensorMetadata for RawTensor {
    type Device = DispatchDevice;

    fn device(&self) -> DispatchDevice {
        RawTensor::device(self)
    }

    fn dtype(&self) -> DType {
        self.api_dtype()
    }

    fn shape(&self) -> crate::Shape {
        self.dims().into()
    }

    fn can_mut(&self) -> bool {
        self.is_unique()
    }
}

/// The types of a backend.
pub trait BackendTypes {
    /// Where its tensors live.
    type Device: Clone + Default + PartialEq + Debug + Send + Sync;
    /// Its float tensors.
    type FloatTensorPrimitive: Primitive;
    /// Its integer tensors.
    type IntTensorPrimitive: Primitive;
    /// Its tensors of truth values.
    type BoolTensorPrimitive: Primitive;
    /// Its quantized tensors.
    type QuantizedTensorPrimitive: Primitive;
}

/// A backend as a type: one of [`Flex`], [`Autodiff`] and [`Dispatch`]. Other crates implement traits over it, not it.
///
/// ```
/// use kiln_tensor::backend::{Autodiff, Backend, Dispatch};
/// use kiln_tensor::{DType, Device};
/// let device = Device::default();
/// assert!(!Dispatch::ad_enabled(&device) && Dispatch::ad_enabled(&device.clone().autodiff()));
/// assert!(Dispatch::supports_dtype(&device, DType::F32));
/// Dispatch::seed(&device, 7);
/// Dispatch::sync(&device).unwrap();
/// assert!(Autodiff::<Dispatch>::name(&device).contains(&Dispatch::name(&device)));
/// ```
pub trait Backend: BackendTypes + FloatTensorOps<Self> + Clone + Default + Debug + Send + Sync + 'static {
    /// The device with the autodiff settings that this backend's tensors have.
    fn tensor_device(device: &Self::Device) -> Device;

    /// The backend's name on a device, for people.
    fn name(device: &Self::Device) -> String;

    /// Whether gradients may be recorded for tensors made on a device.
    fn ad_enabled(device: &Self::Device) -> bool;

    /// Fixes every random number drawn on the device from now on.
    fn seed(device: &Self::Device, seed: u64);

    /// Runs what is pending on the device and waits until it has finished.
    ///
    /// # Errors
    /// What went wrong in a run that nobody has been told of.
    fn sync(device: &Self::Device) -> Result<(), ExecutionError>;

    /// Whether the device computes with a type.
    fn supports_dtype(device: &Self::Device, dtype: DType) -> bool;
}
