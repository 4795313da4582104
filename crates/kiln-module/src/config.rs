//! Configurations: plain structs of settings that are built, saved and loaded.

mod json;

#[cfg(feature = "std")]
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::{self, Debug, Display};

pub use kiln_derive::Config;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// Why a configuration could not be loaded.
#[derive(Debug)]
pub enum ConfigError {
    /// The data is no JSON, or does not fit the configuration; says where and why.
    InvalidFormat(String),
    /// The file could not be read; names it.
    FileNotFound(String),
}

impl Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidFormat(reason) => write!(formatter, "invalid configuration: {reason}"),
            Self::FileNotFound(reason) => write!(formatter, "configuration not found: {reason}"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// A set of settings, saved as JSON; implemented by `#[derive(Config)]`.
///
/// The derive makes a constructor from the fields without a default, a `with_*` method for each of the others, and
/// `Clone`, `Display`, `Serialize` and `Deserialize`.
///
/// ```
/// use kiln_module::config::Config;
///
/// #[derive(Config, Debug)]
/// struct ModelConfig {
///     hidden: usize,
///     #[config(default = 0.5)]
///     dropout: f64,
/// }
///
/// let config = ModelConfig::new(64).with_dropout(0.1);
/// let copy = ModelConfig::load_binary(config.to_string().as_bytes()).unwrap();
/// assert_eq!((copy.hidden, copy.dropout), (64, 0.1));
/// ```
pub trait Config: Debug + Serialize + DeserializeOwned {
    /// Writes the configuration to `file` as indented JSON.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    #[cfg(feature = "std")]
    fn save<P: AsRef<std::path::Path>>(&self, file: P) -> std::io::Result<()> {
        std::fs::write(file, config_to_json(self))
    }

    /// Reads a configuration that [`Config::save`] wrote.
    ///
    /// # Errors
    ///
    /// When the file can't be read or does not fit.
    #[cfg(feature = "std")]
    fn load<P: AsRef<std::path::Path>>(file: P) -> Result<Self, ConfigError> {
        let path = file.as_ref();
        let content = std::fs::read(path).map_err(|error| ConfigError::FileNotFound(format!("{}: {error}", path.display())))?;
        Self::load_binary(&content).map_err(|error| match error {
            ConfigError::InvalidFormat(reason) => ConfigError::InvalidFormat(format!("{}: {reason}", path.display())),
            other @ ConfigError::FileNotFound(_) => other,
        })
    }

    /// Reads a configuration from the bytes of its JSON.
    ///
    /// # Errors
    ///
    /// When the bytes are no JSON or do not fit.
    fn load_binary(data: &[u8]) -> Result<Self, ConfigError> {
        serde_json::from_slice(data).map_err(|error| ConfigError::InvalidFormat(error.to_string()))
    }
}

/// The configuration as indented JSON.
///
/// # Panics
///
/// When a hand-written `Serialize` fails, or yields a map whose keys are no strings.
pub fn config_to_json<C: Config>(config: &C) -> String {
    let mut json = json::Json::default();
    config.serialize(&mut json).expect("a configuration is plain data with string keys");
    json.into_text()
}

/// Reads a value that is there, so that an absent one can be told from `null`; used by `#[derive(Config)]`.
#[doc(hidden)]
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
