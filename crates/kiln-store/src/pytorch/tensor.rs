//! A tensor of a PyTorch file: a view of a storage, of any strides.

use kiln_tensor::{Bytes, DType, Shape};

use super::PytorchErrorKind;
use super::file::{Strided, TorchFile};
use crate::burn_pack;

/// The largest tensor that takes more bytes than its storage, as one that was expanded does.
const MAX_EXPANDED: usize = 64 << 20;
/// The highest rank that is read.
const MAX_RANK: usize = 64;

/// A tensor of a PyTorch file. Its bytes are read when they are asked for; where its elements lie in order, they share the file.
#[derive(Clone)]
pub struct Tensor {
    /// The path: the keys of the dictionaries and the places in the lists that it lies in, joined by `.`.
    pub name: String,
    /// The dtype of its elements.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// The elements from its first on.
    storage: Bytes,
    /// In elements.
    strides: Vec<usize>,
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, dtype, shape, strides, .. } = self;
        f.debug_struct("Tensor").field("name", name).field("dtype", dtype).field("shape", shape).field("strides", strides).finish()
    }
}

impl Tensor {
    pub(super) fn new(file: &TorchFile, name: String, dtype: DType, view: Strided) -> Result<Self, PytorchErrorKind> {
        match Self::checked(file, dtype, view) {
            Ok((shape, strides, storage)) => Ok(Self { name, dtype, shape, storage, strides }),
            Err(reason) => Err(PytorchErrorKind::Tensor { name, reason }),
        }
    }

    fn checked(file: &TorchFile, dtype: DType, view: Strided) -> Result<(Shape, Vec<usize>, Bytes), String> {
        let Strided { storage: named, offset, shape, strides } = view;
        let storage = file.storage(&named.key).ok_or_else(|| format!("has the storage `{}`, which is not there", named.key))?;
        let (size, available) = (dtype.size(), storage.len());
        let claimed = named.len.checked_mul(named.dtype.map_or(1, |dtype| dtype.size()));
        if claimed.is_none_or(|claimed| claimed > available) {
            return Err(format!("claims a storage of {} elements, which has {available} bytes", named.len));
        }
        if shape.len() != strides.len() || shape.len() > MAX_RANK {
            return Err(format!("has {} sizes and {} strides", shape.len(), strides.len()));
        }
        let count = shape.iter().try_fold(1usize, |count, extent| count.checked_mul(*extent)).and_then(|count| count.checked_mul(size));
        let bytes = count.ok_or("has more elements than any memory")?;
        if bytes == 0 {
            return Ok((Shape::from(shape), strides, Bytes::from_bytes_vec(Vec::new())));
        }
        // The end of the last element, in bytes from the start of the storage.
        let last = shape.iter().zip(&strides).try_fold(offset, |last, (extent, stride)| last.checked_add((extent - 1).checked_mul(*stride)?));
        let end = last.and_then(|last| last.checked_add(1)?.checked_mul(size));
        let end = end.filter(|end| *end <= available).ok_or_else(|| format!("reaches beyond its storage of {available} bytes"))?;
        if bytes > available.max(MAX_EXPANDED) {
            return Err(format!("has {bytes} bytes, made from a storage of {available}"));
        }
        let view = storage.view(offset * size, end).map_err(|_| "reaches beyond its storage")?;
        Ok((Shape::from(shape), strides, view))
    }

    /// The number of bytes.
    pub fn byte_len(&self) -> usize {
        self.shape.num_elements() * self.dtype.size()
    }

    /// The bytes: little-endian elements in row-major order.
    pub fn to_bytes(&self) -> Bytes {
        let len = self.byte_len();
        if len == 0 || self.in_order() {
            return self.storage.view(0, len).unwrap_or_else(|_| Bytes::from_bytes_vec(Vec::new()));
        }
        let size = self.dtype.size();
        let mut bytes = Vec::with_capacity(len);
        let mut place = vec![0; self.shape.num_dims()];
        loop {
            let at: usize = place.iter().zip(&self.strides).map(|(index, stride)| index * stride * size).sum();
            bytes.extend_from_slice(&self.storage[at..at + size]);
            // The next place in row-major order.
            let Some(axis) = (0..place.len()).rev().find(|axis| place[*axis] + 1 < self.shape[*axis]) else {
                return Bytes::from_bytes_vec(bytes);
            };
            place[axis] += 1;
            place[axis + 1..].fill(0);
        }
    }

    /// Whether the elements lie in row-major order without gaps.
    fn in_order(&self) -> bool {
        let mut step = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(extent, stride)| {
            let fits = *extent == 1 || *stride == step;
            step *= extent;
            fits
        })
    }

    /// The tensor as one that a module can be given.
    pub fn into_pack(self) -> burn_pack::Tensor {
        let (name, dtype, shape) = (self.name.clone(), self.dtype, self.shape.clone());
        if self.in_order() {
            return burn_pack::Tensor::new(name, dtype, shape, None, self.to_bytes());
        }
        burn_pack::Tensor::deferred(name, dtype, shape, None, self.byte_len(), move || Ok(self.to_bytes()))
    }
}
