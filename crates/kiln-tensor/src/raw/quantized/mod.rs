//! Quantized tensors: what a device keeps of them, and how they meet other ops.
//!
//! A quantized tensor is a float tensor to all ops: its slot has the sizes and the dtype of the floats, and holds codes and scales in place of a buffer. Where an op
//! takes it as an operand, the codes' decoding is recorded in front ([`RawTensor::plain`]), so that the compiler fuses it into the op; the floats are
//! gone after the run. Views that codes can follow stay quantized. Start reading at [`Quantized`].
mod codec;
mod host;
mod scales;
mod view;

use alloc::sync::Arc;
use alloc::vec::Vec;

use kiln_ir::{DType, Dims};
use smallvec::SmallVec;

use self::codec::Codec;
use super::RawTensor;
use crate::quantization::{BlockLayout, Calibration, QuantScheme, ScaleDtype, global_scale_dtype, params_shape, quantizable};
use crate::trace::{self, Operand, Slot};
use crate::{ExecutionError, FloatDType, Shape};

/// What is kept of a quantized tensor.
#[derive(Clone)]
pub(crate) struct Quantized {
    /// How the values, as the tensor shows them, are represented.
    pub scheme: QuantScheme,
    /// The sizes that codes and scales lie in.
    stored: Dims,
    /// Sizes of a block along each stored axis, if there are blocks.
    block: Option<Dims>,
    /// Axis `i` of the tensor is this stored axis; in order if empty.
    axes: SmallVec<[usize; 6]>,
    /// Packed codes.
    codes: RawTensor,
    /// One scale a block, rank 1.
    scales: RawTensor,
    /// The second scale, `F32` of shape `[1]`.
    global: Option<RawTensor>,
}

/// Sizes with each axis of more than one block split into blocks and places in a block, and which of the axes are places.
fn split(dims: &[usize], block: &[usize]) -> (Dims, Vec<usize>) {
    let (mut split, mut places) = (Dims::new(), Vec::new());
    for (size, block) in dims.iter().zip(block) {
        split.push(size / block);
        if *block > 1 {
            places.push(split.len());
            split.push(*block);
        }
    }
    (split, places)
}

/// The sizes of a scheme's blocks, one an axis, if they divide a tensor. Panics at the caller if they don't.
#[track_caller]
fn blocks_of(op: &str, scheme: &QuantScheme, dims: &[usize]) -> Option<Dims> {
    let block = scheme.block_size()?;
    let layout = BlockLayout::new(&Shape::from(dims), &block);
    let whole = block.len() <= dims.len() && layout.divides();
    assert!(whole, "{op}: blocks of {:?} do not divide a tensor of shape {dims:?}", block.as_slice());
    Some(Dims::from_slice(layout.block()))
}

impl Quantized {
    /// The values along the stored axes, in `F32`.
    fn decoded(&self) -> RawTensor {
        let codec = Codec::of(self.scheme.value);
        let values = codec.decode(&codec.unpack(&self.codes, &self.stored));
        let mut scales = scales::decode(&self.scales, self.scheme.scale_dtype());
        if let Some(global) = &self.global {
            scales = scales.mul(global);
        }
        let Some(block) = &self.block else {
            return values.mul(&scales.reshape(&Dims::from_elem(1, self.stored.len())));
        };
        let (sizes, places) = split(&self.stored, block);
        let mut across = sizes.clone();
        places.iter().for_each(|axis| across[*axis] = 1);
        values.reshape(&sizes).mul(&scales.reshape(&across)).reshape(&self.stored)
    }

    /// The floats that the codes stand for.
    fn dequantized(&self, dtype: DType) -> RawTensor {
        let values = self.decoded().cast(dtype);
        if self.axes.is_empty() { values } else { values.permute(&self.axes) }
    }

    /// The sizes of the tensor.
    fn dims(&self) -> Dims {
        if self.axes.is_empty() { self.stored.clone() } else { self.axes.iter().map(|axis| self.stored[*axis]).collect() }
    }

    /// The stored axis behind an axis of the tensor.
    fn stored_axis(&self, axis: usize) -> usize {
        self.axes.get(axis).copied().unwrap_or(axis)
    }

    fn parts(&self) -> impl Iterator<Item = &RawTensor> {
        [&self.codes, &self.scales].into_iter().chain(&self.global)
    }

