//! Simplification: dead nodes, common subexpressions, constants, identities and view chains. The graph is rebuilt once, rule by rule.
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::HashMap;
use kiln_ir::dims::numel;
use kiln_ir::op::{OpInputs, word_from_f64, word_from_int, word_value};
use kiln_ir::{Class, DType, Dims, Elementwise, Graph, Node, NodeId, Op, ReduceOp};
use smallvec::SmallVec;

/// A graph that computes the same outputs with no dead, repeated or needless node.
pub fn simplify(graph: &Graph) -> Graph {
    let alive = reachable(graph);
    let mut b = Builder { out: Graph::new(), seen: HashMap::new() };
    b.out.inputs = graph.inputs;
    b.out.args = graph.args;
    b.out.donated = graph.donated.clone();
    let mut map = vec![NodeId(u32::MAX); graph.nodes.len()];
    for (k, node) in graph.nodes.iter().enumerate() {
        if alive[k] {
            let inputs: OpInputs = node.inputs.iter().map(|i| map[i.index()]).collect();
            map[k] = b.add(Node { op: node.op.clone(), inputs, dims: node.dims.clone(), dtype: node.dtype });
        }
    }
    b.out.outputs = graph.outputs.iter().map(|o| map[o.index()]).collect();
    drop_dead(b.out)
}

/// Which nodes some output needs.
fn reachable(graph: &Graph) -> Vec<bool> {
    let mut alive = vec![false; graph.nodes.len()];
    for o in &graph.outputs {
        alive[o.index()] = true;
    }
    for k in (0..graph.nodes.len()).rev() {
        if alive[k] {
            for i in &graph.nodes[k].inputs {
                alive[i.index()] = true;
            }
        }
    }
    alive
}

/// Removes what the rules left without a user.
fn drop_dead(graph: Graph) -> Graph {
    let alive = reachable(&graph);
    if alive.iter().all(|a| *a) {
        return graph;
    }
    let mut map = vec![NodeId(u32::MAX); graph.nodes.len()];
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for (k, mut node) in graph.nodes.into_iter().enumerate() {
        if alive[k] {
            node.inputs.iter_mut().for_each(|i| *i = map[i.index()]);
            map[k] = NodeId(nodes.len() as u32);
            nodes.push(node);
        }
    }
    let outputs = graph.outputs.iter().map(|o| map[o.index()]).collect();
    Graph { nodes, outputs, inputs: graph.inputs, args: graph.args, donated: graph.donated }
}

struct Builder {
    out: Graph,
    seen: HashMap<Node, NodeId>,
}

impl Builder {
    /// Adds a node after rewriting it: the result may be an older node.
    fn add(&mut self, mut node: Node) -> NodeId {
        let other_results = matches!(node.op.class(), Class::Attention | Class::Host);
        if node.dims.contains(&0) && !matches!(node.op, Op::Input(_)) && !other_results {
            // Nothing to compute: any filler of the shape will do (where other results may have elements, the op stays).
            let zero = self.add(constant(node.dtype, 0));
            node = Node { op: Op::Expand, inputs: OpInputs::from_slice(&[zero]), dims: node.dims, dtype: node.dtype };
        }
        loop {
            match self.rewrite(&node) {
                Rewrite::Keep => break,
                Rewrite::Same(id) => return id,
                Rewrite::Into(n) => node = n,
            }
        }
        if matches!(node.op, Op::Elementwise(_)) && !node.dims.is_empty() {
            // A scalar from memory is an explicit broadcast, so that later passes see how its user walks it.
            for k in 0..node.inputs.len() {
                let x = node.inputs[k];
                if self.node(x).dims.is_empty() && !self.is_uniform(x) {
                    let dtype = self.node(x).dtype;
                    node.inputs[k] = self.add(Node { op: Op::Expand, inputs: OpInputs::from_slice(&[x]), dims: node.dims.clone(), dtype });
                }
            }
        }
        if let Op::Elementwise(e) = node.op
            && e.is_commutative()
            && node.inputs[0] > node.inputs[1]
        {
            node.inputs.swap(0, 1);
        }
        if let Some(id) = self.seen.get(&node) {
            return *id;
        }
        let id = NodeId(self.out.nodes.len() as u32);
        self.seen.insert(node.clone(), id);
        self.out.nodes.push(node);
        id
    }

