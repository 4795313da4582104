//! Kiln's datasets, batchers and data loaders.
//!
//! A [`Dataset`](dataset::Dataset) is a fixed number of items that can be read in any order; transforms wrap one dataset in another; a
//! [`DataLoader`](dataloader::DataLoader) reads items in (shuffled) order, hands them to the user's [`Batcher`](dataloader::batcher::Batcher) and yields batches,
//! on the calling thread or on workers. Neither knows anything about tensors: only the batcher, which the user writes, makes them.
//!
//! Start reading at [`dataset`], then [`dataloader`].

pub mod dataloader;
pub mod dataset;