    /// The same with every part changed.
    fn map(&self, f: impl Fn(&RawTensor) -> RawTensor) -> Quantized {
        Quantized { codes: f(&self.codes), scales: f(&self.scales), global: self.global.as_ref().map(f), ..self.clone() }
    }
}

impl RawTensor {
    /// What is kept of this tensor if it is quantized.
    pub(crate) fn quantized(&self) -> Option<&Quantized> {
        self.slot.quantized.as_deref()
    }

    /// Whether codes and scales are kept in place of floats.
    pub fn is_quantized(&self) -> bool {
        self.slot.quantized.is_some()
    }

    /// Bytes that the elements take on the device. Of a quantized tensor: those of codes and scales.
    pub fn stored_bytes(&self) -> usize {
        self.quantized().map_or(self.slot.bytes(), |q| q.parts().map(|part| part.slot.bytes()).sum())
    }

    /// A tensor with this one's place and autodiff settings that stands for codes and scales, untracked.
    fn standing_for(&self, quantized: Arc<Quantized>, dtype: DType) -> RawTensor {
        let slot = Slot::quantized(quantized.dims(), dtype, trace::current(self.slot.cell.device), quantized);
        RawTensor { slot, context: self.context.fitting(dtype), tape: None }
    }

    /// The same codes and scales, computed with in another float type.
    pub(super) fn computed_in(&self, dtype: DType) -> RawTensor {
        match &self.slot.quantized {
            Some(quantized) if dtype != self.dtype() => self.standing_for(quantized.clone(), dtype),
            _ => self.clone(),
        }
    }

    /// This tensor, if it is quantized, computed in the float type of an operand beside it.
    pub(super) fn computed_with(&self, other: &RawTensor) -> RawTensor {
        if other.dtype().is_float() { self.computed_in(other.dtype()) } else { self.clone() }
    }

    /// The tensor as ops take it: of a quantized one the floats that its codes stand for, to be computed where they are used.
    #[track_caller]
    pub(crate) fn plain(&self) -> RawTensor {
        match self.quantized() {
            Some(quantized) => RawTensor { context: self.context, ..quantized.dequantized(self.dtype()) },
            None => self.clone(),
        }
    }

    /// The floats of a quantized tensor, in the device's float type; any other tensor as it is.
    #[track_caller]
    pub fn dequantize(&self) -> RawTensor {
        self.plain()
    }

    /// The range of each block, or of the whole tensor, as two tensors of rank 1.
    #[track_caller]
    pub(crate) fn quantization_range(&self, scheme: &QuantScheme, calibration: Calibration) -> [RawTensor; 2] {
        assert!(self.numel() > 0, "quantize: a tensor without elements has no range: shape {:?}", self.dims());
        let x = self.untracked().plain().cast(DType::F32);
        let (sizes, axes) = match blocks_of("quantize", scheme, self.dims()) {
            Some(block) => split(self.dims(), &block),
            None => (Dims::from_slice(&[x.numel()]), [0].into()),
        };
        let (x, count) = (x.reshape(&sizes), axes.iter().map(|axis| sizes[*axis]).product::<usize>());
        let flat = |x: RawTensor| x.reshape(&[sizes.iter().product::<usize>() / count]);
        match calibration {
            Calibration::MinMax => [flat(x.min(&axes)), flat(x.max(&axes))],
            Calibration::AbsMean => {
                let mean = flat(x.abs().mean(&axes));
                [mean.neg(), mean]
            }
        }
    }

