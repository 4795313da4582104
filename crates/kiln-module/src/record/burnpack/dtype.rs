//! How a dtype is spelled in the metadata.

use alloc::string::String;

use kiln_tensor::DType;
use serde_json::Value;

use super::cbor::{CborError, Decoder, Encoder};

/// Writes a dtype as its variant: a name, or a map of the name to what the variant holds.
pub(super) fn encode(dtype: DType, to: &mut Encoder) {
    let value = serde_json::to_value(dtype).expect("a dtype is plain data");
    encode_value(&value, to);
}

/// The fields of quantization schemes in the order in which they are written.
const FIELDS: [&str; 9] = ["value", "store", "mode", "tensor", "block", "size", "dtype", "storage", "len"];

fn encode_value(value: &Value, to: &mut Encoder) {
    match value {
        Value::Null => to.null(),
        Value::Bool(value) => to.bool(*value),
        Value::Number(number) => to.uint(number.as_u64().expect("dtypes hold only small unsigned numbers")),
        Value::String(text) => to.text(text),
        Value::Array(items) => {
            to.array(items.len());
            items.iter().for_each(|item| encode_value(item, to));
        }
        Value::Object(fields) => {
            // JSON objects are sorted by name; the file has the fields as they are declared.
            let mut fields: alloc::vec::Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| FIELDS.iter().position(|field| field == name));
            to.map(fields.len());
            for (name, value) in fields {
                to.text(name);
                encode_value(value, to);
            }
        }
    }
}

/// Longer than the longest dtype, in bytes: it bounds what is built up before a wrong one is refused.
const LONGEST: usize = 1 << 10;

/// Reads a dtype.
pub(super) fn decode(from: &mut Decoder<'_>) -> Result<DType, CborError> {
    let error = from.expected("a dtype");
    let item = from.skip()?;
    if item.len() > LONGEST {
        return Err(error);
    }
    let value = Decoder::new(item).value().map_err(|_| error.clone())?;
    serde_json::from_value(value).map_err(|_| error)
}
