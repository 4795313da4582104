//! Row kernels: a row's elements are read once into registers, reduced as often as the expression asks, and written once.
use std::fmt::Write;

use kiln_ir::expr::Level;
use kiln_ir::{Inst, Program, ValueId};

use super::fused::step;
use super::nest::{Access, Nest};
use super::signature::Signature;
use super::text::{affine, is_wide, memory_type, reducer, register_type, scalar_load, stored, unflatten, value};
use crate::steps::Steps;

/// Most registers that hold elements between phases.
const REGISTERS: usize = 72;

/// How a row lies in registers.
pub struct Rows {
    nest: Nest,
    phases: Vec<u32>,
    /// Threads of a row.
    threads: usize,
    /// Elements of a vector.
    v: usize,
    /// Vectors of a thread.
    vectors: usize,
    /// Full values that live from their phase to a later one.
    saved: Vec<bool>,
    /// Full values that are made of what was read at the start, whenever they are needed.
    raw: Vec<bool>,
}

/// The steps of a nest with several phases over rows that fit in registers, or `None` when it is not one.
pub fn render(nest: &Nest, program: &Program) -> Option<Steps> {
    let rows = Rows::plan(nest, program, false)?;
    let block = rows.block();
    let mut sig = Signature::new(program);
    sig.wide = rows.is_wide(program);
    let body = rows.body(&mut sig, block);
    Some(Steps::one(step(sig.finish("row", block as u32, &body), [rows.blocks(block) as u32, 1, 1], block as u32)))
}

impl Rows {
    /// How rows lie in registers, if the nest is one of this kind. `spread`: a row takes the threads of a whole block of 256, as far as it has elements.
    pub fn plan(nest: &Nest, program: &Program, spread: bool) -> Option<Self> {
        Self::plan_within(nest, program, spread, CHEAP).or_else(|| Self::plan_within(nest, program, spread, DEAR))
    }

    /// `limit`: what a value may cost that is made anew instead of being kept.
    fn plan_within(nest: &Nest, program: &Program, spread: bool, limit: u32) -> Option<Self> {
        let reduced = nest.reduced_points();
        let mut phases = nest.expr.phases();
        let last = phases.iter().copied().max().unwrap_or(0);
        let stores_full = nest.expr.stores.iter().any(|s| nest.expr.value(s.value).level == Level::Full);
        if reduced == 0 || (last < 2 && !stores_full) {
            return None;
        }
        put_off(nest, &mut phases);
        let v = nest.vector(program, nest.dims.len() - 1, 8);
        let raw = raw(nest, &phases, v, limit);
        let saved = saved(nest, &phases, &raw);
        let cost = cost(nest, program, &phases, (&saved, &raw), v);
        let groups = reduced.div_ceil(v);
        let most = (REGISTERS / cost).clamp(1, 4.max(16 / v));
        let mut threads = groups.div_ceil(most).next_power_of_two();
        if threads > 1024 {
            if groups.div_ceil(1024) * cost > REGISTERS / 2 {
                return None;
            }
            threads = 1024;
        }
        if groups <= 32 {
            threads = groups.next_power_of_two();
        } else if threads <= 32 {
            // Within a warp: the number of lanes that leaves the fewest idle, as long as the elements fit.
            let fits = |t: &usize| groups.div_ceil(*t) * cost <= REGISTERS;
            let idle = |t: &usize| groups.div_ceil(*t) * t - groups;
            threads = [32, 16, 8].into_iter().filter(fits).min_by_key(idle).unwrap_or(32);
        }
        if spread {
            threads = threads.max(groups.next_power_of_two().min(256));
        }
        let vectors = groups.div_ceil(threads);
        if vectors * cost > REGISTERS.max(cost) * 2 {
            return None;
        }
        Some(Rows { nest: nest.clone(), phases, threads, v, vectors, saved, raw })
    }

    /// Threads of a block.
    pub fn block(&self) -> usize {
        self.threads.max(if self.threads <= 32 { 128 } else { 256 })
    }

    /// Number of blocks of so many threads.
    pub fn blocks(&self, block: usize) -> usize {
        self.nest.kept_points().div_ceil(block / self.threads)
    }

    /// Whether indices need 64 bits.
    pub fn is_wide(&self, program: &Program) -> bool {
        is_wide(program, &self.nest.expr, self.nest.kept_points() * self.nest.reduced_points())
    }
}

