//! Kernels without reductions: every thread computes vectors of neighbouring points.
use kiln_ir::{Expr, Inst, Program};

use super::fused::step;
use super::nest::{Access, Nest};
use super::signature::Signature;
use super::text::{affine, is_wide, memory_type, register_type, scalar_load, stored, unflatten, value};
use crate::steps::{Chip, Steps};

/// Threads of a block.
pub const BLOCK: usize = 256;

/// A kernel without reductions: its nest in the order that is walked, and what a thread does.
pub struct Elementwise {
    nest: Nest,
    /// Points of a vector.
    v: usize,
    /// Vectors of a thread.
    repeat: usize,
}

impl Elementwise {
    /// How a nest without reduced dimensions is walked.
    pub fn plan(nest: Nest, program: &Program, chip: &Chip) -> Self {
        let rank = nest.dims.len();
        let nest = match (0..rank).max_by_key(|d| (nest.weight(program, *d), *d)) {
            Some(d) => nest.with_last(d),
            None => Nest { kept: 1, ..nest.with_unit() },
        };
        let last = nest.dims.len() - 1;
        let points = nest.kept_points();
        let most = if nest.expr.values.len() > 256 { 2 } else { 8 };
        let ragged = nest.dims.len() == 1 && points >= 4096;
        let v = if ragged { ragged_vector(&nest, program, most) } else { nest.vector(program, last, most) };
        let light = nest.expr.loads.len() <= 2 && nest.expr.values.len() <= 24;
        let repeat = if light && points.div_ceil(v) >= BLOCK * 2 * chip.multiprocessors as usize * 8 { 2 } else { 1 };
        Elementwise { nest, v, repeat }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.nest.kept_points().div_ceil(self.v).div_ceil(BLOCK * self.repeat)
    }

    /// Whether indices need 64 bits.
    pub fn is_wide(&self, program: &Program) -> bool {
        is_wide(program, &self.nest.expr, self.nest.kept_points())
    }

    /// The text of a block.
    pub fn body(&self, sig: &mut Signature<'_>) -> String {
        body(sig, &self.nest, self.v, self.repeat, self.nest.kept_points())
    }
}

/// The steps of a nest without reduced dimensions.
pub fn render(nest: Nest, program: &Program, chip: &Chip) -> Steps {
    let own = Elementwise::plan(nest, program, chip);
    let mut sig = Signature::new(program);
    sig.wide = own.is_wide(program);
    let body = own.body(&mut sig);
    Steps::one(step(sig.finish("elementwise", BLOCK as u32, &body), [own.blocks() as u32, 1, 1], BLOCK as u32))
}

/// The vector of a long dense run that it need not divide: the rest is done one by one.
fn ragged_vector(nest: &Nest, program: &Program, most: usize) -> usize {
    let divisible = Nest { dims: [nest.dims[0].next_multiple_of(16)].into_iter().collect(), ..nest.clone() };
    divisible.vector(program, 0, most)
}

fn body(sig: &mut Signature<'_>, nest: &Nest, v: usize, repeat: usize, points: usize) -> String {
    let ty = sig.index_type();
    let last = nest.dims.len() - 1;
    let groups = points.div_ceil(v);
    let mut grouped = nest.dims.clone();
    grouped[last] = nest.dims[last].div_ceil(v);
    let vectors: Vec<u32> = (0..nest.expr.loads.len() as u32).filter(|n| v > 1 && nest.load_access(*n, last, v) == Access::Vector).collect();
    let mut s = format!("const {ty} first = ({ty})bid * {} + threadIdx.x;\n", BLOCK * repeat);
    for n in &vectors {
        s += &format!("vec<{}, {v}> l{n}[{repeat}];\n", memory_type(sig.dtype(nest.expr.loads[*n as usize].buf)));
    }
    let whole = points.is_multiple_of(v);
    let fits = |g: &str| if whole { format!("{g} < {groups}") } else { format!("{g} * {v} + {v} <= {points}") };
    let (split, mut coords) = unflatten(sig, "g", &grouped, "c");
    if v > 1 {
        coords[last] = format!("({} * {v})", coords[last]);
    }
    let head = format!("#pragma unroll\nfor (int u = 0; u < {repeat}; u++) {{\nconst {ty} g = first + u * {BLOCK};\nif ({}) {{\n{split}", fits("g"));
    if !vectors.is_empty() {
        s += &head;
        for n in &vectors {
            let l = &nest.expr.loads[*n as usize];
            let (name, at) = (sig.read(l.buf), affine(sig, &l.index, &coords));
            s += &format!("l{n}[u] = ldv<{}, {v}>({name} + {at});\n", memory_type(sig.dtype(l.buf)));
        }
        s += "}\n}\n";
    }
    s += &head;
    s += &points_of(sig, nest, v, &coords, &|n| vectors.contains(&n).then(|| format!("up(l{n}[u].at(v))")));
    if whole {
        return s + "}\n}\n";
    }
    // The last few points of a run that the vector does not divide.
    s += &format!("}} else for ({ty} c = g * {v}; c < {points}; c++) {{\n");
    s += &points_of(sig, nest, 1, &["c".into()], &|_| None);
    s + "}\n}\n"
}

