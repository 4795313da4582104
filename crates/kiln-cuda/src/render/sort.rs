//! Stable sorts: bitonic in shared memory for short lines, then merges along diagonals for long ones (Green et al., "GPU merge path", 2012).
use kiln_ir::kernel::SortKernel;
use kiln_ir::{DType, Program, RuntimeError};

use super::template::{Text, blocks, element, is_wide, step};
use crate::steps::{Chip, Param, Steps};

/// Words sorted in shared memory by a block.
const BLOCK: usize = 2048;

/// The steps of a kernel.
///
/// # Errors
/// [`RuntimeError::Unsupported`] for lines of 2^32 elements or more.
pub fn render(k: &SortKernel, _: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    let [outer, n, inner] = k.dims;
    let len = outer * n * inner;
    if len == 0 || (k.values.is_none() && k.indices.is_none()) {
        return Ok(Steps::default());
    }
    if n >= u32::MAX as usize {
        return Err(RuntimeError::Unsupported("a sort of lines of 2^32 elements".into()));
    }
    let lines = outer * inner;
    let tile = n.next_power_of_two().clamp(2, BLOCK);
    let line_tiles = n.div_ceil(tile);
    let block_lines = if line_tiles == 1 { (BLOCK / tile).min(lines.div_ceil(chip.multiprocessors as usize)).max(1) } else { 1 };
    let word = if matches!(k.dtype, DType::F64 | DType::I64 | DType::U64) { 16 } else { 8 };
    let threads = n.div_ceil(8);
    let text = Text::new(is_wide(&[len]))
        .kind("T", element(k.dtype))
        .flag("DESCENDING", k.descending)
        .flag("HAS_VALUES", k.values.is_some())
        .flag("HAS_INDICES", k.indices.is_some())
        .number("LINES", lines as i128)
        .number("LENGTH", n as i128)
        .number("INNER", inner as i128)
        .number("TILE", tile as i128)
        .number("LINE_TILES", line_tiles as i128)
        .number("BLOCK_LINES", block_lines as i128)
        .number("THREADS", threads as i128)
        .body(include_str!("cuda/sort.cu"));
    // A result nobody wants is never written: any pointer will do.
    let values = Param::Buf(k.values.unwrap_or(k.x));
    let indices = Param::Buf(k.indices.unwrap_or(k.x));
    let x = Param::Buf(k.x);
    let runs = lines * line_tiles;
    let grid = u32::try_from(runs.div_ceil(block_lines)).map_err(|_| RuntimeError::Unsupported("a sort of too many lines".into()))?;
    let half = (len * word).next_multiple_of(256);
    let (mut from, mut to) = (Param::Scratch(0), Param::Scratch(half));
    let mut steps =
        Steps { steps: vec![step(text.entry("tiles"), grid, 256, block_lines * tile * word, vec![x, values, indices, from])], scratch: 0 };
    let mut run = tile;
    while run < n {
        let params = vec![from, to, x, values, indices, Param::U64(run as u64)];
        steps.steps.push(step(text.entry("merge"), blocks(lines * threads, 256, chip), 256, 0, params));
        (from, to) = (to, from);
        run *= 2;
        steps.scratch = 2 * half;
    }
    Ok(steps)
}
