//! The GPUs of the machine: what they are, and the context, streams and pinned memory of one.
use std::ffi::{CStr, c_char};
use std::ptr::null_mut;

use kiln_ir::{MatmulPrecision, RuntimeError};

use crate::driver::{Driver, Handle};
use crate::library::MissingLibrary;
use crate::steps::Chip;

/// Attributes of a device, by the driver's numbers.
const MULTIPROCESSORS: i32 = 16;
const MAJOR: i32 = 75;
const MINOR: i32 = 76;
const SHARED_OPTIN: i32 = 97;

/// Why there is no such device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// A library is missing.
    Missing(MissingLibrary),
    /// The driver is there and finds no GPU it can use.
    NoDevice(String),
    /// There are fewer devices.
    Index {
        /// The device asked for.
        index: usize,
        /// Devices there are.
        count: usize,
    },
    /// A GPU older than compute capability 8.0.
    TooOld(String),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Missing(missing) => missing.fmt(f),
            OpenError::NoDevice(why) => write!(f, "the NVIDIA driver finds no GPU: {why}"),
            OpenError::Index { index, count } => write!(f, "there is no GPU {index}: the machine has {count}"),
            OpenError::TooOld(name) => write!(f, "{name} is older than compute capability 8.0"),
        }
    }
}

impl std::error::Error for OpenError {}

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Marketing name.
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    /// What rendering must know.
    pub chip: Chip,
    /// The driver's number.
    device: i32,
}

/// Number of GPUs.
///
/// # Errors
/// The driver is missing or does not start.
pub fn count() -> Result<usize, OpenError> {
    let driver = Driver::get().map_err(OpenError::Missing)?;
    let mut count = 0;
    // SAFETY: `count` is valid for the call.
    let code = unsafe {
        match (driver.cuInit)(0) {
            0 => (driver.cuDeviceGetCount)(&mut count),
            code => code,
        }
    };
    if code == 0 { Ok(count as usize) } else { Err(OpenError::NoDevice(driver.name(code))) }
}

/// GPU number `index`.
///
/// # Errors
/// As [`count`]; a number that is too large.
pub fn gpu(index: usize) -> Result<Gpu, OpenError> {
    let count = count()?;
    if index >= count {
        return Err(if count == 0 { OpenError::NoDevice("it has none".into()) } else { OpenError::Index { index, count } });
    }
    let driver = Driver::get().map_err(OpenError::Missing)?;
    let (mut device, mut memory, mut name) = (0, 0usize, [0u8; 256]);
    // SAFETY: every place is valid for its call, and the name's length is given.
    unsafe {
        (driver.cuDeviceGet)(&mut device, index as i32);
        (driver.cuDeviceTotalMem_v2)(&mut memory, device);
        (driver.cuDeviceGetName)(name.as_mut_ptr().cast::<c_char>(), name.len() as i32, device);
    }
    let attribute = |which: i32| {
        let mut value = 0;
        // SAFETY: `value` is valid for the call.
        unsafe { (driver.cuDeviceGetAttribute)(&mut value, which, device) };
        value as u32
    };
    let name = CStr::from_bytes_until_nul(&name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let chip = Chip {
        sm: attribute(MAJOR) * 10 + attribute(MINOR),
        multiprocessors: attribute(MULTIPROCESSORS),
        shared_limit: attribute(SHARED_OPTIN) as usize,
        precision: MatmulPrecision::Highest,
    };
    if chip.sm < 80 {
        return Err(OpenError::TooOld(name));
    }
    Ok(Gpu { name, memory: memory as u64, chip, device })
}

/// The context of a GPU with a stream.
pub struct Context {
    /// The driver's functions.
    pub driver: &'static Driver,
    context: Handle,
    /// Where everything runs in order.
    pub stream: Handle,
    /// Streams beside it, for independent kernels of a launch.
    pub sides: Vec<Handle>,
    /// Events that order the streams: one for the fork, then one a side stream.
    pub events: Vec<Handle>,
}

// SAFETY: handles of the driver may be used from any thread; callers order their use of the streams.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Streams beside the main one.
const SIDES: usize = 7;

impl Context {
    /// The primary context of a GPU.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(gpu: &Gpu) -> Result<Self, RuntimeError> {
        let driver = Driver::get().map_err(|e| RuntimeError::Unsupported(e.to_string()))?;
        let mut this = Context { driver, context: null_mut(), stream: null_mut(), sides: Vec::new(), events: Vec::new() };
        const NON_BLOCKING: u32 = 1;
        const NO_TIMING: u32 = 2;
        // SAFETY: every place is valid for its call.
        unsafe {
            driver.check("cuDevicePrimaryCtxRetain", (driver.cuDevicePrimaryCtxRetain)(&mut this.context, gpu.device))?;
            this.enter()?;
            driver.check("cuStreamCreate", (driver.cuStreamCreate)(&mut this.stream, NON_BLOCKING))?;
            for _ in 0..SIDES {
                let mut side = null_mut();
                driver.check("cuStreamCreate", (driver.cuStreamCreate)(&mut side, NON_BLOCKING))?;
                this.sides.push(side);
            }
            for _ in 0..=SIDES {
                let mut event = null_mut();
                driver.check("cuEventCreate", (driver.cuEventCreate)(&mut event, NO_TIMING))?;
                this.events.push(event);
            }
        }
        Ok(this)
    }

    /// Makes this context the calling thread's.
    pub fn enter(&self) -> Result<(), RuntimeError> {
        // SAFETY: the context lives as long as the process.
        self.driver.check("cuCtxSetCurrent", unsafe { (self.driver.cuCtxSetCurrent)(self.context) })
    }

    /// Waits for everything launched.
    pub fn wait(&self) -> Result<(), RuntimeError> {
        // SAFETY: the stream lives as long as the process.
        self.driver.check("a kernel or copy", unsafe { (self.driver.cuStreamSynchronize)(self.stream) })
    }

    /// Memory of the host that the GPU reads and writes directly.
    pub fn pinned(&self, bytes: usize) -> Result<*mut u8, RuntimeError> {
        let mut place = null_mut();
        const PORTABLE_AND_MAPPED: u32 = 3;
        // SAFETY: `place` is valid for the call.
        self.driver.check("cuMemHostAlloc", unsafe { (self.driver.cuMemHostAlloc)(&mut place, bytes, PORTABLE_AND_MAPPED) })?;
        Ok(place)
    }
}

