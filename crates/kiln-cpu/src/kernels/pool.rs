//! Pools over one to three trailing axes, their gradients, and folds.
//!
//! Every pool goes row by row of the result: for each element of the window, one loop over a row of outputs, so that any window, stride, dilation and padding
//! is vector code. Windows are clipped once per axis when the kernel is prepared.
mod forward;
mod integers;

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use kiln_ir::dims::{numel, row_major};
use kiln_ir::kernel::{PoolKernel, PoolKind};
use kiln_ir::op::PoolAttrs;

use self::forward::Forward;
use super::convert::{narrow_row, widen_row};
use super::element::{Element, Wide, with_element};
use super::vector::{Body, vectorize};
use super::{Frame, Prepared};
use crate::contract::scratch::Scratch;
use crate::math::Arith;

/// One spatial axis of a pool.
struct Axis {
    size: usize,
    out: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    lo: usize,
    /// Per window: the range of window elements inside the input.
    inside: Box<[(u32, u32)]>,
    /// Per window: elements that count in a mean.
    counts: Box<[u32]>,
    /// Per window element: the range of windows for which it is inside the input.
    windows: Box<[(u32, u32)]>,
}

impl Axis {
    fn new(attrs: &PoolAttrs, s: usize, size: usize, out: usize) -> Self {
        let (kernel, stride, dilation, (lo, hi)) = (attrs.kernel[s], attrs.stride[s], attrs.dilation[s], attrs.padding[s]);
        let at = |w: usize, k: usize| (w * stride + k * dilation) as isize - lo as isize;
        let inside = |w: usize, k: usize| (0..size as isize).contains(&at(w, k));
        // Both the elements of a window and the windows of an element that are inside are contiguous.
        let span = |n: usize, f: &dyn Fn(usize) -> bool| {
            let first = (0..n).find(|i| f(*i)).unwrap_or(0);
            let count = (first..n).take_while(|i| f(*i)).count();
            (first as u32, (first + count) as u32)
        };
        let ranges: Box<[(u32, u32)]> = (0..out).map(|w| span(kernel, &|k| inside(w, k))).collect();
        let counts = (0..out)
            .map(|w| {
                let padded = (0..kernel).filter(|k| at(w, *k) < (size + hi) as isize).count() as u32;
                if attrs.count_include_pad { padded } else { ranges[w].1 - ranges[w].0 }
            })
            .collect();
        let windows: Box<[(u32, u32)]> = (0..kernel).map(|k| span(out, &|w| inside(w, k))).collect();
        Axis { size, out, kernel, stride, dilation, lo, inside: ranges, counts, windows }
    }

    /// An axis of one element that nothing happens on.
    fn single() -> Self {
        Axis {
            size: 1,
            out: 1,
            kernel: 1,
            stride: 1,
            dilation: 1,
            lo: 0,
            inside: Box::new([(0, 1)]),
            counts: Box::new([1]),
            windows: Box::new([(0, 1)]),
        }
    }

    /// Place in the input of element `k` of window `w`, which is inside.
    #[inline(always)]
    fn place(&self, w: usize, k: usize) -> usize {
        w * self.stride + k * self.dilation - self.lo
    }
}

/// A prepared pool.
pub(crate) struct Pools {
    kernel: PoolKernel,
    /// Depth, height, width.
    axes: [Axis; 3],
    planes: usize,
}

/// A prepared fold.
pub(crate) struct Fold {
    kernel: PoolKernel,
    /// Loops over what one piece covers: size, stride in the windows, stride in the result; the last is the inner loop.
    loops: Vec<(usize, usize, usize)>,
    pieces: usize,
    /// Elements of a piece on either side.
    windows: usize,
    slice: usize,
}

/// Prepares a pool or fold.
pub(crate) fn prepare(k: &PoolKernel) -> Box<dyn Prepared> {
    if k.kind == PoolKind::Fold { Box::new(Fold::new(k)) } else { Box::new(Pools::new(k)) }
}

impl Pools {
    fn new(k: &PoolKernel) -> Self {
        let n = k.attrs.kernel.len();
        let axis = |s: usize| {
            // Missing leading axes are single.
            if s + n < 3 {
                Axis::single()
            } else {
                let s = s + n - 3;
                Axis::new(&k.attrs, s, k.x[s + 2], k.y[s + 2])
            }
        };
        Pools { axes: [axis(0), axis(1), axis(2)], planes: k.x[0] * k.x[1], kernel: k.clone() }
    }

    fn sizes(&self) -> (usize, usize) {
        (self.axes.iter().map(|a| a.size).product(), self.axes.iter().map(|a| a.out).product())
    }

