//! Reading the tensors of a PyTorch file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use kiln_tensor::{Bytes, DType};

use super::file::{Storage, Strided, TorchFile, dtype_of_name, storage};
use super::tensor::Tensor;
use super::value::{Heap, Ref, Value};
use super::{PickleError, PytorchError, PytorchErrorKind};
use crate::burn_pack::{MAX_FILE_SIZE, MAX_TENSOR_COUNT};

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 128;
/// The most values that are looked at; a value that is shared counts as often as it is found.
const MAX_VISITS: usize = 4 << 20;
/// The longest path of a tensor, in bytes.
const MAX_PATH: usize = 4096;

/// The tensors of a file that `torch.save` wrote: a state dict, or anything that holds tensors in dictionaries and lists.
///
/// Nothing in the file is run. Objects of classes that are not known are passed over, except that a pickled module gives its parameters and
/// buffers.
#[derive(Debug)]
pub struct PytorchReader {
    tensors: Vec<Tensor>,
    places: BTreeMap<String, usize>,
}

impl PytorchReader {
    /// Maps the file at `path` and finds its tensors. Their bytes come from the file when they are asked for; it must not be changed in place
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is of no format of `torch.save`, or is malformed.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, PytorchError> {
        Self::open(path.as_ref(), None)
    }

    /// As [`new`](Self::new), of what lies under a key of the outermost dictionary, such as `state_dict`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), or there is no such key.
    pub fn with_top_level_key(path: impl AsRef<Path>, key: &str) -> Result<Self, PytorchError> {
        Self::open(path.as_ref(), Some(key))
    }

    /// Finds the tensors of a file that lies in memory. `file` names it in errors.
    ///
    /// # Errors
    ///
    /// The bytes are of no format of `torch.save`, or malformed, or there is no such key.
    pub fn from_bytes(file: &str, bytes: Bytes, key: Option<&str>) -> Result<Self, PytorchError> {
        Self::read(bytes.shared(), key).map_err(|kind| kind.in_file(file))
    }

    fn open(path: &Path, key: Option<&str>) -> Result<Self, PytorchError> {
        let read = map(path).and_then(|bytes| Self::read(bytes, key));
        read.map_err(|kind| kind.in_file(&path.display().to_string()))
    }

    fn read(bytes: Bytes, key: Option<&str>) -> Result<Self, PytorchErrorKind> {
        let file = TorchFile::read(bytes)?;
        let root = Self::root(&file, key)?;
        Self::of(&file, root)
    }

    /// The value of a file, or of a key of it.
    pub(super) fn root(file: &TorchFile, key: Option<&str>) -> Result<Ref, PytorchErrorKind> {
        let Some(key) = key else { return Ok(file.root) };
        file.heap.entry(file.root, key).ok_or_else(|| {
            let pairs = file.heap.pairs(file.root).unwrap_or_default();
            let found = pairs.iter().take(64).filter_map(|(key, _)| file.heap.segment(*key)).collect();
            PytorchErrorKind::MissingKey { key: key.into(), found }
        })
    }

    /// The tensors of a value.
    pub(super) fn of(file: &TorchFile, root: Ref) -> Result<Self, PytorchErrorKind> {
        let mut search = Search { file, path: Vec::new(), inside: Vec::new(), visits: 0, found: Vec::new() };
        search.visit(root)?;
        let tensors = search.found;
        let mut places = BTreeMap::new();
        for (place, tensor) in tensors.iter().enumerate() {
            // As in Python, the last of two entries of one key counts.
            places.insert(tensor.name.clone(), place);
        }
        Ok(Self { tensors, places })
    }

    /// The tensors, in the order of the file.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().enumerate().filter(|(place, tensor)| self.places[&tensor.name] == *place).map(|(_, tensor)| tensor)
    }

    /// The tensor of a path.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.places.get(name).map(|place| &self.tensors[*place])
    }

    /// The paths of all tensors, in the order of the file.
    pub fn keys(&self) -> Vec<String> {
        self.tensors().map(|tensor| tensor.name.clone()).collect()
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// The bytes of the file at `path`.
pub(super) fn map(path: &Path) -> Result<Bytes, PytorchErrorKind> {
    let io = |error: std::io::Error| PytorchErrorKind::Io(error.to_string());
    let about = fs::metadata(path).map_err(io)?;
    // Opening something else than a file, such as a pipe, may wait forever.
    if !about.is_file() {
        return Err(PytorchErrorKind::Io("is not a file".into()));
    }
    match about.len() {
        // An empty range cannot be mapped.
        0 => return Err(PytorchErrorKind::UnknownFormat(Vec::new())),
        size if size > MAX_FILE_SIZE => return Err(PytorchErrorKind::Io(format!("is {size} bytes, more than {MAX_FILE_SIZE}"))),
        _ => {}
    }
    let file = File::open(path).map_err(io)?;
    // SAFETY: the mapping is read-only and private. Changing a mapped file in place is ruled out by the contract of `PytorchReader::new`, and
    // everything that Kiln writes replaces files whole.
    let mapped = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
    Ok(Bytes::from_owner(mapped))
}

/// A walk through the values of a file.
struct Search<'a> {
    file: &'a TorchFile,
    path: Vec<String>,
    /// The values that the walk is inside of.
    inside: Vec<Ref>,
    visits: usize,
    found: Vec<Tensor>,
}

