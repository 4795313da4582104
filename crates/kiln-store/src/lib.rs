//! Kiln's weight files: what is in them, under which names, and how they become a module's parameters.
//!
//! A stored tensor is a [`burn_pack::Tensor`]: name, dtype, shape and bytes that are read when asked for. [`PathFilter`] chooses tensors,
//! [`KeyRemapper`] renames them, a [`ModuleAdapter`] changes them on the way.

pub mod adapter;
mod apply;
pub mod bridge;
pub mod burn_pack;
mod burnpack_store;
mod collect;
mod contents;
mod filter;
mod options;
mod place;
#[cfg(feature = "pytorch")]
pub mod pytorch;
mod remap;
#[cfg(feature = "safetensors")]
pub mod safetensors;
#[cfg(feature = "safetensors")]
mod safetensors_store;
mod snapshot;

pub use adapter::{
    BurnToPyTorchAdapter, ChainAdapter, FloatCastAdapter, HalfPrecisionAdapter, IdentityAdapter, ModuleAdapter, ModuleContext, Packed,
    PyTorchToBurnAdapter,
};
pub use apply::{Applier, ApplyError, ApplyResult};
pub use burnpack_store::BurnpackStore;
pub use collect::Collector;
pub use contents::{Contents, ContentsError, Format};
pub use filter::PathFilter;
pub use kiln_module::record::{DTypePolicy, ModuleRecord, RecordError};
#[cfg(feature = "pytorch")]
pub use pytorch as pytorch_reader;
#[cfg(feature = "pytorch")]
pub use pytorch::{PytorchStore, PytorchStoreError};
pub use remap::{KeyRemapper, map_indices_contiguous, map_indices_contiguous_except};
#[cfg(feature = "safetensors")]
pub use safetensors_store::{FileStore, MemoryStore, SafetensorsStore, SafetensorsStoreError};
pub use snapshot::{ModuleSnapshot, ModuleStore};
