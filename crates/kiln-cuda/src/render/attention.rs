//! Attention and its gradient: on the tensor cores of warps for half floats, in plain arithmetic for everything else, and by shares of the keys for few queries.
use kiln_ir::kernel::{AttentionKernel, AttentionOperand};
use kiln_ir::{Affine, DType, Program, RuntimeError};

use super::template::{Text, arith, arith_size, blocks, element, origin, step};
use crate::steps::{Chip, Param, Step, Steps};

/// Columns of a result that a block of the plain kernels computes.
fn chunk(width: usize, dtype: DType) -> usize {
    if width <= 64 || dtype == DType::F64 { 64 } else { 128 }
}

/// One attention and the text that its kernels share.
struct Attention<'a> {
    k: &'a AttentionKernel,
    text: Text,
    /// Where results go that nobody wants: their place in the scratch memory.
    scratch: usize,
}

/// Names of the axes of an operand's macros.
const AXES: [&str; 4] = ["B", "H", "T", "D"];

impl<'a> Attention<'a> {
    fn new(k: &'a AttentionKernel) -> Self {
        let [batch, heads, groups] = k.heads;
        let float = |bits: u64| format!("({:?})", f64::from_bits(bits));
        let cap = f64::from_bits(k.attrs.softcap);
        let text = Text::new(false)
            .kind("T", element(k.dtype))
            .number("BATCH", batch as i128)
            .number("HEADS", heads as i128)
            .number("GROUPS", groups as i128)
            .number("QUERIES", k.length[0] as i128)
            .number("KEYS", k.length[1] as i128)
            .number("D", k.width[0] as i128)
            .number("E", k.width[1] as i128)
            .flag("CAUSAL", k.attrs.causal)
            .flag("HAS_CAP", cap != 0.0)
            .flag("HAS_MASK", k.mask.is_some())
            .flag("HAS_BIAS", k.bias.is_some())
            .flag("BRAIN", k.dtype == DType::BF16)
            .define("SCALE", &float(k.attrs.scale))
            .define("CAP", &float(if cap == 0.0 { 1.0f64.to_bits() } else { k.attrs.softcap }));
        let mut attention = Attention { k, text, scratch: 0 };
        for (n, name) in ["Q", "K", "V"].into_iter().enumerate() {
            attention.index(name, &k.operands[n].index, AXES);
        }
        let nothing = Affine::zero(4);
        let scores = ["B", "H", "T", "S"];
        attention.index("MASK", k.mask.as_ref().map_or(&nothing, |o| &o.index), scores);
        attention.index("BIAS", k.bias.as_ref().map_or(&nothing, |o| &o.index), scores);
        attention
    }

    /// The macros of an operand's steps.
    fn index(&mut self, name: &str, index: &Affine, axes: [&str; 4]) {
        let mut text =
            std::mem::replace(&mut self.text, Text::new(false)).define(&format!("{name}_ORIGIN"), &origin(index, 1).replace("(ix)", "(i64)"));
        for (axis, c) in axes.iter().zip(&index.coeffs) {
            text = text.number(&format!("{name}_{axis}"), *c as i128);
        }
        self.text = text;
    }

    /// A result's parameter and macros; one that nobody wants goes to scratch memory.
    fn result(&mut self, name: &str, n: usize, dims: &[usize]) -> Param {
        if let Some(Some(AttentionOperand { buf, index })) = self.k.results.get(n) {
            self.index(name, index, AXES);
            return Param::Buf(*buf);
        }
        let mut index = Affine::zero(dims.len());
        index.coeffs = kiln_ir::dims::row_major(dims);
        self.index(name, &index, AXES);
        let at = self.scratch;
        self.scratch += (kiln_ir::dims::numel(dims) * arith_size(self.k.dtype)).next_multiple_of(256);
        Param::Scratch(at)
    }

    /// The parameters of operands `0..n`, mask and bias. What is missing is never read.
    fn operands(&self, n: usize) -> Vec<Param> {
        let any = Param::Buf(self.k.operands[0].buf);
        let extra = |o: &Option<AttentionOperand>| o.as_ref().map_or(any, |o| Param::Buf(o.buf));
        let mut params: Vec<Param> = self.k.operands[..n].iter().map(|o| Param::Buf(o.buf)).collect();
        params.extend([extra(&self.k.mask), extra(&self.k.bias)]);
        params
    }