/// Whether an instruction is cheaper to run again than to keep.
fn is_cheap(inst: &Inst) -> bool {
    matches!(inst, Inst::Index(_) | Inst::Inside(_) | Inst::Const(_) | Inst::Arg(_))
}

/// Whether a load reads the same elements for every row: it stays in the first-level cache.
fn is_shared(nest: &Nest, n: u32) -> bool {
    let index = &nest.expr.loads[n as usize].index;
    (0..nest.kept).all(|d| index.coeffs[d] == 0 || nest.dims[d] == 1)
}

/// Moves what is made of shared loads alone to the phase that uses it first, so that it takes no registers before.
fn put_off(nest: &Nest, phases: &mut [u32]) {
    let expr = &nest.expr;
    let mut movable = vec![false; expr.values.len()];
    for (k, v) in expr.values.iter().enumerate() {
        let mut operands = true;
        v.inst.operands(|x| operands &= expr.value(x).level != Level::Full || movable[x.index()]);
        movable[k] = v.level == Level::Full
            && match v.inst {
                Inst::Load(n) => is_shared(nest, n),
                Inst::Op(..) | Inst::Cast(_) => operands,
                _ => false,
            };
    }
    let last = phases.iter().copied().max().unwrap_or(0);
    for k in (0..expr.values.len()).rev().filter(|k| movable[*k]) {
        let mut first = if expr.stores.iter().any(|s| s.value.index() == k) { phases[k] } else { last };
        for (user, v) in expr.values.iter().enumerate() {
            let reads_in = phases[user] - matches!(v.inst, Inst::Reduce(..)) as u32;
            v.inst.operands(|x| {
                if x.index() == k {
                    first = first.min(reads_in);
                }
            });
        }
        phases[k] = phases[k].max(first);
    }
}

/// Additions that a value may cost each time it is made anew.
const CHEAP: u32 = 3;
/// The same where a row would not fit into registers otherwise: still less than reading it again.
const DEAR: u32 = 40;

/// What is made anew in each phase that needs it: of what was read as vectors at the start, which stays in registers as it is (half floats take half of the room), and of what takes
/// no reading at all, such as masks made of positions.
fn raw(nest: &Nest, phases: &[u32], v: usize, limit: u32) -> Vec<bool> {
    let (expr, last) = (&nest.expr, nest.dims.len() - 1);
    // The cost of each such value.
    let mut costs: Vec<Option<u32>> = vec![None; expr.values.len()];
    for (k, value) in expr.values.iter().enumerate().filter(|(_, value)| value.level == Level::Full) {
        let own = match value.inst {
            Inst::Load(n) if phases[k] == 0 && nest.load_access(n, last, v) == Access::Vector => Some(0),
            Inst::Op(op, _) => Some(op.cost()),
            Inst::Cast(_) => Some(0),
            _ if is_cheap(&value.inst) => Some(0),
            _ => None,
        };
        let mut total = own;
        value.inst.operands(|x| {
            if expr.value(x).level == Level::Full {
                total = total.zip(costs[x.index()]).map(|(a, b)| a + b);
            }
        });
        costs[k] = total.filter(|c| *c <= limit);
    }
    costs.into_iter().map(|c| c.is_some()).collect()
}

/// Whether a use of `x` in phase `reads_in` is later than its own.
fn is_later(nest: &Nest, phases: &[u32], x: ValueId, reads_in: u32) -> bool {
    nest.expr.value(x).level == Level::Full && phases[x.index()] < reads_in
}

/// Calls `f` with every operand and the phase in which it is read: a reduction reads its operand in the phase before its own.
fn for_each_use(nest: &Nest, phases: &[u32], mut f: impl FnMut(ValueId, u32)) {
    for (k, v) in nest.expr.values.iter().enumerate() {
        let reduces = matches!(v.inst, Inst::Reduce(..));
        if v.level == Level::Full || reduces {
            v.inst.operands(|x| f(x, phases[k] - reduces as u32));
        }
    }
}

/// Full values used in a later phase than their own that are kept for it.
fn saved(nest: &Nest, phases: &[u32], raw: &[bool]) -> Vec<bool> {
    let mut saved = vec![false; nest.expr.values.len()];
    for_each_use(nest, phases, |x, reads_in| {
        saved[x.index()] |= is_later(nest, phases, x, reads_in) && !is_cheap(&nest.expr.value(x).inst) && !raw[x.index()];
    });
    saved
}

