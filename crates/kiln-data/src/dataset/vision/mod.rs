//! Image datasets.

mod idx;
mod mnist;

pub use idx::IdxError;
pub use mnist::{MnistDataset, MnistItem};
