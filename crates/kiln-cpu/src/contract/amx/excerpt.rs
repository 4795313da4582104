//! A block of a contraction as a contraction of its own, for the plain kernels.

use core::ops::Range;

use super::super::engine::{Contraction, plainly};
use super::super::operand::{Block, Offsets, Operand, View};
use super::super::parallel::ParallelFor;
use super::super::sink::{Epilogue, Finished, Sink, Store};

/// Some outer positions of a batch entry of an operand.
struct Positions<'a> {
    of: &'a dyn Operand<f32>,
    entry: usize,
    first: usize,
    batch: Offsets,
}

impl Operand<f32> for Positions<'_> {
    unsafe fn pack(&self, block: &Block, dst: *mut f32) {
        // SAFETY: as the caller's.
        unsafe { self.of.pack(&Block { batch: self.entry, outer: self.first + block.outer, ..*block }, dst) }
    }

    fn view(&self, _batch: usize, k: usize) -> Option<View<f32>> {
        let view = self.of.view(self.entry, k)?;
        Some(View { ptr: view.ptr.wrapping_offset(self.first as isize * view.outer), ..view })
    }

    fn period(&self) -> usize {
        self.of.period()
    }

    fn batch(&self) -> &Offsets {
        &self.batch
    }
}

/// Some rows and columns of an entry of a result.
struct Part<'a> {
    of: &'a dyn Epilogue<f32>,
    entry: usize,
    row: usize,
    col: usize,
}

impl Epilogue<f32> for Part<'_> {
    unsafe fn finish(&self, part: &Finished<f32>) {
        let whole = Finished { batch: self.entry, row: self.row + part.row, col: self.col + part.col, ..*part };
        // SAFETY: as the caller's.
        unsafe { self.of.finish(&whole) }
    }
}

/// Computes some rows and columns of a batch entry with the plain kernels.
///
/// # Safety
/// As for [`super::super::contract`].
pub(super) unsafe fn compute(job: &Contraction<'_, f32>, entry: usize, rows: Range<usize>, cols: Range<usize>, pool: &dyn ParallelFor) {
    let a = Positions { of: job.a, entry, first: rows.start, batch: Offsets::default() };
    let b = Positions { of: job.b, entry, first: cols.start, batch: Offsets::default() };
    let part;
    let sink = match &job.sink {
        Sink::Store(store) => Sink::Store(Store { ptr: store.at(entry, rows.start, cols.start), batch: Offsets::default(), ..store.clone() }),
        Sink::Epilogue(of) => {
            part = Part { of: *of, entry, row: rows.start, col: cols.start };
            Sink::Epilogue(&part)
        }
    };
    // SAFETY: as the caller's.
    unsafe { plainly(&Contraction { batch: 1, m: rows.len(), n: cols.len(), k: job.k, a: &a, b: &b, sink }, pool) }
}
