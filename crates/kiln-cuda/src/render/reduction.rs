//! Reductions that walk their reduced points in loops: rows (neighbouring threads share a row) and columns (neighbouring threads have a column each), whole or split.
//!
//! Each phase of the expression is a loop over the reduced points that reads what it needs again: the second and later loops find it in the caches.
use std::fmt::Write;

use kiln_ir::expr::Level;
use kiln_ir::{Inst, Program, ValueId};

use super::fused::step;
use super::nest::{Access, Nest};
use super::signature::Signature;
use super::text::{affine, is_wide, memory_type, reducer, register_type, scalar_load, stored, unflatten, value};
use crate::steps::{Chip, Steps};

/// Threads of a block.
const BLOCK: usize = 256;
/// Most static shared memory of a block.
const SHARED: usize = 48 << 10;

/// How the threads of a block share the points.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// This many threads to a row; the vector runs over reduced points.
    Rows(usize),
    /// This many threads over groups of columns and this many over the reduced points; the vector runs over columns.
    Columns(usize, usize),
}

/// Which part of a split reduction a kernel is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// All of it.
    Whole,
    /// Reduces one of so many parts of the reduced points and stores the accumulators.
    Part(usize),
    /// All of it by clusters of so many blocks: each reduces a part, the last one joins them.
    Cluster(usize),
}

/// Most blocks of a cluster on every chip that has them.
pub const CLUSTER: usize = 8;

/// A reduction in loops.
pub struct Loops {
    nest: Nest,
    mode: Mode,
    stage: Stage,
    /// Points of a vector.
    v: usize,
    phases: Vec<u32>,
}

/// The steps of a reduction whose neighbouring elements lie along the last reduced dimension.
pub fn rows(nest: Nest, program: &Program, chip: &Chip) -> Steps {
    let loops = row_loops(nest, program, chip);
    let block = loops.block();
    let mut sig = Signature::new(program);
    sig.wide = loops.is_wide(program);
    sig.cluster = loops.cluster();
    let body = loops.body(&mut sig);
    Steps::one(step(sig.finish("rows", block as u32, &body), [loops.blocks() as u32, 1, 1], block as u32))
}

/// How such a reduction is walked.
pub fn row_loops(nest: Nest, program: &Program, chip: &Chip) -> Loops {
    let (kept, reduced) = (nest.kept_points(), nest.reduced_points());
    let v = if reduced == 0 { 1 } else { nest.vector(program, nest.dims.len() - 1, 8) };
    let groups = reduced.div_ceil(v).max(1);
    let mut threads = match groups {
        0..=32 => groups.next_power_of_two(),
        33..=512 => 32,
        513..=4096 => 256,
        _ => 1024,
    };
    if (32..256).contains(&threads) && kept * threads < chip.multiprocessors as usize * 512 {
        threads = (groups.next_power_of_two() / 2).clamp(32, 256);
    }
    let phases = nest.expr.phases();
    // A few long rows are shared out to clusters.
    let few = chip.sm >= 90 && is_simple(&nest, &phases) && kept * 2 <= chip.multiprocessors as usize && groups > 2048;
    let stage = if few { Stage::Cluster(groups.div_ceil(1024).min(CLUSTER)) } else { Stage::Whole };
    Loops { nest, mode: Mode::Rows(threads), stage, v, phases }
}

/// Whether everything is reduced once and only what was reduced is stored.
fn is_simple(nest: &Nest, phases: &[u32]) -> bool {
    phases.iter().all(|p| *p <= 1) && nest.expr.stores.iter().all(|s| nest.expr.value(s.value).level != Level::Full)
}

