//! `Operand`, one side of a contraction, and the strided operand.

use super::micro::{Kernels, Scalar};
use super::pack::{self, Copy};
use smallvec::SmallVec;

/// Axes of a batch, outermost first: `(size, stride in elements)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offsets(SmallVec<[(usize, isize); 4]>);

impl Offsets {
    /// The axes given, outermost first; no axes at all is a batch of one.
    pub fn new(axes: &[(usize, isize)]) -> Self {
        Offsets(axes.iter().copied().filter(|axis| axis.0 != 1).collect())
    }

    /// Offset in elements of batch entry `index`.
    #[inline]
    pub fn at(&self, mut index: usize) -> isize {
        let mut at = 0;
        for &(size, stride) in self.0.iter().rev() {
            at += (index % size) as isize * stride;
            index /= size;
        }
        at
    }

    /// Number of the memory that entry `index` reads, counted over the axes that move.
    #[inline]
    pub fn slot(&self, mut index: usize) -> usize {
        let (mut slot, mut weight) = (0, 1);
        for &(size, stride) in self.0.iter().rev() {
            if stride != 0 {
                slot += index % size * weight;
                weight *= size;
            }
            index /= size;
        }
        slot
    }

    /// The first entry that reads slot `slot`.
    pub fn entry(&self, mut slot: usize) -> usize {
        let (mut index, mut place) = (0, 1);
        for &(size, stride) in self.0.iter().rev() {
            if stride != 0 {
                index += slot % size * place;
                slot /= size;
            }
            place *= size;
        }
        index
    }

    /// Count of different slots.
    pub fn slots(&self) -> usize {
        self.0.iter().filter(|axis| axis.1 != 0).map(|axis| axis.0).product()
    }

    /// How many adjacent entries share a slot.
    pub fn run(&self) -> usize {
        self.0.iter().rev().take_while(|axis| axis.1 == 0).map(|axis| axis.0).product()
    }
}

/// The block of an operand that a call of [`Operand::pack`] copies.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Batch entry.
    pub batch: usize,
    /// First outer position (row of the left operand, column of the right one).
    pub outer: usize,
    /// Outer positions.
    pub len: usize,
    /// First step of the contraction.
    pub k: usize,
    /// Steps of the contraction.
    pub steps: usize,
    /// Outer positions of a panel.
    pub width: usize,
    /// Distance between panels, in elements.
    pub panel: usize,
    /// Place of the first outer position in the first panel.
    pub lead: usize,
}

impl Block {
    /// Where outer position `o` (counted from the block's first) has its step 0 in the destination, in elements.
    #[inline]
    pub fn place(&self, o: usize) -> usize {
        let at = self.lead + o;
        at / self.width * self.panel + at % self.width
    }
}

/// A strided matrix in memory: element `(outer, p)` is at `outer * self.outer + p * self.inner`.
#[derive(Clone, Copy, Debug)]
pub struct View<E> {
    /// Element `(0, 0)`.
    pub ptr: *const E,
    /// Stride of the outer axis, in elements.
    pub outer: isize,
    /// Stride of the contraction axis, in elements.
    pub inner: isize,
}

/// One side of a contraction: a batch of matrices `(outer, k)`, where outer is the row of the left operand and the column of
/// the right one.
pub trait Operand<E>: Sync {
    /// Writes a block into panels: element `(o, p)` to `dst[block.place(o) + p * block.width]`; nothing else is written.
    ///
    /// # Safety
    /// `dst` has room for the block, and the memory the operand describes is readable.
    unsafe fn pack(&self, block: &Block, dst: *mut E);

    /// The matrix of a batch entry from step `k` on, if it lies in memory as elements of the contraction's type; it holds up
    /// to the next multiple of [`Operand::period`].
    fn view(&self, _batch: usize, _k: usize) -> Option<View<E>> {
        None
    }

    /// Steps of the contraction after which a view must be asked for again.
    fn period(&self) -> usize {
        usize::MAX
    }

    /// How the batch moves the operand; strides are only compared with zero.
    fn batch(&self) -> &Offsets;
}

/// An operand in memory with any strides, zero and negative ones included.
#[derive(Clone, Debug)]
pub struct Strided<E> {
    ptr: *const E,
    outer: isize,
    inner: isize,
    batch: Offsets,
}

// SAFETY: an operand only reads; the caller of `contract` keeps the memory alive and unchanged.
unsafe impl<E: Sync> Sync for Strided<E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Send for Strided<E> {}

