//! Readers of the records that Burn 0.21 and earlier versions wrote: MessagePack, JSON and bincode, plain or gzip-compressed.
//!
//! The format is told by content, never by the file's name. MessagePack and JSON carry the names of fields, so their tensors get the paths that
//! burnpack records have. Bincode carries no names: its tensors are called `#0`, `#1`, ... in the order in which a module visits its parameters.
//!
//! Files are not trusted: nothing is allocated for a length before its bytes are seen to be there, nesting and the number of values are bounded,
//! and so is what a compressed file may grow to.

mod bincode;
mod gzip;
mod json;
mod msgpack;
mod node;
mod quantized;
mod record;
mod states;

pub use record::{LegacyFormat, LegacyRecord};
