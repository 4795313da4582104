//! Table: the built-in devices, and how they are named and listed.
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{BitOr, Deref};

use kiln_ir::Runtime;

use super::{Context, Device, DeviceConfig, DeviceError, DeviceState};
use crate::host::HostRuntime;
use crate::lock::Mutex;

/// A kind of built-in device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceType {
    /// NVIDIA GPUs.
    #[cfg(feature = "cuda")]
    Cuda,
    /// The CPU.
    Flex,
    /// The scalar interpreter.
    #[doc(hidden)]
    Reference,
}

/// One kind of device: a backend adds its row here.
struct Row {
    device_type: DeviceType,
    kind: &'static str,
    interpret: bool,
    /// The runtime of device `index`, or `None` if the machine has no such device.
    open: fn(index: usize) -> Option<Arc<dyn Runtime>>,
    /// Devices by number, as far as they have been asked for.
    opened: Mutex<Vec<Option<&'static DeviceState>>>,
}

/// The kinds in order of preference: the first that the machine has is the default.
static ROWS: [Row; 1 + cfg!(feature = "cpu") as usize + cfg!(feature = "cuda") as usize] = [
    #[cfg(feature = "cuda")]
    Row {
        device_type: DeviceType::Cuda,
        kind: "cuda",
        interpret: false,
        open: |index| kiln_cuda::CudaRuntime::open(index).ok().map(|runtime| runtime as Arc<dyn Runtime>),
        opened: Mutex::new(Vec::new()),
    },
    #[cfg(feature = "cpu")]
    Row {
        device_type: DeviceType::Flex,
        kind: "cpu",
        interpret: false,
        open: |index| (index == 0).then(|| kiln_cpu::CpuRuntime::global() as Arc<dyn Runtime>),
        opened: Mutex::new(Vec::new()),
    },
    Row {
        device_type: DeviceType::Reference,
        kind: "reference",
        interpret: true,
        open: |index| (index == 0).then(|| Arc::new(HostRuntime::new()) as Arc<dyn Runtime>),
        opened: Mutex::new(Vec::new()),
    },
];

impl Row {
    /// Device number `index`. One that is not there is looked for again at the next call.
    fn device(&self, index: usize) -> Option<Device> {
        let mut opened = self.opened.lock();
        let state = match opened.get(index).copied().flatten() {
            Some(state) => state,
            None => {
                let state = DeviceState::leak(self.kind, index, (self.open)(index)?, self.interpret || interpret_everything());
                if opened.len() <= index {
                    opened.resize(index + 1, None);
                }
                opened[index] = Some(state);
                state
            }
        };
        Some(Device { state, context: Context::default() })
    }
}

/// Whether the user asked for every trace to be executed by the interpreter.
fn interpret_everything() -> bool {
    #[cfg(feature = "std")]
    return std::env::var_os("KILN_INTERPRET").is_some_and(|v| v != "0");
    #[cfg(not(feature = "std"))]
    return false;
}

fn of_type(device_type: DeviceType) -> Option<Device> {
    ROWS.iter().find(|r| r.device_type == device_type).and_then(|r| r.device(0))
}

/// The place of a kind among those built in; behind them for another runtime's.
pub(super) fn kind_number(kind: &str) -> u16 {
    ROWS.iter().position(|row| row.kind == kind).unwrap_or(ROWS.len()) as u16
}

pub(super) fn enumerate(filter: DeviceFilter) -> Devices {
    let wanted = |r: &&Row| filter.0.is_empty() || filter.0.contains(&r.device_type);
    Devices(ROWS.iter().filter(wanted).flat_map(|r| (0..).map_while(|index| r.device(index))).collect())
}

