//! A dataset whose items are computed from another's.

use std::error::Error;
use std::marker::PhantomData;

use super::super::Dataset;

/// A function from item to item.
pub trait Mapper<I, O>: Send + Sync {
    /// Computes the new item.
    fn map(&self, item: &I) -> O;
}

/// A dataset whose items are those of another one, mapped when read.
pub struct MapperDataset<D, M, I> {
    dataset: D,
    mapper: M,
    input: PhantomData<I>,
}

impl<D, M, I> MapperDataset<D, M, I> {
    /// Maps each item of `dataset` by `mapper`.
    pub fn new(dataset: D, mapper: M) -> Self {
        Self { dataset, mapper, input: PhantomData }
    }
}

impl<D, M, I, O, E> Dataset<O, E> for MapperDataset<D, M, I>
where
    D: Dataset<I, E>,
    M: Mapper<I, O> + Send + Sync,
    I: Send + Sync,
    O: Send + Sync,
    E: Error + Send + Sync + 'static,
{
    fn get(&self, index: usize) -> Result<O, E> {
        self.dataset.get(index).map(|item| self.mapper.map(&item))
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<O>, E> {
        let items = self.dataset.get_many(indexes)?;
        Ok(items.iter().map(|item| self.mapper.map(item)).collect())
    }

    fn len(&self) -> usize {
        self.dataset.len()
    }
}
