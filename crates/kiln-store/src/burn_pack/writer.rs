//! Writing burnpack files.

use std::path::Path;

use kiln_module::record::burnpack;
use kiln_tensor::Bytes;

use super::{Error, Scalar, Tensor};

/// Writes burnpack files. The tensors' bytes are laid out in the order given.
pub struct Writer(burnpack::Writer);

impl Writer {
    /// A file of `tensors`.
    pub fn new(tensors: Vec<Tensor>) -> Self {
        Self(burnpack::Writer::new(tensors))
    }

    /// Adds text; it replaces what `key` had.
    pub fn with_metadata(self, key: &str, value: &str) -> Self {
        Self(self.0.with_metadata(key, value))
    }

    /// Adds a number; it replaces what `key` had.
    pub fn with_scalar(self, key: &str, value: Scalar) -> Self {
        Self(self.0.with_scalar(key, value))
    }

    /// Whether the extension `bpk` is added to a path without one. By default it is.
    pub fn auto_extension(self, enable: bool) -> Self {
        Self(self.0.auto_extension(enable))
    }

    /// Whether a file that is there already is replaced. By default it is.
    pub fn overwrite(self, enable: bool) -> Self {
        Self(self.0.overwrite(enable))
    }

    /// The size of the file in bytes.
    ///
    /// # Errors
    ///
    /// Two tensors have the same name, or one has more or fewer bytes than its shape and dtype call for.
    pub fn size(&self) -> Result<usize, Error> {
        Ok(self.0.size()?)
    }

    /// Writes the file into `buffer`, which must have its [`size`](Self::size).
    ///
    /// # Errors
    ///
    /// As [`size`](Self::size), or the buffer has another size, or a deferred tensor's bytes could not be had.
    pub fn write_into(self, buffer: &mut [u8]) -> Result<(), Error> {
        Ok(self.0.write_into(buffer)?)
    }

    /// The file's bytes.
    ///
    /// # Errors
    ///
    /// As [`size`](Self::size), or a deferred tensor's bytes could not be had.
    pub fn into_bytes(self) -> Result<Bytes, Error> {
        Ok(self.0.into_bytes()?)
    }

    /// Writes to a file next to `path` and moves it there when it is whole and on the disk: a crash or an error leaves what was there before. The
    /// folder is made if it is missing.
    ///
    /// # Errors
    ///
    /// As [`into_bytes`](Self::into_bytes), the file system refuses, or the file exists and is not to be replaced.
    pub fn write_to_file<P: AsRef<Path>>(self, path: P) -> Result<(), Error> {
        Ok(self.0.write_to_file(path)?)
    }

    /// Writes straight to `path`: for a file system that has no room for two files. A crash or an error leaves a broken file.
    ///
    /// # Errors
    ///
    /// As [`write_to_file`](Self::write_to_file).
    pub fn write_to_file_in_place<P: AsRef<Path>>(self, path: P) -> Result<(), Error> {
        Ok(self.0.write_to_file_in_place(path)?)
    }
}
