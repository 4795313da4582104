//! How far a pass over items is.

/// How far a pass over items is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The number of items that are done; never more than there are.
    pub items_processed: usize,
    /// The number of items that there are.
    pub items_total: usize,
    /// What is counted, such as `items`.
    pub unit: Option<String>,
}

impl Progress {
    /// `items_processed` of `items_total` are done.
    pub fn new(items_processed: usize, items_total: usize, unit: Option<String>) -> Self {
        Self { items_processed, items_total, unit }
    }

    /// Whether all items are done.
    pub fn is_completed(&self) -> bool {
        self.items_processed >= self.items_total
    }

    /// Counts the items of one more batch of a loader.
    pub(super) fn advance(&mut self, items: usize) {
        self.items_processed = (self.items_processed + items).min(self.items_total);
    }
}