    fn node(&self, id: NodeId) -> &Node {
        self.out.node(id)
    }

    /// The constant behind a node, through broadcasts and reshapes.
    fn constant(&self, id: NodeId) -> Option<u64> {
        let mut n = self.node(id);
        while matches!(n.op, Op::Expand | Op::Reshape) {
            n = self.node(n.inputs[0]);
        }
        match n.op {
            Op::Const(w) => Some(w),
            _ => None,
        }
    }

    /// Whether a scalar is computed from constants and run-time scalars alone.
    fn is_uniform(&self, id: NodeId) -> bool {
        let node = self.node(id);
        match node.op {
            Op::Const(_) | Op::Arg(_) => true,
            _ => node.op.is_elementwise() && node.inputs.iter().all(|i| self.is_uniform(*i)),
        }
    }

    fn is_number(&self, id: NodeId, v: i32) -> bool {
        let dtype = self.node(id).dtype;
        self.constant(id).is_some_and(|w| if dtype.is_float() { f64::from_bits(w) == v as f64 } else { word_value(dtype, w).1 == v as i128 })
    }

    /// Broadcasts `id` to `dims` when the node it replaces had that shape.
    fn shaped(&self, id: NodeId, dims: &Dims) -> Rewrite {
        let n = self.node(id);
        if n.dims == *dims {
            Rewrite::Same(id)
        } else {
            Rewrite::Into(Node { op: Op::Expand, inputs: OpInputs::from_slice(&[id]), dims: dims.clone(), dtype: n.dtype })
        }
    }

    fn rewrite(&mut self, node: &Node) -> Rewrite {
        match &node.op {
            Op::Elementwise(e) => self.elementwise(*e, node),
            Op::Cast => self.cast(node),
            Op::Reshape => self.reshape(node),
            Op::Permute(perm) => self.permute(perm, node),
            Op::Expand => self.expand(node),
            Op::Slice(axes) => self.slice(axes, node),
            Op::Reduce { op, axes } => self.reduce(*op, *axes, node),
            Op::Pad(pads) if pads.iter().all(|p| *p == (0, 0)) => Rewrite::Same(node.inputs[0]),
            Op::Concat { axis } => self.concat(*axis, node),
            Op::Update(axes) => self.update(axes, node),
            _ => Rewrite::Keep,
        }
    }