    /// Whether the tensor cores of warps can take the operands of these numbers: half floats in rows of whole 16-byte accesses.
    fn fits_tensor_cores(&self, operands: &[usize]) -> bool {
        let aligned = |o: &AttentionOperand| {
            let steps = o.index.coeffs[..3].iter().chain([&o.index.base]).chain(o.index.dynamic.iter().map(|d| &d.1));
            o.index.coeffs[3] == 1 && steps.into_iter().all(|s| s % 8 == 0)
        };
        let width = |w: usize| w > 0 && w.is_multiple_of(16) && w <= 256;
        matches!(self.k.dtype, DType::F16 | DType::BF16)
            && self.k.width.iter().all(|w| width(*w))
            && operands.iter().all(|n| aligned(&self.k.operands[*n]))
    }

    /// Whether neighbouring columns of these results can be written as pairs.
    fn writes_pairs(&self, results: &[usize]) -> bool {
        results.iter().all(|n| match self.k.results.get(*n) {
            Some(Some(o)) => {
                let steps = o.index.coeffs[..3].iter().chain([&o.index.base]).chain(o.index.dynamic.iter().map(|d| &d.1));
                o.index.coeffs[3] == 1 && steps.into_iter().all(|s| s % 2 == 0)
            }
            _ => true,
        })
    }
}

/// The number of blocks, if a launch can have that many.
fn grid(blocks: usize) -> Result<u32, RuntimeError> {
    u32::try_from(blocks).ok().filter(|n| *n < 1 << 31).ok_or_else(|| RuntimeError::Unsupported("attention over too many heads".into()))
}

/// Warps of a block, and rows of the streamed side held at once.
fn tile(width: usize) -> (usize, usize) {
    if width <= 128 { (8, 64) } else { (4, 32) }
}

/// The steps of the forward pass.
///
/// # Errors
/// [`RuntimeError::Unsupported`] if a launch would have 2^31 blocks or more.
pub fn render(k: &AttentionKernel, _: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let [batch, heads, groups] = k.heads;
    let ([queries, keys], [d, e]) = (k.length, k.width);
    if batch * heads * queries == 0 {
        return Ok(Steps::default());
    }
    let mut a = Attention::new(k);
    let out = a.result("O", 0, &[batch, heads, queries, e]);
    let has_lse = matches!(k.results.get(1), Some(Some(_)));
    let lse = if has_lse { a.result("L", 1, &[batch, heads, queries]) } else { out };
    if !has_lse {
        a.index("L", &Affine::zero(4), AXES);
    }
    a.text = a.text.flag("HAS_LSE", has_lse);
    let rows = heads / groups * queries;
    let steps = if d <= 256 && e <= 256 && (queries <= 4 || rows <= 16) {
        decode(&mut a, chip, out, lse)?
    } else if a.fits_tensor_cores(&[0, 1, 2]) {
        vec![if fits_warpgroups(k, chip) { wgmma(&a, chip, out, lse)? } else { mma(&a, out, lse)? }]
    } else {
        let wide = chunk(e, k.dtype);
        let (tiles, chunks) = (queries.div_ceil(64), e.div_ceil(wide).max(1));
        let text = plain(&a).number("WIDE", wide as i128).number("CHUNKS", chunks as i128).number("TILES_T", tiles as i128);
        let source = text.body(include_str!("cuda/attention_plain.cu")).entry("attention_plain");
        let mut params = a.operands(3);
        params.extend([out, lse, Param::Args]);
        vec![step(source, grid(batch * heads * tiles * chunks)?, 256, plain_shared(k.dtype), params)]
    };
    let _ = keys;
    Ok(Steps { steps, scratch: a.scratch })
}

/// The text of the plain kernels up to their constants.
fn plain(a: &Attention<'_>) -> Text {
    a.text.clone().body(include_str!("cuda/attention.cu"))
}

/// Shared memory of the plain kernels.
fn plain_shared(dtype: DType) -> usize {
    (64 * 65 + 2 * 64 * 17 + 3 * 64) * arith_size(dtype)
}

/// The tensor-core kernel.
fn mma(a: &Attention<'_>, out: Param, lse: Param) -> Result<Step, RuntimeError> {
    let [batch, heads, _] = a.k.heads;
    let [d, e] = a.k.width;
    let (warps, block) = tile(d.max(e));
    let tiles = a.k.length[0].div_ceil(16 * warps);
    let source = tensor_text(a, &[0])
        .number("WARPS", warps as i128)
        .number("BLOCK", block as i128)
        .number("TILES_T", tiles as i128)
        .body(include_str!("cuda/attention_mma.cu"))
        .entry("attention_mma");
    let mut params = a.operands(3);
    params.extend([out, lse, Param::Args]);
    let shared = (16 * warps * (d + 8) + 2 * block * (d + e + 16)) * 2;
    Ok(step(source, grid(batch * heads * tiles)?, 32 * warps as u32, shared, params))
}