/// The steps of a reduction whose neighbouring elements lie along the last kept dimension.
pub fn columns(nest: Nest, program: &Program, chip: &Chip) -> Steps {
    let loops = column_loops(nest, program, chip);
    let kept = loops.nest.kept_points();
    let mut sig = Signature::new(program);
    sig.wide = loops.is_wide(program);
    sig.cluster = loops.cluster();
    let body = loops.body(&mut sig);
    let Stage::Part(parts) = loops.stage else {
        return Steps::one(step(sig.finish("columns", BLOCK as u32, &body), [loops.blocks() as u32, 1, 1], BLOCK as u32));
    };
    let first = step(sig.finish("column_parts", BLOCK as u32, &body), [loops.blocks() as u32, parts as u32, 1], BLOCK as u32);
    let mut sig = Signature::new(program);
    sig.wide = loops.is_wide(program);
    let body = loops.finish(&mut sig, parts);
    let second = step(sig.finish("join_parts", BLOCK as u32, &body), [kept.div_ceil(32) as u32, 1, 1], BLOCK as u32);
    Steps { steps: vec![first, second], scratch: loops.scratch(parts).last().map_or(0, |(_, end)| *end) }
}

/// How such a reduction is walked.
pub fn column_loops(nest: Nest, program: &Program, chip: &Chip) -> Loops {
    let (kept, reduced) = (nest.kept_points(), nest.reduced_points());
    let mut v = nest.vector(program, nest.kept - 1, 8);
    let bytes: usize = (0..nest.expr.values.len()).map(|k| nest.accumulator(k)).sum();
    let long = reduced >= 64;
    while long && v > 1 && bytes * BLOCK * v > SHARED {
        v /= 2;
    }
    let long = long && bytes * BLOCK * v <= SHARED;
    let phases = nest.expr.phases();
    let simple = is_simple(&nest, &phases);
    // Threads side by side: those that leave the fewest idle. What can't be split takes narrower vectors, so that more threads work.
    while v > 1 && !(simple && long) && kept / v < BLOCK {
        v /= 2;
    }
    let groups = kept / v;
    let idle = |wide: &usize| groups.div_ceil(*wide) * wide - groups;
    let machine = chip.multiprocessors as usize;
    let wanted = machine * if kept * reduced >= 1 << 25 { 8 } else { 2 };
    let splits = simple && long && reduced >= 1024;
    let wide = if long { [32, 16, 8].into_iter().min_by_key(idle).unwrap_or(32) } else { BLOCK };
    let across = BLOCK / wide;
    let blocks = groups.div_ceil(wide);
    let few = blocks < 2 * machine;
    let parts = if splits && few { (wanted / blocks.max(1)).min(reduced / (across * 4)).clamp(1, 256) } else { 1 };
    let mode = Mode::Columns(wide, across);
    let stage = if parts == 1 { Stage::Whole } else { Stage::Part(parts) };
    Loops { nest, mode, stage, v, phases }
}

impl Loops {
    /// Threads of a block.
    pub fn block(&self) -> usize {
        match self.mode {
            Mode::Rows(threads) => threads.max(BLOCK),
            Mode::Columns(..) => BLOCK,
        }
    }

    /// Number of blocks, without the parts of a first stage.
    pub fn blocks(&self) -> usize {
        let kept = self.nest.kept_points();
        let own = match self.mode {
            Mode::Rows(threads) => kept.div_ceil(self.block() / threads),
            Mode::Columns(wide, _) => (kept / self.v).div_ceil(wide),
        };
        own * self.cluster()
    }

    /// Whether one launch of plain blocks does all of it.
    pub fn is_whole(&self) -> bool {
        self.stage == Stage::Whole
    }

    /// Bytes of shared memory of a block.
    pub fn shared(&self) -> usize {
        let bytes: usize = (0..self.nest.expr.values.len()).map(|k| self.nest.accumulator(k)).sum();
        match self.mode {
            Mode::Rows(_) => bytes * 32,
            Mode::Columns(_, 1) => 0,
            Mode::Columns(..) => bytes * BLOCK * self.v,
        }
    }

    /// Blocks of a cluster.
    pub fn cluster(&self) -> usize {
        if let Stage::Cluster(parts) = self.stage { parts } else { 1 }
    }

