//! Where the sums of a contraction go: straight to memory, or to an epilogue that works on the hot tile.

use super::micro::Scalar;
use super::operand::Offsets;

/// A finished part of the result, in scratch memory that the epilogue may overwrite.
#[derive(Clone, Copy, Debug)]
pub struct Finished<E> {
    /// Batch entry.
    pub batch: usize,
    /// First row.
    pub row: usize,
    /// Rows.
    pub rows: usize,
    /// First column.
    pub col: usize,
    /// Columns.
    pub cols: usize,
    /// Element `(row, col)`; columns are adjacent.
    pub data: *mut E,
    /// Distance between rows, in elements.
    pub row_stride: usize,
}

/// Work on finished parts of a result; every element of the result is in exactly one part.
pub trait Epilogue<E>: Sync {
    /// Consumes one part. Called from any thread, for different parts at once.
    ///
    /// # Safety
    /// `part.data` is valid for the part's extent, for reads and writes, until the call returns.
    unsafe fn finish(&self, part: &Finished<E>);
}

/// A strided result in memory.
#[derive(Clone, Debug)]
pub struct Store<E> {
    /// Element `(0, 0)` of batch entry 0.
    pub ptr: *mut E,
    /// Stride of a row, in elements.
    pub row: isize,
    /// Stride of a column, in elements.
    pub col: isize,
    /// Batch axes.
    pub batch: Offsets,
    /// `result = scale * sum + keep * result`; what `keep == 0` finds in the result is not read.
    pub scale: E,
    /// See `scale`.
    pub keep: E,
}

// SAFETY: the caller of `contract` gives the engine the result's memory alone; tasks write disjoint parts.
unsafe impl<E: Sync> Sync for Store<E> {}
// SAFETY: as above.
unsafe impl<E: Send> Send for Store<E> {}

impl<E: Scalar> Store<E> {
    /// A plain store: `result = sum`.
    pub fn new(ptr: *mut E, row: isize, col: isize, batch: Offsets) -> Self {
        Store { ptr, row, col, batch, scale: E::ONE, keep: E::ZERO }
    }

    /// True if micro-kernels may write it themselves.
    pub(crate) fn direct(&self) -> bool {
        self.col == 1 && self.scale == E::ONE && (self.keep == E::ZERO || self.keep == E::ONE)
    }

    /// Element `(row, col)` of a batch entry.
    pub(crate) fn at(&self, batch: usize, row: usize, col: usize) -> *mut E {
        self.ptr.wrapping_offset(self.batch.at(batch) + row as isize * self.row + col as isize * self.col)
    }
}

impl<E: Scalar> Epilogue<E> for Store<E> {
    unsafe fn finish(&self, part: &Finished<E>) {
        for r in 0..part.rows {
            let to = self.at(part.batch, part.row + r, part.col);
            // SAFETY: the part's memory is valid, and so is the result's, by the contract of `contract`.
            unsafe {
                let from = part.data.add(r * part.row_stride);
                if self.keep == E::ZERO && self.scale == E::ONE && self.col == 1 {
                    to.copy_from_nonoverlapping(from, part.cols);
                    continue;
                }
                for c in 0..part.cols {
                    let to = to.offset(c as isize * self.col);
                    let x = from.add(c).read().times(self.scale);
                    to.write(if self.keep == E::ZERO { x } else { to.read().mul_add(self.keep, x) });
                }
            }
        }
    }
}

/// Where the sums of a contraction go.
#[derive(Clone)]
pub enum Sink<'a, E> {
    /// To memory.
    Store(Store<E>),
    /// To an epilogue.
    Epilogue(&'a dyn Epilogue<E>),
}
