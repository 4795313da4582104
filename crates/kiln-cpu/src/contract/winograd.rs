//! Convolutions of 3×3 windows at a step of one by Winograd's minimal filtering F(2×2, 3×3): 16 products for four sums instead of 36.
//!
//! A tile of 2×2 results reads 4×4 inputs. Inputs and weights are transformed by additions alone (and exact halvings), multiplied
//! element by element and summed over the channels, 16 matrix products for all tiles together, and the sums transformed back
//! (A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016). Rounding errors stay within a few times
//! those of the plain sum. Where an infinity or NaN takes part the differences would spread it over its tile, so a block that
//! ends with one is computed again in the plain way.

use super::engine::each;
use super::implicit::{Convolution, Shared, emit, pack_panel, plain_block, width};
use super::lane::{Element, Lane};
use super::micro::{Kernels, Scalar, Tile};
use super::operand::copy;
use super::pack::Copy;
use super::parallel::ParallelFor;
use super::region::{Layout, Positions};
use super::scratch::Scratch;

/// Products of a tile.
const POINTS: usize = 16;
/// Transformed inputs that a block should have, in elements.
const BLOCK: usize = 192 << 10;
/// Tiles of a block, at least and at most.
const TILES: (usize, usize) = (64, 256);

/// Channels of input and result from which the transforms are worth their cost,
const CHANNELS: usize = 16;
/// and tiles that share one transform of the weights.
const SHARING: usize = 32;

/// Whether a convolution is one that this module computes. Depends on its sizes alone.
pub(crate) fn applies<E: Scalar>(job: &Convolution<'_, E>) -> bool {
    let [deep, axes @ ..] = &job.images.axes;
    let flat = deep.taps == 1 && deep.positions == 1 && deep.start == 0;
    let windows = axes.iter().all(|axis| axis.taps == 3 && axis.step == 1 && axis.tap_step.abs() == 1) && axes[0].tap_step == axes[1].tap_step;
    let tiles: usize = axes.iter().map(|axis| axis.positions.div_ceil(2)).product();
    E::HALF != E::ZERO && flat && windows && job.images.channels >= CHANNELS && job.rows >= 2 * CHANNELS && tiles * job.images.count >= SHARING
}

/// Computes a convolution that [`applies`].
///
/// # Safety
/// As for `contract`.
pub(crate) unsafe fn convolve<E: Scalar>(job: &Convolution<'_, E>, pool: &dyn ParallelFor) {
    let kernels = E::kernels();
    let (nr, channels) = (width(kernels, job.rows), job.images.channels);
    let panels = job.rows.div_ceil(nr);
    let size = POINTS * channels * nr;
    let transform = |panel: usize, group: usize, dst: *mut E| {
        let held = Scratch::take(9 * channels * nr * size_of::<E>());
        let taps = held.ptr();
        let flip = job.images.axes[1].tap_step < 0;
        // SAFETY: the scratch holds the packed taps of a panel, and the caller gives room for it transformed.
        unsafe {
            pack_panel(job, nr, panel, group, 0..9 * channels, taps);
            (kernels.winograd_weights)(&Weights { taps, flip, channels, width: nr, to: dst });
        }
    };
    let all = |to: Shared<E>| each(pool, job.groups * panels, 4 * size, &|i| transform(i % panels, i / panels, to.at(i * size)));
    let kept = job.packed.and_then(|packed| packed.get([nr, job.rows, POINTS * channels, job.groups, size_of::<E>()], |to| all(Shared(to.cast()))));
    let fresh = Scratch::take(if kept.is_none() { job.groups * panels * size * size_of::<E>() } else { 0 });
    let weights: Shared<E> = Shared(kept.as_ref().map_or(fresh.ptr(), |copy| copy.as_ptr().cast()));
    if kept.is_none() {
        all(Shared(weights.at(0)));
    }

    let tiles = (BLOCK / (POINTS * channels)).clamp(TILES.0, TILES.1);
    let layout = Layout::paired(job.images, 4 * tiles, pool.threads());
    // Panels are shared out too if there are few blocks.
    let blocks = job.groups * layout.blocks();
    let wanted = if pool.threads() == 1 { 1 } else { 2 * pool.threads() };
    let share = panels.div_ceil(wanted.div_ceil(blocks).clamp(1, panels));
    let shares = panels.div_ceil(share);
    let work = layout.most() * share * nr * channels * 4;
    each(pool, blocks * shares, work, &|i| {
        let (block, first) = (i / shares, i % shares * share);
        let (group, block) = (block / layout.blocks(), layout.block(block % layout.blocks()));
        let unit = Unit { job, kernels, layout: &layout, group, block };
        // SAFETY: as the caller's; blocks and panels are disjoint.
        unsafe { unit.run(first..(first + share).min(panels), weights.at(group * panels * size)) };
    });
}

/// A block of positions and some panels of the weights.
struct Unit<'a, E: Scalar> {
    job: &'a Convolution<'a, E>,
    kernels: &'static Kernels<E>,
    layout: &'a Layout<E>,
    group: usize,
    block: Positions,
}

