//! Gather: rows or elements of a tensor picked by index.
use core::ops::Range;

use kiln_ir::dims::row_major;
use kiln_ir::kernel::GatherKernel;
use kiln_ir::{Affine, BufId, Program};

use super::element::with_size;
use super::index::{BLOCK, IndexRule};
use super::walk::Space;
use super::{Frame, Prepared};

/// A prepared gather. Points are those where the index changes; at each a run of adjacent elements is copied.
pub(crate) struct Gather {
    x: BufId,
    index: BufId,
    out: BufId,
    /// Origins of x and of the index.
    origins: [Affine; 2],
    /// Walks x, index and out over the points without the innermost dimension.
    outer: Space<3>,
    /// Innermost dimension of the points, and its strides.
    count: usize,
    inner: [isize; 3],
    /// Step in x of one index.
    step: isize,
    /// Adjacent elements at a point.
    run: usize,
    size: usize,
    rule: IndexRule,
    /// Pieces along the innermost dimension, per outer point.
    cuts: usize,
}

impl Gather {
    /// Prepares a gather.
    pub fn new(k: &GatherKernel, program: &Program) -> Self {
        let size = program.buf(k.x).dtype.size();
        let out = row_major(&k.dims);
        // Trailing dimensions over which the index is constant and x is dense are copied as one run.
        let (mut rank, mut run) = (k.dims.len(), 1usize);
        while rank > 0 {
            let d = rank - 1;
            let dense = k.dims[d] == 1 || (k.index_index.coeffs[d] == 0 && k.x_index.coeffs[d] == run as isize);
            if !dense {
                break;
            }
            run *= k.dims[d];
            rank = d;
        }
        let mut outer = Space::new(&k.dims[..rank], [&k.x_index.coeffs[..rank], &k.index_index.coeffs[..rank], &out[..rank]]);
        let (count, inner) = outer.pop();
        let piece = (16 << 10) / (run * size).max(8);
        Gather {
            x: k.x,
            index: k.index,
            out: k.out,
            origins: [k.x_index.clone(), k.index_index.clone()],
            outer,
            count,
            inner,
            step: k.x_step,
            run,
            size,
            rule: IndexRule { dtype: program.buf(k.index).dtype, extent: k.extent, axis: k.axis, op: "gather" },
            cuts: count.div_ceil(piece.max(1)).max(1),
        }
    }

    unsafe fn typed<T: Copy>(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let index = frame.ptr::<u8>(self.index);
        // SAFETY: the plan gives the buffers their sizes; indices are checked before use.
        unsafe {
            let x = frame.ptr::<T>(self.x).offset(self.origins[0].origin(frame.args));
            let first = self.origins[1].origin(frame.args);
            let out = frame.ptr::<T>(self.out);
            let mut found = [0usize; BLOCK];
            for piece in pieces {
                let at = self.outer.offsets(piece / self.cuts);
                let range = crate::pool::span(self.count, 1, self.cuts, piece % self.cuts);
                let mut k = range.start;
                while k < range.end {
                    let n = BLOCK.min(range.end - k);
                    let found = &mut found[..n];
                    let here: [isize; 3] = core::array::from_fn(|b| at[b] + k as isize * self.inner[b]);
                    if !self.rule.read(index, first + here[1], self.inner[1], found, frame.failure) {
                        return;
                    }
                    let (mut from, mut to) = (x.wrapping_offset(here[0]), out.wrapping_offset(here[2]));
                    if self.run == 1 {
                        for i in found.iter() {
                            *to = *from.offset(*i as isize * self.step);
                            from = from.wrapping_offset(self.inner[0]);
                            to = to.wrapping_offset(self.inner[2]);
                        }
                    } else {
                        for i in found.iter() {
                            to.copy_from_nonoverlapping(from.offset(*i as isize * self.step), self.run);
                            from = from.wrapping_offset(self.inner[0]);
                            to = to.wrapping_offset(self.inner[2]);
                        }
                    }
                    k += n;
                }
            }
        }
    }
}

impl Prepared for Gather {
    fn pieces(&self) -> usize {
        if self.run == 0 || self.count == 0 { 0 } else { self.outer.len() * self.cuts }
    }

    fn work(&self) -> usize {
        // A short run costs a cache line rather than its bytes.
        self.outer.len() * self.count * (self.run * self.size * 2 + 32)
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        // SAFETY: as the caller's.
        unsafe { with_size!(self.size, T => self.typed::<T>(frame, pieces)) }
    }
}