impl Device {
    /// The CPU.
    ///
    /// Set `KILN_INTERPRET=1` to have every trace executed by the scalar interpreter instead of compiled kernels: slow, and a good way to tell a wrong
    /// program from a wrong kernel.
    ///
    /// # Panics
    /// If Kiln was built without the feature `cpu`.
    #[track_caller]
    pub fn flex() -> Self {
        of_type(DeviceType::Flex).expect("device: built without the feature `cpu`")
    }

    /// The CPU: the same device as [`Device::flex`].
    ///
    /// # Panics
    /// If Kiln was built without the feature `cpu`.
    #[track_caller]
    pub fn cpu() -> Self {
        Self::flex()
    }

    /// Whether this is the CPU runtime.
    #[cfg(feature = "cpu")]
    pub(crate) fn is_cpu(&self) -> bool {
        ROWS.iter().any(|row| row.device_type == DeviceType::Flex && row.kind == self.state.kind)
    }

    /// NVIDIA GPU number `index`, in the driver's order. Its libraries (driver, NVRTC, cuBLASLt) are loaded now.
    ///
    /// # Panics
    /// If the machine has no such GPU; the message names the library, driver or device that is missing.
    #[cfg(feature = "cuda")]
    #[track_caller]
    pub fn cuda(index: impl Into<DeviceIndex>) -> Self {
        Self::cuda_number(index.into())
    }

    #[cfg(feature = "cuda")]
    #[track_caller]
    fn cuda_number(index: DeviceIndex) -> Self {
        let number = match index {
            DeviceIndex::Specified(number) => number,
            DeviceIndex::Default => 0,
        };
        let row = ROWS.iter().find(|r| r.device_type == DeviceType::Cuda).and_then(|r| r.device(number));
        row.unwrap_or_else(|| match kiln_cuda::CudaRuntime::open(number) {
            Err(e) => panic!("device: cuda {number}: {e}"),
            Ok(_) => panic!("device: cuda {number}: not available a moment ago"),
        })
    }

    /// A device that executes every trace node by node in plain scalar code: slow, and the oracle that other devices are compared with.
    pub fn reference() -> Self {
        of_type(DeviceType::Reference).expect("the reference device needs nothing")
    }
}

impl Default for Device {
    /// The device that the environment variable `BURN_DEVICE` names (`flex` or `cpu`, `cuda`, `cuda:1`), else the preferred one of those that were built in and that the
    /// machine has: a GPU before the CPU.
    ///
    /// # Panics
    /// When the variable names a device that is not there.
    fn default() -> Self {
        #[cfg(feature = "std")]
        if let Some(name) = chosen_by_user() {
            return match named(name) {
                Some(device) => device,
                None => {
                    let known = ROWS.iter().map(|r| r.kind).collect::<Vec<_>>().join(", ");
                    panic!("device: BURN_DEVICE is {name:?}, which is not there: built in are {known}")
                }
            };
        }
        ROWS.iter().find_map(|r| r.device(0)).expect("the reference device needs nothing")
    }
}

/// What the user's environment names, read once.
#[cfg(feature = "std")]
fn chosen_by_user() -> Option<&'static str> {
    static CHOSEN: std::sync::OnceLock<Option<alloc::string::String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("BURN_DEVICE").ok().filter(|name| !name.is_empty())).as_deref()
}

/// The device of a name such as `cpu` or `cuda:1`, in any case.
#[cfg(feature = "std")]
fn named(name: &str) -> Option<Device> {
    let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
    let kind = if kind.eq_ignore_ascii_case("flex") { "cpu" } else { kind };
    ROWS.iter().find(|r| r.kind.eq_ignore_ascii_case(kind))?.device(index.parse().ok()?)
}

/// Which kinds of device to list; empty: all.
#[derive(Clone, Debug, Default)]
pub struct DeviceFilter(Vec<DeviceType>);

impl DeviceFilter {
    /// All devices.
    pub fn new() -> Self {
        Self::default()
    }

    /// Also devices of this kind.
    pub fn with(mut self, device_type: DeviceType) -> Self {
        self.0.push(device_type);
        self
    }
}

