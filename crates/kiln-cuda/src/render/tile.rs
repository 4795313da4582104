//! Transposes: kernels without reductions that read along one dimension and write along another go through tiles in shared memory.
use std::fmt::Write;

use kiln_ir::{DType, Inst, Program};

use super::fused::step;
use super::nest::Nest;
use super::signature::Signature;
use super::text::{affine, inside, is_wide, memory_type, register_type, scalar_load, stored, unflatten, value};
use crate::steps::Steps;

/// Sides of a tile.
const SIDE: usize = 64;
/// Threads of a block.
const BLOCK: usize = 256;

/// The steps of a nest that transposes, or `None` for others.
pub fn render(nest: &Nest, program: &Program) -> Option<Steps> {
    let rank = nest.dims.len();
    let points = nest.kept_points();
    if rank < 2 || points < 1 << 14 || nest.expr.values.len() > 200 {
        return None;
    }
    // Written along `a`, read along `b`.
    let a = (0..rank).filter(|d| nest.expr.stores.iter().any(|s| s.index.coeffs[*d] == 1)).max_by_key(|d| nest.dims[*d])?;
    if nest.dims[a] < 16 || !nest.expr.stores.iter().all(|s| s.index.coeffs[a] == 1) {
        return None;
    }
    let turned = |n: usize, b: usize| {
        let l = &nest.expr.loads[n].index;
        b != a && l.coeffs[b] == 1 && l.coeffs[a].abs() > 1 && nest.dims[b] >= 16
    };
    let b = (0..rank).max_by_key(|b| (0..nest.expr.loads.len()).filter(|n| turned(*n, *b)).count())?;
    let loads: Vec<usize> = (0..nest.expr.loads.len()).filter(|n| turned(*n, b)).collect();
    let bytes: usize = loads.iter().map(|n| program.buf(nest.expr.loads[*n].buf).dtype.size() * SIDE * (SIDE + 2)).sum();
    if loads.is_empty() || bytes > 48 << 10 {
        return None;
    }
    let mut sig = Signature::new(program);
    sig.wide = is_wide(program, &nest.expr, points);
    let outer: Vec<usize> = (0..rank).map(|d| if d == a || d == b { 1 } else { nest.dims[d] }).collect();
    let (tiles_a, tiles_b) = (nest.dims[a].div_ceil(SIDE), nest.dims[b].div_ceil(SIDE));
    let blocks = outer.iter().product::<usize>() * tiles_a * tiles_b;
    let s = body(&mut sig, nest, a, b, &loads, &outer, tiles_a, tiles_b);
    Some(Steps::one(step(sig.finish("tile", BLOCK as u32, &s), [blocks as u32, 1, 1], BLOCK as u32)))
}

/// The vector of a load along `b`: up to 16 bytes.
fn load_vector(nest: &Nest, b: usize, n: usize, dtype: DType) -> usize {
    let mut v = 16 / dtype.size().max(2);
    while v > 1 && (!nest.dims[b].is_multiple_of(v) || nest.load_access(n as u32, b, v) != super::nest::Access::Vector) {
        v /= 2;
    }
    v
}

