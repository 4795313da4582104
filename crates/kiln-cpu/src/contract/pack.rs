//! Packing: copying a block of an operand into panels, transposing in registers where its rows lie along the contraction.
//!
//! A panel holds `width` outer positions (rows of the left operand, columns of the right one); element `(o, p)` of a block is
//! at `dst[(q / width) * panel_stride + p * width + q % width]` with `q = lead + o`.

use super::lane::{Element, Lane, MAX_LANES, first_bits};

/// One block to copy from strided memory.
pub(crate) struct Copy<E> {
    pub src: *const E,
    /// Stride of the outer axis, in elements.
    pub outer: isize,
    /// Stride of the contraction axis, in elements.
    pub inner: isize,
    /// Outer positions.
    pub len: usize,
    /// Steps of the contraction.
    pub k: usize,
    pub dst: *mut E,
    /// Outer positions of a panel.
    pub width: usize,
    /// Distance between panels, in elements.
    pub panel: usize,
    /// Place of the first outer position in the first panel.
    pub lead: usize,
}

/// Cuts `len` outer positions at panel bounds: calls `f(first, len, at)` with the place of each piece in the destination.
#[inline(always)]
pub(crate) fn pieces(width: usize, panel: usize, lead: usize, len: usize, mut f: impl FnMut(usize, usize, usize)) {
    let mut done = 0;
    while done < len {
        let (index, place) = ((lead + done) / width, (lead + done) % width);
        let piece = (width - place).min(len - done);
        f(done, piece, index * panel + place);
        done += piece;
    }
}

/// Rows that are asked for before they are copied: they start on pages of their own, where the hardware does not look ahead.
const AHEAD: isize = 8;

/// Copies a block whose outer stride is one, row by row: rows are read from end to end, whatever the panels' width.
///
/// # Safety
/// `job` describes readable and writable memory, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn outer<V: Lane>(job: &Copy<V::E>) {
    let head = (job.width - job.lead).min(job.len);
    let panels = (job.len - head) / job.width;
    let tail = job.len - head - panels * job.width;
    let next = job.dst.wrapping_add(job.panel);
    // SAFETY: as the caller's; masks keep every access inside the block.
    unsafe {
        for p in 0..job.k {
            let src = job.src.wrapping_offset(p as isize * job.inner);
            let at = p * job.width;
            run::<V>(src, job.dst.wrapping_add(at + job.lead), head);
            let mut src = src.wrapping_add(head);
            let mut dst = next.wrapping_add(at);
            if job.width == 4 * V::N {
                for _ in 0..panels {
                    for i in 0..4 {
                        V::prefetch(src.wrapping_offset(AHEAD * job.inner).wrapping_add(i * V::N));
                        V::load(src.add(i * V::N)).store(dst.add(i * V::N));
                    }
                    src = src.wrapping_add(job.width);
                    dst = dst.wrapping_add(job.panel);
                }
            } else {
                for _ in 0..panels {
                    run::<V>(src, dst, job.width);
                    src = src.wrapping_add(job.width);
                    dst = dst.wrapping_add(job.panel);
                }
            }
            run::<V>(src, dst, tail);
        }
    }
}

/// Copies `len` adjacent elements.
#[inline(always)]
unsafe fn run<V: Lane>(src: *const V::E, dst: *mut V::E, len: usize) {
    let mut at = 0;
    // SAFETY: the caller gives `len` elements on both sides.
    unsafe {
        while at + V::N <= len {
            V::load(src.add(at)).store(dst.add(at));
            at += V::N;
        }
        if at < len {
            let mask = V::mask(first_bits(len - at));
            V::load_mask(src.add(at), mask).store_mask(dst.add(at), mask);
        }
    }
}

/// Copies a block whose contraction stride is one, transposing squares of registers.
///
/// # Safety
/// As for [`outer`].
#[inline(always)]
pub(crate) unsafe fn inner<V: Lane>(job: &Copy<V::E>) {
    // SAFETY: as the caller's; masks keep every access inside the block.
    unsafe {
        pieces(job.width, job.panel, job.lead, job.len, |first, len, at| {
            let dst = job.dst.add(at);
            for o in (0..len).step_by(V::N) {
                let rows = (len - o).min(V::N);
                let mask = V::mask(first_bits(rows));
                let src = job.src.offset((first + o) as isize * job.outer);
                let mut p = 0;
                while p < job.k {
                    let steps = (job.k - p).min(V::N);
                    let mut square = [V::zero(); MAX_LANES];
                    if steps == V::N {
                        for (r, x) in square.iter_mut().enumerate().take(V::N) {
                            if r < rows {
                                *x = V::load(src.offset(r as isize * job.outer).add(p));
                            }
                        }
                    } else {
                        let tail = V::mask(first_bits(steps));
                        for (r, x) in square.iter_mut().enumerate().take(V::N) {
                            if r < rows {
                                *x = V::load_mask(src.offset(r as isize * job.outer).add(p), tail);
                            }
                        }
                    }
                    V::transpose(&mut square);
                    let to = dst.add(p * job.width + o);
                    if rows == V::N && steps == V::N {
                        for (r, x) in square.iter().enumerate().take(V::N) {
                            x.store(to.add(r * job.width));
                        }
                    } else {
                        for (r, x) in square.iter().enumerate().take(V::N) {
                            if r < steps {
                                x.store_mask(to.add(r * job.width), mask);
                            }
                        }
                    }
                    p += steps;
                }
            }
        });
    }
}

/// Copies a block of any strides.
///
/// # Safety
/// `job` describes readable and writable memory.
pub(crate) unsafe fn any<E: Element>(job: &Copy<E>) {
    // SAFETY: as the caller's.
    unsafe {
        pieces(job.width, job.panel, job.lead, job.len, |first, len, at| {
            let dst = job.dst.add(at);
            for p in 0..job.k {
                let src = job.src.offset(first as isize * job.outer + p as isize * job.inner);
                let to = dst.add(p * job.width);
                for o in 0..len {
                    to.add(o).write(*src.offset(o as isize * job.outer));
                }
            }
        });
    }
}
