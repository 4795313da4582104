//! Programs: what the compiler makes of a graph and a runtime executes.
use alloc::vec::Vec;

use crate::{DType, Kernel};

/// Number of a buffer in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufId(pub u32);

impl BufId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a buffer lives during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Input buffer `n` of the run.
    Input(u32),
    /// Output buffer `n` of the run.
    Output(u32),
    /// In the run's arena, at this byte offset (a multiple of 64).
    Arena(usize),
    /// Nowhere: no kernel touches it.
    Unused,
}

/// One buffer. Several buffers may share a place when their lifetimes allow (in-place results, donated inputs).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BufSpec {
    /// Element type.
    pub dtype: DType,
    /// Number of elements.
    pub len: usize,
    /// Where it lives.
    pub place: Place,
}

impl BufSpec {
    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.len * self.dtype.size()
    }
}

/// How an output buffer comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputSpec {
    /// A fresh buffer of this many bytes.
    New(usize),
    /// The storage of this donated input, overwritten in place.
    Donated(u32),
    /// The very contents of this input (a reshape of it, or the input itself): share its storage.
    SameAs(u32),
    /// The very contents of this earlier output.
    SameAsOutput(u32),
}

/// Kernels that don't depend on each other and may run as one launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Launch {
    /// The kernels.
    pub kernels: Vec<Kernel>,
}

/// A compiled graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Every buffer.
    pub bufs: Vec<BufSpec>,
    /// Number of inputs.
    pub inputs: usize,
    /// The outputs, in the graph's order.
    pub outputs: Vec<OutputSpec>,
    /// Number of run-time scalars.
    pub args: usize,
    /// What is launched, in order.
    pub launches: Vec<Launch>,
    /// Bytes of scratch memory a run needs.
    pub arena: usize,
}

impl Program {
    /// The buffer `id`.
    pub fn buf(&self, id: BufId) -> &BufSpec {
        &self.bufs[id.index()]
    }

    /// All kernels in order.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.launches.iter().flat_map(|l| &l.kernels)
    }
}
