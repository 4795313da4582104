//! `capture`: a computation kept for running it again.

use crate::Device;

/// A computation and its last result. [`capture`] makes it.
///
/// A first run compiles the programs of what the closure records; later runs find them in the device's cache, so a replay costs the recording (about a tenth of a
/// microsecond an operation) and the kernels. The closure is called each time, so a replay reads whatever the tensors and values that it refers to hold by then, and its
/// result is a new tensor, where a device's own graph would overwrite the last one. A replay without the closure would have to know which of these reads are meant to vary;
/// the recording is what tells, and its cost is what [`is_hardware`](Graph::is_hardware) says `false` for.
pub struct Graph<T, F> {
    device: Device,
    closure: F,
    output: T,
}

impl<T, F> Graph<T, F>
where
    F: FnMut() -> T,
{
    /// Computes again, and returns the new result.
    ///
    /// # Safety
    /// Nothing needs to be upheld: the signature is that of frameworks whose replay writes into memory that the caller must keep alive.
    ///
    /// # Panics
    /// When the device fails.
    #[track_caller]
    pub unsafe fn replay(&mut self) -> &T {
        self.output = (self.closure)();
        run(&self.device);
        &self.output
    }

    /// The result of the last run.
    pub fn output(&self) -> &T {
        &self.output
    }

    /// Whether the device replays the whole computation as one unit of its own. Devices of this crate replay program by program.
    pub fn is_hardware(&self) -> bool {
        false
    }
}

/// Runs a computation on a device and keeps it for being run again.
///
/// ```
/// use kiln_tensor::{Device, Tensor, capture};
/// use std::cell::Cell;
/// let device = Device::default();
/// let (x, factor) = (Tensor::<1>::from_data([1.0, 2.0], &device), Cell::new(2.0));
/// let mut graph = capture(&device, || x.clone() * factor.get());
/// assert_eq!(graph.output().try_to_vec_as::<f32>().unwrap(), [2.0, 4.0]);
/// factor.set(3.0);
/// // SAFETY: a replay has no demands.
/// let again = unsafe { graph.replay() };
/// assert_eq!(again.try_to_vec_as::<f32>().unwrap(), [3.0, 6.0]);
/// ```
///
/// # Panics
/// When the device fails.
#[track_caller]
pub fn capture<T, F>(device: &Device, mut closure: F) -> Graph<T, F>
where
    F: FnMut() -> T,
{
    let output = closure();
    run(device);
    Graph { device: device.clone(), closure, output }
}

#[track_caller]
fn run(device: &Device) {
    if let Err(error) = device.flush() {
        panic!("capture: {device:?} failed: {error}");
    }
}
