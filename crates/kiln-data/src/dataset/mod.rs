//! The dataset trait, its iterator and its error; the datasets themselves are one file each.

mod error;
mod in_memory;
pub mod transform;
pub mod vision;

use std::error::Error;
use std::marker::PhantomData;
use std::sync::Arc;

pub use error::DatasetError;
pub use in_memory::InMemDataset;

/// A fixed number of items that can be read in any order, from several threads.
///
/// `I` is the item, `E` the error of a failed read.
///
/// ```
/// use kiln_data::dataset::{Dataset, DatasetError};
///
/// struct Squares(usize);
///
/// impl Dataset<usize> for Squares {
///     fn get(&self, index: usize) -> Result<usize, DatasetError> {
///         assert!(index < self.0, "get: index {index} out of range for {} items", self.0);
///         Ok(index * index)
///     }
///     fn len(&self) -> usize {
///         self.0
///     }
/// }
///
/// let squares: Vec<usize> = Squares(4).iter().collect::<Result<_, _>>()?;
/// assert_eq!(squares, [0, 1, 4, 9]);
/// # Ok::<(), DatasetError>(())
/// ```
pub trait Dataset<I, E = DatasetError>: Send + Sync
where
    E: Error + Send + Sync + 'static,
{
    /// Reads the item at `index`.
    ///
    /// # Errors
    ///
    /// The item exists but could not be read.
    ///
    /// # Panics
    ///
    /// If `index >= self.len()`: that is a mistake of the caller, not of the data.
    fn get(&self, index: usize) -> Result<I, E>;

    /// Reads the items at `indexes`, in that order. Override it where reading many at once is cheaper than one by one.
    ///
    /// # Errors
    ///
    /// The first error of any of the reads.
    ///
    /// # Panics
    ///
    /// As [`get`](Dataset::get).
    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<I>, E> {
        indexes.into_iter().map(|index| self.get(index)).collect()
    }

    /// The number of items.
    fn len(&self) -> usize;

    /// Whether there are no items.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over all items in order. `None` only means that the dataset is exhausted; a read that fails is `Some(Err(_))`, and the
    /// iteration goes on with the next item.
    fn iter(&self) -> DatasetIterator<'_, I, E>
    where
        Self: Sized,
    {
        DatasetIterator::new(self)
    }
}

impl<D, I, E> Dataset<I, E> for Arc<D>
where
    D: Dataset<I, E> + ?Sized,
    E: Error + Send + Sync + 'static,
{
    fn get(&self, index: usize) -> Result<I, E> {
        self.as_ref().get(index)
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<I>, E> {
        self.as_ref().get_many(indexes)
    }

    fn len(&self) -> usize {
        self.as_ref().len()
    }
}

impl<D, I, E> Dataset<I, E> for Box<D>
where
    D: Dataset<I, E> + ?Sized,
    E: Error + Send + Sync + 'static,
{
    fn get(&self, index: usize) -> Result<I, E> {
        self.as_ref().get(index)
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<I>, E> {
        self.as_ref().get_many(indexes)
    }

    fn len(&self) -> usize {
        self.as_ref().len()
    }
}

/// Iterates over the items of a dataset in order.
pub struct DatasetIterator<'a, I, E = DatasetError>
where
    E: Error + Send + Sync + 'static,
{
    dataset: &'a dyn Dataset<I, E>,
    next: usize,
    item: PhantomData<I>,
}

impl<'a, I, E> DatasetIterator<'a, I, E>
where
    E: Error + Send + Sync + 'static,
{
    /// Starts at the first item of `dataset`.
    pub fn new<D>(dataset: &'a D) -> Self
    where
        D: Dataset<I, E>,
    {
        Self { dataset, next: 0, item: PhantomData }
    }
}

impl<I, E> Iterator for DatasetIterator<'_, I, E>
where
    E: Error + Send + Sync + 'static,
{
    type Item = Result<I, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.dataset.len() {
            return None;
        }
        self.next += 1;
        Some(self.dataset.get(self.next - 1))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.dataset.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

/// Panics at the caller's line if `index` is not below `len`.
#[track_caller]
fn check_index(index: usize, len: usize) {
    if index >= len {
        out_of_range(index, len);
    }
}

/// Panics at the caller's line, with the index and the length it is not below.
#[track_caller]
fn out_of_range(index: usize, len: usize) -> ! {
    panic!("get: index {index} out of range for a dataset of {len} items")
}
