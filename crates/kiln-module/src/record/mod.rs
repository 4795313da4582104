//! Records: the values of a module under their paths, in memory and as burnpack files.
//!
//! Start reading at [`ModuleRecord`]. The byte format is in [`burnpack`].

pub mod burnpack;
mod collect;
mod dtype;
mod error;
#[cfg(feature = "std")]
pub mod legacy;
mod load;
mod module_record;

pub use dtype::DTypePolicy;
pub use error::RecordError;
pub use module_record::{ModuleRecord, data_of, tensor_of};
