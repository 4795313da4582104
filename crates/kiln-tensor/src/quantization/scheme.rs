//! `QuantScheme`: how the values of a quantized tensor and their scales are represented.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::ops::Deref;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// Alignment, in bytes, of the scales that follow the values of a quantized tensor.
pub const QPARAM_ALIGN: usize = 4;

/// The range and the format of the quantized values.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum QuantValue {
    /// 8-bit integers, full range -128..=127.
    Q8F,
    /// 8-bit floats with 5 exponent and 2 mantissa bits.
    E5M2,
    /// 8-bit floats with 4 exponent and 3 mantissa bits.
    E4M3,
    /// 4-bit integers, full range -8..=7.
    Q4F,
    /// 4-bit floats with 2 exponent and 1 mantissa bits.
    E2M1,
    /// 2-bit integers, full range -2..=1.
    Q2F,
    /// 8-bit integers, symmetric range -127..=127.
    Q8S,
    /// 4-bit integers, symmetric range -7..=7.
    Q4S,
    /// 2-bit integers, symmetric range -1..=1.
    Q2S,
}

impl QuantValue {
    /// Bits of one value.
    pub fn size_bits(&self) -> usize {
        self.bits()
    }

    const fn bits(&self) -> usize {
        match self {
            Self::Q8F | Self::E5M2 | Self::E4M3 | Self::Q8S => 8,
            Self::Q4F | Self::E2M1 | Self::Q4S => 4,
            Self::Q2F | Self::Q2S => 2,
        }
    }

    /// Values that share a byte in the natively packed store: two 4-bit floats do, everything else has a byte of its own.
    pub fn native_packing(&self) -> usize {
        self.packing()
    }

    const fn packing(&self) -> usize {
        match self {
            Self::E2M1 => 2,
            Self::Q8F | Self::E5M2 | Self::E4M3 | Self::Q8S => 1,
            Self::Q4F | Self::Q4S | Self::Q2F | Self::Q2S => 1,
        }
    }

    /// Whether the values are small floats; the others are integers.
    pub(crate) const fn is_float(&self) -> bool {
        match self {
            Self::E5M2 | Self::E4M3 | Self::E2M1 => true,
            Self::Q8F | Self::Q4F | Self::Q2F | Self::Q8S | Self::Q4S | Self::Q2S => false,
        }
    }

    /// The smallest and the largest finite value.
    pub fn range(&self) -> (f32, f32) {
        match self {
            Self::Q8F => (-128.0, 127.0),
            Self::Q4F => (-8.0, 7.0),
            Self::Q2F => (-2.0, 1.0),
            Self::Q8S => (-127.0, 127.0),
            Self::Q4S => (-7.0, 7.0),
            Self::Q2S => (-1.0, 1.0),
            Self::E4M3 => (-448.0, 448.0),
            Self::E5M2 => (-57344.0, 57344.0),
            Self::E2M1 => (-6.0, 6.0),
        }
    }

    /// Whether the range is symmetric around zero.
    pub fn is_symmetric(&self) -> bool {
        let (min, max) = self.range();
        min == -max
    }
}

/// How the quantized values lie in memory.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum QuantStore {
    /// One value in each byte.
    Native,
    /// As many values in a byte as [`QuantValue::native_packing`] says, packed along the given axis, counted from the last.
    PackedNative(usize),
    /// Several values packed into a 32-bit word along the given axis, counted from the last.
    PackedU32(usize),
}

impl QuantStore {
    /// Bits of what is stored as one: a value, or the values packed together. A value of less than a byte that is stored alone takes a byte of memory.
    pub fn size_bits(&self, value: &QuantValue) -> usize {
        self.bits(value)
    }

    const fn bits(&self, value: &QuantValue) -> usize {
        match self {
            Self::Native => value.bits(),
            Self::PackedNative(_) => value.bits() * value.packing(),
            Self::PackedU32(_) => 32,
        }
    }
}

/// How a value is computed from its code.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum QuantMode {
    /// Scale times code, without a zero point.
    Symmetric,
    /// The code is an index into a table of values.
    Lookup,
}

/// The type of the scales.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum ScaleDtype {
    /// 32-bit float.
    F32,
    /// 16-bit float.
    F16,
    /// 16-bit float with the exponent range of `F32`.
    BF16,
    /// 8 exponent bits: powers of two from 2^-127 to 2^127.
    UE8M0,
    /// Unsigned 8-bit float with 4 exponent and 3 mantissa bits, up to 448.
    UE4M3,
}

impl ScaleDtype {
    /// The smallest scale of `UE8M0`, 2^-127.
    pub const UE8M0_MIN: f32 = f32::from_bits(0x0040_0000);
    /// The largest scale of `UE8M0`, 2^127.
    pub const UE8M0_MAX: f32 = f32::from_bits(0x7F00_0000);

    /// The largest finite scale.
    pub fn max_representable(&self) -> f32 {
        match self {
            Self::F32 => f32::MAX,
            Self::F16 => f16::MAX.to_f32(),
            Self::BF16 => bf16::MAX.to_f32(),
            Self::UE8M0 => Self::UE8M0_MAX,
            Self::UE4M3 => 448.0,
        }
    }

