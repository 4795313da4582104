//! `Bytes`: the memory of tensor data, aligned for its elements.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, DerefMut, Range};

use super::AllocationProperty;
use super::access::{AccessPolicy, Owner};
use super::controller::Controlled;
use super::error::AccessError;
use bytemuck::{CheckedBitPattern, NoUninit};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Memory owned by tensor data. It keeps the alignment of the vector it was made from, so that the vector can be had back without a
/// copy, and its bytes can be viewed as elements.
///
/// ```
/// use kiln_tensor::Bytes;
/// let bytes = Bytes::from_elems(vec![1.0f32, 2.0]);
/// assert_eq!(bytes.len(), 8);
/// assert_eq!(bytes.try_into_vec::<f32>().unwrap(), [1.0, 2.0]);
/// ```
pub struct Bytes {
    pub(super) memory: Memory,
    /// The part of a shared allocation that these bytes are; for an owned one, its length in bytes.
    pub(super) range: Range<usize>,
}

/// The allocation, by the alignment it was made with.
pub(super) enum Memory {
    By1(Vec<u8>),
    By2(Vec<u16>),
    By4(Vec<u32>),
    By8(Vec<u64>),
    Shared(Arc<Memory>),
    /// Memory that somebody else allocates and frees.
    Controlled(Controlled),
    /// Memory of another owner, such as a mapped file; it only ever stands inside `Shared`.
    Foreign(Box<dyn Owner>),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self.try_bytes(AccessPolicy::allow_copy()) {
            Ok(bytes) => bytes,
            Err(error) => panic!("{error}"),
        }
    }

    /// The bytes, as far as the policy lets them be fetched.
    pub(super) fn try_bytes(&self, policy: AccessPolicy) -> Result<&[u8], AccessError> {
        Ok(match self {
            Self::By1(v) => v,
            Self::By2(v) => bytemuck::cast_slice(v),
            Self::By4(v) => bytemuck::cast_slice(v),
            Self::By8(v) => bytemuck::cast_slice(v),
            Self::Shared(memory) => memory.try_bytes(policy)?,
            Self::Controlled(memory) => memory.bytes(policy)?,
            Self::Foreign(owner) => owner.bytes(policy)?,
        })
    }

    /// The bytes of memory that has been made writable.
    pub(super) fn writable(&mut self, range: &Range<usize>) -> &mut [u8] {
        let bytes = match self {
            Self::By1(v) => v.as_mut_slice(),
            Self::By2(v) => bytemuck::cast_slice_mut(v),
            Self::By4(v) => bytemuck::cast_slice_mut(v),
            Self::By8(v) => bytemuck::cast_slice_mut(v),
            Self::Controlled(memory) => match memory.bytes_mut(AccessPolicy::allow_copy()) {
                Ok(bytes) => bytes,
                Err(error) => panic!("{error}"),
            },
            Self::Shared(_) | Self::Foreign(_) => unreachable!("shared memory was copied before"),
        };
        &mut bytes[range.clone()]
    }

    fn align(&self) -> usize {
        match self {
            Self::By1(_) => 1,
            Self::By2(_) => 2,
            Self::By4(_) => 4,
            Self::By8(_) => 8,
            Self::Shared(memory) => memory.align(),
            Self::Controlled(memory) => memory.align(),
            Self::Foreign(_) => 1 << self.bytes().as_ptr().addr().trailing_zeros().min(3),
        }
    }

    fn property(&self) -> AllocationProperty {
        match self {
            Self::By1(_) | Self::By2(_) | Self::By4(_) | Self::By8(_) => AllocationProperty::Native,
            Self::Shared(memory) => memory.property(),
            Self::Controlled(memory) => memory.property(),
            Self::Foreign(owner) => owner.property(),
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Self::By1(v) => v.capacity(),
            Self::By2(v) => v.capacity() * 2,
            Self::By4(v) => v.capacity() * 4,
            Self::By8(v) => v.capacity() * 8,
            Self::Shared(memory) => memory.capacity(),
            Self::Controlled(memory) => memory.len(),
            Self::Foreign(_) => self.bytes().len(),
        }
    }

    /// A copy of `bytes` in an allocation of at least the given alignment, with room for `capacity` bytes.
    fn copy(bytes: &[u8], align: usize, capacity: usize) -> Self {
        /// A vector of words that starts with the bytes.
        fn words<W: bytemuck::Pod>(bytes: &[u8], capacity: usize) -> Vec<W> {
            let mut words = Vec::with_capacity(capacity.max(bytes.len()).div_ceil(size_of::<W>()));
            words.resize(bytes.len().div_ceil(size_of::<W>()), W::zeroed());
            bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
            words
        }
        match align {
            1 => Self::By1(words(bytes, capacity)),
            2 => Self::By2(words(bytes, capacity)),
            4 => Self::By4(words(bytes, capacity)),
            _ => Self::By8(words(bytes, capacity)),
        }
    }
}

