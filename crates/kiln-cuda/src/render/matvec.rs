//! A vector times a matrix whose rows are dense: every weight is read once, and the reads begin before the vector is there.
//!
//! A block has the columns of 128 bytes, or of 256 where they are few; its threads and those of its cluster share the rows out. The vector lies in shared memory: copied there, or computed there by
//! the kernel that would have stored it.
use std::fmt::Write;

use kiln_ir::kernel::{DotKernel, Fused};
use kiln_ir::{BufId, DType, Place, Program};

use super::elementwise::points_of;
use super::fused::{PIECE_BLOCK, Piece, step};
use super::nest::{Access, Nest};
use super::reduction::CLUSTER;
use super::signature::Signature;
use super::text::{affine, is_wide, memory_type, point, rounded};
use crate::steps::{Chip, Steps};

/// Rows of a thread that are on their way at once.
const BATCH: usize = 8;
/// Most elements of a vector that every block computes anew.
const MOST_ROW: usize = 8192;

/// Whether a dot is such a product.
pub fn fits(k: &DotKernel, chip: &Chip) -> bool {
    let v = 16 / k.dtype.size().max(1);
    let rank = k.batch.len();
    chip.sm >= 90
        && matches!(k.dtype, DType::F32 | DType::F16 | DType::BF16)
        && k.m == 1
        && k.batch.iter().all(|n| *n == 1)
        && k.k >= 64
        && k.k <= 1 << 16
        && k.n.is_multiple_of(v)
        && k.k * k.n < 1 << 30
        && k.lhs.prologue.is_none()
        && k.rhs.prologue.is_none()
        && k.rhs.index.dynamic.is_empty()
        && k.rhs.index.coeffs[rank + 1] == 1
        && k.rhs.index.coeffs[rank] % v as isize == 0
        && k.rhs.index.base % v as isize == 0
}

/// The vector's buffer if the product reads all of it, in order, and nothing else of it: its kernel can become the product's prologue.
pub fn whole_vector(k: &DotKernel, program: &Program) -> Option<BufId> {
    let (index, rank) = (&k.lhs.index, k.batch.len());
    let dense = index.base == 0 && index.dynamic.is_empty() && index.coeffs[rank + 1] == 1 && program.buf(k.lhs.buf).len == k.k;
    let alone = k.rhs.buf != k.lhs.buf && k.epilogue.loads.iter().all(|l| l.buf != k.lhs.buf);
    (dense && alone && program.buf(k.lhs.buf).dtype == k.dtype).then_some(k.lhs.buf)
}

/// A kernel that computes the vector.
pub enum Prologue {
    /// Each element from its own operands: a block computes those it needs.
    Points(Nest),
    /// A row with sums over it: every block computes all of it.
    Row(Piece),
}

impl Prologue {
    /// The kernel as a prologue, if every block can afford it. It has one store.
    pub fn of(f: &Fused, program: &Program) -> Option<Self> {
        let [store] = &f.expr.stores[..] else { return None };
        let points: usize = f.dims.iter().product();
        let cheap = f.expr.values.len() <= 40 && f.expr.loads.len() <= 8 && points == program.buf(store.buf).len;
        let random = f.expr.values.iter().any(|v| matches!(v.inst, kiln_ir::Inst::Random(..)));
        if !cheap || random || is_wide(program, &f.expr, points) {
            return None;
        }
        let nest = Nest::new(f);
        if !nest.reduces() {
            let flat = Nest { kept: nest.dims.len(), ..nest }.merged();
            let dense = flat.dims.len() == 1 && flat.expr.stores[0].index.coeffs[0] == 1 && flat.expr.stores[0].index.base == 0;
            return dense.then_some(Prologue::Points(flat));
        }
        (points <= MOST_ROW).then(|| Piece::single_row(f, program)).flatten().map(Prologue::Row)
    }
}

/// Whether no kernel of the program writes a buffer, so that it can be read before the kernels in front have finished.
fn is_constant(program: &Program, buf: BufId) -> bool {
    matches!(program.buf(buf).place, Place::Input(_)) && {
        let mut written = false;
        program.kernels().for_each(|k| k.accesses(|_| (), |b| written |= super::signature::overlap(program, b, buf)));
        !written
    }
}

