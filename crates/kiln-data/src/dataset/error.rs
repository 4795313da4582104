//! The error of a failed dataset read.

use std::error::Error;
use std::fmt;

/// An item could not be read. It carries the error of the source it was read from.
#[derive(Debug)]
pub struct DatasetError(Box<dyn Error + Send + Sync>);

impl DatasetError {
    /// Wraps the error of the source.
    pub fn new<E>(err: E) -> Self
    where
        E: Error + Send + Sync + 'static,
    {
        Self(Box::new(err))
    }

    /// The wrapped error, for `downcast_ref`.
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.0.as_ref()
    }
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for DatasetError {
    /// What caused the wrapped error: this type prints as the wrapped error itself, so a chain names each cause once.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
