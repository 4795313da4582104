//! Writes by index: atomic where order cannot matter, else by owners of the destinations that meet their values in row-major order.
use kiln_ir::dims::{numel, row_major};
use kiln_ir::kernel::ScatterKernel;
use kiln_ir::{DType, Program, RuntimeError, ScatterOp};

use super::template::{Text, arith, arith_size, blocks, element, is_wide, origin, step};
use super::walk::Walk;
use crate::steps::{Chip, Param, Steps};

/// From this number of lines on, or a thirty-second of it when they are short, one thread walks a line.
const MANY_LINES: usize = 16 << 10;

/// The steps of a kernel. The result does not depend on the order in which threads run.
///
/// # Errors
/// None: every scatter has a rendering.
pub fn render(k: &ScatterKernel, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let (out_len, a) = (numel(&k.out_dims), k.axis);
    if out_len == 0 {
        return Ok(Steps::default());
    }
    let given = if k.dims.contains(&0) { 0 } else { k.dims[a] };
    let (outer, inner, rows) = (numel(&k.out_dims[..a]), numel(&k.out_dims[a + 1..]), k.out_dims[a]);
    let walk = |from: usize, to: usize| Walk::new(&k.dims[from..to], [&k.index_index.coeffs[from..to], &k.values_index.coeffs[from..to]]);
    let (before, after) = (walk(0, a), walk(a + 1, k.dims.len()));
    // The result is walked densely: the indexed operands have its sizes off the axis.
    debug_assert_eq!(row_major(&k.out_dims)[a], inner as isize);
    let index = program.buf(k.index).dtype;
    let op = match k.op {
        ScatterOp::Assign => 0,
        ScatterOp::Add => 1,
        ScatterOp::Mul => 2,
        ScatterOp::Max => 3,
        ScatterOp::Min => 4,
    };
    let text = Text::new(is_wide(&[out_len, program.buf(k.index).len, program.buf(k.values).len, outer * given * inner]))
        .kind("T", element(k.dtype))
        .kind("I", if index == DType::Bool { "u8" } else { element(index) })
        .number("OP", op)
        .number("AXIS", a as i128)
        .number("OUTER", outer as i128)
        .number("INNER", inner as i128)
        .number("ROWS", rows as i128)
        .number("GIVEN", given as i128)
        .number("OUT_LEN", out_len as i128)
        .number("INDEX_STEP", k.index_index.coeffs[a] as i128)
        .number("VALUES_STEP", k.values_index.coeffs[a] as i128)
        .flag("HAS_BASE", k.base.is_some())
        .define("INDEX_ORIGIN", &origin(&k.index_index, 1))
        .define("VALUES_ORIGIN", &origin(&k.values_index, 1))
        .define("OUTER_WALK", &before.print(["which", "from"]))
        .define("INNER_WALK", &after.print(["which", "from"]));
    let body = include_str!("cuda/scatter.cu");
    let base = Param::Buf(k.base.unwrap_or(k.out));
    let source = [Param::Buf(k.index), Param::Buf(k.values)];
    let free = match k.op {
        ScatterOp::Assign => false,
        ScatterOp::Add | ScatterOp::Mul => !k.dtype.is_float(),
        ScatterOp::Max | ScatterOp::Min => true,
    };
    if free && given > 0 {
        let text = text.kind("S", element(k.dtype)).body(body);
        let mut steps = Steps::default();
        if k.base.is_none_or(|b| program.buf(b).place != program.buf(k.out).place) {
            steps.steps.push(step(text.entry("start"), blocks(out_len, 256, chip), 256, 0, vec![base, Param::Buf(k.out)]));
        }
        let params = vec![source[0], source[1], Param::Buf(k.out), Param::Args, Param::Fault];
        steps.steps.push(step(text.entry("atomics"), blocks(outer * given * inner, 256, chip), 256, 0, params));
        return Ok(steps);
    }
    if given == 0 || outer * inner >= MANY_LINES || (outer * inner >= MANY_LINES / 32 && given <= 256) {
        let half = matches!(k.dtype, DType::F16 | DType::BF16);
        let text = text.kind("S", arith(k.dtype)).body(body);
        let to = if half { Param::Scratch(0) } else { Param::Buf(k.out) };
        let everywhere = blocks(out_len, 256, chip);
        let mut steps = Steps { steps: vec![step(text.entry("start"), everywhere, 256, 0, vec![base, to])], scratch: 0 };
        if given > 0 {
            let params = vec![source[0], source[1], to, Param::Args, Param::Fault];
            steps.steps.push(step(text.entry("lines"), blocks(outer * inner, 256, chip), 256, 0, params));
        }
        if half {
            steps.steps.push(step(text.entry("finish"), everywhere, 256, 0, vec![to, Param::Buf(k.out)]));
            steps.scratch = out_len * 4;
        }
        return Ok(steps);
    }
    // Owners. Where the index is constant after the axis a row of the result is taken as one, else every column is a line.
    let whole = after.strides.iter().all(|s| s[0] == 0);
    let (cols, line_cols) = if whole { (inner, 1) } else { (1, inner) };
    let size = arith_size(k.dtype);
    let room = (chip.shared_limit / 2).min(96 << 10) - 9 * 1024;
    let part_cols = cols.min(1024);
    // Enough blocks to fill the machine, as long as a part has a few rows.
    let col_parts = cols.div_ceil(part_cols);
    let lines = outer * line_cols * col_parts;
    let wanted = (2 * chip.multiprocessors as usize).div_ceil(lines);
    let part_rows = (room / (part_cols * size)).min(rows.div_ceil(wanted).max(4)).clamp(1, rows);
    let row_parts = rows.div_ceil(part_rows);
    // Threads that share a row: a power of two.
    let lanes = part_cols.next_power_of_two().min(256);
    let text = text
        .kind("S", arith(k.dtype))
        .number("COLS", cols as i128)
        .number("LINE_COLS", line_cols as i128)
        .number("PART_ROWS", part_rows as i128)
        .number("PART_COLS", part_cols as i128)
        .number("ROW_PARTS", row_parts as i128)
        .number("COL_PARTS", col_parts as i128)
        .number("LANES", lanes as i128)
        .number("GROUPS", 256 / lanes as i128);
    let shared = (part_rows * part_cols + 3) * size + 2 * 4 * 1024 + 64;
    let grid =
        |segments: usize| u32::try_from(lines * row_parts * segments).map_err(|_| RuntimeError::Unsupported("a scatter over too many lines".into()));
    // Sums over many values for few rows: segments of the values have their own sums, which are added in order.
    let segments = if k.op == ScatterOp::Add { (2 * chip.multiprocessors as usize / (lines * row_parts)).min(given / 256).min(64) } else { 1 };
    if segments > 1 && out_len * segments <= 1 << 24 {
        let text = text.number("SEGMENTS", segments as i128).number("SEGMENT", given.div_ceil(segments) as i128).body(body);
        let first = vec![source[0], source[1], base, Param::Scratch(0), Param::Args, Param::Fault];
        let second = vec![base, Param::Scratch(0), Param::Buf(k.out)];
        let steps = vec![
            step(text.entry("owners"), grid(segments)?, 256, shared, first),
            step(text.entry("segments"), blocks(out_len, 256, chip), 256, 0, second),
        ];
        return Ok(Steps { steps, scratch: out_len * segments * size });
    }
    let text = text.number("SEGMENTS", 1).number("SEGMENT", given as i128).body(body);
    let params = vec![source[0], source[1], base, Param::Buf(k.out), Param::Args, Param::Fault];
    Ok(Steps::one(step(text.entry("owners"), grid(1)?, 256, shared, params)))
}
