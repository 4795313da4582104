//! Kernels that run on the host: host functions, and families without a rendering, which the interpreter executes on copies of their buffers.
use std::collections::BTreeMap;

use kiln_ir::interp::{Elements, Scalar, run_kernel, value};
use kiln_ir::{BufId, Kernel, Program, RuntimeError};

/// Copies of the buffers that a kernel touches.
pub struct Copies<'a> {
    program: &'a Program,
    bytes: BTreeMap<BufId, Vec<u8>>,
}

impl Elements for Copies<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn load(&self, buf: BufId, i: isize) -> Result<Scalar, String> {
        let spec = self.program.buf(buf);
        let bytes = self.bytes.get(&buf).ok_or_else(|| format!("buffer {} was not copied", buf.0))?;
        if i < 0 || i as usize >= spec.len {
            return Err(format!("element {i} of buffer {}, which has {}", buf.0, spec.len));
        }
        Ok(value::read(spec.dtype, bytes, i as usize))
    }

    fn store(&mut self, buf: BufId, i: isize, v: Scalar) -> Result<(), String> {
        let spec = self.program.buf(buf);
        let bytes = self.bytes.get_mut(&buf).ok_or_else(|| format!("buffer {} was not copied", buf.0))?;
        if i < 0 || i as usize >= spec.len {
            return Err(format!("element {i} of buffer {}, which has {}", buf.0, spec.len));
        }
        value::write(spec.dtype, bytes, i as usize, v);
        Ok(())
    }
}

/// Runs a kernel: `download` reads a buffer, `upload` writes one.
///
/// # Errors
/// What a copy or the kernel says.
pub fn run(
    kernel: &Kernel,
    program: &Program,
    args: &[u64],
    mut download: impl FnMut(BufId, &mut [u8]) -> Result<(), RuntimeError>,
    mut upload: impl FnMut(BufId, &[u8]) -> Result<(), RuntimeError>,
) -> Result<(), RuntimeError> {
    let (mut all, mut written) = (Vec::new(), Vec::new());
    kernel.accesses(|b| all.push(b), |b| written.push(b));
    all.extend(&written);
    let mut copies = Copies { program, bytes: BTreeMap::new() };
    for b in all {
        if let std::collections::btree_map::Entry::Vacant(place) = copies.bytes.entry(b) {
            let mut bytes = vec![0; program.buf(b).bytes()];
            download(b, &mut bytes)?;
            place.insert(bytes);
        }
    }
    run_kernel(kernel, &mut copies, args).map_err(RuntimeError::Kernel)?;
    written.iter().try_for_each(|b| upload(*b, &copies.bytes[b]))
}

/// Says once a family that it runs on the host.
pub fn tell(family: &'static str) {
    static TOLD: std::sync::Mutex<Vec<&'static str>> = std::sync::Mutex::new(Vec::new());
    let mut told = TOLD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !told.contains(&family) {
        told.push(family);
        eprintln!("kiln: {family} kernels have no CUDA form yet and run on the host");
    }
}
