//! Rendering: from a kernel to CUDA C++, one module a family.
pub mod attention;
pub mod conv;
pub mod dot;
pub mod elementwise;
pub mod few;
pub mod fused;
pub mod gather;
pub(crate) mod matvec;
pub mod nest;
pub mod padding;
pub mod pool;
pub mod reduction;
pub mod rows;
pub mod scan;
pub mod scatter;
pub mod signature;
pub mod sort;
pub(crate) mod template;
pub mod text;
pub mod tile;
pub(crate) mod walk;
pub(crate) mod warpgroup;

use kiln_ir::{Kernel, Program, RuntimeError};

use crate::steps::{Chip, Steps};

/// The steps of a kernel.
///
/// # Errors
/// [`RuntimeError::Unsupported`] for a kernel that has no rendering: it runs on the host.
pub fn render(kernel: &Kernel, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    match kernel {
        Kernel::Fused(k) => fused::render(k, program, chip),
        Kernel::Conv(k) => conv::render(k, program, chip),
        Kernel::Attention(k) => attention::render(k, program, chip),
        Kernel::AttentionGrad(k) => attention::render_grad(k, program, chip),
        Kernel::Pool(k) => pool::render(k, program, chip),
        Kernel::Gather(k) => gather::render(k, program, chip),
        Kernel::Scatter(k) => scatter::render(k, program, chip),
        Kernel::Scan(k) => scan::render(k, program, chip),
        Kernel::Sort(k) => sort::render(k, program, chip),
        Kernel::Dot(k) => Ok(dot::render(k, program)),
        Kernel::Host(_) | Kernel::Copy { .. } => Err(unsupported(kernel.family())),
    }
}

/// The error for a kernel without a rendering.
pub(crate) fn unsupported(what: &str) -> RuntimeError {
    RuntimeError::Unsupported(format!("{what} kernels on CUDA"))
}

/// Whether kernels of this family have a rendering at all; a single one may still be too odd for it.
pub fn has_family(kernel: &Kernel) -> bool {
    match kernel {
        Kernel::Host(_) => false,
        Kernel::Fused(_)
        | Kernel::Dot(_)
        | Kernel::Conv(_)
        | Kernel::Attention(_)
        | Kernel::AttentionGrad(_)
        | Kernel::Pool(_)
        | Kernel::Gather(_)
        | Kernel::Scatter(_)
        | Kernel::Scan(_)
        | Kernel::Sort(_)
        | Kernel::Copy { .. } => true,
    }
}
