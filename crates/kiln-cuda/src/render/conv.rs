//! Convolutions and their gradients as matrix products whose right operand is found in place: on tensor cores for half floats, in tiles of plain arithmetic else.
use std::fmt::Write;
use std::sync::Arc;

use kiln_ir::dims::numel;
use kiln_ir::kernel::{ConvKernel, ConvMode};
use kiln_ir::{DType, Program, RuntimeError};

use super::signature::Signature;
use super::template::{blocks, step};
use super::text::{is_wide, memory_type, point, register_type, unflatten};
use crate::steps::{Chip, Param, Source, Step, Steps};

/// Sizes of the product of one group.
struct Product {
    rows: usize,
    columns: usize,
    depth: usize,
    groups: usize,
}

impl Product {
    fn new(k: &ConvKernel) -> Self {
        let groups = k.attrs.groups.max(1);
        let (og, cg) = (k.w[0] / groups, k.w[1]);
        let (images, x, w, y) = (k.x[0], numel(&k.x[2..]), numel(&k.w[2..]), numel(&k.y[2..]));
        let (rows, columns, depth) = match k.mode {
            ConvMode::Forward => (og, images * y, cg * w),
            ConvMode::InputGrad => (cg, images * x, og * w),
            ConvMode::WeightGrad => (og, cg * w, images * y),
        };
        Product { rows, columns, depth, groups }
    }
}

/// The steps of a kernel. Long sums over few results are cut into parts, which are added in order.
///
/// # Errors
/// [`RuntimeError::Unsupported`] for launches of 2^31 blocks or planes of 2^31 elements.
pub fn render(k: &ConvKernel, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let result = match k.mode {
        ConvMode::Forward => &k.y,
        ConvMode::InputGrad => &k.x,
        ConvMode::WeightGrad => &k.w,
    };
    if numel(result) == 0 {
        return Ok(Steps::default());
    }
    if [&k.x, &k.w, &k.y].iter().any(|d| d[2..].contains(&0)) {
        return Err(RuntimeError::Unsupported("convolutions over empty planes".into()));
    }
    let places = [numel(&k.x[2..]), numel(&k.y[2..]), numel(&k.w[2..])];
    if k.x.len() > 5 || places.iter().any(|p| *p >= 1 << 31) {
        return Err(RuntimeError::Unsupported("convolutions over more than three axes or very large planes".into()));
    }
    let product = Product::new(k);
    let points = numel(result);
    let half = matches!(k.dtype, DType::F16 | DType::BF16);
    let (r_m, r_n) = tile(k.dtype, &product);
    let (side_m, side_n) = if half { (128, 128) } else { (16 * r_m, 16 * r_n) };
    let (tiles_m, tiles_n) = (product.rows.div_ceil(side_m), product.columns.div_ceil(side_n));
    // Parts of the sum: enough blocks for the machine, each with a good stretch to add.
    let tiles = tiles_m * tiles_n * product.groups;
    let stretch = if half { 256 } else { 128 };
    let wanted = (2 * chip.multiprocessors as usize / tiles.max(1)).clamp(1, product.depth.div_ceil(stretch).max(1));
    let split = product.depth.div_ceil(wanted).next_multiple_of(32).max(32);
    let splits = product.depth.div_ceil(split).max(1);
    let grid = u32::try_from(tiles * splits).ok().filter(|n| *n < 1 << 31);
    let grid = grid.ok_or_else(|| RuntimeError::Unsupported("a convolution of too many blocks".into()))?;

    let mut sig = Signature::new(program);
    sig.wide = [k.a, k.b].iter().any(|b| program.buf(*b).len >= 1 << 30) || is_wide(program, &k.epilogue, points) || points * splits >= 1 << 30;
    let (mut steps, mut scratch) = (Vec::new(), 0);
    let (a, b) = (sig.read(k.a), sig.read(k.b));
    let (left, right) = match k.mode {
        ConvMode::Forward | ConvMode::WeightGrad => (b, a),
        ConvMode::InputGrad => {
            // Weights with channels and outputs exchanged, so that sums run along rows.
            scratch = (numel(&k.w) * k.dtype.size()).next_multiple_of(256);
            steps.push(exchange(k, program, chip));
            (format!("((const T*){})", sig.scratch(0)), a)
        }
    };
    let mut head = definitions(k, &product, &sig);
    let numbers = [("TILES_M", tiles_m), ("TILES_N", tiles_n), ("SPLIT", split), ("R_M", r_m), ("R_N", r_n), ("SIDE_M", side_m), ("SIDE_N", side_n)];
    for (name, v) in numbers {
        let _ = writeln!(head, "#define {name} {v}");
    }
    let _ = writeln!(head, "#define LEFT {left}\n#define RIGHT {right}");
    let parts = scratch;
    let store = if splits > 1 {
        scratch += splits * points * accumulator_size(k.dtype);
        let to = sig.scratch(parts);
        let per = product.groups * product.rows;
        format!("(({}*){to})[((split * {per} + g * ROWS + m) * (ix)COLUMNS) + n] = value;\n", accumulator(k.dtype))
    } else {
        epilogue(&mut sig, k)
    };
    let (entry, template, threads, shared) = if half {
        let by_depth = k.mode == ConvMode::WeightGrad;
        let _ = writeln!(head, "#define BRAIN {}", (k.dtype == DType::BF16) as u8);
        let _ = writeln!(head, "#define LEFT_VECTORS {}\n#define RIGHT_VECTORS {}", left_vectors(k, &product) as u8, right_vectors(k) as u8);
        let _ = writeln!(head, "#define RIGHT_BY_DEPTH {}", by_depth as u8);
        let stage = 128 * 40 + if by_depth { 128 * 40 } else { 32 * 136 };
        ("conv_mma", include_str!("cuda/conv_mma.cu"), 256, (2 * stage * 2).max(64 * 132 * 4))
    } else {
        let size = k.dtype.size();
        ("conv", include_str!("cuda/conv_plain.cu"), 256, 16 * (side_m + side_n + 2) * size)
    };
    let (source, params) = finish(sig, entry, threads, &head, half, &with_store(template, &store));
    steps.push(step(source, grid, threads, shared, params));
    if splits > 1 {
        steps.push(sum(k, program, chip, &product, splits, parts));
    }
    Ok(Steps { steps, scratch })
}

