//! `AllocationProperty`: where the memory of tensor data lies, and memory that is read from a file when it is needed.

use alloc::boxed::Box;

use super::Bytes;
use super::access::{AccessPolicy, Owner};
use super::error::AccessError;

/// Where memory lies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AllocationProperty {
    /// In a file.
    File,
    /// On the host's heap.
    Native,
    /// On the host, at an address that a device may copy from by itself.
    Pinned,
    /// On a device.
    Device,
    /// Somewhere else, such as in a constant or with an owner of its own.
    Other,
}

/// Bytes as the owner of other bytes, and where those are said to lie.
struct Stated(Bytes, AllocationProperty);

impl Owner for Stated {
    fn bytes(&self, policy: AccessPolicy) -> Result<&[u8], AccessError> {
        self.0.read(super::Reader::new().with_policy(policy))
    }

    fn property(&self) -> AllocationProperty {
        self.1
    }
}

impl Bytes {
    /// Shares `bytes` and states where they lie. Writing copies them first.
    ///
    /// ```
    /// use kiln_tensor::{AllocationProperty, Bytes};
    /// let bytes = Bytes::from_shared(Bytes::from_elems(vec![1u8, 2]), AllocationProperty::Pinned);
    /// assert_eq!(bytes.property(), AllocationProperty::Pinned);
    /// assert_eq!(&bytes.clone()[..], [1, 2]);
    /// ```
    pub fn from_shared(bytes: Bytes, property: AllocationProperty) -> Self {
        let len = bytes.len();
        Self::foreign(Box::new(Stated(bytes, property)), len)
    }
}

#[cfg(feature = "std")]
mod file {
    //! Bytes of a file, read once.
    use alloc::boxed::Box;
    use alloc::format;
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom};
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use super::{AccessError, AccessPolicy, AllocationProperty, Bytes, Owner};

    /// A part of a file.
    struct Part {
        path: PathBuf,
        offset: u64,
        size: usize,
        read: OnceLock<Bytes>,
    }

    impl Part {
        fn read(&self) -> std::io::Result<Bytes> {
            let mut file = File::open(&self.path)?;
            // No memory is asked for before the file is seen to have the bytes.
            let end = self.offset.checked_add(self.size as u64);
            if end.is_none_or(|end| file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() < end)) {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            file.seek(SeekFrom::Start(self.offset))?;
            let mut bytes = Bytes::zeroed(self.size, 8);
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        }
    }

    impl Owner for Part {
        fn bytes(&self, policy: AccessPolicy) -> Result<&[u8], AccessError> {
            if let Some(bytes) = self.read.get() {
                return Ok(bytes);
            }
            let here = || format!("{}: bytes {}.. ({} of them)", self.path.display(), self.offset, self.size);
            if !policy.copy_allowed() {
                return Err(AccessError::WouldCopy(format!("{} have not been read", here())));
            }
            let bytes = self.read().map_err(|error| AccessError::Unreadable(format!("{} cannot be read: {error}", here())))?;
            Ok(self.read.get_or_init(|| bytes))
        }

        fn property(&self) -> AllocationProperty {
            AllocationProperty::File
        }
    }

    impl Bytes {
        /// `size` bytes of a file from `offset` on, read when they are first looked at.
        ///
        /// ```
        /// use kiln_tensor::{AllocationProperty, Bytes};
        /// let path = std::env::temp_dir().join(format!("kiln-bytes-{}", std::process::id()));
        /// std::fs::write(&path, [1, 2, 3, 4]).unwrap();
        /// let bytes = Bytes::from_file(&path, 2, 1);
        /// assert_eq!((bytes.property(), &bytes[..]), (AllocationProperty::File, &[2, 3][..]));
        /// std::fs::remove_file(path).unwrap();
        /// ```
        ///
        /// # Panics
        /// When `size` does not fit the address space; when the bytes are looked at and the file cannot be read or is too short.
        #[track_caller]
        pub fn from_file<P: Into<PathBuf>>(file: P, size: u64, offset: u64) -> Self {
            let path = file.into();
            let Ok(len) = usize::try_from(size) else {
                panic!("{}: {size} bytes do not fit the address space", path.display());
            };
            Self::foreign(Box::new(Part { path, offset, size: len, read: OnceLock::new() }), len)
        }
    }
}
