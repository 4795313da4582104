//! `ExecutionError`: what goes wrong on a device while it computes.

use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Serialize};

/// A failure of a device while it computes or hands over values.
#[derive(Clone, Deserialize, Serialize)]
pub enum ExecutionError {
    /// A failure described by the device.
    WithContext {
        /// What happened.
        reason: String,
    },
    /// A failure, with the place it was noticed.
    Generic {
        /// What happened.
        reason: String,
        /// The calls that led there, where they are recorded.
        #[serde(skip)]
        backtrace: BackTrace,
    },
    /// A fault from which the device does not recover, such as an illegal memory access: the process must be restarted.
    DevicePoisoned {
        /// What happened.
        reason: String,
    },
}

impl ExecutionError {
    /// A failure that records the place it is made.
    pub fn generic(reason: impl Into<String>) -> Self {
        Self::Generic { reason: reason.into(), backtrace: BackTrace::capture() }
    }

    /// A failure described by the device.
    pub fn with_context(reason: impl Into<String>) -> Self {
        Self::WithContext { reason: reason.into() }
    }

    /// A fault from which the device does not recover.
    pub fn device_poisoned(reason: impl Into<String>) -> Self {
        Self::DevicePoisoned { reason: reason.into() }
    }

    /// What happened.
    pub fn reason(&self) -> &str {
        match self {
            Self::WithContext { reason } | Self::Generic { reason, .. } | Self::DevicePoisoned { reason } => reason,
        }
    }

    /// Whether the device does not recover.
    pub fn is_device_poisoned(&self) -> bool {
        matches!(self, Self::DevicePoisoned { .. })
    }
}

impl fmt::Display for ExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WithContext { reason } | Self::Generic { reason, .. } => f.write_str(reason),
            Self::DevicePoisoned { reason } => {
                write!(f, "the device does not recover from a fault: {reason}")
            }
        }
    }
}

impl fmt::Debug for ExecutionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        match self {
            Self::Generic { backtrace, .. } => {
                let backtrace = backtrace.to_string();
                if backtrace.is_empty() { Ok(()) } else { write!(f, "\n{backtrace}") }
            }
            Self::WithContext { .. } | Self::DevicePoisoned { .. } => Ok(()),
        }
    }
}

impl core::error::Error for ExecutionError {}

/// The calls that led to an error. They are recorded with the `std` feature and `RUST_BACKTRACE` set.
#[derive(Clone, Default)]
pub struct BackTrace {
    #[cfg(feature = "std")]
    calls: Option<alloc::sync::Arc<std::backtrace::Backtrace>>,
}

impl BackTrace {
    /// Records the calls that led here.
    pub fn capture() -> Self {
        Self {
            #[cfg(feature = "std")]
            calls: {
                let calls = std::backtrace::Backtrace::capture();
                let captured = calls.status() == std::backtrace::BacktraceStatus::Captured;
                captured.then(|| alloc::sync::Arc::new(calls))
            },
        }
    }
}

impl fmt::Display for BackTrace {
    #[cfg_attr(not(feature = "std"), allow(unused_variables))]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "std")]
        if let Some(calls) = &self.calls {
            return fmt::Display::fmt(calls, f);
        }
        Ok(())
    }
}

impl fmt::Debug for BackTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
