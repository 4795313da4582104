//! Several datasets, one after another.

use std::error::Error;

use super::super::{Dataset, out_of_range};

/// Several datasets of one type, one after another.
pub struct ComposedDataset<D> {
    datasets: Vec<D>,
}

impl<D> ComposedDataset<D> {
    /// Chains `datasets` in the order given.
    pub fn new(datasets: Vec<D>) -> Self {
        Self { datasets }
    }
}

impl<D, I, E> Dataset<I, E> for ComposedDataset<D>
where
    D: Dataset<I, E>,
    I: Clone,
    E: Error + Send + Sync + 'static,
{
    fn get(&self, index: usize) -> Result<I, E> {
        let mut left = index;
        for dataset in &self.datasets {
            let len = dataset.len();
            if left < len {
                return dataset.get(left);
            }
            left -= len;
        }
        out_of_range(index, index - left)
    }

    fn len(&self) -> usize {
        self.datasets.iter().map(Dataset::len).sum()
    }
}
