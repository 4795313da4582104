//! Regions of images that a convolution reads where they lie, or from a copy with its padding written out.
//!
//! With a region, every window of a block of positions is reached by pointer arithmetic alone: position `p` and tap `t` of
//! channel `c` are at `base + positions[p] + taps[t] + c * channel`.

use super::lane::{Lane, first_bits};
use super::micro::{Kernels, Scalar};
use super::window::Axes;
use core::ops::Range;

/// Images with windows on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Images<E> {
    pub ptr: *const E,
    /// Distance between images, in elements.
    pub image: isize,
    /// Distance between channels, in elements.
    pub channel: isize,
    pub channels: usize,
    pub count: usize,
    pub axes: Axes,
}

// SAFETY: images are only read; the caller keeps them alive and unchanged.
unsafe impl<E: Sync> Sync for Images<E> {}

/// Positions of a block: some images, and a box of positions in each; the innermost axis is always whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Positions {
    pub images: Range<usize>,
    pub planes: Range<usize>,
    pub rows: Range<usize>,
}

/// How all blocks of some images are laid out.
pub(crate) struct Layout<E> {
    pub images: Images<E>,
    /// Most images, planes and rows of a block.
    most: [usize; 3],
    /// Input positions a block covers on each axis, if it is copied.
    extents: Option<[usize; 3]>,
    /// Distances between input positions, channels and images, in elements.
    strides: [isize; 3],
    pub channel: isize,
    image: isize,
}

impl<E: Scalar> Layout<E> {
    /// Blocks of about `limit` positions, shared out evenly among threads.
    pub fn new(images: Images<E>, limit: usize, threads: usize) -> Self {
        Self::cut(images, limit, false, 1, threads)
    }

    /// Blocks of about `limit` positions, each in one image.
    pub fn single(images: Images<E>, limit: usize) -> Self {
        Self::cut(images, limit, true, 1, 1)
    }

    /// As [`Layout::new`], of pairs of rows; only the last one of an image may be without its second.
    pub fn paired(images: Images<E>, limit: usize, threads: usize) -> Self {
        Self::cut(images, limit, false, 2, threads)
    }

    fn cut(images: Images<E>, limit: usize, single: bool, step: usize, threads: usize) -> Self {
        let axes = &images.axes;
        let row = axes[2].positions.max(1);
        let plane = row * axes[1].positions.max(1);
        let whole = plane * axes[0].positions.max(1);
        let even = |count: usize, most: usize| {
            let pieces = count.div_ceil(most.max(1)).max(1);
            // More pieces than threads are a multiple of them, as long as that does not make them much smaller.
            let shared = pieces.next_multiple_of(threads);
            let pieces = if pieces > threads && shared <= pieces + pieces / 4 + 1 && shared <= count { shared } else { pieces };
            count.div_ceil(pieces).max(1)
        };
        let rows = |most: usize| even(axes[1].positions.div_ceil(step), most / step) * step;
        let most = if single && whole <= limit {
            [1, axes[0].positions, axes[1].positions]
        } else if whole <= limit {
            [even(images.count, limit / whole), axes[0].positions, axes[1].positions]
        } else if plane <= limit {
            [1, even(axes[0].positions, limit / plane), axes[1].positions]
        } else {
            [1, 1, rows(limit / row)]
        };
        let counts = [most[1], most[2], axes[2].positions];
        let reach = |a: usize| (axes[a].taps as isize - 1) * axes[a].tap_step;
        let inside = (0..3).all(|a| {
            let low = axes[a].start + reach(a).min(0);
            let high = axes[a].start + (axes[a].positions as isize - 1) * axes[a].step + reach(a).max(0);
            low >= 0 && high < axes[a].size as isize
        });
        if inside {
            let strides = [axes[0].stride, axes[1].stride, axes[2].stride];
            let (channel, image) = (images.channel, images.image);
            return Layout { images, most, extents: None, strides, channel, image };
        }
        let extents: [usize; 3] = core::array::from_fn(|a| ((counts[a] as isize - 1).max(0) * axes[a].step + reach(a).abs() + 1) as usize);
        let strides = [(extents[1] * extents[2]) as isize, extents[2] as isize, 1];
        let channel = extents[0] as isize * strides[0];
        let image = channel * images.channels as isize;
        Layout { images, most, extents: Some(extents), strides, channel, image }
    }

    /// Distances that one position moves in the image, on each axis.
    pub fn steps(&self) -> [isize; 3] {
        core::array::from_fn(|a| self.images.axes[a].step * self.strides[a])
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        let axes = &self.images.axes;
        self.images.count.div_ceil(self.most[0]) * axes[0].positions.div_ceil(self.most[1].max(1)) * axes[1].positions.div_ceil(self.most[2].max(1))
    }

    /// Positions of block `index`.
    pub fn block(&self, index: usize) -> Positions {
        let axes = &self.images.axes;
        let rows = axes[1].positions.div_ceil(self.most[2].max(1)).max(1);
        let planes = axes[0].positions.div_ceil(self.most[1].max(1)).max(1);
        let cut = |i: usize, most: usize, count: usize| i * most..((i + 1) * most).min(count);
        Positions {
            images: cut(index / rows / planes, self.most[0], self.images.count),
            planes: cut(index / rows % planes, self.most[1], axes[0].positions),
            rows: cut(index % rows, self.most[2], axes[1].positions),
        }
    }

    /// Most positions of a block.
    pub fn most(&self) -> usize {
        self.most[0] * self.most[1] * self.most[2] * self.images.axes[2].positions
    }

    /// Elements that the copy of a block needs; zero if blocks are read where they lie.
    pub fn copied(&self) -> usize {
        match self.extents {
            Some(_) => self.most[0] * self.image as usize,
            None => 0,
        }
    }

