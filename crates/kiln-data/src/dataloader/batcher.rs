//! How items become a batch.

use kiln_tensor::Device;

/// Makes a batch of items. This is where tensors are made; it runs on the loader's worker threads, if it has any.
pub trait Batcher<I, O>: Send + Sync {
    /// Makes a batch of `items` on `device`.
    fn batch(&self, items: Vec<I>, device: &Device) -> O;
}
