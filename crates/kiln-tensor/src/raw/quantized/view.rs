//! Views of quantized tensors that codes and scales can follow, so that they stay quantized.
use alloc::sync::Arc;
use alloc::vec::Vec;

use kiln_ir::{Dims, dims};
use smallvec::SmallVec;

use super::super::{RawTensor, SliceRange};
use super::Quantized;
use super::codec::Codec;
use crate::quantization::{BlockSize, QuantScheme, QuantStore};

/// The scheme of a tensor whose axis `i` was axis `axes[i]`.
fn permuted(mut scheme: QuantScheme, axes: &[usize]) -> QuantScheme {
    let rank = axes.len();
    scheme.permute_block_dims(rank, axes);
    match &mut scheme.store {
        QuantStore::Native => {}
        QuantStore::PackedNative(packed) | QuantStore::PackedU32(packed) => {
            let old = rank - 1 - (*packed).min(rank - 1);
            *packed = axes.iter().rev().position(|axis| *axis == old).expect("a permutation has every axis");
        }
    }
    scheme
}

/// Sizes of the blocks of a tensor in other sizes, if its blocks are blocks of those too.
fn reblocked(dims: &[usize], block: &[usize], to: &[usize]) -> Option<Dims> {
    let long = |dims: &[usize]| dims.iter().copied().filter(|size| *size != 1).collect::<Vec<_>>();
    if long(dims) == long(to) {
        // Axes of size 1 come and go.
        let mut sizes = dims.iter().zip(block).filter(|(size, _)| **size != 1).map(|(_, block)| *block);
        return Some(to.iter().map(|size| if *size == 1 { 1 } else { sizes.next().expect("as many long axes") }).collect());
    }
    let (last, leading) = block.split_last()?;
    let fits = leading.iter().all(|size| *size == 1) && to.last().is_some_and(|size| size % last == 0);
    fits.then(|| {
        let mut sizes = Dims::from_elem(1, to.len());
        sizes[to.len() - 1] = *last;
        sizes
    })
}

/// The scheme with blocks of these sizes along the axes of a tensor.
fn with_block(scheme: QuantScheme, block: Option<&Dims>) -> Option<QuantScheme> {
    let Some(block) = block else {
        return Some(scheme);
    };
    let first = block.iter().position(|size| *size > 1).unwrap_or(block.len().saturating_sub(1));
    let sizes = &block[first..];
    if sizes.len() > BlockSize::MAX_DIMS {
        return None;
    }
    let sizes: Vec<u8> = sizes.iter().map(|size| *size as u8).collect();
    Some(scheme.with_block_size(BlockSize::new(sizes)))
}

impl Quantized {
    /// Changes the codes, along the stored axes, and the scales as a tensor with an axis for each axis of blocks.
    fn along_axes(&self, stored: Dims, f: impl Fn(&RawTensor, bool) -> RawTensor) -> Quantized {
        let codec = Codec::of(self.scheme.value);
        let codes = codec.pack(&f(&codec.unpack(&self.codes, &self.stored), false));
        let scales = match &self.block {
            None => self.scales.clone(),
            Some(block) => {
                let blocks: Dims = self.stored.iter().zip(block).map(|(size, block)| size / block).collect();
                let scales = f(&self.scales.reshape(&blocks), true);
                scales.reshape(&[scales.numel()])
            }
        };
        Quantized { stored, codes, scales, ..self.clone() }
    }

    fn block_along(&self, stored_axis: usize) -> usize {
        self.block.as_ref().map_or(1, |block| block[stored_axis])
    }
}

impl RawTensor {
    /// A view of a quantized tensor that stays quantized.
    fn keeping(&self, quantized: Quantized) -> RawTensor {
        self.standing_for(Arc::new(quantized), self.dtype())
    }

    /// [`RawTensor::reshape`] of a quantized tensor, if blocks stay blocks.
    pub(in crate::raw) fn reshape_quantized(&self, to: &[usize]) -> Option<RawTensor> {
        let q = self.quantized()?;
        if !q.axes.is_empty() || dims::numel(to) != self.numel() {
            return None;
        }
        let block = match &q.block {
            Some(block) => Some(reblocked(&q.stored, block, to)?),
            None => None,
        };
        let mut scheme = with_block(q.scheme, block.as_ref())?;
        match &mut scheme.store {
            QuantStore::Native => {}
            // The axis that a scheme packs along may be gone: the last one is there.
            QuantStore::PackedNative(packed) | QuantStore::PackedU32(packed) => *packed = 0,
        }
        let codes = if Codec::of(q.scheme.value).planes() == 1 { q.codes.reshape(to) } else { q.codes.clone() };
        Some(self.keeping(Quantized { scheme, stored: to.into(), block, codes, ..q.clone() }))
    }

    /// [`RawTensor::permute`] of a quantized tensor, by a permutation of its axes.
    pub(in crate::raw) fn permute_quantized(&self, axes: &[usize]) -> Option<RawTensor> {
        let q = self.quantized()?;
        let mut stored: SmallVec<[usize; 6]> = axes.iter().map(|axis| q.stored_axis(*axis)).collect();
        if stored.iter().enumerate().all(|(i, axis)| i == *axis) {
            stored.clear();
        }
        Some(self.keeping(Quantized { scheme: permuted(q.scheme, axes), axes: stored, ..q.clone() }))
    }

    /// [`RawTensor::slice`] of a quantized tensor, if it takes whole blocks in their order.
    pub(in crate::raw) fn slice_quantized(&self, ranges: &[SliceRange]) -> Option<RawTensor> {
        let q = self.quantized()?;
        let whole = |r: &SliceRange| {
            let block = q.block_along(q.stored_axis(r.axis));
            block == 1 || (r.step == 1 && r.start.is_multiple_of(block) && r.len.is_multiple_of(block))
        };
        if !ranges.iter().all(whole) {
            return None;
        }
        let mut stored = q.stored.clone();
        ranges.iter().for_each(|r| stored[q.stored_axis(r.axis)] = r.len);
        let sliced = q.along_axes(stored, |part, of_blocks| {
            let ranges: Vec<SliceRange> = ranges
                .iter()
                .map(|r| {
                    let axis = q.stored_axis(r.axis);
                    let block = if of_blocks { q.block_along(axis) } else { 1 };
                    SliceRange { axis, start: r.start / block, len: r.len / block, step: r.step }
                })
                .collect();
            part.slice(&ranges)
        });
        Some(self.keeping(sliced))
    }

    /// [`RawTensor::flip`] of a quantized tensor, unless it would turn blocks around.
    pub(in crate::raw) fn flip_quantized(&self, axes: &[usize]) -> Option<RawTensor> {
        let q = self.quantized()?;
        let stored: SmallVec<[usize; 6]> = axes.iter().map(|axis| q.stored_axis(*axis)).collect();
        if stored.iter().any(|axis| q.block_along(*axis) > 1) {
            return None;
        }
        Some(self.keeping(q.along_axes(q.stored.clone(), |part, _| part.flip(&stored))))
    }

    /// [`RawTensor::select`] of a quantized tensor along an axis that no block extends over.
    pub(in crate::raw) fn select_quantized(&self, axis: usize, index: &RawTensor) -> Option<RawTensor> {
        let q = self.quantized()?;
        let axis = q.stored_axis(axis);
        if q.block_along(axis) > 1 || index.rank() != 1 {
            return None;
        }
        let mut stored = q.stored.clone();
        stored[axis] = index.numel();
        Some(self.keeping(q.along_axes(stored, |part, _| part.select(axis, index))))
    }
}
