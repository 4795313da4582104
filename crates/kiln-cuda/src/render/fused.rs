//! Fused kernels: which rendering a loop nest gets.
use std::sync::Arc;

use kiln_ir::expr::Level;
use kiln_ir::kernel::Fused;
use kiln_ir::{Program, RuntimeError};

use super::elementwise::{self, Elementwise};
use super::nest::Nest;
use super::reduction::{self, Loops};
use super::rows::{self, Rows};
use super::signature::Signature;
use super::tile;
use crate::steps::{Chip, Param, Source, Step, Steps};

/// The steps of a fused kernel: none for an empty one.
///
/// # Errors
/// None today; the signature is that of every family.
pub fn render(f: &Fused, program: &Program, chip: &Chip) -> Result<Steps, RuntimeError> {
    Ok(render_nest(Nest::new(f), program, chip))
}

/// What a nest is walked as.
enum Shape {
    /// Nothing is computed.
    Empty,
    /// No reductions.
    Points(Nest),
    /// Neighbouring elements lie along kept points.
    Columns(Nest),
    /// Neighbouring elements lie along reduced points.
    Rows(Nest),
}

fn shape(nest: Nest, program: &Program) -> Shape {
    if nest.kept_points() == 0 || nest.expr.stores.is_empty() {
        return Shape::Empty;
    }
    let kept_store = nest.expr.stores.iter().any(|s| nest.expr.value(s.value).level != Level::Full);
    if nest.kept == nest.dims.len() || (!nest.reduces() && !kept_store) {
        if nest.reduced_points() == 0 {
            return Shape::Empty;
        }
        return Shape::Points(Nest { kept: nest.dims.len(), ..nest });
    }
    let best = |range: std::ops::Range<usize>| range.map(|d| (nest.weight(program, d), d)).max_by_key(|(w, d)| (*w, *d));
    let (kept, reduced) = (best(0..nest.kept).unwrap_or((0, 0)), best(nest.kept..nest.dims.len()).unwrap_or((0, 0)));
    if kept.0 > reduced.0 {
        return Shape::Columns(nest.with_last(kept.1));
    }
    Shape::Rows(nest.with_last(reduced.1))
}

/// The steps of a nest.
pub fn render_nest(nest: Nest, program: &Program, chip: &Chip) -> Steps {
    match shape(nest, program) {
        Shape::Empty => Steps::default(),
        Shape::Points(flat) => match tile::render(&flat, program) {
            Some(steps) => steps,
            None => elementwise::render(flat, program, chip),
        },
        Shape::Columns(nest) => reduction::columns(nest, program, chip),
        Shape::Rows(nest) => match rows::render(&nest, program) {
            Some(steps) => steps,
            None => reduction::rows(nest, program, chip),
        },
    }
}

/// Threads of a block that runs pieces.
pub const PIECE_BLOCK: usize = 256;

/// A kernel that can share a launch with others: blocks of [`PIECE_BLOCK`] threads.
pub enum Piece {
    /// No reductions.
    Points(Elementwise),
    /// Rows in registers.
    Row(Rows),
    /// Rows or columns in loops.
    Loops(Loops),
}

impl Piece {
    /// A kernel as a piece, if it is one.
    pub fn of(f: &Fused, program: &Program, chip: &Chip) -> Option<Self> {
        match shape(Nest::new(f), program) {
            Shape::Points(flat) if tile::render(&flat, program).is_none() => Some(Piece::Points(Elementwise::plan(flat, program, chip))),
            Shape::Rows(nest) => match Rows::plan(&nest, program, false) {
                Some(rows) => (rows.block() <= PIECE_BLOCK).then_some(Piece::Row(rows)),
                None => {
                    let loops = reduction::row_loops(nest, program, chip);
                    (loops.block() == PIECE_BLOCK && loops.is_whole()).then_some(Piece::Loops(loops))
                }
            },
            Shape::Columns(nest) => {
                let loops = reduction::column_loops(nest, program, chip);
                loops.is_whole().then_some(Piece::Loops(loops))
            }
            Shape::Empty | Shape::Points(_) => None,
        }
    }

    /// A kernel of a single row as a piece that spreads over a whole block, if it is one.
    pub fn single_row(f: &Fused, program: &Program) -> Option<Self> {
        match shape(Nest::new(f), program) {
            Shape::Rows(nest) if nest.kept_points() == 1 => {
                let rows = Rows::plan(&nest, program, true)?;
                (rows.block() <= PIECE_BLOCK).then_some(Piece::Row(rows))
            }
            _ => None,
        }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        match self {
            Piece::Points(p) => p.blocks(),
            Piece::Row(r) => r.blocks(PIECE_BLOCK),
            Piece::Loops(l) => l.blocks(),
        }
    }

    /// Bytes of shared memory of a block.
    pub fn shared(&self) -> usize {
        match self {
            Piece::Points(_) => 0,
            Piece::Row(_) => 1024,
            Piece::Loops(l) => l.shared(),
        }
    }

    /// Whether indices need 64 bits.
    pub fn is_wide(&self, program: &Program) -> bool {
        match self {
            Piece::Points(p) => p.is_wide(program),
            Piece::Row(r) => r.is_wide(program),
            Piece::Loops(l) => l.is_wide(program),
        }
    }

    /// The text of a block.
    pub fn body(&self, sig: &mut Signature<'_>) -> String {
        match self {
            Piece::Points(p) => p.body(sig),
            Piece::Row(r) => r.body(sig, PIECE_BLOCK),
            Piece::Loops(l) => l.body(sig),
        }
    }
}

/// One launch of several tasks side by side; the pieces of a task follow each other, and a task of several pieces is a single block.
pub fn together(tasks: &[Vec<&Piece>], program: &Program) -> Steps {
    let mut sig = Signature::new(program);
    sig.wide = tasks.iter().flatten().any(|p| p.is_wide(program));
    let (mut s, mut first) = (String::new(), 0);
    for task in tasks {
        let blocks = task.iter().map(|p| p.blocks()).max().unwrap_or(0);
        let end = first + blocks;
        s += &format!("if (bid < {end}) {{\n{{\n");
        let inner = task.iter().map(|p| format!("const unsigned block = bid - {first}, bid = block;\n{}", p.body(&mut sig)));
        s += &inner.collect::<Vec<_>>().join("}\n__syncthreads();\n{\n").replace("const unsigned block = bid - 0, bid = block;\n", "");
        s += "}\nreturn;\n}\n";
        first = end;
    }
    Steps::one(step(sig.finish("together", PIECE_BLOCK as u32, &s), [first as u32, 1, 1], PIECE_BLOCK as u32))
}

/// A step over `grid` blocks in one dimension.
pub(super) fn step((source, params): (Source, Vec<Param>), grid: [u32; 3], block: u32) -> Step {
    Step { source: Arc::new(source), grid, block: [block, 1, 1], shared: 0, params }
}
