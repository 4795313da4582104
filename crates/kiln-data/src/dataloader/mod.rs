//! Data loaders: batches of a dataset's items, epoch after epoch.
//!
//! Every call of [`DataLoader::iter`] is an epoch. What an epoch yields depends on the dataset, the batch strategy and the seed, never on the
//! number of workers: [`MultiThreadDataLoader`] puts the batches that its workers finish back into order.

mod batch;
pub mod batcher;
mod builder;
mod feed;
mod multithread;
mod progress;
mod shuffle;
mod source;
pub mod split;
mod strategy;
mod workers;

use std::sync::Arc;

use kiln_tensor::Device;

pub use crate::dataset::{Dataset, DatasetError, DatasetIterator};
pub use batch::BatchDataLoader;
pub use builder::DataLoaderBuilder;
pub use multithread::MultiThreadDataLoader;
pub use progress::Progress;
pub use strategy::{BatchStrategy, FixBatchStrategy};

/// Iterates over the batches of an epoch. `None` only means that the epoch is over: a batch whose items cannot be read is `Some(Err(_))`, and
/// the iteration goes on behind them.
pub trait DataLoaderIterator<O>: Iterator<Item = Result<O, DatasetError>> {
    /// How far the epoch is.
    fn progress(&self) -> Progress;
}

/// Yields the batches of a dataset, epoch after epoch.
pub trait DataLoader<O>: Send + Sync {
    /// Begins an epoch.
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a>;

    /// The number of items in an epoch (of items, not of batches).
    fn num_items(&self) -> usize;

    /// The same loader, with its batches on another device.
    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>>;

    /// A loader of the items `start..end` of this one's dataset.
    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>>;
}
