//! The byte memory of a program's run: inputs, outputs and arena, with the places of its buffers.
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::value::{Scalar, Tensor, read, write};
use crate::{BufId, DType, Kernel, Launch, OutputSpec, Place, Program, Store};

/// What fresh memory holds: bytes that no correct program ever reads.
const FRESH: u8 = 0xa5;

/// The buffers of a program's run, element by element.
pub trait Elements {
    /// The program.
    fn program(&self) -> &Program;

    /// Reads element `i` of a buffer.
    ///
    /// # Errors
    /// An element outside the buffer, or a buffer without a place.
    fn load(&self, buf: BufId, i: isize) -> Result<Scalar, String>;

    /// Writes element `i` of a buffer.
    ///
    /// # Errors
    /// As for [`Elements::load`].
    fn store(&mut self, buf: BufId, i: isize, v: Scalar) -> Result<(), String>;
}

/// The element type of a buffer.
pub(super) fn dtype(memory: &dyn Elements, buf: BufId) -> DType {
    memory.program().buf(buf).dtype
}

/// A whole buffer as a tensor of `dims`.
pub(super) fn tensor(memory: &dyn Elements, buf: BufId, dims: &[usize]) -> Result<Tensor, String> {
    strided(memory, buf, dims, |i| i as isize)
}

/// A tensor of `dims` whose element `n` in row-major order is element `f(n)` of a buffer.
pub(super) fn strided(memory: &dyn Elements, buf: BufId, dims: &[usize], mut f: impl FnMut(usize) -> isize) -> Result<Tensor, String> {
    let mut t = Tensor::zeros(dtype(memory, buf), dims);
    for n in 0..t.len() {
        t.set(n, memory.load(buf, f(n))?);
    }
    Ok(t)
}

/// Writes a whole tensor to a buffer.
pub(super) fn put(memory: &mut dyn Elements, buf: BufId, t: &Tensor) -> Result<(), String> {
    let spec = memory.program().buf(buf);
    if spec.len != t.len() || spec.dtype != t.dtype {
        return Err(format!("buffer {} is {spec:?}, the result {}{:?}", buf.0, t.dtype, t.dims));
    }
    (0..t.len()).try_for_each(|n| memory.store(buf, n as isize, t.get(n)))
}

