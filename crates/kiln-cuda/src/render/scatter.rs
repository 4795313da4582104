//! Writes by index.
use kiln_ir::kernel::ScatterKernel;
use kiln_ir::{Program, RuntimeError};

use super::unsupported;
use crate::steps::{Chip, Steps};

/// The steps of a kernel.
///
/// # Errors
/// [`RuntimeError::Unsupported`]: such kernels run on the host.
pub fn render(_: &ScatterKernel, _: &Program, _: &Chip) -> Result<Steps, RuntimeError> {
    Err(unsupported("scatter"))
}
