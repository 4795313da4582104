//! Scheduling: which nodes share a kernel, and which values go through memory.
//!
//! Nodes are visited in order. A pointwise node joins the kernel of an operand that lies element by element under it (or is a reduction broadcast back
//! over it); a reduction joins the kernel that computes its operand; a pointwise node over a contraction becomes its epilogue. A group of order
//! constraints keeps the kernels acyclic. Then every value that is used outside its kernel is either stored, or computed again where that costs less than memory.
use alloc::vec;
use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};
use kiln_ir::dims::numel;
use kiln_ir::{Class, Graph, Limits, NodeId, Op};
use smallvec::SmallVec;

use crate::Options;
use crate::groups::{Group, Groups, Kind};
use crate::index::{Coord, Space};
use crate::lower::{is_zero, through_view};
use crate::relation::{Pattern, Relation, canonical, source};

/// Recomputing a value in each further kernel must not cost more than this many additions an element.
const RECOMPUTE_COST: u32 = 10;
/// A kernel has at most this many members.
const MAX_MEMBERS: usize = 4096;

/// The kernels to be.
pub struct Schedule {
    /// Groups of nodes.
    pub groups: Groups,
    /// Group of each computing node.
    pub group_of: Vec<Option<u32>>,
    /// Nodes whose value is in memory.
    pub stored: Vec<bool>,
    /// Nodes that are the same everywhere (scalars from constants and run-time arguments).
    pub uniform: Vec<bool>,
}

/// What earlier attempts at lowering taught.
#[derive(Default)]
pub struct Lessons {
    /// Nodes that must be in memory.
    pub store: HashSet<NodeId>,
    /// Nodes that cannot be part of an epilogue.
    pub no_epilogue: HashSet<NodeId>,
    /// Nodes that get a kernel of their own.
    pub alone: HashSet<NodeId>,
}

/// The level of a member in its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Full,
    Kept,
}

struct Scheduler<'a> {
    graph: &'a Graph,
    limits: &'a Limits,
    options: &'a Options,
    lessons: &'a Lessons,
    groups: Groups,
    group_of: Vec<Option<u32>>,
    level: Vec<Level>,
    uniform: Vec<bool>,
    stored: Vec<bool>,
    consumers: Vec<SmallVec<[(NodeId, bool); 2]>>,
}

/// Whether a node is computed point by point from its operands (and so may be computed again anywhere).
pub fn is_pointwise(op: &Op) -> bool {
    op.is_elementwise() || matches!(op, Op::Pad(_))
}

/// Schedules a simplified graph.
pub fn schedule(graph: &Graph, limits: &Limits, options: &Options, lessons: &Lessons) -> Schedule {
    let n = graph.nodes.len();
    let mut s = Scheduler {
        graph,
        limits,
        options,
        lessons,
        groups: Groups::new(n),
        group_of: vec![None; n],
        level: vec![Level::Full; n],
        uniform: vec![false; n],
        stored: vec![false; n],
        consumers: vec![SmallVec::new(); n],
    };
    s.find_uniform();
    for k in 0..n {
        s.place(NodeId(k as u32));
    }
    s.find_consumers();
    s.merge_siblings();
    for g in s.group_of.iter_mut().flatten() {
        *g = s.groups.find(*g);
    }
    s.decide_storage();
    s.give_groups_to_stored();
    Schedule { groups: s.groups, group_of: s.group_of, stored: s.stored, uniform: s.uniform }
}

