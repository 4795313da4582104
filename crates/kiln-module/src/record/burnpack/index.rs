//! The metadata of a burnpack file: which tensors it holds and where.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use kiln_tensor::{DType, Shape};

use super::cbor::{CborError, Decoder, Encoder};
use super::{HEADER_SIZE, Header, MAX_TENSOR_COUNT, MAX_TENSOR_SIZE, PackErrorKind, Scalar, aligned_data_section_start, dtype};

/// The most text and scalar entries that are read: several for each tensor.
const MAX_EXTRA_COUNT: usize = 10 * MAX_TENSOR_COUNT;
/// The highest rank that is read.
const MAX_RANK: usize = 64;

/// One stored tensor: what it is and where its bytes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path of the parameter, such as `layers.0.weight`.
    pub name: String,
    /// The dtype of its elements.
    pub dtype: DType,
    /// Its shape; the elements are in row-major order.
    pub shape: Shape,
    /// The id of the parameter.
    pub param_id: Option<u64>,
    /// The start and the end of its bytes, from the start of the data section.
    pub data_offsets: [u64; 2],
}

impl Entry {
    /// The number of its bytes.
    pub fn byte_len(&self) -> usize {
        (self.data_offsets[1] - self.data_offsets[0]) as usize
    }
}

/// The number of bytes of a tensor of `shape` and `dtype`: `Ok(None)` for quantized values, whose bytes hold scales too; an error if no
/// memory could hold them.
pub(super) fn byte_len(dtype: DType, shape: &Shape) -> Result<Option<u64>, ()> {
    if let DType::QFloat(_) = dtype {
        return Ok(None);
    }
    if shape.iter().any(|extent| *extent == 0) {
        return Ok(Some(0));
    }
    let size = dtype.size() as u64;
    let len = shape.iter().try_fold(size, |len, extent| len.checked_mul(u64::try_from(*extent).ok()?));
    len.map(Some).ok_or(())
}

/// The metadata of a burnpack file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Index {
    /// The tensors in the order of their bytes.
    pub tensors: Vec<Entry>,
    /// Text by key.
    pub metadata: BTreeMap<String, String>,
    /// Numbers by key.
    pub scalars: BTreeMap<String, Scalar>,
}

impl Index {
    /// Reads the index of a file whose bytes begin with `bytes` and which is `file_size` bytes long; also gives where the data section
    /// starts. `bytes` must reach at least to the end of the metadata.
    ///
    /// # Errors
    ///
    /// The header or the metadata is malformed, or a tensor's range is not what its shape and dtype call for, lies outside of the data
    /// section or overlaps another one.
    pub fn decode(bytes: &[u8], file_size: u64) -> Result<(Self, u64), PackErrorKind> {
        let header = Header::from_bytes(bytes)?;
        let end = HEADER_SIZE + header.metadata_size as usize;
        let metadata = bytes.get(HEADER_SIZE..end);
        let metadata =
            metadata.ok_or(PackErrorKind::MetadataSize { claimed: header.metadata_size.into(), available: (bytes.len() - HEADER_SIZE) as u64 })?;
        let index = Self::decode_metadata(metadata)?;
        let start = aligned_data_section_start(metadata.len()) as u64;
        index.check_ranges(file_size.saturating_sub(start))?;
        Ok((index, start))
    }

    fn decode_metadata(metadata: &[u8]) -> Result<Self, PackErrorKind> {
        let mut from = Decoder::new(metadata);
        let mut index = Self::default();
        let mut has_tensors = false;
        let pairs = from.map("the metadata map").map_err(metadata_error)?;
        for _ in 0..pairs {
            match from.text("a key").map_err(metadata_error)? {
                "tensors" if !has_tensors => {
                    has_tensors = true;
                    index.tensors = decode_tensors(&mut from)?;
                }
                "metadata" if index.metadata.is_empty() => {
                    let text = |from: &mut Decoder<'_>| from.text("a text").map(String::from);
                    index.metadata = decode_map(&mut from, text)?;
                }
                "scalars" if index.scalars.is_empty() => {
                    index.scalars = decode_map(&mut from, Scalar::decode)?;
                }
                key @ ("tensors" | "metadata" | "scalars") => {
                    return Err(PackErrorKind::Duplicate { name: key.into() });
                }
                // A key of a later version of the format.
                _ => drop(from.skip().map_err(metadata_error)?),
            }
        }
        if !has_tensors {
            return Err(metadata_error(from.expected("the key `tensors`")));
        }
        from.finish().map_err(metadata_error)?;
        index.sort_by_offset()?;
        Ok(index)
    }

    /// Brings the tensors, which come sorted by name, into the order of their bytes, and looks for names that stand twice.
    fn sort_by_offset(&mut self) -> Result<(), PackErrorKind> {
        self.tensors.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = self.tensors.windows(2).find(|p| p[0].name == p[1].name) {
            let name = pair[0].name.clone();
            return Err(PackErrorKind::Duplicate { name });
        }
        self.tensors.sort_by_key(|entry| entry.data_offsets);
        Ok(())
    }

