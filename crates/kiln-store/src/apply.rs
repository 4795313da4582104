//! From stored tensors to a module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kiln_module::module::{ModuleMapper, Param, ParamId, Parameter};
use kiln_tensor::kind::Basic;
use kiln_tensor::{Bool, DType, Device, Int, Shape, Tensor};

use crate::place::Place;
use crate::{ModuleAdapter, ModuleContext, PathFilter, bridge, burn_pack};

/// Why a stored tensor could not be given to a parameter.
#[derive(Debug, Clone)]
pub enum ApplyError {
    /// Its shape is not the parameter's.
    ShapeMismatch {
        /// The parameter.
        path: String,
        /// The parameter's shape.
        expected: Shape,
        /// The stored tensor's shape.
        found: Shape,
    },
    /// Its dtype is of another kind (float, integer, boolean) than the parameter's.
    DTypeMismatch {
        /// The parameter.
        path: String,
        /// The parameter's dtype.
        expected: DType,
        /// The stored tensor's dtype.
        found: DType,
    },
    /// An adapter failed.
    AdapterError {
        /// The parameter.
        path: String,
        /// Why.
        message: String,
    },
    /// Its bytes could not be had.
    LoadError {
        /// The parameter.
        path: String,
        /// Why.
        message: String,
    },
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ShapeMismatch { path, expected, found } => {
                write!(f, "`{path}`: the module has shape {:?}, the file {:?}", expected.as_slice(), found.as_slice())
            }
            Self::DTypeMismatch { path, expected, found } => {
                write!(f, "`{path}`: the module has dtype {}, the file {}", expected.name(), found.name())
            }
            Self::AdapterError { path, message } => write!(f, "`{path}`: its adapter failed: {message}"),
            Self::LoadError { path, message } => write!(f, "`{path}`: cannot be loaded: {message}"),
        }
    }
}

impl std::error::Error for ApplyError {}

/// What became of stored tensors and parameters.
#[derive(Clone, Default)]
pub struct ApplyResult {
    /// The parameters that were given a stored tensor.
    pub applied: Vec<String>,
    /// The parameters that the filter left out.
    pub skipped: Vec<String>,
    /// The parameters without a stored tensor, with the types of the modules around them.
    pub missing: Vec<(String, String)>,
    /// The stored tensors without a parameter.
    pub unused: Vec<String>,
    /// The parameters that kept their values since the stored tensor did not fit.
    pub errors: Vec<ApplyError>,
}

impl ApplyResult {
    /// Whether every stored tensor that has a parameter fits it.
    pub fn is_success(&self) -> bool {
        self.errors.is_empty()
    }
}

impl fmt::Display for ApplyResult {
    /// The numbers, then what is missing, unused and unfit, one a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { applied, skipped, missing, unused, errors } = self;
        let counts = [applied.len(), skipped.len(), missing.len(), unused.len(), errors.len()];
        let [applied, skipped, absent, left, failed] = counts;
        write!(f, "{applied} applied, {skipped} skipped, {absent} missing, {left} unused, {failed} failed")?;
        missing.iter().try_for_each(|(path, container)| write!(f, "\n  missing `{path}` ({container})"))?;
        unused.iter().try_for_each(|path| write!(f, "\n  unused `{path}`"))?;
        errors.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl fmt::Debug for ApplyResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The stored tensor of a parameter, and the part of it, of how many, that is the parameter's.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) part: Option<(usize, usize)>,
}

/// Finds the parameter at `path` among the names of a file: under its own, another that the adapter knows, or inside of another tensor.
pub(crate) fn locate(path: &str, context: ModuleContext<'_>, adapter: Option<&dyn ModuleAdapter>, has: impl Fn(&str) -> bool) -> Option<Found> {
    if has(path) {
        return Some(Found { name: path.into(), part: None });
    }
    let adapter = adapter?;
    let start = path.rfind('.').map_or(0, |dot| dot + 1);
    if let Some(other) = adapter.get_alternative_param_name(&path[start..], context.module_type().unwrap_or_default()) {
        let name = format!("{}{other}", &path[..start]);
        if has(&name) {
            return Some(Found { name, part: None });
        }
    }
    let packed = adapter.get_packed(path, context).filter(|packed| has(&packed.name))?;
    Some(Found { name: packed.name, part: Some((packed.part, packed.of)) })
}

/// One of `of` equal parts of a tensor along its first axis; `None` if it can't be divided so.
pub(crate) fn part_of(tensor: &burn_pack::Tensor, part: usize, of: usize) -> Option<burn_pack::Tensor> {
    let mut extents = tensor.shape.as_slice().to_vec();
    let (rows, len) = (*extents.first()?, tensor.byte_len());
    if of == 0 || rows % of != 0 || len % of != 0 {
        return None;
    }
    extents[0] = rows / of;
    let (len, whole) = (len / of, tensor.clone());
    let (name, dtype, shape) = (tensor.name.clone(), tensor.dtype, Shape::from(extents));
    let bytes = move || {
        let bytes = whole.to_bytes()?.shared();
        bytes.view(part * len, (part + 1) * len).map_err(|_| burn_pack::Error::ValidationError(format!("tensor `{}` is cut off", whole.name)))
    };
    Some(burn_pack::Tensor::deferred(name, dtype, shape, tensor.param_id, len, bytes))
}

