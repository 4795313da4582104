//! How Burn 0.21 described quantized tensors, and what that is called now.
//!
//! The bytes stay as they are: values first, scales behind them. A module takes no quantized values yet, so such a tensor can be listed and told, not loaded.

use kiln_tensor::DType;
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
