//! Indented JSON of a configuration, byte for byte what `serde_json` writes.
//!
//! Every configuration is compiled with its writer. This one leaves nothing but calls there: all that writes is compiled once, so that fifty layers and their optimizers don't carry a
//! writer each.

use alloc::string::{String, ToString};

use serde::Serialize;
use serde::ser::{self, Error as _, Serializer};

/// Text so far, and where in it the writer is.
#[derive(Default)]
pub(super) struct Json {
    text: String,
    depth: usize,
    /// Whether a bracket has been opened and nothing has been written since.
    fresh: bool,
}

type Outcome = Result<(), serde_json::Error>;

impl Json {
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.depth += 1;
        self.fresh = true;
    }

    /// Begins the next element.
    fn next(&mut self) {
        if !self.fresh {
            self.text.push(',');
        }
        self.line();
        self.fresh = false;
    }

    fn line(&mut self) {
        self.text.push('\n');
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
    }

    fn close(&mut self, brackets: &str) {
        for bracket in brackets.chars() {
            self.depth -= 1;
            if !self.fresh {
                self.line();
            }
            self.text.push(bracket);
            self.fresh = false;
        }
    }

    fn key(&mut self, name: &str) -> Outcome {
        self.next();
        self.string(name)?;
        self.text.push_str(": ");
        Ok(())
    }

    fn string(&mut self, text: &str) -> Outcome {
        self.text.push_str(&serde_json::to_string(text)?);
        Ok(())
    }

    fn plain(&mut self, text: &str) -> Outcome {
        self.text.push_str(text);
        Ok(())
    }

    /// Begins the object of an enum's variant that has content.
    fn variant(&mut self, name: &str) -> Outcome {
        self.open('{');
        self.key(name)
    }
}

/// The elements of a list or object, and the brackets behind them.
pub(super) struct Parts<'a> {
    json: &'a mut Json,
    brackets: &'static str,
}

impl<'a> Parts<'a> {
    fn new(json: &'a mut Json, bracket: char, brackets: &'static str) -> Result<Self, serde_json::Error> {
        json.open(bracket);
        Ok(Self { json, brackets })
    }

    fn end(self) -> Outcome {
        self.json.close(self.brackets);
        Ok(())
    }
}

/// Methods that write a number as it prints.
macro_rules! numbers {
    ($($method:ident $ty:ty),*) => {$(
        fn $method(self, value: $ty) -> Outcome {
            self.plain(&value.to_string())
        }
    )*};
}

impl<'a> Serializer for &'a mut Json {
    type Ok = ();
    type Error = serde_json::Error;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    numbers! {
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32,
        serialize_u64 u64, serialize_u128 u128
    }

    fn serialize_f32(self, value: f32) -> Outcome {
        let text = serde_json::to_string(&value)?;
        self.plain(&text)
    }

    fn serialize_f64(self, value: f64) -> Outcome {
        let text = serde_json::to_string(&value)?;
        self.plain(&text)
    }

