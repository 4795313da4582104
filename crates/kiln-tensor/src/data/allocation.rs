//! `AllocationProperty`: where the memory of tensor data lies, and memory that is read from a file when it is needed.

use alloc::boxed::Box;

use super::Bytes;

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

/// Bytes as the owner of other bytes.
struct Owner(Bytes);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.0
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
        Self::foreign(Box::new(Owner(bytes)), len, property)
    }
}

#[cfg(feature = "std")]
mod file {
    //! Bytes of a file, read once.
    use alloc::boxed::Box;
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom};
    use std::path::PathBuf;
    use std::sync::OnceLock;

    use super::{AllocationProperty, Bytes};

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

    impl AsRef<[u8]> for Part {
        fn as_ref(&self) -> &[u8] {
            self.read.get_or_init(|| match self.read() {
                Ok(bytes) => bytes,
                Err(error) => panic!("{}: bytes {}.. ({} of them) cannot be read: {error}", self.path.display(), self.offset, self.size),
            })
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
            Self::foreign(Box::new(Part { path, offset, size: len, read: OnceLock::new() }), len, AllocationProperty::File)
        }
    }
}
