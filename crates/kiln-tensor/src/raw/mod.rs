//! The untyped tensor that everything above is a shell of: shapes and dtypes are values, every op is one method.
//!
//! [`RawTensor`] is a handle; methods record ops and return at once. Each primitive of the language has one method here, and ops that are composed of others are methods
//! like them. All methods panic at the caller's line when shapes, dtypes or devices don't fit. Start reading at `apply` below, which every op goes through.
mod activation;
mod attention;
mod contract;
mod conv;
mod create;
mod elementwise;
mod index;
mod norm;
mod pool;
mod power;
mod quantized;
mod random;
mod reduce;
mod region;
mod sort;
mod transfer;
mod view;

use alloc::sync::Arc;
use alloc::vec::Vec;

use kiln_ir::infer::{self, InferError};
use kiln_ir::{DType, Dims, Op, dims};
use smallvec::SmallVec;

pub use attention::AttentionOptions;
pub use conv::{ConvOptions, ConvTransposeOptions};
pub use norm::Normalized;
pub use pool::PoolOptions;
pub(crate) use quantized::Quantized;
pub use transfer::TensorError;
pub use view::SliceRange;

use crate::autodiff::{self, Entry};
use crate::device::{Context, Device, DeviceState, Labels};
use crate::trace::{self, Operand, ScalarWord, Slot};
use crate::{BoolStore, Scalar};

/// A tensor of any rank and dtype: a handle to elements on a device, computed or still to be computed.
///
/// Cloning is cheap and shares the elements. Dropping the last handle frees them; a result that nobody holds when its trace runs is never materialised.
#[derive(Clone)]
pub struct RawTensor {
    pub(crate) slot: Arc<Slot>,
    pub(crate) context: Context,
    /// How it came to be, if a gradient may flow through it.
    pub(crate) tape: Option<Arc<Entry>>,
}

/// How elements of a dtype of the API are stored, or `None` for quantized types.
pub(crate) fn storage_dtype(dtype: crate::DType) -> Option<DType> {
    use crate::DType as Api;
    Some(match dtype {
        Api::F64 => DType::F64,
        Api::F32 | Api::Flex32 => DType::F32,
        Api::F16 => DType::F16,
        Api::BF16 => DType::BF16,
        Api::I64 => DType::I64,
        Api::I32 => DType::I32,
        Api::I16 => DType::I16,
        Api::I8 => DType::I8,
        Api::U64 => DType::U64,
        Api::U32 => DType::U32,
        Api::U16 => DType::U16,
        Api::U8 => DType::U8,
        Api::Bool(BoolStore::Native | BoolStore::U8 | BoolStore::U32) => DType::Bool,
        Api::QFloat(_) => return None,
    })
}

/// The word of a scalar for a dtype.
pub(crate) fn scalar_word(dtype: DType, s: Scalar) -> u64 {
    use kiln_ir::op::{word_from_f64, word_from_int};
    match s {
        Scalar::Float(v) => word_from_f64(dtype, v),
        Scalar::Int(v) if dtype != DType::Bool => word_from_int(dtype, v as i128),
        Scalar::UInt(v) if dtype != DType::Bool => word_from_int(dtype, v as i128),
        Scalar::Int(v) => (v != 0) as u64,
        Scalar::UInt(v) => (v != 0) as u64,
        Scalar::Bool(v) => word_from_int(dtype, v as i128),
    }
}

/// A run-time scalar operand of a dtype.
pub(crate) fn arg(dtype: DType, s: Scalar) -> Operand<'static> {
    Operand::Scalar(ScalarWord::Arg(dtype, scalar_word(dtype, s)))
}

/// A structural constant of a dtype.
pub(crate) fn constant(dtype: DType, v: f64) -> Operand<'static> {
    Operand::Scalar(ScalarWord::Const(dtype, kiln_ir::op::word_from_f64(dtype, v)))
}

impl Operand<'_> {
    /// Whether this is a tensor of which codes and scales are kept.
    #[inline]
    fn is_quantized(&self) -> bool {
        match self {
            Operand::Tensor(t) => t.is_quantized(),
            Operand::Scalar(_) => false,
        }
    }

    /// Sizes and dtype.
    pub(crate) fn type_of(&self) -> infer::Type<'_> {
        match self {
            Operand::Tensor(t) => (&t.slot.dims, t.slot.dtype),
            Operand::Scalar(ScalarWord::Const(d, _) | ScalarWord::Arg(d, _)) => (&[], *d),
            Operand::Scalar(ScalarWord::Start(_)) => (&[], DType::I64),
        }
    }
}

