//! How bytes may be reached: readers and writers that may or may not copy, and splitting.

use super::error::AccessError;
use super::{AllocationProperty, Bytes};

/// What an access to bytes may do to get at them: copy them (from a file, or because others share them) or only take what lies in memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AccessPolicy {
    copy: bool,
}

impl AccessPolicy {
    /// Copies are allowed: the default.
    pub fn allow_copy() -> Self {
        Self { copy: true }
    }

    /// What would need a copy fails with [`AccessError::WouldCopy`].
    pub fn deny_copy() -> Self {
        Self { copy: false }
    }

    /// Whether copies are allowed.
    pub fn copy_allowed(self) -> bool {
        self.copy
    }
}

impl Default for AccessPolicy {
    fn default() -> Self {
        Self::allow_copy()
    }
}

/// How [`Bytes::read`] gets at the bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reader {
    policy: AccessPolicy,
}

impl Reader {
    /// A reader that may read a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// The reader with another policy.
    #[must_use]
    pub fn with_policy(self, policy: AccessPolicy) -> Self {
        Self { policy }
    }

    /// What it may do.
    pub fn policy(&self) -> AccessPolicy {
        self.policy
    }
}

/// How [`Bytes::write`] gets at the bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Writer {
    policy: AccessPolicy,
}

impl Writer {
    /// A writer that copies bytes which others share.
    pub fn new() -> Self {
        Self::default()
    }

    /// The writer with another policy.
    #[must_use]
    pub fn with_policy(self, policy: AccessPolicy) -> Self {
        Self { policy }
    }

    /// What it may do.
    pub fn policy(&self) -> AccessPolicy {
        self.policy
    }
}

/// What [`Bytes::split`] may do with an allocation that one owner holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SplitPolicy {
    /// Nothing: only bytes that are shared already are split.
    InPlace,
    /// Both parts share the allocation, which lives as long as either.
    #[default]
    Share,
    /// Each part gets an allocation of its own, writable without another copy.
    Copy,
}

/// Bytes that cannot be split as asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SplitError {
    /// The offset is behind the end.
    InvalidOffset {
        /// Where to split.
        offset: usize,
        /// Number of bytes there are.
        len: usize,
    },
    /// The allocation has one owner, and the policy forbids sharing and copying it.
    NotShared,
}

impl core::fmt::Display for SplitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::InvalidOffset { offset, len } => write!(f, "split: offset {offset} is behind the end of {len} bytes"),
            Self::NotShared => f.write_str("split: the bytes are not shared, and the policy forbids to share or copy them"),
        }
    }
}

impl core::error::Error for SplitError {}

impl Bytes {
    /// The bytes, read as the reader may.
    ///
    /// ```
    /// use kiln_tensor::{AccessPolicy, Bytes, Reader};
    /// let bytes = Bytes::from_elems(vec![1u8, 2, 3]);
    /// assert_eq!(bytes.read(Reader::new().with_policy(AccessPolicy::deny_copy())).unwrap(), [1, 2, 3]);
    /// ```
    ///
    /// # Errors
    /// [`AccessError::WouldCopy`] for bytes of a file that have not been read, when copies are forbidden; [`AccessError::Unreadable`] when reading fails.
    pub fn read(&self, reader: Reader) -> Result<&[u8], AccessError> {
        Ok(&self.memory.try_bytes(reader.policy)?[self.range.clone()])
    }

    /// The bytes, to be written. Bytes that others share are copied first, if the writer may.
    ///
    /// ```
    /// use kiln_tensor::{AccessError, AccessPolicy, Bytes, Writer};
    /// let mut bytes = Bytes::from_elems(vec![1u8, 2, 3]).shared();
    /// let other = bytes.clone();
    /// let strict = Writer::new().with_policy(AccessPolicy::deny_copy());
    /// assert!(matches!(bytes.write(strict), Err(AccessError::WouldCopy(_))));
    /// bytes.write(Writer::new()).unwrap()[0] = 9;
    /// assert_eq!((&bytes[..], &other[..]), (&[9, 2, 3][..], &[1, 2, 3][..]));
    /// ```
    ///
    /// # Errors
    /// [`AccessError::WouldCopy`] when the bytes must be copied and copies are forbidden; [`AccessError::Unreadable`] when reading a file fails.
    pub fn write(&mut self, writer: Writer) -> Result<&mut [u8], AccessError> {
        self.make_writable(writer.policy)?;
        Ok(self.memory.writable(&self.range))
    }

    /// The bytes before and from `offset` on.
    ///
    /// ```
    /// use kiln_tensor::{Bytes, SplitPolicy};
    /// let (head, tail) = Bytes::from_elems(vec![1u8, 2, 3]).split(1, SplitPolicy::Share).unwrap();
    /// assert_eq!((&head[..], &tail[..]), (&[1][..], &[2, 3][..]));
    /// ```
    ///
    /// # Errors
    /// The bytes and [`SplitError::InvalidOffset`] when the offset is behind the end, or [`SplitError::NotShared`] when one owner holds them and the policy is
    /// [`SplitPolicy::InPlace`].
    pub fn split(self, offset: usize, policy: SplitPolicy) -> Result<(Bytes, Bytes), (Bytes, SplitError)> {
        let len = self.len();
        if offset > len {
            return Err((self, SplitError::InvalidOffset { offset, len }));
        }
        let bytes = match policy {
            SplitPolicy::InPlace if !self.is_shared() => return Err((self, SplitError::NotShared)),
            SplitPolicy::InPlace | SplitPolicy::Share => self.shared(),
            SplitPolicy::Copy => return Ok((self.part(0..offset), self.part(offset..len))),
        };
        match (bytes.view(0, offset), bytes.view(offset, len)) {
            (Ok(head), Ok(tail)) => Ok((head, tail)),
            _ => unreachable!("both parts lie within the bytes"),
        }
    }
}

/// Bytes that another owner holds.
pub(super) trait Owner: Send + Sync {
    /// The bytes, as far as the policy lets the owner fetch them.
    fn bytes(&self, policy: AccessPolicy) -> Result<&[u8], AccessError>;

    /// Where they lie.
    fn property(&self) -> AllocationProperty;
}
