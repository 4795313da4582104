//! `DeviceId`: a device as two numbers.
use core::fmt;

use super::{Device, registry};

/// A device as two numbers: its kind's and its own among the devices of that kind.
///
/// ```
/// use kiln_tensor::{Device, DeviceId};
/// assert_eq!(Device::flex().id(), DeviceId::new(0, 0));
/// assert!(DeviceId::new(0, 1) < DeviceId::new(1, 0));
/// assert_eq!(DeviceId::new(1, 0).to_string(), "1:0");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct DeviceId {
    /// The kind's number.
    pub type_id: u16,
    /// The device's number among those of its kind.
    pub index_id: u16,
}

impl DeviceId {
    /// The device of these numbers.
    pub fn new(type_id: u16, index_id: u16) -> Self {
        DeviceId { type_id, index_id }
    }
}

impl Ord for DeviceId {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.type_id, self.index_id).cmp(&(other.type_id, other.index_id))
    }
}

impl PartialOrd for DeviceId {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.type_id, self.index_id)
    }
}

impl Device {
    /// The device as two numbers. The kind's number is its place among the kinds that were built in; devices of other runtimes share the next one.
    pub fn id(&self) -> DeviceId {
        DeviceId::new(registry::kind_number(self.state.kind), self.state.index as u16)
    }
}
