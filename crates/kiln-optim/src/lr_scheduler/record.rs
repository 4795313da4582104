//! The record of a scheduler: named scalars.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use kiln_module::record::RecordError;
use kiln_module::record::burnpack::{Reader, Scalar, Writer};
#[cfg(feature = "std")]
use kiln_module::record::legacy::LegacyRecord;
use kiln_tensor::{Bytes, Device};

use crate::{RecordState, StateSink, StateSource, join_path};

/// The state of a scheduler, to be saved and loaded.
///
/// ```
/// use kiln_optim::lr_scheduler::LrSchedulerRecord;
///
/// let inner = LrSchedulerRecord::new().with_scalar("step", 3usize);
/// let record = LrSchedulerRecord::new().with_record("0", inner);
/// assert_eq!(record.record("0").scalar::<usize>("step"), Some(3));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LrSchedulerRecord {
    scalars: BTreeMap<String, Scalar>,
}

impl LrSchedulerRecord {
    /// An empty record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True if it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scalars.is_empty()
    }

    /// Adds or replaces a scalar.
    #[must_use]
    pub fn with_scalar<V: Into<Scalar>>(mut self, key: &str, value: V) -> Self {
        self.scalars.insert(key.into(), value.into());
        self
    }

    /// A scalar, if it is there and of the kind.
    pub fn scalar<V: TryFrom<Scalar>>(&self, key: &str) -> Option<V> {
        V::try_from(*self.scalars.get(key)?).ok()
    }

    /// Adds another record under a prefix.
    #[must_use]
    pub fn with_record(mut self, prefix: &str, record: LrSchedulerRecord) -> Self {
        for (key, value) in record.scalars {
            self.scalars.insert(join_path(prefix, &key), value);
        }
        self
    }

    /// The record under a prefix.
    #[must_use]
    pub fn record(&self, prefix: &str) -> LrSchedulerRecord {
        let start = format!("{prefix}.");
        Self { scalars: self.scalars.iter().filter_map(|(key, value)| Some((key.strip_prefix(&start)?.into(), *value))).collect() }
    }

    /// The record of a state without tensors.
    pub fn from_state<S: RecordState>(state: &S) -> Self {
        let mut sink = StateSink::default();
        state.state_flatten("", &mut sink);
        Self { scalars: sink.scalars.into_iter().collect() }
    }

    /// The state in the record, if it is complete.
    #[allow(clippy::wrong_self_convention, reason = "the name is that of the published interface")]
    pub fn into_state<S: RecordState>(&self) -> Option<S> {
        let mut source = StateSource::new(self.scalars.clone());
        S::state_unflatten("", &mut source, &Device::default())
    }

    /// The record as the bytes of a burnpack file.
    ///
    /// # Errors
    ///
    /// When it can't be represented.
    pub fn into_bytes(self) -> Result<Bytes, RecordError> {
        Ok(self.writer().into_bytes()?)
    }

    /// Reads a record from the bytes of a burnpack file, or (with `std`) of a record of Burn 0.21.
    ///
    /// # Errors
    ///
    /// When the bytes are malformed or hold tensors.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, RecordError> {
        #[cfg(feature = "std")]
        if LegacyRecord::is_start(&bytes) {
            return super::legacy::read("record bytes", LegacyRecord::from_bytes("record bytes", bytes)?);
        }
        Self::read(&Reader::from_bytes("record bytes", bytes)?)
    }

    /// Writes the record to a burnpack file; `.bpk` is added to a path without extension.
    ///
    /// # Errors
    ///
    /// When the file can't be written; an existing file is then left as it was.
    #[cfg(feature = "std")]
    pub fn save<P: AsRef<std::path::Path>>(self, path: P) -> Result<(), RecordError> {
        Ok(self.writer().write_to_file(path)?)
    }

    /// Reads a record from a burnpack file, or one of Burn 0.21, which is recognised by its content.
    ///
    /// # Errors
    ///
    /// When the file can't be read or holds no scheduler record.
    #[cfg(feature = "std")]
    pub fn load<P: AsRef<std::path::Path>>(path: P) -> Result<Self, RecordError> {
        if LegacyRecord::is_record(&path) {
            let name = path.as_ref().display().to_string();
            return super::legacy::read(&name, LegacyRecord::open(path)?);
        }
        Self::read(&Reader::open(path)?)
    }

    fn writer(self) -> Writer {
        self.scalars.into_iter().fold(Writer::new(Vec::new()), |writer, (key, value)| writer.with_scalar(&key, value))
    }

    fn read(reader: &Reader) -> Result<Self, RecordError> {
        let index = reader.index();
        if let Some(tensor) = index.tensors.first() {
            return Err(RecordError::Validation(format!("{}: no scheduler record: it holds the tensor `{}`", reader.file(), tensor.name)));
        }
        Ok(Self { scalars: index.scalars.iter().map(|(key, value)| (key.to_string(), *value)).collect() })
    }
}
