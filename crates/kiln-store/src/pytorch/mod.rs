//! Files that PyTorch's `torch.save` wrote: reading them without running anything, and giving modules and optimizers what is in them.
//!
//! Start reading at [`PytorchStore`] for a module's parameters, at [`PytorchOptimizer`] for an optimizer's state. The file formats are in `file`,
//! the pickle machine in `pickle`.
//!
//! A file is not trusted: the machine builds values and calls nothing, what it makes is linear in the size of the file, and every length, offset and
//! stride is checked before memory is asked for.

mod error;
mod file;
mod opcode;
mod optimizer;
mod pickle;
mod reader;
pub mod store;
mod tar;
mod tensor;
mod value;
mod zip;

pub use error::{PickleError, PytorchError, PytorchErrorKind};
pub(crate) use file::is_start;
pub use opcode::OpCode;
pub use optimizer::PytorchOptimizer;
pub use reader::PytorchReader;
pub use store::{PytorchStore, PytorchStoreError};
pub use tensor::Tensor;
