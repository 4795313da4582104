//! What a prepared kernel consists of: steps over slots.
use alloc::vec::Vec;
use core::ops::Range;

use kiln_ir::BufId;
use smallvec::SmallVec;

use super::reduction::ReduceLoops;
use super::stored::Moves;
use crate::simd::LoopFn;

/// Number of a slot: an entry in the table of pointers that steps work with.
pub(super) type Slot = u16;

/// Number of an access in [`super::plan::Plan::accesses`].
pub(super) type AccessId = u16;

/// One action on the current tile.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Runs a loop over slots, for one element or the whole tile.
    Map { run: LoopFn, dst: Slot, sources: [Slot; 3], one: bool },
    /// Brings a tile of a buffer into reach.
    Load { load: u16, dst: Slot, one: bool },
    /// Makes a slot point into the destination of a store, if the tile is contiguous there.
    Place { store: u16, slot: Slot },
    /// Writes a slot to a buffer.
    Store { store: u16, src: Slot },
    /// Writes an affine function of the coordinates, as `i64`.
    Count { run: LoopFn, access: AccessId, dst: Slot },
    /// Random numbers.
    Random { run: LoopFn, words: LoopFn, access: AccessId, seed: Slot, dst: Slot, step_bytes: u8 },
    /// Whether the bounds hold.
    Inside { bounds: u16, dst: Slot },
    /// Joins a tile to a cell.
    Along { reduce: u16, src: Slot },
    /// Joins the products of two tiles, or the squared differences of a tile and one element, to the sum in a cell.
    Products { run: LoopFn, reduce: u16, a: Slot, b: Slot },
    /// Joins the tile's rows to accumulators.
    Across { reduce: u16, src: Slot },
    /// Repeats a row of elements over all rows of the tile.
    Expand { src: Slot, dst: Slot, size: u8 },
    /// Repeats one element over the tile.
    Splat { src: Slot, dst: Slot, size: u8 },
    /// Brings the accumulated tile of a contraction into reach.
    Acc { dst: Slot, size: u8 },
    /// Hands a tile to the caller of a prologue.
    Out { src: Slot, size: u8 },
    /// A run-time scalar, as an element of the given form.
    Arg { number: u32, dst: Slot, form: WordForm },
}

/// How a word becomes an element of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordForm {
    F64,
    /// Rounded to f32, f16 or bf16.
    F32,
    F16,
    Bf16,
    /// Wrapped to the integer dtype, and held in 8 bytes.
    Int(kiln_ir::DType),
    Bool,
}

/// Conditions on the coordinates: accesses and their extents.
pub(super) type Bounds = SmallVec<[(AccessId, usize); 2]>;

/// A read.
#[derive(Clone)]
pub(super) struct LoadPlan {
    pub buf: BufId,
    pub access: AccessId,
    pub bounds: Bounds,
    pub moves: Moves,
    /// Bytes of an element in the buffer, and in a tile.
    pub stored: u8,
    pub held: u8,
    /// Elements the buffer holds.
    pub len: usize,
    /// Row kernels: bytes from a row to the same row of the next block, which is asked for in advance.
    pub ahead: isize,
    /// Copied even where the tile could read the buffer itself.
    pub copied: bool,
}

/// A write.
#[derive(Clone)]
pub(super) struct StorePlan {
    pub buf: BufId,
    pub access: AccessId,
    pub moves: Moves,
    pub stored: u8,
    pub held: u8,
    /// Elements the buffer holds, to tell whether it overlaps one that is read.
    pub len: usize,
    /// As for loads: the next block's destination is asked for too, lest its stores wait for it.
    pub ahead: isize,
    /// Written past the caches.
    pub stream: bool,
}

/// A reduction.
#[derive(Clone)]
pub(super) struct ReducePlan {
    pub loops: ReduceLoops,
    /// State of the search, or the partial sums set aside.
    pub aside: Slot,
    /// The cell (`Along`) or the accumulators (`Across`).
    pub cell: Slot,
    /// The result among the kept values.
    pub result: Slot,
    pub size: u8,
    /// Wraps the result to its integer dtype, through `aside`.
    pub wrap: Option<LoopFn>,
    /// Adds what was set aside.
    pub add: Option<LoopFn>,
}

/// How a slot's pointer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Motion {
    /// Not at all.
    Fixed,
    /// By this many bytes from one kept point of the block to the next.
    Lane(u8),
    /// By this many bytes from one reduced point of the block to the next.
    Row(u8),
}

/// A slot's home in scratch memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    pub offset: usize,
    pub motion: Motion,
}

/// Steps of one pass over the reduced points, and the reductions it completes.
#[derive(Clone, Default)]
pub(super) struct Pass {
    pub steps: Vec<Step>,
    pub reduces: Range<usize>,
    /// Steps on the kept values once the reductions are complete.
    pub after: Vec<Step>,
}
