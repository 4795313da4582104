//! The configuration of the running program: `burn.toml`, or what the program sets itself.
//!
//! The file lies in the current folder or one above it and is read when the first device is opened, or at the first [`runtime_config`]. Every key may be left out:
//!
//! ```toml
//! [fusion]
//! max_graph_size = 2000        # a trace runs at the latest after this many operations
//!
//! [fusion.logger]
//! level = "basic"              # "disabled", "basic", "medium", "full"
//! stderr = true                # also: stdout = true, file = "fusion.log", append = false
//!
//! [autodiff.logger]
//! level = "basic"
//! stderr = true
//! ```
//!
//! Keys of Burn's file that have nothing to act on here are read and kept; their fields' documentation says so.

mod file;
mod log;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};

pub use log::{AutodiffLogLevel, FusionLogLevel, LogCrateLevel, LogLevel, LoggerConfig, RemoteLogLevel};

use crate::trace;

/// A configuration that a process has once.
pub trait RuntimeConfig: Clone + Default + Send + Sync + 'static {
    /// Where the process keeps it; `None` until it is first asked for.
    fn storage() -> &'static Mutex<Option<Arc<Self>>>;

    /// What its file may be called.
    fn file_names() -> &'static [&'static str];

    /// The configuration that a file's text describes.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    fn from_text(text: &str) -> Result<Self, String>;

    /// Follows a change.
    fn apply(&self) {}

    /// The configuration of the file in the current folder or the nearest one above it that has one; the default without a file.
    ///
    /// # Panics
    /// When the file cannot be read or understood: the message names it and the line.
    #[track_caller]
    fn from_current_dir() -> Self {
        let folders = std::env::current_dir().unwrap_or_default();
        let paths = folders.ancestors().flat_map(|folder| Self::file_names().iter().map(move |name| folder.join(name)));
        match paths.into_iter().find(|path| path.is_file()) {
            Some(path) => match read(&path) {
                Ok(config) => config,
                Err(error) => panic!("{}: {error}", path.display()),
            },
            None => Self::default(),
        }
    }

    /// The configuration of the process, read from its file at the first call.
    ///
    /// # Panics
    /// As [`from_current_dir`](Self::from_current_dir), at the first call.
    #[track_caller]
    fn get() -> Arc<Self> {
        let mut stored = Self::storage().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*stored {
            return config.clone();
        }
        let config = Arc::new(Self::from_current_dir());
        *stored = Some(config.clone());
        config.apply();
        config
    }

    /// Replaces the configuration of the process. Only what is recorded from now on follows it.
    ///
    /// ```
    /// use kiln_tensor::config::{BurnConfig, RuntimeConfig};
    /// use kiln_tensor::{Device, Tensor};
    /// let text = "[fusion]\nmax_graph_size = 20";
    /// BurnConfig::set(BurnConfig::from_text(text).unwrap());
    /// let device = Device::reference();
    /// let mut x = Tensor::<1>::zeros([1], &device);
    /// for _ in 0..100 {
    ///     x = x + 1;
    /// }
    /// assert!(device.trace_stats().runs >= 5 && device.pending_ops() <= 20);
    /// assert_eq!(x.into_scalar::<f32>(), 100.0);
    /// ```
    fn set(config: Self) {
        let config = Arc::new(config);
        let mut stored = Self::storage().lock().unwrap_or_else(PoisonError::into_inner);
        *stored = Some(config.clone());
        config.apply();
    }
}

fn read<C: RuntimeConfig>(path: &Path) -> Result<C, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    C::from_text(&text)
}

/// The configuration of the process, from `burn.toml` where there is one.
///
/// ```
/// let folder = std::env::temp_dir().join(format!("kiln-config-{}", std::process::id()));
/// std::fs::create_dir_all(&folder).unwrap();
/// std::fs::write(folder.join("burn.toml"), "fusion.max_graph_size = 500\n").unwrap();
/// std::env::set_current_dir(&folder).unwrap();
/// let config = kiln_tensor::config::runtime_config();
/// assert_eq!(config.fusion().max_graph_size, Some(500));
/// assert!(!config.autodiff().logger.stdout);
/// # std::env::set_current_dir("/").unwrap();
/// # std::fs::remove_dir_all(folder).unwrap();
/// ```
///
/// # Panics
/// At the first call, when the file cannot be read or understood: the message names it and the line.
#[track_caller]
pub fn runtime_config() -> Arc<BurnConfig> {
    BurnConfig::get()
}