/// Gives the parameters of a module the stored tensors of their paths. A parameter gets the dtype of its tensor, on its own device.
pub struct Applier {
    tensors: BTreeMap<String, burn_pack::Tensor>,
    unused: BTreeSet<String>,
    filter: Option<PathFilter>,
    adapter: Option<Box<dyn ModuleAdapter>>,
    place: Place,
    result: ApplyResult,
}

impl Applier {
    /// An applier to the parameters that `filter` chooses (all without one), of tensors that `adapter` has changed. With `skip_enum_variants`, the
    /// names of enum variants are left out of paths.
    pub fn new(
        tensors: Vec<burn_pack::Tensor>,
        filter: Option<PathFilter>,
        adapter: Option<Box<dyn ModuleAdapter>>,
        skip_enum_variants: bool,
    ) -> Self {
        let tensors: BTreeMap<_, _> = tensors.into_iter().map(|tensor| (tensor.name.clone(), tensor)).collect();
        let unused = tensors.keys().cloned().collect();
        Self { tensors, unused, filter, adapter, place: Place::new(skip_enum_variants), result: ApplyResult::default() }
    }

    /// What became of tensors and parameters.
    pub fn into_result(self) -> ApplyResult {
        ApplyResult { unused: self.unused.into_iter().collect(), ..self.result }
    }

    /// The stored tensor of the parameter at `path`, under its own name or that which the adapter knows, changed by the adapter.
    fn find(&mut self, path: &str) -> Option<burn_pack::Tensor> {
        let context = self.place.context();
        let Found { name, part } = locate(path, context, self.adapter.as_deref(), |name| self.tensors.contains_key(name))?;
        let stored = self.tensors.get(&name)?;
        let tensor = match part {
            Some((part, of)) => {
                let mut tensor = part_of(stored, part, of)?;
                tensor.name = path.into();
                tensor
            }
            None => stored.clone(),
        };
        self.unused.remove(&name);
        Some(match &self.adapter {
            Some(adapter) => adapter.adapt(tensor, context),
            None => tensor,
        })
    }

    /// The parameter with the stored tensor of the current path, or as it was.
    fn apply<const D: usize, K>(&mut self, param: Param<Tensor<D, K>>, dtype: impl FnOnce(&Device) -> DType) -> Param<Tensor<D, K>>
    where
        K: Basic,
        Tensor<D, K>: Parameter,
    {
        let path = self.place.path();
        let containers = self.place.container_path();
        if self.filter.as_ref().is_some_and(|filter| !filter.matches_with_container_path_str(&path, &containers)) {
            // A tensor that is left out on purpose is not unused.
            self.unused.remove(&path);
            self.result.skipped.push(path);
            return param;
        }
        let Some(stored) = self.find(&path) else {
            self.result.missing.push((path, containers));
            return param;
        };
        let device = param.lazy_device().without_autodiff();
        match load(&path, &param, stored, &device, dtype(&device)) {
            Ok(loaded) => {
                self.result.applied.push(path);
                loaded
            }
            Err(error) => {
                self.result.errors.push(error);
                param
            }
        }
    }
}

/// A parameter with the value of a stored tensor, if that fits.
fn load<const D: usize, K>(
    path: &str,
    param: &Param<Tensor<D, K>>,
    stored: burn_pack::Tensor,
    device: &Device,
    dtype: DType,
) -> Result<Param<Tensor<D, K>>, ApplyError>
where
    K: Basic,
    Tensor<D, K>: Parameter,
{
    let kind = |dtype: DType| (dtype.is_float() || matches!(dtype, DType::QFloat(_)), dtype.is_bool());
    if kind(stored.dtype) != kind(dtype) {
        return Err(ApplyError::DTypeMismatch { path: path.into(), expected: dtype, found: stored.dtype });
    }
    let (found, expected) = (stored.shape.clone(), param.lazy_shape());
    let mismatch = || ApplyError::ShapeMismatch { path: path.into(), expected: expected.clone(), found: found.clone() };
    if found.rank() != D {
        return Err(mismatch());
    }
    let id = stored.param_id.map_or(param.id, ParamId::from);
    let dtype = stored.dtype;
    let data = bridge::into_data(stored).map_err(|error| ApplyError::LoadError { path: path.into(), message: error.to_string() })?;
    let loaded = param.clone().transform_for_load(Tensor::from_data(data, (device, dtype)), id);
    // The stored form may differ from the live one, which is what has to fit.
    match loaded.lazy_shape() == expected {
        true => Ok(loaded),
        false => Err(mismatch()),
    }
}

impl ModuleMapper for Applier {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.place.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.place.exit();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.apply(param, |device| device.settings().float_dtype.into())
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.apply(param, |device| device.settings().int_dtype.into())
    }

    fn map_bool<const D: usize>(&mut self, param: Param<Tensor<D, Bool>>) -> Param<Tensor<D, Bool>> {
        self.apply(param, |device| device.settings().bool_dtype.into())
    }
}
