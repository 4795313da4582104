//! From a record to the module it fits.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use kiln_tensor::kind::Basic;
use kiln_tensor::{Bool, DType, Device, Int, Shape, Tensor};

use super::burnpack::PackTensor;
use super::{DTypePolicy, RecordError, data_of};
use crate::module::{ModuleMapper, Param, ParamId, Parameter};

/// Gives every parameter the value recorded under its path, and keeps book of what did not fit.
pub(super) struct Load {
    tensors: BTreeMap<String, PackTensor>,
    policy: DTypePolicy,
    path: Vec<String>,
    /// The number of parameters seen.
    seen: usize,
    missing: Vec<String>,
    unfit: Vec<String>,
}

impl Load {
    pub(super) fn new(tensors: Vec<PackTensor>, policy: DTypePolicy) -> Self {
        Self {
            tensors: tensors.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect(),
            policy,
            path: Vec::new(),
            seen: 0,
            missing: Vec::new(),
            unfit: Vec::new(),
        }
    }

    /// What did not fit, as an error if any of it matters.
    pub(super) fn finish(self, allow_partial: bool, allow_unused: bool, validate: bool) -> Result<(), RecordError> {
        let unused: Vec<String> = self.tensors.into_keys().collect();
        let mut reasons = Vec::new();
        if !allow_partial && !self.missing.is_empty() {
            reasons.push(format!("missing: {}", self.missing.join(", ")));
        }
        if !allow_unused && !unused.is_empty() {
            reasons.push(format!("unused: {}", unused.join(", ")));
        }
        if validate && !self.unfit.is_empty() {
            reasons.push(self.unfit.join("; "));
        }
        if reasons.is_empty() { Ok(()) } else { Err(RecordError::Validation(reasons.join("; "))) }
    }

    /// The recorded value for a parameter of rank `D` at the current path, with its recorded id.
    fn take<const D: usize, K: Basic>(
        &mut self,
        device: &Device,
        module_dtype: DType,
        same_kind: fn(DType) -> bool,
    ) -> Option<(Tensor<D, K>, Option<ParamId>)> {
        let path = self.path.join(".");
        // A record without names calls its tensors by their place in the order of visits.
        let place = format!("#{}", self.seen);
        self.seen += 1;
        let Some(found) = self.tensors.remove(&path).or_else(|| self.tensors.remove(&place)) else {
            self.missing.push(path);
            return None;
        };
        match read(&found, D, same_kind) {
            Ok(data) => {
                // Quantized values are never cast, nor does a cast quantize.
                let cast = self.policy == DTypePolicy::CastToModule && ![data.dtype(), module_dtype].into_iter().any(is_quantized);
                let dtype = if cast { module_dtype } else { data.dtype() };
                let data = data.convert_dtype(dtype);
                let tensor = Tensor::from_data(data, (device, dtype));
                Some((tensor, found.param_id.map(ParamId::from)))
            }
            Err(reason) => {
                self.unfit.push(format!("{path}: {reason}"));
                None
            }
        }
    }

    /// Puts the value into the parameter if the live shapes agree.
    fn put<T: Parameter>(&mut self, param: Param<T>, value: T, id: Option<ParamId>) -> Param<T> {
        let expected = param.lazy_shape();
        let found = value.shape();
        let id = id.unwrap_or(param.id);
        let loaded = param.clone().transform_for_load(value, id);
        if loaded.lazy_shape() == expected {
            return loaded;
        }
        self.unfit.push(format!("{}: the module has shape {}, the record {}", self.path.join("."), shown(&expected), shown(&found)));
        param
    }
}

fn shown(shape: &Shape) -> String {
    format!("{:?}", shape.as_slice())
}

fn read(found: &PackTensor, rank: usize, same_kind: fn(DType) -> bool) -> Result<kiln_tensor::TensorData, String> {
    if found.shape.num_dims() != rank {
        return Err(format!("the module has rank {rank}, the record shape {:?}", found.shape.as_slice()));
    }
    if !same_kind(found.dtype) {
        return Err(format!("the record has element type {}, of another kind", found.dtype.name()));
    }
    data_of(found).map_err(|error| error.to_string())
}

fn is_float(dtype: DType) -> bool {
    dtype.is_float() || is_quantized(dtype)
}

fn is_quantized(dtype: DType) -> bool {
    matches!(dtype, DType::QFloat(_))
}

fn is_int(dtype: DType) -> bool {
    dtype.is_int() || dtype.is_uint()
}

fn is_bool(dtype: DType) -> bool {
    dtype.is_bool()
}

impl ModuleMapper for Load {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.into());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let device = param.lazy_device().without_autodiff();
        let dtype = if param.is_initialized() { param.dtype() } else { device.settings().float_dtype.into() };
        match self.take(&device, dtype, is_float) {
            Some((value, id)) => self.put(param, value, id),
            None => param,
        }
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        let device = param.lazy_device().without_autodiff();
        let dtype = if param.is_initialized() { param.dtype() } else { device.settings().int_dtype.into() };
        match self.take(&device, dtype, is_int) {
            Some((value, id)) => self.put(param, value, id),
            None => param,
        }
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        let device = param.lazy_device().without_autodiff();
        let dtype = device.settings().bool_dtype.into();
        match self.take(&device, dtype, is_bool) {
            Some((value, id)) => self.put(param, value, id),
            None => param,
        }
    }
}
