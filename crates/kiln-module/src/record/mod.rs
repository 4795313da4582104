//! Records: the state of modules, and the file format they are kept in.

pub mod burnpack;
#[cfg(feature = "std")]
pub mod legacy;
