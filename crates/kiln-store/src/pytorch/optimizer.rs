//! The state of an optimizer of `torch.optim`, for an optimizer of a module.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use kiln_module::module::{Module, ModuleVisitor, Param, ParamId};
use kiln_module::record::burnpack::{Scalar, Writer};
use kiln_tensor::{Bytes, DType, Shape, TensorData};

use super::file::TorchFile;
use super::reader::map;
use super::tensor::Tensor;
use super::value::{Ref, Value};
use super::{PytorchError, PytorchErrorKind, PytorchReader};
use crate::adapter::PyTorchToBurnAdapter;
use crate::apply::{Found, locate};
use crate::place::Place;
use crate::{ModuleAdapter, bridge, burn_pack};

/// What a saved `optimizer.state_dict()` of Adam, AdamW or SGD holds, to go on training where PyTorch ended.
///
/// Parameters are told by their order, which is that of `model.parameters()`, or by name where PyTorch has saved names (an optimizer made of
/// `model.named_parameters()`); where gates or projections are packed into one parameter, names are needed.
///
/// ```no_run
/// use kiln_store::pytorch::PytorchOptimizer;
/// # fn load(model: impl kiln_module::module::Module) -> Result<(), Box<dyn std::error::Error>> {
/// let saved = PytorchOptimizer::with_top_level_key("checkpoint.pt", "optimizer")?;
/// let bytes = saved.record(&model)?;
/// // let optimizer = AdamWConfig::new().init().from_bytes(bytes)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PytorchOptimizer {
    file: String,
    /// By the number of the parameter.
    states: BTreeMap<usize, State>,
    /// Of each group of parameters: its numbers.
    options: Vec<BTreeMap<String, f64>>,
    /// The numbers of the parameters in order.
    order: Vec<usize>,
    names: Option<Vec<String>>,
}

/// The state of one parameter.
#[derive(Debug, Default)]
struct State {
    step: usize,
    tensors: HashMap<String, Tensor>,
}

/// PyTorch's names of tensors, and where an optimizer's record has them.
const TENSORS: [(&str, &str); 4] = [
    ("exp_avg", "momentum.moment_1"),
    ("exp_avg_sq", "momentum.moment_2"),
    ("max_exp_avg_sq", "momentum.max_moment_2"),
    ("momentum_buffer", "momentum.velocity"),
];

