//! `Device`: where tensors live and are computed, and whether gradients are recorded.
mod id;
mod labels;
mod memory;
#[cfg(feature = "std")]
mod profile;
mod registry;
mod settings;
mod state;

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use kiln_ir::{DeviceInfo, MatmulPrecision, Runtime, RuntimeError};

pub use id::DeviceId;
pub(crate) use labels::Labels;
pub use memory::{MemoryPoolUsage, SlicedPoolReport};
#[cfg(feature = "std")]
pub use profile::{DynFut, ProfileDuration, ProfileOptions, ProfileTicks, TimingMethod};
pub use registry::{DeviceFilter, DeviceIndex, DeviceKind, DeviceType, Devices};
pub use settings::{DeviceConfig, DeviceError, DeviceSettings};
pub(crate) use state::DeviceState;
pub use state::TraceStats;

use crate::{DType, ExecutionError, TensorData, trace};

/// How much of a forward pass is kept for the backward pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GradientCheckpointingStrategy {
    /// Cheap results are computed again in the backward pass instead of being kept.
    Balanced,
    /// Everything that the gradients need is kept.
    #[default]
    Disabled,
}

/// Whether and how tensors made on a device take part in autodiff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    /// Gradients may be recorded.
    pub autodiff: bool,
    /// What is kept for them.
    pub checkpointing: GradientCheckpointingStrategy,
    /// Of a tensor: what its dtype says beyond its storage.
    pub labels: Labels,
}

impl Context {
    /// The same without autodiff.
    pub fn without_autodiff(self) -> Context {
        Context { labels: self.labels, ..Context::default() }
    }

    /// The context of a tensor of a type.
    #[inline]
    pub fn fitting(self, dtype: kiln_ir::DType) -> Context {
        Context { labels: self.labels.fitting(dtype), ..self }
    }

    /// The context of a result computed from operands of both contexts.
    #[inline]
    pub fn with(self, other: Context) -> Context {
        let labels = self.labels.with(other.labels);
        Context { labels, ..if self.autodiff { self } else { other } }
    }
}

/// Where tensors live and are computed. A cheap handle; copies name the same device.
///
/// A device also carries whether tensors made on it take part in autodiff ([`Device::autodiff`]). Equality ignores that.
///
/// ```
/// use kiln_tensor::Device;
/// let device = Device::default();
/// assert!(!device.is_autodiff());
/// assert!(device.clone().autodiff().is_autodiff());
/// assert_eq!(device, device.clone().autodiff());
/// ```
#[derive(Clone)]
pub struct Device {
    pub(crate) state: &'static DeviceState,
    pub(crate) context: Context,
}

impl Device {
    /// The same device, recording gradients of tensors that require them.
    pub fn autodiff(mut self) -> Self {
        self.context.autodiff = true;
        self
    }

    /// The same device with autodiff, keeping fewer results of the forward pass.
    pub fn gradient_checkpointing(mut self) -> Self {
        self.context = Context { autodiff: true, checkpointing: GradientCheckpointingStrategy::Balanced, ..Context::default() };
        self
    }

    /// The same device with autodiff and a strategy for what is kept.
    pub(crate) fn with_checkpointing(mut self, checkpointing: GradientCheckpointingStrategy) -> Self {
        self.context = Context { autodiff: true, checkpointing, ..self.context };
        self
    }

    /// What is kept for the backward pass; `None` without autodiff.
    pub fn gradient_checkpointing_strategy(&self) -> Option<GradientCheckpointingStrategy> {
        self.context.autodiff.then_some(self.context.checkpointing)
    }

    /// The same device without autodiff.
    pub fn without_autodiff(mut self) -> Self {
        self.context = Context::default();
        self
    }

    /// The same device without autodiff: an alias of [`Device::without_autodiff`].
    pub fn inner(self) -> Self {
        self.without_autodiff()
    }

    /// Whether tensors made on this device take part in autodiff.
    pub fn is_autodiff(&self) -> bool {
        self.context.autodiff
    }

    /// Runs everything that the calling thread has recorded and waits until the device has finished.
    ///
    /// # Errors
    /// What went wrong in a run since the last `sync` or `flush` and has not been reported by them.
    pub fn sync(&self) -> Result<(), ExecutionError> {
        let flushed = trace::current(self.state).flush();
        let synced = self.state.runtime.sync();
        let earlier = self.state.forget();
        flushed.and(synced)?;
        earlier.map_or(Ok(()), |e| Err(e.into()))
    }

    /// Starts everything that the calling thread has recorded. Optimizers call it at the end of a step.
    ///
    /// # Errors
    /// What went wrong in this run, or in one that a full trace started since the last `sync` or `flush`.
    pub fn flush(&self) -> Result<(), ExecutionError> {
        let flushed = trace::current(self.state).flush();
        let earlier = self.state.forget();
        flushed?;
        earlier.map_or(Ok(()), |e| Err(e.into()))
    }

    /// Fixes every random number drawn on this device from now on.
    pub fn seed(&self, seed: u64) {
        self.state.seeds.lock().set(seed);
    }

    /// Whether tensors of this dtype can be made and computed with.
    pub fn supports_dtype(&self, dtype: impl Into<DType>) -> bool {
        crate::raw::storage_dtype(dtype.into()).is_some_and(|d| self.state.runtime.supports_dtype(d))
    }

    /// Gives memory that the device keeps for reuse back to the system, and forgets compiled programs.
    pub fn memory_cleanup(&self) {
        let _ = trace::current(self.state).flush();
        self.state.cache.lock().clear();
        self.state.runtime.cleanup();
    }

