//! A record of Burn 0.21: which format it is in, and the tensors it holds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use kiln_tensor::{Bytes, DType, Shape};

use super::super::burnpack::{MAX_FILE_SIZE, PackErrorKind, PackFileError, PackTensor, Scalar};
use super::node::Node;
use super::{bincode, gzip, json, msgpack, quantized, states};

/// The formats of Burn 0.21's recorders, gzip-compressed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyFormat {
    /// MessagePack with names: `.mpk`.
    MessagePack,
    /// JSON: `.json`.
    Json,
    /// Bincode: `.bin`.
    Bincode,
}

/// A record of Burn 0.21.
#[derive(Debug, Clone)]
pub struct LegacyRecord {
    /// The format it was written in.
    pub format: LegacyFormat,
    /// Whether it was gzip-compressed.
    pub compressed: bool,
    /// Its tensors. In a module's record they are called by their paths, such as `layers.0.weight`; in one of bincode, which has no names, `#0`,
    /// `#1`, ... in the order of visits; in an optimizer's, by the parameter's id and the field, such as `77.momentum.moment_1`.
    pub tensors: Vec<PackTensor>,
    /// The numbers of an optimizer's record, called as its tensors are, such as `77.momentum.time`; `77.__rank` is the rank of the parameter. The number
    /// that a scheduler's record is has an empty name; in bincode, which does not tell its type, there is each number that it may be: `#uint`, `#int`,
    /// `#float`. A composed scheduler's are called `schedulers.0.Linear` and so on.
    pub scalars: BTreeMap<String, Scalar>,
}

impl LegacyRecord {
    /// Whether a file that starts with these bytes (the more the better, 1 KiB at most) may be such a record.
    pub fn is_start(start: &[u8]) -> bool {
        start.starts_with(&gzip::MAGIC) || format_of(start).is_some()
    }

    /// Whether there is a file at `path` that may be such a record, by its first bytes.
    pub fn is_record(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        let mut start = Vec::new();
        let mut read = |path: &Path| File::open(path)?.take(1 << 10).read_to_end(&mut start);
        path.is_file() && read(path).is_ok() && Self::is_start(&start)
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no record of Burn 0.21, or is malformed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PackFileError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let io = |error: std::io::Error| PackErrorKind::Io(error.to_string()).in_file(&name);
        let about = std::fs::metadata(path).map_err(io)?;
        if !about.is_file() {
            return Err(PackErrorKind::Io("is not a file".into()).in_file(&name));
        }
        if about.len() > MAX_FILE_SIZE {
            return Err(PackErrorKind::FileTooLarge { size: about.len() }.in_file(&name));
        }
        let bytes = std::fs::read(path).map_err(io)?;
        Self::from_bytes(&name, Bytes::from_bytes_vec(bytes))
    }

    /// Reads a record that lies in memory. `file` names it in errors.
    ///
    /// # Errors
    ///
    /// The bytes are no record of Burn 0.21, or malformed.
    pub fn from_bytes(file: &str, bytes: Bytes) -> Result<Self, PackFileError> {
        Self::decode(bytes).map_err(|kind| kind.in_file(file))
    }

    fn decode(bytes: Bytes) -> Result<Self, PackErrorKind> {
        let compressed = bytes.starts_with(&gzip::MAGIC);
        let bytes = if compressed { gzip::inflate(&bytes)? } else { bytes }.shared();
        let format = format_of(&bytes).ok_or_else(|| PackErrorKind::Malformed("is no record of Burn 0.21".into()))?;
        let mut record = Self { format, compressed, tensors: Vec::new(), scalars: BTreeMap::new() };
        let root = match format {
            LegacyFormat::Bincode => {
                let start = bincode::skip_metadata(&bytes).unwrap_or(bytes.len());
                match states::optimizer(&bytes, start) {
                    Some(found) => (record.tensors, record.scalars) = (found.tensors, found.scalars),
                    None => {
                        record.tensors = bincode::decode(&bytes)?;
                        record.scalars = states::scheduler(&bytes, start);
                    }
                }
                return Ok(record);
            }
            LegacyFormat::MessagePack => msgpack::decode(&bytes)?,
            LegacyFormat::Json => json::decode(&bytes)?,
        };
        let item = root.get("item").ok_or_else(|| PackErrorKind::Malformed("has no `item`".into()))?;
        match optimizer_states(item) {
            Some(states) => {
                for (id, rank, state) in states {
                    record.scalars.insert(format!("{id}.__rank"), Scalar::UInt(rank));
                    record.walk(&mut vec![id.to_string()], state, Some(id))?;
                }
            }
            None => record.walk(&mut Vec::new(), item, None)?,
        }
        Ok(record)
    }