    fn serialize_char(self, value: char) -> Outcome {
        self.string(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Outcome {
        self.string(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Outcome {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Outcome {
        self.plain("null")
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Outcome {
        self.plain("null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Outcome {
        self.plain("null")
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Outcome {
        self.string(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _name: &'static str, value: &T) -> Outcome {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(self, _name: &'static str, _index: u32, variant: &'static str, value: &T) -> Outcome {
        self.variant(variant)?;
        value.serialize(&mut *self)?;
        self.close("}");
        Ok(())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Parts<'a>, Self::Error> {
        Parts::new(self, '[', "]")
    }

    fn serialize_tuple(self, _len: usize) -> Result<Parts<'a>, Self::Error> {
        Parts::new(self, '[', "]")
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Parts<'a>, Self::Error> {
        Parts::new(self, '[', "]")
    }

    fn serialize_tuple_variant(self, _name: &'static str, _index: u32, variant: &'static str, _len: usize) -> Result<Parts<'a>, Self::Error> {
        self.variant(variant)?;
        Parts::new(self, '[', "]}")
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Parts<'a>, Self::Error> {
        Parts::new(self, '{', "}")
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Parts<'a>, Self::Error> {
        Parts::new(self, '{', "}")
    }

    fn serialize_struct_variant(self, _name: &'static str, _index: u32, variant: &'static str, _len: usize) -> Result<Parts<'a>, Self::Error> {
        self.variant(variant)?;
        Parts::new(self, '{', "}}")
    }
}

/// Lists of elements.
macro_rules! lists {
    ($($list:ident $method:ident),*) => {$(
        impl ser::$list for Parts<'_> {
            type Ok = ();
            type Error = serde_json::Error;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Outcome {
                self.json.next();
                value.serialize(&mut *self.json)
            }

            fn end(self) -> Outcome {
                Parts::end(self)
            }
        }
    )*};
}

lists!(SerializeSeq serialize_element, SerializeTuple serialize_element, SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field);

/// Objects of named fields.
macro_rules! objects {
    ($($object:ident),*) => {$(
        impl ser::$object for Parts<'_> {
            type Ok = ();
            type Error = serde_json::Error;

            fn serialize_field<T: ?Sized + Serialize>(&mut self, name: &'static str, value: &T) -> Outcome {
                self.json.key(name)?;
                value.serialize(&mut *self.json)
            }

            fn end(self) -> Outcome {
                Parts::end(self)
            }
        }
    )*};
}

objects!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Outcome {
        let text = serde_json::to_string(key)?;
        self.json.next();
        // Numbers and truth values are keys as text.
        match text.as_bytes().first() {
            Some(b'"') => self.json.plain(&text)?,
            Some(b'{' | b'[' | b'n') | None => return Err(serde_json::Error::custom("key must be a string")),
            Some(_) => self.json.string(&text)?,
        }
        self.json.plain(": ")
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Outcome {
        value.serialize(&mut *self.json)
    }

    fn end(self) -> Outcome {
        Parts::end(self)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[derive(Serialize)]
    enum Choice {
        Nothing,
        One(f64),
        Two(i64, bool),
        Named { first: Vec<u8>, second: () },
    }

    #[derive(Serialize)]
    struct Wrapped(u32);

    #[derive(Serialize)]
    struct Empty {}

    #[derive(Serialize)]
    struct Everything {
        choices: Vec<Choice>,
        numbers: (f32, f64, i8, u64, i128),
        special: [f64; 4],
        text: String,
        letter: char,
        wrapped: Wrapped,
        empty: (Empty, Vec<u8>, BTreeMap<u8, u8>),
        some: Option<bool>,
        none: Option<bool>,
        names: BTreeMap<String, Vec<Option<u8>>>,
        places: BTreeMap<i32, BTreeMap<bool, f32>>,
        nested: Vec<Vec<Vec<u8>>>,
    }

    #[test]
    fn the_text_is_serde_jsons() {
        let value = Everything {
            choices: vec![Choice::Nothing, Choice::One(1.0), Choice::Two(-3, true), Choice::Named { first: vec![1, 2], second: () }],
            numbers: (0.1, 1e-7, -8, u64::MAX, i128::MIN),
            special: [f64::NAN, f64::INFINITY, 1e300, -0.0],
            text: "a \"quoted\"\n\u{1}line, naïve".into(),
            letter: '\\',
            wrapped: Wrapped(7),
            empty: (Empty {}, Vec::new(), BTreeMap::new()),
            some: Some(false),
            none: None,
            names: [("a".into(), vec![None, Some(3)]), ("b".into(), Vec::new())].into(),
            places: [(-1, [(true, 0.5)].into()), (2, BTreeMap::new())].into(),
            nested: vec![vec![vec![1], vec![]], vec![]],
        };
        let mut json = Json::default();
        value.serialize(&mut json).unwrap();
        assert_eq!(json.into_text(), serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn keys_are_strings_numbers_or_truth_values() {
        let mut json = Json::default();
        let value: BTreeMap<Vec<u8>, u8> = [(vec![1], 2)].into();
        assert!(value.serialize(&mut json).is_err());
    }
}
