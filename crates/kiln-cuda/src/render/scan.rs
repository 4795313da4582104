//! Running reductions: blocks along dense lines, threads along strided ones; long lines are cut into chunks that are scanned in three steps.
use kiln_ir::kernel::ScanKernel;
use kiln_ir::{Program, RuntimeError, ScanOp};

use super::template::{Text, arith_size, blocks, element, is_wide, step};
use crate::steps::{Chip, Param, Steps};

/// The steps of a kernel.
///
/// # Errors
/// None: every scan has a rendering.
pub fn render(k: &ScanKernel, _: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let [outer, n, inner] = k.dims;
    let len = outer * n * inner;
    if len == 0 {
        return Ok(Steps::default());
    }
    let dense = inner == 1;
    let lines = outer * inner;
    // Chunks fill the machine when lines alone don't. Their number depends on the sizes only as far as sums of floats go.
    let (shortest, wanted) = if dense { (4096, 512) } else { (64, 64 << 10) };
    let mut chunks = if lines >= wanted { 1 } else { (n / shortest).min(wanted / lines).max(1) };
    let mut chunk = n.div_ceil(chunks);
    if dense {
        chunk = chunk.next_multiple_of(1024);
    }
    chunks = n.div_ceil(chunk);
    let op = match k.op {
        ScanOp::Sum => 0,
        ScanOp::Prod => 1,
        ScanOp::Max => 2,
        ScanOp::Min => 3,
    };
    let text = Text::new(is_wide(&[len]))
        .kind("T", element(k.dtype))
        .number("OP", op)
        .number("OUTER", outer as i128)
        .number("LENGTH", n as i128)
        .number("INNER", inner as i128)
        .number("CHUNK", chunk as i128)
        .number("CHUNKS", chunks as i128)
        .body(include_str!("cuda/scan.cu"));
    let size = arith_size(k.dtype);
    let (totals, x, out) = (Param::Scratch(0), Param::Buf(k.x), Param::Buf(k.out));
    let (entries, grid, threads, shared) = if dense {
        let grid = u32::try_from(outer * chunks).map_err(|_| RuntimeError::Unsupported("a scan of too many lines".into()))?;
        (["row_totals", "row_scan"], grid, 256, 8 * size.max(4))
    } else {
        (["column_totals", "column_scan"], blocks(lines * chunks, 128, chip), 128, 0)
    };
    let mut steps = Steps::default();
    if chunks > 1 {
        steps.steps.push(step(text.entry(entries[0]), grid, threads, shared, vec![x, totals]));
        steps.steps.push(step(text.entry("lead"), blocks(lines, 128, chip), 128, 0, vec![totals]));
        steps.scratch = lines * chunks * size;
    }
    steps.steps.push(step(text.entry(entries[1]), grid, threads, shared, vec![x, out, totals]));
    Ok(steps)
}
