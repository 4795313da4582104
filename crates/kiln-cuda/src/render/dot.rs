//! Matrix products of our own: tiles in shared memory for any dtype and stride, operands computed while they are read, epilogue on the accumulators.
//!
//! cuBLASLt is faster where it applies; this kernel serves integers, odd strides, small sizes and machines without that library.
use std::fmt::Write;

use kiln_ir::kernel::{DotKernel, DotOperand};
use kiln_ir::{DType, Program};

use super::fused::step;
use super::signature::Signature;
use super::text::{affine, is_wide, point, register_type, unflatten, values};
use crate::steps::Steps;

/// Summed elements of a tile.
const DEPTH: usize = 16;
/// Threads of a block, 16 by 16.
const BLOCK: usize = 256;

/// The step of a product.
pub fn render(k: &DotKernel, program: &Program) -> Steps {
    let batch: usize = k.batch.iter().product();
    if batch * k.m * k.n == 0 {
        return Steps::default();
    }
    // Points of a thread along rows and columns.
    let along = |n: usize| if n <= 16 { 1 } else { 4 };
    let (rm, rn) = (along(k.m), along(k.n));
    let (tm, tn) = (rm * 16, rn * 16);
    let mut sig = Signature::new(program);
    let widest = [k.m * k.n, k.m * k.k, k.k * k.n].into_iter().max().unwrap_or(0) * batch;
    let prologues = [&k.lhs, &k.rhs].into_iter().filter_map(|o| o.prologue.as_ref());
    let plain = [&k.lhs, &k.rhs].into_iter().filter(|o| o.prologue.is_none()).any(|o| program.buf(o.buf).len >= 1 << 30);
    sig.wide = plain || is_wide(program, &k.epilogue, widest) || prologues.into_iter().any(|e| is_wide(program, e, widest));
    let body = body(&mut sig, k, rm, rn);
    let grid = [k.n.div_ceil(tn) as u32, k.m.div_ceil(tm).min(65_535) as u32, batch.min(65_535) as u32];
    Steps::one(step(sig.finish("dot", BLOCK as u32, &body), grid, BLOCK as u32))
}

/// The statements that read one element of an operand into `x`.
fn element(sig: &mut Signature<'_>, o: &DotOperand, dtype: DType, coords: &[String]) -> String {
    match &o.prologue {
        Some(e) => {
            let last = e.values.len().saturating_sub(1);
            let text = values(sig, e, coords, "");
            // The operand is a value of its dtype: rounded as it would be in memory.
            let value = match dtype {
                DType::F16 => format!("round_f16(v{last})"),
                DType::BF16 => format!("round_bf16(v{last})"),
                _ => format!("v{last}"),
            };
            format!("{text}x = {value};\n")
        }
        None => {
            let (name, at) = (sig.read(o.buf), affine(sig, &o.index, coords));
            format!("x = up({name}[{at}]);\n")
        }
    }
}

/// Whether neighbouring threads should walk the summed dimension of an operand.
fn depth_first(o: &DotOperand, batch: usize, is_left: bool) -> bool {
    o.prologue.is_none() && o.index.coeffs.get(batch + is_left as usize) == Some(&1)
}

fn body(sig: &mut Signature<'_>, k: &DotKernel, rm: usize, rn: usize) -> String {
    let (ty, reg) = (sig.index_type(), register_type(k.dtype));
    let rank = k.batch.len();
    let (tm, tn) = (rm * 16, rn * 16);
    let batches: usize = k.batch.iter().product();
    let float = k.dtype.is_float();
    let reg = if k.dtype == DType::Bool { "u8" } else { reg };
    let mut s = format!("KILN_SHARED {reg} a[{DEPTH}][{}], b[{DEPTH}][{}];\n", tm + 1, tn + 1);
    s += "const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;\n";
    let _ = writeln!(
        s,
        "for ({ty} z = blockIdx.z; z < {batches}; z += gridDim.z) for ({ty} y = blockIdx.y; y < {}; y += gridDim.y) {{",
        k.m.div_ceil(tm)
    );
    let _ = writeln!(s, "const {ty} m0 = y * {tm}, n0 = ({ty})blockIdx.x * {tn};");
    let (split, batch) = unflatten(sig, "z", &k.batch, "z");
    s += &split;
    let _ = writeln!(
        s,
        "{reg} acc[{rm}][{rn}];\n#pragma unroll\nfor (int i = 0; i < {rm}; i++)\n#pragma unroll\nfor (int j = 0; j < {rn}; j++) acc[i][j] = ({reg})0;"
    );
    let _ = writeln!(s, "for ({ty} k0 = 0; k0 < {}; k0 += {DEPTH}) {{", k.k);
    for (name, o, side, size, limit, left) in [("a", &k.lhs, tm, "m0", k.m, true), ("b", &k.rhs, tn, "n0", k.n, false)] {
        let _ = writeln!(s, "#pragma unroll\nfor (int q = threadIdx.x; q < {}; q += {BLOCK}) {{", DEPTH * side);
        let _ = if depth_first(o, rank, left) {
            writeln!(s, "const int d = q % {DEPTH}, w = q / {DEPTH};")
        } else {
            writeln!(s, "const int w = q % {side}, d = q / {side};")
        };
        let _ = writeln!(s, "const {ty} kk = k0 + d, ww = {size} + w;\n{reg} x = ({reg})0;\nif (kk < {} && ww < {limit}) {{", k.k);
        let mut coords = batch.clone();
        coords.extend(if left { ["ww".to_string(), "kk".into()] } else { ["kk".to_string(), "ww".into()] });
        s += &element(sig, o, k.dtype, &coords);
        let _ = writeln!(s, "}}\n{name}[d][w] = x;\n}}");
    }
    s += "__syncthreads();\n#pragma unroll\n";
    let _ = writeln!(
        s,
        "for (int d = 0; d < {DEPTH}; d++)\n#pragma unroll\nfor (int i = 0; i < {rm}; i++)\n#pragma unroll\nfor (int j = 0; j < {rn}; j++)"
    );
    let _ = if float {
        writeln!(s, "acc[i][j] += a[d][ty + i * 16] * b[d][tx + j * 16];")
    } else {
        writeln!(s, "acc[i][j] = i_add(acc[i][j], i_mul(a[d][ty + i * 16], b[d][tx + j * 16]));")
    };
    s += "__syncthreads();\n}\n";
    let _ = writeln!(s, "#pragma unroll\nfor (int i = 0; i < {rm}; i++)\n#pragma unroll\nfor (int j = 0; j < {rn}; j++) {{");
    let _ = writeln!(s, "const {ty} m = m0 + ty + i * 16, n = n0 + tx + j * 16;\nif (m < {} && n < {}) {{", k.m, k.n);
    let mut coords = batch;
    coords.extend(["m".into(), "n".into()]);
    s += &point(sig, &k.epilogue, &coords, "acc[i][j]");
    s + "}\n}\n}\n"
}
