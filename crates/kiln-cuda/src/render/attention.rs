//! Attention and its gradient.
use kiln_ir::kernel::AttentionKernel;
use kiln_ir::{Program, RuntimeError};

use super::unsupported;
use crate::steps::{Chip, Steps};

/// The steps of the forward pass.
///
/// # Errors
/// [`RuntimeError::Unsupported`]: such kernels run on the host.
pub fn render(_: &AttentionKernel, _: &Program, _: &Chip) -> Result<Steps, RuntimeError> {
    Err(unsupported("attention"))
}

/// The steps of the gradient.
///
/// # Errors
/// [`RuntimeError::Unsupported`]: such kernels run on the host.
pub fn render_grad(_: &AttentionKernel, _: &Program, _: &Chip) -> Result<Steps, RuntimeError> {
    Err(unsupported("attention_grad"))
}