#[allow(clippy::too_many_arguments)]
fn body(sig: &mut Signature<'_>, nest: &Nest, a: usize, b: usize, loads: &[usize], outer: &[usize], tiles_a: usize, tiles_b: usize) -> String {
    let (expr, ty) = (&nest.expr, sig.index_type());
    let mut s = format!("const {ty} tile = bid;\nconst int ta = (tile % {tiles_a}) * {SIDE};\n");
    let _ = writeln!(s, "const int tb = (tile / {tiles_a} % {tiles_b}) * {SIDE};\nconst {ty} o = tile / {};", tiles_a * tiles_b);
    let (split, outer_coords) = unflatten(sig, "o", outer, "c");
    s += &split;
    for n in loads {
        let l = &expr.loads[*n];
        let dtype = sig.dtype(l.buf);
        let v = load_vector(nest, b, *n, dtype);
        let mem = memory_type(dtype);
        let mut coords = outer_coords.clone();
        (coords[a], coords[b]) = ("(ta + ia)".into(), "(tb + ib)".into());
        // Rows of the tile run along the dimension that is read; one element more keeps columns apart: eight rows of half floats are then four banks apart.
        let _ = writeln!(s, "KILN_SHARED {mem} t{n}[{SIDE}][{}];", SIDE + 1);
        let _ = writeln!(s, "#pragma unroll\nfor (int q = threadIdx.x; q < {}; q += {BLOCK}) {{", SIDE * SIDE / v);
        let _ = writeln!(s, "const int ib = q % {} * {v}, ia = q / {};", SIDE / v, SIDE / v);
        let _ = writeln!(s, "if (ta + ia < {} && tb + ib < {}) {{", nest.dims[a], nest.dims[b]);
        let (name, at) = (sig.read(l.buf), affine(sig, &l.index, &coords));
        if v > 1 {
            let _ = writeln!(
                s,
                "const vec<{mem}, {v}> x = ldv<{mem}, {v}>({name} + {at});\n#pragma unroll\nfor (int v = 0; v < {v}; v++) t{n}[ia][ib + v] = x.at(v);"
            );
        } else {
            let guard = inside(sig, &l.bounds, &coords);
            let _ = writeln!(s, "if ({guard}) t{n}[ia][ib] = {name}[{at}];");
        }
        s += "}\n}\n";
    }
    s += "__syncthreads();\n";
    let narrow = expr.stores.iter().map(|st| sig.dtype(st.buf).size()).min().unwrap_or(4);
    let mut v = (16 / narrow).min(8);
    while v > 1 && (!nest.dims[a].is_multiple_of(v) || !expr.stores.iter().any(|st| nest.access(&st.index, a, v) == super::nest::Access::Vector)) {
        v /= 2;
    }
    let mut coords = outer_coords;
    (coords[a], coords[b]) = ("(ta + ia)".into(), "(tb + ib)".into());
    let mut at = coords.clone();
    at[a] = "(ta + ia + v)".into();
    let wide = |st: &kiln_ir::Store| v > 1 && nest.access(&st.index, a, v) == super::nest::Access::Vector;
    let _ = writeln!(s, "#pragma unroll\nfor (int q = threadIdx.x; q < {}; q += {BLOCK}) {{", SIDE * SIDE / v);
    let _ = writeln!(s, "const int ia = q % {} * {v}, ib = q / {};", SIDE / v, SIDE / v);
    let _ = writeln!(s, "if (ta + ia < {} && tb + ib < {}) {{", nest.dims[a], nest.dims[b]);
    for (n, st) in expr.stores.iter().enumerate().filter(|(_, st)| wide(st)) {
        let _ = writeln!(s, "{} o{n}[{v}];", register_type(expr.value(st.value).dtype));
    }
    let _ = writeln!(s, "#pragma unroll\nfor (int v = 0; v < {v}; v++) {{");
    for (k, val) in expr.values.iter().enumerate() {
        let mut load = |sig: &mut Signature<'_>, n: u32| {
            if !loads.contains(&(n as usize)) {
                return scalar_load(sig, expr, n, &at);
            }
            let l = &expr.loads[n as usize];
            let element = format!("up(t{n}[ia + v][ib])");
            if l.bounds.is_empty() {
                return element;
            }
            let guard = inside(sig, &l.bounds, &at);
            format!("({guard} ? {element} : ({})0)", register_type(sig.dtype(l.buf)))
        };
        let text = value(sig, expr, k, &at, &|x| format!("v{}", x.0), &mut load, "");
        let _ = writeln!(s, "const {} v{k} = {text};", register_type(val.dtype));
        debug_assert!(!matches!(val.inst, Inst::Reduce(..)));
    }
    for (n, st) in expr.stores.iter().enumerate() {
        if wide(st) {
            let _ = writeln!(s, "o{n}[v] = v{};", stored(sig, expr, st).0);
        } else {
            let (name, place) = (sig.write(st.buf), affine(sig, &st.index, &at));
            let _ = writeln!(s, "{name}[{place}] = down<{}>(v{});", memory_type(sig.dtype(st.buf)), stored(sig, expr, st).0);
        }
    }
    s += "}\n";
    for (n, st) in expr.stores.iter().enumerate().filter(|(_, st)| wide(st)) {
        let (name, place) = (sig.write(st.buf), affine(sig, &st.index, &coords));
        let _ = writeln!(s, "stv<{}, {v}>({name} + {place}, o{n});", memory_type(sig.dtype(st.buf)));
    }
    s + "}\n}\n"
}