    /// Whether indices need 64 bits.
    pub fn is_wide(&self, program: &Program) -> bool {
        is_wide(program, &self.nest.expr, self.nest.kept_points() * self.nest.reduced_points())
    }

    fn is_columns(&self) -> bool {
        matches!(self.mode, Mode::Columns(..))
    }

    /// Vector of the kept points: 1 for rows.
    fn kept_vector(&self) -> usize {
        if self.is_columns() { self.v } else { 1 }
    }

    /// The dimension of the vector.
    fn vector_dim(&self) -> usize {
        if self.is_columns() { self.nest.kept - 1 } else { self.nest.dims.len() - 1 }
    }

    /// The text of a value of an earlier statement.
    fn name(&self, x: ValueId) -> String {
        match self.nest.expr.value(x).level {
            Level::Kept if self.is_columns() => format!("v{}[v]", x.0),
            Level::Kept | Level::Uniform | Level::Full => format!("v{}", x.0),
        }
    }

    fn reductions(&self, phase: u32) -> Vec<usize> {
        let expr = &self.nest.expr;
        (0..expr.values.len()).filter(|k| matches!(expr.values[*k].inst, Inst::Reduce(..)) && self.phases[*k] == phase).collect()
    }

    /// Places of the accumulators in scratch memory: value, first byte after it.
    fn scratch(&self, parts: usize) -> Vec<(usize, usize)> {
        let mut end = 0;
        let mut places = Vec::new();
        for k in self.reductions(1) {
            end += (self.nest.accumulator(k) * parts * self.nest.kept_points()).next_multiple_of(256);
            places.push((k, end));
        }
        places
    }

    fn scratch_start(&self, parts: usize, k: usize) -> usize {
        let places = self.scratch(parts);
        let n = places.iter().position(|p| p.0 == k).unwrap_or(0);
        if n == 0 { 0 } else { places[n - 1].1 }
    }

    /// Full values that the roots need, reductions excluded.
    fn needed(&self, roots: impl Iterator<Item = ValueId>) -> Vec<bool> {
        let expr = &self.nest.expr;
        let mut needed = vec![false; expr.values.len()];
        roots.for_each(|r| needed[r.index()] = true);
        for k in (0..expr.values.len()).rev() {
            if needed[k] && !matches!(expr.values[k].inst, Inst::Reduce(..)) {
                expr.values[k].inst.operands(|x| needed[x.index()] = true);
            }
        }
        for (k, v) in expr.values.iter().enumerate() {
            needed[k] &= v.level == Level::Full && !matches!(v.inst, Inst::Reduce(..));
        }
        needed
    }

