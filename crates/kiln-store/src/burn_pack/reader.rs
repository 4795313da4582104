//! Reading burnpack files.

use std::collections::BTreeMap;
use std::path::Path;

use kiln_module::record::burnpack;
use kiln_tensor::Bytes;

use super::{Error, IN_MEMORY, Scalar, Tensor};

/// An open burnpack file: its index is read at once, a tensor's bytes when asked for.
///
/// ```
/// use kiln_store::burn_pack::{Reader, Writer};
/// use kiln_store::bridge;
/// use kiln_tensor::TensorData;
///
/// let tensor = bridge::from_data(TensorData::from([1.0_f32, 2.0]), "weight".into(), None);
/// let bytes = Writer::new(vec![tensor]).with_metadata("of", "a test").into_bytes()?;
/// let reader = Reader::from_bytes(bytes)?;
/// assert_eq!(reader.tensor_names(), ["weight"]);
/// assert_eq!(reader.metadata()["of"], "a test");
/// assert_eq!(reader.tensor_data("weight")?, [0, 0, 128, 63, 0, 0, 0, 64]);
/// # Ok::<(), kiln_store::burn_pack::Error>(())
/// ```
#[derive(Clone)]
pub struct Reader(burnpack::Reader);

impl Reader {
    /// Reads the index of a file that lies in memory.
    ///
    /// # Errors
    ///
    /// The bytes are malformed.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, Error> {
        Ok(Self(burnpack::Reader::from_bytes(IN_MEMORY, bytes)?))
    }

    /// Maps the file at `path`, or at `path` with the extension `bpk` if no file is at `path` itself, and reads its index. The file must not be
    /// changed in place while it is open.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or is malformed.
    pub fn from_file<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        Ok(Self(burnpack::Reader::open(path)?))
    }

    /// As [`from_file`](Self::from_file), of the path as it is.
    ///
    /// # Errors
    ///
    /// As [`from_file`](Self::from_file).
    pub fn from_file_exact<P: AsRef<Path>>(path: P) -> Result<Self, Error> {
        Ok(Self(burnpack::Reader::open_exact(path)?))
    }

    /// All tensors in the order of their bytes. They share the file: nothing is copied before a tensor's bytes are asked for.
    ///
    /// # Errors
    ///
    /// None at present: reading the index has checked every range.
    pub fn into_tensors(self) -> Result<Vec<Tensor>, Error> {
        Ok(self.0.tensors())
    }

    /// The text of the file by key.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.0.index().metadata
    }

    /// The numbers of the file by key.
    pub fn scalars(&self) -> &BTreeMap<String, Scalar> {
        &self.0.index().scalars
    }

    /// The names of all tensors, in the order of their bytes.
    pub fn tensor_names(&self) -> Vec<&str> {
        self.0.index().tensors.iter().map(|entry| entry.name.as_str()).collect()
    }

    /// The bytes of the tensor `name`: little-endian elements in row-major order.
    ///
    /// # Errors
    ///
    /// There is no such tensor.
    pub fn tensor_data(&self, name: &str) -> Result<Vec<u8>, Error> {
        Ok(self.0.bytes(name)?.to_vec())
    }
}
