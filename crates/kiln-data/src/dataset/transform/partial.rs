//! A contiguous range of a dataset.

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

use super::super::{Dataset, check_index};
use super::even_parts;

/// The items of a dataset from one index to another.
#[derive(Clone)]
pub struct PartialDataset<D, I> {
    dataset: D,
    start_index: usize,
    end_index: usize,
    item: PhantomData<I>,
}

impl<D, I> PartialDataset<D, I> {
    /// The items `start_index..end_index` of `dataset`; what lies behind its end is left out.
    pub fn new(dataset: D, start_index: usize, end_index: usize) -> Self {
        Self { dataset, start_index, end_index, item: PhantomData }
    }
}

impl<D, I> PartialDataset<D, I>
where
    D: Dataset<I>,
{
    /// Splits `dataset` into `num` contiguous parts whose sizes differ by at most one.
    pub fn split(dataset: D, num: usize) -> Vec<PartialDataset<Arc<D>, I>> {
        let dataset = Arc::new(dataset);
        even_parts(dataset.len(), num).map(|(start, end)| PartialDataset::new(Arc::clone(&dataset), start, end)).collect()
    }

    /// Splits `dataset` into `num` contiguous parts of whole batches, so that splitting makes no further incomplete batch: only the last
    /// non-empty part may end with one. Parts are empty where there are fewer batches than parts.
    ///
    /// # Panics
    ///
    /// If `batch_size` is zero.
    #[track_caller]
    pub fn split_chunks(dataset: D, num: usize, batch_size: usize) -> Vec<PartialDataset<Arc<D>, I>> {
        assert!(batch_size > 0, "split_chunks: batch size is zero");
        let dataset = Arc::new(dataset);
        let len = dataset.len();
        even_parts(len.div_ceil(batch_size), num)
            .map(|(start, end)| {
                let item = |batch: usize| (batch * batch_size).min(len);
                PartialDataset::new(Arc::clone(&dataset), item(start), item(end))
            })
            .collect()
    }
}

impl<D, I, E> Dataset<I, E> for PartialDataset<D, I>
where
    D: Dataset<I, E>,
    I: Clone + Send + Sync,
    E: Error + Send + Sync + 'static,
{
    fn get(&self, index: usize) -> Result<I, E> {
        check_index(index, self.len());
        self.dataset.get(self.start_index + index)
    }

    fn get_many(&self, mut indexes: Vec<usize>) -> Result<Vec<I>, E> {
        let len = self.len();
        for index in &mut indexes {
            check_index(*index, len);
            *index += self.start_index;
        }
        self.dataset.get_many(indexes)
    }

    fn len(&self) -> usize {
        self.end_index.min(self.dataset.len()).saturating_sub(self.start_index)
    }
}
