//! Planning: the order of kernels, launches, donation of inputs, and places in one arena.
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use kiln_ir::{BufId, BufSpec, Expr, Graph, Kernel, Launch, Op, OutputSpec, Place, Program};
use smallvec::SmallVec;

use crate::kernels::{Lowered, Unit};
use crate::relation::canonical;

/// A final kernel over inputs of at most this many bytes may wait for the others, to share a launch.
const WAITING_BYTES: usize = 1 << 20;
/// A kernel that leaves at most this many bytes in the arena may run before its turn, to share a launch.
const EARLY_BYTES: usize = 1 << 16;
/// Alignment of places in the arena.
const ALIGN: usize = 64;

/// Orders the kernels and gives every buffer a place.
pub fn plan(graph: &Graph, lowered: Lowered) -> Program {
    let Lowered { mut bufs, buf_of, units } = lowered;
    let outputs = place_outputs(graph, &mut bufs, &buf_of);
    let mut p = Planner { graph, bufs, units, outputs, edges: Vec::new(), shares: Vec::new() };
    p.find_edges();
    p.donate();
    let launches = p.launches();
    let arena = p.assign_arena(&launches);
    for (a, b) in &p.shares {
        p.bufs[a.index()].place = p.bufs[b.index()].place;
    }
    let launches = drop_needless_copies(&p.bufs, &p.outputs, launches);
    Program { bufs: p.bufs, inputs: graph.inputs, outputs: p.outputs, args: graph.args, launches, arena }
}

fn place_outputs(graph: &Graph, bufs: &mut [BufSpec], buf_of: &[Option<BufId>]) -> Vec<OutputSpec> {
    let mut specs = Vec::with_capacity(graph.outputs.len());
    for (k, &o) in graph.outputs.iter().enumerate() {
        let c = canonical(graph, o);
        let spec = match graph.node(c).op {
            Op::Input(i) => OutputSpec::SameAs(i),
            _ => {
                let buf = &mut bufs[buf_of[c.index()].expect("outputs are stored").index()];
                match buf.place {
                    Place::Output(first) => OutputSpec::SameAsOutput(first),
                    _ => {
                        buf.place = Place::Output(k as u32);
                        OutputSpec::New(buf.bytes())
                    }
                }
            }
        };
        specs.push(spec);
    }
    specs
}

struct Planner<'a> {
    graph: &'a Graph,
    bufs: Vec<BufSpec>,
    units: Vec<Unit>,
    outputs: Vec<OutputSpec>,
    /// For each unit, the units that must run before it.
    edges: Vec<SmallVec<[u32; 4]>>,
    /// `(a, b)`: buffer `a` takes the place of arena buffer `b`.
    shares: Vec<(BufId, BufId)>,
}

/// The expression a kernel ends with, and the buffers it reads otherwise.
fn expression(kernel: &Kernel) -> Option<(&Expr, SmallVec<[BufId; 2]>)> {
    match kernel {
        Kernel::Fused(f) => Some((&f.expr, SmallVec::new())),
        Kernel::Dot(d) => {
            let mut read = SmallVec::new();
            for side in [&d.lhs, &d.rhs] {
                match &side.prologue {
                    Some(p) => read.extend(p.loads.iter().map(|l| l.buf)),
                    None => read.push(side.buf),
                }
            }
            Some((&d.epilogue, read))
        }
        Kernel::Conv(c) => Some((&c.epilogue, SmallVec::from_slice(&[c.a, c.b]))),
        Kernel::Attention(_)
        | Kernel::AttentionGrad(_)
        | Kernel::Pool(_)
        | Kernel::Gather(_)
        | Kernel::Scatter(_)
        | Kernel::Scan(_)
        | Kernel::Sort(_)
        | Kernel::Host(_)
        | Kernel::Copy { .. } => None,
    }
}

