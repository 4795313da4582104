//! Where values, blocks and scales of a quantized tensor lie.

use alloc::vec::Vec;

use super::{BlockSize, QuantScheme, ScaleDtype, scale_size};
use crate::Shape;

/// The blocks of a tensor, in row-major order: which of them each element belongs to.
///
/// ```
/// use kiln_tensor::Shape;
/// use kiln_tensor::quantization::{BlockLayout, BlockSize};
/// let layout = BlockLayout::new(&Shape::from([2, 6]), &BlockSize::new([3]));
/// assert_eq!(layout.num_blocks(), 4);
/// assert!(layout.divides());
/// assert_eq!([0, 2, 3, 6].map(|index| layout.block_of(index)), [0, 0, 1, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct BlockLayout {
    shape: Shape,
    block: Vec<usize>,
    blocks: Shape,
}

impl BlockLayout {
    /// The blocks of a tensor of the given shape. A block with more axes than the tensor is one of its last axes.
    pub fn new(shape: &Shape, block: &BlockSize) -> Self {
        let sizes = block.as_slice();
        let kept = &sizes[sizes.len().saturating_sub(shape.rank())..];
        let mut block = alloc::vec![1; shape.rank()];
        for (to, size) in block[shape.rank() - kept.len()..].iter_mut().zip(kept) {
            *to = usize::from(*size).max(1);
        }
        let blocks: Vec<usize> = shape.iter().zip(&block).map(|(size, block)| size.div_ceil(*block)).collect();
        Self { shape: shape.clone(), block, blocks: Shape::from(blocks) }
    }

    /// The number of blocks.
    pub fn num_blocks(&self) -> usize {
        self.blocks.num_elements()
    }

    /// Whether all blocks are whole.
    pub fn divides(&self) -> bool {
        self.shape.iter().zip(&self.block).all(|(size, block)| size % block == 0)
    }

    /// The block of the element at a row-major index.
    pub fn block_of(&self, index: usize) -> usize {
        let (mut rest, mut out, mut stride) = (index, 0, 1);
        for axis in (0..self.shape.rank()).rev() {
            out += rest % self.shape[axis] / self.block[axis] * stride;
            rest /= self.shape[axis];
            stride *= self.blocks[axis];
        }
        out
    }

    /// The sizes of a block, one an axis.
    pub(crate) fn block(&self) -> &[usize] {
        &self.block
    }
}

/// Whether tensors can be quantized by the scheme. With scales of two levels, those of the blocks must be of a type whose range the tensor's, an `f32`,
/// can absorb: `F16` or `UE4M3`.
///
/// ```
/// use kiln_tensor::quantization::{QuantScheme, ScaleDtype, quantizable};
/// assert!(quantizable(&QuantScheme::nvfp4()));
/// assert!(!quantizable(&QuantScheme::default().per_block([32], ScaleDtype::F32).per_tensor(ScaleDtype::F32)));
/// ```
pub fn quantizable(scheme: &QuantScheme) -> bool {
    match (scheme.block_scale(), scheme.tensor_scale()) {
        (Some(block), Some(tensor)) => tensor == ScaleDtype::F32 && matches!(block.dtype, ScaleDtype::F16 | ScaleDtype::UE4M3),
        (Some(_), None) | (None, _) => true,
    }
}

/// The type of the second scale, by which all scales of blocks are multiplied, if the scheme has scales of two levels.
///
/// ```
/// use kiln_tensor::quantization::{QuantScheme, ScaleDtype, global_scale_dtype};
/// assert_eq!(global_scale_dtype(&QuantScheme::nvfp4()), Some(ScaleDtype::F32));
/// assert_eq!(global_scale_dtype(&QuantScheme::default()), None);
/// ```
pub fn global_scale_dtype(scheme: &QuantScheme) -> Option<ScaleDtype> {
    scheme.block_scale().and(scheme.tensor_scale())
}

/// Bytes of the second scale, 0 without.
///
/// ```
/// use kiln_tensor::quantization::{QuantScheme, global_scale_size};
/// assert_eq!(global_scale_size(&QuantScheme::nvfp4()), 4);
/// assert_eq!(global_scale_size(&QuantScheme::default()), 0);
/// ```
pub fn global_scale_size(scheme: &QuantScheme) -> usize {
    global_scale_dtype(scheme).map_or(0, scale_size)
}

/// The shape of the scales of a tensor: the number of blocks along each axis, or `[1]` without blocks.
///
/// ```
/// use kiln_tensor::Shape;
/// use kiln_tensor::quantization::{QuantScheme, ScaleDtype, params_shape};
/// let shape = Shape::from([4, 64]);
/// assert_eq!(params_shape(&shape, &QuantScheme::default()), Shape::from([1]));
/// assert_eq!(params_shape(&shape, &QuantScheme::default().per_block([2, 32], ScaleDtype::F16)), Shape::from([2, 2]));
/// ```
pub fn params_shape(data_shape: &Shape, scheme: &QuantScheme) -> Shape {
    match scheme.block_size() {
        Some(block) => BlockLayout::new(data_shape, &block).blocks,
        None => Shape::from([1]),
    }
}

/// Bytes of the values alone.
pub(crate) fn values_len(scheme: &QuantScheme, shape: &[usize]) -> usize {
    packed_rows(scheme, shape).iter().product::<usize>() * scheme.unit_bytes()
}

/// The sizes of a tensor of packed values: values are packed along one axis, whose last pack may be partly empty.
fn packed_rows(scheme: &QuantScheme, shape: &[usize]) -> Vec<usize> {
    let mut sizes = shape.to_vec();
    if let Some(axis) = packed_axis(scheme, shape.len()) {
        sizes[axis] = sizes[axis].div_ceil(scheme.num_quants());
    }
    sizes
}

/// The axis along which the values of a tensor of the given rank are packed. A scheme that names one which the tensor does not have packs its first.
pub(crate) fn packed_axis(scheme: &QuantScheme, rank: usize) -> Option<usize> {
    if rank == 0 || scheme.num_quants() == 1 {
        return None;
    }
    scheme.packing_dim().map(|from_last| rank - 1 - from_last.min(rank - 1))
}

/// Bytes of a quantized tensor: its values, then its scales, then the second scale.
///
/// ```
/// use kiln_tensor::Shape;
/// use kiln_tensor::quantization::{QuantScheme, QuantStore, QuantValue, ScaleDtype, quantized_data_len};
/// let scheme = QuantScheme::default().with_value(QuantValue::Q4S).per_block([32], ScaleDtype::F16);
/// assert_eq!(quantized_data_len(&scheme, &Shape::from([4, 64])), 4 * 64 / 2 + 8 * 2);
/// ```
pub fn quantized_data_len(scheme: &QuantScheme, shape: &Shape) -> usize {
    values_len(scheme, shape) + params_shape(shape, scheme).num_elements() * scale_size(scheme.scale_dtype()) + global_scale_size(scheme)
}
