//! States of optimizers and schedulers as named tensors and scalars.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use kiln_module::record::burnpack::Scalar;
use kiln_tensor::{Device, Tensor, TensorData};

/// A state that a record can hold; derived with `#[derive(RecordState)]` for structs of tensors, numbers, options of
/// those and other states.
///
/// ```
/// use kiln_optim::{RecordState, StateSink, StateSource};
/// use kiln_tensor::Device;
///
/// #[derive(RecordState)]
/// struct Counter {
///     steps: usize,
///     best: Option<f64>,
/// }
///
/// let mut sink = StateSink::default();
/// Counter { steps: 3, best: None }.state_flatten("", &mut sink);
/// let mut source = StateSource::new(sink.scalars.into_iter().collect());
/// let copy = Counter::state_unflatten("", &mut source, &Device::default()).unwrap();
/// assert_eq!((copy.steps, copy.best), (3, None));
/// ```
pub trait RecordState: Sized + Send + Sync + 'static {
    /// Puts the parts of the state into `out`, under names that begin with `prefix`.
    fn state_flatten(&self, prefix: &str, out: &mut StateSink);

    /// Takes the state out of `src`, with its tensors on `device`; `None` if parts are missing.
    fn state_unflatten(prefix: &str, src: &mut StateSource, device: &Device) -> Option<Self>;
}

impl RecordState for () {
    fn state_flatten(&self, _prefix: &str, _out: &mut StateSink) {}

    fn state_unflatten(_prefix: &str, _src: &mut StateSource, _device: &Device) -> Option<Self> {
        Some(())
    }
}

/// The name of a part: `prefix.leaf`, or `leaf` without a prefix.
#[must_use]
pub fn join_path(prefix: &str, leaf: &str) -> String {
    if prefix.is_empty() { leaf.into() } else { format!("{prefix}.{leaf}") }
}

/// The name of an item: `prefix.index`.
#[must_use]
pub fn join_index(prefix: &str, index: usize) -> String {
    join_path(prefix, &format!("{index}"))
}

/// Collects the parts of states.
#[derive(Debug, Default)]
pub struct StateSink {
    /// The tensors with their names.
    pub tensors: Vec<(String, TensorData)>,
    /// The scalars with their names.
    pub scalars: Vec<(String, Scalar)>,
}

impl StateSink {
    /// Adds a tensor.
    pub fn push_tensor(&mut self, prefix: &str, leaf: &str, data: TensorData) {
        self.tensors.push((join_path(prefix, leaf), data));
    }

    /// Adds a scalar.
    pub fn push_scalar(&mut self, prefix: &str, leaf: &str, value: Scalar) {
        self.scalars.push((join_path(prefix, leaf), value));
    }
}

/// Gives the parts of states back.
#[derive(Debug, Default)]
pub struct StateSource {
    tensors: BTreeMap<String, TensorData>,
    scalars: BTreeMap<String, Scalar>,
}

impl StateSource {
    /// A source of scalars.
    #[must_use]
    pub fn new(scalars: BTreeMap<String, Scalar>) -> Self {
        Self { tensors: BTreeMap::new(), scalars }
    }

    /// Adds a tensor.
    pub fn insert_tensor(&mut self, name: String, data: TensorData) {
        self.tensors.insert(name, data);
    }

    /// Takes out the tensor `prefix.leaf`.
    pub fn take_tensor(&mut self, prefix: &str, leaf: &str) -> Option<TensorData> {
        self.tensors.remove(&join_path(prefix, leaf))
    }

    /// Takes out the scalar `prefix.leaf`.
    pub fn take_scalar(&mut self, prefix: &str, leaf: &str) -> Option<Scalar> {
        self.scalars.remove(&join_path(prefix, leaf))
    }

    /// True if there are parts under `prefix`.
    #[must_use]
    pub fn has_under(&self, prefix: &str) -> bool {
        fn any<V>(map: &BTreeMap<String, V>, start: &str) -> bool {
            map.range(String::from(start)..).next().is_some_and(|(name, _)| name.starts_with(start))
        }
        let start = format!("{prefix}.");
        any(&self.tensors, &start) || any(&self.scalars, &start)
    }
}

/// What a field of a recorded state can be; used by the derive.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be part of a recorded state",
    label = "neither a tensor, a number nor a state",
    note = "a state holds float tensors, numbers, options of those, and structs that derive `RecordState`"
)]
pub trait StateField: Sized {
    /// Puts the field under `prefix.leaf`.
    fn field_flatten(&self, prefix: &str, leaf: &str, out: &mut StateSink);

    /// Takes the field from `prefix.leaf`.
    fn field_unflatten(prefix: &str, leaf: &str, src: &mut StateSource, device: &Device) -> Option<Self>;
}

impl<const D: usize> StateField for Tensor<D> {
    fn field_flatten(&self, prefix: &str, leaf: &str, out: &mut StateSink) {
        out.push_tensor(prefix, leaf, self.to_data());
    }

    fn field_unflatten(prefix: &str, leaf: &str, src: &mut StateSource, device: &Device) -> Option<Self> {
        let data = src.take_tensor(prefix, leaf)?;
        if data.rank() != D {
            return None;
        }
        let dtype = data.dtype();
        Some(Tensor::from_data(data, (device, dtype)))
    }
}

impl<S: RecordState> StateField for S {
    fn field_flatten(&self, prefix: &str, leaf: &str, out: &mut StateSink) {
        self.state_flatten(&join_path(prefix, leaf), out);
    }

    fn field_unflatten(prefix: &str, leaf: &str, src: &mut StateSource, device: &Device) -> Option<Self> {
        let prefix = join_path(prefix, leaf);
        if !src.has_under(&prefix) {
            return None;
        }
        S::state_unflatten(&prefix, src, device)
    }
}

macro_rules! scalar_field {
    ($($ty:ty),*) => {$(
        impl StateField for $ty {
            fn field_flatten(&self, prefix: &str, leaf: &str, out: &mut StateSink) {
                out.push_scalar(prefix, leaf, Scalar::from(*self));
            }

            fn field_unflatten(
                prefix: &str,
                leaf: &str,
                src: &mut StateSource,
                _device: &Device,
            ) -> Option<Self> {
                src.take_scalar(prefix, leaf)?.try_into().ok()
            }
        }
    )*};
}

scalar_field!(bool, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);
