//! Fused kernels in the schedule of a program.
use alloc::boxed::Box;
use alloc::string::ToString;
use core::ops::Range;

use kiln_ir::kernel::Fused;
use kiln_ir::{Program, RuntimeError};

use super::{Frame, Prepared};
use crate::tile::{Buffers, FusedKernel};

/// Prepares a fused kernel for the tile executor.
pub(crate) fn prepare(kernel: &Fused, program: &Program) -> Result<Box<dyn Prepared>, RuntimeError> {
    let kernel = FusedKernel::new(kernel, &program.bufs).map_err(RuntimeError::Unsupported)?;
    Ok(Box::new(kernel))
}

impl Prepared for FusedKernel {
    fn pieces(&self) -> usize {
        self.blocks()
    }

    fn work(&self) -> usize {
        self.bytes()
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let buffers = Buffers { addresses: frame.bufs, args: frame.args };
        // SAFETY: as the caller's; the program's plan says which buffers share memory.
        if let Err(error) = unsafe { self.run_blocks(buffers, pieces) } {
            frame.failure.report(error.to_string());
        }
    }
}
