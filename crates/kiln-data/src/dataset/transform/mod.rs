//! Datasets made from other datasets: one file each.

mod composed;
mod mapper;
mod partial;
mod random;
mod sampler;
mod selection;
mod shuffled;
mod size;
mod window;

pub use composed::ComposedDataset;
pub use mapper::{Mapper, MapperDataset};
pub use partial::PartialDataset;
pub use random::RngSource;
pub use sampler::{SamplerDataset, SamplerDatasetOptions};
pub use selection::{SelectionDataset, iota, shuffled_indices};
pub use shuffled::ShuffledDataset;
pub use size::SizeConfig;
pub use window::{Window, Windows, WindowsDataset, WindowsIterator};

pub(crate) use random::below;

/// The bounds `(start, end)` of `parts` parts of `0..len` that differ in size by at most one, larger parts first.
pub(crate) fn even_parts(len: usize, parts: usize) -> impl Iterator<Item = (usize, usize)> {
    let (size, larger) = (len / parts.max(1), len % parts.max(1));
    (0..parts).map(move |part| {
        let start = part * size + part.min(larger);
        (start, start + size + usize::from(part < larger))
    })
}
