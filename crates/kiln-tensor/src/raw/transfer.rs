//! Elements in and out: from host bytes, to host bytes, to another device.
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use kiln_ir::{Buffer, DType, Dims, HostMemory, Runtime, RuntimeError, dims};

use super::RawTensor;
use crate::autodiff::{self, Keep};
use crate::trace::{self, Slot};
use crate::{AllocationProperty, Bytes};
use crate::{Device, ExecutionError};

/// Why elements could not be read.
pub type TensorError = RuntimeError;

/// Fewer bytes than this are copied, which costs next to nothing and ties no memory to another's life.
const SHARED: usize = 64 << 10;
/// Fewer bytes than this are copied where they lie across cache lines, since some kernels read small operands faster in line.
const SHARED_ACROSS_LINES: usize = 1 << 20;
const CACHE_LINE: usize = 64;

impl HostMemory for Bytes {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A buffer in host memory, as bytes.
struct Lent {
    buffer: Buffer,
    runtime: &'static dyn Runtime,
    len: usize,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.runtime.host_bytes(&self.buffer).expect("the buffer was seen to lie in host memory");
        &bytes[..self.len]
    }
}

impl RawTensor {
    /// A tensor of row-major, native-endian elements. Bools are bytes 0 and 1. A failed upload shows when the tensor is read.
    #[track_caller]
    pub fn from_bytes(device: &Device, dims: &[usize], dtype: DType, bytes: &[u8]) -> RawTensor {
        Self::settled(device, dims, dtype, bytes.len(), || device.state.runtime.upload(bytes))
    }

    /// As [`RawTensor::from_bytes`], of memory that may be shared: a device that computes in host memory then reads large tensors where they lie.
    #[track_caller]
    pub fn from_memory(device: &Device, dims: &[usize], dtype: DType, bytes: Bytes) -> RawTensor {
        let len = bytes.len();
        let value = || {
            let aligned = |to: usize| bytes.as_ptr().addr() & (to - 1) == 0;
            let large = len >= SHARED && (len >= SHARED_ACROSS_LINES || aligned(CACHE_LINE));
            // Where a mapped file cannot be replaced, tensors must not keep it mapped.
            let replaceable = cfg!(unix) || bytes.property() == AllocationProperty::Native;
            match replaceable && bytes.is_shared() && large && aligned(dtype.size()) {
                true => device.state.runtime.adopt(Arc::new(bytes)),
                false => device.state.runtime.upload(&bytes),
            }
        };
        Self::settled(device, dims, dtype, len, value)
    }

    #[track_caller]
    fn settled(device: &Device, dims: &[usize], dtype: DType, len: usize, value: impl FnOnce() -> Result<Buffer, RuntimeError>) -> RawTensor {
        if len != dims::numel(dims) * dtype.size() {
            panic!("from_bytes: {dtype}{dims:?} needs {} bytes, not {len}", dims::numel(dims) * dtype.size());
        }
        let value = value();
        let slot = Slot::settled(dims.into(), dtype, trace::current(device.state), value);
        RawTensor { slot, context: device.context, tape: None }
    }

    /// A tensor from elements in memory.
    #[track_caller]
    pub fn from_slice<E: bytemuck::NoUninit>(device: &Device, dims: &[usize], dtype: DType, elements: &[E]) -> RawTensor {
        Self::from_bytes(device, dims, dtype, bytemuck::cast_slice(elements))
    }

    /// The elements, row-major and native-endian. Runs what is pending.
    ///
    /// # Errors
    /// What went wrong while the tensor was computed or copied.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ExecutionError> {
        let mut bytes = vec![0; self.slot.bytes()];
        self.read_into(&mut bytes)?;
        Ok(bytes)
    }

    /// The elements as [`RawTensor::to_bytes`]; large ones that lie in host memory are shared, not copied. Runs what is pending.
    ///
    /// # Errors
    /// What went wrong while the tensor was computed or copied.
    pub fn to_memory(&self) -> Result<Bytes, ExecutionError> {
        if self.is_quantized() {
            return self.plain().to_memory();
        }
        let (len, runtime) = (self.slot.bytes(), &*self.slot.cell.device.runtime);
        if len >= SHARED {
            let buffer = self.slot.wait()?;
            if runtime.host_bytes(&buffer).is_some_and(|bytes| bytes.len() >= len) {
                return Ok(Bytes::from_owner(Lent { buffer, runtime, len }));
            }
        }
        let mut bytes = Bytes::zeroed(len, self.dtype().size());
        self.read_into(&mut bytes)?;
        Ok(bytes)
    }

    /// The elements into a slice of their size.
    ///
    /// # Errors
    /// What went wrong while the tensor was computed or copied.
    #[track_caller]
    pub fn read_into(&self, out: &mut [u8]) -> Result<(), ExecutionError> {
        if out.len() != self.slot.bytes() {
            panic!("read_into: {self:?} has {} bytes, not {}", self.slot.bytes(), out.len());
        }
        if self.is_quantized() {
            return self.plain().read_into(out);
        }
        let buffer = self.slot.wait()?;
        self.slot.cell.device.runtime.download(&buffer, out)?;
        Ok(())
    }

    /// Computes the tensor if it is pending; afterwards it is in memory.
    ///
    /// # Errors
    /// What went wrong.
    pub fn realize(&self) -> Result<(), ExecutionError> {
        if self.is_quantized() {
            return self.realize_parts();
        }
        self.slot.wait()?;
        Ok(())
    }

    /// Whether the elements are in memory already.
    pub fn is_ready(&self) -> bool {
        self.parts_ready() || matches!(self.slot.value(), Some(Ok(_)))
    }

    /// The same elements on another device. The autodiff context stays this tensor's, and the gradient flows back.
    pub fn to_device(&self, device: &Device) -> RawTensor {
        if core::ptr::eq(device.state, self.slot.cell.device) {
            return self.clone();
        }
        let target = device.clone().without_autodiff();
        if let Some(moved) = self.copy_parts_to(&target) {
            return moved;
        }
        let moved = self.copy_to(&target);
        let source = self.device().without_autodiff();
        autodiff::custom(&[self], moved, Keep::Nothing, move |call| [Some(call.dy.copy_to(&source))].into())
    }

    fn copy_to(&self, device: &Device) -> RawTensor {
        let value = self.slot.wait().and_then(|buffer| {
            if let Some(bytes) = self.slot.cell.device.runtime.host_bytes(&buffer).and_then(|bytes| bytes.get(..self.slot.bytes())) {
                return device.state.runtime.upload(bytes);
            }
            let mut bytes = vec![0; self.slot.bytes()];
            self.slot.cell.device.runtime.download(&buffer, &mut bytes)?;
            device.state.runtime.upload(&bytes)
        });
        let slot = Slot::settled(Dims::from_slice(self.dims()), self.dtype(), trace::current(device.state), value);
        RawTensor { slot, context: self.context, tape: None }
    }

    /// The elements as `f64`, for messages and tests.
    ///
    /// # Errors
    /// As for [`RawTensor::to_bytes`].
    pub fn to_f64s(&self) -> Result<Vec<f64>, ExecutionError> {
        let bytes = self.to_bytes()?;
        Ok((0..self.numel()).map(|i| kiln_ir::interp::value::read(self.dtype(), &bytes, i).float()).collect())
    }
}

/// Shows a tensor's type, not its elements.
impl fmt::Display for RawTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype(), self.dims())
    }
}