/// Whether the warpgroups of compute capability 9.0 take these sizes.
fn fits_warpgroups(k: &AttentionKernel, chip: &Chip) -> bool {
    chip.sm == 90 && k.width[0] == k.width[1] && matches!(k.width[0], 64 | 128)
}

/// The text of the warpgroup kernels up to their constants. `columns`: of the products.
fn warpgroup_text(a: &Attention<'_>, results: &[usize], columns: &[usize]) -> Text {
    tensor_text(a, results)
        .flag("HAS_BLANKS", a.k.attrs.causal && a.k.length[0] > a.k.length[1])
        .body(&super::warpgroup::products(if a.k.dtype == DType::BF16 { "bf16" } else { "f16" }, columns))
        .body(include_str!("cuda/queue.cu"))
        .body(include_str!("cuda/attention_fetch.cu"))
}

/// The warpgroup kernel.
fn wgmma(a: &Attention<'_>, chip: &Chip, out: Param, lse: Param) -> Result<Step, RuntimeError> {
    let [batch, heads, _] = a.k.heads;
    let [d, e] = a.k.width;
    let consumers = 2;
    let side = 64 * consumers;
    let tiles = a.k.length[0].div_ceil(side);
    let columns: &[usize] = if e == 128 { &[128] } else { &[64, 128] };
    let items = grid(batch * heads * tiles)?;
    // Heads whose keys and values the second-level cache holds at once.
    let near = ((24 << 20) / (a.k.length[1] * (d + e) * 2).max(1)).clamp(1, batch * heads);
    let source = warpgroup_text(a, &[0], columns)
        .number("CONSUMERS", consumers as i128)
        // Turns keep consumers apart; where the last tiles are short they cost more than they bring (481 against 472 TFLOP/s on an H200).
        .flag("TURNS", !a.k.attrs.causal)
        .number("KEY_TILE", 128)
        .number("ITEMS", items as i128)
        .number("NEAR", near as i128)
        .number("PRODUCER_REGISTERS", 24)
        .number("CONSUMER_REGISTERS", 240)
        .number("TILES_T", tiles as i128)
        .body(include_str!("cuda/attention_wgmma.cu"))
        .entry("attention_wgmma");
    let mut params = a.operands(3);
    params.extend([out, lse, Param::Args]);
    let shared = 2048 + (side * d + 2 * 128 * (d + e)) * 2;
    Ok(step(source, items.min(chip.multiprocessors), 128 + 128 * consumers as u32, shared, params))
}

/// The text of the tensor-core kernels up to their constants.
fn tensor_text(a: &Attention<'_>, results: &[usize]) -> Text {
    plain(a).body(include_str!("cuda/tensor.cu")).flag("PAIRS", a.writes_pairs(results))
}

