//! How long work on a device takes.
use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::Device;
use crate::ExecutionError;

/// A future whose type is not named.
pub type DynFut<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// By which clock a duration was measured.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub enum TimingMethod {
    /// The host's clock.
    System,
    /// The device's.
    Device,
}

impl fmt::Display for TimingMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimingMethod::System => "system",
            TimingMethod::Device => "device",
        })
    }
}

/// What is run before a measured function.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
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
    /// Work between two points of the host's clock.
    ///
    /// ```
    /// use kiln_tensor::ProfileTicks;
    /// use std::time::{Duration, Instant};
    /// let epoch = Instant::now();
    /// let ticks = ProfileTicks::from_start_end(epoch + Duration::from_secs(1), epoch + Duration::from_secs(3));
    /// assert_eq!(ticks.duration().as_secs(), 2);
    /// assert_eq!(ticks.end_duration_since(epoch).as_secs(), 3);
    /// ```
    pub fn from_start_end(start: Instant, end: Instant) -> Self {
        ProfileTicks { start, end }
    }

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

/// A duration that is measured, or will be once the work is done.
pub struct ProfileDuration {
    ticks: DynFut<Option<ProfileTicks>>,
    method: TimingMethod,
}

impl ProfileDuration {
    /// What a future says by the clock of `method`; `None` when it could not be measured.
    pub fn new(future: DynFut<Option<ProfileTicks>>, method: TimingMethod) -> ProfileDuration {
        ProfileDuration { ticks: future, method }
    }

    /// The time between two points of the host's clock.
    ///
    /// ```
    /// use kiln_tensor::{ProfileDuration, TimingMethod, read_sync};
    /// let now = std::time::Instant::now();
    /// let measured = ProfileDuration::new_system_time(now, now);
    /// assert_eq!(measured.timing_method(), TimingMethod::System);
    /// assert!(read_sync(measured.resolve()).unwrap().duration().is_zero());
    /// ```
    pub fn new_system_time(start: Instant, end: Instant) -> Self {
        Self::new(Box::pin(core::future::ready(Some(ProfileTicks::from_start_end(start, end)))), TimingMethod::System)
    }

    /// What a future says by the device's clock.
    pub fn new_device_time(future: impl Future<Output = ProfileTicks> + Send + 'static) -> ProfileDuration {
        Self::new_device_time_maybe(async move { Some(future.await) })
    }

    /// What a future says by the device's clock; `None` when it could not be measured.
    ///
    /// ```
    /// use kiln_tensor::{ProfileDuration, read_sync};
    /// assert!(read_sync(ProfileDuration::new_device_time_maybe(async { None }).resolve()).is_none());
    /// ```
    pub fn new_device_time_maybe(future: impl Future<Output = Option<ProfileTicks>> + Send + 'static) -> ProfileDuration {
        Self::new(Box::pin(future), TimingMethod::Device)
    }

    /// By which clock it is measured.
    pub fn timing_method(&self) -> TimingMethod {
        self.method
    }

    /// The measurement as a future.
    pub fn into_future(self) -> DynFut<Option<ProfileTicks>> {
        self.ticks
    }

    /// The measurement, once the work is done.
    pub async fn resolve(self) -> Option<ProfileTicks> {
        self.ticks.await
    }
}

impl fmt::Debug for ProfileDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileDuration({})", self.method)
    }
}

impl Device {
    /// Runs `func` and measures from its start to the end of what it started on this device.
    ///
    /// # Errors
    /// As for [`Device::sync`].
    ///
    /// ```
    /// use kiln_tensor::{Device, read_sync};
    /// let (sum, time) = Device::default().profile(|| 1 + 1).unwrap();
    /// assert!(sum == 2 && read_sync(time.resolve()).unwrap().duration().as_secs() < 60);
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
