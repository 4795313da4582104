//! `kiln devices`: the devices of this machine.

use kiln_tensor::{DType, Device, DeviceFilter};

use crate::layout::{size, table};

/// The float types whose support differs between devices.
const FLOATS: [DType; 4] = [DType::F64, DType::F32, DType::F16, DType::BF16];

/// A table of the devices, the default one marked.
pub fn list() -> String {
    let default = Device::default();
    let mut rows = vec![["", "kind", "name", "floats", "memory"].map(String::from).to_vec()];
    for device in Device::enumerate(DeviceFilter::new()) {
        let info = device.info();
        let mark = if device == default { "*" } else { "" };
        let floats: Vec<&str> = FLOATS.iter().filter(|dtype| device.supports_dtype(**dtype)).map(DType::name).collect();
        let memory = if info.memory == 0 { "unknown".into() } else { size(info.memory as usize) };
        rows.push(vec![mark.into(), info.kind.into(), info.name, floats.join(" "), memory]);
    }
    let mut text = String::new();
    table(&rows, 4, &mut text);
    text.push_str("\n* is the default device.\n");
    text
}