impl PytorchOptimizer {
    /// Reads a file that holds the state dict of an optimizer.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or holds no such state dict.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, PytorchError> {
        Self::open(path.as_ref(), None)
    }

    /// Reads a file that holds the state dict of an optimizer under a key, such as `optimizer`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), or there is no such key.
    pub fn with_top_level_key(path: impl AsRef<Path>, key: &str) -> Result<Self, PytorchError> {
        Self::open(path.as_ref(), Some(key))
    }

    fn open(path: &Path, key: Option<&str>) -> Result<Self, PytorchError> {
        let name = path.display().to_string();
        let read = map(path).and_then(|bytes| Self::read(&name, bytes, key));
        read.map_err(|kind| kind.in_file(&name))
    }

    /// Reads a file that lies in memory. `file` names it in errors.
    ///
    /// # Errors
    ///
    /// As [`with_top_level_key`](Self::with_top_level_key).
    pub fn from_bytes(file: &str, bytes: Bytes, key: Option<&str>) -> Result<Self, PytorchError> {
        Self::read(file, bytes.shared(), key).map_err(|kind| kind.in_file(file))
    }

    fn read(name: &str, bytes: Bytes, key: Option<&str>) -> Result<Self, PytorchErrorKind> {
        let file = TorchFile::read(bytes)?;
        let root = PytorchReader::root(&file, key)?;
        let tensors = PytorchReader::of(&file, root)?;
        let heap = &file.heap;
        let no = |what: &str| PytorchErrorKind::Optimizer(what.into());
        let state = heap.entry(root, "state").and_then(|state| heap.pairs(state)).ok_or_else(|| no("it has no dictionary `state`"))?;
        let groups = heap.entry(root, "param_groups").and_then(|groups| heap.list(groups)).ok_or_else(|| no("it has no list `param_groups`"))?;
        let mut read = Self { file: name.into(), states: BTreeMap::new(), options: Vec::new(), order: Vec::new(), names: Some(Vec::new()) };
        for group in groups {
            let params = heap.entry(*group, "params").and_then(|params| heap.sizes(params)).ok_or_else(|| no("a group has no list `params`"))?;
            let names: Option<Vec<String>> = heap
                .entry(*group, "param_names")
                .and_then(|names| heap.list(names))
                .and_then(|names| names.iter().map(|name| heap.text(*name).map(str::to_owned)).collect());
            read.names = read.names.zip(names.filter(|names| names.len() == params.len())).map(|(mut all, names)| {
                all.extend(names);
                all
            });
            read.order.extend(params);
            read.options.push(numbers(&file, *group));
        }
        for (number, entry) in state {
            let number = heap.int(*number).and_then(|number| usize::try_from(number).ok()).ok_or_else(|| no("a parameter's number is none"))?;
            let tensor = |name: &str| tensors.get(&format!("state.{number}.{name}"));
            let mut state = State::default();
            let step = match heap.entry(*entry, "step") {
                Some(at) => heap.int(at).map(|step| step as f64).or_else(|| number_of(heap.get(at))).or_else(|| tensor("step").and_then(single)),
                None => None,
            };
            state.step = step.filter(|step| *step >= 0.0 && *step < 9e15).map_or(0, |step| step as usize);
            for (theirs, _) in TENSORS {
                if let Some(tensor) = tensor(theirs) {
                    state.tensors.insert(theirs.into(), tensor.clone());
                }
            }
            read.states.insert(number, state);
        }
        Ok(read)
    }

    /// A number among the options of a group of parameters, such as `lr`, `eps`, `weight_decay` or `momentum`.
    pub fn option(&self, group: usize, name: &str) -> Option<f64> {
        self.options.get(group)?.get(name).copied()
    }

    /// The state as the record of an optimizer of `module`: the bytes that `ModuleOptimizer::from_bytes` takes.
    ///
    /// # Errors
    ///
    /// The parameters of the file and of the module are not as many, or of other names or shapes.
    pub fn record<M: Module>(&self, module: &M) -> Result<Bytes, PytorchError> {
        let made = self.parts(module).and_then(|writer| {
            let bytes = writer.into_bytes();
            bytes.map_err(|error| PytorchErrorKind::Optimizer(error.kind.to_string()))
        });
        made.map_err(|kind| kind.in_file(&self.file))
    }

    fn parts<M: Module>(&self, module: &M) -> Result<Writer, PytorchErrorKind> {
        let mut slots = Slots { found: Vec::new(), place: Place::default() };
        module.visit(&mut slots);
        let numbers: Vec<Source> = match &self.names {
            Some(names) => by_name(&slots.found, names, &self.order)?,
            None if slots.found.len() == self.order.len() => self.order.iter().map(|number| Source { number: *number, part: None }).collect(),
            None => {
                let how = format!("it has {} parameters, the module {}", self.order.len(), slots.found.len());
                return Err(PytorchErrorKind::Optimizer(how));
            }
        };
        let (mut tensors, mut scalars, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        for (slot, source) in slots.found.iter().zip(numbers) {
            let Some(state) = self.states.get(&source.number).filter(|state| !state.tensors.is_empty()) else { continue };
            let id = slot.id.val();
            for (theirs, ours) in TENSORS {
                if let Some(tensor) = state.tensors.get(theirs) {
                    tensors.push(slot.fitted(tensor.clone().into_pack(), &source, format!("{id}.{ours}"))?);
                }
            }
            if state.tensors.contains_key("exp_avg") {
                scalars.push((format!("{id}.momentum.time"), Scalar::UInt(state.step as u64)));
            }
            scalars.push((format!("{id}.__rank"), Scalar::UInt(slot.shape.num_dims() as u64)));
            paths.push((id.to_string(), &slot.path));
        }
        let writer = scalars.into_iter().fold(Writer::new(tensors), |writer, (key, value)| writer.with_scalar(&key, value));
        Ok(paths.into_iter().fold(writer, |writer, (id, path)| writer.with_metadata(&id, path)))
    }
}

