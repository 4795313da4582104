//! Pools of integers and truth values, window by window: rare, of many dtypes, and so as little code as can be.
use alloc::format;
use core::ops::Range;

use kiln_ir::kernel::PoolKind;

use super::{Axis, Pools};
use crate::kernels::Frame;
use crate::kernels::element::{Element, Wide};

impl Pools {
    /// The planes `pieces` of a pool, or of its gradient.
    ///
    /// # Safety
    /// The pieces are this call's alone.
    pub(super) unsafe fn integers<T: Element>(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let k = &self.kernel;
        let (x_plane, y_plane) = self.sizes();
        let grad = matches!(k.kind, PoolKind::MaxGrad | PoolKind::AvgGrad);
        let (input_plane, output_plane) = if grad { (y_plane, x_plane) } else { (x_plane, y_plane) };
        for plane in pieces {
            // SAFETY: planes lie in the buffers, apart from each other.
            unsafe {
                let input = core::slice::from_raw_parts(frame.ptr::<T>(k.input).add(plane * input_plane).cast_const(), input_plane);
                let output = core::slice::from_raw_parts_mut(frame.ptr::<T>(k.output).add(plane * output_plane), output_plane);
                let indices = k.indices.map(|b| frame.ptr::<i64>(b).add(plane * y_plane));
                match (k.kind, indices) {
                    (PoolKind::Max, indices) => self.most(input, output, indices.map(|i| core::slice::from_raw_parts_mut(i, y_plane))),
                    (PoolKind::Avg, _) => self.means(input, output),
                    (PoolKind::AvgGrad, _) => self.spread(input, output),
                    (PoolKind::MaxGrad, Some(indices)) => {
                        output.fill(T::narrow(T::Wide::ZERO));
                        for (&at, dy) in core::slice::from_raw_parts(indices.cast_const(), y_plane).iter().zip(input) {
                            // A negative index marks a window of padding alone.
                            if at < 0 {
                                continue;
                            }
                            let Some(to) = output.get_mut(at as usize) else {
                                let message = format!("max_pool_grad: index {at} is out of range for axis 2 of size {x_plane}");
                                return frame.failure.report(message);
                            };
                            *to = T::narrow(to.widen().add(dy.widen()));
                        }
                    }
                    (PoolKind::MaxGrad, None) | (PoolKind::Fold, _) => {}
                }
            }
        }
    }

    fn most<T: Element>(&self, x: &[T], y: &mut [T], mut indices: Option<&mut [i64]>) {
        for w in 0..y.len() {
            let (mut best, mut place) = (T::Wide::LOWEST, -1);
            self.window(w, &mut |at| {
                let v = x[at].widen();
                if place < 0 || v.beats(best) {
                    (best, place) = (v, at as i64);
                }
            });
            y[w] = T::narrow(best);
            if let Some(indices) = &mut indices {
                indices[w] = place;
            }
        }
    }

    fn means<T: Element>(&self, x: &[T], y: &mut [T]) {
        for (w, y) in y.iter_mut().enumerate() {
            let mut sum = T::Wide::ZERO;
            let count = self.window(w, &mut |at| sum = sum.add(x[at].widen()));
            *y = T::narrow(sum.over(count));
        }
    }

    fn spread<T: Element>(&self, dy: &[T], dx: &mut [T]) {
        dx.fill(T::narrow(T::Wide::ZERO));
        let count = |w: usize| self.window(w, &mut |_| {});
        for (w, dy) in dy.iter().enumerate() {
            let share = dy.widen().over(count(w));
            self.window(w, &mut |at| dx[at] = T::narrow(dx[at].widen().add(share)));
        }
    }

    /// Calls `f` with every place in the input that a window meets, in order; gives the number of elements that count in its mean.
    fn window(&self, w: usize, f: &mut dyn FnMut(usize)) -> usize {
        let [depth, height, width] = &self.axes;
        let at = [w / (width.out * height.out), w / width.out % height.out, w % width.out];
        let range = |axis: &Axis, w: usize| axis.inside[w].0 as usize..axis.inside[w].1 as usize;
        for kd in range(depth, at[0]) {
            for kh in range(height, at[1]) {
                let line = (depth.place(at[0], kd) * height.size + height.place(at[1], kh)) * width.size;
                for kw in range(width, at[2]) {
                    f(line + width.place(at[2], kw));
                }
            }
        }
        (0..3).map(|s| self.axes[s].counts[at[s]] as usize).product()
    }
}
