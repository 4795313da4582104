//! Reader of IDX files, the format of the MNIST family: a big-endian magic number, sizes, then bytes; plain or gzip-compressed.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

/// More items than any data set of the family has (EMNIST has 814,255): it bounds the memory that a hostile header or a
/// decompression bomb can ask for.
const MAX_ITEMS: u32 = 1 << 20;

/// A pair of IDX files could not be read as images with labels.
#[derive(Debug)]
pub enum IdxError {
    /// The file is not there or cannot be read or decompressed.
    Io {
        /// The file.
        file: PathBuf,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// The file does not begin with the magic number of its kind.
    Magic {
        /// The file.
        file: PathBuf,
        /// The magic number of the kind.
        expected: u32,
        /// The number found.
        found: u32,
    },
    /// The file ends before its header or its items do.
    Truncated {
        /// The file.
        file: PathBuf,
        /// The length its header calls for, in bytes when uncompressed.
        expected: u64,
        /// The length found.
        found: u64,
    },
    /// The file goes on behind its last item.
    TrailingBytes {
        /// The file.
        file: PathBuf,
        /// The length its header calls for, in bytes when uncompressed.
        expected: u64,
    },
    /// The header claims more items than are accepted.
    TooManyItems {
        /// The file.
        file: PathBuf,
        /// The number of items claimed.
        found: u32,
        /// The most that are accepted.
        limit: u32,
    },
    /// The items have another size.
    ItemSize {
        /// The file.
        file: PathBuf,
        /// Rows and columns expected.
        expected: [u32; 2],
        /// Rows and columns found.
        found: [u32; 2],
    },
    /// There are more or fewer labels than images.
    Count {
        /// The file of the labels.
        file: PathBuf,
        /// The number of images.
        images: usize,
        /// The number of labels.
        labels: usize,
    },
    /// A label is no class.
    Label {
        /// The file.
        file: PathBuf,
        /// The item's index.
        index: usize,
        /// The label found.
        found: u8,
        /// The number of classes.
        classes: u8,
    },
}

impl fmt::Display for IdxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, source } => write!(f, "{}: {source}", file.display()),
            Self::Magic { file, expected, found } => {
                let file = file.display();
                write!(f, "{file}: magic number is {found:#010x}, not {expected:#010x}")
            }
            Self::Truncated { file, expected, found } => {
                let file = file.display();
                write!(f, "{file}: ends after {found} of {expected} bytes")
            }
            Self::TrailingBytes { file, expected } => {
                let file = file.display();
                write!(f, "{file}: goes on behind the {expected} bytes it calls for")
            }
            Self::TooManyItems { file, found, limit } => {
                let file = file.display();
                write!(f, "{file}: claims {found} items, more than {limit}")
            }
            Self::ItemSize { file, expected: [rows, columns], found: [found_rows, found_columns] } => {
                write!(f, "{}: items are {found_rows}×{found_columns}, not {rows}×{columns}", file.display())
            }
            Self::Count { file, images, labels } => {
                let file = file.display();
                write!(f, "{file}: has {labels} labels for {images} images")
            }
            Self::Label { file, index, found, classes } => write!(f, "{}: label {index} is {found}, not below {classes}", file.display()),
        }
    }
}

impl Error for IdxError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// One IDX file to be read: where it lies and its bytes.
pub(super) struct IdxFile<R> {
    path: PathBuf,
    bytes: R,
}

impl IdxFile<BufReader<File>> {
    /// Opens `name` in `folder`, or `name.gz` where `name` is not there.
    pub(super) fn open(folder: &Path, name: &str) -> Result<Self, IdxError> {
        let mut path = folder.join(name);
        if !path.exists() {
            path = folder.join(format!("{name}.gz"));
        }
        match File::open(&path) {
            Ok(file) => Ok(Self { path, bytes: BufReader::new(file) }),
            Err(source) => Err(IdxError::Io { file: path, source }),
        }
    }
}

impl<R: BufRead> IdxFile<R> {
    /// The file of `bytes`, called `name` in errors.
    pub(super) fn from_reader(name: &str, bytes: R) -> Self {
        Self { path: name.into(), bytes }
    }

    /// Reads the pixels of images of `rows` × `columns`.
    pub(super) fn images(self, [rows, columns]: [u32; 2]) -> Result<Vec<u8>, IdxError> {
        self.items(0x803, &[rows, columns])
    }

    /// Reads labels below `classes` for `images` images.
    pub(super) fn labels(self, images: usize, classes: u8) -> Result<Vec<u8>, IdxError> {
        let file = self.path.clone();
        let labels = self.items(0x801, &[])?;
        if labels.len() != images {
            let labels = labels.len();
            return Err(IdxError::Count { file, images, labels });
        }
        match labels.iter().position(|label| *label >= classes) {
            Some(index) => Err(IdxError::Label { file, index, found: labels[index], classes }),
            None => Ok(labels),
        }
    }

    fn items(mut self, magic: u32, sizes: &[u32]) -> Result<Vec<u8>, IdxError> {
        let file = self.path;
        // A gzip stream is told by its first bytes, not by the file's name.
        match self.bytes.fill_buf() {
            Ok([0x1f, 0x8b, ..]) => read_items(file, MultiGzDecoder::new(self.bytes), magic, sizes),
            Ok(_) => read_items(file, self.bytes, magic, sizes),
            Err(source) => Err(IdxError::Io { file, source }),
        }
    }
}

fn read_items(file: PathBuf, mut bytes: impl Read, magic: u32, sizes: &[u32]) -> Result<Vec<u8>, IdxError> {
    let header_len = 8 + 4 * sizes.len() as u64;
    let header = read_exactly(&file, &mut bytes, header_len, header_len)?;
    let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[4 * at + i]));
    let found = word(0);
    if found != magic {
        return Err(IdxError::Magic { file, expected: magic, found });
    }
    let count = word(1);
    if count > MAX_ITEMS {
        return Err(IdxError::TooManyItems { file, found: count, limit: MAX_ITEMS });
    }
    if let &[rows, columns] = sizes {
        let found = [word(2), word(3)];
        if found != [rows, columns] {
            return Err(IdxError::ItemSize { file, expected: [rows, columns], found });
        }
    }
    let item_len: u64 = sizes.iter().map(|size| u64::from(*size)).product();
    let len = u64::from(count) * item_len;
    let expected = header_len + len;
    let items = read_exactly(&file, &mut bytes, len, expected)?;
    // Reading on also makes the decompressor compare the checksum at the end of its stream.
    match bytes.read(&mut [0]) {
        Ok(0) => Ok(items),
        Ok(_) => Err(IdxError::TrailingBytes { file, expected }),
        Err(source) if source.kind() == ErrorKind::UnexpectedEof => Err(IdxError::Truncated { file, expected, found: expected }),
        Err(source) => Err(IdxError::Io { file, source }),
    }
}

/// Reads the next `len` bytes of a file that should have `expected`. Memory grows with what is there, not with what is claimed.
fn read_exactly(file: &Path, bytes: &mut impl Read, len: u64, expected: u64) -> Result<Vec<u8>, IdxError> {
    let mut read = Vec::new();
    match bytes.take(len).read_to_end(&mut read) {
        Err(source) if source.kind() != ErrorKind::UnexpectedEof => Err(IdxError::Io { file: file.into(), source }),
        _ if (read.len() as u64) < len => Err(IdxError::Truncated { file: file.into(), expected, found: expected - len + read.len() as u64 }),
        _ => Ok(read),
    }
}
