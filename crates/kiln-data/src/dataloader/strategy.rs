//! How many items make a batch.

/// Collects items until they make a batch.
pub trait BatchStrategy<I>: Send + Sync {
    /// Adds an item.
    fn add(&mut self, item: I);

    /// Takes the items of a batch, if there are enough of them; with `force`, those that there are, if any.
    fn batch(&mut self, force: bool) -> Option<Vec<I>>;

    /// A strategy like this one that holds no items.
    fn clone_dyn(&self) -> Box<dyn BatchStrategy<I>>;

    /// The number of items that always make a batch, or `None` if that depends on the items. With a number, workers read and batch that many
    /// items each, independently of each other; with `None`, items are read one after another.
    fn batch_size(&self) -> Option<usize>;
}

/// Makes batches of a fixed number of items; the last one of an epoch may have fewer.
pub struct FixBatchStrategy<I> {
    items: Vec<I>,
    batch_size: usize,
}

impl<I> FixBatchStrategy<I> {
    /// Batches of `batch_size` items.
    ///
    /// # Panics
    ///
    /// If `batch_size` is zero.
    #[track_caller]
    pub fn new(batch_size: usize) -> Self {
        assert!(batch_size > 0, "batch strategy: batch size is zero");
        Self { items: Vec::new(), batch_size }
    }
}

impl<I: Send + Sync + 'static> BatchStrategy<I> for FixBatchStrategy<I> {
    fn add(&mut self, item: I) {
        self.items.push(item);
    }

    fn batch(&mut self, force: bool) -> Option<Vec<I>> {
        let enough = if force { 1 } else { self.batch_size };
        (self.items.len() >= enough).then(|| std::mem::take(&mut self.items))
    }

    fn clone_dyn(&self) -> Box<dyn BatchStrategy<I>> {
        Box::new(Self::new(self.batch_size))
    }

    fn batch_size(&self) -> Option<usize> {
        Some(self.batch_size)
    }
}