/// Results of a thread of the plain kernel along rows and columns.
fn tile(dtype: DType, p: &Product) -> (usize, usize) {
    let along = |n: usize, most: usize| {
        if n <= 16 {
            1
        } else if n <= 64 || most == 4 {
            4
        } else {
            8
        }
    };
    let most = if dtype.size() == 8 { 4 } else { 8 };
    (along(p.rows, most), along(p.columns, most))
}

/// The type sums run in.
fn accumulator(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 | DType::F16 | DType::BF16 => "float",
        _ => "u64",
    }
}

fn accumulator_size(dtype: DType) -> usize {
    if matches!(dtype, DType::F32 | DType::F16 | DType::BF16) { 4 } else { 8 }
}

/// Whether rows of the left operand are whole 16-byte accesses.
fn left_vectors(k: &ConvKernel, p: &Product) -> bool {
    match k.mode {
        ConvMode::Forward | ConvMode::InputGrad => p.depth.is_multiple_of(8),
        ConvMode::WeightGrad => numel(&k.y[2..]).is_multiple_of(8),
    }
}

/// Whether the right operand is made of whole 16-byte accesses: kernels of one element that walk places in order.
fn right_vectors(k: &ConvKernel) -> bool {
    let plain = (0..k.attrs.stride.len()).all(|s| k.attrs.stride[s] == 1 && k.attrs.padding[s] == (0, 0));
    plain && k.w[2..].iter().all(|n| *n == 1) && numel(&k.x[2..]).is_multiple_of(8)
}

/// The macros of the convolution's geometry. Missing leading axes are single.
fn definitions(k: &ConvKernel, p: &Product, sig: &Signature<'_>) -> String {
    let mode = match k.mode {
        ConvMode::Forward => 0,
        ConvMode::InputGrad => 1,
        ConvMode::WeightGrad => 2,
    };
    let mut s = format!("typedef {} T;\ntypedef {} ix;\n", if k.dtype == DType::Bool { "u8" } else { memory_type(k.dtype) }, sig.index_type());
    let n = k.attrs.stride.len();
    for (axis, letter) in ["D", "H", "W"].into_iter().enumerate() {
        let own = if axis + n < 3 { None } else { Some(axis + n - 3) };
        let of = |f: &dyn Fn(usize) -> usize, single: usize| own.map_or(single, f);
        let rows: [(&str, usize); 6] = [
            ("X", of(&|a| k.x[a + 2], 1)),
            ("Y", of(&|a| k.y[a + 2], 1)),
            ("W", of(&|a| k.w[a + 2], 1)),
            ("STRIDE", of(&|a| k.attrs.stride[a], 1)),
            ("DILATION", of(&|a| k.attrs.dilation[a], 1)),
            ("PAD", of(&|a| k.attrs.padding[a].0, 0)),
        ];
        for (name, v) in rows {
            let _ = writeln!(s, "#define {name}_{letter} {v}");
        }
    }
    let numbers = [
        ("MODE", mode),
        ("GROUPS", p.groups),
        ("ROWS", p.rows),
        ("COLUMNS", p.columns),
        ("DEPTH", p.depth),
        ("X_CHANNELS", k.x[1]),
        ("Y_CHANNELS", k.y[1]),
        ("X_GROUP", k.w[1]),
        ("Y_GROUP", k.w[0] / p.groups),
        ("X_PLACES", numel(&k.x[2..])),
        ("Y_PLACES", numel(&k.y[2..])),
        ("W_PLACES", numel(&k.w[2..])),
    ];
    for (name, v) in numbers {
        let _ = writeln!(s, "#define {name} {v}");
    }
    let register = register_type(k.dtype);
    let _ = writeln!(s, "#define ACC {}\n#define REGISTER {}", accumulator(k.dtype), register);
    s
}

