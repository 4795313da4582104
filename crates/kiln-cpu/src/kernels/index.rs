//! Reading index operands: blocks of integers of any dtype, checked against an extent.
use alloc::format;

use kiln_ir::DType;

use super::Failure;
use super::element::Element;

/// Indices converted at once.
pub(crate) const BLOCK: usize = 256;

/// Where indices are read from, and what they may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexRule {
    /// Dtype of the indices.
    pub dtype: DType,
    /// Indices are below this.
    pub extent: usize,
    /// Axis they refer to, for messages.
    pub axis: usize,
    /// Op they belong to, for messages.
    pub op: &'static str,
}

impl IndexRule {
    /// Reads `out.len()` indices from element `at` on, `step` apart. Reports the first one out of range and then returns false.
    ///
    /// # Safety
    /// The elements are readable.
    #[inline]
    pub unsafe fn read(&self, base: *const u8, at: isize, step: isize, out: &mut [usize], failure: &Failure) -> bool {
        // SAFETY: as the caller's.
        let good = unsafe {
            match self.dtype {
                DType::I64 | DType::U64 => read::<i64>(base, at, step, self.extent, out),
                DType::I32 => read::<i32>(base, at, step, self.extent, out),
                DType::U32 => read::<u32>(base, at, step, self.extent, out),
                DType::I16 => read::<i16>(base, at, step, self.extent, out),
                DType::U16 => read::<u16>(base, at, step, self.extent, out),
                DType::I8 => read::<i8>(base, at, step, self.extent, out),
                DType::U8 | DType::Bool => read::<u8>(base, at, step, self.extent, out),
                // Inference admits integers only.
                DType::F64 | DType::F32 | DType::F16 | DType::BF16 => false,
            }
        };
        if !good {
            self.report(out, failure);
        }
        good
    }

    #[cold]
    fn report(&self, indices: &[usize], failure: &Failure) {
        let bad = indices.iter().copied().find(|i| *i >= self.extent).unwrap_or(0);
        let number = if self.dtype == DType::U64 { bad as i128 } else { bad as i64 as i128 };
        failure.report(format!("{}: index {number} is out of range for axis {} of size {}", self.op, self.axis, self.extent));
    }
}

/// Converts a run of indices; negative ones become huge. Whether all are below the extent.
#[inline(always)]
unsafe fn read<T: Element + AsIndex>(base: *const u8, at: isize, step: isize, extent: usize, out: &mut [usize]) -> bool {
    // SAFETY: as the caller's of `IndexRule::read`.
    unsafe {
        let mut from = base.cast::<T>().offset(at);
        let mut good = true;
        if step == 1 {
            for (k, o) in out.iter_mut().enumerate() {
                *o = (*from.add(k)).index();
                good &= *o < extent;
            }
            return good;
        }
        for o in out.iter_mut() {
            *o = (*from).index();
            good &= *o < extent;
            from = from.wrapping_offset(step);
        }
        good
    }
}

/// An integer as an index: sign extended, so that negative numbers are out of every range.
trait AsIndex {
    fn index(self) -> usize;
}

macro_rules! as_index {
    ($($t:ty)*) => { $(
        impl AsIndex for $t {
            #[inline(always)]
            fn index(self) -> usize {
                self as i64 as usize
            }
        }
    )* };
}

as_index!(i64 i32 u32 i16 u16 i8 u8);
