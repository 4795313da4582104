//! The convolution window as an operand: windows are laid out while packing, so the unfolded image never exists in memory.
//!
//! A window is an affine map on each axis: output position `o` and tap `t` read input position `o * step + t * tap_step + start`,
//! and what lies outside the input reads as zero. Forward convolution, and each phase of an input gradient, are such maps.

use super::lane::{Lane, MAX_LANES, first_bits};
use super::micro::Scalar;
use super::operand::{Block, Offsets, Operand};
use super::pack::pieces;
use smallvec::SmallVec;

/// One axis of a window.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Output positions.
    pub positions: usize,
    /// Taps of the kernel.
    pub taps: usize,
    /// Input positions.
    pub size: usize,
    /// Distance between input positions, in elements.
    pub stride: isize,
    /// Input positions that one output position moves; at least one.
    pub step: isize,
    /// Input positions that one tap moves.
    pub tap_step: isize,
    /// Input position of output position 0 and tap 0.
    pub start: isize,
}

impl Axis {
    /// An axis that is not there.
    pub const NONE: Axis = Axis { positions: 1, taps: 1, size: 1, stride: 0, step: 1, tap_step: 0, start: 0 };
}

/// Axes of a window, innermost last; unused ones come first and are [`Axis::NONE`].
pub type Axes = [Axis; 3];

/// Which axis of the operand the positions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Outer axis: positions; contraction: `(channel, tap)`. Batch entries are images.
    PositionsOuter,
    /// Outer axis: `(channel, tap)`; contraction: `(image, position)`.
    PositionsInner {
        /// Distance between images, in elements.
        image: isize,
    },
}

/// The windows of an image, or of a batch of them.
#[derive(Clone, Debug)]
pub struct Window<E> {
    ptr: *const E,
    /// Distance between channels, in elements.
    channel: isize,
    axes: Axes,
    role: Role,
    batch: Offsets,
}

// SAFETY: an operand only reads; the caller of `contract` keeps the memory alive and unchanged.
unsafe impl<E: Sync> Sync for Window<E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Send for Window<E> {}

impl<E> Window<E> {
    /// Windows over the channels that begin at `ptr`, `channel` elements apart.
    pub fn new(ptr: *const E, channel: isize, axes: Axes, role: Role, batch: Offsets) -> Self {
        Window { ptr, channel, axes, role, batch }
    }
}

impl<E: Scalar> Operand<E> for Window<E> {
    unsafe fn pack(&self, block: &Block, dst: *mut E) {
        let job = Job {
            src: self.ptr.wrapping_offset(self.batch.at(block.batch)),
            channel: self.channel,
            axes: &self.axes,
            taps: self.axes.iter().map(|axis| axis.taps).product(),
            block: *block,
            dst,
        };
        let kernels = E::kernels();
        // SAFETY: as the caller's; the kernels were chosen for this machine.
        unsafe {
            match self.role {
                Role::PositionsOuter => (kernels.window_outer)(&job),
                Role::PositionsInner { image } => (kernels.window_inner)(&job, image),
            }
        }
    }

    fn batch(&self) -> &Offsets {
        &self.batch
    }
}

/// A block of windows to pack.
pub(crate) struct Job<'a, E> {
    src: *const E,
    channel: isize,
    axes: &'a Axes,
    taps: usize,
    block: Block,
    dst: *mut E,
}

/// Adjacent positions on one row of the innermost axis.
#[derive(Clone, Copy)]
struct Segment {
    /// First lane.
    lane: usize,
    count: usize,
    /// Indices of the first position.
    at: [usize; 3],
}

/// Lanes that read adjacent (or evenly spaced) input positions for one tap.
#[derive(Clone, Copy)]
struct Piece<M> {
    mask: M,
    bits: u32,
    /// Where lane 0 would read, from the channel's first element.
    offset: isize,
}

type Segments = SmallVec<[Segment; MAX_LANES]>;

/// Cuts `count` positions from `first` on into segments.
#[inline(always)]
fn segments(axes: &Axes, first: usize, count: usize) -> Segments {
    let (rows, width) = (axes[1].positions, axes[2].positions);
    let mut out = Segments::new();
    let mut lane = 0;
    let (mut row, mut w) = (first / width, first % width);
    while lane < count {
        let len = (width - w).min(count - lane);
        out.push(Segment { lane, count: len, at: [row / rows, row % rows, w] });
        lane += len;
        row += 1;
        w = 0;
    }
    out
}

/// Input position of an output position and a tap.
#[inline(always)]
fn source(axis: &Axis, at: usize, tap: usize) -> isize {
    at as isize * axis.step + tap as isize * axis.tap_step + axis.start
}

/// The pieces that one tap reads for the given segments.
#[inline(always)]
unsafe fn taps_of<V: Lane>(axes: &Axes, segments: &Segments, tap: usize, mut push: impl FnMut(Piece<V::Mask>)) {
    let taps = [tap / (axes[1].taps * axes[2].taps), tap / axes[2].taps % axes[1].taps, tap % axes[2].taps];
    for segment in segments {
        let (d, h) = (source(&axes[0], segment.at[0], taps[0]), source(&axes[1], segment.at[1], taps[1]));
        if d < 0 || d >= axes[0].size as isize || h < 0 || h >= axes[1].size as isize {
            continue;
        }
        let axis = &axes[2];
        let w = source(axis, segment.at[2], taps[2]);
        // Lanes whose input position is inside: 0 <= w + j * step < size.
        let low = if w >= 0 { 0 } else { (-w + axis.step - 1) / axis.step };
        let high = ((axis.size as isize - w + axis.step - 1) / axis.step).min(segment.count as isize);
        if low >= high {
            continue;
        }
        let bits = (first_bits(high as usize) & !first_bits(low as usize)) << segment.lane;
        let lane0 = w - segment.lane as isize * axis.step;
        let offset = d * axes[0].stride + h * axes[1].stride + lane0 * axis.stride;
        // SAFETY: the caller enabled the features of `V`.
        push(Piece { mask: unsafe { V::mask(bits) }, bits, offset });
    }
}

