//! The order of a kernel's loops: which axes make a tile, which are looped over, and how large tiles are.
use kiln_ir::kernel::Fused;
use kiln_ir::{Expr, IDims, Inst};
use smallvec::SmallVec;

/// How a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// No reductions: tiles of kept points.
    Map,
    /// Tiles lie along reduced axes; each kept point is a row that is reduced to a cell.
    Along,
    /// Tiles lie along a kept axis; rows of it are reduced into a vector of accumulators.
    Across,
}

/// Loops over some axes: `(axis, step)`, outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Nest {
    axes: SmallVec<[(usize, usize, usize); 6]>,
    /// Number of iterations.
    pub count: usize,
}

impl Nest {
    fn new(dims: &[usize], axes: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let axes: SmallVec<[(usize, usize, usize); 6]> = axes.into_iter().map(|(axis, step)| (axis, step, dims[axis])).collect();
        let count = axes.iter().map(|&(_, step, size)| size.div_ceil(step)).product();
        Nest { axes, count }
    }

    /// Sets the coordinates of iteration `index`.
    pub fn seek(&self, mut index: usize, coords: &mut [usize]) {
        for &(axis, step, size) in self.axes.iter().rev() {
            let steps = size.div_ceil(step);
            coords[axis] = index % steps * step;
            index /= steps;
        }
    }

    /// Goes to the next iteration; after the last one, to the first.
    #[inline]
    pub fn advance(&self, coords: &mut [usize]) {
        for &(axis, step, size) in self.axes.iter().rev() {
            coords[axis] += step;
            if coords[axis] < size {
                return;
            }
            coords[axis] = 0;
        }
    }
}

/// The loops of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub mode: Mode,
    /// Sizes of the axes: the kernel's, and some of size 1 so that every role is filled.
    pub dims: SmallVec<[usize; 6]>,
    /// How many of `dims` are kept.
    pub kept: usize,
    /// The axis along a tile's rows.
    pub inner: usize,
    /// The axis along a tile's columns.
    pub outer: usize,
    /// The kept axis whose points share a block: `inner` unless the mode is `Along`.
    pub lane: usize,
    /// Largest tile.
    pub rows: usize,
    pub columns: usize,
    /// Kept points of a block along `lane`.
    pub lanes: usize,
    /// Loops over blocks of kept points; for `Map`, over tiles.
    pub blocks: Nest,
    /// Loops over the tiles of a block; for `Along`, of one row.
    pub tiles: Nest,
    /// Reduced points of a row.
    pub row: usize,
}

impl Geometry {
    /// The axis of the kernel that axis `axis` of `dims` is, if any.
    pub fn coefficient(&self, coeffs: &IDims, axis: usize, fused_kept: usize) -> isize {
        // Kept padding axes were inserted after the kernel's kept axes, reduced ones at the end.
        let kernel_axis = if axis < fused_kept {
            axis
        } else if axis < self.kept {
            return 0;
        } else {
            axis - (self.kept - fused_kept)
        };
        coeffs.get(kernel_axis).copied().unwrap_or(0)
    }
}

/// The loops of a prologue or epilogue over `dims`: tiles of the last two axes, at most `tile` elements, wherever the caller asks for them.
pub(super) fn region(dims: &[usize], tile: usize) -> Geometry {
    let mut dims: SmallVec<[usize; 6]> = SmallVec::from_slice(dims);
    while dims.len() < 2 {
        dims.push(1);
    }
    let (outer, inner) = (dims.len() - 2, dims.len() - 1);
    let (blocks, tiles) = (Nest::default(), Nest::default());
    Geometry { mode: Mode::Map, kept: dims.len(), inner, outer, lane: inner, rows: 1, columns: tile, lanes: tile, blocks, tiles, row: 1, dims }
}

/// Above this many reduced points tiles go along them even if that is not the contiguous way to store results.
const SHORT_ROW: usize = 32;

/// How many times longer than others tiles along a reduced axis may be.
const ALONG: usize = 4;

