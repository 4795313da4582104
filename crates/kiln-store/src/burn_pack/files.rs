//! The first bytes of a burnpack file, and files that appear whole or not at all.

use std::fs::File;
use std::path::Path;

use kiln_module::record::burnpack::{self, HEADER_SIZE};

use super::{Error, IN_MEMORY};

/// The first ten bytes of a burnpack file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The magic number.
    pub magic: u32,
    /// The version of the format.
    pub version: u16,
    /// The length of the metadata that follows, in bytes.
    pub metadata_size: u32,
}

impl Header {
    /// The header of a file of the current version.
    pub fn new(metadata_size: u32) -> Self {
        burnpack::Header::new(metadata_size).into()
    }

    /// The header's bytes.
    pub fn into_bytes(self) -> [u8; HEADER_SIZE] {
        let Self { magic, version, metadata_size } = self;
        burnpack::Header { magic, version, metadata_size }.into_bytes()
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    ///
    /// The bytes are too few, no burnpack file or of a newer version, or claim more metadata than is read.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        match burnpack::Header::from_bytes(bytes) {
            Ok(header) => Ok(header.into()),
            Err(kind) => Err(kind.in_file(IN_MEMORY).into()),
        }
    }
}

impl From<burnpack::Header> for Header {
    fn from(header: burnpack::Header) -> Self {
        let burnpack::Header { magic, version, metadata_size } = header;
        Self { magic, version, metadata_size }
    }
}

/// A scratch file beside its destination, which it replaces when committed. Dropped without that, it is removed.
///
/// After a crash at any moment the destination holds either what it held before or all of the new file.
pub struct AtomicFile(Option<burnpack::AtomicFile>);

impl AtomicFile {
    /// Makes a scratch file in the folder of `destination`, and gives it to be written to. A symbolic link is followed.
    ///
    /// # Errors
    ///
    /// The file cannot be made there.
    pub fn create(destination: &Path) -> Result<(Self, File), Error> {
        let (atomic, file) = burnpack::AtomicFile::create(destination)?;
        Ok((Self(Some(atomic)), file))
    }

    /// Where the scratch file is.
    pub fn path(&self) -> &Path {
        self.0.as_ref().expect("it is given up only by commit and drop").path()
    }

    /// Brings the file to the disk and puts it in the place of its destination, whatever is there.
    ///
    /// # Errors
    ///
    /// The file system refuses; the destination is unchanged.
    pub fn commit(mut self) -> Result<(), Error> {
        Ok(self.0.take().map_or(Ok(()), burnpack::AtomicFile::commit)?)
    }

    /// As [`commit`](Self::commit), but never replaces a file.
    ///
    /// # Errors
    ///
    /// There is a file at the destination, or the file system refuses.
    pub fn commit_new(mut self) -> Result<(), Error> {
        Ok(self.0.take().map_or(Ok(()), burnpack::AtomicFile::commit_new)?)
    }
}

impl Drop for AtomicFile {
    /// Removes a scratch file that was not committed.
    fn drop(&mut self) {
        drop(self.0.take());
    }
}
