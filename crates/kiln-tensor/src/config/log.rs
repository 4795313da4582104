//! What is told of programs and backward passes, and where.

use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::string::String;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::vec::Vec;

use kiln_ir::{Graph, Program};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::file::Entry;
use crate::raw::RawTensor;

/// How much is told.
pub trait LogLevel: Copy + Debug + Default + DeserializeOwned + Serialize + Send + Sync + 'static {
    /// The words that a file uses.
    const WORDS: &'static [(&'static str, Self)];
}

/// How much is told of compiled programs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FusionLogLevel {
    /// Nothing.
    #[default]
    Disabled,
    /// One line a program.
    Basic,
    /// Its kernels and memory plan.
    Medium,
    /// The graph it was compiled from, too.
    Full,
}

/// How much is told of backward passes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AutodiffLogLevel {
    /// Nothing.
    #[default]
    Disabled,
    /// One line a pass.
    Basic,
    /// The leaves' gradients.
    Medium,
    /// The same as `Medium`.
    Full,
}

/// How much would be told of remote devices.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RemoteLogLevel {
    /// Nothing.
    #[default]
    Disabled,
    /// Has no effect: there are no remote devices yet.
    Basic,
    /// Has no effect: there are no remote devices yet.
    Medium,
    /// Has no effect: there are no remote devices yet.
    Full,
}

/// A level of the crate `log`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogCrateLevel {
    /// For information.
    #[default]
    Info,
    /// For debugging.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel for FusionLogLevel {
    const WORDS: &'static [(&'static str, Self)] =
        &[("disabled", Self::Disabled), ("basic", Self::Basic), ("medium", Self::Medium), ("full", Self::Full)];
}

impl LogLevel for AutodiffLogLevel {
    const WORDS: &'static [(&'static str, Self)] =
        &[("disabled", Self::Disabled), ("basic", Self::Basic), ("medium", Self::Medium), ("full", Self::Full)];
}

impl LogLevel for RemoteLogLevel {
    const WORDS: &'static [(&'static str, Self)] =
        &[("disabled", Self::Disabled), ("basic", Self::Basic), ("medium", Self::Medium), ("full", Self::Full)];
}

/// How much of something is told, and where. Several places may be named.
///
/// ```
/// use kiln_tensor::config::{BurnConfig, RuntimeConfig};
/// use kiln_tensor::{Device, Tensor};
/// let path = std::env::temp_dir().join(format!("kiln-log-{}", std::process::id()));
/// let logger = |section: &str| format!("[{section}.logger]\nlevel = 'basic'\nfile = '{}'\n", path.display());
/// BurnConfig::set(BurnConfig::from_text(&(logger("fusion") + &logger("autodiff"))).unwrap());
/// # #[cfg(feature = "cpu")] {
/// let x = Tensor::<1>::from_data([1.0, 2.0], &Device::flex().autodiff()).require_grad();
/// let gradients = x.clone().exp().sum().backward();
/// x.grad(&gradients).unwrap().into_data();
/// let told = std::fs::read_to_string(&path).unwrap();
/// assert!(told.contains("autodiff: 2 steps to 1 leaves") && told.contains("kernels"), "{told}");
/// # std::fs::remove_file(path).unwrap();
/// # }
/// ```
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(bound = "", default)]
pub struct LoggerConfig<L: LogLevel> {
    /// A file to write to.
    pub file: Option<PathBuf>,
    /// Whether what the file held before the process began is kept.
    pub append: bool,
    /// Whether to write to standard output.
    pub stdout: bool,
    /// Whether to write to standard error.
    pub stderr: bool,
    /// Has no effect: Kiln doesn't use the crate `log`.
    pub log: Option<LogCrateLevel>,
    /// How much.
    pub level: L,
}

impl<L: LogLevel> Default for LoggerConfig<L> {
    fn default() -> Self {
        Self { file: None, append: true, stdout: false, stderr: false, log: None, level: L::default() }
    }
}