impl From<DeviceType> for DeviceFilter {
    fn from(device_type: DeviceType) -> Self {
        DeviceFilter(vec![device_type])
    }
}

impl From<Vec<DeviceType>> for DeviceFilter {
    fn from(types: Vec<DeviceType>) -> Self {
        DeviceFilter(types)
    }
}

impl BitOr<DeviceType> for DeviceFilter {
    type Output = DeviceFilter;
    fn bitor(self, device_type: DeviceType) -> DeviceFilter {
        self.with(device_type)
    }
}

impl BitOr for DeviceType {
    type Output = DeviceFilter;
    fn bitor(self, other: DeviceType) -> DeviceFilter {
        DeviceFilter(vec![self, other])
    }
}

impl IntoIterator for DeviceFilter {
    type Item = DeviceType;
    type IntoIter = vec::IntoIter<DeviceType>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A list of devices.
#[derive(Clone, Debug)]
pub struct Devices(Vec<Device>);

impl Devices {
    /// The same devices with autodiff.
    pub fn autodiff(self) -> Self {
        self.0.into_iter().map(Device::autodiff).collect()
    }

    /// The same devices without autodiff.
    pub fn without_autodiff(self) -> Self {
        self.0.into_iter().map(Device::without_autodiff).collect()
    }

    /// Configures each.
    ///
    /// # Errors
    /// The first that fails, as [`Device::configure`] says.
    pub fn configure(&mut self, config: impl Into<DeviceConfig>) -> Result<(), DeviceError> {
        let config = config.into();
        self.0.iter_mut().try_for_each(|d| d.configure(config.clone()))
    }

    /// The devices.
    pub fn into_vec(self) -> Vec<Device> {
        self.0
    }
}

impl From<Vec<Device>> for Devices {
    fn from(devices: Vec<Device>) -> Self {
        Devices(devices)
    }
}

impl Deref for Devices {
    type Target = [Device];
    fn deref(&self) -> &[Device] {
        &self.0
    }
}

impl IntoIterator for Devices {
    type Item = Device;
    type IntoIter = vec::IntoIter<Device>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Which of several equal devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceIndex {
    /// This one.
    Specified(usize),
    /// The one the system prefers.
    #[default]
    Default,
}

impl DeviceIndex {
    /// Device number `index`.
    pub fn new(index: impl Into<usize>) -> Self {
        DeviceIndex::Specified(index.into())
    }
}

impl From<usize> for DeviceIndex {
    fn from(index: usize) -> Self {
        DeviceIndex::Specified(index)
    }
}

impl From<u32> for DeviceIndex {
    fn from(index: u32) -> Self {
        DeviceIndex::Specified(index as usize)
    }
}

impl From<u64> for DeviceIndex {
    fn from(index: u64) -> Self {
        DeviceIndex::Specified(index as usize)
    }
}

impl From<i32> for DeviceIndex {
    #[track_caller]
    fn from(index: i32) -> Self {
        match usize::try_from(index) {
            Ok(index) => DeviceIndex::Specified(index),
            Err(_) => panic!("device: the index {index} is negative"),
        }
    }
}

impl From<i64> for DeviceIndex {
    #[track_caller]
    fn from(index: i64) -> Self {
        match usize::try_from(index) {
            Ok(index) => DeviceIndex::Specified(index),
            Err(_) => panic!("device: the index {index} is negative"),
        }
    }
}

/// A kind of graphics device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// Dedicated graphics card of this number.
    DiscreteGpu(usize),
    /// Graphics unit of this number that shares the processor's memory.
    IntegratedGpu(usize),
    /// Virtual graphics device of this number.
    VirtualGpu(usize),
    /// Software rendering.
    Cpu,
    /// The one the system prefers.
    #[default]
    DefaultDevice,
    /// One that the application has set up and registered under this number.
    Existing(u32),
}