/// Reads the lanes of one register.
#[inline(always)]
unsafe fn gather<V: Lane>(src: *const V::E, pieces: &[Piece<V::Mask>], step: isize) -> V {
    // SAFETY: enabled lanes are inside the input.
    unsafe {
        let mut x = V::zero();
        if step == 1 {
            for piece in pieces {
                x = x.merge(src.wrapping_offset(piece.offset), piece.mask);
            }
        } else {
            for piece in pieces {
                x = x.merge_step(src.wrapping_offset(piece.offset), step, piece.bits, piece.mask);
            }
        }
        x
    }
}

/// Most registers in the width of a panel, and one for a panel that begins inside a register.
const MAX_WIDTH: usize = 5;

/// Packs with positions as the outer axis.
///
/// # Safety
/// `job` describes readable and writable memory, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn outer<V: Lane>(job: &Job<'_, V::E>) {
    let (block, taps) = (&job.block, job.taps);
    let step = job.axes[2].step * job.axes[2].stride;
    pieces(block.width, block.panel, block.lead, block.len, |first, len, at| {
        debug_assert!(len <= MAX_WIDTH * V::N);
        let registers = len.div_ceil(V::N);
        let mut rows: [Segments; MAX_WIDTH] = Default::default();
        for v in 0..registers {
            rows[v] = segments(job.axes, block.outer + first + v * V::N, (len - v * V::N).min(V::N));
        }
        for tap in 0..taps {
            let (low, high) = channels(block, taps, tap);
            if low >= high {
                continue;
            }
            let mut found: SmallVec<[Piece<V::Mask>; 2 * MAX_LANES]> = SmallVec::new();
            let mut ends = [0; MAX_WIDTH];
            // SAFETY: as the caller's; masks keep reads inside the input and writes inside the piece.
            unsafe {
                for v in 0..registers {
                    taps_of::<V>(job.axes, &rows[v], tap, |piece| found.push(piece));
                    ends[v] = found.len();
                }
                let rest = V::mask(first_bits(len - (registers - 1) * V::N));
                for c in low..high {
                    let src = job.src.wrapping_offset(c as isize * job.channel);
                    let dst = job.dst.add(at + (c * taps + tap - block.k) * block.width);
                    let mut from = 0;
                    for v in 0..registers - 1 {
                        gather::<V>(src, &found[from..ends[v]], step).store(dst.add(v * V::N));
                        from = ends[v];
                    }
                    let v = registers - 1;
                    gather::<V>(src, &found[from..ends[v]], step).store_mask(dst.add(v * V::N), rest);
                }
            }
        }
    });
}

/// Channels `low..high` whose step for `tap` is in the block.
#[inline(always)]
fn channels(block: &Block, taps: usize, tap: usize) -> (usize, usize) {
    let from = |k: usize| if k > tap { (k - tap).div_ceil(taps) } else { 0 };
    (from(block.k), from(block.k + block.steps))
}

/// Packs with positions as the contraction: squares of registers are transposed.
///
/// # Safety
/// As for [`outer`].
#[inline(always)]
pub(crate) unsafe fn inner<V: Lane>(job: &Job<'_, V::E>, image: isize) {
    let (block, taps) = (&job.block, job.taps);
    let step = job.axes[2].step * job.axes[2].stride;
    let positions: usize = job.axes.iter().map(|axis| axis.positions).product();
    let mut found: SmallVec<[Piece<V::Mask>; 128]> = SmallVec::new();
    let mut ends: SmallVec<[usize; 64]> = SmallVec::new();
    let mut k = block.k;
    while k < block.k + block.steps {
        let place = k % positions;
        let count = (positions - place).min(block.k + block.steps - k).min(V::N);
        let src = job.src.wrapping_offset((k / positions) as isize * image);
        let rows = segments(job.axes, place, count);
        found.clear();
        ends.clear();
        for tap in 0..taps {
            // SAFETY: as the caller's.
            unsafe { taps_of::<V>(job.axes, &rows, tap, |piece| found.push(piece)) };
            ends.push(found.len());
        }
        pieces(block.width, block.panel, block.lead, block.len, |first, len, at| {
            let start = block.outer + first;
            let (mut c, mut tap) = (start / taps, start % taps);
            for o in (0..len).step_by(V::N) {
                let width = (len - o).min(V::N);
                // SAFETY: as the caller's; masks keep reads inside the input and writes inside the piece.
                unsafe {
                    let mut square = [V::zero(); MAX_LANES];
                    for (r, x) in square.iter_mut().enumerate().take(V::N) {
                        if r < width {
                            let from = if tap == 0 { 0 } else { ends[tap - 1] };
                            let src = src.wrapping_offset(c as isize * job.channel);
                            *x = gather::<V>(src, &found[from..ends[tap]], step);
                            tap += 1;
                            if tap == taps {
                                (c, tap) = (c + 1, 0);
                            }
                        }
                    }
                    V::transpose(&mut square);
                    let dst = job.dst.add(at + o + (k - block.k) * block.width);
                    let mask = V::mask(first_bits(width));
                    for (r, x) in square.iter().enumerate().take(V::N) {
                        if r < count {
                            x.store_mask(dst.add(r * block.width), mask);
                        }
                    }
                }
            }
        });
        k += count;
    }
}