impl<E: Scalar> Unit<'_, E> {
    /// Computes the panels `panels`; `weights` are the group's, transformed.
    unsafe fn run(&self, panels: core::ops::Range<usize>, weights: *const E) {
        let (job, kernels) = (self.job, self.kernels);
        let (mr, nr, lanes, channels) = (kernels.mr, width(kernels, job.rows), kernels.lanes, job.images.channels);
        let (images, rows, cols) = (self.block.images.len(), self.block.rows.len(), job.images.axes[2].positions);
        let (down, across) = (rows.div_ceil(2), cols.div_ceil(2));
        let tiles = images * down * across;
        let padded = channels.next_multiple_of(lanes);
        let image = (2 * down + 2) * (2 * across + 2) * lanes;
        // Planes lie apart by a little more than they need, lest all their rows compete for the same lines of a cache.
        let (plane, sums) = (tiles * padded + 2 * lanes, tiles * nr + 2 * lanes);
        let positions = images * rows * cols;
        let parts = [padded / lanes * images * image, POINTS * plane, POINTS * sums, positions * nr, positions * nr];
        let held = Scratch::take(parts.iter().map(|part| part.next_multiple_of(16)).sum::<usize>() * size_of::<E>());
        let mut at = held.ptr::<E>();
        let [x, v, m, c, turned] = parts.map(|part| {
            let here = at;
            at = at.wrapping_add(part.next_multiple_of(16));
            here
        });
        // SAFETY: the scratch holds all five parts; as the caller's.
        unsafe {
            self.gather(x, image);
            for part in 0..padded / lanes {
                for i in 0..images {
                    let first = v.add(i * down * across * padded + part * lanes);
                    let x = x.add((part * images + i) * image);
                    (kernels.winograd_inputs)(&Inputs { x, down, across, to: first, plane, step: padded });
                }
            }
            for panel in panels {
                let cols_used = nr.min(job.rows - panel * nr);
                for point in 0..POINTS {
                    let b = weights.add((panel * POINTS + point) * channels * nr);
                    for i in (0..tiles).step_by(mr) {
                        let tile = Tile {
                            k: channels,
                            a: v.add(point * plane + i * padded),
                            a_row: padded as isize,
                            a_k: 1,
                            b,
                            b_k: nr as isize,
                            from: core::ptr::null(),
                            from_row: nr as isize,
                            to: m.add(point * sums + i * nr),
                            to_row: nr as isize,
                            cols: nr,
                        };
                        kernels.pick(mr.min(tiles - i), nr, false)(&tile);
                    }
                }
                let mut finite = true;
                for i in 0..images {
                    let sums_of = m.add(i * down * across * nr);
                    let to = c.add(i * rows * cols * nr);
                    finite &= (kernels.winograd_results)(&Results { sums: sums_of, plane: sums, width: nr, rows, cols, to });
                }
                if finite {
                    emit(job, kernels, self.group, &self.block, panel * nr, cols_used, 0..positions, c, turned);
                } else {
                    plain_block(job, kernels, self.layout, self.group, &self.block, panel);
                }
            }
        }
    }

    /// Copies the inputs of the block with their padding, channels of a register side by side: `[register][image][row][column][channel]`.
    unsafe fn gather(&self, x: *mut E, image: usize) {
        let (job, lanes) = (self.job, self.kernels.lanes);
        let (images, channels) = (self.block.images.len(), job.images.channels);
        let [_, down, across] = &job.images.axes;
        let first = |axis: &super::window::Axis| axis.start + (2 * axis.tap_step).min(0);
        let (rows, cols) = (2 * self.block.rows.len().div_ceil(2) + 2, 2 * across.positions.div_ceil(2) + 2);
        let left = (-first(across)).clamp(0, cols as isize) as usize;
        let right = (across.size as isize - first(across)).clamp(left as isize, cols as isize) as usize;
        let source = job.images.ptr.wrapping_offset(self.group as isize * job.group);
        // SAFETY: as the caller's of `run`; every row is inside the image or cleared.
        unsafe {
            for i in 0..images {
                let source = source.wrapping_offset((self.block.images.start + i) as isize * job.images.image);
                for r in 0..rows {
                    let y = first(down) + (self.block.rows.start + r) as isize;
                    let inside = y >= 0 && y < down.size as isize;
                    let (from, to) = if inside { (left, right) } else { (0, 0) };
                    for part in 0..channels.div_ceil(lanes) {
                        let row = x.add((part * images + i) * image + r * cols * lanes);
                        row.write_bytes(0, from * lanes);
                        row.add(to * lanes).write_bytes(0, (cols - to) * lanes);
                    }
                    if from < to {
                        let src = source.wrapping_offset(y * down.stride + (first(across) + from as isize) * across.stride);
                        copy(
                            self.kernels,
                            &Copy {
                                src,
                                outer: job.images.channel,
                                inner: across.stride,
                                len: channels,
                                k: to - from,
                                dst: x.add(i * image + (r * cols + from) * lanes),
                                width: lanes,
                                panel: images * image,
                                lead: 0,
                            },
                        );
                    }
                }
            }
        }
    }
}

