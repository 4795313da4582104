//! What the data loaders have in common: where items come from and how they become batches.

use std::sync::Arc;

use kiln_tensor::Device;
use rand::rngs::StdRng;

use super::batcher::Batcher;
use super::feed::{Feed, Taken};
use super::shuffle::Shuffle;
use super::{BatchStrategy, DatasetError, Progress};
use crate::dataset::Dataset;
use crate::dataset::transform::PartialDataset;

/// Where items come from and how they become batches.
pub(super) struct Source<I, O> {
    strategy: Box<dyn BatchStrategy<I>>,
    dataset: Arc<dyn Dataset<I>>,
    batcher: Arc<dyn Batcher<I, O>>,
    device: Device,
    shuffle: Option<Shuffle>,
}

/// A batch, or why there is none, and the number of items it stands for.
pub(super) struct Made<O> {
    pub(super) items: usize,
    pub(super) batch: Result<O, DatasetError>,
}

impl<I, O> Source<I, O> {
    pub(super) fn new(
        strategy: Box<dyn BatchStrategy<I>>,
        dataset: Arc<dyn Dataset<I>>,
        batcher: Arc<dyn Batcher<I, O>>,
        device: Device,
        rng: Option<StdRng>,
    ) -> Self {
        Self { strategy, dataset, batcher, device, shuffle: rng.map(Shuffle::new) }
    }

    pub(super) fn num_items(&self) -> usize {
        self.dataset.len()
    }

    pub(super) fn on_device(&self, device: &Device) -> Self {
        Self { device: device.clone(), ..self.clone() }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The items of a new epoch.
    pub(super) fn feed(&self) -> Feed<I> {
        let order = self.shuffle.as_ref().map(|shuffle| shuffle.next_order(self.dataset.len()));
        Feed::new(Arc::clone(&self.dataset), self.strategy.clone_dyn(), order)
    }

    /// The progress at the start of an epoch.
    pub(super) fn progress(&self) -> Progress {
        Progress::new(0, self.num_items(), Some("items".into()))
    }

    /// Makes the batches of items.
    pub(super) fn make(&self, taken: Taken<I>) -> Vec<Made<O>> {
        let make = |items: Vec<I>| Made { items: items.len(), batch: Ok(self.batcher.batch(items, &self.device)) };
        match taken.batches {
            Ok(batches) => batches.into_iter().map(make).collect(),
            Err(error) => vec![Made { items: taken.items, batch: Err(error) }],
        }
    }
}

impl<I, O> Source<I, O>
where
    I: Send + Sync + Clone + 'static,
{
    pub(super) fn slice(&self, start: usize, end: usize) -> Self {
        let dataset = PartialDataset::new(Arc::clone(&self.dataset), start, end);
        Self { dataset: Arc::new(dataset), ..self.clone() }
    }
}

impl<I, O> Clone for Source<I, O> {
    fn clone(&self) -> Self {
        Self {
            strategy: self.strategy.clone_dyn(),
            dataset: Arc::clone(&self.dataset),
            batcher: Arc::clone(&self.batcher),
            device: self.device.clone(),
            shuffle: self.shuffle.clone(),
        }
    }
}