/// The step of a product that [`fits`].
pub fn render(k: &DotKernel, prologue: Option<&Prologue>, program: &Program, chip: &Chip) -> Steps {
    let (rank, ty) = (k.batch.len(), memory_type(k.dtype));
    let v = 16 / k.dtype.size();
    // Measured on an H200: where blocks of 128 bytes a row fill the machine twice, clusters cost more than they bring; else wider rows and a block a multiprocessor.
    let machine = chip.multiprocessors as usize;
    let wide = if (k.n / v).div_ceil(8) >= machine * 15 / 8 { 8 } else { 16 };
    // Rows that a block reads at a time.
    let across = PIECE_BLOCK / wide;
    let tiles = (k.n / v).div_ceil(wide);
    let most = (k.k / (across * 4)).next_power_of_two();
    let parts = [1, 2, 4, 8].into_iter().find(|p| tiles * p >= machine * 9 / 10).unwrap_or(CLUSTER).min(most).max(1);
    let share = k.k.div_ceil(parts).next_multiple_of(8);
    let rows = share.div_ceil(across);
    let batch = if rows <= BATCH { rows } else { BATCH };
    let mut sig = Signature::new(program);
    (sig.cluster, sig.resident) = (parts, if rows <= BATCH { 3 } else { 2 });
    let (whole, exact) = (k.k == share * parts, share == rows * across && rows.is_multiple_of(batch));
    let (is_early, weights) = (is_constant(program, k.rhs.buf), sig.read(k.rhs.buf));

    // Where this thread is, and the weights of its first rows.
    let columns = v * wide;
    let mut s = format!("const unsigned rank = blockIdx.x % {parts}, tile = blockIdx.x / {parts};\n");
    let _ = writeln!(s, "const int side = threadIdx.x % {wide}, lane = threadIdx.x / {wide}, column = (int)tile * {columns} + side * {v};");
    let end = if whole { format!("from + {share}") } else { format!("min(from + {share}, {})", k.k) };
    let _ = writeln!(s, "const int from = (int)rank * {share}, end = {end};\nconst bool live = column < {};", k.n);
    let mut coords = vec!["0".to_string(); rank];
    coords.extend(["row".into(), "column".into()]);
    let at = affine(&mut sig, &k.rhs.index, &coords);
    let guard = if whole && exact { "live" } else { "live && row < end" };
    let fetch = |array: &str, first: &str| {
        format!(
            "#pragma unroll\nfor (int u = 0; u < {batch}; u++) {{\nconst int row = {first} + u * {across};\nif ({guard}) {array}[u] = ldv_once<{ty}, {v}>({weights} + {at});\n}}\n"
        )
    };
    s += &format!("vec<{ty}, {v}> w[{batch}];\n");
    s += &fetch("w", "from + lane");
    let mut body = String::new();
    if is_early {
        sig.early = s;
    } else {
        body = s;
    }

    // The vector: `x` is indexed by rows of the matrix.
    match prologue {
        None => {
            let _ = writeln!(body, "KILN_SHARED __align__(16) {ty} held[{share}];\n{ty}* const x = held - from;");
            let mut coords = vec!["0".to_string(); rank];
            coords.extend(["0".into(), "i".into()]);
            let (name, at) = (sig.read(k.lhs.buf), affine(&mut sig, &k.lhs.index, &coords));
            let _ = writeln!(body, "for (int i = from + threadIdx.x; i < end; i += {PIECE_BLOCK}) x[i] = {name}[{at}];");
        }
        Some(Prologue::Points(nest)) => {
            let _ = writeln!(body, "KILN_SHARED __align__(16) {ty} held[{share}];\n{ty}* const x = held - from;");
            sig.local(k.lhs.buf, "x");
            let mut pv = nest.vector(program, 0, 8);
            while pv > 1 && (!k.k.is_multiple_of(pv) || !share.is_multiple_of(pv)) {
                pv /= 2;
            }
            let _ = writeln!(body, "for (int g = threadIdx.x; g < (end - from) / {pv}; g += {PIECE_BLOCK}) {{\nconst int c = from + g * {pv};");
            let vectors: Vec<u32> = (0..nest.expr.loads.len() as u32).filter(|n| pv > 1 && nest.load_access(*n, 0, pv) == Access::Vector).collect();
            for n in &vectors {
                let l = &nest.expr.loads[*n as usize];
                let (name, at, mem) = (sig.read(l.buf), affine(&mut sig, &l.index, &["c".into()]), memory_type(sig.dtype(l.buf)));
                let _ = writeln!(body, "const vec<{mem}, {pv}> l{n} = ldv<{mem}, {pv}>({name} + {at});");
            }
            body += &points_of(&mut sig, nest, pv, &["c".into()], &|n| vectors.contains(&n).then(|| format!("up(l{n}.at(v))")));
            body += "}\n";
        }
        Some(Prologue::Row(piece)) => {
            let _ = writeln!(body, "KILN_SHARED __align__(16) {ty} held[{}];\n{ty}* const x = held;", k.k);
            sig.local(k.lhs.buf, "x");
            let _ = writeln!(body, "{{\nconst unsigned bid = 0;\n{}}}", piece.body(&mut sig));
        }
    }

    // The sums of this thread.
    body += &format!("__syncthreads();\nfloat sums[{v}];\n#pragma unroll\nfor (int v = 0; v < {v}; v++) sums[v] = 0.0f;\n");
    let apply = |first: &str| {
        format!(
            "#pragma unroll\nfor (int u = 0; u < {batch}; u++) {{\nconst int row = {first} + u * {across};\nif ({guard}) {{\nconst float f = up(x[row]);\n#pragma unroll\nfor (int v = 0; v < {v}; v++) sums[v] = fmaf(f, up(w[u].at(v)), sums[v]);\n}}\n}}\n"
        )
    };
    if rows <= BATCH {
        body += &apply("from + lane");
    } else {
        let stride = batch * across;
        let _ = writeln!(body, "for (int at = from + lane; at < end; at += {stride}) {{\nvec<{ty}, {v}> next[{batch}];\nif (at + {stride} < end) {{");
        body += &fetch("next", &format!("at + {stride}"));
        body += "}\n";
        body += &apply("at");
        let _ = writeln!(body, "#pragma unroll\nfor (int u = 0; u < {batch}; u++) w[u] = next[u];\n}}");
    }

    // Over the lanes of a warp, the warps of the block, the blocks of the cluster.
    let (warps, lanes) = (PIECE_BLOCK / 32, 32 / wide);
    let _ = writeln!(
        body,
        "#pragma unroll\nfor (int v = 0; v < {v}; v++) {{\n#pragma unroll\nfor (int m = {wide}; m < {}; m *= 2) sums[v] += xor_lane(sums[v], m);\n}}",
        lanes * wide
    );
    let _ = writeln!(
        body,
        "KILN_SHARED float of_warps[{warps}][{columns}];\nif (threadIdx.x % 32 < {wide}) {{\n#pragma unroll\nfor (int v = 0; v < {v}; v++) of_warps[threadIdx.x / 32][side * {v} + v] = sums[v];\n}}\n__syncthreads();"
    );
    let _ = writeln!(
        body,
        "const int c = (int)tile * {columns} + (int)threadIdx.x;\nfloat total = 0.0f;\nif (threadIdx.x < {columns}) {{\n#pragma unroll\nfor (int n = 0; n < {warps}; n++) total += of_warps[n][threadIdx.x];\n}}"
    );
    if parts > 1 {
        let _ = writeln!(
            body,
            "KILN_CLUSTER(float, of_blocks, {parts}, rank, {columns});\nif (threadIdx.x < {columns}) of_blocks[threadIdx.x] = total;\ncluster_sync();"
        );
        let _ = writeln!(
            body,
            "if (rank == {} && threadIdx.x < {columns}) {{\ntotal = 0.0f;\n#pragma unroll\nfor (int n = 0; n < {parts}; n++) total += cluster_read(of_blocks, n, threadIdx.x);\n}}",
            parts - 1
        );
    }
    let last = if parts > 1 { format!("rank == {} && ", parts - 1) } else { String::new() };
    let _ = writeln!(body, "if ({last}threadIdx.x < {columns} && c < {}) {{\nconst float acc = {};", k.n, rounded(k.dtype, "total".into()));
    let mut coords = vec!["0".to_string(); rank];
    coords.extend(["0".into(), "c".into()]);
    body += &point(&mut sig, &k.epilogue, &coords, "acc");
    body += "}\n";
    if parts > 1 {
        body += "cluster_sync();\n";
    }
    Steps::one(step(sig.finish("matvec", PIECE_BLOCK as u32, &body), [(tiles * parts) as u32, 1, 1], PIECE_BLOCK as u32))
}