    /// Chooses how products and convolutions of 32-bit floats are computed on this device, for every handle of it: [`MatmulPrecision::Highest`], the default, in 32-bit arithmetic;
    /// [`MatmulPrecision::High`] may round factors to TensorFloat-32 where the hardware is faster so (CUDA). Other dtypes, and devices without a choice, are not affected.
    /// What is compiled afterwards follows it; compiled programs are forgotten.
    ///
    /// ```
    /// use kiln_tensor::{Device, MatmulPrecision, Tensor};
    ///
    /// let device = Device::default();
    /// device.set_matmul_precision(MatmulPrecision::High);
    /// let a = Tensor::<2>::ones([4, 4], &device);
    /// assert_eq!(a.clone().matmul(a).sum().into_scalar::<f32>(), 64.0);
    /// device.set_matmul_precision(MatmulPrecision::Highest);
    /// assert_eq!(device.matmul_precision(), MatmulPrecision::Highest);
    /// ```
    pub fn set_matmul_precision(&self, precision: MatmulPrecision) {
        let _ = trace::current(self.state).flush();
        let mut cache = self.state.cache.lock();
        *self.state.precision.lock() = precision;
        self.state.runtime.set_matmul_precision(precision);
        cache.clear();
    }

    /// How products and convolutions of 32-bit floats are computed.
    pub fn matmul_precision(&self) -> MatmulPrecision {
        *self.state.precision.lock()
    }

    /// What the device is, for people.
    pub fn info(&self) -> DeviceInfo {
        self.state.runtime.info()
    }

    /// What traces on this device have done so far: for tests and diagnosis.
    pub fn trace_stats(&self) -> TraceStats {
        self.state.stats.read(self.state.cache.lock().len())
    }

    /// Bounds the number of compiled programs that the device keeps (1,024 at first); the longest unused ones go first.
    pub fn set_program_bound(&self, programs: usize) {
        self.state.cache.lock().set_bound(programs);
    }

    /// Number of ops that the calling thread has recorded on this device and not run yet.
    pub fn pending_ops(&self) -> usize {
        trace::current(self.state).pending()
    }

    /// A device for a runtime that is not built in. `kind` names it in messages.
    pub fn with_runtime(kind: &'static str, runtime: Arc<dyn Runtime>) -> Self {
        Device { state: DeviceState::leak(kind, 0, runtime, false), context: Context::default() }
    }

    /// A device of its own whose every trace is executed by the scalar interpreter of `kiln-ir`, in the memory of `runtime`: slow, and the oracle that other
    /// devices are compared with.
    pub fn interpreting(kind: &'static str, runtime: Arc<dyn Runtime>) -> Self {
        Device { state: DeviceState::leak(kind, 0, runtime, true), context: Context::default() }
    }

    /// The dtypes that tensors have when none is given. Asking does not fix them.
    pub fn settings(&self) -> DeviceSettings {
        self.state.settings.lock().current()
    }

    /// Chooses the dtypes that tensors have when none is given. Shared by every handle of the device; only before the first tensor is made.
    ///
    /// # Errors
    /// [`DeviceError::UnsupportedDType`]; [`DeviceError::AlreadyInitialized`] after the first tensor or an earlier call.
    pub fn configure(&mut self, config: impl Into<DeviceConfig>) -> Result<(), DeviceError> {
        self.configure_with(config.into())
    }

    fn configure_with(&mut self, config: DeviceConfig) -> Result<(), DeviceError> {
        for dtype in config.dtypes() {
            if !self.supports_dtype(dtype) {
                return Err(DeviceError::unsupported_dtype(self, dtype));
            }
        }
        let mut settings = self.state.settings.lock();
        if !settings.set(config) {
            return Err(DeviceError::already_initialized(self));
        }
        self.state.set_bool_store(settings.current().bool_dtype);
        Ok(())
    }

    /// The dtypes that tensors have when none is given, fixed from now on: what making a tensor calls.
    pub fn locked_settings(&self) -> DeviceSettings {
        self.state.settings.lock().lock()
    }

    /// The devices of this process that pass the filter.
    pub fn enumerate(filter: impl Into<DeviceFilter>) -> Devices {
        registry::enumerate(filter.into())
    }

    /// Bytes in use and reserved by the device's allocator.
    pub fn memory_pool_usage(&self) -> Option<MemoryPoolUsage> {
        Some(self.state.runtime.memory().into())
    }

    /// Runs `func`, whose tensors are expected to live long. The allocator of this device keeps long-lived memory apart by itself, so this only calls it.
    pub fn memory_persistent_allocations<Output: Send, Input: Send, Func: Fn(Input) -> Output + Send>(&self, input: Input, func: Func) -> Output {
        func(input)
    }

    /// Prepares host data for a fast copy to the device. The built-in devices copy from any host memory, so nothing is done.
    pub fn staging<'a, Iter>(&self, data: Iter)
    where
        Iter: Iterator<Item = &'a mut TensorData>,
    {
        drop(data);
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.state, other.state)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.state.kind)?;
        if self.state.index != 0 {
            write!(f, ":{}", self.state.index)?;
        }
        if self.context.autodiff {
            f.write_str("+autodiff")?;
        }
        Ok(())
    }
}

impl FromIterator<Device> for Devices {
    fn from_iter<I: IntoIterator<Item = Device>>(iter: I) -> Self {
        Devices::from(iter.into_iter().collect::<Vec<_>>())
    }
}

impl From<RuntimeError> for ExecutionError {
    fn from(e: RuntimeError) -> Self {
        let reason = e.to_string();
        match e {
            RuntimeError::Poisoned(_) => ExecutionError::device_poisoned(reason),
            _ => ExecutionError::with_context(reason),
        }
    }
}