/// Whether the unit that writes `out` may write it over `input`.
fn may_overwrite(kernels: &[Kernel], out: BufId, input: BufId) -> bool {
    if let [Kernel::Copy { from, to }, rest @ ..] = kernels {
        // An update of a region, unless the new values are read from the old tensor.
        let mut reads = false;
        rest.iter().for_each(|k| k.accesses(|b| reads |= b == input, |_| ()));
        return *from == input && *to == out && !reads;
    }
    let [kernel] = kernels else { return false };
    if let Kernel::Scatter(s) = kernel {
        return s.base == Some(input) && s.out == out && s.values != input && s.index != input;
    }
    let Some((expr, others)) = expression(kernel) else { return false };
    if others.contains(&input) {
        return false;
    }
    let mut stores = expr.stores.iter().filter(|s| s.buf == out);
    let (Some(store), None) = (stores.next(), stores.next()) else { return false };
    // A value that is reduced first is read again after others were written, unless it varies over kept points only.
    let full = |a: &kiln_ir::Affine| match kernel {
        Kernel::Fused(f) => f.dims[f.kept..].iter().zip(&a.coeffs[f.kept..]).any(|(d, c)| *d > 1 && *c != 0),
        _ => false,
    };
    let reduces = expr.values.iter().any(|v| matches!(v.inst, kiln_ir::Inst::Reduce(..)));
    expr.loads.iter().filter(|l| l.buf == input).all(|l| l.index == store.index && l.bounds.is_empty() && (!reduces || !full(&l.index)))
}