    /// The text of a block.
    pub fn body(&self, sig: &mut Signature<'_>) -> String {
        let nest = &self.nest;
        let (kept, reduced) = (nest.kept_points(), nest.reduced_points());
        let ty = sig.index_type();
        let kv = self.kept_vector();
        let mut s = String::new();
        let bid = match self.stage {
            Stage::Cluster(parts) => {
                let _ = writeln!(s, "const unsigned rank = bid % {parts};");
                format!("(bid / {parts})")
            }
            Stage::Whole | Stage::Part(_) => "bid".into(),
        };
        match self.mode {
            Mode::Rows(threads) => {
                let block = threads.max(BLOCK);
                let _ = writeln!(s, "const int lane = threadIdx.x % {threads};");
                let _ = writeln!(s, "const {ty} row = ({ty}){bid} * {} + threadIdx.x / {threads};", block / threads);
                let _ = writeln!(s, "const bool live = row < {kept}; const {ty} k = live ? row : 0;");
            }
            Mode::Columns(wide, _) => {
                let _ = writeln!(s, "const int lane = threadIdx.x / {wide}; const int side = threadIdx.x % {wide};");
                let _ = writeln!(s, "const {ty} column = ({ty}){bid} * {wide} + side;");
                let _ = writeln!(s, "const bool live = column < {}; const {ty} k = live ? column : 0;", kept / kv);
            }
        }
        let mut grouped = nest.dims.to_vec();
        grouped[self.vector_dim()] /= self.v;
        let (split, mut coords) = unflatten(sig, "k", &grouped[..nest.kept], "k");
        s += &split;
        if self.is_columns() && kv > 1 {
            coords[nest.kept - 1] = format!("({} * {kv})", coords[nest.kept - 1]);
        }
        let last = self.phases.iter().copied().max().unwrap_or(0);
        for phase in 0..=last {
            s += &self.kept_values(sig, phase, &coords);
            if phase == last || (phase == 0 && matches!(self.stage, Stage::Part(_))) {
                break;
            }
            let reds = self.reductions(phase + 1);
            for k in &reds {
                let r = self.reducer(*k);
                let _ = writeln!(s, "{r}::t r{k}[{kv}];\n#pragma unroll\nfor (int v = 0; v < {kv}; v++) r{k}[v] = {r}::init();");
            }
            if reduced > 0 {
                s += &self.pass(sig, &coords, &reds, false);
            }
            s += &self.join(&reds);
            s += &self.join_cluster(&reds);
        }
        if let Stage::Part(parts) = self.stage {
            return s + &self.part(sig, &coords, parts);
        }
        if reduced > 0 && nest.expr.stores.iter().any(|st| nest.expr.value(st.value).level == Level::Full) {
            s += &self.pass(sig, &coords, &[], true);
        }
        s += &self.kept_stores(sig, &coords);
        if self.cluster() > 1 {
            s += "cluster_sync();\n";
        }
        s
    }

    fn reducer(&self, k: usize) -> String {
        match self.nest.expr.values[k].inst {
            Inst::Reduce(op, x) => reducer(op, self.nest.expr.value(x).dtype),
            _ => unreachable!("only reductions have reducers"),
        }
    }

    /// Values of a phase that don't vary over reduced points.
    fn kept_values(&self, sig: &mut Signature<'_>, phase: u32, coords: &[String]) -> String {
        let (expr, kv) = (&self.nest.expr, self.kept_vector());
        let mut s = String::new();
        for (k, val) in expr.values.iter().enumerate() {
            if val.level == Level::Full || self.phases[k] != phase {
                continue;
            }
            let ty = register_type(val.dtype);
            let array = self.is_columns() && val.level == Level::Kept;
            let mut at = coords.to_vec();
            if array && kv > 1 {
                at[self.nest.kept - 1] = format!("({} + v)", coords[self.nest.kept - 1]);
            }
            let text = match val.inst {
                Inst::Reduce(op, _) => {
                    let v = if array { "v" } else { "0" };
                    format!("r{k}[{v}]{}", if op.is_arg() { ".i" } else { "" })
                }
                _ => value(sig, expr, k, &at, &|x| self.name(x), &mut |sig, n| scalar_load(sig, expr, n, &at), ""),
            };
            if array {
                let _ = writeln!(s, "{ty} v{k}[{kv}];\n#pragma unroll\nfor (int v = 0; v < {kv}; v++) v{k}[v] = {text};");
            } else {
                let _ = writeln!(s, "const {ty} v{k} = {text};");
            }
        }
        s
    }