/// The configuration of the running program.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct BurnConfig {
    fusion: FusionConfig,
    autodiff: AutodiffConfig,
    remote: RemoteConfig,
}

impl BurnConfig {
    /// How operations are recorded and fused.
    pub fn fusion(&self) -> &FusionConfig {
        &self.fusion
    }

    /// How gradients are recorded.
    pub fn autodiff(&self) -> &AutodiffConfig {
        &self.autodiff
    }

    /// How devices of other machines are reached.
    pub fn remote(&self) -> &RemoteConfig {
        &self.remote
    }
}

impl RuntimeConfig for BurnConfig {
    fn storage() -> &'static Mutex<Option<Arc<Self>>> {
        static STORAGE: Mutex<Option<Arc<BurnConfig>>> = Mutex::new(None);
        &STORAGE
    }

    fn file_names() -> &'static [&'static str] {
        &["burn.toml", "Burn.toml"]
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let mut config = Self::default();
        for entry in file::entries(text)? {
            config.assign(&entry).map_err(|error| format!("line {}: {error}", entry.line))?;
        }
        Ok(config)
    }

    fn apply(&self) {
        trace::bound_nodes(self.fusion.max_graph_size);
        log::watch(&self.fusion.logger, &self.autodiff.logger);
    }
}

impl BurnConfig {
    fn assign(&mut self, entry: &file::Entry) -> Result<(), String> {
        let path: Vec<&str> = entry.path.iter().map(String::as_str).collect();
        match path[..] {
            ["fusion", "logger", field] => self.fusion.logger.assign(field, entry),
            ["fusion", "beam_search", "max_blocks"] => entry.count().map(|n| self.fusion.beam_search.max_blocks = n),
            ["fusion", "beam_search", "max_explorations"] => entry.count().map(|n| self.fusion.beam_search.max_explorations = Some(n)),
            ["fusion", "max_graph_size"] => entry.count().map(|n| self.fusion.max_graph_size = Some(n)),
            ["fusion", "growth_patience"] => entry.count().map(|n| self.fusion.growth_patience = n),
            ["autodiff", "logger", field] => self.autodiff.logger.assign(field, entry),
            ["remote", "logger", field] => self.remote.logger.assign(field, entry),
            _ => Err(format!("unknown key `{}`", entry.path.join("."))),
        }
    }
}

/// How operations are recorded and fused.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct FusionConfig {
    /// What is told of compiled programs: `Basic` one line each, `Medium` its kernels and memory plan (as `KILN_LOG=schedule`), `Full` the graph too.
    pub logger: LoggerConfig<FusionLogLevel>,
    /// Has no effect: the compiler decides by a cost model in one pass and searches nothing.
    pub beam_search: BeamSearchConfig,
    /// The number of operations after which a trace runs at the latest. Without it, or above 8,192, that is 8,192.
    pub max_graph_size: Option<usize>,
    /// Has no effect: a trace grows to the next flush, whatever is gained by it.
    pub growth_patience: usize,
}

impl Default for FusionConfig {
    fn default() -> Self {
        Self { logger: LoggerConfig::default(), beam_search: BeamSearchConfig::default(), max_graph_size: None, growth_patience: 10 }
    }
}

/// How a searching fuser would search. Kiln's doesn't, so neither field has an effect.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct BeamSearchConfig {
    /// Has no effect: nothing is searched.
    pub max_blocks: usize,
    /// Has no effect: nothing is searched.
    pub max_explorations: Option<usize>,
}

impl Default for BeamSearchConfig {
    fn default() -> Self {
        Self { max_blocks: 5, max_explorations: None }
    }
}

/// How gradients are recorded.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct AutodiffConfig {
    /// What is told of backward passes: `Basic` the numbers of steps and leaves, `Medium` and `Full` also the shape and type of every leaf's gradient.
    pub logger: LoggerConfig<AutodiffLogLevel>,
}

/// How devices of other machines are reached.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct RemoteConfig {
    /// Has no effect: there are no remote devices yet.
    pub logger: LoggerConfig<RemoteLogLevel>,
}

/// Reads the configuration once, before the first device works. Called whenever a device is made.
pub(crate) fn prepare() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| drop(runtime_config()));
}

pub(crate) use log::{backward_passed, program_compiled};