/// Registers that a vector takes between phases.
fn cost(nest: &Nest, program: &Program, phases: &[u32], (saved, raw): (&[bool], &[bool]), v: usize) -> usize {
    let expr = &nest.expr;
    let mut needed = vec![false; expr.values.len()];
    for_each_use(nest, phases, |x, reads_in| needed[x.index()] |= is_later(nest, phases, x, reads_in) && raw[x.index()]);
    for k in (0..expr.values.len()).rev().filter(|k| raw[*k]) {
        if needed[k] {
            expr.values[k].inst.operands(|x| needed[x.index()] |= raw[x.index()]);
        }
    }
    let loads = expr.values.iter().zip(&needed).filter(|(_, needed)| **needed).filter_map(|(value, _)| match value.inst {
        Inst::Load(n) => Some((program.buf(expr.loads[n as usize].buf).dtype.size() * v).div_ceil(4)),
        _ => None,
    });
    (saved.iter().filter(|s| **s).count() * v + loads.sum::<usize>()).max(1)
}

impl Rows {
    fn last_dim(&self) -> usize {
        self.nest.dims.len() - 1
    }

    fn name(&self, x: ValueId, phase: u32) -> String {
        let k = x.index();
        if self.nest.expr.value(x).level == Level::Full && self.saved[k] && self.phases[k] < phase {
            return format!("a{k}[u * {} + v]", self.v);
        }
        format!("v{k}")
    }

    /// The text of a block.
    pub fn body(&self, sig: &mut Signature<'_>, block: usize) -> String {
        let (nest, expr, ty) = (&self.nest, &self.nest.expr, sig.index_type());
        let (threads, kept) = (self.threads, nest.kept_points());
        let mut s = String::new();
        let _ = writeln!(s, "const int lane = threadIdx.x % {threads};");
        let _ = writeln!(s, "const {ty} row = ({ty})bid * {} + threadIdx.x / {threads};", block / threads);
        let _ = writeln!(s, "const bool live = row < {kept}; const {ty} k = live ? row : 0;");
        let (split, coords) = unflatten(sig, "k", &nest.dims[..nest.kept], "k");
        s += &split;
        for (k, v) in expr.values.iter().enumerate().filter(|(k, _)| self.saved[*k]) {
            let _ = writeln!(s, "{} a{k}[{}];", register_type(v.dtype), self.vectors * self.v);
        }
        let last = self.phases.iter().copied().max().unwrap_or(0);
        let vectors = self.vector_loads(0);
        s += &self.read(sig, &coords, &vectors);
        for phase in 0..=last {
            s += &self.kept_values(sig, phase, &coords);
            let reds = self.reductions(phase + 1);
            for k in &reds {
                let r = self.reducer(*k);
                let _ = writeln!(s, "{r}::t r{k} = {r}::init();");
            }
            let late = if phase == 0 { Vec::new() } else { self.vector_loads(phase) };
            s += &self.pass(sig, &coords, phase, &reds, (&vectors, &late));
            s += &self.join(&reds, block);
        }
        let mut at = coords;
        at.resize(nest.dims.len(), "0".into());
        let kept_stores: Vec<_> = expr.stores.iter().filter(|st| expr.value(st.value).level != Level::Full).collect();
        if !kept_stores.is_empty() {
            s += "if (live && lane == 0) {\n";
            for st in kept_stores {
                let (name, place) = (sig.write(st.buf), affine(sig, &st.index, &at));
                let _ = writeln!(s, "{name}[{place}] = down<{}>(v{});", memory_type(sig.dtype(st.buf)), st.value.0);
            }
            s += "}\n";
        }
        s
    }

    fn reductions(&self, phase: u32) -> Vec<usize> {
        let expr = &self.nest.expr;
        (0..expr.values.len()).filter(|k| matches!(expr.values[*k].inst, Inst::Reduce(..)) && self.phases[*k] == phase).collect()
    }

    fn reducer(&self, k: usize) -> String {
        match self.nest.expr.values[k].inst {
            Inst::Reduce(op, x) => reducer(op, self.nest.expr.value(x).dtype),
            _ => unreachable!("only reductions have reducers"),
        }
    }

    /// Loads that are read as vectors in a phase: those of phase 0 before anything is computed.
    fn vector_loads(&self, phase: u32) -> Vec<u32> {
        let mut found = Vec::new();
        for (k, v) in self.nest.expr.values.iter().enumerate() {
            if let Inst::Load(n) = v.inst
                && v.level == Level::Full
                && self.phases[k] == phase
                && self.nest.load_access(n, self.last_dim(), self.v) == Access::Vector
                && !found.contains(&n)
            {
                found.push(n);
            }
        }
        found
    }

