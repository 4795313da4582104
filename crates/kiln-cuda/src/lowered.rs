//! A program as works of the GPU: launches of rendered functions, products of cuBLASLt, copies, and kernels that the host runs.
use std::sync::Arc;

use kiln_ir::{BufId, BufSpec, DType, Kernel, Place, Program, RuntimeError};

use crate::activation;
use crate::convolution::{self, Convolution, Probe};
use crate::fold;
use crate::merge::{self, Group};
use crate::product::{self, Activation, Product};
use crate::render::{self, matvec};
use crate::steps::{Chip, Param, Source, Steps};

/// A parameter whose scratch place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Address of a buffer.
    Buf(BufId),
    /// Address at this offset of the arena.
    Arena(usize),
    /// Address of the run-time scalars.
    Args,
    /// Address of the fault word.
    Fault,
    /// A number.
    Number(u64),
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Work {
    /// Launch a function.
    Launch {
        /// The function.
        source: Arc<Source>,
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: [u32; 3],
        /// Bytes of dynamic shared memory.
        shared: u32,
        /// Parameters.
        params: Vec<Word>,
    },
    /// A product of cuBLASLt.
    Product(Box<Product>),
    /// A convolution of cuDNN.
    Convolution(Box<Convolution>),
    /// Copy a buffer.
    Copy {
        /// Source.
        from: BufId,
        /// Destination.
        to: BufId,
    },
    /// Run a kernel on the host.
    Host(Box<Kernel>),
}

/// Memory beyond the program's own arena, taken while a launch is lowered.
pub struct Scratch<'a> {
    program: &'a mut Program,
    /// Next free byte of the arena.
    next: usize,
    /// Largest `next` so far.
    end: usize,
}

impl Scratch<'_> {
    /// The program, with the scratch buffers made so far.
    pub fn program(&self) -> &Program {
        self.program
    }

    fn take(&mut self, bytes: usize) -> usize {
        let at = self.next;
        self.next = (at + bytes).next_multiple_of(256);
        self.end = self.end.max(self.next);
        at
    }

    /// A new buffer of the program in scratch memory.
    pub fn buffer(&mut self, dtype: DType, len: usize) -> BufId {
        let place = Place::Arena(self.take(len * dtype.size()));
        self.program.bufs.push(BufSpec { dtype, len, place });
        BufId(self.program.bufs.len() as u32 - 1)
    }

    /// Steps as works, their scratch memory placed.
    pub fn works(&mut self, steps: &Steps) -> Vec<Work> {
        let base = self.take(steps.scratch);
        let word = |p: &Param| match *p {
            Param::Buf(b) => Word::Buf(b),
            Param::Args => Word::Args,
            Param::Scratch(at) => Word::Arena(base + at),
            Param::Fault => Word::Fault,
            Param::U64(n) => Word::Number(n),
        };
        (steps.steps.iter())
            .map(|s| Work::Launch {
                source: s.source.clone(),
                grid: s.grid,
                block: s.block,
                shared: s.shared,
                params: s.params.iter().map(word).collect(),
            })
            .collect()
    }
}

/// A program as works.
pub struct Lowered {
    /// The program with its scratch buffers.
    pub program: Program,
    /// Launches in order; their kernels are independent, the works of a kernel follow each other.
    pub launches: Vec<Vec<Vec<Work>>>,
    /// Bytes of memory that a run needs beside inputs and outputs.
    pub arena: usize,
}