/// A panel of weights to transform: `[channel][tap][width]` to `[point][channel][width]`.
pub(crate) struct Weights<E> {
    taps: *const E,
    /// The taps come in falling order.
    flip: bool,
    channels: usize,
    width: usize,
    to: *mut E,
}

/// Images to transform, of one register of channels: `[row][column][channel]` to 16 planes of tiles `step` apart.
pub(crate) struct Inputs<E> {
    x: *const E,
    /// Tiles.
    down: usize,
    across: usize,
    to: *mut E,
    plane: usize,
    step: usize,
}

/// Sums of one image to transform back: 16 planes of tiles to `[row][column][width]`.
pub(crate) struct Results<E> {
    sums: *const E,
    plane: usize,
    width: usize,
    /// Positions of the result.
    rows: usize,
    cols: usize,
    to: *mut E,
}

/// `a - b`.
#[inline(always)]
unsafe fn minus<V: Lane>(a: V, b: V) -> V {
    // SAFETY: as the caller's: the features of `V` are enabled.
    unsafe { b.fma(V::splat(V::E::MINUS), a) }
}

/// Transforms a panel of weights: `G g Gᵀ`.
///
/// # Safety
/// Both sides hold the panel, whose width is a multiple of the register, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn weights<V: Lane>(job: &Weights<V::E>) {
    let plane = job.channels * job.width;
    // SAFETY: as the caller's.
    unsafe {
        let half = V::splat(V::E::HALF);
        let spread = |g: [V; 3]| {
            let outer = g[0].add(g[2]).fma(half, V::zero());
            [g[0], g[1].fma(half, outer), minus(outer, g[1].fma(half, V::zero())), g[2]]
        };
        for c in 0..job.channels {
            for o in (0..job.width).step_by(V::N) {
                let mut g = [[V::zero(); 3]; 3];
                for t in 0..9 {
                    let tap = if job.flip { 8 - t } else { t };
                    g[t / 3][t % 3] = V::load(job.taps.add((c * 9 + tap) * job.width + o));
                }
                let columns: [[V; 4]; 3] = core::array::from_fn(|j| spread([g[0][j], g[1][j], g[2][j]]));
                for i in 0..4 {
                    let row = spread([columns[0][i], columns[1][i], columns[2][i]]);
                    for (j, u) in row.into_iter().enumerate() {
                        u.store(job.to.add((4 * i + j) * plane + c * job.width + o));
                    }
                }
            }
        }
    }
}

/// Transforms an image: `Bᵀ d B` for each tile.
///
/// # Safety
/// The image has its padding, the planes have room for all tiles, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn inputs<V: Lane>(job: &Inputs<V::E>) {
    let row = (2 * job.across + 2) * V::N;
    // SAFETY: as the caller's.
    unsafe {
        let spread = |d: [V; 4]| [minus(d[0], d[2]), d[1].add(d[2]), minus(d[2], d[1]), minus(d[1], d[3])];
        for y in 0..job.down {
            for x in 0..job.across {
                let from = job.x.add(2 * y * row + 2 * x * V::N);
                let to = job.to.add((y * job.across + x) * job.step);
                let columns: [[V; 4]; 4] = core::array::from_fn(|j| spread(core::array::from_fn(|i| V::load(from.add(i * row + j * V::N)))));
                for i in 0..4 {
                    let values = spread(core::array::from_fn(|j| columns[j][i]));
                    for (j, value) in values.into_iter().enumerate() {
                        value.store(to.add((4 * i + j) * job.plane));
                    }
                }
            }
        }
    }
}

/// Transforms sums back: `Aᵀ m A` for each tile. Tells whether all results are finite.
///
/// # Safety
/// The planes hold all tiles, the result has room for its positions, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn results<V: Lane>(job: &Results<V::E>) -> bool {
    let (down, across) = (job.rows.div_ceil(2), job.cols.div_ceil(2));
    // SAFETY: as the caller's; positions past an edge are dropped.
    unsafe {
        let join = |m: [V; 4]| [m[0].add(m[1]).add(m[2]), minus(minus(m[1], m[2]), m[3])];
        // Zero as long as every result is finite.
        let mut check = V::zero();
        for y in 0..down {
            for x in 0..across {
                let from = job.sums.add((y * across + x) * job.width);
                for o in (0..job.width).step_by(V::N) {
                    let columns: [[V; 2]; 4] =
                        core::array::from_fn(|j| join(core::array::from_fn(|i| V::load(from.add((4 * i + j) * job.plane + o)))));
                    for i in 0..2 {
                        let values = join(core::array::from_fn(|j| columns[j][i]));
                        for (j, value) in values.into_iter().enumerate() {
                            check = value.fma(V::zero(), check);
                            let (r, c) = (2 * y + i, 2 * x + j);
                            if r < job.rows && c < job.cols {
                                value.store(job.to.add((r * job.cols + c) * job.width + o));
                            }
                        }
                    }
                }
            }
        }
        check.sum() == V::E::ZERO
    }
}
