//! The data loader that works on threads of its own.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use kiln_tensor::Device;
use rand::rngs::StdRng;

use super::batcher::Batcher;
use super::source::Source;
use super::workers::Workers;
use super::{BatchStrategy, DataLoader, DataLoaderIterator, Dataset};

/// A data loader whose worker threads read and batch items ahead. The threads start with the first epoch and live as long as the loader.
/// Its batches are those of [`BatchDataLoader`](super::BatchDataLoader), in the same order.
pub struct MultiThreadDataLoader<I, O> {
    source: Source<I, O>,
    num_threads: usize,
    workers: OnceLock<Workers<I, O>>,
}

impl<I, O> MultiThreadDataLoader<I, O>
where
    I: Send + Sync + Clone + 'static,
    O: Send + 'static,
{
    /// As [`BatchDataLoader::new`](super::BatchDataLoader::new), on `num_threads` threads (at least one).
    pub fn new(
        strategy: Box<dyn BatchStrategy<I>>,
        dataset: Arc<dyn Dataset<I>>,
        batcher: Arc<dyn Batcher<I, O>>,
        num_threads: usize,
        device: Device,
        rng: Option<StdRng>,
    ) -> Self {
        Self::from_source(Source::new(strategy, dataset, batcher, device, rng), num_threads.max(1))
    }

    fn from_source(source: Source<I, O>, num_threads: usize) -> Self {
        Self { source, num_threads, workers: OnceLock::new() }
    }
}

impl<I, O> DataLoader<O> for MultiThreadDataLoader<I, O>
where
    I: Send + Sync + Clone + 'static,
    O: Send + 'static + Debug,
{
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        let workers = self.workers.get_or_init(|| Workers::start(self.source.clone(), self.num_threads));
        Box::new(workers.iter())
    }

    fn num_items(&self) -> usize {
        self.source.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self::from_source(self.source.on_device(device), self.num_threads))
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self::from_source(self.source.slice(start, end), self.num_threads))
    }
}
