//! The part of CBOR (RFC 8949) that burnpack's metadata uses: definite lengths, text keys, shortest forms when writing.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use kiln_tensor::f16;
use serde_json::Value;

use super::MAX_CBOR_RECURSION_DEPTH;

/// The metadata is not the CBOR that was expected at some place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CborError {
    /// Where, in bytes from the start of the metadata.
    pub offset: usize,
    /// What was expected there.
    pub expected: String,
}

impl fmt::Display for CborError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {} of the metadata", self.expected, self.offset)
    }
}

impl core::error::Error for CborError {}

const UINT: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const SIMPLE: u8 = 7;

const FALSE: u8 = 0xf4;
const TRUE: u8 = 0xf5;
const NULL: u8 = 0xf6;
const HALF: u8 = 0xf9;
const SINGLE: u8 = 0xfa;
const DOUBLE: u8 = 0xfb;

/// Appends CBOR items to bytes.
#[derive(Default)]
pub(super) struct Encoder {
    pub(super) bytes: Vec<u8>,
}

impl Encoder {
    /// A major type with its number in the shortest form.
    fn head(&mut self, major: u8, value: u64) {
        let major = major << 5;
        if value < 24 {
            self.bytes.push(major | value as u8);
        } else if let Ok(value) = u8::try_from(value) {
            self.bytes.extend([major | 24, value]);
        } else if let Ok(value) = u16::try_from(value) {
            self.bytes.push(major | 25);
            self.bytes.extend(value.to_be_bytes());
        } else if let Ok(value) = u32::try_from(value) {
            self.bytes.push(major | 26);
            self.bytes.extend(value.to_be_bytes());
        } else {
            self.bytes.push(major | 27);
            self.bytes.extend(value.to_be_bytes());
        }
    }

    /// The head of a map; as many pairs of key and value must follow.
    pub(super) fn map(&mut self, pairs: usize) {
        self.head(MAP, pairs as u64);
    }

