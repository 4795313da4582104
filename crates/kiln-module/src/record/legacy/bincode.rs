//! Bincode records of modules: no names and no types, so parameters are told by their shape: an id, then bytes whose number is what shape and dtype
//! call for.
//!
//! Between two parameters stand only single small numbers: the lengths of lists, the tags of options and enums, and a zero for each field that
//! is not a parameter.

use kiln_tensor::{BoolStore, Bytes, DType, Shape};

use super::super::burnpack::{PackErrorKind, PackTensor};
use super::quantized;
use super::record::param_id;

/// The dtypes in the order of their numbers; booleans follow, then quantized ones.
const DTYPES: [DType; 13] = [
    DType::F64,
    DType::F32,
    DType::Flex32,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
];
const BOOL: u64 = 13;
const QUANTIZED: u64 = 14;
const BOOL_STORES: [BoolStore; 3] = [BoolStore::Native, BoolStore::U8, BoolStore::U32];

/// The length of an id as text.
pub(super) const ID_LEN: usize = 13;
/// The highest rank that is read.
const MAX_RANK: u64 = 64;

/// Passes over the metadata at the start; `None` if that is not how the file starts.
pub(super) fn skip_metadata(bytes: &[u8]) -> Option<usize> {
    let mut cursor = Cursor { bytes, offset: 0 };
    let mut texts = [""; 5];
    for text in &mut texts {
        *text = cursor.text()?;
    }
    // Float and int type, the recorder, the version, the settings.
    texts[2].starts_with("burn").then_some(cursor.offset)
}

/// Reads the parameters of a module's record.
pub(super) fn decode(bytes: &Bytes) -> Result<Vec<PackTensor>, PackErrorKind> {
    let mut offset = skip_metadata(bytes).ok_or_else(|| PackErrorKind::Malformed("has no metadata at its start".into()))?;
    let mut tensors = Vec::new();
    while offset < bytes.len() {
        let Some(id) = id_at(bytes, offset) else {
            offset += 1;
            continue;
        };
        let mut cursor = Cursor { bytes, offset: offset + 1 + ID_LEN };
        let name = format!("#{}", tensors.len());
        let tensor = cursor.tensor(bytes, name, id);
        tensors.push(
            tensor.ok_or_else(|| PackErrorKind::Malformed(format!("parameter #{} at byte {offset} is cut off or no parameter", tensors.len())))?,
        );
        offset = cursor.offset;
    }
    Ok(tensors)
}

/// The id that stands at `offset` as text with its length before it.
fn id_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let text = bytes.get(offset + 1..offset + 1 + ID_LEN)?;
    match usize::from(bytes[offset]) == ID_LEN {
        true => param_id(std::str::from_utf8(text).ok()?),
        false => None,
    }
}

pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(usize::try_from(len).ok()?)?;
        let taken = self.bytes.get(self.offset..end)?;
        self.offset = end;
        Some(taken)
    }

    /// A number of variable length.
    pub(super) fn uint(&mut self) -> Option<u64> {
        let width = match self.take(1)?[0] {
            byte @ 0..=250 => return Some(byte.into()),
            251 => 2,
            252 => 4,
            253 => 8,
            _ => return None,
        };
        Some(self.take(width)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        let len = self.uint()?;
        std::str::from_utf8(self.take(len)?).ok()
    }

    /// Bytes, shape and dtype of a tensor; `None` if they do not fit each other.
    pub(super) fn tensor(&mut self, file: &Bytes, name: String, id: u64) -> Option<PackTensor> {
        let len = self.uint()?;
        let start = self.offset;
        self.take(len)?;
        let end = self.offset;
        let rank = self.uint().filter(|rank| *rank <= MAX_RANK)?;
        let shape = (0..rank).map(|_| usize::try_from(self.uint()?).ok()).collect::<Option<Vec<usize>>>()?;
        let dtype = match self.uint()? {
            BOOL => DType::Bool(*BOOL_STORES.get(self.uint()? as usize)?),
            QUANTIZED => {
                let dtype = quantized::read(self)?;
                let bytes = quantized::bytes(file.view(start, end).ok()?, &shape, dtype);
                return Some(PackTensor::new(name, dtype, Shape::from(shape), Some(id), bytes));
            }
            number => *DTYPES.get(number as usize)?,
        };
        let expected = shape.iter().try_fold(dtype.size() as u64, |len, extent| len.checked_mul(*extent as u64))?;
        let bytes = file.view(start, end).ok().filter(|_| expected == len)?;
        Some(PackTensor::new(name, dtype, Shape::from(shape), Some(id), bytes))
    }
}
