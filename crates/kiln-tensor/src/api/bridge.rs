//! `BridgeTensor` and `DispatchTensor`: tensors whose rank, and kind or whole type, are values.

use super::Tensor;
use super::kind::{Basic, Kind};
use crate::Device;
use crate::device::{Context, GradientCheckpointingStrategy};
use crate::dtype::DType;
use crate::raw::RawTensor;
use crate::shape::Shape;

/// The device as untyped tensors name it: the same type as everywhere.
pub type DispatchDevice = Device;

/// What an untyped tensor can tell of itself.
pub trait TensorMetadata: Clone {
    /// Where such tensors live.
    type Device;

    /// Where the tensor lives.
    fn device(&self) -> Self::Device;

    /// The type of the elements.
    fn dtype(&self) -> DType;

    /// The sizes of the axes.
    fn shape(&self) -> Shape;

    /// The number of axes.
    fn rank(&self) -> usize {
        self.shape().rank()
    }

    /// Whether nobody else holds the elements, so that an operation may reuse their memory.
    fn can_mut(&self) -> bool;
}

/// Whether and how an untyped tensor takes part in autodiff.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DispatchAutodiffContext {
    /// It doesn't.
    #[default]
    Disabled,
    /// It does, with what is kept for the backward pass.
    Enabled(GradientCheckpointingStrategy),
}

/// What an untyped tensor is made of. Every device of this crate has the same kind of tensors.
#[derive(Clone, Debug)]
pub enum DispatchTensorKind {
    /// A recorded or computed tensor.
    Recorded(RawTensor),
}

/// A tensor of any rank, kind and device.
///
/// ```
/// use kiln_tensor::{Device, Tensor, TensorMetadata};
/// let x = Tensor::<2>::ones([2, 3], &Device::default());
/// let untyped = x.into_dispatch();
/// assert_eq!(untyped.shape().as_slice(), [2, 3]);
/// let back = Tensor::<2>::from_dispatch(untyped);
/// assert_eq!(back.sum().into_scalar::<f32>(), 6.0);
/// ```
#[derive(Clone, Debug)]
pub struct DispatchTensor {
    /// What it is made of.
    pub kind: DispatchTensorKind,
    /// Whether and how it takes part in autodiff: this decides, whatever the recorded tensor did before.
    pub autodiff: DispatchAutodiffContext,
}

impl DispatchTensor {
    /// The untyped tensor of a recorded one.
    pub fn from_raw(raw: RawTensor) -> Self {
        let autodiff = match raw.context.autodiff {
            true => DispatchAutodiffContext::Enabled(raw.context.checkpointing),
            false => DispatchAutodiffContext::Disabled,
        };
        Self { kind: DispatchTensorKind::Recorded(raw), autodiff }
    }

    /// The recorded tensor, with the autodiff settings of this one.
    pub fn into_raw(self) -> RawTensor {
        let DispatchTensorKind::Recorded(raw) = self.kind;
        match self.autodiff {
            DispatchAutodiffContext::Disabled => raw.without_autodiff(),
            DispatchAutodiffContext::Enabled(checkpointing) => RawTensor { context: Context { autodiff: true, checkpointing, ..raw.context }, ..raw },
        }
    }

    fn raw(&self) -> &RawTensor {
        let DispatchTensorKind::Recorded(raw) = &self.kind;
        raw
    }
}

impl TensorMetadata for DispatchTensor {
    type Device = DispatchDevice;

    fn device(&self) -> DispatchDevice {
        self.clone().into_raw().device()
    }

    fn dtype(&self) -> DType {
        self.raw().api_dtype()
    }

    fn shape(&self) -> Shape {
        self.raw().dims().into()
    }

    fn can_mut(&self) -> bool {
        self.raw().is_unique()
    }
}

/// What the elements of a [`BridgeTensor`] are.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum BridgeKind {
    /// Floats.
    Float,
    /// Integers.
    Int,
    /// Truth values.
    Bool,
    /// Quantized floats.
    QFloat,
}

/// A tensor of any rank whose kind is a value: what generic code over ranks and kinds passes on.
///
/// ```
/// use kiln_tensor::kind::{BridgeKind, BridgeTensor};
/// use kiln_tensor::{Device, Int, Tensor};
/// let x = Tensor::<1, Int>::arange(0..3, &Device::default());
/// let bridge: BridgeTensor = x.into_bridge();
/// assert_eq!((bridge.kind(), bridge.rank()), (BridgeKind::Int, 1));
/// let x = Tensor::<1, Int>::from_bridge(bridge);
/// assert_eq!(x.try_to_vec_as::<i32>().unwrap(), [0, 1, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct BridgeTensor {
    kind: BridgeKind,
    tensor: DispatchTensor,
}

