//! A dataset in random order.

use super::super::{Dataset, DatasetError};
use super::{RngSource, SelectionDataset};

/// The items of a dataset in one random order, drawn when the dataset is made.
pub struct ShuffledDataset<D, I>
where
    D: Dataset<I>,
    I: Clone + Send + Sync,
{
    selection: SelectionDataset<D, I>,
}

impl<D, I> ShuffledDataset<D, I>
where
    D: Dataset<I>,
    I: Clone + Send + Sync,
{
    /// Shuffles `dataset` with a seed, a generator or the system's random numbers.
    pub fn new<R>(dataset: D, rng_source: R) -> Self
    where
        R: Into<RngSource>,
    {
        Self { selection: SelectionDataset::new_shuffled(dataset, rng_source) }
    }

    /// Shuffles `dataset` with a seed.
    #[deprecated(note = "use `ShuffledDataset::new(dataset, seed)`")]
    pub fn with_seed(dataset: D, seed: u64) -> Self {
        Self::new(dataset, seed)
    }
}

impl<D, I> Dataset<I> for ShuffledDataset<D, I>
where
    D: Dataset<I>,
    I: Clone + Send + Sync,
{
    fn get(&self, index: usize) -> Result<I, DatasetError> {
        self.selection.get(index)
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<I>, DatasetError> {
        self.selection.get_many(indexes)
    }

    fn len(&self) -> usize {
        self.selection.len()
    }
}
