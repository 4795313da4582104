//! The JSON header of a safetensors file.

use std::collections::BTreeMap;
use std::fmt;

use kiln_module::record::burnpack::{Entry, Index};
use kiln_tensor::{BoolStore, DType, Shape};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::SafeTensorErrorKind;
use kiln_module::record::burnpack::{MAX_TENSOR_COUNT, PackErrorKind};

const METADATA: &str = "__metadata__";
/// The highest rank that is read.
const MAX_RANK: usize = 64;

/// The dtypes of the format that Kiln has, in the order in which tensors are laid out.
const DTYPES: [(&str, DType); 13] = [
    ("U64", DType::U64),
    ("I64", DType::I64),
    ("F64", DType::F64),
    ("F32", DType::F32),
    ("U32", DType::U32),
    ("I32", DType::I32),
    ("BF16", DType::BF16),
    ("F16", DType::F16),
    ("U16", DType::U16),
    ("I16", DType::I16),
    ("I8", DType::I8),
    ("U8", DType::U8),
    ("BOOL", DType::Bool(BoolStore::Native)),
];

/// The place of a dtype in the layout and its name in the format; `None` if the format does not have it.
pub(super) fn spelling(dtype: DType) -> Option<(usize, &'static str)> {
    let dtype = match dtype {
        // The same bytes under the name that the format knows.
        DType::Flex32 => DType::F32,
        DType::Bool(BoolStore::U8) => DType::Bool(BoolStore::Native),
        dtype => dtype,
    };
    let place = DTYPES.iter().position(|(_, row)| *row == dtype)?;
    Some((place, DTYPES[place].0))
}

/// Reads a header; the tensors are in the order of their bytes.
pub(super) fn decode(json: &[u8]) -> Result<Index, SafeTensorErrorKind> {
    let header: Header = serde_json::from_slice(json).map_err(|error| SafeTensorErrorKind::Json(error.to_string()))?;
    let entry = |(name, info): (String, Info)| match DTYPES.iter().find(|(spelling, _)| *spelling == info.dtype) {
        Some((_, dtype)) => Ok(Entry { name, dtype: *dtype, shape: Shape::from(info.shape), param_id: None, data_offsets: info.data_offsets }),
        None => Err(SafeTensorErrorKind::DType { name, dtype: info.dtype }),
    };
    let mut tensors = header.tensors.into_iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    tensors.sort_by_key(|entry| entry.data_offsets);
    if tensors.len() > MAX_TENSOR_COUNT {
        return Err(PackErrorKind::TooManyTensors { count: tensors.len() }.into());
    }
    Ok(Index { tensors, metadata: header.metadata, ..Index::default() })
}

/// The header of tensors in the order of their bytes, padded with spaces to a multiple of eight bytes.
pub(super) fn encode(index: &Index) -> Vec<u8> {
    let quote = |text: &str| serde_json::to_string(text).expect("a text can be written as JSON");
    let mut parts = Vec::with_capacity(index.tensors.len() + 1);
    if !index.metadata.is_empty() {
        let metadata = serde_json::to_string(&index.metadata).expect("texts can be written as JSON");
        parts.push(format!("\"{METADATA}\":{metadata}"));
    }
    for entry in &index.tensors {
        let (_, dtype) = spelling(entry.dtype).expect("the writer has checked the dtypes");
        let extents: Vec<String> = entry.shape.iter().map(usize::to_string).collect();
        let ([start, end], name) = (entry.data_offsets, quote(&entry.name));
        parts.push(format!("{name}:{{\"dtype\":\"{dtype}\",\"shape\":[{}],\"data_offsets\":[{start},{end}]}}", extents.join(",")));
    }
    let mut json = format!("{{{}}}", parts.join(",")).into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    json
}

#[derive(Deserialize)]
struct Info {
    dtype: String,
    #[serde(deserialize_with = "shape")]
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

fn shape<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<usize>, D::Error> {
    let shape = Vec::<usize>::deserialize(from)?;
    match shape.len() <= MAX_RANK {
        true => Ok(shape),
        false => Err(D::Error::custom(format!("a shape of rank {}, more than {MAX_RANK}", shape.len()))),
    }
}

#[derive(Default)]
struct Header {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Info>,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        header.metadata = map.next_value()?;
                        continue;
                    }
                    let info = map.next_value()?;
                    if header.tensors.contains_key(&name) {
                        return Err(A::Error::custom(format!("two tensors named `{name}`")));
                    }
                    header.tensors.insert(name, info);
                }
                Ok(header)
            }
        }

        from.deserialize_map(Entries)
    }
}