/// Blocks of a column reduction that should exist, if they are not too narrow for that.
const MIN_BLOCKS: usize = 4;

/// How well an axis suits tile rows: how many bytes are moved in order along it.
fn score(expr: &Expr, axis: usize) -> usize {
    let weigh = |coeff: isize| match coeff {
        1 => 4,
        0 => 3,
        _ => 0,
    };
    let loads: usize = expr.loads.iter().map(|l| weigh(l.index.coeffs[axis])).sum();
    let stores: usize = expr.stores.iter().map(|s| weigh(s.index.coeffs[axis]) * 2).sum();
    loads + stores
}

/// Whether an access is contiguous along another axis than `inner` and jumps along it.
fn is_transposed(coeffs: &IDims, inner: usize) -> Option<usize> {
    let jumps = !matches!(coeffs[inner], 0 | 1);
    jumps.then(|| coeffs.iter().position(|&c| c == 1)).flatten()
}

/// Splits `size` into pieces of at most `limit`, as equal as whole steps of 64 allow.
fn balanced(size: usize, limit: usize) -> usize {
    let pieces = size.div_ceil(limit).max(1);
    size.div_ceil(pieces).next_multiple_of(64).min(limit).max(1)
}

/// Chooses the loops of a kernel, with tiles of at most `tile` elements and about `hot` bytes for the rows of a block; each reduced point
/// takes `point` bytes there.
pub(super) fn choose(fused: &Fused, tile: usize, hot: usize, point: usize) -> Geometry {
    let reduces = fused.expr.values.iter().any(|v| matches!(v.inst, Inst::Reduce(..)));
    let mut dims: SmallVec<[usize; 6]> = SmallVec::from_slice(&fused.dims);
    let mut kept = fused.kept;
    let original: SmallVec<[usize; 6]> = (0..dims.len()).collect();
    let (kept_axes, reduced_axes) = original.split_at(kept);
    let long = |axes: &[usize]| -> Option<usize> {
        let best = axes.iter().map(|&a| score(&fused.expr, a)).max()?;
        axes.iter().rev().copied().find(|&a| score(&fused.expr, a) == best && dims[a] > 1).or(axes.last().copied())
    };
    let row: usize = dims[kept..].iter().product();
    if !reduces && row == 1 {
        let inner = long(kept_axes);
        let outer = inner.and_then(|inner| {
            let crossing = fused.expr.loads.iter().filter(|l| l.bounds.is_empty()).find_map(|l| is_transposed(&l.index.coeffs, inner));
            let crossing = crossing.filter(|&a| dims[a] >= 8 && dims[inner] >= 8);
            let before = (0..inner).rev().find(|&a| dims[a] > 1);
            crossing.or(before.filter(|_| dims[inner] <= tile / 2))
        });
        let square = inner.zip(outer).is_some_and(|(i, o)| fused.expr.loads.iter().any(|l| is_transposed(&l.index.coeffs, i) == Some(o)));
        let mut pad = || {
            dims.insert(kept, 1);
            kept += 1;
            kept - 1
        };
        let inner = inner.unwrap_or_else(&mut pad);
        let outer = outer.unwrap_or_else(&mut pad);
        let (rows, columns) = if square {
            let rows = dims[outer].min(32);
            (rows, dims[inner].min((tile / rows).max(1)))
        } else if dims[outer] == 1 {
            (1, balanced(dims[inner], tile))
        } else {
            let columns = dims[inner].max(1);
            (dims[outer].min((tile / columns).max(1)).max(1), columns)
        };
        let grid = (0..dims.len()).filter(|&a| a != inner && a != outer).map(|a| (a, 1));
        // A transposed tile is followed by its neighbour in the source, so that the source is read as many streams.
        let order = if square { [(inner, columns), (outer, rows)] } else { [(outer, rows), (inner, columns)] };
        let blocks = Nest::new(&dims, grid.chain(order));
        return Geometry {
            mode: Mode::Map,
            kept,
            inner,
            outer,
            lane: inner,
            rows,
            columns,
            lanes: columns,
            blocks,
            tiles: Nest::default(),
            row: 1,
            dims,
        };
    }

    let searches = fused.expr.values.iter().any(|v| matches!(v.inst, Inst::Reduce(op, _) if op.is_arg()));
    let best = |axes: &[usize]| axes.iter().filter(|&&a| dims[a] > 1).map(|&a| score(&fused.expr, a)).max().unwrap_or(0);
    let kept_points: usize = dims[..kept].iter().product();
    let across = kept_points > 1 && (best(kept_axes) > best(reduced_axes) || (row <= SHORT_ROW && kept_points >= 64));
    if across {
        let inner = long(kept_axes).expect("a kernel with more than one kept point has a kept axis");
        // Short rows lie side by side in memory: then the tile is a transposed load of whole rows.
        let outer = (kept..dims.len()).rev().find(|&a| dims[a] > 1);
        let outer = outer.unwrap_or_else(|| {
            dims.push(1);
            dims.len() - 1
        });
        // Several passes over a block find it in the second-level cache; a single one may take whole rows.
        let passes = fused.expr.phases().into_iter().max().unwrap_or(0);
        let limit = if passes > 1 { (16 * hot / (row * point).max(1)).clamp(16, tile) } else { tile };
        // A few blocks at least, so that several threads have something to do; a sum's order does not depend on them.
        let others: usize = (0..kept).filter(|&a| a != inner).map(|a| dims[a]).product();
        let share = dims[inner].div_ceil(MIN_BLOCKS.div_ceil(others.max(1))).max(64);
        let columns = balanced(dims[inner], limit.min(share.next_multiple_of(16)));
        let rows = if columns >= 256 { 1 } else { dims[outer].min((tile / columns).max(1)).max(1) };
        let grid = (0..kept).filter(|&a| a != inner).map(|a| (a, 1));
        let blocks = Nest::new(&dims, grid.chain([(inner, columns)]));
        let tiles = Nest::new(&dims, (kept..dims.len()).map(|a| (a, if a == outer { rows } else { 1 })));
        return Geometry { mode: Mode::Across, kept, inner, outer, lane: inner, rows, columns, lanes: columns, blocks, tiles, row, dims };
    }

    // A row reduced right from memory takes no scratch memory: its tiles may be longer.
    let tile = tile * ALONG;
    let inner = if searches { reduced_axes.last().copied() } else { long(reduced_axes) };
    let mut inner = inner;
    let lane = (0..kept).rev().find(|&a| dims[a] > 1);
    let lane = lane.unwrap_or_else(|| {
        dims.insert(kept, 1);
        kept += 1;
        inner = inner.map(|a| a + 1);
        kept - 1
    });
    let inner = inner.unwrap_or_else(|| {
        dims.push(1);
        dims.len() - 1
    });
    let before = (kept..inner).rev().find(|&a| dims[a] > 1).filter(|_| dims[inner] <= tile / 2);
    let outer = before.unwrap_or_else(|| {
        // An axis of size 1 in front of `inner`, so that tiles follow the order of the axes.
        dims.push(1);
        dims.len() - 1
    });
    let columns = if dims[outer] > 1 { dims[inner] } else { balanced(dims[inner], tile) };
    let rows = dims[outer].min((tile / columns.max(1)).max(1)).max(1);
    // Short rows share the work on kept values; long ones are followed through all passes one by one.
    let lanes = dims[lane].min((tile / row.max(1)).clamp(1, 64)).max(1);
    let blocks = Nest::new(&dims, (0..kept).map(|a| (a, if a == lane { lanes } else { 1 })));
    let step = |a: usize| match a {
        a if a == inner => columns,
        a if a == outer => rows,
        _ => 1,
    };
    let tiles = Nest::new(&dims, (kept..dims.len()).map(|a| (a, step(a).max(1))));
    Geometry { mode: Mode::Along, kept, inner, outer, lane, rows, columns: columns.max(1), lanes, blocks, tiles, row, dims }
}