impl Search<'_> {
    fn below(&mut self, segment: Option<String>, index: usize, value: Ref) -> Result<(), PytorchErrorKind> {
        self.path.push(segment.unwrap_or_else(|| format!("#{index}")));
        self.visit(value)?;
        self.path.pop();
        Ok(())
    }

    fn visit(&mut self, at: Ref) -> Result<(), PytorchErrorKind> {
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return Err(PickleError::TooManyValues.into());
        }
        // What a value that holds itself has was seen already.
        if self.inside.contains(&at) {
            return Ok(());
        }
        if self.inside.len() == MAX_DEPTH {
            return Err(PickleError::TooDeep.into());
        }
        self.inside.push(at);
        let heap = &self.file.heap;
        match heap.get(at) {
            Value::Dict(pairs) => self.visit_pairs(pairs)?,
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(Some(index.to_string()), index, *item)?;
                }
            }
            Value::Object { items, pairs, state, .. } => {
                if let Some((dtype, view)) = self.view(at)? {
                    self.add(dtype, view)?;
                } else if let Some(inner) = parameter(heap, at) {
                    self.visit(inner)?;
                } else {
                    for (index, item) in items.iter().enumerate() {
                        self.below(Some(index.to_string()), index, *item)?;
                    }
                    self.visit_pairs(pairs)?;
                    if let Some(state) = state {
                        self.visit_state(*state)?;
                    }
                }
            }
            Value::Persistent(id) => {
                // A tensor that lies outside of the program.
                let key = heap.segment(*id).filter(|key| self.file.tensors.contains_key(key));
                if let Some(view) = key.map(|key| self.file.tensors[&key].clone()) {
                    let dtype = view.storage.dtype.unwrap_or(DType::U8);
                    self.add(dtype, view)?;
                }
            }
            Value::None | Value::Bool(_) | Value::Int(_) | Value::BigInt | Value::Float(_) | Value::Text(_) | Value::Bytes | Value::Global(_) => {}
        }
        self.inside.pop();
        Ok(())
    }

    fn visit_pairs(&mut self, pairs: &[(Ref, Ref)]) -> Result<(), PytorchErrorKind> {
        for (index, (key, value)) in pairs.iter().enumerate() {
            self.below(self.file.heap.segment(*key), index, *value)?;
        }
        Ok(())
    }

    /// The attributes of an object: a module's parameters, buffers and parts are named without the attribute.
    fn visit_state(&mut self, state: Ref) -> Result<(), PytorchErrorKind> {
        let heap = &self.file.heap;
        const PARTS: [&str; 3] = ["_parameters", "_buffers", "_modules"];
        let parts: Vec<Ref> = PARTS.iter().filter_map(|part| heap.entry(state, part)).collect();
        if parts.len() < PARTS.len() {
            return self.visit(state);
        }
        parts.into_iter().try_for_each(|part| self.visit(part))
    }

    fn add(&mut self, dtype: DType, view: Strided) -> Result<(), PytorchErrorKind> {
        let name = self.path.join(".");
        if name.len() > MAX_PATH || self.found.len() >= MAX_TENSOR_COUNT {
            return Err(PickleError::TooManyValues.into());
        }
        self.found.push(Tensor::new(self.file, name, dtype, view)?);
        Ok(())
    }

    /// The tensor that a call rebuilds; `None` if it is no such call.
    fn view(&self, at: Ref) -> Result<Option<(DType, Strided)>, PytorchErrorKind> {
        let heap = &self.file.heap;
        let Some((function, args)) = heap.call(at) else { return Ok(None) };
        let version = match function {
            "torch._utils._rebuild_tensor" => 1,
            "torch._utils._rebuild_tensor_v2" => 2,
            "torch._utils._rebuild_tensor_v3" => 3,
            _ if function.starts_with("torch._utils._rebuild_") && !function.contains("parameter") => {
                return Err(self.refused(format!("is made by `{function}`, which is not supported")));
            }
            _ => return Ok(None),
        };
        let view = rebuilt(heap, args).ok_or_else(|| self.refused("has a storage, a shape or strides that are not supported".into()))?;
        let named = args.get(6).filter(|_| version == 3).and_then(|dtype| heap.global(*dtype));
        match named.map_or(view.storage.dtype, dtype_of_name) {
            Some(dtype) => Ok(Some((dtype, view))),
            None => Err(self.refused(format!("has the dtype `{}`, which is not supported", named.unwrap_or("unknown")))),
        }
    }

    fn refused(&self, reason: String) -> PytorchErrorKind {
        let mut name = self.path.join(".");
        let end = (0..=name.len().min(MAX_PATH)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        name.truncate(end);
        PytorchErrorKind::Tensor { name, reason }
    }
}

/// The tensor inside of a parameter.
fn parameter(heap: &Heap, at: Ref) -> Option<Ref> {
    match heap.call(at)? {
        ("torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state" | "torch.nn.parameter.Parameter", args) => {
            args.first().copied()
        }
        _ => None,
    }
}

/// The view of the arguments `(storage, offset, shape, strides, ..)`.
fn rebuilt(heap: &Heap, args: &[Ref]) -> Option<Strided> {
    let [source, offset, shape, strides, ..] = args else { return None };
    let storage: Storage = match heap.get(*source) {
        Value::Persistent(id) => storage(heap, *id)?,
        _ => return None,
    };
    let offset = usize::try_from(heap.int(*offset)?).ok()?;
    Some(Strided { storage, offset, shape: heap.sizes(*shape)?, strides: heap.sizes(*strides)? })
}
