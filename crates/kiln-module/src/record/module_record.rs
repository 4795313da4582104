//! The record of a module: its parameters' values under their paths.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt::{self, Debug};

use kiln_tensor::{Bytes, TensorData};

use super::burnpack::{PackTensor, Reader, Writer};
use super::collect::Collect;
#[cfg(feature = "std")]
use super::legacy::LegacyRecord;
use super::load::Load;
use super::{DTypePolicy, RecordError};
use crate::module::{Module, ParamGroup};

/// The values of a module's parameters under their paths, to be saved, loaded and applied.
///
/// A tensor keeps its element type and its parameter's id. By default a record must fit its module exactly.
#[derive(Clone)]
pub struct ModuleRecord {
    tensors: Vec<PackTensor>,
    policy: DTypePolicy,
    allow_partial: bool,
    allow_unused: bool,
    validate: bool,
}

impl ModuleRecord {
    /// A record of tensors under their paths.
    #[must_use]
    pub fn from_tensors(tensors: Vec<PackTensor>) -> Self {
        Self { tensors, policy: DTypePolicy::default(), allow_partial: false, allow_unused: false, validate: true }
    }

    /// The tensors under their paths.
    #[must_use]
    pub fn tensors(&self) -> &[PackTensor] {
        &self.tensors
    }

    pub(crate) fn of<M: Module>(module: &M, group: &ParamGroup) -> Self {
        let mut collect = Collect::new(group);
        module.visit(&mut collect);
        let mut record = Self::from_tensors(Vec::with_capacity(collect.found.len()));
        for (path, id, data) in collect.found {
            record.tensors.push(tensor_of(&path, Some(id.val()), data));
        }
        record
    }

    pub(crate) fn apply<M: Module>(self, module: M) -> Result<M, RecordError> {
        let mut load = Load::new(self.tensors, self.policy);
        let module = module.map(&mut load);
        load.finish(self.allow_partial, self.allow_unused, self.validate)?;
        Ok(module)
    }

    /// The number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// True if there are no tensors.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Sets which element type the loaded parameters get.
    #[must_use]
    pub fn with_dtype_policy(mut self, policy: DTypePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Loads with the element types of the module.
    #[must_use]
    pub fn cast_to_module_dtype(self) -> Self {
        self.with_dtype_policy(DTypePolicy::CastToModule)
    }

    /// Allows the record to lack tensors of the module, which then keep their values.
    #[must_use]
    pub fn allow_partial(mut self, allow: bool) -> Self {
        self.allow_partial = allow;
        self
    }

    /// Allows the record to hold tensors that the module has no place for.
    #[must_use]
    pub fn allow_unused(mut self, allow: bool) -> Self {
        self.allow_unused = allow;
        self
    }

    /// With `false`, tensors of the wrong shape or kind are left out instead of being an error.
    #[must_use]
    pub fn validate(mut self, validate: bool) -> Self {
        self.validate = validate;
        self
    }

    /// The record as the bytes of a burnpack file.
    ///
    /// # Errors
    ///
    /// When it can't be represented, such as for two tensors under one path.
    pub fn into_bytes(self) -> Result<Bytes, RecordError> {
        Ok(Writer::new(self.tensors).into_bytes()?)
    }

    /// Reads a record from the bytes of a burnpack file, or (with `std`) of a record of Burn 0.21.
    ///
    /// # Errors
    ///
    /// When the bytes are malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, RecordError> {
        #[cfg(feature = "std")]
        if LegacyRecord::is_start(&bytes) {
            return Ok(Self::from_tensors(LegacyRecord::from_bytes("record bytes", bytes)?.tensors));
        }
        let reader = Reader::from_bytes("record bytes", bytes)?;
        Ok(Self::from_tensors(reader.tensors()))
    }

    /// Writes the record to a burnpack file; `.bpk` is added to a path without extension.
    ///
    /// # Errors
    ///
    /// When the file can't be written; an existing file is then left as it was.
    #[cfg(feature = "std")]
    pub fn save<P: AsRef<std::path::Path>>(self, path: P) -> Result<(), RecordError> {
        Ok(Writer::new(self.tensors).write_to_file(path)?)
    }

    /// Reads a record from a burnpack file: the index now, the tensors when they are applied. A path without extension may leave out `.bpk`.
    ///
    /// Records of Burn 0.21 (MessagePack, JSON, bincode, compressed or not) are recognised by their content and read at once; their path is
    /// taken as it is.
    ///
    /// # Errors
    ///
    /// When the file can't be read or is malformed.
    #[cfg(feature = "std")]
    pub fn load<P: AsRef<std::path::Path>>(path: P) -> Result<Self, RecordError> {
        if LegacyRecord::is_record(&path) {
            return Ok(Self::from_tensors(LegacyRecord::open(path)?.tensors));
        }
        Ok(Self::from_tensors(Reader::open(path)?.tensors()))
    }
}

impl Debug for ModuleRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModuleRecord")
            .field("tensors", &self.tensors)
            .field("dtype_policy", &self.policy)
            .field("allow_partial", &self.allow_partial)
            .field("allow_unused", &self.allow_unused)
            .field("validate", &self.validate)
            .finish()
    }
}

/// A stored tensor of the given data.
#[must_use]
pub fn tensor_of(name: &str, param_id: Option<u64>, data: TensorData) -> PackTensor {
    let (bytes, shape, dtype) = data.into_parts();
    PackTensor::new(name.into(), dtype, shape, param_id, bytes)
}

/// The data of a stored tensor.
///
/// # Errors
///
/// When its bytes can't be had, or are not as many as its shape and element type call for.
pub fn data_of(tensor: &PackTensor) -> Result<TensorData, RecordError> {
    let bytes = tensor.to_bytes()?;
    let data = TensorData::try_from_bytes(bytes, tensor.shape.clone(), tensor.dtype);
    let data = data.and_then(|data| data.check_quantized().map(|()| data));
    data.map_err(|error| RecordError::Validation(error.to_string()))
}
