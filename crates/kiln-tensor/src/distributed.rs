//! Sums over devices: `all_reduce`, and gradients that are reduced over the devices of a [`DistributedContext`] in every backward pass.
//!
//! Each device is driven by code of its own, usually a thread. The n-th call of a device joins the n-th calls of the others: nobody computes before all have
//! called, and everybody adds up in the same order, so that all get the same bits.

use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::api::DispatchTensor;
use crate::device::{Device, DeviceState};
use crate::raw::RawTensor;
use crate::{Gradients, Tensor};

/// How the tensors of several devices become one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum ReduceOperation {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

/// How gradients are reduced over the devices of a [`DistributedContext`].
#[derive(Clone, Debug)]
pub struct DistributedConfig {
    /// How the gradients of one parameter become one.
    pub all_reduce_op: ReduceOperation,
}

/// A parameter that has a copy on every device of a [`DistributedContext`]: copies of one parameter have one number.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct DistributedParamId {
    /// The number.
    pub value: u64,
}

impl From<u64> for DistributedParamId {
    fn from(value: u64) -> Self {
        DistributedParamId { value }
    }
}

/// What the devices hand in for one reduction.
struct Round {
    parts: Mutex<Vec<Option<RawTensor>>>,
    complete: Condvar,
}

/// The reductions of one purpose over one set of devices.
struct Group {
    purpose: u64,
    devices: Vec<&'static DeviceState>,
    /// Rounds that some device has not joined yet, oldest first.
    open: Vec<Arc<Round>>,
}

/// The purpose of calls of [`all_reduce`]; other purposes are numbers of contexts.
const CALLS: u64 = 0;

static GROUPS: Mutex<Vec<Group>> = Mutex::new(Vec::new());
static CONTEXTS: Mutex<Vec<Active>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn same(a: &[&'static DeviceState], b: &[&'static DeviceState]) -> bool {
    a.len() == b.len() && a.iter().all(|x| b.iter().any(|y| core::ptr::eq(*x, *y)))
}

/// Hands in a device's part of its next round.
#[track_caller]
fn join(op: &str, purpose: u64, devices: Vec<&'static DeviceState>, part: RawTensor) -> Arc<Round> {
    let own = part.slot.cell.device;
    let mut groups = lock(&GROUPS);
    let at = groups.iter().position(|group| group.purpose == purpose && same(&group.devices, &devices)).unwrap_or_else(|| {
        groups.push(Group { purpose, devices, open: Vec::new() });
        groups.len() - 1
    });
    let group = &mut groups[at];
    let Some(place) = group.devices.iter().position(|device| core::ptr::eq(*device, own)) else {
        let device = part.device();
        drop(groups);
        panic!("{op}: the tensor of shape {:?} lives on {device:?}, which is not among the devices", part.dims());
    };
    let waiting = group.open.iter().find(|round| lock(&round.parts)[place].is_none()).cloned();
    let round = waiting.unwrap_or_else(|| {
        let parts = group.devices.iter().map(|_| None).collect();
        let round = Arc::new(Round { parts: Mutex::new(parts), complete: Condvar::new() });
        group.open.push(round.clone());
        round
    });
    let mut parts = lock(&round.parts);
    if let Some(other) = parts.iter().flatten().find(|other| other.dims() != part.dims() || other.dtype() != part.dtype()) {
        let text = format!("{op}: the devices' tensors differ: {}{:?}, {}{:?}", other.dtype(), other.dims(), part.dtype(), part.dims());
        drop((parts, groups));
        panic!("{text}");
    }
    parts[place] = Some(part);
    if parts.iter().all(Option::is_some) {
        group.open.retain(|other| !Arc::ptr_eq(other, &round));
        round.complete.notify_all();
    }
    drop(parts);
    round
}

/// Waits for all parts and reduces them on one device.
fn reduce(round: &Round, op: ReduceOperation, device: &Device) -> RawTensor {
    let mut parts = lock(&round.parts);
    while parts.iter().any(Option::is_none) {
        parts = round.complete.wait(parts).unwrap_or_else(PoisonError::into_inner);
    }
    let parts: Vec<RawTensor> = parts.iter().flatten().map(|part| part.to_device(device)).collect();
    let sum = parts[1..].iter().fold(parts[0].clone(), |sum, part| sum.add(part));
    match op {
        ReduceOperation::Sum => sum,
        ReduceOperation::Mean => sum.div_scalar(parts.len() as f64),
    }
}

/// The result of [`all_reduce`], once every device has called it.
#[derive(Clone)]
pub struct CollectiveTensor<const D: usize> {
    state: State,
}

#[derive(Clone)]
enum State {
    Done(DispatchTensor),
    Open { round: Arc<Round>, op: ReduceOperation, device: Device },
}

impl<const D: usize> CollectiveTensor<D> {
    /// A tensor that is reduced already.
    pub fn new(handle: DispatchTensor) -> Self {
        CollectiveTensor { state: State::Done(handle) }
    }

    /// The tensor. Waits until every device has called.
    ///
    /// # Panics
    /// When a device fails, or the tensor's rank is not `D`.
    #[track_caller]
    pub fn resolve(self) -> Tensor<D> {
        match self.state {
            State::Done(tensor) => Tensor::from_dispatch(tensor),
            State::Open { round, op, device } => Tensor::from_raw(reduce(&round, op, &device)),
        }
    }

    /// The tensor: the same as [`resolve`](Self::resolve), which is as fast when every device has called.
    ///
    /// # Safety
    /// Nothing needs to be upheld: memory is read after every device has called, whatever is assumed.
    ///
    /// # Panics
    /// As [`resolve`](Self::resolve).
    #[track_caller]
    pub unsafe fn assume_resolved(self) -> Tensor<D> {
        self.resolve()
    }
}

