//! Slots: the places results come to, shared by every handle of a tensor.
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use kiln_ir::{Buffer, DType, Dims, RuntimeError, dims};

use super::TraceCell;
use crate::raw::Quantized;

/// Bits of [`Slot::place`] that hold the node's index; the others hold the recording's number.
const NODE_BITS: u32 = 24;

/// Where a tensor's elements are or will be. Pending until its trace has run, then ready or failed for ever.
pub(crate) struct Slot {
    /// Sizes.
    pub dims: Dims,
    /// Element type.
    pub dtype: DType,
    /// The trace that computes it (for a slot that was born ready: a trace of its device).
    pub cell: &'static TraceCell,
    /// Number of the recording that knows this slot last, and the index of its node there.
    place: AtomicU64,
    /// The result, set once.
    value: spin::Once<Result<Buffer, RuntimeError>>,
    /// What is kept in place of a result. Such a slot is no operand of a node: see `raw/quantized`.
    pub quantized: Option<Arc<Quantized>>,
}

impl Slot {
    /// A slot that node `node` of the recording `number` will fill.
    #[inline]
    pub fn pending(dims: Dims, dtype: DType, cell: &'static TraceCell, number: u64, node: u32) -> Arc<Self> {
        Arc::new(Slot { dims, dtype, cell, place: AtomicU64::new(number << NODE_BITS | node as u64), value: spin::Once::new(), quantized: None })
    }

    /// Makes a slot that nobody else holds forget its result, for [`Slot::renew`]. False if somebody holds it.
    #[inline]
    pub fn clear(slot: &mut Arc<Self>) -> bool {
        match Arc::get_mut(slot) {
            Some(slot) => {
                if slot.value.is_completed() {
                    slot.value = spin::Once::new();
                }
                true
            }
            None => false,
        }
    }

    /// As [`Slot::pending`], in the memory of a slot that was cleared.
    #[inline]
    pub fn renew(mut slot: Arc<Self>, dims: Dims, dtype: DType, cell: &'static TraceCell, number: u64, node: u32) -> Arc<Self> {
        match Arc::get_mut(&mut slot) {
            Some(old) => {
                old.dims = dims;
                old.dtype = dtype;
                old.cell = cell;
                *old.place.get_mut() = number << NODE_BITS | node as u64;
                slot
            }
            None => Self::pending(dims, dtype, cell, number, node),
        }
    }

    /// A slot whose elements are known.
    pub fn settled(dims: Dims, dtype: DType, cell: &'static TraceCell, value: Result<Buffer, RuntimeError>) -> Arc<Self> {
        Arc::new(Slot { dims, dtype, cell, place: AtomicU64::new(0), value: spin::Once::initialized(value), quantized: None })
    }

    /// The slot of a tensor that is kept quantized.
    pub fn quantized(dims: Dims, dtype: DType, cell: &'static TraceCell, quantized: Arc<Quantized>) -> Arc<Self> {
        Arc::new(Slot { dims, dtype, cell, place: AtomicU64::new(0), value: spin::Once::new(), quantized: Some(quantized) })
    }

    /// The slot's node in the recording `number`, if that recording was the last to register it.
    #[inline]
    pub fn node_in(&self, number: u64) -> Option<u32> {
        let p = self.place.load(Ordering::Relaxed);
        if p >> NODE_BITS == number { Some(p as u32 & ((1 << NODE_BITS) - 1)) } else { None }
    }

    /// Notes the node of a recording.
    pub fn set_node(&self, number: u64, node: u32) {
        self.place.store(number << NODE_BITS | node as u64, Ordering::Relaxed);
    }

    /// The result, if there is one yet.
    #[inline]
    pub fn value(&self) -> Option<&Result<Buffer, RuntimeError>> {
        self.value.get()
    }

    /// Sets the result; a second call changes nothing.
    pub fn settle(&self, value: Result<Buffer, RuntimeError>) {
        self.value.call_once(|| value);
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> usize {
        dims::numel(&self.dims) * self.dtype.size()
    }

    /// The result, after running the trace it waits for.
    pub fn wait(&self) -> Result<Buffer, RuntimeError> {
        if self.value.get().is_none() {
            // The error, if any, is also in the slot.
            let _ = self.cell.flush();
        }
        match self.value.get() {
            Some(v) => v.clone(),
            None if self.quantized.is_some() => Err(RuntimeError::Poisoned("a quantized tensor was asked for a buffer".into())),
            None => Err(RuntimeError::Poisoned("a trace ran without settling one of its results".into())),
        }
    }
}