impl Planner<'_> {
    fn find_edges(&mut self) {
        let mut writer = vec![u32::MAX; self.bufs.len()];
        for (u, unit) in self.units.iter().enumerate() {
            for k in &unit.kernels {
                k.accesses(|_| (), |b| writer[b.index()] = u as u32);
            }
        }
        for (u, unit) in self.units.iter().enumerate() {
            let mut before: SmallVec<[u32; 4]> = SmallVec::new();
            for k in &unit.kernels {
                k.accesses(
                    |b| {
                        let w = writer[b.index()];
                        if w != u32::MAX && w != u as u32 && !before.contains(&w) {
                            before.push(w);
                        }
                    },
                    |_| (),
                );
            }
            self.edges.push(before);
        }
    }

    /// Whether unit `to` (transitively) must run before unit `from`.
    fn reaches(&self, from: u32, to: u32) -> bool {
        let mut seen = vec![false; self.units.len()];
        let mut stack = vec![from];
        while let Some(u) = stack.pop() {
            if u == to {
                return true;
            }
            for &v in &self.edges[u as usize] {
                if !core::mem::replace(&mut seen[v as usize], true) {
                    stack.push(v);
                }
            }
        }
        false
    }

    /// Writes outputs over donated inputs where the kernel reads each element just before it writes it.
    fn donate(&mut self) {
        let mut taken = vec![false; self.graph.inputs];
        for spec in &self.outputs {
            if let OutputSpec::SameAs(i) = spec {
                taken[*i as usize] = true;
            }
        }
        let mut input_buf = vec![None; self.graph.inputs];
        for (b, spec) in self.bufs.iter().enumerate() {
            if let Place::Input(i) = spec.place {
                // The same input may be named by several nodes; only a single buffer is tracked.
                let i = i as usize;
                taken[i] |= input_buf[i].is_some();
                input_buf[i] = Some(BufId(b as u32));
            }
        }
        let mut readers: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); self.bufs.len()];
        for (u, unit) in self.units.iter().enumerate() {
            for k in &unit.kernels {
                k.accesses(
                    |b| {
                        if !readers[b.index()].contains(&(u as u32)) {
                            readers[b.index()].push(u as u32);
                        }
                    },
                    |_| (),
                );
            }
        }
        for u in 0..self.units.len() {
            let mut wanted: SmallVec<[(u32, BufId, BufId); 4]> = SmallVec::new();
            let mut reads: SmallVec<[BufId; 8]> = SmallVec::new();
            let mut writes: SmallVec<[BufId; 4]> = SmallVec::new();
            for k in &self.units[u].kernels {
                k.accesses(|b| reads.push(b), |b| writes.push(b));
            }
            for &out in &writes {
                let Place::Output(o) = self.bufs[out.index()].place else { continue };
                if !matches!(self.outputs[o as usize], OutputSpec::New(_)) {
                    continue;
                }
                for &input in &reads {
                    let Place::Input(i) = self.bufs[input.index()].place else { continue };
                    let fits = self.graph.donated[i as usize]
                        && !taken[i as usize]
                        && self.bufs[input.index()].bytes() == self.bufs[out.index()].bytes()
                        && self.bufs[input.index()].dtype == self.bufs[out.index()].dtype
                        && !wanted.iter().any(|w| w.0 == i || w.1 == out)
                        && may_overwrite(&self.units[u].kernels, out, input)
                        && readers[input.index()].iter().all(|&r| r as usize == u || !self.reaches(r, u as u32));
                    if fits {
                        wanted.push((i, out, input));
                        break;
                    }
                }
            }
            for (i, out, input) in wanted {
                // Edges made for an earlier donation of this unit may forbid this one.
                if readers[input.index()].iter().any(|&r| r as usize != u && self.reaches(r, u as u32)) {
                    continue;
                }
                taken[i as usize] = true;
                for &r in &readers[input.index()] {
                    if r as usize != u && !self.edges[u].contains(&r) {
                        self.edges[u].push(r);
                    }
                }
                let Place::Output(o) = self.bufs[out.index()].place else { continue };
                self.outputs[o as usize] = OutputSpec::Donated(i);
            }
        }
    }

    /// Topological order: as recorded, but small final kernels come last, so that they share a launch, and kernels that leave little in the arena run
    /// before their turn where they can share the launch before them.
    fn order(&self) -> Vec<u32> {
        let n = self.units.len();
        let mut waiting = vec![0usize; n];
        let mut users: Vec<SmallVec<[u32; 4]>> = vec![SmallVec::new(); n];
        for (u, before) in self.edges.iter().enumerate() {
            waiting[u] = before.len();
            for &b in before {
                users[b as usize].push(u as u32);
            }
        }
        let inside = |b: BufId| match self.bufs[b.index()].place {
            Place::Input(_) | Place::Output(_) => 0,
            Place::Arena(_) | Place::Unused => self.bufs[b.index()].bytes(),
        };
        let loops: Vec<bool> = self.units.iter().map(|unit| unit.kernels.iter().all(|k| matches!(k, Kernel::Fused(_)))).collect();
        // The launch of each unit; the last launch takes further units while it is all loops.
        let (mut launch_of, mut last, mut open) = (vec![usize::MAX; n], 0, false);
        // Units whose turn may come; those of them that may run before it, now or in the next launch.
        let (mut ready, mut early, mut later) = (BinaryHeap::new(), BinaryHeap::new(), Vec::new());
        let mut arrived: Vec<u32> = (0..n as u32).filter(|u| waiting[*u as usize] == 0).collect();
        let mut order = Vec::with_capacity(n);
        loop {
            for u in arrived.drain(..) {
                let unit = &self.units[u as usize];
                let (mut read, mut written) = (0, 0);
                unit.kernels.iter().for_each(|k| k.accesses(|b| read += inside(b), |b| written += inside(b)));
                let waits = users[u as usize].is_empty() && loops[u as usize] && read + written <= WAITING_BYTES;
                ready.push(Reverse((waits, unit.first, u)));
                if !waits && loops[u as usize] && written <= EARLY_BYTES {
                    match self.edges[u as usize].iter().any(|b| launch_of[*b as usize] == last) {
                        true => later.push(Reverse((unit.first, u))),
                        false => early.push(Reverse((unit.first, u))),
                    }
                }
            }
            let pulled = if open { early.pop().map(|Reverse((_, u))| u) } else { None };
            let Some(u) = pulled.or_else(|| ready.pop().map(|Reverse((_, _, u))| u)) else { break };
            if launch_of[u as usize] != usize::MAX {
                continue;
            }
            if !open || !loops[u as usize] || self.edges[u as usize].iter().any(|b| launch_of[*b as usize] == last) {
                last += 1;
                open = loops[u as usize];
                early.extend(later.drain(..));
            }
            launch_of[u as usize] = last;
            order.push(u);
            for &v in &users[u as usize] {
                waiting[v as usize] -= 1;
                if waiting[v as usize] == 0 {
                    arrived.push(v);
                }
            }
        }
        assert_eq!(order.len(), n, "the kernels wait for each other in a circle:\n{}", self.graph.print());
        order
    }

    /// Kernels in order; neighbours that don't depend on each other share a launch.
    fn launches(&mut self) -> Vec<Launch> {
        let mut launches: Vec<Launch> = Vec::new();
        // The launch that last read or wrote each place.
        let mut touched = vec![(usize::MAX, usize::MAX); self.bufs.len()];
        let alias = self.aliases();
        for u in self.order() {
            let unit = &mut self.units[u as usize];
            let kernels = core::mem::take(&mut unit.kernels);
            let parallel = kernels.len() > 1 && !matches!(kernels[0], Kernel::Copy { .. });
            let before = launches.len();
            for (nth, k) in kernels.into_iter().enumerate() {
                let current = launches.len().wrapping_sub(1);
                let within_unit = parallel && nth > 0 && launches.len() == before + 1;
                let mut reads: SmallVec<[BufId; 8]> = SmallVec::new();
                let mut writes: SmallVec<[BufId; 4]> = SmallVec::new();
                k.accesses(|b| reads.push(b), |b| writes.push(b));
                let of = |b: &BufId| touched[alias[b.index()]];
                let conflict =
                    reads.iter().any(|b| of(b).1 == current) || (!within_unit && writes.iter().any(|b| of(b).0 == current || of(b).1 == current));
                let joins = current != usize::MAX
                    && !conflict
                    && matches!(k, Kernel::Fused(_))
                    && launches[current].kernels.iter().all(|k| matches!(k, Kernel::Fused(_)));
                if !joins {
                    launches.push(Launch::default());
                }
                let at = launches.len() - 1;
                reads.iter().for_each(|b| touched[alias[b.index()]].0 = at);
                writes.iter().for_each(|b| touched[alias[b.index()]].1 = at);
                launches[at].kernels.push(k);
            }
        }
        launches
    }

    /// Buffers that share memory by donation count as one.
    fn aliases(&self) -> Vec<usize> {
        let mut alias: Vec<usize> = (0..self.bufs.len()).collect();
        for (b, spec) in self.bufs.iter().enumerate() {
            if let Place::Output(o) = spec.place
                && let OutputSpec::Donated(i) = self.outputs[o as usize]
            {
                for (c, other) in self.bufs.iter().enumerate() {
                    if other.place == Place::Input(i) {
                        alias[c] = b;
                    }
                }
            }
        }
        alias
    }

    /// Places for everything that lives only inside the program.
    fn assign_arena(&mut self, launches: &[Launch]) -> usize {
        let mut life = vec![(usize::MAX, 0usize); self.bufs.len()];
        for (at, launch) in launches.iter().enumerate() {
            for k in &launch.kernels {
                let mut touch: SmallVec<[BufId; 8]> = SmallVec::new();
                let mut writes: SmallVec<[BufId; 4]> = SmallVec::new();
                k.accesses(|b| touch.push(b), |b| writes.push(b));
                for b in touch.into_iter().chain(writes) {
                    let l = &mut life[b.index()];
                    l.0 = l.0.min(at);
                    l.1 = l.1.max(at);
                }
            }
        }
        let mut inside: Vec<usize> = (0..self.bufs.len()).filter(|&b| self.bufs[b].place == Place::Unused && life[b].0 != usize::MAX).collect();
        self.share_in_place(launches, &mut life, &mut inside);
        inside.sort_by_key(|&b| (Reverse(self.bufs[b].bytes()), b));
        let mut placed: Vec<(usize, usize, usize)> = Vec::with_capacity(inside.len()); // (offset, end, buffer)
        let mut arena = 0;
        for b in inside {
            let size = self.bufs[b].bytes().next_multiple_of(ALIGN);
            let mut at = 0;
            // Places are sorted by offset: take the first gap among those alive at the same time.
            for &(lo, hi, other) in &placed {
                let together = life[b].0 <= life[other].1 && life[other].0 <= life[b].1;
                if together && lo < at + size && at < hi {
                    at = hi;
                }
            }
            self.bufs[b].place = Place::Arena(at);
            arena = arena.max(at + size);
            let pos = placed.partition_point(|p| p.0 <= at);
            placed.insert(pos, (at, at + size, b));
        }
        arena
    }

    /// A result takes the place of an arena buffer that dies in its kernel, when each element is read just before it is written.
    fn share_in_place(&mut self, launches: &[Launch], life: &mut [(usize, usize)], inside: &mut Vec<usize>) {
        let mut gone = vec![false; self.bufs.len()];
        for (at, launch) in launches.iter().enumerate() {
            for k in &launch.kernels {
                let Some((expr, _)) = expression(k) else { continue };
                for s in &expr.stores {
                    let out = s.buf;
                    if self.bufs[out.index()].place != Place::Unused || gone[out.index()] || life[out.index()].0 != at {
                        continue;
                    }
                    let found = expr.loads.iter().map(|l| l.buf).find(|b| {
                        self.bufs[b.index()].place == Place::Unused
                            && *b != out
                            && !gone[b.index()]
                            && life[b.index()].1 == at
                            && life[b.index()].0 < at
                            && self.bufs[b.index()].len == self.bufs[out.index()].len
                            && self.bufs[b.index()].dtype.size() == self.bufs[out.index()].dtype.size()
                            && launch.kernels.iter().filter(|other| !core::ptr::eq(*other, k)).all(|other| {
                                let (mut reads, mut writes) = (false, false);
                                other.accesses(|r| reads |= r == *b, |w| writes |= w == out);
                                !reads && !writes
                            })
                            && may_overwrite(core::slice::from_ref(k), out, *b)
                    });
                    if let Some(b) = found {
                        // The older buffer's place serves both lives.
                        self.shares.push((b, out));
                        life[out.index()].0 = life[b.index()].0;
                        gone[b.index()] = true;
                    }
                }
            }
        }
        inside.retain(|b| !gone[*b]);
        // A chain of shares ends at the last buffer.
        for k in 0..self.shares.len() {
            let mut end = self.shares[k].1;
            while let Some(s) = self.shares.iter().find(|s| s.0 == end) {
                end = s.1;
            }
            self.shares[k].1 = end;
        }
    }
}

/// A copy onto itself (an update in place) is nothing.
fn drop_needless_copies(bufs: &[BufSpec], outputs: &[OutputSpec], launches: Vec<Launch>) -> Vec<Launch> {
    let same = |a: Place, b: Place| match (a, b) {
        (Place::Input(i), Place::Output(o)) => outputs[o as usize] == OutputSpec::Donated(i),
        _ => a == b,
    };
    launches
        .into_iter()
        .filter_map(|mut l| {
            l.kernels.retain(|k| match k {
                Kernel::Copy { from, to } => !same(bufs[from.index()].place, bufs[to.index()].place),
                _ => true,
            });
            (!l.kernels.is_empty()).then_some(l)
        })
        .collect()
}