impl Bytes {
    /// Takes over a vector of bytes. Its alignment is that of bytes; where elements need more, a copy is made when they are viewed.
    pub fn from_bytes_vec(bytes: Vec<u8>) -> Self {
        Self { range: 0..bytes.len(), memory: Memory::By1(bytes) }
    }

    /// Zeros, aligned for elements of the given size (at most 8).
    pub fn zeroed(len: usize, align: usize) -> Self {
        let memory = match align {
            1 => Memory::By1(alloc::vec![0; len]),
            2 => Memory::By2(alloc::vec![0; len.div_ceil(2)]),
            4 => Memory::By4(alloc::vec![0; len.div_ceil(4)]),
            _ => Memory::By8(alloc::vec![0; len.div_ceil(8)]),
        };
        Self { memory, range: 0..len }
    }

    /// Takes over a vector of elements, with its alignment.
    pub fn from_elems<E>(elems: Vec<E>) -> Self
    where
        E: NoUninit + Send + Sync,
    {
        let len = size_of_val(elems.as_slice());
        let memory = match (size_of::<E>(), align_of::<E>()) {
            (1, 1) => bytemuck::allocation::try_cast_vec(elems).map(Memory::By1).map_err(|(_, elems)| elems),
            (2, 2) => bytemuck::allocation::try_cast_vec(elems).map(Memory::By2).map_err(|(_, elems)| elems),
            (4, 4) => bytemuck::allocation::try_cast_vec(elems).map(Memory::By4).map_err(|(_, elems)| elems),
            (8, 8) => bytemuck::allocation::try_cast_vec(elems).map(Memory::By8).map_err(|(_, elems)| elems),
            _ => Err(elems),
        };
        let memory = memory.unwrap_or_else(|elems| Memory::copy(bytemuck::cast_slice(&elems), align_of::<E>(), len));
        Self { memory, range: 0..len }
    }

    /// Keeps `owner` and shares its bytes, such as those of a mapped file or a constant, without copying them. Writing copies them first.
    /// A tensor on the CPU made of large ones shares them too.
    ///
    /// ```
    /// use kiln_tensor::Bytes;
    /// static WEIGHTS: [u8; 3] = [1, 2, 3];
    /// let mut bytes = Bytes::from_owner(&WEIGHTS);
    /// assert!(std::ptr::eq(&bytes.clone()[..], &WEIGHTS[..]));
    /// bytes[0] = 9;
    /// assert_eq!((&bytes[..], WEIGHTS[0]), (&[9, 2, 3][..], 1));
    /// ```
    pub fn from_owner(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        /// An owner whose bytes lie in memory.
        struct Resident<T>(T);

        impl<T: AsRef<[u8]> + Send + Sync> Owner for Resident<T> {
            fn bytes(&self, _policy: AccessPolicy) -> Result<&[u8], AccessError> {
                Ok(self.0.as_ref())
            }

            fn property(&self) -> AllocationProperty {
                AllocationProperty::Other
            }
        }

        let len = owner.as_ref().len();
        Self::foreign(Box::new(Resident(owner)), len)
    }

