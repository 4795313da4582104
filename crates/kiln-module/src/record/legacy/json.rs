//! JSON records: bytes are lists of numbers.

use std::fmt;

use kiln_tensor::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::super::burnpack::PackErrorKind;
use super::node::{Budget, Node};

/// Reads a file that is one value. The JSON reader itself bounds the nesting.
pub(super) fn decode(bytes: &[u8]) -> Result<Node, PackErrorKind> {
    let mut budget = Budget::new();
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let node = Value(&mut budget).deserialize(&mut from);
    let node = node.and_then(|node| from.end().map(|()| node));
    node.map_err(|error| PackErrorKind::Malformed(error.to_string()))
}

/// Reads a value within a budget.
struct Value<'a>(&'a mut Budget);

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        self.0.spend().map_err(D::Error::custom)?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::UInt(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Int(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key()? {
            pairs.push((key, map.next_value_seed(Value(&mut *self.0))?));
        }
        Ok(Node::Map(pairs))
    }

    /// Collects bytes for as long as the items are bytes: a tensor's elements never become a value each.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut bytes = Vec::new();
        let mut other = loop {
            match seq.next_element_seed(Item(&mut *self.0))? {
                None => return Ok(Node::Bytes(Bytes::from_bytes_vec(bytes))),
                Some(Node::UInt(byte @ 0..=255)) => bytes.push(byte as u8),
                Some(node) => break node,
            }
        };
        let mut items = Vec::new();
        for byte in bytes {
            self.0.spend().map_err(A::Error::custom)?;
            items.push(Node::UInt(byte.into()));
        }
        loop {
            self.0.spend().map_err(A::Error::custom)?;
            items.push(other);
            match seq.next_element_seed(Item(&mut *self.0))? {
                Some(node) => other = node,
                None => return Ok(Node::List(items)),
            }
        }
    }
}

/// Reads an item of a list, whose own cost the list accounts for.
struct Item<'a>(&'a mut Budget);

impl<'de> DeserializeSeed<'de> for Item<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        from.deserialize_any(Value(self.0))
    }
}