/// The statements of the epilogue at result `(g, m, n)`, whose accumulated value is `value`.
fn epilogue(sig: &mut Signature<'_>, k: &ConvKernel) -> String {
    let (per, columns): (usize, Vec<usize>) = match k.mode {
        ConvMode::Forward => (k.w[0] / k.attrs.groups.max(1), [k.y[0]].into_iter().chain(k.y[2..].iter().copied()).collect()),
        ConvMode::InputGrad => (k.w[1], [k.x[0]].into_iter().chain(k.x[2..].iter().copied()).collect()),
        ConvMode::WeightGrad => (k.w[0] / k.attrs.groups.max(1), k.w[1..].to_vec()),
    };
    let (mut s, mut coords) = unflatten(sig, "n", &columns, "c");
    let channel = format!("(g * {per} + m)");
    coords.insert(if k.mode == ConvMode::WeightGrad { 0 } else { 1 }, channel);
    s += &point(sig, &k.epilogue, &coords, "value");
    s
}

/// A template with the statements that keep a result in their place.
fn with_store(template: &str, store: &str) -> String {
    template.replace("            STORE\n", &format!("{{\n{store}}}\n"))
}

/// The translation unit: geometry and shared functions before the kernel.
fn finish(sig: Signature<'_>, entry: &str, threads: u32, head: &str, tensor: bool, body: &str) -> (Arc<Source>, Vec<Param>) {
    let (mut source, params) = sig.finish(entry, threads, body);
    let tensor = if tensor { include_str!("cuda/tensor.cu") } else { "" };
    let before = format!("{head}{tensor}{}\nextern \"C\" __global__", include_str!("cuda/conv.cu"));
    source.code = source.code.replacen("extern \"C\" __global__", &before, 1);
    (Arc::new(source), params)
}

/// Exchanges outputs and channels of the weights of every group.
fn exchange(k: &ConvKernel, program: &Program, chip: &Chip) -> Step {
    let mut sig = Signature::new(program);
    sig.wide = program.buf(k.b).len >= 1 << 30;
    let (from, to, ty) = (sig.read(k.b), sig.scratch(0), sig.index_type());
    let (len, groups) = (numel(&k.w), k.attrs.groups.max(1));
    let (og, cg, places) = (k.w[0] / groups, k.w[1], numel(&k.w[2..]));
    let memory = memory_type(k.dtype);
    let body = format!(
        "for ({ty} at = ({ty})blockIdx.x * 256 + threadIdx.x; at < {len}; at += ({ty})gridDim.x * 256) {{\n\
         const {ty} p = at % {places}, o = at / {places} % {og}, c = at / {} % {cg}, g = at / {};\n\
         (({memory}*){to})[at] = {from}[((g * {og} + o) * {cg} + c) * {places} + p];\n}}\n",
        places * og,
        places * og * cg,
    );
    let (source, params) = sig.finish("conv_weights", 256, &body);
    step(Arc::new(source), blocks(len, 256, chip), 256, 0, params)
}

/// Adds the parts of every result and runs the epilogue.
fn sum(k: &ConvKernel, program: &Program, chip: &Chip, p: &Product, splits: usize, parts: usize) -> Step {
    let points = p.groups * p.rows * p.columns;
    let mut sig = Signature::new(program);
    sig.wide = is_wide(program, &k.epilogue, points * splits);
    let (from, ty, acc) = (sig.scratch(parts), sig.index_type(), accumulator(k.dtype));
    let store = epilogue(&mut sig, k);
    let body = format!(
        "for ({ty} at = ({ty})blockIdx.x * 256 + threadIdx.x; at < {points}; at += ({ty})gridDim.x * 256) {{\n\
         const {ty} n = at % {columns}, row = at / {columns}, m = row % {rows}, g = row / {rows};\n\
         {acc} sum = 0;\nfor (int s = 0; s < {splits}; s++) sum += ((const {acc}*){from})[s * ({ty}){points} + at];\n\
         const {register} value = ({register})sum;\n{store}}}\n",
        columns = p.columns,
        rows = p.rows,
        register = register_type(k.dtype),
    );
    let (source, params) = sig.finish("conv_sum", 256, &body);
    step(Arc::new(source), blocks(points, 256, chip), 256, 0, params)
}
