//! MessagePack, as the recorders with names write it: text keys, `bin` for bytes, the variant's name for an enum.

use kiln_tensor::Bytes;

use super::super::burnpack::PackErrorKind;
use super::node::{Budget, MAX_DEPTH, Node};

/// How a record begins: a map of three entries whose first key is `metadata`.
pub(super) const START: &[u8] = b"\x83\xa8metadata";

/// Reads a file that is one value.
pub(super) fn decode(bytes: &Bytes) -> Result<Node, PackErrorKind> {
    let mut decoder = Decoder { bytes, offset: 0, budget: Budget::new() };
    let node = decoder.node(0)?;
    match decoder.offset == bytes.len() {
        true => Ok(node),
        false => Err(decoder.malformed("the end")),
    }
}

struct Decoder<'a> {
    bytes: &'a Bytes,
    offset: usize,
    budget: Budget,
}

impl Decoder<'_> {
    fn malformed(&self, expected: &str) -> PackErrorKind {
        PackErrorKind::Malformed(format!("expected {expected} at byte {}", self.offset))
    }

    /// The bounds of the next `len` bytes, which are passed over.
    fn take(&mut self, len: u64, expected: &str) -> Result<[usize; 2], PackErrorKind> {
        let start = self.offset;
        match usize::try_from(len).ok().and_then(|len| start.checked_add(len)) {
            Some(end) if end <= self.bytes.len() => {
                self.offset = end;
                Ok([start, end])
            }
            _ => Err(self.malformed(expected)),
        }
    }

    fn uint(&mut self, width: u64) -> Result<u64, PackErrorKind> {
        let [start, end] = self.take(width, "a number")?;
        Ok(self.bytes[start..end].iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// A signed number of `width` bytes.
    fn int(&mut self, width: u64) -> Result<Node, PackErrorKind> {
        let unused = 64 - 8 * width as u32;
        let value = (self.uint(width)? << unused) as i64 >> unused;
        Ok(u64::try_from(value).map_or(Node::Int(value), Node::UInt))
    }

    fn text(&mut self, len: u64) -> Result<String, PackErrorKind> {
        let error = self.malformed("a text");
        let [start, end] = self.take(len, "a text")?;
        std::str::from_utf8(&self.bytes[start..end]).map(String::from).map_err(|_| error)
    }

    fn blob(&mut self, len: u64) -> Result<Node, PackErrorKind> {
        let [start, end] = self.take(len, "bytes")?;
        Ok(Node::Bytes(self.bytes.view(start, end).expect("the bytes are there")))
    }

    fn list(&mut self, len: u64, depth: usize) -> Result<Node, PackErrorKind> {
        // Items are collected one by one, so a length that is not true costs nothing.
        (0..len).map(|_| self.node(depth)).collect::<Result<_, _>>().map(Node::List)
    }

    fn map(&mut self, len: u64, depth: usize) -> Result<Node, PackErrorKind> {
        let pair = |decoder: &mut Self| match decoder.node(depth)? {
            Node::Text(key) => Ok((key, decoder.node(depth)?)),
            _ => Err(decoder.malformed("a text before this as key")),
        };
        (0..len).map(|_| pair(self)).collect::<Result<_, _>>().map(Node::Map)
    }

    fn node(&mut self, depth: usize) -> Result<Node, PackErrorKind> {
        if depth == MAX_DEPTH {
            return Err(self.malformed("less nesting"));
        }
        self.budget.spend()?;
        let depth = depth + 1;
        let first = self.uint(1)?;
        match first {
            0x00..=0x7f => Ok(Node::UInt(first)),
            0x80..=0x8f => self.map(first & 0x0f, depth),
            0x90..=0x9f => self.list(first & 0x0f, depth),
            0xa0..=0xbf => self.text(first & 0x1f).map(Node::Text),
            0xc0 => Ok(Node::Null),
            0xc2 | 0xc3 => Ok(Node::Bool(first == 0xc3)),
            0xc4..=0xc6 => {
                let len = self.uint(1 << (first - 0xc4))?;
                self.blob(len)
            }
            0xca => self.uint(4).map(|bits| Node::Float(f32::from_bits(bits as u32).into())),
            0xcb => self.uint(8).map(|bits| Node::Float(f64::from_bits(bits))),
            0xcc..=0xcf => self.uint(1 << (first - 0xcc)).map(Node::UInt),
            0xd0..=0xd3 => self.int(1 << (first - 0xd0)),
            0xd9..=0xdb => {
                let len = self.uint(1 << (first - 0xd9))?;
                self.text(len).map(Node::Text)
            }
            0xdc | 0xdd => {
                let len = self.uint(2 << (first - 0xdc))?;
                self.list(len, depth)
            }
            0xde | 0xdf => {
                let len = self.uint(2 << (first - 0xde))?;
                self.map(len, depth)
            }
            0xe0..=0xff => Ok(Node::Int(i64::from(first as u8 as i8))),
            // 0xc1 is never used; the others are extension types, which records do not have.
            _ => {
                self.offset -= 1;
                Err(self.malformed("a value"))
            }
        }
    }
}