impl BridgeTensor {
    #[track_caller]
    fn of_kind(kind: BridgeKind, tensor: DispatchTensor) -> Self {
        let dtype = tensor.dtype();
        let fits = match kind {
            BridgeKind::Float => dtype.is_float() || matches!(dtype, DType::QFloat(_)),
            BridgeKind::Int => dtype.is_int() || dtype.is_uint(),
            BridgeKind::Bool => dtype.is_bool(),
            BridgeKind::QFloat => matches!(dtype, DType::QFloat(_)),
        };
        assert!(fits, "bridge: a tensor of {} is not of kind {kind:?}: shape {}", dtype.name(), tensor.shape());
        Self { kind, tensor }
    }

    /// A tensor of floats.
    ///
    /// # Panics
    /// When the elements are not floats.
    #[track_caller]
    pub fn float(tensor: DispatchTensor) -> Self {
        Self::of_kind(BridgeKind::Float, tensor)
    }

    /// A tensor of integers.
    ///
    /// # Panics
    /// When the elements are not integers.
    #[track_caller]
    pub fn int(tensor: DispatchTensor) -> Self {
        Self::of_kind(BridgeKind::Int, tensor)
    }

    /// A tensor of truth values.
    ///
    /// # Panics
    /// When the elements are not truth values.
    #[track_caller]
    pub fn bool(tensor: DispatchTensor) -> Self {
        Self::of_kind(BridgeKind::Bool, tensor)
    }

    /// A tensor of quantized floats.
    ///
    /// # Panics
    /// When the elements are not quantized.
    #[track_caller]
    pub fn qfloat(tensor: DispatchTensor) -> Self {
        Self::of_kind(BridgeKind::QFloat, tensor)
    }

    /// What the elements are.
    pub fn kind(&self) -> BridgeKind {
        self.kind
    }

    /// Whether the elements are floats.
    pub fn is_float(&self) -> bool {
        self.kind == BridgeKind::Float
    }

    /// Whether the elements are integers.
    pub fn is_int(&self) -> bool {
        self.kind == BridgeKind::Int
    }

    /// Whether the elements are truth values.
    pub fn is_bool(&self) -> bool {
        self.kind == BridgeKind::Bool
    }

    /// Whether the elements are quantized floats.
    pub fn is_qfloat(&self) -> bool {
        self.kind == BridgeKind::QFloat
    }

    /// Kind and untyped tensor.
    pub fn into_parts(self) -> (BridgeKind, DispatchTensor) {
        (self.kind, self.tensor)
    }

    /// Kind and untyped tensor, borrowed.
    pub fn as_parts(&self) -> (BridgeKind, &DispatchTensor) {
        (self.kind, &self.tensor)
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// Whether nobody else holds the elements, so that an operation may reuse their memory.
    pub fn can_mut(&self) -> bool {
        self.tensor.can_mut()
    }

    /// The sizes of the axes.
    pub fn shape(&self) -> Shape {
        self.tensor.shape()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.tensor.rank()
    }
}

impl From<BridgeTensor> for DispatchTensor {
    fn from(bridge: BridgeTensor) -> Self {
        bridge.tensor
    }
}

impl<const D: usize, K: Basic> Tensor<D, K> {
    /// The tensor with its rank and kind as values.
    pub fn into_bridge(self) -> BridgeTensor {
        let kind = match K::KIND {
            Kind::Float if self.raw.is_quantized() => BridgeKind::QFloat,
            Kind::Float => BridgeKind::Float,
            Kind::Int => BridgeKind::Int,
            Kind::Bool => BridgeKind::Bool,
        };
        BridgeTensor { kind, tensor: self.into_dispatch() }
    }

    /// The tensor of a bridge.
    ///
    /// # Panics
    /// When its rank is not `D` or its elements are not of kind `K`.
    #[track_caller]
    pub fn from_bridge(tensor: BridgeTensor) -> Self {
        Self::from_dispatch(tensor.tensor)
    }

    /// The tensor of a bridge: the same as [`from_bridge`](Self::from_bridge).
    ///
    /// # Panics
    /// When its rank is not `D` or its elements are not of kind `K`.
    #[track_caller]
    pub fn new(primitive: BridgeTensor) -> Self {
        Self::from_bridge(primitive)
    }

    /// The tensor of an untyped one.
    ///
    /// # Panics
    /// When its rank is not `D` or its elements are not of kind `K`.
    #[track_caller]
    pub fn from_dispatch(tensor: DispatchTensor) -> Self {
        Self::from_raw(tensor.into_raw())
    }

    /// The tensor without its type.
    pub fn into_dispatch(self) -> DispatchTensor {
        DispatchTensor::from_raw(self.into_raw())
    }
}

impl Device {
    /// The device of another handle.
    pub fn new(device: impl Into<DispatchDevice>) -> Self {
        device.into()
    }

    /// The device as untyped tensors name it.
    pub fn as_dispatch(&self) -> &DispatchDevice {
        self
    }
}