    /// Calls `f(tap, offset)` for all taps.
    pub fn each_tap(&self, mut f: impl FnMut(usize, isize)) {
        let axes = &self.images.axes;
        let at = |a: usize, tap: usize| {
            let axis = &axes[a];
            let back = if self.extents.is_some() { ((axis.taps as isize - 1) * axis.tap_step).min(0) } else { 0 };
            (tap as isize * axis.tap_step - back) * self.strides[a]
        };
        let mut tap = 0;
        for t0 in 0..axes[0].taps {
            for t1 in 0..axes[1].taps {
                for t2 in 0..axes[2].taps {
                    f(tap, at(0, t0) + at(1, t1) + at(2, t2));
                    tap += 1;
                }
            }
        }
    }

    /// Calls `f(position, offset)` for all positions of a block, counted from its first.
    pub fn each_position(&self, block: &Positions, mut f: impl FnMut(usize, isize)) {
        let axes = &self.images.axes;
        let step = self.steps();
        let mut position = 0;
        for image in 0..block.images.len() {
            for plane in 0..block.planes.len() {
                for row in 0..block.rows.len() {
                    let at = image as isize * self.image + plane as isize * step[0] + row as isize * step[1];
                    for col in 0..axes[2].positions {
                        f(position, at + col as isize * step[2]);
                        position += 1;
                    }
                }
            }
        }
    }

    /// Makes a block readable, in `copy` if it must be copied, and returns its base; images begin `shift` elements further, and only
    /// `channels` are used.
    ///
    /// # Safety
    /// The images are readable, and `copy` has room for [`Layout::copied`] elements.
    pub unsafe fn prepare(&self, kernels: &Kernels<E>, block: &Positions, shift: isize, channels: Range<usize>, copy: *mut E) -> *const E {
        let (images, axes) = (&self.images, &self.images.axes);
        let first = [block.planes.start, block.rows.start, 0];
        let low: [isize; 3] = core::array::from_fn(|a| first[a] as isize * axes[a].step + axes[a].start);
        let source = images.ptr.wrapping_offset(shift + block.images.start as isize * images.image);
        let Some(extents) = self.extents else {
            let at: isize = (0..3).map(|a| low[a] * self.strides[a]).sum();
            return source.wrapping_offset(at);
        };
        let counts = [block.planes.len(), block.rows.len(), axes[2].positions];
        for image in 0..block.images.len() {
            let job = Pad {
                src: source.wrapping_offset(image as isize * images.image + channels.start as isize * images.channel),
                channel: images.channel,
                channels: channels.len(),
                size: axes.map(|axis| axis.size),
                strides: axes.map(|axis| axis.stride),
                low: core::array::from_fn(|a| low[a] + ((axes[a].taps as isize - 1) * axes[a].tap_step).min(0)),
                used: core::array::from_fn(|a| {
                    let reach = ((axes[a].taps as isize - 1) * axes[a].tap_step).abs();
                    ((counts[a] as isize - 1) * axes[a].step + reach + 1) as usize
                }),
                extents,
                dst: copy.wrapping_offset(image as isize * self.image + channels.start as isize * self.channel),
            };
            // SAFETY: as the caller's; the kernels were chosen for this machine.
            unsafe { (kernels.pad)(&job) };
        }
        copy
    }
}

/// A box of an image to copy, with zeros where it leaves the image.
pub(crate) struct Pad<E> {
    src: *const E,
    channel: isize,
    channels: usize,
    size: [usize; 3],
    strides: [isize; 3],
    /// Input position of the box's first element.
    low: [isize; 3],
    /// Positions of the box that are used.
    used: [usize; 3],
    /// Positions of the box in the copy.
    extents: [usize; 3],
    dst: *mut E,
}

/// Copies a box of an image.
///
/// # Safety
/// The image is readable and the box writable, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn pad<V: Lane>(job: &Pad<V::E>) {
    let width = job.used[2];
    // Positions low..high of a row are inside the image.
    let inside = |a: usize| {
        let low = (-job.low[a]).clamp(0, job.used[a] as isize);
        let high = (job.size[a] as isize - job.low[a]).clamp(low, job.used[a] as isize);
        (low as usize, high as usize)
    };
    let (from, to) = inside(2);
    let mut at = 0;
    while at < width {
        let count = (width - at).min(V::N);
        // Lanes of this register that are inside the image.
        let low = from.saturating_sub(at).min(count);
        let high = to.saturating_sub(at).min(count).max(low);
        let bits = first_bits(high) & !first_bits(low);
        // SAFETY: as the caller's; masks keep every access inside the row.
        unsafe {
            let (read, written) = (V::mask(bits), V::mask(first_bits(count)));
            for c in 0..job.channels {
                for d in 0..job.used[0] {
                    let z = job.low[0] + d as isize;
                    let plane = z >= 0 && z < job.size[0] as isize;
                    let row = (c * job.extents[0] + d) * job.extents[1];
                    let mut dst = job.dst.add(row * job.extents[2] + at);
                    let first = c as isize * job.channel + z * job.strides[0] + job.low[1] * job.strides[1];
                    let mut src = job.src.wrapping_offset(first + (job.low[2] + at as isize) * job.strides[2]);
                    for h in 0..job.used[1] {
                        let y = job.low[1] + h as isize;
                        let x = if !plane || y < 0 || y >= job.size[1] as isize {
                            V::zero()
                        } else if job.strides[2] == 1 {
                            V::load_mask(src, read)
                        } else {
                            V::zero().merge_step(src, job.strides[2], bits, read)
                        };
                        x.store_mask(dst, written);
                        src = src.wrapping_offset(job.strides[1]);
                        dst = dst.wrapping_add(job.extents[2]);
                    }
                }
            }
        }
        at += count;
    }
}
