//! How long work on a device takes.
use core::time::Duration;
use std::time::Instant;

use super::Device;
use crate::ExecutionError;

/// By which clock a duration was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingMethod {
    /// The host's clock.
    System,
    /// The device's.
    Device,
}

/// What is run before a measured function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileOptions {
    flush: bool,
}

impl ProfileOptions {
    /// What was recorded before is run first and does not count.
    pub fn flush(self) -> Self {
        ProfileOptions { flush: true }
    }

    /// Whether what was recorded before is run first.
    pub fn flushes(&self) -> bool {
        self.flush
    }
}

/// Start and end of a measured piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileTicks {
    start: Instant,
    end: Instant,
}

impl ProfileTicks {
    /// The time between them.
    pub fn duration(&self) -> Duration {
        self.end.duration_since(self.start)
    }

    /// The start, counted from `epoch`.
    pub fn start_duration_since(&self, epoch: Instant) -> Duration {
        self.start.saturating_duration_since(epoch)
    }

    /// The end, counted from `epoch`.
    pub fn end_duration_since(&self, epoch: Instant) -> Duration {
        self.end.saturating_duration_since(epoch)
    }
}

/// A measured duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileDuration {
    ticks: ProfileTicks,
}

impl ProfileDuration {
    /// The time between two points of the host's clock.
    pub fn new_system_time(start: Instant, end: Instant) -> Self {
        ProfileDuration { ticks: ProfileTicks { start, end } }
    }

    /// By which clock it was measured.
    pub fn timing_method(&self) -> TimingMethod {
        TimingMethod::System
    }

    /// The measurement, once the work is done.
    pub async fn resolve(self) -> Option<ProfileTicks> {
        Some(self.ticks)
    }

    /// The time, which is known already.
    pub fn duration(&self) -> Duration {
        self.ticks.duration()
    }
}

impl Device {
    /// Runs `func` and measures from its start to the end of what it started on this device.
    ///
    /// # Errors
    /// As for [`Device::sync`].
    ///
    /// ```
    /// use kiln_tensor::Device;
    /// let (sum, time) = Device::default().profile(|| 1 + 1).unwrap();
    /// assert!(sum == 2 && time.duration().as_secs() < 60);
    /// ```
    pub fn profile<O: Send + 'static>(&self, func: impl FnOnce() -> O + Send) -> Result<(O, ProfileDuration), ExecutionError> {
        self.profile_with(ProfileOptions::default().flush(), func)
    }

    /// [`Device::profile`] with options.
    ///
    /// # Errors
    /// As for [`Device::sync`].
    pub fn profile_with<O: Send + 'static>(
        &self,
        options: ProfileOptions,
        func: impl FnOnce() -> O + Send,
    ) -> Result<(O, ProfileDuration), ExecutionError> {
        if options.flushes() {
            self.sync()?;
        }
        let start = Instant::now();
        let output = func();
        self.sync()?;
        Ok((output, ProfileDuration::new_system_time(start, Instant::now())))
    }
}
