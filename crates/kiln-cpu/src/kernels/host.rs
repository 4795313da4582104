//! Host functions: linear algebra, transforms and users' code, on dense buffers.
use alloc::format;
use core::ops::Range;

use kiln_ir::kernel::HostKernel;
use kiln_ir::op::HostTensor;
use kiln_ir::{DType, Program};
use smallvec::SmallVec;

use super::{Frame, Prepared};

/// A call of a host function.
pub(crate) struct Host {
    kernel: HostKernel,
    inputs: SmallVec<[(DType, usize); 3]>,
    outputs: SmallVec<[usize; 3]>,
}

impl Host {
    /// Prepares the call.
    pub fn new(kernel: &HostKernel, program: &Program) -> Self {
        Host {
            inputs: kernel.inputs.iter().map(|(b, _)| (program.buf(*b).dtype, program.buf(*b).bytes())).collect(),
            outputs: kernel.outputs.iter().map(|b| program.buf(*b).bytes()).collect(),
            kernel: kernel.clone(),
        }
    }
}

impl Prepared for Host {
    fn pieces(&self) -> usize {
        1
    }

    fn work(&self) -> usize {
        // Host functions are rarely cheap: their arithmetic counts as much as a few passes over the data.
        8 * (self.inputs.iter().map(|i| i.1).sum::<usize>() + self.outputs.iter().sum::<usize>())
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        if pieces.is_empty() {
            return;
        }
        let inputs: SmallVec<[HostTensor<'_>; 4]> = (self.kernel.inputs.iter().zip(&self.inputs))
            .map(|((buf, dims), (dtype, bytes))| HostTensor {
                dtype: *dtype,
                dims,
                // Without elements the pointer may be null.
                bytes: match bytes {
                    0 => &[],
                    // SAFETY: the buffer has this size and nobody writes it during the kernel.
                    _ => unsafe { core::slice::from_raw_parts(frame.ptr::<u8>(*buf), *bytes) },
                },
            })
            .collect();
        let mut outputs: SmallVec<[&mut [u8]; 4]> = (self.kernel.outputs.iter().zip(&self.outputs))
            .map(|(buf, bytes)| match bytes {
                0 => &mut [][..],
                // SAFETY: the buffer has this size, and it is this kernel's alone.
                _ => unsafe { core::slice::from_raw_parts_mut(frame.ptr::<u8>(*buf), *bytes) },
            })
            .collect();
        if let Err(e) = (self.kernel.op.run)(&self.kernel.op.attrs, &inputs, &mut outputs) {
            frame.failure.report(format!("{}: {e}", self.kernel.op.name));
        }
    }
}
