//! The options of convolutions, pools, interpolation, padding and attention.

mod conv;
mod interpolate;
mod pool;

#[allow(deprecated)]
pub use conv::PaddedConvOptions;
pub use conv::{ConvOptions, ConvTransposeOptions, DeformConvOptions, UnfoldOptions};
pub use interpolate::{GridSampleOptions, GridSamplePaddingMode, InterpolateMode, InterpolateOptions};
pub use pool::{AvgPoolOptions, MaxPoolOptions};

use serde::{Deserialize, Serialize};

use crate::element::ElementConversion;

/// How values written at indices meet the values that are there.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum IndexingUpdateOp {
    /// The new value replaces the old one; of several for one place, the last in row-major order stays.
    Assign,
    /// The sum.
    Add,
    /// The product.
    Mul,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

/// What fills the border that padding adds.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub enum PadMode {
    /// One value.
    Constant(f32),
    /// The values mirrored at the edge, without the edge itself: `3 2 | 1 2 3`.
    Reflect,
    /// The value at the edge: `1 1 | 1 2 3`.
    Edge,
}

impl Default for PadMode {
    fn default() -> Self {
        Self::Constant(0.0)
    }
}

impl<E: ElementConversion> From<E> for PadMode {
    fn from(value: E) -> Self {
        Self::Constant(value.elem())
    }
}

/// Numbers of values to add before and after each axis.
///
/// An array, slice or vector of pairs names the last axes, in their order; `(left, right, top, bottom)` names the last axis and the one
/// before it.
pub trait IntoPadding<const D: usize> {
    /// `(before, after)` for every axis.
    ///
    /// # Panics
    /// When there are more pairs than axes.
    fn into_padding(self) -> [(usize, usize); D];
}

#[track_caller]
fn last_axes<const D: usize>(pairs: &[(usize, usize)]) -> [(usize, usize); D] {
    assert!(pairs.len() <= D, "pad: {} pairs given for rank {D}", pairs.len());
    let mut padding = [(0, 0); D];
    padding[D - pairs.len()..].copy_from_slice(pairs);
    padding
}

impl<const D: usize, const N: usize> IntoPadding<D> for [(usize, usize); N] {
    #[track_caller]
    fn into_padding(self) -> [(usize, usize); D] {
        last_axes(&self)
    }
}

impl<const D: usize> IntoPadding<D> for &[(usize, usize)] {
    #[track_caller]
    fn into_padding(self) -> [(usize, usize); D] {
        last_axes(self)
    }
}

impl<const D: usize> IntoPadding<D> for alloc::vec::Vec<(usize, usize)> {
    #[track_caller]
    fn into_padding(self) -> [(usize, usize); D] {
        last_axes(&self)
    }
}

impl<const D: usize> IntoPadding<D> for (usize, usize, usize, usize) {
    #[track_caller]
    fn into_padding(self) -> [(usize, usize); D] {
        let (left, right, top, bottom) = self;
        last_axes(&[(top, bottom), (left, right)])
    }
}

/// Options of [`attention`](crate::module::attention).
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AttentionModuleOptions {
    /// The factor on the scores; `1 / sqrt(d)` without.
    pub scale: Option<f64>,
    /// Scores are limited to `c * tanh(score / c)`.
    pub softcap: Option<f64>,
    /// Whether a query sees only the keys up to its own position (counted from the last).
    pub is_causal: bool,
}