impl<L: LogLevel> LoggerConfig<L> {
    pub(super) fn assign(&mut self, field: &str, entry: &Entry) -> Result<(), String> {
        match field {
            "file" => self.file = Some(entry.text()?.into()),
            "append" => self.append = entry.truth()?,
            "stdout" => self.stdout = entry.truth()?,
            "stderr" => self.stderr = entry.truth()?,
            "log" => {
                let words = [("info", LogCrateLevel::Info), ("debug", LogCrateLevel::Debug), ("trace", LogCrateLevel::Trace)];
                self.log = Some(entry.word(&words)?);
            }
            "level" => self.level = entry.word(L::WORDS)?,
            _ => return Err(format!("unknown key `{}`", entry.path.join("."))),
        }
        Ok(())
    }

    /// The same places with a level that only matters to whoever asked.
    fn places(&self) -> LoggerConfig<FusionLogLevel> {
        LoggerConfig {
            file: self.file.clone(),
            append: self.append,
            stdout: self.stdout,
            stderr: self.stderr,
            log: self.log,
            level: FusionLogLevel::Disabled,
        }
    }

    fn tell(&self, text: &str, begun: &mut Vec<PathBuf>) {
        if self.stdout {
            std::println!("{text}");
        }
        if self.stderr {
            std::eprintln!("{text}");
        }
        let Some(path) = &self.file else {
            return;
        };
        let fresh = !self.append && !begun.contains(path);
        let file = OpenOptions::new().create(true).write(true).append(!fresh).truncate(fresh).open(path);
        if let Err(error) = file.and_then(|mut file| writeln!(file, "{text}")) {
            std::eprintln!("{}: cannot be written: {error}", path.display());
        }
        begun.push(path.clone());
    }
}

/// Who listens.
struct Listeners {
    fusion: Option<(FusionLogLevel, LoggerConfig<FusionLogLevel>)>,
    autodiff: Option<(AutodiffLogLevel, LoggerConfig<FusionLogLevel>)>,
    /// Files written to by this process.
    begun: Vec<PathBuf>,
}

static FUSION: AtomicBool = AtomicBool::new(false);
static AUTODIFF: AtomicBool = AtomicBool::new(false);
static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners { fusion: None, autodiff: None, begun: Vec::new() });

/// Follows a change of the configuration.
pub(super) fn watch(fusion: &LoggerConfig<FusionLogLevel>, autodiff: &LoggerConfig<AutodiffLogLevel>) {
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    listeners.fusion = (fusion.level > FusionLogLevel::Disabled).then(|| (fusion.level, fusion.places()));
    listeners.autodiff = (autodiff.level > AutodiffLogLevel::Disabled).then(|| (autodiff.level, autodiff.places()));
    FUSION.store(listeners.fusion.is_some(), Ordering::Relaxed);
    AUTODIFF.store(listeners.autodiff.is_some(), Ordering::Relaxed);
}

/// Tells of a program that was compiled.
pub(crate) fn program_compiled(graph: &Graph, program: &Program) {
    if !FUSION.load(Ordering::Relaxed) {
        return;
    }
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Listeners { fusion: Some((level, places)), begun, .. } = &mut *listeners else {
        return;
    };
    let mut text = format!("fusion: {} operations became {} kernels", graph.nodes.len(), program.kernels().count());
    if *level >= FusionLogLevel::Medium {
        text = format!("{text}\n{}", kiln_compiler::print::print(program));
    }
    if *level >= FusionLogLevel::Full {
        text = format!("{text}\n{}", graph.print());
    }
    places.tell(&text, begun);
}

/// Tells of a backward pass: the steps it took and the gradients it ended with.
pub(crate) fn backward_passed<'a>(steps: usize, gradients: impl Iterator<Item = &'a RawTensor>) {
    if !AUTODIFF.load(Ordering::Relaxed) {
        return;
    }
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    let Listeners { autodiff: Some((level, places)), begun, .. } = &mut *listeners else {
        return;
    };
    let gradients: Vec<&RawTensor> = gradients.collect();
    let mut text = format!("autodiff: {steps} steps to {} leaves", gradients.len());
    if *level >= AutodiffLogLevel::Medium {
        for gradient in gradients {
            text = format!("{text}\n  {gradient:?}");
        }
    }
    places.tell(&text, begun);
}