/// Runs of a candidate that are measured together, and how often all candidates are measured in turn.
const TRIALS: usize = 3;
const ROUNDS: usize = 3;

/// The least milliseconds that each of several candidates takes; infinity for one that fails at once. All are measured several times in turn: a GPU that comes from idling runs
/// slowly at first.
pub(crate) fn fastest_times(
    context: &Context,
    [start, end]: [Handle; 2],
    count: usize,
    mut run: impl FnMut(usize) -> Result<(), RuntimeError>,
) -> Result<Vec<f32>, RuntimeError> {
    let driver = context.driver;
    let mut times = vec![f32::INFINITY; count];
    let works: Vec<bool> = (0..count).map(|n| run(n).is_ok()).collect();
    for n in (0..ROUNDS).flat_map(|_| 0..count).filter(|n| works[*n]) {
        let mut ms = 0.0;
        // SAFETY: events and stream live as long as the process; both events have happened after the wait.
        unsafe {
            driver.check("cuEventRecord", (driver.cuEventRecord)(start, context.stream))?;
            for _ in 0..TRIALS {
                run(n)?;
            }
            driver.check("cuEventRecord", (driver.cuEventRecord)(end, context.stream))?;
            driver.check("a candidate", (driver.cuEventSynchronize)(end))?;
            driver.check("cuEventElapsedTime", (driver.cuEventElapsedTime)(&mut ms, start, end))?;
        }
        times[n] = times[n].min(ms);
    }
    Ok(times)
}

/// The candidate to take: a later one must be clearly faster than an earlier one, since times differ a little from run to run.
pub(crate) fn first_of_the_fastest(times: &[f32]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (n, ms) in times.iter().enumerate().filter(|(_, ms)| ms.is_finite()) {
        if best.is_none_or(|b| *ms < times[b] * 0.98) {
            best = Some(n);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::first_of_the_fastest;

    #[test]
    fn a_later_candidate_must_be_clearly_faster() {
        assert_eq!(first_of_the_fastest(&[f32::INFINITY, 2.0, 1.99, 1.5, f32::INFINITY, 1.48]), Some(3));
        assert_eq!(first_of_the_fastest(&[f32::INFINITY; 3]), None);
    }
}
