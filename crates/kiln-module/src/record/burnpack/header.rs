//! The first ten bytes of a burnpack file.

use super::{FORMAT_VERSION, HEADER_SIZE, MAGIC_NUMBER, MAX_METADATA_SIZE, PackErrorKind};

/// The first ten bytes of a burnpack file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// [`MAGIC_NUMBER`].
    pub magic: u32,
    /// The version of the format.
    pub version: u16,
    /// The length of the metadata that follows, in bytes.
    pub metadata_size: u32,
}

impl Header {
    /// The header of a file of the current version.
    pub fn new(metadata_size: u32) -> Self {
        Self { magic: MAGIC_NUMBER, version: FORMAT_VERSION, metadata_size }
    }

    /// The header's bytes.
    pub fn into_bytes(self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        bytes[..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..].copy_from_slice(&self.metadata_size.to_le_bytes());
        bytes
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    ///
    /// The bytes are too few, no burnpack file or of a newer version, or claim more metadata than is read.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PackErrorKind> {
        let size = bytes.len() as u64;
        let &[a, b, c, d, e, f, g, h, i, j, ..] = bytes else {
            return Err(PackErrorKind::Header { size });
        };
        let header =
            Self { magic: u32::from_le_bytes([a, b, c, d]), version: u16::from_le_bytes([e, f]), metadata_size: u32::from_le_bytes([g, h, i, j]) };
        if header.magic != MAGIC_NUMBER {
            return Err(PackErrorKind::Magic { found: header.magic });
        }
        if header.version > FORMAT_VERSION {
            return Err(PackErrorKind::Version { found: header.version });
        }
        if header.metadata_size > MAX_METADATA_SIZE {
            return Err(PackErrorKind::MetadataSize { claimed: header.metadata_size.into(), available: size - HEADER_SIZE as u64 });
        }
        Ok(header)
    }
}
