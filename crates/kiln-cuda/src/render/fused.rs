//! Fused kernels: which rendering a loop nest gets.
use std::sync::Arc;

use kiln_ir::expr::Level;
use kiln_ir::kernel::Fused;
use kiln_ir::{Program, RuntimeError};

use super::nest::Nest;
use super::{elementwise, reduction, rows, tile};
use crate::steps::{Chip, Param, Source, Step, Steps};

/// The steps of a fused kernel: none for an empty one.
///
/// # Errors
/// None today; the signature is that of every family.
pub fn render(f: &Fused, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    Ok(render_nest(Nest::new(f), program, chip))
}

/// The steps of a nest.
pub fn render_nest(nest: Nest, program: &Program, chip: &Chip) -> Steps {
    if nest.kept_points() == 0 || nest.expr.stores.is_empty() {
        return Steps::default();
    }
    let kept_store = nest.expr.stores.iter().any(|s| nest.expr.value(s.value).level != Level::Full);
    if nest.kept == nest.dims.len() || (!nest.reduces() && !kept_store) {
        if nest.reduced_points() == 0 {
            return Steps::default();
        }
        let flat = Nest { kept: nest.dims.len(), ..nest };
        return match tile::render(&flat, program) {
            Some(steps) => steps,
            None => elementwise::render(flat, program, chip),
        };
    }
    let best = |range: std::ops::Range<usize>| range.map(|d| (nest.weight(program, d), d)).max_by_key(|(w, d)| (*w, *d));
    let (kept, reduced) = (best(0..nest.kept).unwrap_or((0, 0)), best(nest.kept..nest.dims.len()).unwrap_or((0, 0)));
    if kept.0 > reduced.0 {
        return reduction::columns(nest.with_last(kept.1), program, chip);
    }
    let nest = nest.with_last(reduced.1);
    match rows::render(&nest, program) {
        Some(steps) => steps,
        None => reduction::rows(nest, program, chip),
    }
}

/// A step over `grid` blocks in one dimension.
pub(super) fn step((source, params): (Source, Vec<Param>), grid: [u32; 3], block: u32) -> Step {
    Step { source: Arc::new(source), grid, block: [block, 1, 1], shared: 0, params }
}