    /// The smallest representable scale that is not below `scale`, so that no value is clipped; saturates at the largest. Zero, negative numbers and
    /// NaN stay as they are where the type has them: in `UE8M0` numbers below its smallest scale become that.
    pub fn round_up(&self, scale: f32) -> f32 {
        match self {
            _ if scale.is_nan() => scale,
            Self::UE8M0 if scale <= Self::UE8M0_MIN => Self::UE8M0_MIN,
            Self::F32 => scale,
            _ if scale <= 0.0 => scale,
            _ if scale >= self.max_representable() => self.max_representable(),
            Self::F16 | Self::BF16 | Self::UE8M0 | Self::UE4M3 => self.f32_grid().round_up(scale),
        }
    }
}

/// The sizes of a block of values that share a scale, aligned with the last axes; up to five.
#[derive(Clone, Copy, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct BlockSize {
    storage: [u8; 5],
    len: u8,
}

impl BlockSize {
    /// The largest number of axes.
    pub const MAX_DIMS: usize = 5;

    /// A block with the given sizes; leading sizes of 1 are dropped.
    ///
    /// # Panics
    /// When there are more than five sizes.
    #[track_caller]
    pub fn new(values: impl AsRef<[u8]>) -> Self {
        let values = values.as_ref();
        assert!(values.len() <= Self::MAX_DIMS, "block size: at most {} axes, found {values:?}", Self::MAX_DIMS);
        let ones = values.iter().take_while(|size| **size == 1).count();
        let values = &values[ones.min(values.len().saturating_sub(1))..];
        let mut storage = [1; Self::MAX_DIMS];
        storage[..values.len()].copy_from_slice(values);
        Self { storage, len: values.len() as u8 }
    }

    /// The sizes.
    pub fn as_slice(&self) -> &[u8] {
        &self.storage[..self.len as usize]
    }

    /// The sizes as a vector.
    pub fn to_vec(&self) -> Vec<u8> {
        self.as_slice().to_vec()
    }

    /// The sizes filled up with leading ones to `N` axes.
    ///
    /// # Panics
    /// When the block has more than `N` axes.
    #[track_caller]
    pub fn as_dim<const N: usize>(&self) -> [u8; N] {
        let dims = self.to_dim_vec(N);
        let mut out = [1; N];
        out.copy_from_slice(&dims);
        out
    }

    /// The sizes filled up with leading ones to `len` axes.
    ///
    /// # Panics
    /// When the block has more than `len` axes.
    #[track_caller]
    pub fn to_dim_vec(&self, len: usize) -> Vec<u8> {
        let sizes = self.as_slice();
        assert!(sizes.len() <= len, "block size {self:?} has more than {len} axes");
        let mut dims = alloc::vec![1; len];
        dims[len - sizes.len()..].copy_from_slice(sizes);
        dims
    }

    /// The number of blocks along each axis of a tensor, rounded up.
    pub fn num_blocks(&self, shape: &[usize]) -> Vec<usize> {
        let sizes = self.to_dim_vec(shape.len());
        (shape.iter().zip(sizes)).map(|(size, block)| size.div_ceil(block as usize)).collect()
    }

    /// Iterates over the sizes.
    pub fn iter(&self) -> impl Iterator<Item = &u8> {
        self.as_slice().iter()
    }

    /// The number of values in a block.
    pub fn num_elements(&self) -> usize {
        self.iter().map(|size| *size as usize).product()
    }
}

impl Deref for BlockSize {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl<T: AsRef<[u8]>> From<T> for BlockSize {
    fn from(values: T) -> Self {
        Self::new(values)
    }
}

impl fmt::Debug for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockSize({:?})", self.as_slice())
    }
}

impl Ord for BlockSize {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl PartialOrd for BlockSize {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The scale of each block of a tensor.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct BlockScale {
    /// The sizes of a block.
    pub size: BlockSize,
    /// The type of the scales.
    pub dtype: ScaleDtype,
}

/// How a quantized tensor is represented: the values, their place in memory, and one or two levels of scales.
///
/// ```
/// use kiln_tensor::quantization::{QuantScheme, QuantStore, QuantValue, ScaleDtype};
/// let scheme = QuantScheme::default()
///     .with_value(QuantValue::Q4S)
///     .with_store(QuantStore::PackedU32(0))
///     .per_block([32], ScaleDtype::F16);
/// assert_eq!(scheme.num_quants(), 8);
/// assert_eq!(scheme.scale_dtype(), ScaleDtype::F16);
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct QuantScheme {
    /// The format of the values.
    pub value: QuantValue,
    /// Their place in memory.
    pub store: QuantStore,
    /// How values are computed from codes.
    pub mode: QuantMode,
    tensor: Option<ScaleDtype>,
    block: Option<BlockScale>,
}

impl Default for QuantScheme {
    /// Full-range 8-bit integers packed in words, with one f32 scale a tensor.
    fn default() -> Self {
        Self { value: QuantValue::Q8F, store: QuantStore::PackedU32(0), mode: QuantMode::Symmetric, tensor: None, block: None }
    }
}

impl QuantScheme {
    /// NVFP4: 4-bit floats, blocks of 16 with `UE4M3` scales, and one f32 scale a tensor.
    pub fn nvfp4() -> Self {
        Self {
            value: QuantValue::E2M1,
            store: QuantStore::PackedNative(0),
            mode: QuantMode::Symmetric,
            tensor: Some(ScaleDtype::F32),
            block: Some(BlockScale { size: BlockSize::new([16]), dtype: ScaleDtype::UE4M3 }),
        }
    }