    /// The planes `pieces` of a pool of floats, or of its gradient. Half types are computed in planes of `f32`.
    unsafe fn typed<T: Element>(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let k = &self.kernel;
        let (x_plane, y_plane) = self.sizes();
        let grad = matches!(k.kind, PoolKind::MaxGrad | PoolKind::AvgGrad);
        let (read, written) = if grad { (y_plane, x_plane) } else { (x_plane, y_plane) };
        let (width, size) = (self.axes[2].out, size_of::<T::Wide>());
        let held = Scratch::take(width * (size + 8) + 64 + if T::PLAIN { 0 } else { size * (read + written) });
        let row: *mut T::Wide = held.ptr();
        // SAFETY: the scratch has room for a row of values, a row of indices and, for half types, both planes.
        unsafe {
            let places = held.ptr::<u8>().add((width * size).next_multiple_of(8)).cast::<i32>();
            let planes = places.add(width.next_multiple_of(2)).cast::<T::Wide>();
            for plane in pieces {
                let input = frame.ptr::<T>(k.input).add(plane * read).cast_const();
                let output = frame.ptr::<T>(k.output).add(plane * written);
                let indices = k.indices.map(|b| frame.ptr::<i64>(b).add(plane * y_plane));
                if T::PLAIN {
                    self.plane(frame, Plane { from: input.cast::<T::Wide>(), to: output.cast::<T::Wide>(), indices, row, places });
                } else {
                    let (from, to) = (planes, planes.add(read));
                    widen_row(input, 1, from, read);
                    self.plane(frame, Plane { from, to, indices, row, places });
                    narrow_row(to, output, 1, written);
                }
            }
        }
    }

    /// One plane.
    ///
    /// # Safety
    /// The plane's pointers have the sizes of the kernel.
    unsafe fn plane<W: Wide>(&self, frame: &Frame<'_>, plane: Plane<W>) {
        match self.kernel.kind {
            PoolKind::Max | PoolKind::Avg => vectorize(Forward { pool: self, plane }),
            PoolKind::MaxGrad | PoolKind::AvgGrad => vectorize(Backward { pool: self, plane, frame }),
            PoolKind::Fold => {}
        }
    }
}

/// Where a plane, whose elements are fewer than 2^31, is read and written.
struct Plane<W> {
    from: *const W,
    to: *mut W,
    indices: Option<*mut i64>,
    /// A row of results.
    row: *mut W,
    /// A row of indices.
    places: *mut i32,
}

/// Gradients of one plane.
struct Backward<'a, W> {
    pool: &'a Pools,
    plane: Plane<W>,
    frame: &'a Frame<'a>,
}

