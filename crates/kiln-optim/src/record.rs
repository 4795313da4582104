//! The record of an optimizer: the states of its parameters.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Debug};

use kiln_module::module::ParamId;
use kiln_module::record::burnpack::{PackTensor, Reader, Scalar, Writer};
#[cfg(feature = "std")]
use kiln_module::record::legacy::LegacyRecord;
use kiln_module::record::{RecordError, data_of, tensor_of};
use kiln_tensor::{Bytes, TensorData};

use crate::{StateSink, StateSource};

/// The states of an optimizer's parameters, to be saved and loaded.
///
/// In a file, the tensors and scalars of a state are named by the parameter's id (as a decimal number) and their place
/// in the state; the scalar `__rank` is the rank of the parameter, and the metadata hold its path.
#[derive(Clone, Default)]
pub struct OptimizerRecord {
    states: BTreeMap<ParamId, Parts>,
}

#[derive(Clone, Default)]
struct Parts {
    path: String,
    rank: usize,
    tensors: Vec<(String, TensorData)>,
    scalars: Vec<(String, Scalar)>,
}

const RANK: &str = "__rank";

impl OptimizerRecord {
    /// The number of parameters with a state.
    #[must_use]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// True if there is no state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Adds the state of a parameter, which `flatten` puts under the given prefix.
    pub(crate) fn add(&mut self, id: ParamId, path: &str, rank: usize, flatten: impl FnOnce(&str, &mut StateSink)) {
        let mut sink = StateSink::default();
        flatten(&id.decimal(), &mut sink);
        let parts = Parts { path: path.into(), rank, tensors: sink.tensors, scalars: sink.scalars };
        self.states.insert(id, parts);
    }

    /// Leaves out the state of a parameter.
    pub(crate) fn remove(&mut self, id: ParamId) {
        self.states.remove(&id);
    }

    /// Takes out the state of a parameter, with its rank.
    pub(crate) fn take(&mut self, id: ParamId) -> Option<(usize, StateSource)> {
        let parts = self.states.remove(&id)?;
        let mut source = StateSource::new(parts.scalars.into_iter().collect());
        for (name, data) in parts.tensors {
            source.insert_tensor(name, data);
        }
        Some((parts.rank, source))
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
    /// When the bytes are malformed or hold no optimizer record.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, RecordError> {
        #[cfg(feature = "std")]
        if LegacyRecord::is_start(&bytes) {
            return Self::of_legacy("record bytes", LegacyRecord::from_bytes("record bytes", bytes)?);
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
    /// When the file can't be read or holds no optimizer record.
    #[cfg(feature = "std")]
    pub fn load<P: AsRef<std::path::Path>>(path: P) -> Result<Self, RecordError> {
        if LegacyRecord::is_record(&path) {
            let name = path.as_ref().display().to_string();
            return Self::of_legacy(&name, LegacyRecord::open(path)?);
        }
        Self::read(&Reader::open(path)?)
    }

    fn writer(self) -> Writer {
        let mut tensors = Vec::new();
        let mut scalars = Vec::new();
        let mut paths = Vec::new();
        for (id, parts) in self.states {
            let key = id.decimal();
            scalars.push((format!("{key}.{RANK}"), Scalar::from(parts.rank)));
            scalars.extend(parts.scalars);
            for (name, data) in parts.tensors {
                tensors.push(tensor_of(&name, Some(id.val()), data));
            }
            paths.push((key, parts.path));
        }
        let mut writer = Writer::new(tensors);
        for (name, value) in scalars {
            writer = writer.with_scalar(&name, value);
        }
        for (id, path) in paths {
            writer = writer.with_metadata(&id, &path);
        }
        writer
    }

    fn read(reader: &Reader) -> Result<Self, RecordError> {
        let index = reader.index();
        Self::of_parts(reader.file(), reader.tensors(), &index.scalars, &index.metadata)
    }

    /// A record of the tensors, scalars and texts of a file.
    fn of_parts(
        file: &str,
        tensors: Vec<PackTensor>,
        scalars: &BTreeMap<String, Scalar>,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Self, RecordError> {
        let wrong = |what: &str| RecordError::Validation(format!("{file}: no optimizer record: {what}"));
        let id_of = |name: &str| -> Result<ParamId, RecordError> {
            let key = name.split('.').next().unwrap_or(name);
            key.parse::<u64>().map(ParamId::from).map_err(|_| wrong(&format!("`{name}` does not begin with the id of a parameter")))
        };
        let mut states: BTreeMap<ParamId, Parts> = BTreeMap::new();
        for (name, scalar) in scalars {
            let parts = states.entry(id_of(name)?).or_default();
            if name.ends_with(&format!(".{RANK}")) {
                parts.rank = usize::try_from(*scalar).map_err(|error| wrong(&format!("`{name}`: {error}")))?;
            } else {
                parts.scalars.push((name.clone(), *scalar));
            }
        }
        for tensor in tensors {
            let parts = states.entry(id_of(&tensor.name)?).or_default();
            parts.tensors.push((tensor.name.clone(), data_of(&tensor)?));
        }
        for (id, parts) in &mut states {
            if let Some(path) = metadata.get(&id.decimal()) {
                parts.path.clone_from(path);
            }
        }
        Ok(Self { states })
    }

    /// A record that Burn 0.21 wrote.
    #[cfg(feature = "std")]
    fn of_legacy(file: &str, record: LegacyRecord) -> Result<Self, RecordError> {
        Self::of_parts(file, record.tensors, &record.scalars, &BTreeMap::new())
    }
}

impl Debug for OptimizerRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        for (id, parts) in &self.states {
            let tensors: Vec<&str> = parts.tensors.iter().map(|(name, _)| name.as_str()).collect();
            map.entry(&id.to_string(), &(&parts.path, tensors, &parts.scalars));
        }
        map.finish()
    }
}