    /// Collects the tensors and numbers of a value, which may be the state of the optimizer's parameter `owner`.
    fn walk(&mut self, path: &mut Vec<String>, node: &Node, owner: Option<u64>) -> Result<(), PackErrorKind> {
        if node.has_keys(&["id", "param"])
            && let (Some(Node::Text(id)), Some(param)) = (node.get("id"), node.get("param"))
        {
            // An id of an older kind has no number; the parameter then keeps the one that its module gives it.
            self.tensors.push(tensor(path.join("."), param, param_id(id))?);
            return Ok(());
        }
        if node.has_keys(&["bytes", "shape", "dtype"]) {
            self.tensors.push(tensor(path.join("."), node, owner)?);
            return Ok(());
        }
        let scalar = match node {
            Node::Map(pairs) => {
                for (name, value) in pairs {
                    path.push(name.clone());
                    self.walk(path, value, owner)?;
                    path.pop();
                }
                None
            }
            Node::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(index.to_string());
                    self.walk(path, item, owner)?;
                    path.pop();
                }
                None
            }
            Node::UInt(value) => Some(Scalar::UInt(*value)),
            Node::Int(value) => Some(Scalar::Int(*value)),
            Node::Float(value) => Some(Scalar::Float(*value)),
            Node::Bool(value) => Some(Scalar::Bool(*value)),
            Node::Null | Node::Text(_) | Node::Bytes(_) => None,
        };
        // What a module holds beside tensors is recorded as nothing, so these are numbers of optimizers and schedulers.
        if let Some(scalar) = scalar {
            self.scalars.insert(path.join("."), scalar);
        }
        Ok(())
    }
}

/// The format of a record, compressed or not taken into account.
fn format_of(bytes: &[u8]) -> Option<LegacyFormat> {
    if bytes.starts_with(msgpack::START) {
        return Some(LegacyFormat::MessagePack);
    }
    let text = bytes.trim_ascii_start();
    if let Some(rest) = text.strip_prefix(b"{")
        && rest.trim_ascii_start().starts_with(b"\"metadata\"")
    {
        return Some(LegacyFormat::Json);
    }
    bincode::skip_metadata(bytes).map(|_| LegacyFormat::Bincode)
}

/// The parameter's id, its rank and its state, for each entry of an optimizer's record; `None` if it is none.
fn optimizer_states(item: &Node) -> Option<Vec<(u64, u64, &Node)>> {
    match item {
        Node::Map(pairs) if !pairs.is_empty() => pairs.iter().map(|(id, entry)| optimizer_state(id, entry)).collect(),
        _ => None,
    }
}

/// The state of one parameter, stored under its id as `{ V1: { Rank<D>: state } }`.
fn optimizer_state<'a>(id: &str, entry: &'a Node) -> Option<(u64, u64, &'a Node)> {
    let id = param_id(id)?;
    let Node::Map(versions) = entry else { return None };
    let [(version, Node::Map(ranks))] = &versions[..] else { return None };
    let [(rank, state)] = &ranks[..] else { return None };
    let rank = rank.strip_prefix("Rank")?.parse().ok()?;
    (version == "V1").then_some((id, rank, state))
}

/// The tensor of `{ bytes, shape, dtype }`.
fn tensor(name: String, node: &Node, id: Option<u64>) -> Result<PackTensor, PackErrorKind> {
    let malformed = |what: &str| PackErrorKind::Malformed(format!("tensor `{name}` has no valid {what}"));
    let bytes = match node.get("bytes") {
        Some(Node::Bytes(bytes)) => bytes.clone(),
        Some(Node::List(items)) if items.is_empty() => Bytes::from_bytes_vec(Vec::new()),
        _ => return Err(malformed("bytes")),
    };
    let shape = node.get("shape").and_then(Node::sizes).ok_or_else(|| malformed("shape"))?;
    let dtype = node.get("dtype").ok_or_else(|| malformed("dtype"))?;
    let described = dtype.to_json();
    let dtype = quantized::dtype(&described).or_else(|| serde_json::from_value(described).ok()).ok_or_else(|| malformed("dtype"))?;
    let found = bytes.len() as u64;
    let expected = shape.iter().try_fold(dtype.size() as u64, |len, extent| len.checked_mul(*extent as u64));
    if !matches!(dtype, DType::QFloat(_)) && expected != Some(found) {
        return Err(PackErrorKind::TensorSize { name, expected, found });
    }
    let bytes = quantized::bytes(bytes, &shape, dtype);
    Ok(PackTensor::new(name, dtype, Shape::from(shape), id, bytes))
}

/// The number of an id: 13 digits of base 32 (`0` to `v`), five bits each from the highest on, are eight bytes from the lowest on.
pub(super) fn param_id(text: &str) -> Option<u64> {
    if text.len() != 13 {
        return None;
    }
    let digits = text.bytes().map(|digit| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'v' => Some(digit - b'a' + 10),
        _ => None,
    });
    let bits = digits.into_iter().try_fold(0u128, |bits, digit| Some(bits << 5 | u128::from(digit?)))?;
    // 65 bits, of which the last is padding.
    Some(((bits >> 1) as u64).swap_bytes())
}

#[cfg(test)]
mod tests {
    use super::param_id;

    #[test]
    fn ids_are_read_from_their_text() {
        assert_eq!(param_id("9k00000000000"), Some(77));
        assert_eq!(param_id("ct2i60ffnqmts"), Some(0xDEAD_BEEF_0123_4567));
        assert_eq!(param_id("0400208000000"), Some(0x0101_0001));
        assert_eq!(param_id("ct2i60ffnqmt"), None);
        assert_eq!(param_id("ct2i60ffnqmtz"), None);
    }
}
