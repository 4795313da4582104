//! Convolutions and their gradients.
use kiln_ir::kernel::ConvKernel;
use kiln_ir::{Program, RuntimeError};

use super::unsupported;
use crate::steps::{Chip, Steps};

/// The steps of a kernel.
///
/// # Errors
/// [`RuntimeError::Unsupported`]: such kernels run on the host.
pub fn render(_: &ConvKernel, _: &Program, _: &Chip) -> Result<Steps, RuntimeError> {
    Err(unsupported("conv"))
}