/// The values and stores of `v` neighbouring points from `coords` on. `loaded` names the register of a load that was read as a vector.
pub(super) fn points_of(sig: &mut Signature<'_>, nest: &Nest, v: usize, coords: &[String], loaded: &dyn Fn(u32) -> Option<String>) -> String {
    let expr = &nest.expr;
    let last = nest.dims.len() - 1;
    let wide: Vec<bool> = expr.stores.iter().map(|st| v > 1 && nest.access(&st.index, last, v) == Access::Vector).collect();
    let mut at = coords.to_vec();
    if v > 1 {
        at[last] = format!("({} + v)", coords[last]);
    }
    let mut s = String::new();
    for (n, st) in expr.stores.iter().enumerate().filter(|(n, _)| wide[*n]) {
        s += &format!("{} o{n}[{v}];\n", register_type(expr.value(st.value).dtype));
    }
    s += &same_loads(sig, nest, v, coords);
    if v > 1 {
        s += &format!("#pragma unroll\nfor (int v = 0; v < {v}; v++) {{\n");
    }
    for (k, val) in expr.values.iter().enumerate() {
        let text = value(
            sig,
            expr,
            k,
            &at,
            &|x| format!("v{}", x.0),
            &mut |sig, n| match loaded(n) {
                Some(register) => register,
                None if is_same(nest, n, v) => format!("b{n}"),
                None => scalar_load(sig, expr, n, &at),
            },
            "",
        );
        s += &format!("const {} v{k} = {text};\n", register_type(val.dtype));
    }
    for (n, st) in expr.stores.iter().enumerate() {
        let name = sig.write(st.buf);
        if wide[n] {
            s += &format!("o{n}[v] = v{};\n", stored(sig, expr, st).0);
        } else {
            let at = affine(sig, &st.index, &at);
            s += &format!("{name}[{at}] = down<{}>(v{});\n", memory_type(sig.dtype(st.buf)), stored(sig, expr, st).0);
        }
    }
    if v > 1 {
        s += "}\n";
    }
    for (n, st) in expr.stores.iter().enumerate().filter(|(n, _)| wide[*n]) {
        let (name, at) = (sig.write(st.buf), affine(sig, &st.index, coords));
        s += &format!("stv<{}, {v}>({name} + {at}, o{n});\n", memory_type(sig.dtype(st.buf)));
    }
    s
}

/// Whether a load reads one element for all points of a vector.
fn is_same(nest: &Nest, n: u32, v: usize) -> bool {
    v > 1 && nest.load_access(n, nest.dims.len() - 1, v) == Access::Same
}

/// Loads that are the same for all points of a vector.
fn same_loads(sig: &mut Signature<'_>, nest: &Nest, v: usize, coords: &[String]) -> String {
    let expr: &Expr = &nest.expr;
    let mut s = String::new();
    let mut done = Vec::new();
    for val in &expr.values {
        if let Inst::Load(n) = val.inst
            && is_same(nest, n, v)
            && !done.contains(&n)
        {
            done.push(n);
            let text = scalar_load(sig, expr, n, coords);
            s += &format!("const {} b{n} = {text};\n", register_type(val.dtype));
        }
    }
    s
}
