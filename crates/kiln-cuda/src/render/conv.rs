//! Convolutions and their gradients as matrix products whose right operand is found in place: on tensor cores for half floats, in tiles of plain arithmetic else.
use std::fmt::Write;
use std::sync::Arc;

use kiln_ir::dims::numel;
use kiln_ir::kernel::{ConvKernel, ConvMode};
use kiln_ir::{BufId, DType, MatmulPrecision, Program, RuntimeError};

use super::few;
use super::signature::Signature;
use super::template::{blocks, step};
use super::text::{is_wide, memory_type, point, register_type, unflatten};
use crate::steps::{Chip, Param, Source, Step, Steps};

/// Sizes of the product of one group.
pub(super) struct Product {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
    pub groups: usize,
}

impl Product {
    pub fn new(k: &ConvKernel) -> Self {
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
    if let Some(way) = Way::of(k) {
        return stream(k, program, chip, &product, points, way);
    }
    if few::suits(k) {
        return few::render(k, program, chip);
    }
    let half = matches!(k.dtype, DType::F16 | DType::BF16);
    let (r_m, r_n) = tile(k.dtype, &product);
    let cores = on_cores(k, chip);
    let (side_m, side_n) = match cores {
        Some(sides) => sides,
        None if half => (128, 128),
        None => (16 * r_m, 16 * r_n),
    };
    let (tiles_m, tiles_n) = (product.rows.div_ceil(side_m), product.columns.div_ceil(side_n));
    // Parts of the sum: enough blocks for the machine, each with a good stretch to add.
    let tiles = tiles_m * tiles_n * product.groups;
    let stretch = if half || cores.is_some() { 256 } else { 128 };
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
        partial(&mut sig, k, &product, parts)
    } else {
        epilogue(&mut sig, k)
    };
    let functions: &[&str] = if cores.is_some() {
        &[include_str!("cuda/tensor.cu"), include_str!("cuda/tf32.cu"), include_str!("cuda/conv.cu")]
    } else if half {
        &[include_str!("cuda/tensor.cu"), include_str!("cuda/conv.cu")]
    } else {
        &[include_str!("cuda/conv.cu")]
    };
    let (entry, template, threads, shared) = if cores.is_some() {
        let parts = if chip.precision_of(k.dtype) == MatmulPrecision::High { 1 } else { 2 };
        let _ = writeln!(head, "#define PARTS {parts}\n#define WARPS_M {}", side_m / 32);
        sig.resident = 2;
        let right = if k.mode == ConvMode::WeightGrad { side_n * 36 } else { 32 * (side_n + 8) };
        let spots = side_n.max(64) * if sig.wide { 24 } else { 16 };
        ("conv_tf32", include_str!("cuda/conv_tf32.cu"), 256, (2 * (side_m * 36 + right) * 4 + spots).max(side_m * (side_n + 4) * 4))
    } else if half {
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
    let (source, params) = finish(sig, entry, threads, &head, functions, &with_store(template, &store));
    steps.push(step(source, grid, threads, shared, params));
    if splits > 1 {
        steps.push(sum(k, program, chip, &product, splits, parts));
    }
    Ok(Steps { steps, scratch })
}

/// The sides of a tile of 32-bit floats on tensor cores, where there are enough rows and columns for them.
pub fn on_cores(k: &ConvKernel, chip: &Chip) -> Option<(usize, usize)> {
    let p = Product::new(k);
    if k.dtype != DType::F32 || k.attrs.channels_last || p.rows < 16 || p.columns < 32 || p.depth < 16 {
        return None;
    }
    let side_m = if p.rows <= 32 { 32 } else { 64 };
    // Narrow tiles where wide ones would leave more of the machine idle at the end.
    let tiles = |side_n: usize| p.rows.div_ceil(side_m) * p.columns.div_ceil(side_n) * p.groups;
    let time = |side_n: usize| tiles(side_n).div_ceil(chip.multiprocessors as usize) * side_n;
    let narrow = side_m == 64 && time(64) < time(128);
    Some((side_m, if narrow { 64 } else { 128 }))
}

/// How operands of half floats come in whole accesses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Kernels of one element that walk places in order: operands as they are.
    Plain,
    /// Operands and weights are first put channels last.
    Last,
}