    /// Checks every tensor's range against its shape, the data section of `available` bytes and its neighbour. The tensors must be in the
    /// order of their bytes.
    ///
    /// # Errors
    ///
    /// The first range that does not fit.
    pub fn check_ranges(&self, available: u64) -> Result<(), PackErrorKind> {
        let mut before: Option<&Entry> = None;
        for entry in &self.tensors {
            let [start, end] = entry.data_offsets;
            if start > end || end > available {
                return Err(PackErrorKind::OutOfRange { name: entry.name.clone(), range: [start, end], available });
            }
            let found = end - start;
            let expected = byte_len(entry.dtype, &entry.shape);
            let fits = expected.is_ok_and(|expected| expected.is_none_or(|len| len == found));
            if !fits || found > MAX_TENSOR_SIZE as u64 {
                return Err(PackErrorKind::TensorSize {
                    name: entry.name.clone(),
                    expected: expected.map_or(None, |expected| expected.or(Some(found))),
                    found,
                });
            }
            if found == 0 {
                continue;
            }
            if let Some(before) = before
                && before.data_offsets[1] > start
            {
                return Err(PackErrorKind::Overlap { first: before.name.clone(), second: entry.name.clone() });
            }
            before = Some(entry);
        }
        Ok(())
    }

    /// The metadata as it is written: tensors and keys sorted, empty parts left out.
    pub(super) fn encode_metadata(&self) -> Vec<u8> {
        let mut to = Encoder::default();
        let (has_metadata, has_scalars) = (!self.metadata.is_empty(), !self.scalars.is_empty());
        to.map(1 + usize::from(has_metadata) + usize::from(has_scalars));
        to.text("tensors");
        to.map(self.tensors.len());
        let mut tensors: Vec<&Entry> = self.tensors.iter().collect();
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in tensors {
            to.text(&entry.name);
            encode_entry(entry, &mut to);
        }
        if has_metadata {
            to.text("metadata");
            to.map(self.metadata.len());
            for (key, text) in &self.metadata {
                to.text(key);
                to.text(text);
            }
        }
        if has_scalars {
            to.text("scalars");
            to.map(self.scalars.len());
            for (key, scalar) in &self.scalars {
                to.text(key);
                scalar.encode(&mut to);
            }
        }
        to.bytes
    }
}

fn metadata_error(error: CborError) -> PackErrorKind {
    PackErrorKind::Metadata(error)
}

fn encode_entry(entry: &Entry, to: &mut Encoder) {
    to.map(3 + usize::from(entry.param_id.is_some()));
    to.text("dtype");
    dtype::encode(entry.dtype, to);
    to.text("shape");
    to.array(entry.shape.rank());
    for extent in entry.shape.iter() {
        to.uint(*extent as u64);
    }
    to.text("data_offsets");
    to.array(2);
    to.uint(entry.data_offsets[0]);
    to.uint(entry.data_offsets[1]);
    if let Some(param_id) = entry.param_id {
        to.text("param_id");
        to.uint(param_id);
    }
}

fn decode_tensors(from: &mut Decoder<'_>) -> Result<Vec<Entry>, PackErrorKind> {
    let count = from.map("a map of tensors").map_err(metadata_error)?;
    if count > MAX_TENSOR_COUNT {
        return Err(PackErrorKind::TooManyTensors { count });
    }
    (0..count).map(|_| decode_entry(from).map_err(metadata_error)).collect()
}

fn decode_entry(from: &mut Decoder<'_>) -> Result<Entry, CborError> {
    let name = from.text("the name of a tensor")?;
    let (mut element, mut shape, mut data_offsets, mut param_id) = (None, None, None, None);
    for _ in 0..from.map("a tensor's description")? {
        match from.text("a key")? {
            "dtype" => element = Some(dtype::decode(from)?),
            "shape" => shape = Some(decode_shape(from)?),
            "data_offsets" => {
                let what = "a pair of offsets";
                let error = from.expected(what);
                if from.array(what)? != 2 {
                    return Err(error);
                }
                data_offsets = Some([from.uint(what)?, from.uint(what)?]);
            }
            "param_id" => param_id = from.optional_uint("an id")?,
            _ => drop(from.skip()?),
        }
    }
    match (element, shape, data_offsets) {
        (Some(dtype), Some(shape), Some(data_offsets)) => Ok(Entry { name: name.into(), dtype, shape, param_id, data_offsets }),
        _ => Err(from.expected("dtype, shape and data_offsets")),
    }
}

fn decode_shape(from: &mut Decoder<'_>) -> Result<Shape, CborError> {
    let what = "a shape";
    let error = from.expected(what);
    let rank = from.array(what)?;
    if rank > MAX_RANK {
        return Err(error);
    }
    let extent = |_| usize::try_from(from.uint(what)?).map_err(|_| error.clone());
    let extents: Vec<usize> = (0..rank).map(extent).collect::<Result<_, _>>()?;
    Ok(Shape::from(extents))
}

/// A map of text keys whose values `value` reads.
fn decode_map<'a, V>(from: &mut Decoder<'a>, value: impl Fn(&mut Decoder<'a>) -> Result<V, CborError>) -> Result<BTreeMap<String, V>, PackErrorKind> {
    let error = from.expected("a map with fewer entries");
    let count = from.map("a map").map_err(metadata_error)?;
    if count > MAX_EXTRA_COUNT {
        return Err(metadata_error(error));
    }
    let mut map = BTreeMap::new();
    for _ in 0..count {
        let key = from.text("a key").map_err(metadata_error)?;
        let value = value(from).map_err(metadata_error)?;
        if map.insert(key.into(), value).is_some() {
            return Err(PackErrorKind::Duplicate { name: key.into() });
        }
    }
    Ok(map)
}
