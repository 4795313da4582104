//! The data loader that works on the calling thread.

use std::collections::VecDeque;
use std::sync::Arc;

use kiln_tensor::Device;
use rand::rngs::StdRng;

use super::batcher::Batcher;
use super::feed::Feed;
use super::source::{Made, Source};
use super::{BatchStrategy, DataLoader, DataLoaderIterator, Dataset, DatasetError, Progress};

/// A data loader that reads and batches items on the calling thread, when a batch is asked for.
pub struct BatchDataLoader<I, O> {
    source: Source<I, O>,
}

impl<I, O> BatchDataLoader<I, O> {
    /// Groups the items of `dataset` as `strategy` says and makes batches of them with `batcher` on `device`. With `rng`, each epoch is in
    /// another random order, else all are in the dataset's.
    pub fn new(
        strategy: Box<dyn BatchStrategy<I>>,
        dataset: Arc<dyn Dataset<I>>,
        batcher: Arc<dyn Batcher<I, O>>,
        device: Device,
        rng: Option<StdRng>,
    ) -> Self {
        Self { source: Source::new(strategy, dataset, batcher, device, rng) }
    }
}

impl<I, O> Clone for BatchDataLoader<I, O> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone() }
    }
}

impl<I, O> DataLoader<O> for BatchDataLoader<I, O>
where
    I: Send + Sync + Clone + 'static,
    O: Send + 'static,
{
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<O> + 'a> {
        let source = &self.source;
        Box::new(BatchIterator { source, feed: source.feed(), made: VecDeque::new(), progress: source.progress() })
    }

    fn num_items(&self) -> usize {
        self.source.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self { source: self.source.on_device(device) })
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<O>> {
        Arc::new(Self { source: self.source.slice(start, end) })
    }
}

struct BatchIterator<'a, I, O> {
    source: &'a Source<I, O>,
    feed: Feed<I>,
    /// Batches that were made together with one that was yielded.
    made: VecDeque<Made<O>>,
    progress: Progress,
}

impl<I, O> Iterator for BatchIterator<'_, I, O> {
    type Item = Result<O, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(Made { items, batch }) = self.made.pop_front() {
                self.progress.advance(items);
                return Some(batch);
            }
            self.made = self.source.make(self.feed.take()?).into();
        }
    }
}

impl<I, O> DataLoaderIterator<O> for BatchIterator<'_, I, O> {
    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}