/// The memory of one run.
pub(super) struct Memory<'a> {
    program: &'a Program,
    /// Inputs, then fresh outputs, then the arena.
    regions: Vec<Vec<u8>>,
    /// Per output: its region.
    outputs: Vec<usize>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(program: &'a Program, inputs: &[Vec<u8>]) -> Result<Self, String> {
        let mut regions = inputs.to_vec();
        let mut outputs: Vec<usize> = Vec::with_capacity(program.outputs.len());
        for (n, spec) in program.outputs.iter().enumerate() {
            outputs.push(match spec {
                OutputSpec::New(bytes) => {
                    regions.push(vec![FRESH; *bytes]);
                    regions.len() - 1
                }
                OutputSpec::Donated(i) | OutputSpec::SameAs(i) if (*i as usize) < inputs.len() => *i as usize,
                OutputSpec::SameAsOutput(o) if (*o as usize) < n => outputs[*o as usize],
                OutputSpec::Donated(_) | OutputSpec::SameAs(_) | OutputSpec::SameAsOutput(_) => {
                    return Err(format!("output {n} shares what does not exist: {spec:?}"));
                }
            });
        }
        regions.push(vec![FRESH; program.arena]);
        let memory = Memory { program, regions, outputs };
        for (b, spec) in program.bufs.iter().enumerate() {
            if spec.place != Place::Unused {
                let (region, start, end) = memory.range(BufId(b as u32))?;
                if end > memory.regions[region].len() {
                    return Err(format!("buffer {b} ends at byte {end} of a place of {} bytes", memory.regions[region].len()));
                }
                if start % 64 != 0 {
                    return Err(format!("buffer {b} is not aligned: byte {start}"));
                }
            }
        }
        Ok(memory)
    }

    /// The contents of the outputs.
    pub(super) fn into_outputs(self) -> Vec<Vec<u8>> {
        self.outputs.iter().map(|r| self.regions[*r].clone()).collect()
    }

    /// The region of a buffer and its bytes there.
    fn range(&self, buf: BufId) -> Result<(usize, usize, usize), String> {
        let spec = self.program.bufs.get(buf.index()).ok_or_else(|| format!("no buffer {}", buf.0))?;
        let (region, start) = match spec.place {
            Place::Input(n) if (n as usize) < self.program.inputs => (n as usize, 0),
            Place::Output(n) if (n as usize) < self.outputs.len() => (self.outputs[n as usize], 0),
            Place::Arena(offset) => (self.regions.len() - 1, offset),
            Place::Input(_) | Place::Output(_) => return Err(format!("buffer {} lives nowhere: {:?}", buf.0, spec.place)),
            Place::Unused => return Err(format!("buffer {} is used but has no place", buf.0)),
        };
        Ok((region, start, start + spec.bytes()))
    }

    fn spec(&self, buf: BufId, i: isize) -> Result<(DType, usize, usize, usize), String> {
        let (region, start, end) = self.range(buf)?;
        let spec = self.program.buf(buf);
        if i < 0 || i as usize >= spec.len {
            return Err(format!("element {i} of buffer {}, which has {}", buf.0, spec.len));
        }
        Ok((spec.dtype, region, start, end))
    }

    fn dtype(&self, buf: BufId) -> DType {
        self.program.buf(buf).dtype
    }

    fn overlap(&self, a: BufId, b: BufId) -> Result<bool, String> {
        let ((ra, sa, ea), (rb, sb, eb)) = (self.range(a)?, self.range(b)?);
        Ok(ra == rb && sa < eb && sb < ea)
    }

    /// Whether two buffers begin at the same byte and have elements of one size.
    fn same(&self, a: BufId, b: BufId) -> Result<bool, String> {
        let ((ra, sa, _), (rb, sb, _)) = (self.range(a)?, self.range(b)?);
        Ok(ra == rb && sa == sb && self.dtype(a).size() == self.dtype(b).size())
    }

    /// Checks that the kernels of a launch may run in any order or at once, and that each may overwrite what it does.
    pub(super) fn check_launch(&self, launch: &Launch) -> Result<(), String> {
        let mut accesses: Vec<(Vec<BufId>, Vec<BufId>)> = Vec::new();
        for kernel in &launch.kernels {
            let (mut reads, mut writes) = (Vec::new(), Vec::new());
            kernel.accesses(|b| reads.push(b), |b| writes.push(b));
            self.check_in_place(kernel, &reads, &writes)?;
            accesses.push((reads, writes));
        }
        for (i, (_, writes)) in accesses.iter().enumerate() {
            for (j, (reads, others)) in accesses.iter().enumerate() {
                for w in writes.iter().filter(|_| i != j) {
                    for r in reads {
                        if self.overlap(*w, *r)? {
                            return Err(format!("kernel {i} of a launch writes buffer {} while kernel {j} reads buffer {}", w.0, r.0));
                        }
                    }
                    for o in others {
                        if w != o && self.overlap(*w, *o)? {
                            return Err(format!("kernels {i} and {j} of a launch write buffers {} and {} at one place", w.0, o.0));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A kernel may overwrite an operand only element by element: each point reads the very element that it then writes.
    fn check_in_place(&self, kernel: &Kernel, reads: &[BufId], writes: &[BufId]) -> Result<(), String> {
        let (expr, may_share): (Option<&crate::Expr>, Option<BufId>) = match kernel {
            Kernel::Fused(f) => (Some(&f.expr), None),
            Kernel::Dot(d) => (Some(&d.epilogue), None),
            Kernel::Conv(c) => (Some(&c.epilogue), None),
            Kernel::Scatter(s) => (None, s.base),
            Kernel::Scan(s) => (None, Some(s.x)),
            Kernel::Copy { from, .. } => (None, Some(*from)),
            Kernel::Attention(_) | Kernel::AttentionGrad(_) | Kernel::Pool(_) | Kernel::Gather(_) | Kernel::Sort(_) | Kernel::Host(_) => (None, None),
        };
        for (n, w) in writes.iter().enumerate() {
            for o in &writes[..n] {
                if w != o && self.overlap(*w, *o)? {
                    return Err(format!("a {} kernel writes buffers {} and {} at one place", kernel.family(), w.0, o.0));
                }
            }
        }
        for w in writes {
            for r in reads {
                if !self.overlap(*w, *r)? {
                    continue;
                }
                let shared = may_share == Some(*r) && self.same(*w, *r)?;
                let pointwise = self.same(*w, *r)?
                    && expr.is_some_and(|e| {
                        let stores: Vec<&Store> = e.stores.iter().filter(|s| s.buf == *w).collect();
                        let mut loads = e.loads.iter().filter(|l| l.buf == *r).peekable();
                        loads.peek().is_some() && loads.all(|l| stores.iter().all(|s| s.index == l.index))
                    })
                    && !operand_reads(kernel, *r);
                if !shared && !pointwise {
                    return Err(format!("a {} kernel overwrites buffer {} (as {}) while it reads it", kernel.family(), r.0, w.0));
                }
            }
        }
        Ok(())
    }
}

impl Elements for Memory<'_> {
    fn program(&self) -> &Program {
        self.program
    }

    fn load(&self, buf: BufId, i: isize) -> Result<Scalar, String> {
        let (dtype, region, start, end) = self.spec(buf, i)?;
        Ok(read(dtype, &self.regions[region][start..end], i as usize))
    }

    fn store(&mut self, buf: BufId, i: isize, v: Scalar) -> Result<(), String> {
        let (dtype, region, start, end) = self.spec(buf, i)?;
        write(dtype, &mut self.regions[region][start..end], i as usize, v);
        Ok(())
    }
}

/// Whether a contraction reads the buffer as an operand, that is at other points than those it writes.
fn operand_reads(kernel: &Kernel, buf: BufId) -> bool {
    match kernel {
        Kernel::Dot(d) => [&d.lhs, &d.rhs].iter().any(|side| match &side.prologue {
            Some(p) => p.loads.iter().any(|l| l.buf == buf),
            None => side.buf == buf,
        }),
        Kernel::Conv(c) => c.a == buf || c.b == buf,
        Kernel::Fused(_)
        | Kernel::Attention(_)
        | Kernel::AttentionGrad(_)
        | Kernel::Pool(_)
        | Kernel::Gather(_)
        | Kernel::Scatter(_)
        | Kernel::Scan(_)
        | Kernel::Sort(_)
        | Kernel::Host(_)
        | Kernel::Copy { .. } => false,
    }
}
