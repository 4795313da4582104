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

impl<E> Copy<E> {
    /// Splits the outer axis at panel bounds: calls `f(first, len, dst)` with `dst` at the first position of each piece.
    #[inline(always)]
    unsafe fn pieces(&self, mut f: impl FnMut(usize, usize, *mut E)) {
        let mut done = 0;
        while done < self.len {
            let at = self.lead + done;
            let (panel, place) = (at / self.width, at % self.width);
            let len = (self.width - place).min(self.len - done);
            // SAFETY: the destination has room for every panel of the block.
            f(done, len, unsafe { self.dst.add(panel * self.panel + place) });
            done += len;
        }
    }
}

/// Copies a block whose outer stride is one.
///
/// # Safety
/// `job` describes readable and writable memory, and the features of `V` are enabled.
#[inline(always)]
pub(crate) unsafe fn outer<V: Lane>(job: &Copy<V::E>) {
    // SAFETY: as the caller's; masks keep every access inside the piece.
    unsafe {
        job.pieces(|first, len, dst| {
            let (full, rest) = (len / V::N, len % V::N);
            let mask = V::mask(first_bits(rest));
            let mut src = job.src.add(first);
            let mut dst = dst;
            if full == 2 && rest == 0 {
                for _ in 0..job.k {
                    let (x, y) = (V::load(src), V::load(src.add(V::N)));
                    x.store(dst);
                    y.store(dst.add(V::N));
                    src = src.wrapping_offset(job.inner);
                    dst = dst.wrapping_add(job.width);
                }
                return;
            }
            for _ in 0..job.k {
                for i in 0..full {
                    V::load(src.add(i * V::N)).store(dst.add(i * V::N));
                }
                if rest != 0 {
                    V::load_mask(src.add(full * V::N), mask).store_mask(dst.add(full * V::N), mask);
                }
                src = src.wrapping_offset(job.inner);
                dst = dst.wrapping_add(job.width);
            }
        });
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
        job.pieces(|first, len, dst| {
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
        job.pieces(|first, len, dst| {
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
