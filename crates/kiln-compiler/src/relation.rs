//! How an operand lies relative to its user: element by element, broadcast along some axes, or otherwise.
use kiln_ir::{Graph, NodeId, Op};
use smallvec::SmallVec;

/// Neighbouring columns that one worker takes together.
const STRIP: usize = 32;
/// Elements from which on columns are taken in strips.
const MUCH: usize = 1 << 20;

/// A shape split into runs of kept and reduced (or broadcast) elements, axes of size 1 left out. Shapes that differ by reshaping within runs have equal patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(pub SmallVec<[(bool, usize); 4]>);

impl Pattern {
    /// The pattern of `dims` with the axes of the bit mask reduced.
    pub fn new(dims: &[usize], axes: u32) -> Self {
        let mut runs: SmallVec<[(bool, usize); 4]> = SmallVec::new();
        for (a, &d) in dims.iter().enumerate() {
            if d == 1 {
                continue;
            }
            let reduced = axes >> a & 1 == 1;
            match runs.last_mut() {
                Some(r) if r.0 == reduced => r.1 *= d,
                _ => runs.push((reduced, d)),
            }
        }
        Pattern(runs)
    }

    /// Number of kept points.
    pub fn kept(&self) -> usize {
        self.0.iter().filter(|r| !r.0).map(|r| r.1).product()
    }

    /// Number of reduced points.
    pub fn reduced(&self) -> usize {
        self.0.iter().filter(|r| r.0).map(|r| r.1).product()
    }

    /// How many workers a reduction of this pattern can keep busy: each takes kept points, or strips of neighbouring ones where those lie innermost and
    /// there is much to reduce.
    pub fn workers(&self) -> usize {
        let kept = self.kept();
        match self.inner_kept() {
            Some(inner) if kept * self.reduced() >= MUCH => kept / inner.clamp(1, STRIP),
            _ => kept,
        }
    }

    /// Size of the innermost run, if it is kept.
    pub fn inner_kept(&self) -> Option<usize> {
        self.0.last().filter(|r| !r.0).map(|r| r.1)
    }
}

/// The relation of a user's elements to an operand's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Element `i` needs element `i`.
    Aligned,
    /// The operand is broadcast along the reduced runs of the pattern.
    Broadcast(Pattern),
    /// Anything else.
    Other,
}

/// Follows views from an operand down to the node that computes it.
pub fn source(graph: &Graph, operand: NodeId) -> (NodeId, Relation) {
    let mut cur = operand;
    let mut relation = Relation::Aligned;
    loop {
        let node = graph.node(cur);
        match &node.op {
            Op::Reshape => {}
            Op::Expand => {
                let inner = &graph.node(node.inputs[0]).dims;
                let lead = node.dims.len() - inner.len();
                let mut axes = 0u32;
                for (a, &d) in node.dims.iter().enumerate() {
                    if d != 1 && (a < lead || inner[a - lead] == 1) {
                        axes |= 1 << a;
                    }
                }
                if axes != 0 {
                    relation = if relation == Relation::Aligned { Relation::Broadcast(Pattern::new(&node.dims, axes)) } else { Relation::Other };
                }
            }
            Op::Permute(perm) => {
                // Moving axes of size 1 moves no element.
                let inner = &graph.node(node.inputs[0]).dims;
                let mut last = None;
                let ordered = perm.iter().filter(|&&p| inner[p as usize] != 1).all(|&p| {
                    let ok = last.is_none_or(|l| l < p);
                    last = Some(p);
                    ok
                });
                if !ordered {
                    relation = Relation::Other;
                }
            }
            Op::Slice(_) | Op::Window(_) => relation = Relation::Other,
            _ => return (cur, relation),
        }
        cur = node.inputs[0];
    }
}

/// The node whose buffer holds this node's elements in the same order: reshapes share their operand's buffer.
pub fn canonical(graph: &Graph, mut node: NodeId) -> NodeId {
    while graph.node(node).op == Op::Reshape {
        node = graph.node(node).inputs[0];
    }
    node
}
