//! Graphs: nodes in topological order, as a trace records them.
#![deny(clippy::wildcard_enum_match_arm)]

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use crate::infer::{InferError, infer, infer_result};
use crate::op::OpInputs;
use crate::{DType, Dims, Op};

/// Index of a node in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One op with its operands and the shape and dtype of its (first) result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// Operands, all earlier in the graph.
    pub inputs: OpInputs,
    /// Sizes of the result.
    pub dims: Dims,
    /// Element type of the result.
    pub dtype: DType,
}

/// Nodes in topological order, and which of them must be in memory at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Results, each materialised into a buffer of its own.
    pub outputs: Vec<NodeId>,
    /// Number of input buffers.
    pub inputs: usize,
    /// Number of run-time scalars.
    pub args: usize,
    /// Per input: nobody else holds the buffer, so the program may overwrite it.
    pub donated: Vec<bool>,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The node `id`.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Appends a node whose shape and dtype the caller knows to be right (see [`Graph::add`] for the checked form).
    pub fn push(&mut self, op: Op, inputs: impl Into<OpInputs>, dims: Dims, dtype: DType) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { op, inputs: inputs.into(), dims, dtype });
        id
    }

    /// A new input buffer.
    pub fn input(&mut self, dims: &[usize], dtype: DType) -> NodeId {
        let n = self.inputs as u32;
        self.inputs += 1;
        self.donated.push(false);
        self.push(Op::Input(n), OpInputs::new(), dims.into(), dtype)
    }

    /// A new run-time scalar.
    pub fn arg(&mut self, dtype: DType) -> NodeId {
        let n = self.args as u32;
        self.args += 1;
        self.push(Op::Arg(n), OpInputs::new(), Dims::new(), dtype)
    }

    /// A constant scalar from its word (see [`crate::op::word_from_f64`]).
    pub fn constant(&mut self, dtype: DType, word: u64) -> NodeId {
        self.push(Op::Const(word), OpInputs::new(), Dims::new(), dtype)
    }

    /// Appends a node, inferring shape and dtype from the operands. For ops whose result is not determined by the operands (reshape, expand, slice, cast, ...)
    /// use [`Graph::add_as`].
    pub fn add(&mut self, op: Op, inputs: &[NodeId]) -> Result<NodeId, InferError> {
        let (dims, dtype) = {
            let types: Vec<(&[usize], DType)> = inputs.iter().map(|i| (&self.node(*i).dims[..], self.node(*i).dtype)).collect();
            infer(&op, &types)?
        };
        Ok(self.push(op, OpInputs::from_slice(inputs), dims, dtype))
    }

    /// Appends a node with a stated shape and dtype; they are checked against the operands.
    pub fn add_as(&mut self, op: Op, inputs: &[NodeId], dims: &[usize], dtype: DType) -> Result<NodeId, InferError> {
        {
            let types: Vec<(&[usize], DType)> = inputs.iter().map(|i| (&self.node(*i).dims[..], self.node(*i).dtype)).collect();
            crate::infer::check(&op, &types, dims, dtype)?;
        }
        Ok(self.push(op, OpInputs::from_slice(inputs), dims.into(), dtype))
    }

    /// Names result `i` (from 1 on) of a node with several results.
    pub fn get(&mut self, of: NodeId, i: u32) -> Result<NodeId, InferError> {
        let (dims, dtype) = self.result_type(of, i)?;
        Ok(self.push(Op::Get(i), OpInputs::from_slice(&[of]), dims, dtype))
    }

    /// Shape and dtype of result `i` of a node.
    pub fn result_type(&self, of: NodeId, i: u32) -> Result<(Dims, DType), InferError> {
        let node = self.node(of);
        if i == 0 {
            return Ok((node.dims.clone(), node.dtype));
        }
        let types: Vec<(&[usize], DType)> = node.inputs.iter().map(|i| (&self.node(*i).dims[..], self.node(*i).dtype)).collect();
        infer_result(&node.op, &types, (&node.dims, node.dtype), i)
    }

    /// One line a node, for logs and snapshot tests.
    pub fn print(&self) -> String {
        let mut s = String::new();
        for (k, n) in self.nodes.iter().enumerate() {
            let _ = write!(s, "%{k} = {}", n.op.name());
            match &n.op {
                Op::Input(i) | Op::Arg(i) | Op::Get(i) => {
                    let _ = write!(s, "#{i}");
                }
                Op::Const(w) => {
                    let (f, i) = crate::op::word_value(n.dtype, *w);
                    let _ = if n.dtype.is_float() { write!(s, " {f}") } else { write!(s, " {i}") };
                }
                Op::Iota { axis }
                | Op::Concat { axis }
                | Op::Gather { axis }
                | Op::Scatter { axis, .. }
                | Op::Sort { axis, .. }
                | Op::Scan { axis, .. } => {
                    let _ = write!(s, "@{axis}");
                }
                Op::Reduce { axes, .. } => {
                    let axes: Vec<usize> = (0..32).filter(|a| axes >> a & 1 == 1).collect();
                    let _ = write!(s, "@{axes:?}");
                }
                Op::Permute(p) => {
                    let _ = write!(s, "{:?}", &p[..]);
                }
                Op::Random(_)
                | Op::Elementwise(_)
                | Op::Cast
                | Op::Reshape
                | Op::Expand
                | Op::Slice(_)
                | Op::Window(_)
                | Op::Pad(_)
                | Op::Update(_)
                | Op::Dot
                | Op::Conv(_)
                | Op::ConvInputGrad(_)
                | Op::ConvWeightGrad(_)
                | Op::MaxPool(_)
                | Op::AvgPool(_)
                | Op::MaxPoolGrad(_)
                | Op::AvgPoolGrad(_)
                | Op::Fold(_)
                | Op::Attention(_)
                | Op::AttentionGrad(_)
                | Op::Host(_) => {}
            }
            for (j, i) in n.inputs.iter().enumerate() {
                let _ = write!(s, "{}%{}", if j == 0 { " " } else { ", " }, i.0);
            }
            let out = if self.outputs.iter().any(|o| o.index() == k) { " -> out" } else { "" };
            let _ = writeln!(s, " : {}{:?}{out}", n.dtype, &n.dims[..]);
        }
        s
    }
}