impl Scheduler<'_> {
    fn numel(&self, n: NodeId) -> usize {
        numel(&self.graph.node(n).dims)
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn find_uniform(&mut self) {
        for (k, node) in self.graph.nodes.iter().enumerate() {
            self.uniform[k] = match node.op.class() {
                Class::Leaf => matches!(node.op, Op::Arg(_) | Op::Const(_)),
                Class::Elementwise => node.dims.is_empty() && node.inputs.iter().all(|i| self.uniform[i.index()]),
                Class::View
                | Class::Region
                | Class::Reduce
                | Class::Scan
                | Class::Contract
                | Class::Pool
                | Class::Index
                | Class::Sort
                | Class::Attention
                | Class::Host
                | Class::Get => false,
            };
        }
    }

    fn group(&self, n: NodeId) -> Option<u32> {
        self.group_of[n.index()].map(|g| self.groups.find(g))
    }

    /// The node that computes an operand and how it lies under its user. A view that had to be in memory is a border between kernels.
    fn source(&self, operand: NodeId) -> (NodeId, Relation) {
        let (q, relation) = source(self.graph, operand);
        if !self.lessons.store.is_empty() {
            let mut n = operand;
            while n != q {
                if self.lessons.store.contains(&n) {
                    return (q, Relation::Other);
                }
                n = self.graph.node(n).inputs[0];
            }
        }
        (q, relation)
    }

    /// The groups a node needs.
    fn deps(&self, n: NodeId) -> SmallVec<[u32; 4]> {
        let mut deps = SmallVec::new();
        for &i in &self.graph.node(n).inputs {
            if let Some(g) = self.group(source(self.graph, i).0)
                && !deps.contains(&g)
            {
                deps.push(g);
            }
        }
        deps
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    fn place(&mut self, n: NodeId) {
        let node = self.graph.node(n);
        match node.op.class() {
            Class::Leaf | Class::View => {}
            Class::Elementwise => {
                if !self.uniform[n.index()] {
                    self.place_pointwise(n);
                }
            }
            Class::Region if is_pointwise(&node.op) => self.place_pointwise(n),
            Class::Reduce => self.place_reduction(n),
            Class::Get => self.group_of[n.index()] = self.group(node.inputs[0]),
            Class::Contract => self.place_alone(n, Kind::Contract(n)),
            Class::Region | Class::Scan | Class::Pool | Class::Index | Class::Sort | Class::Attention | Class::Host => {
                self.place_alone(n, Kind::Opaque(n))
            }
        }
    }

    fn place_alone(&mut self, n: NodeId, kind: Kind) {
        let deps = self.deps(n);
        let full = self.numel(n);
        self.group_of[n.index()] = Some(self.groups.create(kind, n, full, &deps));
    }

    /// How an operand in group `g` lets its user join: at which level, or not at all.
    fn level_in(&self, g: u32, operand: NodeId, relation: &Relation) -> Option<Level> {
        if self.lessons.alone.contains(&operand) {
            return None;
        }
        let group = self.groups.get(g);
        let at = self.level[operand.index()];
        match (group.kind, relation) {
            (Kind::Opaque(_), _) => None,
            (Kind::Contract(_), Relation::Aligned) => Some(Level::Full),
            (Kind::Contract(_), _) => None,
            (Kind::Fused, Relation::Aligned) => Some(at),
            (Kind::Fused, Relation::Broadcast(p)) if at == Level::Kept && group.pattern.as_ref() == Some(p) => Some(Level::Full),
            (Kind::Fused, _) => None,
        }
    }

    /// Whether pointwise work may join a contraction.
    fn takes_epilogue(&self, kind: Kind) -> bool {
        let Kind::Contract(n) = kind else { return false };
        let node = self.graph.node(n);
        // How many elements of the weight a result of the forward adds up.
        let sum = |weight: &[usize]| weight[1..].iter().product::<usize>();
        let longest = match node.op {
            Op::Conv(_) | Op::ConvInputGrad(_) => sum(&self.graph.node(node.inputs[1]).dims),
            Op::ConvWeightGrad(_) => sum(&node.dims),
            _ => return self.limits.epilogues,
        };
        self.limits.epilogues && (self.limits.conv_epilogues.contains(&node.dtype) || longest <= self.limits.short_conv_epilogues)
    }

    fn place_pointwise(&mut self, n: NodeId) {
        let deps = self.deps(n);
        let numel = self.numel(n);
        let mut candidates: SmallVec<[(u32, Level); 4]> = SmallVec::new();
        let mut excluded: SmallVec<[u32; 4]> = SmallVec::new();
        if self.options.fuse && !self.lessons.alone.contains(&n) {
            for &i in &self.graph.node(n).inputs {
                let (q, relation) = self.source(i);
                let relation = if matches!(self.graph.node(n).op, Op::Pad(_)) { Relation::Other } else { relation };
                let Some(g) = self.group(q) else { continue };
                match self.level_in(g, q, &relation) {
                    Some(level) if candidates.iter().all(|c| c.0 != g || c.1 == level) => {
                        if candidates.iter().all(|c| c.0 != g) {
                            candidates.push((g, level));
                        }
                    }
                    _ => excluded.push(g),
                }
            }
        }
        candidates.retain(|(g, level)| {
            let group = self.groups.get(*g);
            let points = match (*level, &group.pattern) {
                (Level::Full, _) => group.full,
                (Level::Kept, Some(p)) => p.kept(),
                (Level::Kept, None) => usize::MAX,
            };
            let epilogue = matches!(group.kind, Kind::Contract(_));
            points == numel
                && !excluded.contains(g)
                && group.members.len() < MAX_MEMBERS
                && (!epilogue || (self.takes_epilogue(group.kind) && !self.lessons.no_epilogue.contains(&n)))
                && self.groups.may_join(*g, &deps)
        });
        // An epilogue works on values that are at hand; else the latest kernel sees the most operands.
        candidates.sort_unstable_by_key(|c| core::cmp::Reverse((matches!(self.groups.get(c.0).kind, Kind::Contract(_)), c.0)));
        // Kernels that hold several operands become one first: once the node has joined one of them, that one waits for the others.
        let mut own = candidates.first().copied();
        for &other in candidates.get(1..).unwrap_or(&[]) {
            own = own.map(|own| self.try_merge(own, other));
        }
        let deps = self.deps(n);
        match own.filter(|(g, _)| self.groups.may_join(*g, &deps)) {
            Some((g, level)) => {
                self.groups.join(g, n, &deps);
                self.group_of[n.index()] = Some(g);
                self.level[n.index()] = level;
            }
            None => self.group_of[n.index()] = Some(self.groups.create(Kind::Fused, n, numel, &deps)),
        }
    }

    /// Merges two kernels that both hold an operand of one node, if they loop over the same points (or one over the kept points of the other). `a` is the
    /// node's kernel; the result is too.
    fn try_merge(&mut self, (a, a_level): (u32, Level), (b, b_level): (u32, Level)) -> (u32, Level) {
        let (ga, gb) = (self.groups.get(a), self.groups.get(b));
        let contract = |k: Kind| matches!(k, Kind::Contract(_));
        if contract(gb.kind) || ga.members.len() + gb.members.len() >= MAX_MEMBERS {
            return (a, a_level);
        }
        let kept = |g: &crate::groups::Group| g.pattern.as_ref().map(Pattern::kept);
        let same_points = match (&ga.pattern, &gb.pattern) {
            (Some(p), Some(q)) => p == q,
            (Some(_), None) | (None, Some(_)) | (None, None) => ga.full == gb.full,
        };
        if a_level == b_level && same_points && ga.full == gb.full && (!contract(ga.kind) || gb.pattern.is_none()) {
            self.groups.merge(a, b);
        } else if a_level == Level::Kept && gb.pattern.is_none() && kept(ga) == Some(gb.full) {
            self.merge_as_kept(a, b);
        } else if b_level == Level::Kept && ga.pattern.is_none() && !contract(ga.kind) && kept(gb) == Some(ga.full) && self.merge_as_kept(b, a) {
            return (b, Level::Kept);
        }
        (a, a_level)
    }

    /// Merges pointwise work over the kept points of a reducing kernel into it.
    fn merge_as_kept(&mut self, reducing: u32, pointwise: u32) -> bool {
        let members = self.groups.get(pointwise).members.clone();
        let merged = self.groups.merge(reducing, pointwise);
        if merged {
            members.iter().for_each(|m| self.level[m.index()] = Level::Kept);
        }
        merged
    }

    fn place_reduction(&mut self, n: NodeId) {
        let node = self.graph.node(n);
        let Op::Reduce { axes, .. } = &node.op else { return };
        let dims = &self.graph.node(node.inputs[0]).dims;
        let pattern = Pattern::new(dims, *axes);
        let deps = self.deps(n);
        self.level[n.index()] = Level::Kept;
        let (q, relation) = self.source(node.inputs[0]);
        if self.options.fuse
            && !self.lessons.alone.contains(&n)
            && relation == Relation::Aligned
            && let Some(g) = self.group(q)
        {
            let group = self.groups.get(g);
            let fits = group.kind == Kind::Fused
                && !self.lessons.alone.contains(&q)
                && self.level[q.index()] == Level::Full
                && group.pattern.as_ref().is_none_or(|p| *p == pattern)
                && (group.pattern.is_some() || self.worth_fusing(&pattern))
                && group.members.len() < MAX_MEMBERS;
            if fits && self.groups.may_join(g, &deps) {
                self.groups.join(g, n, &deps);
                let group = self.groups.get_mut(g);
                group.pattern = Some(pattern);
                group.reduction = group.reduction.or(Some(n));
                self.group_of[n.index()] = Some(g);
                return;
            }
        }
        let g = self.groups.create(Kind::Fused, n, numel(dims), &deps);
        let group = self.groups.get_mut(g);
        group.pattern = Some(pattern);
        group.reduction = Some(n);
        self.group_of[n.index()] = Some(g);
    }

    /// Whether pointwise work may move into a reduction of this pattern: not when it would run over short rows or on one core only.
    fn worth_fusing(&self, p: &Pattern) -> bool {
        let total = p.kept() * p.reduced();
        if total < 1 << 15 {
            return true;
        }
        p.workers() >= self.limits.parallelism && p.inner_kept().is_none_or(|inner| inner >= 64)
    }

    fn find_consumers(&mut self) {
        for (k, node) in self.graph.nodes.iter().enumerate() {
            if node.op.is_view() || self.uniform[k] {
                continue;
            }
            for &i in &node.inputs {
                let (q, relation) = self.source(i);
                let grows = relation != Relation::Aligned && numel(&self.graph.node(i).dims) > self.numel(q);
                self.consumers[q.index()].push((NodeId(k as u32), grows));
            }
        }
    }

    /// Kernels that only end in results and read the same value element by element become one: the value is read once, and where one of them overwrites
    /// it the others need not run first. Such are the updates of several states by a gradient that is in memory.
    fn merge_siblings(&mut self) {
        if !self.options.fuse {
            return;
        }
        let mut readers: HashMap<NodeId, SmallVec<[u32; 2]>> = HashMap::new();
        let finals: Vec<u32> = self.groups.alive().filter(|(g, group)| self.is_final(*g, group)).map(|(g, _)| g).collect();
        for g in finals {
            let mut own = g;
            let (members, full) = (self.groups.get(g).members.clone(), self.groups.get(g).full);
            let mut read: SmallVec<[NodeId; 8]> = SmallVec::new();
            for m in members {
                for &i in &self.graph.node(m).inputs {
                    let (q, relation) = self.source(i);
                    let inside = self.group(q) == Some(own);
                    if relation == Relation::Aligned && !inside && !self.uniform[q.index()] && self.numel(q) == full && !read.contains(&q) {
                        read.push(q);
                    }
                }
            }
            for q in read {
                let others = readers.entry(q).or_default();
                for o in others.iter() {
                    let other = self.groups.find(*o);
                    let (a, b) = (self.groups.get(other), self.groups.get(own));
                    if other != own && a.full == b.full && a.members.len() + b.members.len() < MAX_MEMBERS && self.groups.merge(other, own) {
                        own = other;
                    }
                }
                others.push(own);
            }
        }
    }

    /// Whether a kernel is pointwise and nothing but its results is used outside of it.
    fn is_final(&self, g: u32, group: &Group) -> bool {
        group.kind == Kind::Fused
            && group.pattern.is_none()
            && group.members.iter().all(|m| {
                self.graph.node(*m).op.is_elementwise()
                    && !self.lessons.alone.contains(m)
                    && self.consumers[m.index()].iter().all(|c| self.group(c.0) == Some(g))
            })
    }

    /// Nodes that must be in memory whatever it costs: outputs and what kernels read that take whole tensors.
    fn force_storage(&mut self) {
        for &o in &self.graph.outputs {
            self.stored[canonical(self.graph, o).index()] = true;
        }
        for &n in &self.lessons.store {
            self.stored[canonical(self.graph, n).index()] = true;
        }
        for (k, node) in self.graph.nodes.iter().enumerate() {
            match node.op.class() {
                Class::Leaf | Class::View | Class::Elementwise | Class::Reduce | Class::Get => {}
                Class::Region | Class::Scan | Class::Contract | Class::Pool | Class::Index | Class::Sort | Class::Attention | Class::Host => {
                    for (slot, &i) in node.inputs.iter().enumerate() {
                        self.force_operand(NodeId(k as u32), slot, i);
                    }
                }
            }
        }
    }

    fn force_operand(&mut self, n: NodeId, slot: usize, operand: NodeId) {
        if self.uniform[source(self.graph, operand).0.index()] && self.graph.node(operand).dims.is_empty() {
            return;
        }
        let node = self.graph.node(n);
        let strided = match &node.op {
            Op::Dot => Some(Space::kept(&self.graph.node(operand).dims)),
            Op::Attention(_) | Op::AttentionGrad(_) | Op::Gather { .. } => Some(Space::kept(&self.graph.node(operand).dims)),
            Op::Scatter { .. } if slot == 0 && is_zero(self.graph, operand) => return,
            Op::Scatter { .. } if slot > 0 => Some(Space::kept(&self.graph.node(operand).dims)),
            // Concatenation and update read their operands through expressions.
            Op::Concat { .. } | Op::Pad(_) => return,
            Op::Update(_) if slot == 1 => return,
            _ => None,
        };
        let Some(space) = strided else {
            self.stored[canonical(self.graph, operand).index()] = true;
            return;
        };
        // The first node down the views that is in memory, or else should be.
        let (mut q, mut at) = (operand, Coord::flat(space.identity(true)));
        while !self.stored[q.index()] && self.graph.node(q).op.is_view() {
            match through_view(self.graph, q, &at, &space) {
                Ok(below) => at = below,
                Err(_) => break,
            }
            q = self.graph.node(q).inputs[0];
        }
        let class = self.graph.node(q).op.class();
        if node.op == Op::Dot && self.is_prologue(q) {
            return;
        }
        // A leaf that is not an input has no memory to be viewed in.
        let q = if class == Class::Leaf && !matches!(self.graph.node(q).op, Op::Input(_)) { canonical(self.graph, operand) } else { q };
        self.stored[q.index()] = true;
    }

    /// Whether a dot may compute this operand while it packs it: a cheap value that nobody else reads.
    fn is_prologue(&self, q: NodeId) -> bool {
        let alone = self.consumers[q.index()].len() == 1 && !self.lessons.store.contains(&q) && !self.graph.outputs.contains(&q);
        let Some(g) = self.group(q) else { return false };
        self.options.fuse
            && self.options.prologues
            && alone
            && self.graph.node(q).op.is_elementwise()
            && self.groups.get(g).kind == Kind::Fused
            && self.groups.get(g).members.iter().all(|m| self.graph.node(*m).op.is_elementwise())
            && self.cost(q, self.numel(q), 0).is_some_and(|(cost, loads)| cost <= 4 && loads <= 1)
    }

    fn decide_storage(&mut self) {
        self.force_storage();
        for k in 0..self.graph.nodes.len() {
            let n = NodeId(k as u32);
            let node = self.graph.node(n);
            let Some(own) = self.group_of[k] else { continue };
            if self.stored[k] {
                continue;
            }
            let outside: SmallVec<[(NodeId, bool); 4]> =
                self.consumers[k].iter().copied().filter(|c| self.group_of[c.0.index()] != Some(own)).collect();
            if outside.is_empty() {
                continue;
            }
            if !is_pointwise(&node.op) {
                self.stored[k] = true;
                continue;
            }
            if self.is_prologue(n) && outside.iter().all(|c| self.graph.node(c.0).op == Op::Dot) {
                continue;
            }
            let into_memory = outside.iter().any(|c| {
                let class = self.graph.node(c.0).op.class();
                !matches!(class, Class::Elementwise | Class::Reduce | Class::Region)
            });
            let grows = outside.iter().any(|c| c.1);
            // What a concatenation or update alone reads is computed where it is written: that costs no more than storing it first.
            let inside = self.consumers[k].len() == outside.len();
            let moved = self.options.fuse
                && inside
                && outside.len() == 1
                && !grows
                && matches!(self.graph.node(outside[0].0).op, Op::Concat { .. } | Op::Update(_))
                && self.is_read_once(n, outside[0].0)
                && self.groups.get(own).members.iter().all(|m| self.graph.node(*m).op.is_elementwise())
                && self.cost(n, self.numel(n), 0).is_some_and(|(cost, loads)| cost <= 64 && loads <= 6);
            let cheap = moved
                || (self.options.fuse
                    && !into_memory
                    && self.cost(n, self.numel(n), 0).is_some_and(|(cost, loads)| {
                        let limit = if grows { 2 } else { RECOMPUTE_COST };
                        cost * outside.len() as u32 <= limit && (loads <= 1 || (loads == 2 && outside.len() == 1))
                    }));
            if cheap {
                self.store_reductions_under(n, self.numel(n));
            } else {
                self.stored[k] = true;
            }
        }
    }

    /// Cost of computing `n` elsewhere: additions an element, and reads as large as the result. `None` when something under it is not in memory.
    fn cost(&self, n: NodeId, result: usize, depth: u32) -> Option<(u32, u32)> {
        let node = self.graph.node(n);
        let own = match &node.op {
            Op::Elementwise(e) => e.cost(),
            Op::Cast | Op::Pad(_) => 1,
            _ => return None,
        };
        if depth > 8 {
            return None;
        }
        let (mut cost, mut loads) = (own, 0);
        for &i in &node.inputs {
            let q = source(self.graph, i).0;
            if self.uniform[q.index()] {
                continue;
            }
            let big = (self.numel(q) * 2 > result) as u32;
            match &self.graph.node(q).op {
                Op::Input(_) => loads += big,
                Op::Iota { .. } => cost += 1,
                Op::Random(_) => cost += 8,
                _ if self.stored[q.index()] => loads += big,
                Op::Reduce { .. } if big == 0 => {}
                // A small value is stored rather than computed again at every point.
                op if is_pointwise(op) && self.is_small(q, result) => {}
                op if is_pointwise(op) => {
                    let (c, l) = self.cost(q, result, depth + 1)?;
                    cost += c;
                    loads += l;
                }
                _ => return None,
            }
        }
        Some((cost, loads))
    }

    /// Whether a user takes a value as one operand, and not as the tensor that it updates.
    fn is_read_once(&self, n: NodeId, user: NodeId) -> bool {
        let node = self.graph.node(user);
        let mut slots = node.inputs.iter().enumerate().filter(|(_, i)| source(self.graph, **i).0 == n);
        let (first, second) = (slots.next(), slots.next());
        second.is_none() && first.is_some_and(|(slot, _)| matches!(node.op, Op::Concat { .. }) || slot == 1)
    }

    fn is_small(&self, q: NodeId, result: usize) -> bool {
        self.numel(q) * 8 <= result && self.group_of[q.index()].is_some()
    }

    /// A value computed again elsewhere reads the reductions and small values under it from memory.
    fn store_reductions_under(&mut self, n: NodeId, result: usize) {
        for &i in &self.graph.node(n).inputs {
            let q = source(self.graph, i).0;
            if self.stored[q.index()] || self.uniform[q.index()] {
                continue;
            }
            if is_pointwise(&self.graph.node(q).op) && !self.is_small(q, result) {
                self.store_reductions_under(q, result);
            } else if self.group_of[q.index()].is_some() {
                self.stored[q.index()] = true;
            }
        }
    }

    /// Stored views, leaves and scalars are copied by a kernel of their own.
    fn give_groups_to_stored(&mut self) {
        for k in 0..self.graph.nodes.len() {
            let n = NodeId(k as u32);
            if self.stored[k] && self.group_of[k].is_none() && !matches!(self.graph.node(n).op, Op::Input(_)) {
                let full = self.numel(n);
                self.group_of[k] = Some(self.groups.create(Kind::Fused, n, full, &[]));
            }
        }
    }
}
