//! Channels last: where the device says that convolutions are faster so, they and what lies between them compute values `[n, spatial..., c]`.
//!
//! A value in memory is always dense, so a change of order is a change of the graph: a convolution becomes one of permuted operands, and elementwise
//! ops, reductions, pools, paddings and concatenations of permuted values are computed on the permuted values. Where the values end, a permutation is
//! left, which is a view like any other. Weights keep their order: a convolution reads them through a view, and their gradients are seen through one.
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::dims::{channels_first, channels_last, numel};
use kiln_ir::op::{ConvAttrs, OpInputs, SliceAxis};
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
        if is_wanted(old, node, limits)
            && let Some(blocks) = Blocks::of(old, node)
        {
            return self.in_blocks(node, &blocks);
        }
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

    /// A tensor `[n, spatial..., c]`, padded to whole blocks and whole channels, as `[n, blocks..., places of a block and channels]`.
    fn blocked(&mut self, x: NodeId, before: &[usize], count: &[usize], blocks: &Blocks) -> NodeId {
        let Node { dims, dtype, .. } = self.out.node(x).clone();
        let n = count.len();
        let mut padded = dims.clone();
        let mut pads: SmallVec<[(usize, usize); 6]> = SmallVec::from_elem((0, 0), n + 2);
        for s in 0..n {
            padded[s + 1] = count[s] * blocks.stride[s];
            pads[s + 1] = (before[s], padded[s + 1] - before[s] - dims[s + 1]);
        }
        padded[n + 1] = blocks.channels;
        pads[n + 1].1 = blocks.channels - dims[n + 1];
        let zero = self.push(Op::Const(0), &[], Dims::new(), dtype);
        let padded = self.push(Op::Pad(pads), &[x, zero], padded, dtype);
        let mut split = Dims::from_slice(&dims[..1]);
        (0..n).for_each(|s| split.extend([count[s], blocks.stride[s]]));
        split.push(blocks.channels);
        let split = self.push(Op::Reshape, &[padded], split, dtype);
        // Blocks first, then the places inside of them.
        let perm: SmallVec<[u8; 8]> =
            [0].into_iter().chain((0..n).map(|s| 2 * s + 1)).chain((0..n).map(|s| 2 * s + 2)).chain([2 * n + 1]).map(|a| a as u8).collect();
        let turned: Dims = perm.iter().map(|a| self.out.node(split).dims[*a as usize]).collect();
        let turned = self.push(Op::Permute(perm), &[split], turned, dtype);
        self.push(Op::Reshape, &[turned], blocks.shape(dims[0], count), dtype)
    }

    /// A convolution with strides over blocks of as many places as it strides.
    fn in_blocks(&mut self, node: &Node, blocks: &Blocks) -> Value {
        let n = blocks.stride.len();
        let x = self.last(node.inputs[0]);
        let x = self.blocked(x, &blocks.before, &blocks.count, blocks);
        let other = self.last(node.inputs[1]);
        let one = || SmallVec::from_elem(1, n);
        let attrs = ConvAttrs { stride: one(), dilation: one(), padding: SmallVec::from_elem((0, 0), n), groups: 1, channels_last: true };
        if matches!(node.op, Op::Conv(_)) {
            let w = self.blocked(other, &SmallVec::<[usize; 3]>::from_elem(0, n), &blocks.kernel, blocks);
            let y = self.push(Op::Conv(attrs), &[x, w], channels_last(&node.dims), node.dtype);
            return Value { first: None, last: Some(y), is_last: true };
        }
        let dims = channels_last(&node.dims);
        let dw = self.push(Op::ConvWeightGrad(attrs), &[x, other], blocks.shape(dims[0], &blocks.kernel), node.dtype);
        // Back to kernel elements in their order, and without those that were added.
        let mut split = Dims::from_slice(&dims[..1]);
        split.extend(blocks.kernel.iter().chain(&blocks.stride).copied());
        split.push(blocks.channels);
        let split = self.push(Op::Reshape, &[dw], split, node.dtype);
        let perm: SmallVec<[u8; 8]> = [0].into_iter().chain((0..n).flat_map(|s| [1 + s, 1 + n + s])).chain([2 * n + 1]).map(|a| a as u8).collect();
        let turned: Dims = perm.iter().map(|a| self.out.node(split).dims[*a as usize]).collect();
        let turned = self.push(Op::Permute(perm), &[split], turned, node.dtype);
        let mut whole = dims.clone();
        (0..n).for_each(|s| whole[s + 1] = blocks.kernel[s] * blocks.stride[s]);
        whole[n + 1] = blocks.channels;
        let whole = self.push(Op::Reshape, &[turned], whole, node.dtype);
        let zero = self.push(Op::Const(0), &[], Dims::new(), DType::I64);
        let axes: SmallVec<[SliceAxis; 4]> = (1..n + 2).map(|a| SliceAxis { axis: a as u8, step: 1 }).collect();
        let inputs: Vec<NodeId> = [whole].into_iter().chain(axes.iter().map(|_| zero)).collect();
        let id = self.push(Op::Slice(axes), &inputs, dims, node.dtype);
        Value { first: None, last: Some(id), is_last: false }
    }
}

/// Fewest channels that convolutions like to sum over.
const CHANNELS: usize = 8;

/// How a convolution of few channels that strides over all axes is one of more channels that does not: places that it strides over together are a block,
/// and a block's places are channels.
struct Blocks {
    /// Places of a block, by axis.
    stride: SmallVec<[usize; 3]>,
    /// Blocks of the padded input.
    count: SmallVec<[usize; 3]>,
    /// Zeros before the input.
    before: SmallVec<[usize; 3]>,
    /// Blocks that a kernel spans.
    kernel: SmallVec<[usize; 3]>,
    /// Channels of one place, with zeros up to a good number.
    channels: usize,
}

impl Blocks {
    /// The blocks of a convolution, or of its gradient for the weight.
    fn of(graph: &Graph, node: &Node) -> Option<Blocks> {
        let dims = |k: usize| &graph.node(node.inputs[k]).dims;
        let (attrs, x, w, y) = match &node.op {
            Op::Conv(a) => (a, dims(0), dims(1), &node.dims),
            Op::ConvWeightGrad(a) => (a, dims(0), &node.dims, dims(1)),
            _ => return None,
        };
        let stride: SmallVec<[usize; 3]> = attrs.stride.clone();
        let places: usize = stride.iter().product();
        let plain = attrs.groups == 1 && !attrs.channels_last && attrs.dilation.iter().all(|d| *d == 1);
        if !plain || x[1] >= CHANNELS / 2 || stride.contains(&1) || places > 64 {
            return None;
        }
        let n = stride.len();
        let kernel: SmallVec<[usize; 3]> = (0..n).map(|s| w[s + 2].div_ceil(stride[s])).collect();
        let count: SmallVec<[usize; 3]> = (0..n).map(|s| y[s + 2] + kernel[s] - 1).collect();
        let before: SmallVec<[usize; 3]> = attrs.padding.iter().map(|p| p.0).collect();
        if (0..n).any(|s| count[s] * stride[s] < before[s] + x[s + 2]) {
            return None;
        }
        let channels = (x[1]..).find(|c| (c * places).is_multiple_of(CHANNELS))?;
        Some(Blocks { stride, count, before, kernel, channels })
    }

    fn shape(&self, first: usize, count: &[usize]) -> Dims {
        let mut dims = Dims::from_slice(&[first]);
        dims.extend(count.iter().copied());
        dims.push(self.stride.iter().product::<usize>() * self.channels);
        dims
    }
}
