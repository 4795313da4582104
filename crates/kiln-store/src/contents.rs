//! What is in a weight file of any supported format, told by its first bytes.

use kiln_module::record::legacy::{LegacyFormat, LegacyRecord};

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use kiln_module::record::burnpack::{MAGIC_NUMBER, PackErrorKind, PackFileError, Reader};

use crate::burn_pack::{Scalar, Tensor};
#[cfg(feature = "pytorch")]
use crate::pytorch::{PytorchError, PytorchReader};
#[cfg(feature = "safetensors")]
use crate::safetensors::{SafeTensorError, SafetensorsReader};

/// The format of a weight file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Burnpack, version 1 (`.bpk`).
    Burnpack,
    /// Safetensors (`.safetensors`).
    #[cfg(feature = "safetensors")]
    Safetensors,
    /// What `torch.save` writes (`.pt`, `.pth`).
    #[cfg(feature = "pytorch")]
    Pytorch,
    /// A record of Burn 0.21 or before (`.mpk`, `.json`, `.bin`, compressed or not).
    Legacy {
        /// How it is encoded.
        encoding: LegacyFormat,
        /// Whether it is gzip-compressed.
        compressed: bool,
    },
}

impl Format {
    /// Whether files of this format carry the paths of their tensors. Without, tensors are called `#0`, `#1`, ... in the order of visits.
    pub fn has_paths(self) -> bool {
        !matches!(self, Self::Legacy { encoding: LegacyFormat::Bincode, .. })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Burnpack => "burnpack",
            #[cfg(feature = "safetensors")]
            Self::Safetensors => "safetensors",
            #[cfg(feature = "pytorch")]
            Self::Pytorch => "PyTorch",
            Self::Legacy { encoding, compressed } => match (encoding, compressed) {
                (LegacyFormat::MessagePack, false) => "Burn 0.21 MessagePack",
                (LegacyFormat::MessagePack, true) => "Burn 0.21 MessagePack, compressed",
                (LegacyFormat::Json, false) => "Burn 0.21 JSON",
                (LegacyFormat::Json, true) => "Burn 0.21 JSON, compressed",
                (LegacyFormat::Bincode, false) => "Burn 0.21 bincode",
                (LegacyFormat::Bincode, true) => "Burn 0.21 bincode, compressed",
            },
        })
    }
}

/// What is in a weight file. Tensors are read when their bytes are asked for.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The format of the file.
    pub format: Format,
    /// The tensors in the order of their bytes.
    pub tensors: Vec<Tensor>,
    /// Text by key.
    pub metadata: BTreeMap<String, String>,
    /// Numbers by key.
    pub scalars: BTreeMap<String, Scalar>,
}

/// A weight file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentsError {
    /// The file cannot be read, or is no good burnpack file or record of Burn 0.21.
    Burnpack(PackFileError),
    /// The file is no good safetensors file.
    #[cfg(feature = "safetensors")]
    Safetensors(SafeTensorError),
    /// The file is no good file of `torch.save`.
    #[cfg(feature = "pytorch")]
    Pytorch(PytorchError),
    /// The file's first bytes are those of no supported format.
    UnknownFormat {
        /// The file.
        file: String,
        /// Its first bytes.
        start: Vec<u8>,
    },
}

impl fmt::Display for ContentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burnpack(error) => write!(f, "{error}"),
            #[cfg(feature = "safetensors")]
            Self::Safetensors(error) => write!(f, "{error}"),
            #[cfg(feature = "pytorch")]
            Self::Pytorch(error) => write!(f, "{error}"),
            Self::UnknownFormat { file, start } => write!(f, "{file}: is of no supported format; it starts with the bytes {start:02x?}"),
        }
    }
}

impl std::error::Error for ContentsError {}

impl Contents {
    /// Reads which tensors the file at `path` holds.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is of no supported format, or is malformed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ContentsError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let io = |error: std::io::Error| ContentsError::Burnpack(PackErrorKind::Io(error.to_string()).in_file(&file));
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(io(std::io::Error::other("is not a file")));
        }
        let mut start = Vec::new();
        File::open(path).and_then(|file| file.take(1 << 10).read_to_end(&mut start)).map_err(io)?;
        if start.starts_with(&MAGIC_NUMBER.to_le_bytes()) {
            let reader = Reader::open_exact(path).map_err(ContentsError::Burnpack)?;
            let index = reader.index().clone();
            return Ok(Self { format: Format::Burnpack, tensors: reader.tensors(), metadata: index.metadata, scalars: index.scalars });
        }
        // A header of less than 2^32 bytes, and its first character.
        #[cfg(feature = "safetensors")]
        if matches!(start[..], [_, _, _, _, 0, 0, 0, 0, b'{', ..]) {
            let reader = SafetensorsReader::open(path).map_err(ContentsError::Safetensors)?;
            let (tensors, metadata) = (reader.tensors(), reader.index().metadata.clone());
            return Ok(Self { format: Format::Safetensors, tensors, metadata, scalars: BTreeMap::new() });
        }
        #[cfg(feature = "pytorch")]
        if crate::pytorch::is_start(&start) {
            let reader = PytorchReader::new(path).map_err(ContentsError::Pytorch)?;
            let tensors = reader.tensors().map(|tensor| tensor.clone().into_pack()).collect();
            return Ok(Self { format: Format::Pytorch, tensors, metadata: BTreeMap::new(), scalars: BTreeMap::new() });
        }
        if LegacyRecord::is_start(&start) {
            let record = LegacyRecord::open(path).map_err(ContentsError::Burnpack)?;
            let format = Format::Legacy { encoding: record.format, compressed: record.compressed };
            return Ok(Self { format, tensors: record.tensors, metadata: BTreeMap::new(), scalars: record.scalars });
        }
        start.truncate(16);
        Err(ContentsError::UnknownFormat { file, start })
    }
}