impl Way {
    /// The way of a convolution, if there is one.
    fn of(k: &ConvKernel) -> Option<Way> {
        let groups = k.attrs.groups.max(1);
        if !matches!(k.dtype, DType::F16 | DType::BF16) || k.x.contains(&0) || k.y.contains(&0) || k.w.contains(&0) {
            return None;
        }
        let channels = k.w[1].is_multiple_of(8) && (k.w[0] / groups).is_multiple_of(8);
        let weights = if k.mode == ConvMode::InputGrad { (k.w[0] / groups).is_multiple_of(8) } else { k.w[1].is_multiple_of(8) };
        if right_vectors(k) && (weights || k.mode == ConvMode::WeightGrad) {
            return Some(Way::Plain);
        }
        channels.then_some(Way::Last)
    }
}

/// The steps of a convolution whose operands come in whole accesses.
fn stream(k: &ConvKernel, program: &Program, chip: &Chip, p: &Product, points: usize, way: Way) -> Result<Steps, RuntimeError> {
    // Measured on an H200: warpgroups win where both operands come in rows of what is summed, else fetching holds them up.
    let groups = chip.sm == 90 && k.mode == ConvMode::WeightGrad && way == Way::Plain && p.columns >= 128;
    let warps_m = if p.rows <= 64 { 1 } else { 2 };
    let (side_m, side_n) = (64 * warps_m, if groups { 256 } else { 256 / warps_m });
    let (tiles_m, tiles_n) = (p.rows.div_ceil(side_m), p.columns.div_ceil(side_n));
    let tiles = tiles_m * tiles_n * p.groups;
    let wanted = (2 * chip.multiprocessors as usize / tiles.max(1)).clamp(1, p.depth.div_ceil(256).max(1));
    let split = p.depth.div_ceil(wanted).next_multiple_of(64).max(64);
    let splits = p.depth.div_ceil(split).max(1);
    let grid = u32::try_from(tiles * splits).ok().filter(|n| *n < 1 << 31);
    let grid = grid.ok_or_else(|| RuntimeError::Unsupported("a convolution of too many blocks".into()))?;
    let mut sig = Signature::new(program);
    sig.wide = [k.a, k.b].iter().any(|b| program.buf(*b).len >= 1 << 30) || is_wide(program, &k.epilogue, points) || points * splits >= 1 << 30;
    let (mut steps, mut scratch) = (Vec::new(), 0);
    let mut last = |sig: &mut Signature<'_>, buf: BufId, dims: &[usize]| -> String {
        if way == Way::Plain {
            return sig.read(buf);
        }
        let at = scratch;
        scratch += (numel(dims) * 2).next_multiple_of(256);
        steps.push(channels_last(buf, program, dims, at));
        sig.scratch(at)
    };
    let (left, right) = match k.mode {
        ConvMode::Forward => (String::new(), last(&mut sig, k.a, &k.x)),
        ConvMode::InputGrad => (String::new(), last(&mut sig, k.a, &k.y)),
        ConvMode::WeightGrad => {
            let right = last(&mut sig, k.a, &k.x);
            (last(&mut sig, k.b, &k.y), right)
        }
    };
    let left = match k.mode {
        ConvMode::WeightGrad => left,
        ConvMode::Forward if way == Way::Plain => sig.read(k.b),
        ConvMode::Forward | ConvMode::InputGrad => {
            let at = scratch;
            scratch += (numel(&k.w) * 2).next_multiple_of(256);
            steps.push(weights(k, program, chip, at));
            sig.scratch(at)
        }
    };
    let parts = scratch;
    let by_depth = match (k.mode, way) {
        (ConvMode::WeightGrad, Way::Plain) => (true, true),
        (ConvMode::WeightGrad, Way::Last) => (false, false),
        (ConvMode::Forward | ConvMode::InputGrad, Way::Plain) => (true, false),
        (ConvMode::Forward | ConvMode::InputGrad, Way::Last) => (true, true),
    };
    let stages = 4;
    let mut head = definitions(k, p, &sig);
    let _ = writeln!(head, "#define LEFT {left}\n#define RIGHT {right}");
    let numbers = [
        ("TILES_M", tiles_m),
        ("TILES_N", tiles_n),
        ("SPLIT", split),
        ("WARPS_M", warps_m),
        ("GROUPS_M", warps_m),
        ("GROUPS_N", 2 / warps_m),
        ("WIDTH", side_n * warps_m / 2),
        ("STAGES", stages),
        ("BRAIN", (k.dtype == DType::BF16) as usize),
        ("LAST", (way == Way::Last) as usize),
        ("CLASSED", classed(k) as usize),
        ("LEFT_BY_DEPTH", by_depth.0 as usize),
        ("RIGHT_BY_DEPTH", by_depth.1 as usize),
    ];
    for (name, v) in numbers {
        let _ = writeln!(head, "#define {name} ({v})");
    }
    let store = if splits > 1 {
        scratch += splits * points * 4;
        partial(&mut sig, k, p, parts)
    } else {
        epilogue(&mut sig, k)
    };
    if groups {
        let element = if k.dtype == DType::BF16 { "bf16" } else { "f16" };
        let products = super::warpgroup::tile_products(element, side_n * warps_m / 2, by_depth.0, by_depth.1);
        let functions = [include_str!("cuda/tensor.cu"), &products, include_str!("cuda/queue.cu"), include_str!("cuda/conv_stream.cu")];
        let body = with_store(include_str!("cuda/conv_groups_body.cu"), &store);
        let (source, params) = finish(sig, "conv_groups", 384, &head, &functions, &body);
        // The cap on registers at the start is what lets warpgroups exchange them.
        let code = source.code.replacen("__launch_bounds__(384)", "__launch_bounds__(384, 1)", 1);
        let source = Arc::new(Source { entry: source.entry.clone(), code });
        steps.push(step(source, grid, 384, 3072 + side_n * 32 + stages * (side_m + side_n) * 128, params));
        if splits > 1 {
            steps.push(sum(k, program, chip, p, splits, parts));
        }
        return Ok(Steps { steps, scratch });
    }
    let bytes = |by_depth: bool, side: usize| if by_depth { side * 40 * 2 } else { 32 * (side + 8) * 2 };
    let shared = (stages * (bytes(by_depth.0, side_m) + bytes(by_depth.1, side_n))).max(64 * (side_n + 4) * 4);
    let body = with_store(include_str!("cuda/conv_stream_body.cu"), &store);
    let (source, params) = finish(sig, "conv_stream", 256, &head, &[include_str!("cuda/tensor.cu"), include_str!("cuda/conv_stream.cu")], &body);
    steps.push(step(source, grid, 256, shared, params));
    if splits > 1 {
        steps.push(sum(k, program, chip, p, splits, parts));
    }
    Ok(Steps { steps, scratch })
}

