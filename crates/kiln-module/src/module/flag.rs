//! A boolean that a module owns and that follows training and validation.

use core::fmt::{self, Display};

use super::parameter::{ParameterValue, sealed::Sealed};

/// A switch such as "drop units", held as `Param<Flag>`.
///
/// [`Module::valid`](super::Module::valid) and [`Module::freeze`](super::Module::freeze) turn it off,
/// [`Module::train`](super::Module::train) and [`Module::unfreeze`](super::Module::unfreeze) back on. Flags are not
/// stored in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag(bool);

impl Flag {
    /// A flag with the given value.
    #[must_use]
    pub const fn new(value: bool) -> Self {
        Self(value)
    }

    /// True if the flag is on.
    #[must_use]
    pub const fn is_enabled(&self) -> bool {
        self.0
    }

    /// The flag with another value.
    #[must_use]
    pub const fn with(self, value: bool) -> Self {
        Self(value)
    }
}

impl Display for Flag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.0, formatter)
    }
}

impl Sealed for Flag {
    fn trainable(&self) -> bool {
        self.0
    }

    fn settle(self, trainable: bool) -> (Self, bool) {
        (self, trainable)
    }
}

impl ParameterValue for Flag {}