    fn elementwise(&mut self, e: Elementwise, node: &Node) -> Rewrite {
        use Elementwise::*;
        // A broadcast scalar operand is read as a scalar.
        if !node.dims.is_empty() {
            let mut inputs = node.inputs.clone();
            let mut changed = false;
            for i in inputs.iter_mut() {
                let mut s = *i;
                while matches!(self.node(s).op, Op::Expand | Op::Reshape) && !self.node(s).dims.is_empty() {
                    s = self.node(s).inputs[0];
                }
                if s != *i && self.node(s).dims.is_empty() {
                    *i = s;
                    changed = true;
                }
            }
            if inputs.iter().all(|i| self.node(*i).dims.is_empty()) {
                // All operands are scalars: compute once and broadcast.
                let scalar = self.add(Node { op: node.op.clone(), inputs, dims: Dims::new(), dtype: node.dtype });
                return self.shaped(scalar, &node.dims);
            }
            if changed {
                return Rewrite::Into(Node { op: node.op.clone(), inputs, dims: node.dims.clone(), dtype: node.dtype });
            }
        }
        let x = node.inputs[0];
        let dtype = self.node(x).dtype;
        // Constants.
        if node.dims.is_empty() {
            let words: Option<SmallVec<[u64; 3]>> = node.inputs.iter().map(|i| self.constant(*i)).collect();
            if let Some(words) = words {
                return Rewrite::Into(constant(node.dtype, self.fold(e, &words, node)));
            }
        }
        match e {
            Neg => {
                let inner = self.node(x);
                if inner.op == Op::Elementwise(Neg) { self.shaped(inner.inputs[0], &node.dims) } else { Rewrite::Keep }
            }
            Not => {
                let inner = self.node(x);
                if inner.op == Op::Elementwise(Not) { self.shaped(inner.inputs[0], &node.dims) } else { Rewrite::Keep }
            }
            Add => {
                let y = node.inputs[1];
                if self.is_number(y, 0) && !self.negative_zero_matters(dtype) {
                    self.shaped(x, &node.dims)
                } else if self.is_number(x, 0) && !self.negative_zero_matters(dtype) {
                    self.shaped(y, &node.dims)
                } else {
                    self.join_pads(x, y, node).or_else(|| self.join_pads(y, x, node)).unwrap_or(Rewrite::Keep)
                }
            }
            Sub if self.is_number(node.inputs[1], 0) => self.shaped(x, &node.dims),
            Mul => {
                let y = node.inputs[1];
                if self.is_number(y, 1) {
                    self.shaped(x, &node.dims)
                } else if self.is_number(x, 1) {
                    self.shaped(y, &node.dims)
                } else {
                    Rewrite::Keep
                }
            }
            Div if self.is_number(node.inputs[1], 1) => self.shaped(x, &node.dims),
            Where => {
                let (a, b) = (node.inputs[1], node.inputs[2]);
                match self.constant(x) {
                    Some(0) => self.shaped(b, &node.dims),
                    Some(_) => self.shaped(a, &node.dims),
                    None if a == b => self.shaped(a, &node.dims),
                    None => Rewrite::Keep,
                }
            }
            _ => Rewrite::Keep,
        }
    }

    /// The axis, offset and operand of a tensor padded with zeros along one axis only.
    fn zero_pad(&self, id: NodeId) -> Option<(usize, usize, NodeId)> {
        let node = self.node(id);
        let Op::Pad(pads) = &node.op else { return None };
        let mut padded = pads.iter().enumerate().filter(|(_, p)| **p != (0, 0));
        let ((axis, p), None) = (padded.next()?, padded.next()) else { return None };
        self.is_number(node.inputs[1], 0).then_some((axis, p.0, node.inputs[0]))
    }

    /// The sum of two tensors padded so that one begins where the other ends is their concatenation: what gradients of slices add up to.
    fn join_pads(&mut self, x: NodeId, y: NodeId, node: &Node) -> Option<Rewrite> {
        let ((axis, lo, a), (other, at, b)) = (self.zero_pad(x)?, self.zero_pad(y)?);
        let (na, nb) = (self.node(a).dims[axis], self.node(b).dims[axis]);
        if axis != other || lo + na != at {
            return None;
        }
        let mut parts = OpInputs::new();
        for part in [a, b] {
            match &self.node(part).op {
                Op::Concat { axis: inner } if *inner == axis => parts.extend(self.node(part).inputs.iter().copied()),
                _ => parts.push(part),
            }
        }
        let mut dims = node.dims.clone();
        let hi = dims[axis] - at - nb;
        dims[axis] = na + nb;
        let joined = self.add(Node { op: Op::Concat { axis }, inputs: parts, dims, dtype: node.dtype });
        let fill = self.node(x).inputs[1];
        let pads = (0..node.dims.len()).map(|d| if d == axis { (lo, hi) } else { (0, 0) }).collect();
        Some(Rewrite::Into(Node { op: Op::Pad(pads), inputs: OpInputs::from_slice(&[joined, fill]), dims: node.dims.clone(), dtype: node.dtype }))
    }

