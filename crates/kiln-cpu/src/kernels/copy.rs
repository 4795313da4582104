//! Copies of dense buffers.
use core::ops::Range;

use kiln_ir::BufId;

use super::{Frame, Prepared};

/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// A copy of `bytes` bytes.
pub(crate) struct Copy {
    pub from: BufId,
    pub to: BufId,
    pub bytes: usize,
}

impl Prepared for Copy {
    fn pieces(&self) -> usize {
        self.bytes.div_ceil(PIECE)
    }

    fn work(&self) -> usize {
        2 * self.bytes
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let (from, to) = (frame.ptr::<u8>(self.from), frame.ptr::<u8>(self.to));
        let start = pieces.start * PIECE;
        let end = (pieces.end * PIECE).min(self.bytes);
        if from != to && start < end {
            // SAFETY: both buffers are `bytes` long; the plan keeps them apart or equal.
            unsafe { to.add(start).copy_from_nonoverlapping(from.add(start), end - start) };
        }
    }
}
