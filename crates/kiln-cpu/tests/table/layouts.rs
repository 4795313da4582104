//! The layouts in which operands reach an op.
use kiln_ir::interp::Tensor;
use kiln_ir::op::SliceAxis;
use kiln_ir::{DType, Graph, NodeId, Op};
use smallvec::smallvec;

use crate::oracle::Draw;

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Dense.
    Contiguous,
    /// The last two axes exchanged.
    Transposed,
    /// Every second element along the first axis, backwards.
    Strided,
    /// A part that begins inside the buffer, at a place given at run time.
    Offset,
    /// One row for all.
    Broadcast,
}

impl Layout {
    /// All of them.
    pub const ALL: [Layout; 5] = [Layout::Contiguous, Layout::Transposed, Layout::Strided, Layout::Offset, Layout::Broadcast];

    /// An operand of `dims` in this layout, and the buffer it is read from. A run-time scalar of the graph, if it has any, is the start of slices.
    pub fn operand(self, g: &mut Graph, draw: &mut Draw, dtype: DType, dims: &[usize], range: (f64, f64), inputs: &mut Vec<Tensor>) -> NodeId {
        let rank = dims.len();
        let mut stored = dims.to_vec();
        match self {
            Layout::Contiguous => {}
            Layout::Transposed if rank >= 2 => stored.swap(rank - 1, rank - 2),
            Layout::Strided if rank >= 1 => stored[0] = dims[0] * 2 + 1,
            Layout::Offset if rank >= 1 => stored[rank - 1] = dims[rank - 1] + 3,
            Layout::Broadcast if rank >= 1 => stored[0] = 1,
            Layout::Transposed | Layout::Strided | Layout::Offset | Layout::Broadcast => {}
        }
        let x = g.input(&stored, dtype);
        inputs.push(draw.tensor(dtype, &stored, range));
        let op = |g: &mut Graph, op: Op, x: &[NodeId]| g.add_as(op, x, dims, dtype).unwrap();
        match self {
            Layout::Transposed if rank >= 2 => {
                let mut perm: smallvec::SmallVec<[u8; 8]> = (0..rank as u8).collect();
                perm.swap(rank - 1, rank - 2);
                op(g, Op::Permute(perm), &[x])
            }
            Layout::Strided if rank >= 1 => {
                let start = g.constant(DType::I64, (2 * dims[0]) as u64);
                op(g, Op::Slice(smallvec![SliceAxis { axis: 0, step: -2 }]), &[x, start])
            }
            Layout::Offset if rank >= 1 => {
                let start = g.arg(DType::I64);
                op(g, Op::Slice(smallvec![SliceAxis { axis: rank as u8 - 1, step: 1 }]), &[x, start])
            }
            Layout::Broadcast if rank >= 1 => op(g, Op::Expand, &[x]),
            Layout::Contiguous | Layout::Transposed | Layout::Strided | Layout::Offset | Layout::Broadcast => x,
        }
    }
}

/// Words for the run-time scalars of a graph whose layouts need some: starts of slices, 0 to 3.
pub fn starts(g: &Graph) -> Vec<u64> {
    (0..g.args as u64).map(|k| k % 4).collect()
}
