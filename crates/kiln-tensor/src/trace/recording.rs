//! A recording: the nodes of a trace between two flushes.
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hashbrown::HashMap;
use kiln_ir::{Buffer, DType, Dims, Elementwise, NodeId, Op, OpInputs};

use super::TraceCell;
use super::hash::Hash128;
use super::slot::Slot;
use crate::raw::RawTensor;

/// A trace this long is flushed. Long enough for a training step of a deep model, short enough to bound memory and compile time.
const MAX_NODES: u32 = 1 << 13;
/// The bound that the user's configuration sets.
static NODE_BOUND: AtomicU32 = AtomicU32::new(MAX_NODES);

/// Sets the number of nodes at which traces that are begun from now on are flushed, [`MAX_NODES`] at most.
#[cfg(feature = "std")]
pub(crate) fn bound_nodes(nodes: Option<usize>) {
    NODE_BOUND.store(nodes.map_or(MAX_NODES, |n| n.clamp(1, MAX_NODES as usize) as u32), Ordering::Relaxed);
}

/// A trace may keep at least this many bytes of inputs alive that nobody else holds, or the part of the device's memory below, before it is flushed. They are not
/// only waste: the parameters that a training step replaces are among them.
const MIN_HELD: u64 = 256 << 20;
/// See [`MIN_HELD`].
const HELD_PART: u64 = 8;

/// Slots kept for later recordings: those of a training step, in a few hundred kilobytes.
const MAX_SPARE: usize = 2048;

/// Recordings are numbered through the process; 0 is never used.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A scalar operand: a structural constant or a run-time argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarWord {
    /// Enters the key.
    Const(DType, u64),
    /// Never enters the key.
    Arg(DType, u64),
    /// The start of a slice: an argument that a program may have built in until it is seen to vary.
    Start(usize),
}

/// What a node is computed from.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a> {
    /// A tensor.
    Tensor(&'a RawTensor),
    /// A scalar.
    Scalar(ScalarWord),
}

/// What a recorded node computes, in few bytes: most nodes are scalars or rows of the elementwise table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Input(u32),
    Arg(u32),
    Const(u64),
    Elementwise(Elementwise),
    /// Number of an op in the recording's list.
    Other(u32),
}

/// A recorded node. Sizes are in the slot; a node without one is a scalar.
pub(super) struct Recorded {
    pub code: Code,
    pub inputs: OpInputs,
    pub dtype: DType,
    pub slot: Option<Arc<Slot>>,
}