    /// The tensor quantized by scales of rank 1. It is untracked: no gradient flows through rounding.
    #[track_caller]
    pub(crate) fn quantize(&self, scheme: &QuantScheme, scales: &RawTensor, global: Option<&RawTensor>) -> RawTensor {
        assert!(
            quantizable(scheme),
            "quantize: scales of two levels are an F32 for the tensor and F16 or UE4M3 for the blocks, whose range the tensor's can absorb: {scheme:?}"
        );
        let dims = Dims::from_slice(self.dims());
        let block = blocks_of("quantize", scheme, &dims);
        let count = params_shape(&Shape::from(self.dims()), scheme).num_elements();
        assert!(scales.numel() == count, "quantize: shape {dims:?} needs {count} scales, found {}: {scheme:?}", scales.numel());
        let levels = global_scale_dtype(scheme).is_some();
        assert!(
            global.is_some_and(|g| g.numel() == 1) || (!levels && global.is_none()),
            "quantize: a second scale of one element goes with scales of two levels, and only with them: {scheme:?}"
        );
        let dtype = scheme.scale_dtype();
        let scales = scales::encode(&scales.untracked().plain().cast(DType::F32).reshape(&[count]), dtype);
        let global = global.map(|g| scales::encode(&g.untracked().plain().cast(DType::F32).reshape(&[1]), ScaleDtype::F32));
        let mut factor = scales::decode(&scales, dtype);
        if let Some(global) = &global {
            factor = factor.mul(global);
        }
        // Multiplied, as Burn does: of values halfway between two codes the rounding of a division would choose the other one.
        let factor = factor.recip();
        let x = self.untracked().plain().cast(DType::F32);
        let scaled = match &block {
            None => x.mul(&factor.reshape(&Dims::from_elem(1, dims.len()))),
            Some(block) => {
                let (sizes, places) = split(&dims, block);
                let mut across = sizes.clone();
                places.iter().for_each(|axis| across[*axis] = 1);
                x.reshape(&sizes).mul(&factor.reshape(&across)).reshape(&dims)
            }
        };
        let codes = Codec::of(scheme.value).encode(&scaled);
        let quantized = Quantized { scheme: *scheme, stored: dims, block, axes: SmallVec::new(), codes, scales, global }
            .map(|part| part.clone().without_autodiff());
        self.standing_for(Arc::new(quantized), self.float_dtype())
    }

    /// The device's float type.
    fn float_dtype(&self) -> DType {
        FloatDType::into_stored(self.device().settings().float_dtype)
    }

    /// Computes the parts of a quantized tensor.
    pub(super) fn realize_parts(&self) -> Result<(), ExecutionError> {
        self.quantized().into_iter().flat_map(Quantized::parts).try_for_each(RawTensor::realize)
    }

    /// Whether this is a quantized tensor whose parts are in memory.
    pub(super) fn parts_ready(&self) -> bool {
        self.quantized().is_some_and(|q| q.parts().all(RawTensor::is_ready))
    }

    /// The parts of a quantized tensor on another device.
    pub(super) fn copy_parts_to(&self, device: &crate::Device) -> Option<RawTensor> {
        let moved = self.quantized()?.map(|part| part.to_device(device));
        let slot = Slot::quantized(moved.dims(), self.dtype(), trace::current(device.state), Arc::new(moved));
        Some(RawTensor { slot, context: self.context, tape: None })
    }
}

impl FloatDType {
    fn into_stored(self) -> DType {
        crate::DType::from(self).into()
    }
}

/// The tensors among operands with quantized ones computed in the float type of those that are not; `None` if they are already.
#[cold]
pub(super) fn in_one_dtype(operands: &[Operand<'_>]) -> Option<SmallVec<[RawTensor; 4]>> {
    let tensors = || {
        operands.iter().filter_map(|o| match o {
            Operand::Tensor(t) => Some(*t),
            Operand::Scalar(_) => None,
        })
    };
    let dtype = tensors().find(|t| !t.is_quantized() && t.dtype().is_float())?.dtype();
    let differs = tensors().any(|t| t.is_quantized() && t.dtype() != dtype);
    differs.then(|| tensors().map(|t| t.computed_in(dtype)).collect())
}

/// Operands with other tensors in place of theirs, one for each in order.
pub(super) fn replaced<'a>(operands: &[Operand<'_>], tensors: &'a [RawTensor]) -> SmallVec<[Operand<'a>; 8]> {
    let mut next = tensors.iter();
    let operand = |o: &Operand<'_>| match o {
        Operand::Tensor(_) => Operand::Tensor(next.next().expect("one tensor for each")),
        Operand::Scalar(s) => Operand::Scalar(*s),
    };
    operands.iter().map(operand).collect()
}

/// The tensors among operands as ops take them.
#[cold]
#[track_caller]
pub(super) fn all_plain(operands: &[Operand<'_>]) -> SmallVec<[RawTensor; 4]> {
    let mut tensors = SmallVec::new();
    for o in operands {
        if let Operand::Tensor(t) = o {
            tensors.push(t.plain());
        }
    }
    tensors
}