    /// A region written into zeros at a fixed place is padding.
    fn update(&mut self, axes: &[kiln_ir::op::SliceAxis], node: &Node) -> Rewrite {
        let (base, value) = (node.inputs[0], node.inputs[1]);
        if self.constant(base) != Some(0) || axes.iter().any(|a| a.step != 1) {
            return Rewrite::Keep;
        }
        let mut pads: SmallVec<[(usize, usize); 6]> = SmallVec::from_elem((0, 0), node.dims.len());
        for (a, start) in axes.iter().zip(&node.inputs[2..]) {
            let Some(start) = self.constant(*start) else { return Rewrite::Keep };
            let axis = a.axis as usize;
            pads[axis] = (start as usize, node.dims[axis] - start as usize - self.node(value).dims[axis]);
        }
        let zero = self.add(constant(node.dtype, 0));
        Rewrite::Into(Node { op: Op::Pad(pads), inputs: OpInputs::from_slice(&[value, zero]), dims: node.dims.clone(), dtype: node.dtype })
    }

    /// `-0.0 + 0.0` is `0.0`: dropping a float addition of zero could keep a minus sign.
    fn negative_zero_matters(&self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn fold(&self, e: Elementwise, words: &[u64], node: &Node) -> u64 {
        let mut f = [0.0f64; 3];
        let mut i = [0i128; 3];
        let mut float = false;
        for (k, w) in words.iter().enumerate() {
            let dtype = self.node(node.inputs[k]).dtype;
            (f[k], i[k]) = word_value(dtype, *w);
            float |= dtype.is_float();
            if dtype == DType::Bool {
                f[k] = i[k] as f64;
            }
        }
        if float {
            // The arithmetic of the node's lane: f32 unless it is f64.
            let single = |v: f64| if self.node(*node.inputs.last().expect("an op has operands")).dtype == DType::F64 { v } else { v as f32 as f64 };
            let v = single((e.row().float)(single(f[0]), single(f[1]), single(f[2])));
            if node.dtype == DType::Bool { (v != 0.0) as u64 } else { v.to_bits() }
        } else {
            let v = (e.row().int)(i[0], i[1], i[2]);
            // A bool is one bit: its complement is that bit's.
            if node.dtype == DType::Bool { (v & 1) as u64 } else { node.dtype.wrap(v) as u64 }
        }
    }

    fn cast(&mut self, node: &Node) -> Rewrite {
        let x = node.inputs[0];
        let from = self.node(x);
        if from.dtype == node.dtype {
            return Rewrite::Same(x);
        }
        if from.op == Op::Expand && self.node(from.inputs[0]).dims.is_empty() {
            let inputs = from.inputs.clone();
            let scalar = self.add(Node { op: Op::Cast, inputs, dims: Dims::new(), dtype: node.dtype });
            return self.shaped(scalar, &node.dims);
        }
        let from = self.node(x);
        if let Op::Const(w) = from.op
            && matches!(node.dtype, DType::F64 | DType::F32)
        {
            let (f, i) = word_value(from.dtype, w);
            let word = if from.dtype.is_float() { word_from_f64(node.dtype, f) } else { word_from_int(node.dtype, i) };
            let word = if node.dtype == DType::F32 { (f64::from_bits(word) as f32 as f64).to_bits() } else { word };
            return Rewrite::Into(constant(node.dtype, word));
        }
        Rewrite::Keep
    }

    fn reshape(&self, node: &Node) -> Rewrite {
        let x = node.inputs[0];
        let inner = self.node(x);
        if inner.dims == node.dims {
            return Rewrite::Same(x);
        }
        match inner.op {
            Op::Reshape => Rewrite::Into(Node { inputs: inner.inputs.clone(), ..node.clone() }),
            // A broadcast scalar stays one under any shape.
            Op::Expand if self.node(inner.inputs[0]).dims.is_empty() => {
                Rewrite::Into(Node { op: Op::Expand, inputs: inner.inputs.clone(), dims: node.dims.clone(), dtype: node.dtype })
            }
            _ => Rewrite::Keep,
        }
    }

    fn permute(&self, perm: &[u8], node: &Node) -> Rewrite {
        let x = node.inputs[0];
        if perm.iter().enumerate().all(|(i, p)| i == *p as usize) {
            return Rewrite::Same(x);
        }
        let inner = self.node(x);
        if let Op::Permute(p) = &inner.op {
            let both = perm.iter().map(|&i| p[i as usize]).collect();
            return Rewrite::Into(Node { op: Op::Permute(both), inputs: inner.inputs.clone(), ..node.clone() });
        }
        // Moving axes of size 1 only is a reshape.
        let long: SmallVec<[u8; 8]> = perm.iter().copied().filter(|&p| inner.dims[p as usize] != 1).collect();
        if long.windows(2).all(|w| w[0] < w[1]) {
            return Rewrite::Into(Node { op: Op::Reshape, ..node.clone() });
        }
        Rewrite::Keep
    }

    fn expand(&self, node: &Node) -> Rewrite {
        let x = node.inputs[0];
        let inner = self.node(x);
        if inner.dims == node.dims {
            return Rewrite::Same(x);
        }
        if inner.op == Op::Expand {
            return Rewrite::Into(Node { inputs: inner.inputs.clone(), ..node.clone() });
        }
        if numel(&inner.dims) == numel(&node.dims) && !node.dims.contains(&0) {
            return Rewrite::Into(Node { op: Op::Reshape, ..node.clone() });
        }
        // Reshapes of a scalar.
        if inner.op == Op::Reshape && self.node(inner.inputs[0]).dims.is_empty() {
            return Rewrite::Into(Node { inputs: inner.inputs.clone(), ..node.clone() });
        }
        Rewrite::Keep
    }

    fn slice(&self, axes: &[kiln_ir::op::SliceAxis], node: &Node) -> Rewrite {
        let x = node.inputs[0];
        let inner = self.node(x);
        let whole = axes
            .iter()
            .zip(&node.inputs[1..])
            .all(|(a, start)| a.step == 1 && node.dims[a.axis as usize] == inner.dims[a.axis as usize] && self.is_number(*start, 0));
        if whole {
            return Rewrite::Same(x);
        }
        // A slice of one operand of a concatenation.
        if let (Op::Concat { axis }, [a]) = (&inner.op, axes)
            && a.axis as usize == *axis
            && a.step == 1
            && let Some(start) = self.constant(node.inputs[1])
        {
            let (lo, hi) = (start as usize, start as usize + node.dims[*axis]);
            let mut at = 0;
            for &part in &inner.inputs {
                let n = self.node(part).dims[*axis];
                if lo == at && hi == at + n {
                    return Rewrite::Same(part);
                }
                at += n;
            }
        }
        Rewrite::Keep
    }

    fn reduce(&self, op: ReduceOp, axes: u32, node: &Node) -> Rewrite {
        let x = node.inputs[0];
        let inner = self.node(x);
        let long: u32 = (0..inner.dims.len()).filter(|&a| axes >> a & 1 == 1 && inner.dims[a] != 1).fold(0, |m, a| m | 1 << a);
        if long == axes {
            return Rewrite::Keep;
        }
        if long == 0 && !op.is_arg() {
            return Rewrite::Same(x);
        }
        if long != 0 {
            return Rewrite::Into(Node { op: Op::Reduce { op, axes: long }, ..node.clone() });
        }
        Rewrite::Keep
    }

    fn concat(&self, axis: usize, node: &Node) -> Rewrite {
        let parts: OpInputs = node.inputs.iter().copied().filter(|i| self.node(*i).dims[axis] != 0).collect();
        match parts.len() {
            1 => Rewrite::Same(parts[0]),
            0 => Rewrite::Keep,
            n if n != node.inputs.len() => Rewrite::Into(Node { inputs: parts, ..node.clone() }),
            _ => Rewrite::Keep,
        }
    }
}

#[allow(clippy::large_enum_variant)]
enum Rewrite {
    Keep,
    Same(NodeId),
    Into(Node),
}

fn constant(dtype: DType, word: u64) -> Node {
    Node { op: Op::Const(word), inputs: OpInputs::new(), dims: Dims::new(), dtype }
}