/// The statement that keeps a part of a sum.
fn partial(sig: &mut Signature<'_>, k: &ConvKernel, p: &Product, parts: usize) -> String {
    order(k) + &part(sig, k, p, parts)
}

/// The same where `column` is defined.
pub(super) fn part(sig: &mut Signature<'_>, k: &ConvKernel, p: &Product, parts: usize) -> String {
    let to = sig.scratch(parts);
    let per = p.groups * p.rows;
    format!("(({}*){to})[((split * {per} + g * ROWS + m) * (ix)COLUMNS) + column] = value;\n", accumulator(k.dtype))
}

/// Defines `column`: the number of column `n` in the order of the result. Channels-last weights' gradients have their columns by kernel element, then channel.
fn order(k: &ConvKernel) -> String {
    if k.mode == ConvMode::WeightGrad && Way::of(k) == Some(Way::Last) {
        return "const ix column = n % X_GROUP * W_PLACES + n / X_GROUP;\n".into();
    }
    if Way::of(k) == Some(Way::Last) && classed(k) {
        return "const ix column = place_number(n);\n".into();
    }
    "const ix column = n;\n".into()
}

/// Whether columns of an input's gradient are sorted by the kernel elements they meet: with strides, a place meets only some.
fn classed(k: &ConvKernel) -> bool {
    let strides = &k.attrs.stride;
    let whole = k.x[2..].iter().zip(strides).all(|(n, s)| n.is_multiple_of(*s));
    k.mode == ConvMode::InputGrad && strides.iter().any(|s| *s > 1) && whole && (k.w[0] / k.attrs.groups.max(1)).is_multiple_of(32)
}

/// Puts an operand channels last.
fn channels_last(buf: BufId, program: &Program, dims: &[usize], at: usize) -> Step {
    let mut sig = Signature::new(program);
    sig.wide = program.buf(buf).len >= 1 << 30;
    let (from, to) = (sig.read(buf), sig.scratch(at));
    let places = numel(&dims[2..]);
    let (tiles_p, tiles_c) = (places.div_ceil(64), dims[1].div_ceil(64));
    let head = format!(
        "typedef {} ix;\n#define FROM {from}\n#define TO {to}\n#define CHANNELS {}\n#define PLACES {places}\n#define TILES_P {tiles_p}\n#define TILES_C {tiles_c}\n",
        sig.index_type(),
        dims[1],
    );
    let (source, params) = finish(sig, "conv_last", 256, &head, &[], include_str!("cuda/conv_last.cu"));
    step(source, (dims[0] * tiles_p * tiles_c) as u32, 256, 64 * 66 * 2, params)
}

