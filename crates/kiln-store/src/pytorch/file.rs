//! The files that `torch.save` has written over the years: one pickled program, and the storages that it names.
//!
//! | format | since | program | storages |
//! |---|---|---|---|
//! | zip | 1.6 | `*/data.pkl` | `*/data/KEY` |
//! | plain | 0.2 | the fourth of five pickles in a row | after them, each behind its length |
//! | tar | 0.1 | `pickle` | in `storages`, seen through `tensors` |

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use kiln_tensor::{Bytes, DType};

use super::pickle::{self, Program};
use super::value::{Heap, Ref, Value};
use super::{PickleError, PytorchErrorKind, tar, zip};

/// The first pickle of a plain file: the number 0x1950a86a20f9469cfc6c.
const PLAIN_START: [u8; 15] = *b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
/// The most bytes of pickled programs that are read; the values that they make are bounded as well.
const MAX_PICKLE: usize = 256 << 20;

/// A file, its program run.
pub(super) struct TorchFile {
    pub(super) heap: Heap,
    pub(super) root: Ref,
    bytes: Bytes,
    storages: HashMap<String, Range<usize>>,
    /// Tensors by key, of files that keep them outside of the program.
    pub(super) tensors: BTreeMap<String, Strided>,
}

/// A storage that the program names.
#[derive(Clone, Debug)]
pub(super) struct Storage {
    /// `None` for bytes whose dtype the tensor tells.
    pub(super) dtype: Option<DType>,
    pub(super) key: String,
    /// The number of its elements.
    pub(super) len: usize,
}

/// A view of a storage.
#[derive(Clone, Debug)]
pub(super) struct Strided {
    pub(super) storage: Storage,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

fn malformed(how: &str) -> PytorchErrorKind {
    PytorchErrorKind::Archive(how.into())
}

fn program(bytes: &[u8]) -> Result<Program, PytorchErrorKind> {
    if bytes.len() > MAX_PICKLE {
        return Err(PickleError::TooManyValues.into());
    }
    Ok(pickle::run(bytes)?)
}

/// The program at the start of bytes of which only a part is its own.
fn leading_program(bytes: &[u8]) -> Result<Program, PytorchErrorKind> {
    Ok(pickle::run(&bytes[..bytes.len().min(MAX_PICKLE)])?)
}

/// Whether a file that starts with these bytes may be one that `torch.save` wrote.
pub(crate) fn is_start(start: &[u8]) -> bool {
    zip::is_start(start) || start.starts_with(&PLAIN_START) || tar::is_start(start)
}

impl TorchFile {
    pub(super) fn read(bytes: Bytes) -> Result<Self, PytorchErrorKind> {
        if zip::is_start(&bytes) {
            return Self::read_zip(bytes);
        }
        if bytes.starts_with(&PLAIN_START) {
            return Self::read_plain(bytes);
        }
        if tar::is_start(&bytes) {
            return Self::read_tar(bytes);
        }
        Err(PytorchErrorKind::UnknownFormat(bytes[..bytes.len().min(16)].to_vec()))
    }

    fn read_zip(bytes: Bytes) -> Result<Self, PytorchErrorKind> {
        let members = zip::members(&bytes)?;
        let (name, range) = members
            .iter()
            .find(|(name, _)| *name == "data.pkl" || name.ends_with("/data.pkl"))
            .ok_or_else(|| malformed("has no member `data.pkl`"))?;
        let folder = name.strip_suffix("data.pkl").unwrap_or_default();
        if let Some(order) = members.get(&format!("{folder}byteorder"))
            && &bytes[order.clone()] != b"little"
        {
            return Err(malformed("its numbers have the highest byte first, which is not supported"));
        }
        let Program { heap, root, .. } = program(&bytes[range.clone()])?;
        let data = format!("{folder}data/");
        let storages = members.iter().filter_map(|(name, range)| Some((name.strip_prefix(&data)?.to_owned(), range.clone()))).collect();
        Ok(Self { heap, root, bytes, storages, tensors: BTreeMap::new() })
    }

    fn read_plain(bytes: Bytes) -> Result<Self, PytorchErrorKind> {
        let mut at = PLAIN_START.len();
        // The version of the format and of the system.
        for _ in 0..2 {
            at += leading_program(&bytes[at..])?.end;
        }
        let Program { heap, root, end } = leading_program(&bytes[at..])?;
        at += end;
        let keys = leading_program(&bytes[at..])?;
        at += keys.end;
        let mut named: HashMap<String, Storage> = HashMap::new();
        for value in heap.values() {
            if let Value::Persistent(id) = value
                && let Some(storage) = storage(&heap, *id)
            {
                named.insert(storage.key.clone(), storage);
            }
        }
        let mut storages = HashMap::new();
        for key in keys.heap.list(keys.root).ok_or_else(|| malformed("its list of storages is none"))? {
            let key = keys.heap.segment(*key).ok_or_else(|| malformed("the key of a storage is no text"))?;
            let storage = named.get(&key).ok_or_else(|| malformed("it has a storage that nothing names"))?;
            let range = counted(&bytes, at, storage.dtype.map_or(1, |dtype| dtype.size())).ok_or_else(|| malformed("a storage is cut off"))?;
            at = range.end;
            storages.insert(key, range);
        }
        Ok(Self { heap, root, bytes, storages, tensors: BTreeMap::new() })
    }

