//! A value that a module updates while it runs, such as the statistics of batch normalisation.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::{Arc, Weak};
use core::fmt::{self, Debug, Display};
use core::sync::atomic::{AtomicU64, Ordering};

use kiln_tensor::{Device, Tensor};
use spin::Mutex;

use super::{Content, Devices, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param, ParamId};

/// A tensor that is updated through a shared reference, recorded like a parameter and never trained.
///
/// A clone is a snapshot: updating it leaves the original alone. A [fork](Module::fork) of a clone is a copy that works for the original, as when each of several
/// devices runs a part of a batch: the next time that the original is read or stepped by an optimizer, it takes the mean of what its forks have become (and of its
/// own value, if it was updated beside them). Cloning it does not read it.
#[derive(Debug)]
pub struct RunningState<V> {
    id: ParamId,
    value: Mutex<V>,
    links: Arc<Links<V>>,
}

/// What connects a state with its clones and forks.
#[derive(Debug)]
struct Links<V> {
    /// How often the state was updated.
    updates: AtomicU64,
    /// What forks have become since the state was last read, by their number, and at which update of the state they set out.
    reports: Mutex<BTreeMap<u64, (V, u64)>>,
    /// The state that this one is a clone of.
    original: Original<V>,
    /// The number of this fork, and the state that it reports to.
    reporting: Option<(u64, Original<V>)>,
}

/// A state that another one came from, and how often it had been updated then.
#[derive(Debug)]
struct Original<V> {
    links: Weak<Links<V>>,
    updates: u64,
}

impl<V> Clone for Original<V> {
    fn clone(&self) -> Self {
        Self { links: self.links.clone(), updates: self.updates }
    }
}

/// Forks are numbered through the process, so that their sum has an order.
static FORKS: AtomicU64 = AtomicU64::new(0);

impl<V> Links<V> {
    fn new(original: Original<V>, reporting: Option<(u64, Original<V>)>) -> Arc<Self> {
        Arc::new(Self { updates: AtomicU64::new(0), reports: Mutex::default(), original, reporting })
    }
}

impl<V: Clone> Clone for RunningState<V> {
    fn clone(&self) -> Self {
        // What forks of earlier clones report meanwhile waits: all copies of one step start from the same value.
        let original = Original { links: Arc::downgrade(&self.links), updates: self.links.updates.load(Ordering::Relaxed) };
        let links = Links::new(original, self.links.reporting.clone());
        Self { id: self.id, value: Mutex::new(self.value.lock().clone()), links }
    }
}

impl<const D: usize> RunningState<Tensor<D>> {
    /// A state with a new identity.
    #[must_use]
    pub fn new(value: Tensor<D>) -> Self {
        Self::with_id(ParamId::new(), value)
    }

    /// A state with the given identity.
    #[must_use]
    pub fn with_id(id: ParamId, value: Tensor<D>) -> Self {
        Self { id, value: Mutex::new(untrained(value)), links: Links::new(Original { links: Weak::new(), updates: 0 }, None) }
    }

    /// A state with the identity and value of a recorded parameter.
    #[must_use]
    pub fn from_record(record: Param<Tensor<D>>) -> Self {
        Self::with_id(record.id, record.val())
    }

    /// Replaces the value; no gradient flows through it.
    pub fn update(&self, value: Tensor<D>) {
        let value = untrained(value);
        if let Some((number, original)) = &self.links.reporting
            && let Some(links) = original.links.upgrade()
        {
            links.reports.lock().insert(*number, (value.clone(), original.updates));
        }
        self.links.updates.fetch_add(1, Ordering::Relaxed);
        *self.value.lock() = value;
    }

    /// The current value, with what forks have reported.
    #[must_use]
    pub fn value(&self) -> Tensor<D> {
        let mut held = self.value.lock();
        let reported = core::mem::take(&mut *self.links.reports.lock());
        if let Some(start) = reported.values().map(|(_, updates)| *updates).max() {
            let (device, dtype) = (held.device(), held.dtype());
            let own = (self.links.updates.load(Ordering::Relaxed) > start).then(|| held.clone());
            let count = reported.len() + usize::from(own.is_some());
            let all = reported.into_values().map(|(value, _)| value.to_device(&device).cast(dtype)).chain(own);
            if let Some(sum) = all.reduce(|sum, value| sum + value) {
                *held = untrained(sum / count as f64);
            }
        }
        held.clone()
    }

    /// The current value; the same as [`RunningState::value`], since an update takes effect at once.
    #[must_use]
    pub fn value_sync(&self) -> Tensor<D> {
        self.value()
    }

    fn mapped(mut self, func: impl FnOnce(Tensor<D>) -> Tensor<D>) -> Self {
        let value = untrained(func(self.value()));
        *self.value.get_mut() = value;
        self
    }
}

/// Cuts a value from its graph: a state that kept it would hold every step's graph alive.
fn untrained<const D: usize>(value: Tensor<D>) -> Tensor<D> {
    if value.is_tracked() || value.is_require_grad() { value.set_require_grad(false).detach() } else { value }
}

impl<const D: usize> Module for RunningState<Tensor<D>> {
    fn collect_devices(&self, mut devices: Devices) -> Devices {
        let device = self.value().device();
        if !devices.contains(&device) {
            devices.push(device);
        }
        devices
    }

    fn fork(mut self, device: &Device) -> Self {
        let original = &self.links.original;
        if original.links.strong_count() > 0 {
            let number = FORKS.fetch_add(1, Ordering::Relaxed);
            self.links = Links::new(original.clone(), Some((number, original.clone())));
        }
        self.mapped(|value| Module::fork(value, device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.mapped(|value| value.to_device(device))
    }

    fn train(self) -> Self {
        self.mapped(Module::train)
    }

    fn valid(&self) -> Self {
        Self::with_id(self.id, self.value()).mapped(Tensor::without_autodiff)
    }

    fn materialize(self) -> Self {
        self
    }

    fn visit<Visitor: ModuleVisitor>(&self, visitor: &mut Visitor) {
        visitor.visit_float(&Param::initialized(self.id, self.value()));
    }

    fn map<Mapper: ModuleMapper>(self, mapper: &mut Mapper) -> Self {
        let mapped = mapper.map_float(Param::initialized(self.id, self.value()));
        let state = Self { id: mapped.id, ..self };
        state.mapped(|_| mapped.into_value())
    }
}

impl<V> ModuleDisplayDefault for RunningState<V> {
    fn content(&self, content: Content) -> Option<Content> {
        content.with_single(format!("RunningState {{id: {}}}", self.id)).optional()
    }
}

impl<V> ModuleDisplay for RunningState<V> {}

impl<V> Display for RunningState<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RunningState(id={})", self.id)
    }
}