    /// One loop over the reduced points: into the accumulators of `reds`, or writing what varies over them.
    fn pass(&self, sig: &mut Signature<'_>, kept_coords: &[String], reds: &[usize], storing: bool) -> String {
        let (nest, expr) = (&self.nest, &self.nest.expr);
        let full = |st: &&kiln_ir::Store| expr.value(st.value).level == Level::Full;
        let roots: Vec<ValueId> = if storing {
            expr.stores.iter().filter(full).map(|s| s.value).collect()
        } else {
            reds.iter().filter_map(|k| if let Inst::Reduce(_, x) = expr.values[*k].inst { Some(x) } else { None }).collect()
        };
        let needed = self.needed(roots.into_iter());
        let (ty, v, dim) = (sig.index_type(), self.v, self.vector_dim());
        let mut grouped = nest.dims.to_vec();
        grouped[dim] /= v;
        let total: usize = grouped[nest.kept..].iter().product();
        let stride = match self.mode {
            Mode::Rows(threads) => threads,
            Mode::Columns(_, across) => across,
        };
        let part = |rank: &str, parts: usize| {
            let each = total.div_ceil(parts);
            (format!("({ty}){rank} * {each} + lane"), format!("min(({ty})({rank} + 1) * {each}, ({ty}){total})"))
        };
        let (from, to) = match self.stage {
            Stage::Whole => ("lane".to_string(), format!("{total}")),
            Stage::Part(parts) => part("blockIdx.y", parts),
            Stage::Cluster(parts) => part("rank", parts),
        };
        let (split, names) = unflatten(sig, "g", &grouped[nest.kept..], "c");
        let mut coords = kept_coords.to_vec();
        coords.extend(names);
        if !self.is_columns() && v > 1 {
            coords[dim] = format!("({} * {v})", coords[dim]);
        }
        let mut at = coords.clone();
        if v > 1 {
            at[dim] = format!("({} + v)", coords[dim]);
        }
        let mut s = format!("if (live) {{\nconst {ty} end = {to};\n#pragma unroll 4\nfor ({ty} g = {from}; g < end; g += {stride}) {{\n{split}");
        let mut vectors = Vec::new();
        for (k, val) in expr.values.iter().enumerate() {
            if let Inst::Load(n) = val.inst
                && needed[k]
                && v > 1
                && nest.load_access(n, dim, v) == Access::Vector
                && !vectors.contains(&n)
            {
                vectors.push(n);
                let l = &expr.loads[n as usize];
                let (name, place) = (sig.read(l.buf), affine(sig, &l.index, &coords));
                let ty = memory_type(sig.dtype(l.buf));
                let _ = writeln!(s, "const vec<{ty}, {v}> l{n} = ldv<{ty}, {v}>({name} + {place});");
            }
        }
        let stores: Vec<(usize, &kiln_ir::Store)> = expr.stores.iter().enumerate().filter(|(_, st)| storing && full(st)).collect();
        let is_wide = |st: &kiln_ir::Store| v > 1 && nest.access(&st.index, dim, v) == Access::Vector;
        for (n, st) in stores.iter().filter(|(_, st)| is_wide(st)) {
            let _ = writeln!(s, "{} o{n}[{v}];", register_type(expr.value(st.value).dtype));
        }
        let _ = writeln!(s, "#pragma unroll\nfor (int v = 0; v < {v}; v++) {{");
        for (k, val) in expr.values.iter().enumerate().filter(|(k, _)| needed[*k]) {
            let mut load = |sig: &mut Signature<'_>, n: u32| {
                if vectors.contains(&n) { format!("up(l{n}.at(v))") } else { scalar_load(sig, expr, n, &at) }
            };
            let text = value(sig, expr, k, &at, &|x| self.name(x), &mut load, "");
            let _ = writeln!(s, "const {} v{k} = {text};", register_type(val.dtype));
        }
        for k in reds {
            if let Inst::Reduce(op, x) = expr.values[*k].inst {
                let (r, slot) = (self.reducer(*k), if self.is_columns() { "v" } else { "0" });
                let mut operand = self.name(x);
                if op.is_arg() {
                    operand = format!("at_index({operand}, (i64){})", affine(sig, &nest.position, &at));
                }
                let _ = writeln!(s, "r{k}[{slot}] = {r}::join(r{k}[{slot}], {operand});");
            }
        }
        for (n, st) in &stores {
            if is_wide(st) {
                let _ = writeln!(s, "o{n}[v] = {};", self.name(stored(sig, expr, st)));
            } else {
                let (name, place) = (sig.write(st.buf), affine(sig, &st.index, &at));
                let x = self.name(stored(sig, expr, st));
                let _ = writeln!(s, "{name}[{place}] = down<{}>({x});", memory_type(sig.dtype(st.buf)));
            }
        }
        s += "}\n";
        for (n, st) in stores.iter().filter(|(_, st)| is_wide(st)) {
            let (name, place) = (sig.write(st.buf), affine(sig, &st.index, &coords));
            let _ = writeln!(s, "stv<{}, {v}>({name} + {place}, o{n});", memory_type(sig.dtype(st.buf)));
        }
        s + "}\n}\n"
    }

    /// Joins the accumulators of the threads that share kept points; every one of them then has the result.
    fn join(&self, reds: &[usize]) -> String {
        let mut s = String::new();
        let kv = self.kept_vector();
        match self.mode {
            Mode::Rows(threads) => {
                for k in reds {
                    let _ = writeln!(s, "r{k}[0] = join_lanes<{}, {}>(r{k}[0]);", self.reducer(*k), threads.min(32));
                }
                if threads > 32 {
                    let (warps, all) = (threads / 32, threads.max(BLOCK) / 32);
                    for k in reds {
                        let _ = writeln!(
                            s,
                            "KILN_SHARED {}::t s{k}[{all}];\nif (threadIdx.x % 32 == 0) s{k}[threadIdx.x / 32] = r{k}[0];",
                            self.reducer(*k)
                        );
                    }
                    s += "__syncthreads();\n";
                    for k in reds {
                        let r = self.reducer(*k);
                        let _ = writeln!(s, "r{k}[0] = s{k}[threadIdx.x / {threads} * {warps}];");
                        let _ = writeln!(
                            s,
                            "#pragma unroll\nfor (int w = 1; w < {warps}; w++) r{k}[0] = {r}::join(r{k}[0], s{k}[threadIdx.x / {threads} * {warps} + w]);"
                        );
                    }
                }
            }
            Mode::Columns(_, 1) => {}
            Mode::Columns(wide, across) => {
                for k in reds {
                    let r = self.reducer(*k);
                    let _ = writeln!(s, "KILN_SHARED {r}::t s{k}[{across}][{kv}][{wide}];");
                    let _ = writeln!(s, "#pragma unroll\nfor (int v = 0; v < {kv}; v++) s{k}[lane][v][side] = r{k}[v];");
                }
                s += "__syncthreads();\n";
                for k in reds {
                    let r = self.reducer(*k);
                    let _ = writeln!(s, "#pragma unroll\nfor (int v = 0; v < {kv}; v++) {{ r{k}[v] = s{k}[0][v][side];");
                    let _ = writeln!(s, "for (int w = 1; w < {across}; w++) r{k}[v] = {r}::join(r{k}[v], s{k}[w][v][side]); }}");
                }
            }
        }
        s
    }

    /// Joins what the blocks of a cluster have, in the last of them.
    fn join_cluster(&self, reds: &[usize]) -> String {
        let Stage::Cluster(parts) = self.stage else { return String::new() };
        let kv = self.kept_vector();
        let (side, wide) = match self.mode {
            Mode::Rows(threads) => (format!("threadIdx.x / {threads}"), self.block() / threads),
            Mode::Columns(wide, _) => ("side".to_string(), wide),
        };
        let mut s = String::new();
        for k in reds {
            let r = self.reducer(*k);
            let _ = writeln!(s, "KILN_CLUSTER({r}::t, c{k}, {parts}, rank, {});", kv * wide);
            let _ = writeln!(s, "if (lane == 0) {{\n#pragma unroll\nfor (int v = 0; v < {kv}; v++) c{k}[v * {wide} + {side}] = r{k}[v];\n}}");
        }
        let _ = writeln!(s, "cluster_sync();\nif (rank == {} && lane == 0) {{", parts - 1);
        for k in reds {
            let r = self.reducer(*k);
            let read = |rank: &str| format!("cluster_read(c{k}, {rank}, v * {wide} + {side})");
            let _ = writeln!(s, "#pragma unroll\nfor (int v = 0; v < {kv}; v++) {{\nr{k}[v] = {};", read("0"));
            let _ = writeln!(s, "#pragma unroll\nfor (int w = 1; w < {parts}; w++) r{k}[v] = {r}::join(r{k}[v], {});\n}}", read("w"));
        }
        s + "}\n"
    }

    fn kept_stores(&self, sig: &mut Signature<'_>, coords: &[String]) -> String {
        let (expr, kv) = (&self.nest.expr, self.kept_vector());
        let mut at = coords.to_vec();
        // What varies over kept points only does not depend on the reduced coordinates.
        at.resize(self.nest.dims.len(), "0".into());
        if kv > 1 {
            at[self.nest.kept - 1] = format!("({} + v)", coords[self.nest.kept - 1]);
        }
        let last = if let Stage::Cluster(parts) = self.stage { format!(" && rank == {}", parts - 1) } else { String::new() };
        let mut s = format!("if (live && lane == 0{last}) {{\n#pragma unroll\nfor (int v = 0; v < {kv}; v++) {{\n");
        for st in expr.stores.iter().filter(|st| expr.value(st.value).level != Level::Full) {
            let (name, place) = (sig.write(st.buf), affine(sig, &st.index, &at));
            let _ = writeln!(s, "{name}[{place}] = down<{}>({});", memory_type(sig.dtype(st.buf)), self.name(st.value));
        }
        s + "}\n}\n"
    }

    /// Reduces one part of the reduced points and stores the accumulators.
    fn part(&self, sig: &mut Signature<'_>, coords: &[String], parts: usize) -> String {
        let kv = self.kept_vector();
        let reds = self.reductions(1);
        let mut s = String::new();
        for k in &reds {
            let r = self.reducer(*k);
            let _ = writeln!(s, "{r}::t r{k}[{kv}];\n#pragma unroll\nfor (int v = 0; v < {kv}; v++) r{k}[v] = {r}::init();");
        }
        s += &self.pass(sig, coords, &reds, false);
        s += &self.join(&reds);
        s += "if (live && lane == 0) {\n";
        for k in &reds {
            let scratch = sig.scratch(self.scratch_start(parts, *k));
            let kept = self.nest.kept_points();
            let _ = writeln!(
                s,
                "#pragma unroll\nfor (int v = 0; v < {kv}; v++) (({}::t*){scratch})[(u64)blockIdx.y * {kept} + (u64)k * {kv} + v] = r{k}[v];",
                self.reducer(*k)
            );
        }
        s + "}\n"
    }

    /// Joins the parts of a split reduction and computes what follows.
    fn finish(&self, sig: &mut Signature<'_>, parts: usize) -> String {
        let kept = self.nest.kept_points();
        let whole = Loops { nest: self.nest.clone(), mode: Mode::Columns(32, BLOCK / 32), stage: Stage::Whole, v: 1, phases: self.phases.clone() };
        let ty = sig.index_type();
        let mut s = format!("const int lane = threadIdx.x / 32, side = threadIdx.x % 32;\nconst {ty} column = ({ty})bid * 32 + side;\n");
        let _ = writeln!(s, "const bool live = column < {kept}; const {ty} k = live ? column : 0;");
        let (split, coords) = unflatten(sig, "k", &self.nest.dims[..self.nest.kept], "k");
        s += &split;
        s += &whole.kept_values(sig, 0, &coords);
        let reds = self.reductions(1);
        for k in &reds {
            let (r, scratch) = (self.reducer(*k), sig.scratch(self.scratch_start(parts, *k)));
            let _ = writeln!(s, "{r}::t r{k}[1]; r{k}[0] = {r}::init();");
            let _ = writeln!(
                s,
                "#pragma unroll 4\nfor (int n = lane; n < {parts}; n += {}) r{k}[0] = {r}::join(r{k}[0], (({r}::t*){scratch})[(u64)n * {kept} + k]);",
                BLOCK / 32
            );
        }
        s += &whole.join(&reds);
        s += &whole.kept_values(sig, 1, &coords);
        s + &whole.kept_stores(sig, &coords)
    }
}