    /// The head of an array; as many items must follow.
    pub(super) fn array(&mut self, items: usize) {
        self.head(ARRAY, items as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.head(TEXT, text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    pub(super) fn uint(&mut self, value: u64) {
        self.head(UINT, value);
    }

    pub(super) fn int(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.head(UINT, value),
            // The number of a negative integer n is -1 - n, which is its bitwise complement.
            Err(_) => self.head(NEGATIVE, !value as u64),
        }
    }

    pub(super) fn bool(&mut self, value: bool) {
        self.bytes.push(if value { TRUE } else { FALSE });
    }

    /// A float in the shortest of the three forms that keeps its bits.
    pub(super) fn float(&mut self, value: f64) {
        let (half, single) = (f16::from_f64(value), value as f32);
        if f64::from(half).to_bits() == value.to_bits() {
            self.bytes.push(HALF);
            self.bytes.extend(half.to_be_bytes());
        } else if f64::from(single).to_bits() == value.to_bits() {
            self.bytes.push(SINGLE);
            self.bytes.extend(single.to_be_bytes());
        } else {
            self.bytes.push(DOUBLE);
            self.bytes.extend(value.to_be_bytes());
        }
    }

    pub(super) fn null(&mut self) {
        self.bytes.push(NULL);
    }
}

/// A number as it stands in CBOR.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    UInt(u64),
    /// A negative integer.
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// Takes CBOR items off bytes. Nothing is allocated for a length before its bytes are seen to be there.
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// An error at the current place.
    pub(super) fn expected(&self, what: &str) -> CborError {
        CborError { offset: self.offset, expected: what.into() }
    }

    /// Fails unless all bytes were taken.
    pub(super) fn finish(self) -> Result<(), CborError> {
        match self.bytes.len() == self.offset {
            true => Ok(()),
            false => Err(self.expected("the end")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    fn take(&mut self, len: u64, what: &str) -> Result<&'a [u8], CborError> {
        let rest = &self.bytes[self.offset..];
        match usize::try_from(len) {
            Ok(len) if len <= rest.len() => {
                self.offset += len;
                Ok(&rest[..len])
            }
            _ => Err(self.expected(what)),
        }
    }

    /// The number behind a first byte, which must be of type `major`.
    fn head(&mut self, major: u8, what: &str) -> Result<u64, CborError> {
        let first = match self.peek() {
            Some(first) if first >> 5 == major => first,
            _ => return Err(self.expected(what)),
        };
        let width = match first & 31 {
            value @ 0..=23 => {
                self.offset += 1;
                return Ok(u64::from(value));
            }
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return Err(self.expected(what)),
        };
        let start = self.offset;
        self.offset += 1;
        let Ok(number) = self.take(width, what) else {
            self.offset = start;
            return Err(self.expected(what));
        };
        Ok(number.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// A count of things that take `least` bytes each at the least: a larger count than the bytes left can hold is refused at once.
    fn count(&mut self, major: u8, least: usize, what: &str) -> Result<usize, CborError> {
        let start = self.offset;
        let count = self.head(major, what)?;
        let left = (self.bytes.len() - self.offset) / least;
        match usize::try_from(count) {
            Ok(count) if count <= left => Ok(count),
            _ => {
                self.offset = start;
                Err(self.expected(what))
            }
        }
    }

    /// The number of pairs of a map.
    pub(super) fn map(&mut self, what: &str) -> Result<usize, CborError> {
        self.count(MAP, 2, what)
    }

    /// The number of items of an array.
    pub(super) fn array(&mut self, what: &str) -> Result<usize, CborError> {
        self.count(ARRAY, 1, what)
    }

    pub(super) fn text(&mut self, what: &str) -> Result<&'a str, CborError> {
        let start = self.offset;
        let len = self.head(TEXT, what)?;
        let text = self.take(len, what).ok();
        match text.and_then(|text| core::str::from_utf8(text).ok()) {
            Some(text) => Ok(text),
            None => {
                self.offset = start;
                Err(self.expected(what))
            }
        }
    }

    pub(super) fn uint(&mut self, what: &str) -> Result<u64, CborError> {
        self.head(UINT, what)
    }

    /// An unsigned integer, or `None` for null.
    pub(super) fn optional_uint(&mut self, what: &str) -> Result<Option<u64>, CborError> {
        if self.peek() == Some(NULL) {
            self.offset += 1;
            return Ok(None);
        }
        self.uint(what).map(Some)
    }

    pub(super) fn number(&mut self, what: &str) -> Result<Number, CborError> {
        let first = self.peek().ok_or_else(|| self.expected(what))?;
        let start = self.offset;
        let number = match first {
            FALSE | TRUE => {
                self.offset += 1;
                Some(Number::Bool(first == TRUE))
            }
            HALF | SINGLE | DOUBLE => {
                let bits = self.head(SIMPLE, what)?;
                Some(Number::Float(match first {
                    HALF => f64::from(f16::from_bits(bits as u16)),
                    SINGLE => f64::from(f32::from_bits(bits as u32)),
                    _ => f64::from_bits(bits),
                }))
            }
            _ if first >> 5 == NEGATIVE => {
                let complement = i64::try_from(self.head(NEGATIVE, what)?);
                complement.ok().map(|complement| Number::Int(!complement))
            }
            _ => Some(Number::UInt(self.uint(what)?)),
        };
        number.ok_or_else(|| {
            self.offset = start;
            self.expected(what)
        })
    }

    /// The next item, of texts, integers, booleans, null, arrays and maps.
    pub(super) fn value(&mut self) -> Result<Value, CborError> {
        self.value_nested(0)
    }

    fn value_nested(&mut self, depth: usize) -> Result<Value, CborError> {
        let depth = self.deeper(depth)?;
        let what = "a text, an integer, a boolean, an array or a map";
        match self.peek().map(|first| (first, first >> 5)) {
            Some((NULL, _)) => {
                self.offset += 1;
                Ok(Value::Null)
            }
            Some((_, TEXT)) => self.text(what).map(Value::from),
            Some((_, ARRAY)) => (0..self.array(what)?).map(|_| self.value_nested(depth)).collect(),
            Some((_, MAP)) => {
                let count = self.map(what)?;
                let pair = |_| Ok((String::from(self.text(what)?), self.value_nested(depth)?));
                (0..count).map(pair).collect::<Result<_, _>>().map(Value::Object)
            }
            _ => match self.number(what)? {
                Number::UInt(value) => Ok(Value::from(value)),
                Number::Int(value) => Ok(Value::from(value)),
                Number::Bool(value) => Ok(Value::from(value)),
                Number::Float(value) => Ok(Value::from(value)),
            },
        }
    }

    /// One level down, or an error at the deepest level that is read.
    fn deeper(&self, depth: usize) -> Result<usize, CborError> {
        match depth < MAX_CBOR_RECURSION_DEPTH {
            true => Ok(depth + 1),
            false => Err(self.expected("less nesting")),
        }
    }

    /// Passes over one item of any kind and gives its bytes.
    pub(super) fn skip(&mut self) -> Result<&'a [u8], CborError> {
        let start = self.offset;
        self.skip_nested(0)?;
        Ok(&self.bytes[start..self.offset])
    }

    fn skip_nested(&mut self, depth: usize) -> Result<(), CborError> {
        let depth = self.deeper(depth)?;
        let what = "a CBOR item";
        let major = self.peek().ok_or_else(|| self.expected(what))? >> 5;
        let items = match major {
            BYTES | TEXT => {
                let len = self.head(major, what)?;
                self.take(len, what)?;
                0
            }
            ARRAY => self.array(what)?,
            MAP => 2 * self.map(what)?,
            TAG => {
                self.head(major, what)?;
                1
            }
            UINT | NEGATIVE | SIMPLE.. => {
                self.head(major, what)?;
                0
            }
        };
        (0..items).try_for_each(|_| self.skip_nested(depth))
    }
}
