//! Regular expressions over the paths of parameters, which need `std`.
//!
//! Paths are made of field names and numbers, so the small engine does: it is a tenth of what `regex` takes to compile. Its classes (`\w`, `\d`, `\s`) are those of ASCII.

use alloc::format;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ParamGroupError;

/// A compiled pattern, stored as its text.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub(super) struct Pattern(regex_lite::Regex);

/// A compiled pattern: without `std` there is none.
#[cfg(not(feature = "std"))]
#[derive(Clone, Debug)]
pub(super) enum Pattern {}

#[cfg(feature = "std")]
impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, ParamGroupError> {
        regex_lite::Regex::new(text).map(Self).map_err(|error| ParamGroupError::InvalidPatternError(format!("`{text}`: {error}")))
    }

    pub(super) fn is_match(&self, path: &str) -> bool {
        self.0.is_match(path)
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(not(feature = "std"))]
impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, ParamGroupError> {
        Err(ParamGroupError::InvalidPatternError(format!("`{text}`: patterns need the feature `std`; choose by path or by a text in it")))
    }

    pub(super) fn is_match(&self, _path: &str) -> bool {
        match *self {}
    }

    pub(super) fn as_str(&self) -> &str {
        match *self {}
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = alloc::string::String::deserialize(deserializer)?;
        Self::new(&text).map_err(D::Error::custom)
    }
}