/// The sum or mean of the tensors that the devices of a list hand in, for each of them. The call returns at once; the result isn't tracked.
///
/// ```
/// use kiln_tensor::distributed::{ReduceOperation, all_reduce};
/// use kiln_tensor::{Device, Tensor};
/// let devices = vec![Device::flex(), Device::reference()];
/// let parts: Vec<_> = (devices.iter().zip([1.0, 2.0]))
///     .map(|(device, x)| all_reduce(Tensor::<1>::from_data([x, 10.0], device), ReduceOperation::Sum, devices.clone()))
///     .collect();
/// for sum in parts {
///     assert_eq!(sum.resolve().try_to_vec_as::<f32>().unwrap(), [3.0, 20.0]);
/// }
/// ```
///
/// # Panics
/// When the list is empty, names a device twice or lacks that of `input`, or the tensors of the devices differ in shape or type.
#[track_caller]
pub fn all_reduce<const D: usize>(input: Tensor<D>, op: ReduceOperation, device_ids: Vec<Device>) -> CollectiveTensor<D> {
    let devices = distinct("all_reduce", &device_ids);
    let device = input.device().without_autodiff();
    let round = join("all_reduce", CALLS, devices, input.into_raw().without_autodiff());
    CollectiveTensor { state: State::Open { round, op, device } }
}

#[track_caller]
fn distinct(op: &str, devices: &[Device]) -> Vec<&'static DeviceState> {
    assert!(!devices.is_empty(), "{op}: no devices are given");
    for (i, device) in devices.iter().enumerate() {
        assert!(!devices[..i].contains(device), "{op}: {device:?} is named twice in {devices:?}");
    }
    devices.iter().map(|device| device.state).collect()
}

/// A context that is in force.
struct Active {
    number: u64,
    devices: Vec<&'static DeviceState>,
    op: ReduceOperation,
}

/// While it lives, every backward pass on one of its devices reduces the gradients of parameters marked by
/// [`Tensor::set_distributed`](crate::Tensor::set_distributed) over all its devices, and waits for the others to come as far.
#[derive(Debug)]
pub struct DistributedContext {
    number: u64,
}

impl DistributedContext {
    /// Puts a context for these devices in force. Where two share a device, the newer counts.
    ///
    /// # Panics
    /// When no device is given or one is named twice.
    #[track_caller]
    pub fn init(devices: Vec<Device>, config: DistributedConfig) -> Self {
        use core::sync::atomic::{AtomicU64, Ordering};
        static NUMBERS: AtomicU64 = AtomicU64::new(CALLS + 1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        lock(&CONTEXTS).push(Active { number, devices: distinct("distributed", &devices), op: config.all_reduce_op });
        DistributedContext { number }
    }
}

impl Drop for DistributedContext {
    fn drop(&mut self) {
        lock(&CONTEXTS).retain(|context| context.number != self.number);
        lock(&GROUPS).retain(|group| group.purpose != self.number);
    }
}

/// Reduces gradients of marked leaves over the devices of the context in force for `device`, if there is one. All are handed in before the first is waited for.
#[track_caller]
pub(crate) fn reduce_gradients(device: &Device, gradients: &mut Gradients, mut marked: Vec<(DistributedParamId, u64)>) {
    let context = {
        let contexts = lock(&CONTEXTS);
        let active = contexts.iter().rev().find(|context| context.devices.iter().any(|other| core::ptr::eq(*other, device.state)));
        active.map(|context| (context.number, context.devices.clone(), context.op))
    };
    let Some((number, devices, op)) = context else {
        return;
    };
    marked.sort_unstable();
    let mut open = Vec::with_capacity(marked.len());
    for (_, leaf) in marked {
        let Some(gradient) = gradients.by_number(leaf) else {
            continue;
        };
        open.push((leaf, join("backward", number, devices.clone(), gradient.clone().without_autodiff())));
    }
    for (leaf, round) in open {
        gradients.insert(leaf, reduce(&round, op, &device.clone().without_autodiff()));
    }
}

impl<const D: usize> Tensor<D> {
    /// Whether the gradient of this tensor is reduced over the devices of a [`DistributedContext`].
    pub fn is_distributed(&self) -> bool {
        self.as_raw().distributed().is_some()
    }

    /// Marks this tensor, which requires a gradient, as the copy of a parameter that other devices have too.
    ///
    /// ```
    /// use kiln_tensor::distributed::{DistributedConfig, DistributedContext, ReduceOperation};
    /// use kiln_tensor::{Device, Tensor};
    /// let devices = vec![Device::flex(), Device::reference()];
    /// let _context = DistributedContext::init(devices.clone(), DistributedConfig { all_reduce_op: ReduceOperation::Mean });
    /// let threads: Vec<_> = (devices.into_iter().zip([1.0, 3.0]))
    ///     .map(|(device, x)| {
    ///         std::thread::spawn(move || {
    ///             let weight = Tensor::<1>::from_data([2.0], &device.autodiff()).require_grad().set_distributed(7.into());
    ///             let gradients = (weight.clone() * x).sum().backward();
    ///             weight.grad(&gradients).unwrap().into_scalar::<f32>()
    ///         })
    ///     })
    ///     .collect();
    /// for thread in threads {
    ///     assert_eq!(thread.join().unwrap(), 2.0);
    /// }
    /// ```
    ///
    /// # Panics
    /// When the tensor requires no gradient, or is marked as a copy of another parameter.
    #[track_caller]
    pub fn set_distributed(self, param_id: DistributedParamId) -> Self {
        Tensor::from_raw(self.into_raw().set_distributed(param_id))
    }
}