    pub(super) fn foreign(owner: Box<dyn Owner>, len: usize) -> Self {
        Self { range: 0..len, memory: Memory::Shared(Arc::new(Memory::Foreign(owner))) }
    }

    pub(super) fn controlled(memory: Controlled) -> Self {
        Self { range: 0..memory.len(), memory: Memory::Controlled(memory) }
    }

    /// A part in an allocation of its own.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        let part = &self[range];
        Self { memory: Memory::copy(part, self.align(), part.len()), range: 0..part.len() }
    }

    /// Copies bytes that others share, if the policy lets it.
    pub(super) fn make_writable(&mut self, policy: AccessPolicy) -> Result<(), AccessError> {
        if let Memory::Shared(_) = &self.memory {
            if !policy.copy_allowed() {
                return Err(AccessError::WouldCopy("the bytes are shared".into()));
            }
            let bytes = &self.memory.try_bytes(policy)?[self.range.clone()];
            self.memory = Memory::copy(bytes, self.memory.align(), bytes.len());
            self.range = 0..self.range.len();
        }
        Ok(())
    }

    /// Where the memory lies.
    pub fn property(&self) -> AllocationProperty {
        self.memory.property()
    }

    /// A copy of the bytes of a slice, aligned for every element type.
    pub fn copy_of<E: NoUninit>(elems: &[E]) -> Self {
        let bytes: &[u8] = bytemuck::cast_slice(elems);
        Self { memory: Memory::copy(bytes, 8, bytes.len()), range: 0..bytes.len() }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The number of bytes the allocation can hold.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// The alignment that the allocation was made with.
    pub fn align(&self) -> usize {
        self.memory.align()
    }

    /// Makes clones and views of these bytes share one allocation. Writing to bytes that are shared copies them first.
    #[must_use]
    pub fn shared(self) -> Self {
        match self.memory {
            Memory::Shared(_) => self,
            memory @ (Memory::By1(_) | Memory::By2(_) | Memory::By4(_) | Memory::By8(_) | Memory::Controlled(_) | Memory::Foreign(_)) => {
                Self { memory: Memory::Shared(Arc::new(memory)), range: self.range }
            }
        }
    }

    /// Whether clones share the memory, so that nobody ever writes it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.memory, Memory::Shared(_))
    }

    /// The bytes `start..end`, sharing the allocation if it is shared, else as a copy.
    ///
    /// # Errors
    /// [`ViewError`] when the range is not within the bytes.
    pub fn view(&self, start: usize, end: usize) -> Result<Bytes, ViewError> {
        if start > end || end > self.len() {
            return Err(ViewError { start, end, len: self.len() });
        }
        Ok(match &self.memory {
            Memory::Shared(memory) => Self { memory: Memory::Shared(Arc::clone(memory)), range: self.range.start + start..self.range.start + end },
            Memory::By1(_) | Memory::By2(_) | Memory::By4(_) | Memory::By8(_) | Memory::Controlled(_) | Memory::Foreign(_) => self.part(start..end),
        })
    }

    /// Copies these bytes over the other's.
    ///
    /// # Panics
    /// When the lengths differ.
    #[track_caller]
    pub fn copy_into(&self, other: &mut Self) {
        assert!(self.len() == other.len(), "copy_into: lengths differ: {} bytes into {}", self.len(), other.len());
        other.copy_from_slice(self);
    }

    /// Appends bytes.
    pub fn extend_from_byte_slice(&mut self, bytes: &[u8]) {
        self.extend_from_byte_slice_aligned(bytes, 1);
    }

    /// Appends bytes, and raises the alignment to at least `align` (at most 8).
    ///
    /// # Panics
    /// When `align` is not a power of two.
    #[track_caller]
    pub fn extend_from_byte_slice_aligned(&mut self, bytes: &[u8], align: usize) {
        assert!(align.is_power_of_two(), "alignment {align} is not a power of two");
        let len = self.len() + bytes.len();
        match &mut self.memory {
            Memory::By1(v) if align == 1 => v.extend_from_slice(bytes),
            _ => {
                let align = align.max(self.align());
                let capacity = if len > self.capacity() { len * 2 } else { len };
                let mut joined = Vec::with_capacity(len);
                joined.extend_from_slice(self);
                joined.extend_from_slice(bytes);
                self.memory = Memory::copy(&joined, align, capacity);
            }
        }
        self.range = 0..len;
    }

    /// The elements, without a copy.
    ///
    /// # Errors
    /// Gives the bytes back when they are shared, have another alignment or length, or are not valid elements.
    pub fn try_into_vec<E: CheckedBitPattern + NoUninit>(self) -> Result<Vec<E>, Self> {
        if bytemuck::checked::try_cast_slice::<u8, E>(&self).is_err() {
            return Err(self);
        }
        /// Reinterprets a vector of words as bits of `E`, whose validity has been checked.
        fn checked<W: bytemuck::Pod, E: CheckedBitPattern + NoUninit>(words: Vec<W>) -> Result<Vec<E>, Vec<W>> {
            if size_of::<E>() != size_of::<W>() || align_of::<E>() != align_of::<W>() {
                return Err(words);
            }
            let mut words = core::mem::ManuallyDrop::new(words);
            let (ptr, len, capacity) = (words.as_mut_ptr(), words.len(), words.capacity());
            // SAFETY: the vector is not dropped, size and alignment of the two types are equal, and the caller has checked that
            // every element is a valid bit pattern of `E`.
            Ok(unsafe { Vec::from_raw_parts(ptr.cast::<E>(), len, capacity) })
        }
        let range = self.range;
        let memory = match self.memory {
            Memory::By1(v) if range.len() == v.len() => checked(v).map_err(Memory::By1),
            Memory::By2(v) if range.len() == v.len() * 2 => checked(v).map_err(Memory::By2),
            Memory::By4(v) if range.len() == v.len() * 4 => checked(v).map_err(Memory::By4),
            Memory::By8(v) if range.len() == v.len() * 8 => checked(v).map_err(Memory::By8),
            memory => Err(memory),
        };
        memory.map_err(|memory| Self { memory, range })
    }
}

