//! Chosen items of a dataset, in a chosen order.

use std::marker::PhantomData;
use std::sync::Arc;

use rand::rngs::StdRng;

use super::super::{Dataset, DatasetError, check_index};
use super::{RngSource, below, even_parts};

/// The numbers `0..size`.
pub fn iota(size: usize) -> Vec<usize> {
    (0..size).collect()
}

/// The numbers `0..size` in random order: the Fisher–Yates shuffle, which draws the same order on every platform.
pub fn shuffled_indices(size: usize, rng: &mut StdRng) -> Vec<usize> {
    let mut indices = iota(size);
    shuffle(&mut indices, rng);
    indices
}

fn shuffle(indices: &mut [usize], rng: &mut StdRng) {
    for last in (1..indices.len()).rev() {
        indices.swap(last, below(last + 1, rng));
    }
}

/// The items of a dataset at given indexes, in the order of the indexes. The dataset itself is shared, not copied.
pub struct SelectionDataset<D, I>
where
    D: Dataset<I>,
    I: Clone + Send + Sync,
{
    /// The dataset selected from.
    pub wrapped: Arc<D>,
    /// The indexes selected, in order; an index may stand there several times.
    pub indices: Vec<usize>,
    item: PhantomData<I>,
}

impl<D, I> SelectionDataset<D, I>
where
    D: Dataset<I>,
    I: Clone + Send + Sync,
{
    /// Selects `indices` of `dataset`.
    ///
    /// # Panics
    ///
    /// If an index is out of range.
    #[track_caller]
    pub fn from_indices_checked<S>(dataset: S, indices: Vec<usize>) -> Self
    where
        S: Into<Arc<D>>,
    {
        let wrapped = dataset.into();
        let len = wrapped.len();
        if let Some(index) = indices.iter().find(|index| **index >= len) {
            panic!("selection: index {index} out of range for a dataset of {len} items");
        }
        Self::from_indices_unchecked(wrapped, indices)
    }

    /// Selects `indices` of `dataset`, which must be in range: one that is not panics when its item is read.
    pub fn from_indices_unchecked<S>(dataset: S, indices: Vec<usize>) -> Self
    where
        S: Into<Arc<D>>,
    {
        Self { wrapped: dataset.into(), indices, item: PhantomData }
    }

    /// Selects every item of `dataset`, in order.
    pub fn new_select_all<S>(dataset: S) -> Self
    where
        S: Into<Arc<D>>,
    {
        let wrapped = dataset.into();
        let indices = iota(wrapped.len());
        Self::from_indices_unchecked(wrapped, indices)
    }

    /// Selects every item of `dataset`, in random order.
    pub fn new_shuffled<S, R>(dataset: S, rng_source: R) -> Self
    where
        S: Into<Arc<D>>,
        R: Into<RngSource>,
    {
        let mut selection = Self::new_select_all(dataset);
        selection.shuffle(rng_source);
        selection
    }

    /// Brings the selected indexes into random order.
    pub fn shuffle<R>(&mut self, rng_source: R)
    where
        R: Into<RngSource>,
    {
        shuffle(&mut self.indices, &mut rng_source.into().into());
    }

    /// The selected items from `start` to before `end`, of the same dataset.
    ///
    /// # Panics
    ///
    /// If `start..end` is not a range of the selection.
    #[track_caller]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        assert!(start <= end && end <= self.indices.len(), "slice: {start}..{end} is no range of a selection of {} items", self.indices.len());
        Self::from_indices_unchecked(Arc::clone(&self.wrapped), self.indices[start..end].to_vec())
    }

    /// Splits the selection into `num` contiguous parts whose sizes differ by at most one.
    pub fn split(&self, num: usize) -> Vec<Self> {
        even_parts(self.indices.len(), num).map(|(start, end)| self.slice(start, end)).collect()
    }
}

impl<D, I> Clone for SelectionDataset<D, I>
where
    D: Dataset<I>,
    I: Clone + Send + Sync,
{
    fn clone(&self) -> Self {
        Self::from_indices_unchecked(Arc::clone(&self.wrapped), self.indices.clone())
    }
}

impl<D, I> Dataset<I> for SelectionDataset<D, I>
where
    D: Dataset<I>,
    I: Clone + Send + Sync,
{
    fn get(&self, index: usize) -> Result<I, DatasetError> {
        check_index(index, self.indices.len());
        self.wrapped.get(self.indices[index])
    }

    fn get_many(&self, mut indexes: Vec<usize>) -> Result<Vec<I>, DatasetError> {
        for index in &mut indexes {
            check_index(*index, self.indices.len());
            *index = self.indices[*index];
        }
        self.wrapped.get_many(indexes)
    }

    fn len(&self) -> usize {
        self.indices.len()
    }
}
