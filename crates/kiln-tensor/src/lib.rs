//! Kiln's tensors: devices, traces, the tensor API, tensor data and autodiff.
//!
//! Start reading at [`raw::RawTensor`] for what a tensor is and does, [`Device`] for where it lives; [`TensorData`] for values on the host, [`DType`] and
//! [`Element`] for what they are made of, [`Shape`] and [`Slice`] for how they are arranged.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod api;
mod autodiff;
pub mod backend;
mod capture;
#[cfg(feature = "std")]
pub mod config;
pub mod container;
mod data;
mod device;
#[cfg(feature = "std")]
pub mod distributed;
mod distribution;
mod dtype;
mod element;
mod error;
mod host;
mod lock;
mod print;
pub mod quantization;
mod random;
pub mod raw;
mod shape;
mod slice;
#[cfg(feature = "std")]
mod stream;
mod trace;

/// Conversion of single values to every element type, and of tensors between types.
pub mod cast {
    pub use crate::element::ToElement;
}

/// The kinds of tensors, and which operations each kind has.
pub mod kind {
    pub use crate::api::kind::{Autodiff, Basic, Bool, Float, FloatMath, Int, Kind, Numeric, Ordered, TensorKind, Transaction};
    pub use crate::api::{BridgeKind, BridgeTensor};
}

/// The options of operations.
pub mod ops {
    pub use crate::api::options::*;
}

pub use api::cast::Cast;
#[cfg(feature = "std")]
pub use api::check_closeness;
pub use api::kind::{Bool, Float, Int};
#[cfg(feature = "linalg")]
pub use api::linalg;
pub use api::options::{IndexingUpdateOp, IntoPadding};
#[cfg(feature = "signal")]
pub use api::signal;
pub use api::{
    DEFAULT_ATOL, DEFAULT_RTOL, DimIter, EinsumOperand, Tensor, TensorCreationOptions, Transaction, cartesian_grid, read_sync, try_read_sync,
};
pub use api::{DispatchAutodiffContext, DispatchDevice, DispatchTensor, DispatchTensorKind, TensorMetadata};
#[doc(hidden)]
pub use api::{ShapeSlot, check_einsum_equation, check_shape, shape_of_any_rank, shape_of_rank};
pub use api::{activation, grid, loss, module};
pub use autodiff::Gradients;
pub use backend::{BackendPrimitive, DispatchKindConversion, PrimitiveConversionError};
pub use capture::{Graph, capture};
pub use data::{
    AccessError, AccessPolicy, AllocationController, AllocationProperty, Bytes, DataError, Reader, SplitError, SplitPolicy, TensorData,
    TensorDataView, TensorDataViewMut, TensorReadError, Tolerance, ViewError, Writer,
};
pub use device::{
    Device, DeviceConfig, DeviceError, DeviceFilter, DeviceId, DeviceIndex, DeviceKind, DeviceSettings, DeviceType, Devices,
    GradientCheckpointingStrategy, MemoryPoolUsage, SlicedPoolReport, TraceStats,
};
#[cfg(feature = "std")]
pub use device::{DynFut, ProfileDuration, ProfileOptions, ProfileTicks, TimingMethod};
pub use distribution::{Distribution, DistributionSampler, DistributionSamplerKind};
pub use dtype::{BoolDType, BoolStore, DType, FloatDType, FloatInfo, IntDType};
pub use element::{
    Element, ElementAdd, ElementComparison, ElementConversion, ElementEq, ElementLimits, ElementOrdered, ElementRandom, Scalar, flex32,
};
pub use error::{BackTrace, ExecutionError};
pub use half::{bf16, f16};
pub use host::HostRuntime;
pub use kiln_ir::MatmulPrecision;
pub use print::{PrintOptions, set_print_options};
pub use shape::{
    AsIndex, AsSize, BoundsError, BroadcastArgs, ExpressionError, IndexWrap, MetadataError, MovedimArgs, ReshapeArgs, Shape, calculate_matmul_output,
    ravel_index, wrap_index,
};
pub use slice::{Slice, SliceArg, SliceIter, SliceOps};
pub use smallvec::SmallVec;
#[cfg(feature = "std")]
pub use stream::StreamId;
