//! The backends: the CPU runtime, autodiff over another backend, and whichever device a tensor lives on.

use alloc::format;
use alloc::string::String;
use core::fmt::Debug;
use core::marker::PhantomData;

use super::{Backend, BackendTypes, ExecutionError};
use crate::DType;
use crate::api::DispatchTensor;
use crate::device::{Device, GradientCheckpointingStrategy};
use crate::raw::RawTensor;

/// The CPU runtime, without autodiff: tensors of `Device::flex()`.
#[cfg(feature = "cpu")]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flex;

/// Whichever device a tensor lives on, with or without autodiff: what every [`Tensor`](crate::Tensor) is made of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Dispatch;

/// A backend with autodiff, and what is kept for the backward pass.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Autodiff<B, C = NoCheckpointing> {
    types: PhantomData<(B, C)>,
}

/// What an autodiff backend keeps for the backward pass, as a type.
pub trait CheckpointStrategy: IntoGradientCheckpointingStrategy + Clone + Copy + Debug + Default + Send + Sync + 'static {}

/// A [`CheckpointStrategy`] as a value.
pub trait IntoGradientCheckpointingStrategy {
    /// The value.
    const STRATEGY: GradientCheckpointingStrategy;
}

/// Everything that the gradients need is kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NoCheckpointing;

/// Cheap results are computed again in the backward pass.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BalancedCheckpointing;

impl CheckpointStrategy for NoCheckpointing {}
impl CheckpointStrategy for BalancedCheckpointing {}

impl IntoGradientCheckpointingStrategy for NoCheckpointing {
    const STRATEGY: GradientCheckpointingStrategy = GradientCheckpointingStrategy::Disabled;
}

impl IntoGradientCheckpointingStrategy for BalancedCheckpointing {
    const STRATEGY: GradientCheckpointingStrategy = GradientCheckpointingStrategy::Balanced;
}

#[cfg(feature = "cpu")]
impl BackendTypes for Flex {
    type Device = Device;
    type FloatTensorPrimitive = RawTensor;
    type IntTensorPrimitive = RawTensor;
    type BoolTensorPrimitive = RawTensor;
    type QuantizedTensorPrimitive = RawTensor;
}

impl BackendTypes for Dispatch {
    type Device = Device;
    type FloatTensorPrimitive = DispatchTensor;
    type IntTensorPrimitive = DispatchTensor;
    type BoolTensorPrimitive = DispatchTensor;
    type QuantizedTensorPrimitive = DispatchTensor;
}

impl<B: Backend, C: CheckpointStrategy> BackendTypes for Autodiff<B, C> {
    type Device = B::Device;
    type FloatTensorPrimitive = RawTensor;
    type IntTensorPrimitive = B::IntTensorPrimitive;
    type BoolTensorPrimitive = B::BoolTensorPrimitive;
    type QuantizedTensorPrimitive = B::QuantizedTensorPrimitive;
}

#[cfg(feature = "cpu")]
impl Backend for Flex {
    fn tensor_device(device: &Device) -> Device {
        device.clone().without_autodiff()
    }

    fn name(_device: &Device) -> String {
        "flex".into()
    }

    fn ad_enabled(_device: &Device) -> bool {
        false
    }

    fn seed(device: &Device, seed: u64) {
        device.seed(seed);
    }

    fn sync(device: &Device) -> Result<(), ExecutionError> {
        device.sync()
    }

    fn supports_dtype(device: &Device, dtype: DType) -> bool {
        device.supports_dtype(dtype)
    }
}

impl Backend for Dispatch {
    fn tensor_device(device: &Device) -> Device {
        device.clone()
    }

    fn name(device: &Device) -> String {
        format!("{:?}", device.clone().without_autodiff())
    }

    fn ad_enabled(device: &Device) -> bool {
        device.is_autodiff()
    }

    fn seed(device: &Device, seed: u64) {
        device.seed(seed);
    }

    fn sync(device: &Device) -> Result<(), ExecutionError> {
        device.sync()
    }

    fn supports_dtype(device: &Device, dtype: DType) -> bool {
        device.supports_dtype(dtype)
    }
}

impl<B: Backend, C: CheckpointStrategy> Backend for Autodiff<B, C> {
    fn tensor_device(device: &Self::Device) -> Device {
        B::tensor_device(device).with_checkpointing(C::STRATEGY)
    }

    fn name(device: &Self::Device) -> String {
        format!("autodiff<{}>", B::name(device))
    }

    fn ad_enabled(_device: &Self::Device) -> bool {
        true
    }

    fn seed(device: &Self::Device, seed: u64) {
        B::seed(device, seed);
    }

    fn sync(device: &Self::Device) -> Result<(), ExecutionError> {
        B::sync(device)
    }

    fn supports_dtype(device: &Self::Device, dtype: DType) -> bool {
        B::supports_dtype(device, dtype)
    }
}
