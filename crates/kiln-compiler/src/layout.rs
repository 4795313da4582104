//! Channels last: where the device says that convolutions are faster so, they and what lies between them compute values `[n, spatial..., c]`.
//!
//! A value in memory is always dense, so a change of order is a change of the graph: a convolution becomes one of permuted operands, and elementwise
//! ops, reductions, pools, paddings and concatenations of permuted values are computed on the permuted values. Where the values end, a permutation is
//! left, which is a view like any other. Weights keep their order: a convolution reads them through a view, and their gradients are seen through one.
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::dims::{channels_first, channels_last, numel};
use kiln_ir::op::OpInputs;
use kiln_ir::{Class, DType, Dims, Graph, Limits, Node, NodeId, Op};
use smallvec::SmallVec;

/// The node of a value in each order, as far as it was needed yet.
#[derive(Clone, Copy, Default)]
struct Value {
    first: Option<NodeId>,
    last: Option<NodeId>,
    /// Whether it is computed with its channels last.
    is_last: bool,
}

struct Rewriter<'a> {
    old: &'a Graph,
    out: Graph,
    values: Vec<Value>,
}

/// A graph whose convolutions of the device's dtypes have their channels last.
pub fn order_channels(graph: Graph, limits: &Limits) -> Graph {
    if limits.channels_last.is_empty() || !graph.nodes.iter().any(|n| is_wanted(&graph, n, limits)) {
        return graph;
    }
    let out = Graph { nodes: Vec::with_capacity(graph.nodes.len() * 2), outputs: Vec::new(), donated: graph.donated.clone(), ..graph };
    let mut r = Rewriter { old: &graph, out, values: vec![Value::default(); graph.nodes.len()] };
    for k in 0..graph.nodes.len() {
        r.values[k] = r.node(k, limits);
    }
    let outputs: Vec<NodeId> = graph.outputs.iter().map(|o| r.first(*o)).collect();
    r.out.outputs = outputs;
    crate::simplify::simplify(&r.out)
}

/// Whether a node is a convolution that should have its channels last.
fn is_wanted(graph: &Graph, node: &Node, limits: &Limits) -> bool {
    let conv = matches!(node.op, Op::Conv(_) | Op::ConvInputGrad(_) | Op::ConvWeightGrad(_));
    let full = || numel(&node.dims) != 0 && node.inputs.iter().all(|i| numel(&graph.node(*i).dims) != 0);
    conv && node.dims.len() > 2 && limits.channels_last.contains(&node.dtype) && full()
}

/// The place of axis `a` of `rank` when the channels are last.
fn moved(a: usize, rank: usize) -> usize {
    match a {
        0 => 0,
        1 => rank - 1,
        _ => a - 1,
    }
}

impl Rewriter<'_> {
    fn push(&mut self, op: Op, inputs: &[NodeId], dims: Dims, dtype: DType) -> NodeId {
        self.out.push(op, OpInputs::from_slice(inputs), dims, dtype)
    }

    /// An old node's value in its own order.
    fn first(&mut self, n: NodeId) -> NodeId {
        let value = self.values[n.index()];
        if let Some(id) = value.first {
            return id;
        }
        let Some(last) = value.last else { unreachable!("an operand comes before its user") };
        let (rank, dtype) = (self.old.node(n).dims.len(), self.old.node(n).dtype);
        let mut perm: SmallVec<[u8; 8]> = (0..rank as u8).collect();
        perm[1..].rotate_right(1);
        let id = self.push(Op::Permute(perm), &[last], self.old.node(n).dims.clone(), dtype);
        self.values[n.index()].first = Some(id);
        id
    }

    /// An old node's value with its channels last; scalars as they are.
    fn last(&mut self, n: NodeId) -> NodeId {
        if let Some(id) = self.values[n.index()].last {
            return id;
        }
        let old = self.old;
        let node = old.node(n);
        let rank = node.dims.len();
        if rank < 2 {
            return self.first(n);
        }
        let dims = channels_last(&node.dims);
        let id = match &node.op {
            Op::Expand if [0, rank].contains(&old.node(node.inputs[0]).dims.len()) => {
                let x = self.last(node.inputs[0]);
                self.push(Op::Expand, &[x], dims, node.dtype)
            }
            // The same cost, and one kernel less where the operand of the cast lies in memory.
            Op::Cast => {
                let x = self.last(node.inputs[0]);
                self.push(Op::Cast, &[x], dims, node.dtype)
            }
            _ => {
                let x = self.first(n);
                let mut perm: SmallVec<[u8; 8]> = (0..rank as u8).collect();
                perm[1..].rotate_left(1);
                self.push(Op::Permute(perm), &[x], dims, node.dtype)
            }
        };
        self.values[n.index()].last = Some(id);
        id
    }

    fn is_last(&self, n: NodeId) -> bool {
        self.values[n.index()].is_last
    }

    /// The op that computes the node with its channels last, if it should be computed so.
    fn turned(&self, node: &Node, limits: &Limits) -> Option<Op> {
        let rank = node.dims.len();
        if rank < 3 {
            return None;
        }
        let operand = |k: usize| self.is_last(node.inputs[k]) && self.old.node(node.inputs[k]).dims.len() == rank;
        match &node.op {
            Op::Conv(_) | Op::ConvInputGrad(_) | Op::ConvWeightGrad(_) => {
                if is_wanted(self.old, node, limits) {
                    node.op.with_channels_last(true)
                } else {
                    None
                }
            }
            Op::MaxPool(_) | Op::AvgPool(_) | Op::MaxPoolGrad(_) | Op::AvgPoolGrad(_) if operand(0) => node.op.with_channels_last(true),
            Op::Elementwise(_) | Op::Cast if (0..node.inputs.len()).any(operand) => Some(node.op.clone()),
            Op::Expand if operand(0) => Some(Op::Expand),
            Op::Get(_) if operand(0) && self.old.node(node.inputs[0]).op.class() == Class::Pool => Some(node.op.clone()),
            Op::Reduce { op, axes } if operand(0) && !op.is_arg() => {
                let axes = (0..rank).filter(|a| axes >> a & 1 == 1).fold(0, |m, a| m | 1 << moved(a, rank));
                Some(Op::Reduce { op: *op, axes })
            }
            Op::Pad(pads) if operand(0) => {
                let mut turned = pads.clone();
                turned[1..].rotate_left(1);
                Some(Op::Pad(turned))
            }
            Op::Concat { axis } if (0..node.inputs.len()).any(operand) => Some(Op::Concat { axis: moved(*axis, rank) }),
            _ => None,
        }
    }

    fn node(&mut self, k: usize, limits: &Limits) -> Value {
        let old = self.old;
        let node = &old.nodes[k];
        let Some(op) = self.turned(node, limits) else {
            let inputs: OpInputs = node.inputs.iter().map(|i| self.first(*i)).collect();
            return Value { first: Some(self.push(node.op.clone(), &inputs, node.dims.clone(), node.dtype)), last: None, is_last: false };
        };
        let weights = matches!(op, Op::ConvWeightGrad(_));
        let inputs: OpInputs = node.inputs.iter().map(|i| self.last(*i)).collect();
        let id = self.push(op, &inputs, channels_last(&node.dims), node.dtype);
        debug_assert!(channels_first(&self.out.node(id).dims) == node.dims, "channels go back to their place");
        // What is done with a weight's gradient is done in the weight's own order.
        Value { first: None, last: Some(id), is_last: !weights }
    }
}