#[cold]
#[track_caller]
fn refuse(e: InferError) -> ! {
    panic!("{e}")
}

/// Panics at the caller unless elements of a type in this shape can be addressed.
#[inline]
#[track_caller]
pub(crate) fn check_size(op: &str, dims: &[usize], dtype: DType, operands: &[Operand<'_>]) {
    if !dims::fits(dims, dtype.size()) {
        too_large(op, dims, dtype, operands)
    }
}

#[cold]
#[track_caller]
fn too_large(op: &str, dims: &[usize], dtype: DType, operands: &[Operand<'_>]) -> ! {
    let mut from = alloc::string::String::new();
    for operand in operands {
        let (dims, dtype) = operand.type_of();
        from += &alloc::format!("{}{dtype}{dims:?}", if from.is_empty() { ", from " } else { ", " });
    }
    panic!("{op}: too many elements: {dtype}{dims:?}{from}")
}

/// Records an op whose result the operands determine. Panics at the caller when they don't fit.
#[track_caller]
pub(crate) fn apply(op: Op, operands: &[Operand<'_>]) -> RawTensor {
    if operands.iter().any(Operand::is_quantized)
        && let Some(tensors) = quantized::in_one_dtype(operands)
    {
        return apply(op, &quantized::replaced(operands, &tensors));
    }
    let types: SmallVec<[infer::Type<'_>; 8]> = operands.iter().map(Operand::type_of).collect();
    match infer::infer(&op, &types) {
        Ok((dims, dtype)) => {
            drop(types);
            emit(op, operands, dims, dtype, false)
        }
        Err(e) => refuse(e),
    }
}

/// Records an op with a stated result. Panics at the caller when the operands don't fit it.
#[track_caller]
pub(crate) fn apply_as(op: Op, operands: &[Operand<'_>], dims: &[usize], dtype: DType) -> RawTensor {
    let types: SmallVec<[infer::Type<'_>; 8]> = operands.iter().map(Operand::type_of).collect();
    if let Err(e) = infer::check(&op, &types, dims, dtype) {
        refuse(e)
    }
    drop(types);
    emit(op, operands, dims.into(), dtype, true)
}

/// Records an op whose operands are known to fit; there is at least one tensor among them.
#[track_caller]
pub(crate) fn emit(op: Op, operands: &[Operand<'_>], dims: Dims, dtype: DType, stated: bool) -> RawTensor {
    if operands.iter().any(Operand::is_quantized) {
        // What is recorded are the floats that the codes stand for; what the tape keeps is quantized.
        let plain = quantized::all_plain(operands);
        return record(op, &quantized::replaced(operands, &plain), operands, dims, dtype, stated);
    }
    record(op, operands, operands, dims, dtype, stated)
}

/// Records an op of operands none of which is quantized. `kept` are the same operands as the tape keeps them.
#[inline]
#[track_caller]
fn record(op: Op, operands: &[Operand<'_>], kept: &[Operand<'_>], dims: Dims, dtype: DType, stated: bool) -> RawTensor {
    check_size(op.name(), &dims, dtype, operands);
    let (device, context, tracked) = survey(&op, operands);
    let context = context.fitting(dtype);
    let cell = trace::current(device);
    if tracked && dtype.is_float() && autodiff::is_differentiable(&op) {
        let slot = cell.record(&op, operands, dims, dtype, stated);
        return autodiff::track(&op, kept, RawTensor { slot, context, tape: None }, None);
    }
    RawTensor { slot: cell.record(&op, operands, dims, dtype, stated), context, tape: None }
}

/// Records an op with several results. The first is tracked if an operand is; the others are not.
#[track_caller]
pub(crate) fn apply_results<const N: usize>(op: Op, operands: &[Operand<'_>]) -> [RawTensor; N] {
    if operands.iter().any(Operand::is_quantized) {
        let tensors = quantized::in_one_dtype(operands).unwrap_or_else(|| quantized::all_plain(operands));
        return apply_results(op, &quantized::replaced(operands, &quantized::all_plain(&quantized::replaced(operands, &tensors))));
    }
    let types: SmallVec<[infer::Type<'_>; 8]> = operands.iter().map(Operand::type_of).collect();
    let mut results: SmallVec<[(Dims, DType); 3]> = SmallVec::new();
    match infer::infer(&op, &types) {
        Ok(first) => results.push(first),
        Err(e) => refuse(e),
    }
    for i in 1..N {
        match infer::infer_result(&op, &types, (&results[0].0, results[0].1), i as u32) {
            Ok(t) => results.push(t),
            Err(e) => refuse(e),
        }
    }
    results.iter().for_each(|(dims, dtype)| check_size(op.name(), dims, *dtype, operands));
    let (device, context, tracked) = survey(&op, operands);
    let slots = trace::current(device).record_results(&op, operands, &results);
    let mut tensors = slots.into_iter().map(|slot| RawTensor { context: context.fitting(slot.dtype), slot, tape: None });
    let mut out: [RawTensor; N] = core::array::from_fn(|_| tensors.next().expect("one slot a result"));
    if tracked && out[0].dtype().is_float() && autodiff::is_differentiable(&op) {
        out[0] = autodiff::track(&op, operands, out[0].clone(), out.get(1));
    }
    out
}

/// The device of the operands, the context of the result, and whether an operand is tracked. Panics at the caller when the devices differ.
#[inline]
#[track_caller]
fn survey(op: &Op, operands: &[Operand<'_>]) -> (&'static DeviceState, Context, bool) {
    let mut first: Option<&RawTensor> = None;
    let mut context = Context::default();
    let mut tracked = false;
    for o in operands {
        if let Operand::Tensor(t) = o {
            context = context.with(t.context);
            tracked |= t.tape.is_some();
            match first {
                Some(f) if !core::ptr::eq(f.slot.cell.device, t.slot.cell.device) => {
                    panic!("{}: devices differ: {:?}, {:?}", op.name(), f.device(), t.device())
                }
                Some(_) => {}
                None => first = Some(t),
            }
        }
    }
    (first.expect("an op has a tensor operand").slot.cell.device, context, tracked)
}

/// Records an op without tensor operands on a device.
#[track_caller]
pub(crate) fn emit_on(device: &Device, op: Op, operands: &[Operand<'_>], dims: &[usize], dtype: DType) -> RawTensor {
    check_size(op.name(), dims, dtype, &[]);
    let slot = trace::current(device.state).record(&op, operands, dims.into(), dtype, true);
    RawTensor { slot, context: device.context, tape: None }
}

impl RawTensor {
    /// Sizes, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.slot.dims
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.slot.dims.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        dims::numel(&self.slot.dims)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.slot.dtype
    }

    /// Element type as the API names it: flexible floats and the stores of booleans are told apart, though programs compute with one type for each.
    #[inline]
    pub fn api_dtype(&self) -> crate::DType {
        if let Some(quantized) = self.quantized() {
            return crate::DType::QFloat(quantized.scheme);
        }
        self.context.labels.dtype(self.slot.dtype, || self.slot.cell.device.bool_store())
    }

    /// The same elements under a dtype that is stored alike.
    pub(crate) fn labelled(mut self, dtype: crate::DType) -> RawTensor {
        self.context.labels = Labels::of(dtype).fitting(self.slot.dtype);
        self
    }

    /// The elements in another type of the API.
    #[track_caller]
    pub(crate) fn cast_to(&self, dtype: crate::DType) -> RawTensor {
        self.cast(dtype.into()).labelled(dtype)
    }

    /// Where it lives, with its autodiff settings.
    pub fn device(&self) -> Device {
        Device { state: self.slot.cell.device, context: Context { labels: Labels::default(), ..self.context } }
    }

    /// Whether nobody else holds these elements, so that an op may reuse their memory.
    pub fn is_unique(&self) -> bool {
        Arc::strong_count(&self.slot) == 1
    }

    /// Whether both are handles of the same elements.
    pub fn same_as(&self, other: &RawTensor) -> bool {
        Arc::ptr_eq(&self.slot, &other.slot)
    }

    /// Makes an axis from an index that may count from the end.
    #[track_caller]
    pub(crate) fn check_axis(&self, op: &str, axis: usize) {
        if axis >= self.rank() {
            panic!("{op}: axis {axis} is out of range for a tensor of rank {}: {:?}", self.rank(), self.dims());
        }
    }

    /// The same elements without any history.
    pub(crate) fn untracked(&self) -> RawTensor {
        RawTensor { slot: self.slot.clone(), context: self.context, tape: None }
    }
}

impl core::fmt::Debug for RawTensor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}{:?} on {:?}", self.dtype(), self.dims(), self.device())
    }
}

/// Sizes with the axes of a mask set to 1.
pub(crate) fn keep_dims(dims: &[usize], axes: u32) -> Vec<usize> {
    dims.iter().enumerate().map(|(a, d)| if axes >> a & 1 == 1 { 1 } else { *d }).collect()
}
