//! Two-stage reductions: long rows with too few results to keep every worker busy are reduced in chunks first.
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use kiln_ir::dims::numel;
use kiln_ir::op::OpInputs;
use kiln_ir::{Dims, Graph, Limits, Node, NodeId, Op};

use crate::relation::Pattern;

/// Reductions of fewer elements stay whole.
const LONG: usize = 1 << 16;
/// Most chunks of the first stage. A constant, so that sums don't depend on the number of workers.
const CHUNKS: usize = 256;
/// Fewest elements of a chunk.
const CHUNK_LEN: usize = 256;

/// Splits the long reductions of a graph.
pub fn split_reductions(graph: Graph, limits: &Limits) -> Graph {
    let wanted: Vec<Option<Split>> = graph.nodes.iter().map(|n| split_of(&graph, n, limits)).collect();
    if wanted.iter().all(Option::is_none) {
        return graph;
    }
    let mut out = Graph { nodes: Vec::with_capacity(graph.nodes.len() + 8), outputs: Vec::new(), ..graph };
    let mut map = vec![NodeId(0); graph.nodes.len()];
    for (k, mut node) in graph.nodes.into_iter().enumerate() {
        node.inputs.iter_mut().for_each(|i| *i = map[i.index()]);
        map[k] = match (&wanted[k], &node.op) {
            (Some(split), Op::Reduce { op, axes }) => two_stages(&mut out, &node, *op, *axes, split),
            _ => {
                out.nodes.push(node);
                NodeId(out.nodes.len() as u32 - 1)
            }
        };
    }
    out.outputs = graph.outputs.iter().map(|o| map[o.index()]).collect();
    out
}

/// A run of reduced axes to be seen as `[chunks, len]`.
struct Split {
    axes: Range<usize>,
    chunks: usize,
    len: usize,
}

fn split_of(graph: &Graph, node: &Node, limits: &Limits) -> Option<Split> {
    let Op::Reduce { op, axes } = node.op else { return None };
    let x = &graph.node(node.inputs[0]).dims;
    if op.is_arg() || numel(x) < LONG || Pattern::new(x, axes).workers() >= limits.parallelism {
        return None;
    }
    let reduced = |a: usize| axes >> a & 1 == 1 || x[a] == 1;
    let mut best: Range<usize> = 0..0;
    let mut start = 0;
    for a in 0..=x.len() {
        if a == x.len() || !reduced(a) {
            if numel(&x[start..a]) > numel(&x[best.clone()]) {
                best = start..a;
            }
            start = a + 1;
        }
    }
    let total = numel(&x[best.clone()]);
    let chunks = (2..=CHUNKS).rev().find(|c| total.is_multiple_of(*c) && total / c >= CHUNK_LEN)?;
    Some(Split { axes: best, chunks, len: total / chunks })
}

fn two_stages(out: &mut Graph, node: &Node, op: kiln_ir::ReduceOp, axes: u32, split: &Split) -> NodeId {
    let x = node.inputs[0];
    let old = out.node(x).dims.clone();
    let Range { start, end } = split.axes;
    let mut dims = Dims::from_slice(&old[..start]);
    dims.extend([split.chunks, split.len]);
    dims.extend(old[end..].iter().copied());
    // Reduced in the first stage: what was reduced outside of the run, and the length of the chunks.
    let inner = (axes & ((1 << start) - 1)) | (1 << (start + 1)) | ((axes >> end) << (start + 2));
    let view = out.push(Op::Reshape, OpInputs::from_slice(&[x]), dims.clone(), out.node(x).dtype);
    let partial: Dims = (0..dims.len()).map(|a| if inner >> a & 1 == 1 { 1 } else { dims[a] }).collect();
    let first = out.push(Op::Reduce { op, axes: inner }, OpInputs::from_slice(&[view]), partial.clone(), node.dtype);
    let mut whole = partial;
    whole[start] = 1;
    let second = out.push(Op::Reduce { op, axes: 1 << start }, OpInputs::from_slice(&[first]), whole, node.dtype);
    out.push(Op::Reshape, OpInputs::from_slice(&[second]), node.dims.clone(), node.dtype)
}