    /// Sets how values are computed from codes.
    pub fn with_mode(self, mode: QuantMode) -> Self {
        Self { mode, ..self }
    }

    /// Sets the format of the values.
    pub fn with_value(self, value: QuantValue) -> Self {
        Self { value, ..self }
    }

    /// Sets the place of the values in memory.
    pub fn with_store(self, store: QuantStore) -> Self {
        Self { store, ..self }
    }

    /// One scale for the whole tensor, in addition to the scales of blocks if there are any.
    pub fn per_tensor(self, dtype: ScaleDtype) -> Self {
        Self { tensor: Some(dtype), ..self }
    }

    /// One scale for each block, in addition to the scale of the tensor if [`per_tensor`](Self::per_tensor) asked for one.
    pub fn per_block(self, block: impl AsRef<[u8]>, dtype: ScaleDtype) -> Self {
        Self { block: Some(BlockScale { size: BlockSize::new(block), dtype }), ..self }
    }

    /// The type of the tensor's scale, if there is one: a scheme that names no scale has an f32 for the tensor.
    pub fn tensor_scale(&self) -> Option<ScaleDtype> {
        match (self.tensor, self.block) {
            (None, None) => Some(ScaleDtype::F32),
            (tensor, _) => tensor,
        }
    }

    /// The blocks and the type of their scales, if there are blocks.
    pub fn block_scale(&self) -> Option<BlockScale> {
        self.block
    }

    /// The scheme with blocks of other sizes, of which it has some.
    pub(crate) fn with_block_size(self, size: BlockSize) -> Self {
        Self { block: self.block.map(|block| BlockScale { size, ..block }), ..self }
    }

    /// The number of levels of scales: 1 or 2.
    pub fn num_levels(&self) -> usize {
        usize::from(self.tensor_scale().is_some()) + usize::from(self.block.is_some())
    }

    /// The type of the finest scales: of the blocks if there are any, else of the tensor.
    pub fn scale_dtype(&self) -> ScaleDtype {
        self.block.map(|block| block.dtype).or(self.tensor).unwrap_or(ScaleDtype::F32)
    }

    /// The sizes of a block, if there are blocks.
    pub fn block_size(&self) -> Option<BlockSize> {
        self.block.map(|block| block.size)
    }

    /// Exchanges two axes of the blocks of a tensor of the given rank.
    pub fn swap_block_dims(&mut self, rank: usize, dim0: usize, dim1: usize) {
        if let Some(block) = &mut self.block {
            let mut sizes = block.size.to_dim_vec(rank);
            sizes.swap(dim0, dim1);
            block.size = BlockSize::new(sizes);
        }
    }

    /// Reorders the axes of the blocks of a tensor of the given rank.
    pub fn permute_block_dims(&mut self, rank: usize, axes: &[usize]) {
        if let Some(block) = &mut self.block {
            let sizes = block.size.to_dim_vec(rank);
            block.size = BlockSize::new(axes.iter().map(|&axis| sizes[axis]).collect::<Vec<_>>());
        }
    }

    /// Bits of what is stored as one; see [`QuantStore::size_bits`].
    pub fn size_bits_stored(&self) -> usize {
        self.store.bits(&self.value)
    }

    /// Bytes of what is stored as one.
    pub(crate) const fn unit_bytes(&self) -> usize {
        self.store.bits(&self.value).div_ceil(8)
    }

    /// Bits of one value.
    pub fn size_bits_value(&self) -> usize {
        self.value.size_bits()
    }

    /// Values in what is stored as one.
    pub fn num_quants(&self) -> usize {
        match self.store {
            QuantStore::Native => 1,
            QuantStore::PackedNative(_) | QuantStore::PackedU32(_) => self.size_bits_stored() / self.size_bits_value(),
        }
    }

    /// Values that share a byte in the natively packed store.
    pub fn native_packing(&self) -> usize {
        self.value.native_packing()
    }

    /// The axis along which values are packed, counted from the last, if they are.
    pub fn packing_dim(&self) -> Option<usize> {
        match self.store {
            QuantStore::Native => None,
            QuantStore::PackedNative(axis) | QuantStore::PackedU32(axis) => Some(axis),
        }
    }

    /// Renames the packed axis when two axes, counted from the last, are exchanged.
    pub fn swap_packing_dim(&mut self, dim0: usize, dim1: usize) {
        match &mut self.store {
            QuantStore::Native => {}
            QuantStore::PackedNative(axis) | QuantStore::PackedU32(axis) => {
                if *axis == dim0 {
                    *axis = dim1;
                } else if *axis == dim1 {
                    *axis = dim0;
                }
            }
        }
    }
}
