//! The tree of values that a self-describing record is.

use kiln_tensor::Bytes;

use super::super::burnpack::PackErrorKind;

/// The most values that a record may have; bytes count as one. A parameter takes about ten.
const MAX_NODES: usize = 4 << 20;
/// The deepest nesting that is read.
pub(super) const MAX_DEPTH: usize = 128;

/// A value.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    UInt(u64),
    Int(i64),
    Float(f64),
    Text(String),
    /// Bytes, or a list of numbers that are all below 256: JSON does not tell the two apart.
    Bytes(Bytes),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The value of a key of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Whether this is a map with exactly these keys.
    pub(super) fn has_keys(&self, keys: &[&str]) -> bool {
        match self {
            Self::Map(pairs) => pairs.len() == keys.len() && keys.iter().all(|key| self.get(key).is_some()),
            _ => false,
        }
    }

    /// A list of sizes.
    pub(super) fn sizes(&self) -> Option<Vec<usize>> {
        let size = |node: &Node| match node {
            Self::UInt(size) => usize::try_from(*size).ok(),
            _ => None,
        };
        match self {
            Self::Bytes(bytes) => Some(bytes.iter().map(|byte| usize::from(*byte)).collect()),
            Self::List(items) => items.iter().map(size).collect(),
            _ => None,
        }
    }

    /// This value as JSON, for small values such as dtypes.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::UInt(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Bytes(bytes) => bytes.iter().map(|byte| serde_json::Value::from(*byte)).collect(),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(pairs) => pairs.iter().map(|(key, value)| (key.clone(), value.to_json())).collect(),
        }
    }
}

/// How many more values may be read.
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new() -> Self {
        Self(MAX_NODES)
    }

    /// Accounts for one value.
    pub(super) fn spend(&mut self) -> Result<(), PackErrorKind> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| PackErrorKind::Malformed(format!("has more than {MAX_NODES} values")))?;
        Ok(())
    }
}