impl Lowered {
    /// Lowers a program for a chip. `blas`: whether cuBLASLt is there; `dnn`: cuDNN, where it is.
    ///
    /// # Errors
    /// A kernel that cannot be rendered for a reason other than being unsupported.
    pub fn new(program: &Program, chip: &Chip, blas: bool, mut dnn: Option<&mut Probe<'_>>) -> Result<Self, RuntimeError> {
        let mut own = program.clone();
        fold::fold(&mut own);
        merge::narrow(&mut own);
        merge::separate(&mut own);
        let before = own.clone();
        let merged = merge::absorb(&before, chip);
        let activations = if blas { activation::find(&before) } else { Default::default() };
        let start = own.arena.next_multiple_of(256);
        let mut scratch = Scratch { program: &mut own, next: start, end: start };
        let mut launches: Vec<Vec<Vec<Work>>> = Vec::with_capacity(program.launches.len());
        let mut group = Group::default();
        let mut number = 0;
        for launch in &before.launches {
            // Kernels of one launch don't wait for each other: what is no part of a group runs beside the others.
            let mut rest: Vec<(usize, &Kernel)> = Vec::new();
            for kernel in &launch.kernels {
                let n = number;
                number += 1;
                if merged.gone[n] {
                    continue;
                }
                if let Kernel::Fused(f) = kernel {
                    if group.add(f, kernel, &before, chip) {
                        continue;
                    }
                    // The first of the next group, perhaps.
                    scratch.next = start;
                    launches.extend(group_works(&mut group, &mut scratch, &before, chip));
                    if group.add(f, kernel, &before, chip) {
                        continue;
                    }
                }
                rest.push((n, kernel));
            }
            if rest.is_empty() {
                continue;
            }
            scratch.next = start;
            launches.extend(group_works(&mut group, &mut scratch, &before, chip));
            scratch.next = start;
            let mut kernels = Vec::with_capacity(rest.len());
            for (n, kernel) in rest {
                kernels.push(match (kernel, merged.prologues.get(&n)) {
                    (Kernel::Dot(d), prologue) if matvec::fits(d, chip) => {
                        let steps = matvec::render(d, prologue, &before, chip);
                        scratch.works(&steps)
                    }
                    _ => works(kernel, activations.get(&n).copied(), &mut scratch, chip, blas, dnn.as_deref_mut())?,
                });
            }
            launches.push(kernels);
        }
        scratch.next = start;
        launches.extend(group_works(&mut group, &mut scratch, &before, chip));
        let end = scratch.end;
        Ok(Lowered { program: own, launches, arena: end })
    }

    /// All works in order.
    pub fn works(&self) -> impl Iterator<Item = &Work> {
        self.launches.iter().flatten().flatten()
    }
}

/// The launch of a group, which is empty after it.
fn group_works(group: &mut Group<'_>, scratch: &mut Scratch<'_>, program: &Program, chip: &Chip) -> Option<Vec<Vec<Work>>> {
    let group = std::mem::take(group);
    if group.is_empty() {
        return None;
    }
    let steps = match group.single() {
        Some(f) => render::fused::render_nest(render::nest::Nest::new(f), program, chip),
        None => render::fused::together(&group.pieces(), program),
    };
    Some(vec![scratch.works(&steps)])
}

fn works(
    kernel: &Kernel,
    activation: Option<Activation>,
    scratch: &mut Scratch<'_>,
    chip: &Chip,
    blas: bool,
    dnn: Option<&mut Probe<'_>>,
) -> Result<Vec<Work>, RuntimeError> {
    let on_host = || Work::Host(Box::new(kernel.clone()));
    match kernel {
        Kernel::Dot(k) => product::lower(k, activation, scratch, chip, blas),
        Kernel::Copy { from, to } => Ok(vec![Work::Copy { from: *from, to: *to }]),
        Kernel::Host(_) => Ok(vec![on_host()]),
        Kernel::Conv(k) => match convolution::lower(k, scratch, chip, dnn) {
            Err(RuntimeError::Unsupported(_)) => Ok(vec![on_host()]),
            done => done,
        },
        other => match render::render(other, scratch.program(), chip) {
            Ok(steps) => Ok(scratch.works(&steps)),
            Err(RuntimeError::Unsupported(_)) => Ok(vec![on_host()]),
            Err(e) => Err(e),
        },
    }
}
