//! Input gradients of weights that are not all finite: a product at a time, and only those that are there.
//!
//! The fast ways read the output gradient's surroundings as zeros, and a zero times an infinite weight would be NaN.

use super::conv::{Conv, Spatial};
use super::engine::each;
use super::micro::Scalar;
use super::parallel::ParallelFor;
use super::scratch::Scratch;
use super::sink::{Epilogue, Finished, Sink};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

/// Elements that one task looks at.
const PIECE: usize = 1 << 14;

/// Whether all of `len` numbers are finite.
///
/// # Safety
/// They are readable.
pub(super) unsafe fn finite<E: Scalar>(first: *const E, len: usize, pool: &dyn ParallelFor) -> bool {
    if len == 0 {
        return true;
    }
    // SAFETY: the caller's promise.
    let all = unsafe { core::slice::from_raw_parts(first, len) };
    let found = AtomicBool::new(true);
    each(pool, len.div_ceil(PIECE), PIECE, &|i| {
        let mut sums = [E::ZERO; 16];
        let mut chunks = all[i * PIECE..len.min((i + 1) * PIECE)].chunks_exact(16);
        for chunk in &mut chunks {
            sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum = sum.plus(x.times(E::ZERO)));
        }
        chunks.remainder().iter().for_each(|x| sums[0] = sums[0].plus(x.times(E::ZERO)));
        // A product of zero and anything else is NaN, and stays it.
        if sums.iter().any(|sum| *sum != E::ZERO) {
            found.store(false, Ordering::Relaxed);
        }
    });
    found.into_inner()
}

/// Output positions for which a tap reaches the input.
fn positions(axis: &Spatial, tap: usize) -> Range<usize> {
    let (reach, pad, step) = (tap * axis.dilation, axis.padding, axis.stride);
    let first = pad.saturating_sub(reach).div_ceil(step);
    let end = (axis.input + pad).saturating_sub(reach).div_ceil(step);
    first..end.min(axis.output).max(first)
}

/// Computes an input gradient; `sink` takes batch entries `(group, image)`, channels of a group as rows, positions as columns.
///
/// # Safety
/// As for [`super::conv::input_gradient`].
pub(super) unsafe fn input_gradient<E: Scalar>(conv: &Conv, dy: *const E, w: *const E, sink: &Sink<'_, E>, pool: &dyn ParallelFor) {
    let (inputs, outputs) = (conv.inputs / conv.groups, conv.outputs / conv.groups);
    let product = |of: fn(&Spatial) -> usize| conv.axes.iter().map(of).product::<usize>();
    let (size, places, taps) = (product(|a| a.input), product(|a| a.output), product(|a| a.kernel));
    let [a, b, c] = &conv.axes;
    // SAFETY: as the caller's; without elements the pointers may be null.
    let slice = |first: *const E, len: usize| if len == 0 { &[][..] } else { unsafe { core::slice::from_raw_parts(first, len) } };
    let (dy, w) = (slice(dy, conv.images * conv.outputs * places), slice(w, conv.outputs * inputs * taps));
    each(pool, conv.groups * conv.images * inputs, outputs * places * taps, &|i| {
        let (batch, channel) = (i / inputs, i % inputs);
        let (group, image) = (batch / conv.images, batch % conv.images);
        let held = Scratch::take(size * size_of::<E>());
        let plane: *mut E = held.ptr();
        // SAFETY: the scratch has a plane, and the sink takes it.
        unsafe {
            let sums = core::slice::from_raw_parts_mut(plane, size);
            sums.fill(E::ZERO);
            for output in group * outputs..(group + 1) * outputs {
                let dy = &dy[(image * conv.outputs + output) * places..];
                let w = &w[(output * inputs + channel) * taps..];
                for tap in 0..taps {
                    let (ta, tb, tc) = (tap / (b.kernel * c.kernel), tap / c.kernel % b.kernel, tap % c.kernel);
                    let (by, row) = (w[tap], positions(c, tc));
                    for pa in positions(a, ta) {
                        let depth = pa * a.stride + ta * a.dilation - a.padding;
                        for pb in positions(b, tb) {
                            let line = depth * b.input + pb * b.stride + tb * b.dilation - b.padding;
                            let from = &dy[(pa * b.output + pb) * c.output..];
                            let to = (line * c.input + tc * c.dilation).wrapping_sub(c.padding);
                            for p in row.clone() {
                                let to = &mut sums[to.wrapping_add(p * c.stride)];
                                *to = to.plus(by.times(from[p]));
                            }
                        }
                    }
                }
            }
            let part = Finished { batch, row: channel, rows: 1, col: 0, cols: size, data: plane, row_stride: size };
            match sink {
                Sink::Store(store) => store.finish(&part),
                Sink::Epilogue(epilogue) => epilogue.finish(&part),
            }
        }
    });
}
