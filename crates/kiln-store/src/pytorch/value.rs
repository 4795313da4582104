//! The values that a pickled program makes.
//!
//! They lie in one list and name each other by place, so that sharing and cycles cost nothing and dropping them needs no recursion.

use super::PickleError;

/// The most values that are read. A tensor takes about fifteen.
const MAX_VALUES: usize = 4 << 20;

/// The place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ref(u32);

/// A value. Nothing is called: what a program would call stays an [`Value::Object`].
#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits.
    BigInt,
    Float(f64),
    Text(String),
    /// Bytes; nothing that is read asks which.
    Bytes,
    /// A list, tuple or set.
    List(Vec<Ref>),
    Dict(Vec<(Ref, Ref)>),
    /// A class or function: `module.name`.
    Global(String),
    /// What a class or function would make of arguments; with what was added to it as to a list or dictionary, and its state.
    Object {
        class: Ref,
        args: Ref,
        items: Vec<Ref>,
        pairs: Vec<(Ref, Ref)>,
        state: Option<Ref>,
    },
    /// An object that is stored outside of the program.
    Persistent(Ref),
}

/// All values of a program.
#[derive(Debug, Default)]
pub(super) struct Heap(Vec<Value>);

impl Heap {
    pub(super) fn add(&mut self, value: Value) -> Result<Ref, PickleError> {
        if self.0.len() >= MAX_VALUES {
            return Err(PickleError::TooManyValues);
        }
        self.0.push(value);
        Ok(Ref((self.0.len() - 1) as u32))
    }

    pub(super) fn get(&self, at: Ref) -> &Value {
        &self.0[at.0 as usize]
    }

    pub(super) fn get_mut(&mut self, at: Ref) -> &mut Value {
        &mut self.0[at.0 as usize]
    }

    /// Every value.
    pub(super) fn values(&self) -> &[Value] {
        &self.0
    }

    pub(super) fn list(&self, at: Ref) -> Option<&[Ref]> {
        match self.get(at) {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn int(&self, at: Ref) -> Option<i64> {
        match self.get(at) {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn text(&self, at: Ref) -> Option<&str> {
        match self.get(at) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn global(&self, at: Ref) -> Option<&str> {
        match self.get(at) {
            Value::Global(name) => Some(name),
            _ => None,
        }
    }

    /// A list of sizes or offsets.
    pub(super) fn sizes(&self, at: Ref) -> Option<Vec<usize>> {
        self.list(at)?.iter().map(|item| usize::try_from(self.int(*item)?).ok()).collect()
    }

    /// The function and the arguments of a value that a call makes.
    pub(super) fn call(&self, at: Ref) -> Option<(&str, &[Ref])> {
        match self.get(at) {
            Value::Object { class, args, .. } => Some((self.global(*class)?, self.list(*args)?)),
            _ => None,
        }
    }

    /// The value of a key of a dictionary.
    pub(super) fn entry(&self, at: Ref, key: &str) -> Option<Ref> {
        self.pairs(at)?.iter().rev().find(|(name, _)| self.text(*name) == Some(key)).map(|(_, value)| *value)
    }

    /// The entries of a dictionary, or of an object that is used as one.
    pub(super) fn pairs(&self, at: Ref) -> Option<&[(Ref, Ref)]> {
        match self.get(at) {
            Value::Dict(pairs) => Some(pairs),
            Value::Object { pairs, .. } if !pairs.is_empty() => Some(pairs),
            _ => None,
        }
    }

    /// A key of a dictionary as a segment of a path; `None` for one that has no short text.
    pub(super) fn segment(&self, key: Ref) -> Option<String> {
        match self.get(key) {
            Value::Text(text) => Some(text.clone()),
            Value::Int(value) => Some(value.to_string()),
            Value::Bool(value) => Some(if *value { "True".into() } else { "False".into() }),
            Value::Float(value) => Some(value.to_string()),
            Value::None => Some("None".into()),
            _ => None,
        }
    }
}