    fn read_tar(bytes: Bytes) -> Result<Self, PytorchErrorKind> {
        let member = |name: &str| tar::member(&bytes, name).ok_or_else(|| malformed(&format!("has no member `{name}`")));
        let count = |from: &Program| from.heap.int(from.root).filter(|count| *count >= 0).ok_or_else(|| malformed("a number of members is none"));

        let (within, mut at) = (member("storages")?, 0);
        let part = &bytes[within.clone()];
        let first = program(part)?;
        at += first.end;
        let (mut dtypes, mut storages) = (HashMap::new(), HashMap::new());
        for _ in 0..count(&first)? {
            let entry = program(&part[at..])?;
            at += entry.end;
            let fields = entry.heap.list(entry.root).and_then(|fields| Some((entry.heap.segment(*fields.first()?)?, *fields.get(2)?)));
            let (key, class) = fields.ok_or_else(|| malformed("a storage has no key and class"))?;
            let dtype =
                entry.heap.global(class).and_then(dtype_of_storage).flatten().ok_or_else(|| malformed("the dtype of a storage is unknown"))?;
            let range = counted(part, at, dtype.size()).ok_or_else(|| malformed("a storage is cut off"))?;
            at = range.end;
            dtypes.insert(key.clone(), (dtype, range.len() / dtype.size()));
            storages.insert(key, within.start + range.start..within.start + range.end);
        }

        let (part, mut at) = (&bytes[member("tensors")?], 0);
        let first = program(part)?;
        at += first.end;
        let mut tensors = BTreeMap::new();
        for _ in 0..count(&first)? {
            let entry = program(&part[at..])?;
            at += entry.end;
            let fields =
                entry.heap.list(entry.root).and_then(|fields| Some((entry.heap.segment(*fields.first()?)?, entry.heap.segment(*fields.get(1)?)?)));
            let (key, storage) = fields.ok_or_else(|| malformed("a tensor has no key and storage"))?;
            let (dtype, len) = *dtypes.get(&storage).ok_or_else(|| malformed("a tensor has a storage that is not there"))?;
            let (view, end) = geometry(part, at).ok_or_else(|| malformed("the shape of a tensor is cut off or malformed"))?;
            at = end;
            let (shape, strides, offset) = view;
            tensors.insert(key, Strided { storage: Storage { dtype: Some(dtype), key: storage, len }, offset, shape, strides });
        }
        let Program { heap, root, .. } = program(&bytes[member("pickle")?])?;
        Ok(Self { heap, root, bytes, storages, tensors })
    }

    /// The bytes of a storage; they share the file.
    pub(super) fn storage(&self, key: &str) -> Option<Bytes> {
        let range = self.storages.get(key)?;
        self.bytes.view(range.start, range.end).ok()
    }
}

/// The elements behind their number, which takes eight bytes.
fn counted(bytes: &[u8], at: usize, size: usize) -> Option<Range<usize>> {
    let (start, len) = (at.checked_add(8)?, usize::try_from(long(bytes, at)?).ok()?);
    let range = start..start.checked_add(len.checked_mul(size)?)?;
    bytes.get(range.clone())?;
    Some(range)
}

fn long(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(i64::from_le_bytes)
}

/// Shape, strides and offset of a tensor of a tar file, and where they end.
#[allow(clippy::type_complexity, reason = "it is taken apart at once")]
fn geometry(bytes: &[u8], at: usize) -> Option<((Vec<usize>, Vec<usize>, usize), usize)> {
    // The rank takes four bytes, four more are unused.
    let rank = u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?) as usize;
    let numbers = |from: usize| (0..rank).map(|index| usize::try_from(long(bytes, from.checked_add(8 * index)?)?).ok()).collect::<Option<Vec<_>>>();
    let shape_at = at + 8;
    let (strides_at, offset_at) = (shape_at.checked_add(rank.checked_mul(8)?)?, shape_at.checked_add(rank.checked_mul(16)?)?);
    let view = (numbers(shape_at)?, numbers(strides_at)?, usize::try_from(long(bytes, offset_at)?).ok()?);
    Some((view, offset_at + 8))
}

/// The storage that a persistent id names: `('storage', class, key, place, len, ..)`.
pub(super) fn storage(heap: &Heap, id: Ref) -> Option<Storage> {
    let fields = heap.list(id)?;
    let [kind, class, key, _, len, ..] = fields else { return None };
    if heap.text(*kind) != Some("storage") {
        return None;
    }
    let dtype = dtype_of_storage(heap.global(*class)?)?;
    Some(Storage { dtype, key: heap.segment(*key)?, len: usize::try_from(heap.int(*len)?).ok()? })
}

/// The dtype of a class of storages; `Some(None)` for bytes of any dtype.
fn dtype_of_storage(class: &str) -> Option<Option<DType>> {
    let name = class.strip_prefix("torch.")?;
    let name = name.strip_prefix("cuda.").or_else(|| name.strip_prefix("storage.")).unwrap_or(name);
    Some(Some(match name {
        "DoubleStorage" => DType::F64,
        "FloatStorage" => DType::F32,
        "HalfStorage" => DType::F16,
        "BFloat16Storage" => DType::BF16,
        "LongStorage" => DType::I64,
        "IntStorage" => DType::I32,
        "ShortStorage" => DType::I16,
        "CharStorage" => DType::I8,
        "ByteStorage" => DType::U8,
        "BoolStorage" => DType::Bool(kiln_tensor::BoolStore::Native),
        "UntypedStorage" => return Some(None),
        _ => return None,
    }))
}

/// The dtype that a program names `torch.NAME`.
pub(super) fn dtype_of_name(name: &str) -> Option<DType> {
    Some(match name.strip_prefix("torch.")? {
        "float64" | "double" => DType::F64,
        "float32" | "float" => DType::F32,
        "float16" | "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "int64" | "long" => DType::I64,
        "int32" | "int" => DType::I32,
        "int16" | "short" => DType::I16,
        "int8" => DType::I8,
        "uint8" => DType::U8,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "uint64" => DType::U64,
        "bool" => DType::Bool(kiln_tensor::BoolStore::Native),
        _ => return None,
    })
}
