//! The programs a device has compiled, by the structure of the recordings they came from.
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use kiln_ir::{DType, Dims, Executable, Graph, NodeId, Op, OpInputs, Program};

use super::recording::{Code, Recorded, Recording};
use crate::lock::Mutex;

/// Most programs kept.
const MAX_PROGRAMS: usize = 1024;
/// Most nodes of all kept programs together.
const MAX_NODES: usize = 1 << 20;

/// A compiled recording.
pub(super) struct Compiled {
    /// Kernels and memory plan.
    pub program: Arc<Program>,
    /// What the runtime made of it; absent on a device that interprets graphs.
    pub executable: Option<Arc<dyn Executable>>,
    /// The graph, kept where it is interpreted.
    pub graph: Option<Graph>,
}

/// The current program of a structure, and which slice starts it has built in.
pub(super) struct Variant {
    /// The program.
    pub compiled: Arc<Compiled>,
    /// Per slice start: the value that the program has built in, or `None` if it reads the argument.
    pub built_in: Vec<Option<u64>>,
    /// How often a start was found to vary.
    pub widened: u32,
}

/// What a recording is recognised by.
struct Kept {
    code: Code,
    inputs: OpInputs,
    dims: Dims,
    dtype: DType,
}

impl Kept {
    /// Whether a node of the same op and operands has the same sizes. Those of elementwise nodes follow from their operands, so their slots, which are all
    /// over memory, are left alone.
    fn has_sizes_of(&self, n: &Recorded) -> bool {
        matches!(n.code, Code::Elementwise(_)) || n.slot.as_ref().is_none_or(|s| s.dims == self.dims)
    }
}

/// A structure and its program.
pub(crate) struct Entry {
    nodes: Vec<Kept>,
    ops: Vec<Op>,
    live: Vec<u32>,
    donated: Vec<bool>,
    starts: Vec<u32>,
    /// The program, once compiled. The lock is held while compiling, so that a structure is compiled once.
    pub(super) variant: Mutex<Option<Variant>>,
    used: AtomicU64,
}

impl Entry {
    fn new(r: &Recording) -> Self {
        let nodes = r.nodes.iter().map(|n| Kept {
            code: n.code,
            inputs: n.inputs.clone(),
            dims: n.slot.as_ref().map_or_else(Dims::new, |s| s.dims.clone()),
            dtype: n.dtype,
        });
        Entry {
            nodes: nodes.collect(),
            ops: r.ops.clone(),
            live: r.live.clone(),
            donated: r.donated.clone(),
            starts: r.starts.clone(),
            variant: Mutex::new(None),
            used: AtomicU64::new(0),
        }
    }

    fn matches(&self, r: &Recording) -> bool {
        self.nodes.len() == r.nodes.len()
            && self.live == r.live
            && self.donated == r.donated
            && self.starts == r.starts
            && self.ops == r.ops
            && self.nodes.iter().zip(&r.nodes).all(|(k, n)| k.code == n.code && k.inputs == n.inputs && k.dtype == n.dtype && k.has_sizes_of(n))
    }

    /// The graph, with `built_in` starts as constants.
    pub(super) fn graph(&self, args: usize, built_in: &[Option<u64>]) -> Graph {
        let mut g = Graph { donated: self.donated.clone(), inputs: self.donated.len(), args, ..Graph::default() };
        g.outputs = self.live.iter().map(|n| NodeId(*n)).collect();
        for k in &self.nodes {
            let op = match k.code {
                Code::Input(n) => Op::Input(n),
                Code::Arg(n) => Op::Arg(n),
                Code::Const(word) => Op::Const(word),
                Code::Elementwise(e) => Op::Elementwise(e),
                Code::Other(n) => self.ops[n as usize].clone(),
            };
            g.push(op, k.inputs.clone(), k.dims.clone(), k.dtype);
        }
        for n in &mut g.nodes {
            if let Op::Arg(a) = n.op
                && let Ok(s) = self.starts.binary_search(&a)
                && let Some(word) = built_in[s]
            {
                n.op = Op::Const(word);
            }
        }
        g
    }
}

/// Programs by key, with a bound on their number: the longest unused ones go first.
pub(crate) struct ProgramCache {
    entries: HashMap<u128, Vec<Arc<Entry>>>,
    programs: usize,
    nodes: usize,
    clock: u64,
    max_programs: usize,
}

impl ProgramCache {
    /// An empty cache.
    pub fn new() -> Self {
        ProgramCache { entries: HashMap::new(), programs: 0, nodes: 0, clock: 0, max_programs: MAX_PROGRAMS }
    }

    /// Number of programs.
    pub fn len(&self) -> usize {
        self.programs
    }

    /// Changes the bound on the number of programs.
    pub fn set_bound(&mut self, programs: usize) {
        self.max_programs = programs.max(1);
        self.evict();
    }

    /// Forgets every program.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.programs = 0;
        self.nodes = 0;
    }

    /// The entry of a recording, made if it is new.
    pub(super) fn entry(&mut self, key: u128, r: &Recording) -> Arc<Entry> {
        self.clock += 1;
        if let Some(e) = self.entries.get(&key).and_then(|bucket| bucket.iter().find(|e| e.matches(r))) {
            e.used.store(self.clock, Ordering::Relaxed);
            return e.clone();
        }
        let e = Arc::new(Entry::new(r));
        e.used.store(self.clock, Ordering::Relaxed);
        self.programs += 1;
        self.nodes += e.nodes.len();
        self.entries.entry(key).or_default().push(e.clone());
        if self.programs > self.max_programs || self.nodes > MAX_NODES {
            self.evict();
        }
        e
    }

    /// Drops the longest unused entries until an eighth of the bounds is free. The newest entry stays.
    fn evict(&mut self) {
        if self.programs <= self.max_programs && self.nodes <= MAX_NODES {
            return;
        }
        let mut ages: Vec<(u64, usize)> = self.entries.values().flatten().map(|e| (e.used.load(Ordering::Relaxed), e.nodes.len())).collect();
        ages.sort_unstable();
        let (mut programs, mut nodes) = (self.programs, self.nodes);
        let mut oldest_kept = 0;
        for (used, n) in ages.iter().take(ages.len() - 1) {
            if programs <= self.max_programs - self.max_programs / 8 && nodes <= MAX_NODES - MAX_NODES / 8 {
                break;
            }
            programs -= 1;
            nodes -= n;
            oldest_kept = used + 1;
        }
        for bucket in self.entries.values_mut() {
            bucket.retain(|e| e.used.load(Ordering::Relaxed) >= oldest_kept);
        }
        self.entries.retain(|_, bucket| !bucket.is_empty());
        (self.programs, self.nodes) = (programs, nodes);
    }
}
