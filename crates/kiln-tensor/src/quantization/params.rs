//! The parameters of a quantization: scales, and where they lie in a tensor's memory.

use alloc::vec::Vec;

use crate::{DType, Shape, Tensor};

/// The scales by which a tensor is quantized.
#[derive(Clone, Debug)]
pub struct QParams<S> {
    /// One scale a block in row-major order, or one of the tensor.
    pub scales: S,
    /// The second scale, by which all others are multiplied, of a scheme with scales of two levels.
    pub global: Option<S>,
}

/// The scales by which a tensor is quantized, as tensors.
pub type QuantizationParameters = QParams<Tensor<1>>;

/// Scales that lie in the memory of a quantized tensor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QParamTensor {
    /// Their first byte, counted from the start of the memory.
    pub offset_start: usize,
    /// How many bytes before the end of the memory they end.
    pub offset_end: usize,
    /// Their sizes and strides.
    pub metadata: Metadata,
    /// Their type.
    pub dtype: DType,
}

/// The sizes of a tensor in memory, and how many elements apart its neighbours lie along each axis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Metadata {
    shape: Shape,
    strides: Vec<usize>,
}

impl Metadata {
    /// Sizes and strides, one of each an axis.
    ///
    /// # Panics
    /// When there are not as many strides as axes.
    #[track_caller]
    pub fn new(shape: impl Into<Shape>, strides: impl Into<Vec<usize>>) -> Self {
        let (shape, strides) = (shape.into(), strides.into());
        assert!(shape.rank() == strides.len(), "metadata: {} strides for shape {shape}", strides.len());
        Self { shape, strides }
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The strides.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }
}
