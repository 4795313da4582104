//! One data loader for each of several devices.

use std::sync::Arc;

use kiln_tensor::Device;

use super::DataLoader;
use crate::dataset::transform::even_parts;

/// Splits the items of `dataloader` evenly into contiguous parts, one loader for each device.
pub fn split_dataloader<O>(dataloader: Arc<dyn DataLoader<O>>, devices: &[Device]) -> Vec<Arc<dyn DataLoader<O>>> {
    let part = |((start, end), device)| dataloader.slice(start, end).to_device(device);
    even_parts(dataloader.num_items(), devices.len()).zip(devices).map(part).collect()
}
