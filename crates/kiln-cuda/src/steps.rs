//! What a kernel becomes: source text, a grid and parameters, as plain data.
use std::sync::Arc;

use kiln_ir::{BufId, DType, MatmulPrecision};

/// A complete CUDA C++ translation unit with one `extern "C" __global__` function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// Name of the function.
    pub entry: String,
    /// The text, without `#include`.
    pub code: String,
}

impl Source {
    /// The function itself, without what every kernel has before it.
    pub fn own(&self) -> &str {
        self.code.find("extern \"C\"").map_or(&self.code, |at| &self.code[at..])
    }
}

/// A parameter of a launch; in the source each is a pointer or a 64-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// Pointer to a buffer of the program.
    Buf(BufId),
    /// `const unsigned long long*`: the words of the run-time scalars.
    Args,
    /// Pointer to the kernel's scratch memory at this byte offset.
    Scratch(usize),
    /// `int*`: the device's fault memory of [`fault::WORDS`] words, zero at first. The first kernel that meets an index out of range says so there.
    Fault,
    /// An `unsigned long long` passed by value.
    U64(u64),
}

/// Codes a kernel stores in the fault word.
pub mod fault {
    /// A gather met an index out of range.
    pub const GATHER: u32 = 1;
    /// A scatter met an index out of range.
    pub const SCATTER: u32 = 2;
    /// The gradient of a maximum pool met an index out of range.
    pub const POOL: u32 = 3;

    /// 32-bit words of the device's fault memory: the code, the axis, the index and the extent it should have been below (two words each, low one first).
    pub const WORDS: usize = 6;

    /// What the fault memory says, or `None` while nothing went wrong.
    pub fn message(words: &[i32; WORDS]) -> Option<String> {
        let op = match words[0] as u32 {
            0 => return None,
            GATHER => "gather",
            SCATTER => "scatter",
            POOL => "max_pool_grad",
            code => return Some(format!("a kernel met bad data (code {code})")),
        };
        let long = |k: usize| words[k] as u32 as i64 | (words[k + 1] as i64) << 32;
        Some(format!("{op}: index {} is out of range for axis {} of size {}", long(2), words[1], long(4)))
    }
}

/// One launch of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What runs.
    pub source: Arc<Source>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Parameters, in the order of the function's.
    pub params: Vec<Param>,
}

/// The steps of a kernel, run one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The steps.
    pub steps: Vec<Step>,
    /// Bytes of scratch memory they need. Its contents are undefined at the start.
    pub scratch: usize,
}

impl Steps {
    /// A single step without scratch memory.
    pub fn one(step: Step) -> Self {
        Steps { steps: vec![step], scratch: 0 }
    }
}

/// What rendering must know of a GPU: plain data, so that everything renders without one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chip {
    /// Compute capability times ten: 80, 90, 100.
    pub sm: u32,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Most bytes of shared memory a block may have.
    pub shared_limit: usize,
    /// How libraries may compute with 32-bit floats.
    pub precision: MatmulPrecision,
}

impl Chip {
    /// A chip of this compute capability as tests use it.
    pub fn of(sm: u32) -> Self {
        let (multiprocessors, shared_limit) = match sm {
            80 => (108, 166_912),
            90 => (132, 232_448),
            _ => (148, 232_448),
        };
        Chip { sm, multiprocessors, shared_limit, precision: MatmulPrecision::Highest }
    }

    /// How libraries may compute with a dtype: there is a choice for 32-bit floats alone.
    pub fn precision_of(&self, dtype: DType) -> MatmulPrecision {
        if dtype == DType::F32 { self.precision } else { MatmulPrecision::Highest }
    }

    /// What the compiler must know of it.
    pub fn limits(&self) -> kiln_ir::Limits {
        kiln_ir::Limits {
            parallelism: self.multiprocessors as usize * 2,
            epilogues: true,
            conv_epilogues: &DType::ALL,
            short_conv_epilogues: 0,
            channels_last: &[],
        }
    }
}