/// Puts weights in rows by kernel element, then by the channels that are summed over.
fn weights(k: &ConvKernel, program: &Program, chip: &Chip, at: usize) -> Step {
    let mut sig = Signature::new(program);
    sig.wide = program.buf(k.b).len >= 1 << 30;
    let (from, to, ty) = (sig.read(k.b), sig.scratch(at), sig.index_type());
    let (len, groups) = (numel(&k.w), k.attrs.groups.max(1));
    let (og, cg, places) = (k.w[0] / groups, k.w[1], numel(&k.w[2..]));
    let memory = memory_type(k.dtype);
    let split = if k.mode == ConvMode::InputGrad {
        format!("const {ty} o = at % {og}, p = at / {og} % {places}, c = at / {} % {cg}, g = at / {};", og * places, og * places * cg)
    } else {
        format!("const {ty} c = at % {cg}, p = at / {cg} % {places}, o = at / {} % {og}, g = at / {};", cg * places, cg * places * og)
    };
    let body = format!(
        "for ({ty} at = ({ty})blockIdx.x * 256 + threadIdx.x; at < {len}; at += ({ty})gridDim.x * 256) {{\n{split}\n\
         (({memory}*){to})[at] = {from}[((g * {og} + o) * {cg} + c) * {places} + p];\n}}\n",
    );
    let (source, params) = sig.finish("conv_weights", 256, &body);
    step(Arc::new(source), blocks(len, 256, chip), 256, 0, params)
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
pub(super) fn accumulator(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::F32 | DType::F16 | DType::BF16 => "float",
        _ => "u64",
    }
}

pub(super) fn accumulator_size(dtype: DType) -> usize {
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
pub(super) fn definitions(k: &ConvKernel, p: &Product, sig: &Signature<'_>) -> String {
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
    order(k) + &result(sig, k)
}

/// The same where `column` is defined.
pub(super) fn result(sig: &mut Signature<'_>, k: &ConvKernel) -> String {
    let (per, columns): (usize, Vec<usize>) = match k.mode {
        ConvMode::Forward => (k.w[0] / k.attrs.groups.max(1), [k.y[0]].into_iter().chain(k.y[2..].iter().copied()).collect()),
        ConvMode::InputGrad => (k.w[1], [k.x[0]].into_iter().chain(k.x[2..].iter().copied()).collect()),
        ConvMode::WeightGrad => (k.w[0] / k.attrs.groups.max(1), k.w[1..].to_vec()),
    };
    let (mut s, mut coords) = unflatten(sig, "column", &columns, "c");
    let channel = format!("(g * {per} + m)");
    coords.insert(if k.mode == ConvMode::WeightGrad { 0 } else { 1 }, channel);
    if k.attrs.channels_last {
        coords[1..].rotate_left(1);
    }
    s += &point(sig, &k.epilogue, &coords, "value");
    s
}

/// A template with the statements that keep a result in their place.
pub(super) fn with_store(template: &str, store: &str) -> String {
    template.replace("            STORE\n", &format!("{{\n{store}}}\n"))
}

/// The translation unit: geometry and shared functions before the kernel.
pub(super) fn finish(sig: Signature<'_>, entry: &str, threads: u32, head: &str, functions: &[&str], body: &str) -> (Arc<Source>, Vec<Param>) {
    let (mut source, params) = sig.finish(entry, threads, body);
    let before = format!("{head}{}\nextern \"C\" __global__", functions.concat());
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
pub(super) fn sum(k: &ConvKernel, program: &Program, chip: &Chip, p: &Product, splits: usize, parts: usize) -> Step {
    let points = p.groups * p.rows * p.columns;
    let mut sig = Signature::new(program);
    sig.wide = is_wide(program, &k.epilogue, points * splits);
    let (from, ty, acc) = (sig.scratch(parts), sig.index_type(), accumulator(k.dtype));
    let store = result(&mut sig, k);
    let body = format!(
        "for ({ty} at = ({ty})blockIdx.x * 256 + threadIdx.x; at < {points}; at += ({ty})gridDim.x * 256) {{\n\
         const {ty} column = at % {columns}, row = at / {columns}, m = row % {rows}, g = row / {rows};\n\
         {acc} sum = 0;\nfor (int s = 0; s < {splits}; s++) sum += ((const {acc}*){from})[s * ({ty}){points} + at];\n\
         const {register} value = ({register})sum;\n{store}}}\n",
        columns = p.columns,
        rows = p.rows,
        register = register_type(k.dtype),
    );
    let (source, params) = sig.finish("conv_sum", 256, &body);
    step(Arc::new(source), blocks(points, 256, chip), 256, 0, params)
}
