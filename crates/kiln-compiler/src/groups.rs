//! Groups: which nodes share a kernel, kept acyclic while they grow.
use alloc::vec;
use alloc::vec::Vec;

use kiln_ir::NodeId;

use crate::relation::Pattern;

/// What kernel a group becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Loops over an expression, maybe with reductions.
    Fused,
    /// A dot or convolution with its epilogue; the node is the contraction.
    Contract(NodeId),
    /// A kernel of its own.
    Opaque(NodeId),
}

/// Nodes that share a kernel.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it becomes.
    pub kind: Kind,
    /// Members in topological order.
    pub members: Vec<NodeId>,
    /// Number of points of the full domain.
    pub full: usize,
    /// Kept and reduced runs, once there is a reduction.
    pub pattern: Option<Pattern>,
    /// A reduction that defines the domain's axes.
    pub reduction: Option<NodeId>,
    /// Groups that must run before, directly or not (bit set).
    ancestors: Vec<u64>,
    /// Set when merged into another group.
    merged_into: Option<u32>,
}

/// All groups with their order relation.
pub struct Groups {
    list: Vec<Group>,
    words: usize,
}

fn has(set: &[u64], g: u32) -> bool {
    set[g as usize / 64] >> (g % 64) & 1 == 1
}

fn insert(set: &mut [u64], g: u32) {
    set[g as usize / 64] |= 1 << (g % 64);
}

fn union(set: &mut [u64], other: &[u64]) -> bool {
    let mut changed = false;
    for (a, b) in set.iter_mut().zip(other) {
        changed |= *b & !*a != 0;
        *a |= b;
    }
    changed
}

impl Groups {
    /// No groups yet; at most `capacity` will be made.
    pub fn new(capacity: usize) -> Self {
        Groups { list: Vec::new(), words: capacity.div_ceil(64).max(1) }
    }

    /// The group that `g` is part of now.
    pub fn find(&self, mut g: u32) -> u32 {
        while let Some(p) = self.list[g as usize].merged_into {
            g = p;
        }
        g
    }

    /// The group `g`.
    pub fn get(&self, g: u32) -> &Group {
        &self.list[g as usize]
    }

    /// The group `g`.
    pub fn get_mut(&mut self, g: u32) -> &mut Group {
        &mut self.list[g as usize]
    }

    /// The groups that were not merged into another, in order of making.
    pub fn alive(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.list.iter().enumerate().filter(|(_, g)| g.merged_into.is_none()).map(|(k, g)| (k as u32, g))
    }

    /// A new group with one member.
    pub fn create(&mut self, kind: Kind, node: NodeId, full: usize, deps: &[u32]) -> u32 {
        let id = self.list.len() as u32;
        let mut ancestors = vec![0u64; self.words];
        for &d in deps {
            insert(&mut ancestors, d);
            let of_dep = self.list[d as usize].ancestors.clone();
            union(&mut ancestors, &of_dep);
        }
        if id as usize >= self.words * 64 {
            for g in &mut self.list {
                g.ancestors.push(0);
            }
            ancestors.push(0);
            self.words += 1;
        }
        self.list.push(Group { kind, members: vec![node], full, pattern: None, reduction: None, ancestors, merged_into: None });
        id
    }

    /// Whether `a` must run before `b`.
    pub fn before(&self, a: u32, b: u32) -> bool {
        has(&self.list[b as usize].ancestors, a)
    }

    /// Whether a node that needs the groups `deps` may become part of `g`.
    pub fn may_join(&self, g: u32, deps: &[u32]) -> bool {
        deps.iter().all(|&d| d == g || !self.before(g, d))
    }

    /// Makes a node part of `g`.
    pub fn join(&mut self, g: u32, node: NodeId, deps: &[u32]) {
        self.list[g as usize].members.push(node);
        let mut extra = vec![0u64; self.words];
        for &d in deps {
            if d != g {
                insert(&mut extra, d);
                union(&mut extra, &self.list[d as usize].ancestors);
            }
        }
        self.add_ancestors(g, &extra);
    }

    fn add_ancestors(&mut self, g: u32, extra: &[u64]) {
        if !union(&mut self.list[g as usize].ancestors, extra) {
            return;
        }
        let all = self.list[g as usize].ancestors.clone();
        for other in &mut self.list {
            if has(&other.ancestors, g) {
                union(&mut other.ancestors, &all);
            }
        }
    }

    /// Merges `b` into `a` if neither must run before the other; says whether it did.
    pub fn merge(&mut self, a: u32, b: u32) -> bool {
        if a == b || self.before(a, b) || self.before(b, a) {
            return false;
        }
        let gb = core::mem::take(&mut self.list[b as usize].members);
        let anc = self.list[b as usize].ancestors.clone();
        self.list[b as usize].merged_into = Some(a);
        let (pattern, reduction) = (self.list[b as usize].pattern.clone(), self.list[b as usize].reduction);
        let ga = &mut self.list[a as usize];
        ga.members.extend(gb);
        ga.members.sort_unstable();
        ga.pattern = ga.pattern.take().or(pattern);
        ga.reduction = ga.reduction.or(reduction);
        self.add_ancestors(a, &anc);
        // Whatever waited for `b` waits for `a` now.
        let all = self.list[a as usize].ancestors.clone();
        for other in &mut self.list {
            if has(&other.ancestors, b) {
                insert(&mut other.ancestors, a);
                union(&mut other.ancestors, &all);
            }
        }
        true
    }
}