impl<W: Wide> Body for Backward<'_, W> {
    type Out = ();
    const WIDE: bool = size_of::<W>() == 4;

    #[inline(always)]
    fn run<A: Arith>(self) {
        let [depth, height, width] = &self.pool.axes;
        let (x_plane, y_plane) = self.pool.sizes();
        let Plane { from: dy, to: dx, indices, row, .. } = self.plane;
        // SAFETY: as in `Forward`; indices are checked.
        unsafe {
            let dx = core::slice::from_raw_parts_mut(dx, x_plane);
            dx.fill(W::ZERO);
            if self.pool.kernel.kind == PoolKind::MaxGrad {
                let Some(indices) = indices else { return };
                for i in 0..y_plane {
                    let at = *indices.add(i);
                    // A negative index marks a window of padding alone.
                    if at >= 0 {
                        let Some(to) = dx.get_mut(at as usize) else {
                            let message = format!("max_pool_grad: index {at} is out of range for axis 2 of size {x_plane}");
                            return self.frame.failure.report(message);
                        };
                        *to = to.add(*dy.add(i));
                    }
                }
                return;
            }
            let row = core::slice::from_raw_parts_mut(row, width.out);
            for d in 0..depth.out {
                for h in 0..height.out {
                    let dy = dy.add((d * height.out + h) * width.out);
                    let count = depth.counts[d] as usize * height.counts[h] as usize;
                    for (w, r) in row.iter_mut().enumerate() {
                        *r = (*dy.add(w)).over(count * width.counts[w] as usize);
                    }
                    let (d0, d1) = depth.inside[d];
                    let (h0, h1) = height.inside[h];
                    for kd in d0..d1 {
                        for kh in h0..h1 {
                            let line = (depth.place(d, kd as usize) * height.size + height.place(h, kh as usize)) * width.size;
                            for (kw, &(w0, w1)) in width.windows.iter().enumerate() {
                                if w0 == w1 {
                                    continue;
                                }
                                let (w0, w1) = (w0 as usize, w1 as usize);
                                let to = dx.as_mut_ptr().add(line + width.place(w0, kw));
                                macro_rules! walk {
                                    ($step:expr) => {
                                        for (i, r) in row[w0..w1].iter().enumerate() {
                                            let to = to.add(i * $step);
                                            *to = (*to).add(*r);
                                        }
                                    };
                                }
                                match width.stride {
                                    1 => walk!(1),
                                    2 => walk!(2),
                                    s => walk!(s),
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Prepared for Pools {
    fn pieces(&self) -> usize {
        self.planes
    }

    fn work(&self) -> usize {
        let (x, y) = self.sizes();
        let window: usize = self.axes.iter().map(|a| a.kernel).product();
        self.planes * (x + y * (1 + window / 2)) * self.kernel.dtype.size()
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        // SAFETY: as the caller's.
        unsafe {
            with_element!(self.kernel.dtype, T => {
                if T::FLOAT {
                    self.typed::<T>(frame, pieces);
                } else {
                    self.integers::<T>(frame, pieces);
                }
            })
        }
    }
}

impl Fold {
    fn new(k: &PoolKernel) -> Self {
        let (x_strides, y_strides) = (row_major(&k.x), row_major(&k.y));
        let lead = k.axes.iter().map(|a| *a as usize).min().unwrap_or(0);
        let rank = k.x.len();
        let mut loops = Vec::new();
        for a in lead..rank {
            let stride = k.axes.iter().position(|w| *w as usize == a).map_or(1, |s| k.attrs.stride[s]);
            loops.push((k.y[a], y_strides[a] as usize, x_strides[a] as usize * stride));
        }
        for (s, axis) in k.axes.iter().enumerate() {
            loops.push((k.y[rank + s], y_strides[rank + s] as usize, x_strides[*axis as usize] as usize * k.attrs.dilation[s]));
        }
        // The loop with the smallest step in the result runs innermost.
        loops.sort_by_key(|l: &(usize, usize, usize)| (core::cmp::Reverse(l.2), l.0));
        Fold { pieces: numel(&k.x[..lead]), windows: numel(&k.y[lead..]), slice: numel(&k.x[lead..]), loops, kernel: k.clone() }
    }

    unsafe fn typed<T: Element>(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        let held = Scratch::take(if T::PLAIN { 0 } else { self.slice * core::mem::size_of::<T::Wide>() });
        let sums: *mut T::Wide = held.ptr();
        for piece in pieces {
            // SAFETY: the piece's windows and slice lie in the buffers; the scratch has room for the slice.
            unsafe {
                let y = frame.ptr::<T>(self.kernel.input).cast_const().add(piece * self.windows);
                let x = frame.ptr::<T>(self.kernel.output).add(piece * self.slice);
                if T::PLAIN {
                    self.add(y, x);
                } else {
                    self.add(y, sums);
                    for i in 0..self.slice {
                        *x.add(i) = T::narrow(*sums.add(i));
                    }
                }
            }
        }
    }

    /// Adds the windows into a slice of zeros.
    unsafe fn add<T: Element, D: Element<Wide = T::Wide>>(&self, y: *const T, x: *mut D) {
        // SAFETY: as the caller's.
        unsafe {
            core::slice::from_raw_parts_mut(x, self.slice).fill(D::narrow(T::Wide::ZERO));
            if self.windows > 0 {
                self.level(&self.loops, y, x);
            }
        }
    }

    unsafe fn level<T: Element, D: Element<Wide = T::Wide>>(&self, loops: &[(usize, usize, usize)], y: *const T, x: *mut D) {
        // SAFETY: every place of a window lies in the slice, by inference.
        unsafe {
            match loops {
                [] => *x = D::narrow((*x).widen().add((*y).widen())),
                [(n, from, to)] => {
                    for i in 0..*n {
                        let to = x.add(i * to);
                        *to = D::narrow((*to).widen().add((*y.add(i * from)).widen()));
                    }
                }
                [(n, from, to), rest @ ..] => {
                    for i in 0..*n {
                        self.level(rest, y.add(i * from), x.add(i * to));
                    }
                }
            }
        }
    }
}

impl Prepared for Fold {
    fn pieces(&self) -> usize {
        self.pieces
    }

    fn work(&self) -> usize {
        self.pieces * (2 * self.windows + self.slice) * self.kernel.dtype.size()
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        // SAFETY: as the caller's.
        unsafe { with_element!(self.kernel.dtype, T => self.typed::<T>(frame, pieces)) }
    }
}
