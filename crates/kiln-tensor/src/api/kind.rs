//! The kinds of tensors, and which operations each kind has.

use core::fmt::Debug;

use crate::device::DeviceSettings;
use crate::dtype::DType;

/// The kind of a tensor as a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Floats.
    Float,
    /// Integers.
    Int,
    /// Booleans.
    Bool,
}

impl Kind {
    /// The kind's name.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Float => "Float",
            Self::Int => "Int",
            Self::Bool => "Bool",
        }
    }

    /// Whether elements that a device computes with make a tensor of this kind.
    #[inline]
    pub(crate) fn holds(self, dtype: kiln_ir::DType) -> bool {
        match self {
            Self::Float => dtype.is_float(),
            Self::Int => dtype.is_int(),
            Self::Bool => dtype == kiln_ir::DType::Bool,
        }
    }

    /// Whether elements of the type make a tensor of this kind.
    pub(crate) fn contains(self, dtype: DType) -> bool {
        match self {
            Self::Float => dtype.is_float() || matches!(dtype, DType::QFloat(_)),
            Self::Int => dtype.is_int() || dtype.is_uint(),
            Self::Bool => dtype.is_bool(),
        }
    }

    /// The type that tensors of this kind have on a device when none is given.
    pub(crate) fn default_dtype(self, settings: &DeviceSettings) -> DType {
        match self {
            Self::Float => settings.float_dtype.into(),
            Self::Int => settings.int_dtype.into(),
            Self::Bool => settings.bool_dtype.into(),
        }
    }
}

mod sealed {
    /// Kinds are fixed.
    pub trait Sealed {}
}

/// A type that names a kind of tensors.
pub trait TensorKind: sealed::Sealed + Clone + Send + Sync + Debug + 'static {
    /// The kind as a value.
    const KIND: Kind;

    /// The kind's name.
    fn name() -> &'static str {
        Self::KIND.as_str()
    }
}

/// Float tensors.
#[derive(Clone, Debug)]
pub struct Float;

/// Integer tensors.
#[derive(Clone, Debug)]
pub struct Int;

/// Boolean tensors.
#[derive(Clone, Debug)]
pub struct Bool;

impl sealed::Sealed for Float {}
impl sealed::Sealed for Int {}
impl sealed::Sealed for Bool {}

impl TensorKind for Float {
    const KIND: Kind = Kind::Float;
}

impl TensorKind for Int {
    const KIND: Kind = Kind::Int;
}

impl TensorKind for Bool {
    const KIND: Kind = Kind::Bool;
}

/// Kinds with creation, views, indexing, masks and comparison for equality: all of them.
pub trait Basic: TensorKind {}

impl Basic for Float {}
impl Basic for Int {}
impl Basic for Bool {}

/// Kinds with arithmetic: floats and integers.
pub trait Numeric: Basic {}

impl Numeric for Float {}
impl Numeric for Int {}

/// Kinds with an order: floats and integers.
pub trait Ordered: Numeric {}

impl Ordered for Float {}
impl Ordered for Int {}

/// Kinds with the functions of analysis: floats.
pub trait FloatMath: Numeric {}

impl FloatMath for Float {}

/// Kinds that can be moved in and out of autodiff: all of them.
pub trait Autodiff: Basic {}

impl Autodiff for Float {}
impl Autodiff for Int {}
impl Autodiff for Bool {}

/// Kinds that can be read in a [`Transaction`](crate::Transaction): all of them.
pub trait Transaction: Basic {}

impl Transaction for Float {}
impl Transaction for Int {}
impl Transaction for Bool {}