/// Hashes an address by one multiplication.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ *b as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    fn write_usize(&mut self, i: usize) {
        self.0 = (i as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// Nodes in recorded order with what a flush needs to know of them.
pub(crate) struct Recording {
    /// Number of this recording, unique in the process.
    pub number: u64,
    pub(super) nodes: Vec<Recorded>,
    /// Ops of the nodes whose code is [`Code::Other`].
    pub(super) ops: Vec<Op>,
    /// Node indices of the inputs, in input order.
    pub(super) inputs: Vec<u32>,
    /// Run-time scalars.
    pub(super) args: Vec<u64>,
    /// Which args are slice starts, in order.
    pub(super) starts: Vec<u32>,
    pub(super) hash: Hash128,
    /// Input nodes by the address of their slot, for slots that another trace has registered since.
    by_slot: HashMap<usize, u32, BuildHasherDefault<AddressHasher>>,
    /// Bytes of all inputs.
    held: usize,
    /// Number of nodes at which the trace is flushed.
    max_nodes: u32,
    /// How many bytes may be held by this recording alone.
    max_held: usize,
    /// When to look next how many are.
    next_scan: usize,
    full: bool,
    /// Slots of earlier recordings that nobody holds, to be used again.
    spare: Vec<Arc<Slot>>,
    /// Scratch of a flush: live nodes, donated inputs.
    pub(super) live: Vec<u32>,
    pub(super) donated: Vec<bool>,
    /// Scratch of a flush: the buffers of inputs and of outputs.
    pub(super) buffers: [Vec<Buffer>; 2],
}

impl Recording {
    /// An empty recording with a number of its own, for a device with this many bytes of memory (0: unknown).
    pub fn new(memory: u64) -> Self {
        let max_held = (memory / HELD_PART).max(MIN_HELD) as usize;
        Recording {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            nodes: Vec::new(),
            ops: Vec::new(),
            inputs: Vec::new(),
            args: Vec::new(),
            starts: Vec::new(),
            hash: Hash128::new(),
            by_slot: HashMap::default(),
            held: 0,
            max_nodes: NODE_BOUND.load(Ordering::Relaxed),
            max_held,
            next_scan: max_held,
            full: false,
            spare: Vec::new(),
            live: Vec::new(),
            donated: Vec::new(),
            buffers: Default::default(),
        }
    }

    /// Empties it for reuse under a new number.
    pub fn reset(&mut self) {
        self.number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mut nodes = core::mem::take(&mut self.nodes);
        nodes.drain(..).filter_map(|n| n.slot).for_each(|s| self.keep_spare(s));
        self.nodes = nodes;
        self.ops.clear();
        self.inputs.clear();
        self.args.clear();
        self.starts.clear();
        self.hash = Hash128::new();
        self.by_slot.clear();
        self.max_nodes = NODE_BOUND.load(Ordering::Relaxed);
        self.held = 0;
        self.next_scan = self.max_held;
        self.full = false;
        self.live.clear();
        self.donated.clear();
    }

    /// The slot of the next node.
    #[inline]
    pub fn slot(&mut self, dims: Dims, dtype: DType, cell: &'static TraceCell) -> Arc<Slot> {
        let (number, node) = (self.number, self.len());
        match self.spare.pop() {
            Some(slot) => Slot::renew(slot, dims, dtype, cell, number, node),
            None => Slot::pending(dims, dtype, cell, number, node),
        }
    }

    /// Makes room in a full recording by leaving out what nobody wants. False if it has to be flushed.
    pub fn make_room(&mut self) -> bool {
        self.prune();
        !self.is_full()
    }

    /// Takes out what no held result depends on, where that is at least half of the nodes.
    fn prune(&mut self) {
        let mut wanted = alloc::vec![false; self.nodes.len()];
        let mut kept = 0;
        for (k, node) in self.nodes.iter().enumerate().rev() {
            let held = !matches!(node.code, Code::Input(_)) && node.slot.as_ref().is_some_and(|s| Arc::strong_count(s) > 1);
            if wanted[k] || held {
                wanted[k] = true;
                kept += 1;
                node.inputs.iter().for_each(|i| wanted[i.0 as usize] = true);
            }
        }
        if kept > self.nodes.len() / 2 {
            return;
        }
        let nodes = core::mem::take(&mut self.nodes);
        let (ops, args, starts) = (core::mem::take(&mut self.ops), core::mem::take(&mut self.args), core::mem::take(&mut self.starts));
        // Under a new number, so that tensors which had a node here and lose it don't know one any more.
        self.reset();
        let mut ops: Vec<Option<Op>> = ops.into_iter().map(Some).collect();
        let mut places = alloc::vec![NodeId(0); nodes.len()];
        for (k, node) in nodes.into_iter().enumerate() {
            let Recorded { code, mut inputs, dtype, slot } = node;
            if !wanted[k] {
                slot.into_iter().for_each(|s| self.keep_spare(s));
                continue;
            }
            inputs.iter_mut().for_each(|i| *i = places[i.0 as usize]);
            let op = match code {
                Code::Elementwise(e) => Some(Op::Elementwise(e)),
                Code::Other(n) => ops[n as usize].take(),
                Code::Input(_) | Code::Arg(_) | Code::Const(_) => None,
            };
            places[k] = match (code, op, slot) {
                (_, Some(op), Some(slot)) => {
                    let id = self.len();
                    slot.set_node(self.number, id);
                    self.push(&op, inputs, &slot, true);
                    NodeId(id)
                }
                (Code::Input(_), _, Some(slot)) => self.input(&slot),
                (Code::Const(word), ..) => self.scalar(ScalarWord::Const(dtype, word)),
                (Code::Arg(a), ..) if starts.binary_search(&a).is_ok() => self.scalar(ScalarWord::Start(args[a as usize] as usize)),
                (Code::Arg(a), ..) => self.scalar(ScalarWord::Arg(dtype, args[a as usize])),
                _ => unreachable!("a node is an input, a scalar or an op with a slot"),
            };
        }
    }

    fn keep_spare(&mut self, mut slot: Arc<Slot>) {
        if self.spare.len() < MAX_SPARE && Slot::clear(&mut slot) {
            self.spare.push(slot);
        }
    }

    /// Number of nodes.
    #[inline]
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Whether a bound is reached and [`Recording::make_room`] should be called.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.full || self.nodes.len() >= self.max_nodes as usize
    }

    /// Whether anybody outside holds a result.
    #[cfg(feature = "std")]
    pub fn has_live(&self) -> bool {
        self.nodes.iter().any(|n| !matches!(n.code, Code::Input(_)) && n.slot.as_ref().is_some_and(|s| Arc::strong_count(s) > 1))
    }

    /// The node of an operand whose slot is settled or pending here.
    #[inline]
    pub fn operand(&mut self, o: &Operand<'_>) -> NodeId {
        match o {
            Operand::Tensor(t) => match t.slot.node_in(self.number) {
                Some(n) => NodeId(n),
                None => self.input(&t.slot),
            },
            Operand::Scalar(s) => self.scalar(*s),
        }
    }

    fn input(&mut self, slot: &Arc<Slot>) -> NodeId {
        let id = self.len();
        let known = *self.by_slot.entry(Arc::as_ptr(slot) as usize).or_insert(id);
        slot.set_node(self.number, known);
        if known != id {
            return NodeId(known);
        }
        let code = Code::Input(self.inputs.len() as u32);
        self.inputs.push(id);
        self.hash.word(0x1_0000 | slot.dtype as u64);
        self.hash.sizes(&slot.dims);
        self.nodes.push(Recorded { code, inputs: OpInputs::new(), dtype: slot.dtype, slot: Some(slot.clone()) });
        self.held += slot.bytes();
        if self.held > self.next_scan {
            self.scan_held();
        }
        NodeId(id)
    }

    /// Looks how many bytes only this recording keeps alive.
    #[cold]
    fn scan_held(&mut self) {
        let alone = self.inputs.iter().filter_map(|i| self.nodes[*i as usize].slot.as_ref()).filter(|s| Arc::strong_count(s) == 1);
        let bytes: usize = alone.map(|s| s.bytes()).sum();
        self.full |= bytes > self.max_held;
        self.next_scan = self.held + self.max_held.saturating_sub(bytes).max(self.max_held / 8);
    }

    #[inline]
    fn scalar(&mut self, s: ScalarWord) -> NodeId {
        let id = self.len();
        let (code, dtype) = match s {
            ScalarWord::Const(dtype, word) => {
                self.hash.word(0x2_0000 | dtype as u64);
                self.hash.word(word);
                (Code::Const(word), dtype)
            }
            ScalarWord::Arg(dtype, word) => {
                self.hash.word(0x3_0000 | dtype as u64);
                self.args.push(word);
                (Code::Arg(self.args.len() as u32 - 1), dtype)
            }
            ScalarWord::Start(start) => {
                self.hash.word(0x4_0000);
                self.starts.push(self.args.len() as u32);
                self.args.push(start as u64);
                (Code::Arg(self.args.len() as u32 - 1), DType::I64)
            }
        };
        self.nodes.push(Recorded { code, inputs: OpInputs::new(), dtype, slot: None });
        NodeId(id)
    }

    /// Appends a node.
    #[inline]
    pub fn push(&mut self, op: &Op, inputs: OpInputs, slot: &Arc<Slot>, stated: bool) {
        let code = match op {
            Op::Elementwise(e) => {
                self.hash.word(0x5_0000 | *e as u64);
                Code::Elementwise(*e)
            }
            other => {
                other.hash(&mut self.hash);
                self.ops.push(other.clone());
                Code::Other(self.ops.len() as u32 - 1)
            }
        };
        for i in &inputs {
            self.hash.word(i.0 as u64);
        }
        if stated {
            self.hash.word(slot.dtype as u64);
            self.hash.sizes(&slot.dims);
        }
        self.nodes.push(Recorded { code, inputs, dtype: slot.dtype, slot: Some(slot.clone()) });
    }
}
