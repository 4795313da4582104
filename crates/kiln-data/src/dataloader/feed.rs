//! The items of one epoch, handed out in order to whoever asks, on any thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::BatchStrategy;
use crate::dataset::{Dataset, DatasetError};

/// Some consecutive items of an epoch, grouped into batches.
pub(super) struct Taken<I> {
    /// The place of these items in the order of all that is taken: 0, 1, 2, ...
    pub(super) position: usize,
    /// The number of items, readable or not.
    pub(super) items: usize,
    pub(super) batches: Result<Vec<Vec<I>>, DatasetError>,
}

/// The items of one epoch.
pub(super) struct Feed<I> {
    dataset: Arc<dyn Dataset<I>>,
    len: usize,
    /// The order in which items are read, unless that is the dataset's own.
    order: Option<Vec<usize>>,
    grouping: Grouping<I>,
}

enum Grouping<I> {
    /// Every `size` items are taken at once, each time with a fresh copy of the strategy: reading needs no lock.
    Chunks { strategy: Box<dyn BatchStrategy<I>>, size: usize, next: AtomicUsize },
    /// Where a batch ends depends on its items: they are read one after another.
    Stream(Mutex<Stream<I>>),
}

struct Stream<I> {
    strategy: Box<dyn BatchStrategy<I>>,
    /// The number of items read.
    read: usize,
    /// The number of items read since the last batch.
    pending: usize,
    position: usize,
}

impl<I> Feed<I> {
    pub(super) fn new(dataset: Arc<dyn Dataset<I>>, strategy: Box<dyn BatchStrategy<I>>, order: Option<Vec<usize>>) -> Self {
        let len = order.as_ref().map_or_else(|| dataset.len(), Vec::len);
        let grouping = match strategy.batch_size() {
            Some(size) if size > 0 => Grouping::Chunks { strategy, size, next: AtomicUsize::new(0) },
            _ => Grouping::Stream(Mutex::new(Stream { strategy, read: 0, pending: 0, position: 0 })),
        };
        Self { dataset, len, order, grouping }
    }

    /// The index in the dataset of the epoch's item `at`.
    fn index(&self, at: usize) -> usize {
        self.order.as_ref().map_or(at, |order| order[at])
    }

    /// Takes the next items, or `None` if there are no more.
    pub(super) fn take(&self) -> Option<Taken<I>> {
        match &self.grouping {
            Grouping::Chunks { strategy, size, next } => {
                let position = next.fetch_add(1, Ordering::Relaxed);
                let start = position.checked_mul(*size).filter(|start| *start < self.len)?;
                let end = start.saturating_add(*size).min(self.len);
                let indexes = (start..end).map(|at| self.index(at)).collect();
                let batches = self.dataset.get_many(indexes).map(|items| group(strategy.clone_dyn(), items));
                Some(Taken { position, items: end - start, batches })
            }
            Grouping::Stream(stream) => {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                self.next_of_stream(&mut stream)
            }
        }
    }

    fn next_of_stream(&self, stream: &mut Stream<I>) -> Option<Taken<I>> {
        let (items, batches) = loop {
            if stream.read == self.len {
                let batch = stream.strategy.batch(true).filter(|batch| !batch.is_empty())?;
                break (stream.pending, Ok(vec![batch]));
            }
            let item = self.dataset.get(self.index(stream.read));
            stream.read += 1;
            match item {
                Ok(item) => stream.strategy.add(item),
                Err(error) => break (1, Err(error)),
            }
            stream.pending += 1;
            if let Some(batch) = stream.strategy.batch(false) {
                break (stream.pending, Ok(vec![batch]));
            }
        };
        if batches.is_ok() {
            stream.pending = 0;
        }
        let position = stream.position;
        stream.position += 1;
        Some(Taken { position, items, batches })
    }
}

/// The batches that a strategy makes of items.
fn group<I>(mut strategy: Box<dyn BatchStrategy<I>>, items: Vec<I>) -> Vec<Vec<I>> {
    let mut batches = Vec::with_capacity(1);
    for item in items {
        strategy.add(item);
        batches.extend(strategy.batch(false));
    }
    // An empty batch means that nothing is left, as `None` does.
    while let Some(batch) = strategy.batch(true).filter(|batch| !batch.is_empty()) {
        batches.push(batch);
    }
    batches
}