/// Few queries: parts of the keys, then their sum.
fn decode(a: &mut Attention<'_>, chip: &Chip, out: Param, lse: Param) -> Result<Vec<Step>, RuntimeError> {
    let k = a.k;
    let [batch, heads, groups] = k.heads;
    let ([queries, keys], [d, e]) = (k.length, k.width);
    let all_rows = heads / groups * queries;
    let rows = all_rows.min(if k.dtype == DType::F64 { 2 } else { 4 });
    let row_blocks = all_rows.div_ceil(rows);
    let size = k.dtype.size();
    let aligned = |o: &AttentionOperand, n: usize| {
        let steps = o.index.coeffs[..3].iter().chain([&o.index.base]).chain(o.index.dynamic.iter().map(|d| &d.1));
        o.index.coeffs[3] == 1 && steps.into_iter().all(|s| s % n as isize == 0)
    };
    let vec = if d.is_multiple_of(16 / size) && aligned(&k.operands[1], 16 / size) { 16 / size } else { 1 };
    let e_vec = if e.is_multiple_of(8 / size) && aligned(&k.operands[2], 8 / size) { 8 / size } else { 1 };
    let (d_parts, e_parts) = (d.div_ceil(8 * vec).max(1), e.div_ceil(32 * e_vec).max(1));
    // Shares of whole turns of four warps, as many as fill the machine a few times; short turns where that takes all the keys.
    let blocks = batch * groups * row_blocks;
    let machine = chip.multiprocessors as usize;
    let run = if blocks * keys.div_ceil(256) >= 2 * machine { 64 } else { 32 };
    let wanted = (4 * machine).div_ceil(blocks.max(1)).clamp(1, 256);
    let split = keys.div_ceil(wanted).next_multiple_of(4 * run).max(4 * run);
    let splits = keys.div_ceil(split).max(1);
    // Where a cluster can hold all shares they are put together in one launch.
    let clustered = chip.sm >= 90 && splits <= super::reduction::CLUSTER && rows * (e + 2) * arith_size(k.dtype) <= 12 << 10;
    let parts = if clustered { out } else { Param::Scratch(a.scratch) };
    let bytes = arith_size(k.dtype);
    if !clustered {
        a.scratch += batch * groups * all_rows * splits * (e + 2) * bytes;
    }
    let text = plain(a)
        .number("RUN", run as i128)
        .number("ROWS", rows as i128)
        .number("ALL_ROWS", all_rows as i128)
        .number("ROW_BLOCKS", row_blocks as i128)
        .number("VEC", vec as i128)
        .number("E_VEC", e_vec as i128)
        .number("D_PARTS", d_parts as i128)
        .flag("D_FULL", d == d_parts * 8 * vec)
        .number("E_PARTS", e_parts as i128)
        .number("SPLIT", split as i128)
        .number("SPLITS", splits as i128)
        .flag("IN_CLUSTER", clustered)
        .define("CLUSTERED", &if clustered && splits > 1 { format!("__cluster_dims__({splits}, 1, 1)") } else { String::new() })
        .body(include_str!("cuda/cluster.cu"))
        .body(include_str!("cuda/attention_decode.cu"));
    let mut params = a.operands(3);
    params.extend([parts, out, lse, Param::Args]);
    let shared = 4 * rows * (run + 2 + e) * bytes;
    if clustered {
        return Ok(vec![step(text.entry("attention_decode"), grid(blocks * splits)?, 128, shared, params)]);
    }
    Ok(vec![
        step(text.entry("attention_decode"), grid(blocks * splits)?, 128, shared, params),
        step(text.entry("attention_parts"), grid(batch * groups * all_rows)?, 128, 0, vec![parts, out, lse, Param::Args]),
    ])
}