    /// The loop over a thread's vectors, around statements at its coordinates.
    fn over_vectors(&self, sig: &mut Signature<'_>, kept: &[String], inner: impl FnOnce(&mut Signature<'_>, &[String]) -> String) -> String {
        let nest = &self.nest;
        let mut grouped = nest.dims[nest.kept..].to_vec();
        let last = grouped.len() - 1;
        grouped[last] /= self.v;
        let total: usize = grouped.iter().product();
        let (split, names) = unflatten(sig, "g", &grouped, "c");
        let mut coords = kept.to_vec();
        coords.extend(names);
        if self.v > 1 {
            coords[self.last_dim()] = format!("({} * {})", coords[self.last_dim()], self.v);
        }
        let full = total == self.threads * self.vectors;
        let guard = if full { "live".to_string() } else { format!("live && g < {total}") };
        let inner = inner(sig, &coords);
        format!(
            "#pragma unroll\nfor (int u = 0; u < {}; u++) {{\nconst int g = u * {} + lane;\nif ({guard}) {{\n{split}{inner}}}\n}}\n",
            self.vectors, self.threads
        )
    }

    fn read(&self, sig: &mut Signature<'_>, kept: &[String], vectors: &[u32]) -> String {
        if vectors.is_empty() {
            return String::new();
        }
        let mut s = String::new();
        for n in vectors {
            let ty = memory_type(sig.dtype(self.nest.expr.loads[*n as usize].buf));
            let _ = writeln!(s, "vec<{ty}, {}> l{n}[{}];", self.v, self.vectors);
        }
        s + &self.over_vectors(sig, kept, |sig, coords| {
            let mut s = String::new();
            for n in vectors {
                let l = &self.nest.expr.loads[*n as usize];
                let (name, at) = (sig.read(l.buf), affine(sig, &l.index, coords));
                // What all rows share stays in the first-level cache, a row itself passes by it.
                let shares = (0..self.nest.expr.loads.len() as u32).any(|m| is_shared(&self.nest, m));
                let once = shares && !is_shared(&self.nest, *n);
                let read = if once { "ldv_once" } else { "ldv" };
                let _ = writeln!(s, "l{n}[u] = {read}<{}, {}>({name} + {at});", memory_type(sig.dtype(l.buf)), self.v);
            }
            s
        })
    }

    fn kept_values(&self, sig: &mut Signature<'_>, phase: u32, coords: &[String]) -> String {
        let expr = &self.nest.expr;
        let mut s = String::new();
        for (k, val) in expr.values.iter().enumerate() {
            if val.level == Level::Full || self.phases[k] != phase {
                continue;
            }
            let text = match val.inst {
                Inst::Reduce(op, _) => format!("r{k}{}", if op.is_arg() { ".i" } else { "" }),
                _ => value(sig, expr, k, coords, &|x| format!("v{}", x.0), &mut |sig, n| scalar_load(sig, expr, n, coords), ""),
            };
            let _ = writeln!(s, "const {} v{k} = {text};", register_type(val.dtype));
        }
        s
    }

    /// The Full values of one phase: reduced, stored, kept for later.
    /// `early` and `late` are the loads read as vectors before the first phase and in this one.
    fn pass(&self, sig: &mut Signature<'_>, kept: &[String], phase: u32, reds: &[usize], (early, late): (&[u32], &[u32])) -> String {
        let expr = &self.nest.expr;
        let stores: Vec<usize> = (0..expr.stores.len())
            .filter(|n| {
                let x = expr.stores[*n].value;
                expr.value(x).level == Level::Full && self.phases[x.index()] == phase
            })
            .collect();
        let mine: Vec<usize> = (0..expr.values.len()).filter(|k| expr.values[*k].level == Level::Full && self.phases[*k] == phase).collect();
        if mine.is_empty() && reds.is_empty() {
            return String::new();
        }
        // What is cheap is computed again instead of being kept.
        let mut again = vec![false; expr.values.len()];
        let used = mine.iter().copied().chain(reds.iter().copied());
        for k in used {
            expr.values[k].inst.operands(|x| {
                let v = expr.value(x);
                again[x.index()] |= v.level == Level::Full && self.phases[x.index()] < phase && (is_cheap(&v.inst) || self.raw[x.index()]);
            });
        }
        for k in (0..expr.values.len()).rev().filter(|k| self.raw[*k]) {
            if again[k] {
                expr.values[k].inst.operands(|x| again[x.index()] |= expr.value(x).level == Level::Full);
            }
        }
        self.over_vectors(sig, kept, |sig, coords| {
            let mut at = coords.to_vec();
            if self.v > 1 {
                at[self.last_dim()] = format!("({} + v)", coords[self.last_dim()]);
            }
            let is_wide = |n: usize| self.v > 1 && self.nest.access(&expr.stores[n].index, self.last_dim(), self.v) == Access::Vector;
            let mut s = String::new();
            for n in late {
                let l = &expr.loads[*n as usize];
                let (name, place, ty) = (sig.read(l.buf), affine(sig, &l.index, coords), memory_type(sig.dtype(l.buf)));
                let _ = writeln!(s, "const vec<{ty}, {}> l{n} = ldv<{ty}, {}>({name} + {place});", self.v, self.v);
            }
            for n in stores.iter().filter(|n| is_wide(**n)) {
                let _ = writeln!(s, "{} o{n}[{}];", register_type(expr.value(expr.stores[*n].value).dtype), self.v);
            }
            let _ = writeln!(s, "#pragma unroll\nfor (int v = 0; v < {}; v++) {{", self.v);
            for k in (0..expr.values.len()).filter(|k| again[*k] || mine.contains(k)) {
                let mut load = |sig: &mut Signature<'_>, n: u32| {
                    if early.contains(&n) {
                        format!("up(l{n}[u].at(v))")
                    } else if late.contains(&n) {
                        format!("up(l{n}.at(v))")
                    } else {
                        scalar_load(sig, expr, n, &at)
                    }
                };
                let text = value(sig, expr, k, &at, &|x| self.name(x, phase), &mut load, "");
                let _ = writeln!(s, "const {} v{k} = {text};", register_type(expr.values[k].dtype));
                if self.saved[k] {
                    let _ = writeln!(s, "a{k}[u * {} + v] = v{k};", self.v);
                }
            }
            for k in reds {
                if let Inst::Reduce(op, x) = expr.values[*k].inst {
                    let mut operand = self.name(x, phase);
                    if op.is_arg() {
                        operand = format!("at_index({operand}, (i64){})", affine(sig, &self.nest.position, &at));
                    }
                    let _ = writeln!(s, "r{k} = {}::join(r{k}, {operand});", self.reducer(*k));
                }
            }
            for n in &stores {
                let st = &expr.stores[*n];
                let name = sig.write(st.buf);
                if is_wide(*n) {
                    let _ = writeln!(s, "o{n}[v] = {};", self.name(stored(sig, expr, st), phase));
                } else {
                    let place = affine(sig, &st.index, &at);
                    let x = self.name(stored(sig, expr, st), phase);
                    let _ = writeln!(s, "{name}[{place}] = down<{}>({x});", memory_type(sig.dtype(st.buf)));
                }
            }
            s += "}\n";
            for n in stores.iter().filter(|n| is_wide(**n)) {
                let st = &expr.stores[*n];
                let (name, place) = (sig.write(st.buf), affine(sig, &st.index, coords));
                let _ = writeln!(s, "stv<{}, {}>({name} + {place}, o{n});", memory_type(sig.dtype(st.buf)), self.v);
            }
            s
        })
    }

    /// Joins the accumulators of a row's threads.
    fn join(&self, reds: &[usize], block: usize) -> String {
        let (threads, mut s) = (self.threads, String::new());
        for k in reds {
            let _ = writeln!(s, "r{k} = join_lanes<{}, {}>(r{k});", self.reducer(*k), threads.min(32));
        }
        if threads > 32 && !reds.is_empty() {
            let warps = threads / 32;
            for k in reds {
                let r = self.reducer(*k);
                let _ = writeln!(s, "KILN_SHARED {r}::t s{k}[{}];\nif (threadIdx.x % 32 == 0) s{k}[threadIdx.x / 32] = r{k};", block / 32);
            }
            s += "__syncthreads();\n";
            for k in reds {
                let r = self.reducer(*k);
                let first = format!("threadIdx.x / {threads} * {warps}");
                let _ = writeln!(
                    s,
                    "r{k} = s{k}[{first}];\n#pragma unroll\nfor (int w = 1; w < {warps}; w++) r{k} = {r}::join(r{k}, s{k}[{first} + w]);"
                );
            }
        }
        s
    }
}