impl<E> Strided<E> {
    /// Element `(outer, p)` of batch entry `b` is at `ptr + batch.at(b) + outer * outer_stride + p * inner_stride`.
    pub fn new(ptr: *const E, outer: isize, inner: isize, batch: Offsets) -> Self {
        Strided { ptr, outer, inner, batch }
    }
}

impl<E: Scalar> Operand<E> for Strided<E> {
    unsafe fn pack(&self, block: &Block, dst: *mut E) {
        let base = self.batch.at(block.batch) + block.outer as isize * self.outer + block.k as isize * self.inner;
        let job = Copy {
            src: self.ptr.wrapping_offset(base),
            outer: self.outer,
            inner: self.inner,
            len: block.len,
            k: block.steps,
            dst,
            width: block.width,
            panel: block.panel,
            lead: block.lead,
        };
        // SAFETY: as the caller's.
        unsafe { copy(E::kernels(), &job) }
    }

    fn view(&self, batch: usize, k: usize) -> Option<View<E>> {
        let at = self.batch.at(batch) + k as isize * self.inner;
        Some(View { ptr: self.ptr.wrapping_offset(at), outer: self.outer, inner: self.inner })
    }

    fn batch(&self) -> &Offsets {
        &self.batch
    }
}

/// An operand in memory whose contraction runs over several axes, each with its own stride.
#[derive(Clone, Debug)]
pub struct Grid<E> {
    ptr: *const E,
    outer: isize,
    /// Axes of the contraction, outermost first: `(size, stride in elements)`.
    inner: SmallVec<[(usize, isize); 4]>,
    batch: Offsets,
}

// SAFETY: an operand only reads; the caller of `contract` keeps the memory alive and unchanged.
unsafe impl<E: Sync> Sync for Grid<E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Send for Grid<E> {}

impl<E> Grid<E> {
    /// An operand whose contraction runs over `inner`, outermost first: `(size, stride in elements)`, at least one axis.
    pub fn new(ptr: *const E, outer: isize, inner: &[(usize, isize)], batch: Offsets) -> Self {
        let mut merged: SmallVec<[(usize, isize); 4]> = SmallVec::new();
        for &(size, stride) in inner.iter().filter(|axis| axis.0 != 1) {
            match merged.last_mut() {
                Some(last) if last.1 == stride * size as isize => *last = (last.0 * size, stride),
                _ => merged.push((size, stride)),
            }
        }
        if merged.is_empty() || inner.iter().any(|axis| axis.0 == 0) {
            merged = SmallVec::from_slice(&[(1, 1)]);
        }
        Grid { ptr, outer, inner: merged, batch }
    }

    /// Offset of step `k`.
    fn at(&self, mut k: usize) -> isize {
        let mut at = 0;
        for &(size, stride) in self.inner.iter().rev() {
            at += (k % size) as isize * stride;
            k /= size;
        }
        at
    }
}

impl<E: Scalar> Operand<E> for Grid<E> {
    unsafe fn pack(&self, block: &Block, dst: *mut E) {
        let base = self.batch.at(block.batch) + block.outer as isize * self.outer;
        let (size, stride) = self.inner[self.inner.len() - 1];
        let mut k = block.k;
        while k < block.k + block.steps {
            let steps = (size - k % size).min(block.k + block.steps - k);
            let job = Copy {
                src: self.ptr.wrapping_offset(base + self.at(k)),
                outer: self.outer,
                inner: stride,
                len: block.len,
                k: steps,
                dst: dst.wrapping_add((k - block.k) * block.width),
                width: block.width,
                panel: block.panel,
                lead: block.lead,
            };
            // SAFETY: as the caller's.
            unsafe { copy(E::kernels(), &job) };
            k += steps;
        }
    }

    fn view(&self, batch: usize, k: usize) -> Option<View<E>> {
        Some(View { ptr: self.ptr.wrapping_offset(self.batch.at(batch) + self.at(k)), outer: self.outer, inner: self.inner[self.inner.len() - 1].1 })
    }

    fn period(&self) -> usize {
        match self.inner.len() {
            1 => usize::MAX,
            n => self.inner[n - 1].0,
        }
    }

    fn batch(&self) -> &Offsets {
        &self.batch
    }
}

/// Packs a strided block by the kernel that fits its strides.
///
/// # Safety
/// As for [`Operand::pack`].
pub(crate) unsafe fn copy<E: Scalar>(kernels: &Kernels<E>, job: &Copy<E>) {
    // SAFETY: as the caller's; the kernels were chosen for this machine.
    unsafe {
        if job.outer == 1 {
            (kernels.pack_outer)(job)
        } else if job.inner == 1 {
            (kernels.pack_inner)(job)
        } else {
            pack::any(job)
        }
    }
}
