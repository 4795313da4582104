//! Kernels run element by element through the interpreter of the language crate, for families that have no vector form yet.
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::ops::Range;

use kiln_ir::interp::value::{read, write};
use kiln_ir::interp::{Elements, Scalar, run_kernel};
use kiln_ir::{BufId, Kernel, Program};

use super::{Frame, Prepared};

/// A kernel as the interpreter runs it.
pub(crate) struct ByElement {
    kernel: Kernel,
    program: Program,
}

impl ByElement {
    /// Keeps the kernel with the buffers of its program.
    pub fn prepare(kernel: &Kernel, program: &Program) -> Box<dyn Prepared> {
        let program = Program { bufs: program.bufs.clone(), ..Program::default() };
        Box::new(ByElement { kernel: kernel.clone(), program })
    }
}

struct Memory<'a> {
    program: &'a Program,
    frame: &'a Frame<'a>,
}

impl Memory<'_> {
    fn place(&self, buf: BufId, i: isize) -> Result<(*mut u8, usize), String> {
        let spec = self.program.buf(buf);
        if i < 0 || i as usize >= spec.len {
            return Err(format!("element {i} of buffer {}, which has {}", buf.0, spec.len));
        }
        let size = spec.dtype.size();
        Ok((self.frame.ptr::<u8>(buf).wrapping_add(i as usize * size), size))
    }
}

impl Elements for Memory<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn load(&self, buf: BufId, i: isize) -> Result<Scalar, String> {
        let (at, size) = self.place(buf, i)?;
        // SAFETY: the element lies in the buffer.
        Ok(read(self.program.buf(buf).dtype, unsafe { core::slice::from_raw_parts(at, size) }, 0))
    }

    fn store(&mut self, buf: BufId, i: isize, v: Scalar) -> Result<(), String> {
        let (at, size) = self.place(buf, i)?;
        // SAFETY: the element lies in the buffer, which is this kernel's alone.
        write(self.program.buf(buf).dtype, unsafe { core::slice::from_raw_parts_mut(at, size) }, 0, v);
        Ok(())
    }
}

impl Prepared for ByElement {
    fn pieces(&self) -> usize {
        1
    }

    fn work(&self) -> usize {
        1
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        if !pieces.is_empty() {
            let mut memory = Memory { program: &self.program, frame };
            if let Err(e) = run_kernel(&self.kernel, &mut memory, frame.args) {
                frame.failure.report(e);
            }
        }
    }
}
