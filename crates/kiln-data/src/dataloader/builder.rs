//! How a data loader is set up.

use std::fmt::Debug;
use std::sync::Arc;

use kiln_tensor::Device;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::batcher::Batcher;
use super::{BatchDataLoader, BatchStrategy, DataLoader, Dataset, FixBatchStrategy, MultiThreadDataLoader};

/// Sets up a data loader. By default: batches of one item, in the dataset's order, made on the calling thread, on the default device.
///
/// ```
/// use kiln_data::dataloader::{DataLoaderBuilder, batcher::Batcher};
/// use kiln_data::dataset::{DatasetError, InMemDataset};
/// use kiln_tensor::Device;
///
/// struct Sum;
///
/// impl Batcher<u32, u32> for Sum {
///     fn batch(&self, items: Vec<u32>, _device: &Device) -> u32 {
///         items.iter().sum()
///     }
/// }
///
/// let loader = DataLoaderBuilder::new(Sum).batch_size(2).num_workers(2).build(InMemDataset::new(vec![1, 2, 3, 4, 5]));
/// let sums: Vec<u32> = loader.iter().collect::<Result<_, DatasetError>>()?;
/// assert_eq!(sums, [3, 7, 5]);
/// # Ok::<(), DatasetError>(())
/// ```
pub struct DataLoaderBuilder<I, O> {
    batcher: Arc<dyn Batcher<I, O>>,
    strategy: Option<Box<dyn BatchStrategy<I>>>,
    seed: Option<u64>,
    num_workers: usize,
    device: Option<Device>,
}

impl<I, O> DataLoaderBuilder<I, O>
where
    I: Send + Sync + Clone + Debug + 'static,
    O: Send + Clone + Debug + 'static,
{
    /// A loader whose batches `batcher` makes.
    pub fn new<Bt>(batcher: Bt) -> Self
    where
        Bt: Batcher<I, O> + 'static,
    {
        Self { batcher: Arc::new(batcher), strategy: None, seed: None, num_workers: 0, device: None }
    }

    /// The number of items in a batch; the last batch of an epoch may have fewer.
    ///
    /// # Panics
    ///
    /// If it is zero.
    #[track_caller]
    pub fn batch_size(self, batch_size: usize) -> Self {
        Self { strategy: Some(Box::new(FixBatchStrategy::new(batch_size))), ..self }
    }

    /// Shuffles: each epoch is in another random order, and all of them depend on `seed` alone.
    pub fn shuffle(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// The number of worker threads that make batches ahead; with 0 they are made on the calling thread when asked for. It does not change
    /// what is yielded.
    pub fn num_workers(self, num_workers: usize) -> Self {
        Self { num_workers, ..self }
    }

    /// The device that batches are made on.
    pub fn set_device(self, device: Device) -> Self {
        Self { device: Some(device), ..self }
    }

    /// The loader of `dataset`.
    pub fn build<D>(self, dataset: D) -> Arc<dyn DataLoader<O>>
    where
        D: Dataset<I> + 'static,
    {
        let strategy = self.strategy.unwrap_or_else(|| Box::new(FixBatchStrategy::new(1)));
        let device = self.device.unwrap_or_default();
        let rng = self.seed.map(StdRng::seed_from_u64);
        let dataset: Arc<dyn Dataset<I>> = Arc::new(dataset);
        match self.num_workers {
            0 => Arc::new(BatchDataLoader::new(strategy, dataset, self.batcher, device, rng)),
            workers => Arc::new(MultiThreadDataLoader::new(strategy, dataset, self.batcher, workers, device, rng)),
        }
    }
}
