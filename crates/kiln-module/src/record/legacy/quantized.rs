//! How Burn 0.21 described quantized tensors, and what that is called now.
//!
//! The values stay as they are, with the scales behind them. Scales were 32-bit floats at a multiple of four bytes whatever type the scheme gave them; they are brought into
//! that type.

use kiln_tensor::quantization::{BlockLayout, QuantStore, QuantizedBytes, quantizable, quantized_data_len, scale_size};
use kiln_tensor::{Bytes, DType, Shape};
use serde_json::{Value, json};

use super::bincode::Cursor;

const VALUES: [&str; 9] = ["Q8F", "E5M2", "E4M3", "Q4F", "E2M1", "Q2F", "Q8S", "Q4S", "Q2S"];
const PARAMS: [&str; 5] = ["F32", "F16", "BF16", "UE8M0", "UE4M3"];

/// The dtype of `{"QFloat": {value, param, store, level, mode}}`; `None` if it is no such description.
pub(super) fn dtype(described: &Value) -> Option<DType> {
    let scheme = described.get("QFloat")?;
    let (param, level) = (scheme.get("param")?, scheme.get("level")?);
    let (tensor, block) = match level.get("Block") {
        Some(size) => (Value::Null, json!({ "size": size, "dtype": param })),
        None if level == "Tensor" => (param.clone(), Value::Null),
        None => return None,
    };
    let (value, store, mode) = (scheme.get("value")?, scheme.get("store")?, scheme.get("mode")?);
    let scheme = json!({ "value": value, "store": store, "mode": mode, "tensor": tensor, "block": block });
    serde_json::from_value(json!({ "QFloat": scheme })).ok()
}

/// The bytes of a tensor in today's layout. Bytes that no layout has stay as they are: loading them says so.
pub(super) fn bytes(bytes: Bytes, shape: &[usize], dtype: DType) -> Bytes {
    let DType::QFloat(scheme) = dtype else {
        return bytes;
    };
    // A value has two bits at least, which keeps the lengths below within bounds.
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    if !quantizable(&scheme) || count.is_none_or(|count| count > bytes.len().saturating_mul(4)) {
        return bytes;
    }
    let shape = Shape::from(shape);
    let scales = scheme.block_size().map_or(1, |block| BlockLayout::new(&shape, &block).num_blocks());
    let today = quantized_data_len(&scheme, &shape);
    let values = today - scales * scale_size(scheme.scale_dtype());
    let start = values.next_multiple_of(4);
    if bytes.len() == today || bytes.len() != start + 4 * scales {
        return bytes;
    }
    let scales: Vec<f32> = bytes[start..].as_chunks::<4>().0.iter().map(|scale| f32::from_ne_bytes(*scale)).collect();
    match scheme.store {
        // Words, or as many bytes as there are values would be taken for codes.
        QuantStore::PackedU32(_) => {
            let words: Vec<u32> = bytes[..values].as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
            QuantizedBytes::new(words, shape, scheme, &scales, None).bytes
        }
        QuantStore::Native | QuantStore::PackedNative(_) => QuantizedBytes::new(bytes[..values].to_vec(), shape, scheme, &scales, None).bytes,
    }
}

/// The same from bincode, behind the number that stands for `QFloat`.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Option<DType> {
    let named = |names: &[&'static str], cursor: &mut Cursor<'_>| names.get(usize::try_from(cursor.uint()?).ok()?).copied();
    let value = named(&VALUES, cursor)?;
    let param = named(&PARAMS, cursor)?;
    let store = match cursor.uint()? {
        0 => json!("Native"),
        1 => json!({ "PackedNative": cursor.uint()? }),
        2 => json!({ "PackedU32": cursor.uint()? }),
        _ => return None,
    };
    let level = match cursor.uint()? {
        0 => json!("Tensor"),
        1 => {
            // Bytes are never of variable length.
            let sizes = cursor.take(6)?;
            json!({ "Block": { "storage": &sizes[..5], "len": sizes[5] } })
        }
        _ => return None,
    };
    let mode = named(&["Symmetric"], cursor)?;
    dtype(&json!({ "QFloat": { "value": value, "param": param, "store": store, "level": level, "mode": mode } }))
}