/// A view outside of the bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ViewError {
    /// First byte asked for.
    pub start: usize,
    /// End of the range asked for.
    pub end: usize,
    /// Number of bytes there are.
    pub len: usize,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, end, len } = self;
        write!(f, "bytes {start}..{end} are not within the {len} bytes")
    }
}

impl core::error::Error for ViewError {}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory.bytes()[self.range.clone()]
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        if let Err(error) = self.make_writable(AccessPolicy::allow_copy()) {
            panic!("{error}");
        }
        self.memory.writable(&self.range)
    }
}

impl Clone for Bytes {
    fn clone(&self) -> Self {
        let memory = match &self.memory {
            Memory::Shared(memory) => Memory::Shared(Arc::clone(memory)),
            Memory::By1(_) | Memory::By2(_) | Memory::By4(_) | Memory::By8(_) | Memory::Controlled(_) | Memory::Foreign(_) => {
                return Self { memory: Memory::copy(self, self.align(), self.len()), range: 0..self.len() };
            }
        };
        Self { memory, range: self.range.clone() }
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        if self.len() <= SHOWN { write!(f, "Bytes({:?})", &self[..]) } else { write!(f, "Bytes({:?}.. of {})", &self[..SHOWN], self.len()) }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Accepts bytes, or a sequence of numbers where the format has no bytes.
        struct BytesVisitor;

        impl<'de> Visitor<'de> for BytesVisitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes::copy_of(bytes))
            }

            fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes::from_bytes_vec(bytes))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Bytes, A::Error> {
                // The hint is not to be trusted with an allocation of its size.
                let mut bytes = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(1 << 16));
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes::from_bytes_vec(bytes))
            }
        }

        deserializer.deserialize_byte_buf(BytesVisitor)
    }
}