/// Where the state of a parameter comes from.
struct Source {
    number: usize,
    part: Option<(usize, usize)>,
}

/// A parameter that is trained.
struct Slot {
    path: String,
    containers: Vec<String>,
    id: ParamId,
    shape: Shape,
}

impl Slot {
    /// PyTorch's tensor in the form of this parameter, called `name`.
    fn fitted(&self, tensor: burn_pack::Tensor, source: &Source, name: String) -> Result<burn_pack::Tensor, PytorchErrorKind> {
        let unfit = |found: &Shape| {
            let (expected, found) = (self.shape.as_slice(), found.as_slice());
            PytorchErrorKind::Optimizer(format!("parameter `{}` has shape {expected:?}, its state {found:?}", self.path))
        };
        let mut tensor = match source.part {
            Some((part, of)) => crate::apply::part_of(&tensor, part, of).ok_or_else(|| unfit(&tensor.shape))?,
            None => tensor,
        };
        tensor.name.clone_from(&self.path);
        let mut tensor = PyTorchToBurnAdapter.adapt(tensor, crate::ModuleContext::new(&self.containers));
        if tensor.shape != self.shape {
            return Err(unfit(&tensor.shape));
        }
        tensor.name = name;
        tensor.param_id = Some(self.id.val());
        Ok(tensor)
    }
}

/// Finds the parameters of a module that PyTorch's optimizers train too: all float parameters but running statistics.
struct Slots {
    found: Vec<Slot>,
    place: Place,
}

impl ModuleVisitor for Slots {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.place.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.place.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<kiln_tensor::Tensor<D>>) {
        let path = self.place.path();
        if path.ends_with("running_mean") || path.ends_with("running_var") {
            return;
        }
        let containers = self.place.containers().to_vec();
        self.found.push(Slot { path, containers, id: param.id, shape: param.lazy_shape() });
    }
}

fn by_name(slots: &[Slot], names: &[String], order: &[usize]) -> Result<Vec<Source>, PytorchErrorKind> {
    let numbers: HashMap<&str, usize> = names.iter().map(String::as_str).zip(order.iter().copied()).collect();
    let source = |slot: &Slot| {
        let context = crate::ModuleContext::new(&slot.containers);
        let found = locate(&slot.path, context, Some(&PyTorchToBurnAdapter), |name| numbers.contains_key(name));
        match found {
            Some(Found { name, part }) => Ok(Source { number: numbers[name.as_str()], part }),
            None => Err(PytorchErrorKind::Optimizer(format!("it has no parameter for `{}`; it has {}", slot.path, names.join(", ")))),
        }
    };
    slots.iter().map(source).collect()
}

/// The numbers among the options of a group.
fn numbers(file: &TorchFile, group: Ref) -> BTreeMap<String, f64> {
    let heap = &file.heap;
    let pairs = heap.pairs(group).unwrap_or_default();
    pairs.iter().filter_map(|(key, value)| Some((heap.text(*key)?.to_owned(), number_of(heap.get(*value))?))).collect()
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

/// The number in a tensor of one element.
fn single(tensor: &Tensor) -> Option<f64> {
    if tensor.shape.num_elements() != 1 || matches!(tensor.dtype, DType::Bool(_)) {
        return None;
    }
    let data: TensorData = bridge::into_data(tensor.clone().into_pack()).ok()?;
    data.iter::<f64>().next()
}
