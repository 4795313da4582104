//! Overlapping windows of consecutive items, for series.

use std::marker::PhantomData;
use std::num::NonZeroUsize;

use super::super::{Dataset, DatasetError, check_index};

/// One window of a dataset.
pub trait Window<I> {
    /// The `size` items from `current` on, or `None` where fewer are left.
    ///
    /// # Errors
    ///
    /// An item of the window cannot be read.
    fn window(&self, current: usize, size: NonZeroUsize) -> Result<Option<Vec<I>>, DatasetError>;
}

/// All windows of a dataset.
pub trait Windows<I> {
    /// Iterates over the windows of `size` consecutive items, each one item behind the one before.
    ///
    /// # Panics
    ///
    /// If `size` is zero.
    fn windows(&self, size: usize) -> WindowsIterator<'_, I>;
}

impl<I, T> Window<I> for T
where
    T: Dataset<I> + ?Sized,
{
    fn window(&self, current: usize, size: NonZeroUsize) -> Result<Option<Vec<I>>, DatasetError> {
        match current.checked_add(size.get()) {
            Some(end) if end <= self.len() => self.get_many((current..end).collect()).map(Some),
            _ => Ok(None),
        }
    }
}

impl<I, T> Windows<I> for T
where
    T: Dataset<I>,
{
    #[track_caller]
    fn windows(&self, size: usize) -> WindowsIterator<'_, I> {
        WindowsIterator::new(self, nonzero(size))
    }
}

/// Iterates over the windows of a dataset.
pub struct WindowsIterator<'a, I> {
    /// The number of items in a window.
    pub size: NonZeroUsize,
    dataset: &'a dyn Dataset<I>,
    current: usize,
}

impl<'a, I> WindowsIterator<'a, I> {
    /// Starts at the first window of `size` items.
    pub fn new(dataset: &'a dyn Dataset<I>, size: NonZeroUsize) -> Self {
        Self { size, dataset, current: 0 }
    }
}

impl<I> Iterator for WindowsIterator<'_, I> {
    type Item = Result<Vec<I>, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let window = self.dataset.window(self.current, self.size).transpose()?;
        self.current += 1;
        Some(window)
    }
}

impl<I> Clone for WindowsIterator<'_, I> {
    fn clone(&self) -> Self {
        Self { size: self.size, dataset: self.dataset, current: self.current }
    }
}

/// A dataset whose items are the windows of another one.
pub struct WindowsDataset<D, I> {
    /// The number of items in a window.
    pub size: NonZeroUsize,
    dataset: D,
    item: PhantomData<I>,
}

impl<D, I> WindowsDataset<D, I>
where
    D: Dataset<I>,
{
    /// The windows of `size` consecutive items of `dataset`.
    ///
    /// # Panics
    ///
    /// If `size` is zero.
    #[track_caller]
    pub fn new(dataset: D, size: usize) -> Self {
        Self { size: nonzero(size), dataset, item: PhantomData }
    }
}

impl<D, I> Dataset<Vec<I>> for WindowsDataset<D, I>
where
    D: Dataset<I>,
    I: Send + Sync,
{
    fn get(&self, index: usize) -> Result<Vec<I>, DatasetError> {
        check_index(index, self.len());
        self.dataset.get_many((index..index + self.size.get()).collect())
    }

    fn len(&self) -> usize {
        (self.dataset.len() + 1).saturating_sub(self.size.get())
    }
}

#[track_caller]
fn nonzero(size: usize) -> NonZeroUsize {
    NonZeroUsize::new(size).expect("windows: size is zero")
}