/// The steps of the gradient. Every result has one owner: nothing is added up by atomics, and results don't depend on the order of blocks.
///
/// # Errors
/// [`RuntimeError::Unsupported`] if a launch would have 2^31 blocks or more.
pub fn render_grad(k: &AttentionKernel, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let [batch, heads, groups] = k.heads;
    let ([queries, keys], [d, e]) = (k.length, k.width);
    let mut a = Attention::new(k);
    for (name, n) in [("O", 3), ("L", 4), ("DO", 5)] {
        a.index(name, &k.operands[n].index, AXES);
    }
    let size = arith_size(k.dtype);
    let delta = Param::Scratch(0);
    a.scratch = (batch * heads * queries * size).next_multiple_of(256);
    let buf = |n: usize| Param::Buf(k.operands[n].buf);
    let wants = |n: usize| matches!(&k.results[n], Some(o) if program.buf(o.buf).len > 0);
    let mut steps = Vec::new();
    if queries > 0 && batch * heads > 0 && (wants(0) || wants(1)) {
        let source = plain(&a).number("WIDE", 64).body(include_str!("cuda/attention_plain.cu")).entry("attention_delta");
        steps.push(step(source, blocks(batch * heads * queries, 8, chip), 256, 0, vec![buf(3), buf(5), delta, Param::Args]));
    }
    // q, k, v, dout, lse, delta, mask, bias.
    let mut operands = vec![buf(0), buf(1), buf(2), buf(5), buf(4), delta];
    operands.extend(&a.operands(3)[3..]);
    let with = |results: &[Param]| -> Vec<Param> { operands.iter().chain(results).copied().chain([Param::Args]).collect() };
    if a.fits_tensor_cores(&[0, 1, 2, 5]) {
        let (warps, block) = tile(d.max(e));
        let side = 16 * warps;
        let groups_fit = fits_warpgroups(k, chip);
        let columns: &[usize] = if d == 128 { &[64, 128] } else { &[64] };
        let stages = 3;
        // Narrow heads leave room for two blocks of one consumer.
        let consumers = if d == 64 { 1 } else { 2 };
        let (owned, threads) = (64 * consumers, 128 + 128 * consumers as u32);
        let group_shared = 3072 + stages * 512 + (owned + stages * 64) * (d + e) * 2;
        if wants(0) && groups_fit {
            let mut own = Attention { k, text: a.text.clone(), scratch: 0 };
            let dq = own.result("DQ", 0, &[]);
            let tiles = queries.div_ceil(owned);
            let text = warpgroup_text(&own, &[0], columns)
                .number("STAGES", stages as i128)
                .number("CONSUMERS", consumers as i128)
                .number("TILES_T", tiles as i128);
            let source = text.body(include_str!("cuda/attention_wgmma_grad.cu")).entry("attention_wgmma_dq");
            steps.push(step(source, grid(batch * heads * tiles)?, threads, group_shared, with(&[dq])));
        } else if wants(0) {
            let mut own = Attention { k, text: a.text.clone(), scratch: 0 };
            let dq = own.result("DQ", 0, &[]);
            let tiles = queries.div_ceil(side);
            let text = tensor_text(&own, &[0]).number("WARPS", warps as i128).number("BLOCK", block as i128).number("TILES_T", tiles as i128);
            let source = text.body(include_str!("cuda/attention_mma.cu")).entry("attention_mma_dq");
            let shared = (side * (d + e + 16) + 2 * block * (d + e + 16)) * 2;
            steps.push(step(source, grid(batch * heads * tiles)?, 32 * warps as u32, shared, with(&[dq])));
        }
        // Wide heads have too many sums for one pass.
        let passes: &[(bool, bool)] = if d.max(e) <= 128 { &[(true, true)] } else { &[(true, false), (false, true)] };
        for &(dk, dv) in passes {
            let (dk, dv) = (dk && wants(1), dv && wants(2));
            if !dk && !dv {
                continue;
            }
            let mut own = Attention { k, text: a.text.clone(), scratch: 0 };
            let mut results = [operands[0]; 2];
            for (n, (wanted, name)) in [(dk, "DK"), (dv, "DV")].into_iter().enumerate() {
                if wanted {
                    results[n] = own.result(name, n + 1, &[]);
                }
            }
            let written: Vec<usize> = [(dk, 1), (dv, 2)].into_iter().filter(|w| w.0).map(|w| w.1).collect();
            if groups_fit {
                let tiles = keys.div_ceil(owned);
                let text = warpgroup_text(&own, &written, columns)
                    .number("STAGES", stages as i128)
                    .number("CONSUMERS", consumers as i128)
                    .number("TILES_S", tiles as i128)
                    .flag("WANT_DK", dk)
                    .flag("WANT_DV", dv);
                // A result nobody wants has no place: its steps are never used.
                let text = [(dk, "DK"), (dv, "DV")].into_iter().filter(|w| !w.0).fold(text, |text, (_, name)| {
                    AXES.iter().fold(text.number(&format!("{name}_ORIGIN"), 0), |text, axis| text.number(&format!("{name}_{axis}"), 0))
                });
                let source = text.body(include_str!("cuda/attention_wgmma_grad.cu")).entry("attention_wgmma_dkv");
                steps.push(step(source, grid(batch * groups * tiles)?, threads, group_shared, with(&results)));
                continue;
            }
            let tiles = keys.div_ceil(side);
            let text = tensor_text(&own, &written)
                .number("WARPS", warps as i128)
                .number("STEP", block as i128)
                .number("TILES_S", tiles as i128)
                .flag("WANT_DK", dk)
                .flag("WANT_DV", dv)
                .body(include_str!("cuda/attention_mma.cu"));
            let shared = (side * (d + e + 16) + 2 * block * (d + e + 16)) * 2 + 4 * block * 4;
            steps.push(step(text.entry("attention_mma_dkv"), grid(batch * groups * tiles)?, 32 * warps as u32, shared, with(&results)));
        }
        return Ok(Steps { steps, scratch: a.scratch });
    }
    let parts = [("attention_dq", "DQ", heads, queries, d), ("attention_dk", "DX", groups, keys, d), ("attention_dv", "DX", groups, keys, e)];
    for (n, (entry, name, heads, rows, width)) in parts.into_iter().enumerate() {
        if !wants(n) {
            continue;
        }
        let mut own = Attention { k, text: a.text.clone(), scratch: 0 };
        let result = own.result(name, n, &[]);
        let wide = chunk(width, k.dtype);
        let (tiles, chunks) = (rows.div_ceil(64), width.div_ceil(wide));
        let text = plain(&own)
            .number("WIDE", wide as i128)
            .number("CHUNKS", chunks as i128)
            .number(if n == 0 { "TILES_T" } else { "TILES_S" }, tiles as i128)
            .flag("GRADIENT", true)
            .body(include_str!("cuda/attention_plain.cu"));
        steps.push(step(text.entry(entry), grid(batch * heads * tiles * chunks)?, 256, plain_shared(k.dtype), with(&[result])));
    }
    debug_assert!(arith(k.dtype) == "float" || arith(k.dtype) == "double");
    Ok(Steps { steps, scratch: a.scratch })
}
