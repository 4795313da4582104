//! Convolutions as contractions: forward, input gradient and weight gradient, with groups, dilation, stride and any padding.
//!
//! Images are `[images, channels, spatial...]` and weights `[out channels, in channels of a group, taps...]`, dense and row-major.
//! Zeros of the padding are multiplied like any other input; beyond an output there is nothing, so an input gradient is the sum of the products that reach it.

use super::engine::{Contraction, contract};
use super::implicit::{Convolution, Gradient, convolve, gradient};
use super::micro::Scalar;
use super::narrow;
use super::operand::{Grid, Offsets, Operand, Strided};
use super::packed::PackedCopy;
use super::parallel::ParallelFor;
use super::reached;
use super::region::Images;
use super::scratch::Scratch;
use super::sink::{Epilogue, Finished, Sink, Store};
use super::window::{Axes, Axis, Role, Window};

/// One spatial axis of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// Positions of the input.
    pub input: usize,
    /// Positions of the output; what the input would need beyond its end for them is zero padding.
    pub output: usize,
    /// Taps of the kernel.
    pub kernel: usize,
    /// Input positions between output positions.
    pub stride: usize,
    /// Input positions between taps.
    pub dilation: usize,
    /// Zeros before the first input position.
    pub padding: usize,
}

impl Spatial {
    /// An axis that is not there.
    pub const NONE: Spatial = Spatial { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, padding: 0 };
}

/// Sizes of a convolution of one, two or three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Images in the batch.
    pub images: usize,
    /// Independent groups of channels.
    pub groups: usize,
    /// Input channels, over all groups.
    pub inputs: usize,
    /// Output channels, over all groups.
    pub outputs: usize,
    /// Spatial axes, innermost last; unused ones come first and are [`Spatial::NONE`].
    pub axes: [Spatial; 3],
}

impl Conv {
    fn input_size(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    fn output_size(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Input and output channels of a group.
    fn channels(&self) -> (usize, usize) {
        (self.inputs / self.groups, self.outputs / self.groups)
    }

    /// True if every output reads one input, at its own position.
    fn pointwise(&self) -> bool {
        self.axes.iter().all(|a| a.kernel == 1 && a.stride == 1 && a.padding == 0 && a.input == a.output)
    }

    /// The windows of the forward direction.
    fn axes(&self) -> Axes {
        let mut stride = 1;
        let mut axes = [Axis::NONE; 3];
        for (axis, to) in self.axes.iter().zip(&mut axes).rev() {
            *to = Axis {
                positions: axis.output,
                taps: axis.kernel,
                size: axis.input,
                stride,
                step: axis.stride as isize,
                tap_step: axis.dilation as isize,
                start: -(axis.padding as isize),
            };
            stride *= axis.input as isize;
        }
        axes
    }
}

/// Computes `y[i][o][p] = sum_{c, t} w[o][c][t] x[i][c][p * stride + t * dilation - padding]`.
///
/// Parts handed to an epilogue have the image as batch entry, output channels as rows and positions as columns; so has a store.
///
/// # Safety
/// `x` and `w` are readable for the sizes of `conv`, the sink writable, and nothing overlaps the result.
pub unsafe fn forward<E: Scalar>(conv: &Conv, x: *const E, w: *const E, sink: &Sink<'_, E>, pool: &dyn ParallelFor) {
    // SAFETY: as the caller's.
    unsafe { forward_with(conv, x, w, None, sink, pool) }
}

/// As [`forward`], with the packed copy of the weights' memory.
///
/// # Safety
/// As for [`forward`]; `packed` belongs to the memory of the weights, which is all theirs.
pub(crate) unsafe fn forward_with<E: Scalar>(
    conv: &Conv,
    x: *const E,
    w: *const E,
    packed: Option<&PackedCopy>,
    sink: &Sink<'_, E>,
    pool: &dyn ParallelFor,
) {
    let (inputs, outputs) = conv.channels();
    let (size, taps) = (conv.input_size(), conv.taps());
    let k = inputs * taps;
    let image = (conv.inputs * size) as isize;
    let batch = Offsets::new(&[(conv.groups, (inputs * size) as isize), (conv.images, image)]);
    let weights_batch = Offsets::new(&[(conv.groups, (outputs * k) as isize), (conv.images, 0)]);
    let weights = Strided::new(w, k as isize, 1, weights_batch);
    let (dense, windows);
    let b: &dyn Operand<E> = if conv.pointwise() {
        dense = Strided::new(x, 1, size as isize, batch);
        &dense
    } else {
        windows = Window::new(x, size as isize, conv.axes(), Role::PositionsOuter, batch);
        &windows
    };
    let grouped = Grouped::new(sink, conv.groups, conv.images, outputs);
    let few = k != 0 && outputs <= narrow::ROWS;
    if few || by_pointers(conv, outputs, 16 * conv.output_size(), k) {
        let job = Convolution {
            images: Images { ptr: x, image, channel: size as isize, channels: inputs, count: conv.images, axes: conv.axes() },
            groups: conv.groups,
            group: (inputs * size) as isize,
            rows: outputs,
            weights: &weights,
            packed,
            sink: grouped.sink(),
        };
        // SAFETY: as the caller's.
        return unsafe { if few { narrow::convolve(&job, pool) } else { convolve(&job, pool) } };
    }
    let job = Contraction { batch: conv.groups * conv.images, m: outputs, n: conv.output_size(), k, a: &weights, b, sink: grouped.sink() };
    // SAFETY: as the caller's.
    unsafe { contract(&job, pool) }
}

/// Computes `dw[o][c][t] = sum_{i, p} dy[i][o][p] x[i][c][p * stride + t * dilation - padding]`.
///
/// Parts handed to an epilogue have batch entry 0, output channels as rows and `(channel of the group, tap)` as columns; so has
/// a store.
///
/// # Safety
/// As for [`forward`], with `dy` in the place of the weights.
pub unsafe fn weight_gradient<E: Scalar>(conv: &Conv, x: *const E, dy: *const E, sink: &Sink<'_, E>, pool: &dyn ParallelFor) {
    let (inputs, outputs) = conv.channels();
    let (size, positions, taps) = (conv.input_size(), conv.output_size(), conv.taps());
    let image = (conv.inputs * size) as isize;
    let a = Grid::new(
        dy,
        positions as isize,
        &[(conv.images, (conv.outputs * positions) as isize), (positions, 1)],
        Offsets::new(&[(conv.groups, (outputs * positions) as isize)]),
    );
    let batch = Offsets::new(&[(conv.groups, (inputs * size) as isize)]);
    let (dense, windows);
    let b: &dyn Operand<E> = if conv.pointwise() {
        dense = Grid::new(x, size as isize, &[(conv.images, image), (size, 1)], batch);
        &dense
    } else {
        windows = Window::new(x, size as isize, conv.axes(), Role::PositionsInner { image }, batch);
        &windows
    };
    let grouped = Grouped::new(sink, conv.groups, 1, outputs);
    let long = conv.images * positions >= 128 && positions > 0;
    let few = outputs <= narrow::ROWS && positions * inputs * taps != 0;
    if few || long && by_pointers(conv, outputs, usize::MAX / conv.images, inputs * taps) {
        let job = Gradient {
            images: Images { ptr: x, image, channel: size as isize, channels: inputs, count: conv.images, axes: conv.axes() },
            groups: conv.groups,
            group: (inputs * size) as isize,
            rows: outputs,
            dy,
            sink: grouped.sink(),
        };
        // SAFETY: as the caller's.
        return unsafe { if few { narrow::gradient(&job, pool) } else { gradient(&job, pool) } };
    }
    let job = Contraction { batch: conv.groups, m: outputs, n: inputs * taps, k: conv.images * positions, a: &a, b, sink: grouped.sink() };
    // SAFETY: as the caller's.
    unsafe { contract(&job, pool) }
}

/// Computes the gradient of [`forward`] in its input, which is also the transposed convolution:
/// `dx[i][c][q] = sum w[o][c][t] dy[i][o][p]` over all `o`, `t`, `p` with `q = p * stride + t * dilation - padding`.
///
/// Parts handed to an epilogue have the image as batch entry, input channels as rows and input positions as columns; so has a
/// store.
///
/// # Safety
/// As for [`forward`], with `dy` in the place of `x`.
pub unsafe fn input_gradient<E: Scalar>(conv: &Conv, dy: *const E, w: *const E, sink: &Sink<'_, E>, pool: &dyn ParallelFor) {
    let (inputs, _) = conv.channels();
    let size = conv.input_size();
    let strided = conv.axes.iter().any(|axis| axis.stride > 1);
    let grouped = Grouped::new(sink, conv.groups, conv.images, inputs);
    // SAFETY: the weights are readable.
    if !conv.pointwise() && unsafe { !reached::finite(w, conv.outputs * inputs * conv.taps(), pool) } {
        // SAFETY: as the caller's.
        return unsafe { reached::input_gradient(conv, dy, w, &grouped.sink(), pool) };
    }
    if !strided {
        let phase = conv.axes.map(|axis| Phase::new(&axis, 0));
        // SAFETY: as the caller's.
        return unsafe { run_phase(conv, &phase, dy, w, grouped.sink(), pool) };
    }
    // With a stride, input positions fall into phases that meet different taps: each phase is a convolution of its own
    // whose results lie a stride apart.
    let held;
    let whole = match grouped.sink() {
        Sink::Store(store) if store.col == 1 => store,
        Sink::Store(_) | Sink::Epilogue(_) => {
            held = Scratch::take(conv.images * conv.inputs * size * size_of::<E>());
            let (row, image) = (size as isize, (inputs * size) as isize);
            let group = image * conv.images as isize;
            Store::new(held.ptr(), row, 1, Offsets::new(&[(conv.groups, group), (conv.images, image)]))
        }
    };
    let strides = [conv.axes[1].input * conv.axes[2].input, conv.axes[2].input, 1];
    let steps = conv.axes.map(|axis| axis.stride);
    for phase in 0..steps[0] * steps[1] * steps[2] {
        let first = [phase / (steps[1] * steps[2]), phase / steps[2] % steps[1], phase % steps[2]];
        let mut phases = [Phase::new(&conv.axes[0], first[0]); 3];
        let mut at = 0;
        for d in 0..3 {
            phases[d] = Phase::new(&conv.axes[d], first[d]);
            at += first[d] * strides[d];
        }
        if phases.iter().any(|phase| phase.positions == 0) {
            continue;
        }
        let scatter = Scatter {
            store: Store { ptr: whole.ptr.wrapping_add(at), ..whole.clone() },
            widths: [phases[1].positions, phases[2].positions],
            strides: core::array::from_fn(|d| (strides[d] * steps[d]) as isize),
        };
        // SAFETY: as the caller's; phases write disjoint positions.
        unsafe { run_phase(conv, &phases, dy, w, Sink::Epilogue(&scatter), pool) };
    }
    if let Sink::Epilogue(epilogue) = grouped.sink() {
        hand_over(conv, &whole, epilogue, pool);
    } else if let Sink::Store(store) = grouped.sink()
        && store.col != 1
    {
        hand_over(conv, &whole, &store, pool);
    }
}

/// True if windows are better read through pointers, with the result's channels as columns, than unfolded while packing.
///
/// Reading through pointers packs the weights and turns the result; unfolding packs every window.
fn by_pointers(conv: &Conv, rows: usize, positions: usize, k: usize) -> bool {
    let lanes = rows.next_multiple_of(16);
    k != 0 && rows * 4 >= lanes * 3 && conv.images * positions >= rows
}

/// Hands a finished input gradient to an epilogue, in blocks of rows.
fn hand_over<E: Scalar>(conv: &Conv, whole: &Store<E>, epilogue: &dyn Epilogue<E>, pool: &dyn ParallelFor) {
    let (inputs, _) = conv.channels();
    let size = conv.input_size();
    let rows = (8192 / size.max(1)).clamp(1, inputs.max(1));
    let blocks = inputs.div_ceil(rows);
    super::engine::each(pool, conv.groups * conv.images * blocks, rows * size * 16, &|i| {
        let (batch, row) = (i / blocks, i % blocks * rows);
        let part = Finished { batch, row, rows: rows.min(inputs - row), col: 0, cols: size, data: whole.at(batch, row, 0), row_stride: size };
        // SAFETY: the part is inside the scratch that holds the gradient; blocks are disjoint.
        unsafe { epilogue.finish(&part) }
    });
}

/// Along one axis: the input positions `first, first + stride, ...` and the taps that reach them.
#[derive(Clone, Copy)]
struct Phase {
    positions: usize,
    /// Taps `tap, tap + tap_step, ...`, `taps` of them.
    tap: usize,
    tap_step: usize,
    taps: usize,
    /// Output position that position 0 reads with the first tap, and how far a tap moves it (backwards).
    start: isize,
    back: isize,
}

impl Phase {
    fn new(axis: &Spatial, first: usize) -> Phase {
        let (stride, dilation) = (axis.stride, axis.dilation);
        let tap_step = stride / gcd(stride, dilation);
        let reached = |t: usize| (first + axis.padding) as isize - (t * dilation) as isize;
        // The first tap whose distance to the position is a multiple of the stride; without one the taps are none.
        let tap = (0..tap_step.min(axis.kernel)).find(|t| reached(*t) % stride as isize == 0);
        let (tap, taps) = match tap {
            Some(tap) => (tap, (axis.kernel - tap).div_ceil(tap_step)),
            None => (0, 0),
        };
        Phase {
            positions: axis.input.saturating_sub(first).div_ceil(stride),
            tap,
            tap_step,
            taps,
            start: reached(tap).div_euclid(stride as isize),
            back: (tap_step * dilation / stride) as isize,
        }
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// One phase of an input gradient: a convolution of `dy` with some of the taps.
unsafe fn run_phase<E: Scalar>(conv: &Conv, phases: &[Phase; 3], dy: *const E, w: *const E, sink: Sink<'_, E>, pool: &dyn ParallelFor) {
    let (inputs, outputs) = conv.channels();
    let (positions, taps) = (conv.output_size(), conv.taps());
    let tap_strides = [conv.axes[1].kernel * conv.axes[2].kernel, conv.axes[2].kernel, 1];
    let mut axes = [Axis::NONE; 3];
    let mut levels = [(outputs, (inputs * taps) as isize); 4];
    let mut tap0 = 0;
    let mut stride = 1;
    for d in (0..3).rev() {
        let phase = &phases[d];
        axes[d] = Axis {
            positions: phase.positions,
            taps: phase.taps,
            size: conv.axes[d].output,
            stride,
            step: 1,
            tap_step: -phase.back,
            start: phase.start,
        };
        stride *= conv.axes[d].output as isize;
        levels[d + 1] = (phase.taps, (tap_strides[d] * phase.tap_step) as isize);
        tap0 += phase.tap * tap_strides[d];
    }
    let met: usize = phases.iter().map(|phase| phase.taps).product();
    let weights_batch = Offsets::new(&[(conv.groups, (outputs * inputs * taps) as isize), (conv.images, 0)]);
    let weights = Grid::new(w.wrapping_add(tap0), taps as isize, &levels, weights_batch);
    let batch = Offsets::new(&[(conv.groups, (outputs * positions) as isize), (conv.images, (conv.outputs * positions) as isize)]);
    let (dense, windows);
    let b: &dyn Operand<E> = if conv.pointwise() {
        dense = Strided::new(dy, 1, positions as isize, batch);
        &dense
    } else {
        windows = Window::new(dy, positions as isize, axes, Role::PositionsOuter, batch);
        &windows
    };
    let count = phases.iter().map(|phase| phase.positions).product();
    let few = outputs * met != 0 && inputs <= narrow::ROWS;
    if few || by_pointers(conv, inputs, 16 * count, outputs * met) {
        let job = Convolution {
            images: Images {
                ptr: dy,
                image: (conv.outputs * positions) as isize,
                channel: positions as isize,
                channels: outputs,
                count: conv.images,
                axes,
            },
            groups: conv.groups,
            group: (outputs * positions) as isize,
            rows: inputs,
            weights: &weights,
            packed: None,
            sink,
        };
        // SAFETY: as the caller's.
        return unsafe { if few { narrow::convolve(&job, pool) } else { convolve(&job, pool) } };
    }
    let job = Contraction { batch: conv.groups * conv.images, m: inputs, n: count, k: outputs * met, a: &weights, b, sink };
    // SAFETY: as the caller's.
    unsafe { contract(&job, pool) }
}

/// Writes the positions of a phase where they belong.
struct Scatter<E> {
    store: Store<E>,
    /// Positions of the two inner axes.
    widths: [usize; 2],
    /// Distance between the positions of each axis, in elements.
    strides: [isize; 3],
}

impl<E: Scalar> Epilogue<E> for Scatter<E> {
    unsafe fn finish(&self, part: &Finished<E>) {
        let width = self.widths[1];
        for r in 0..part.rows {
            let mut c = 0;
            while c < part.cols {
                let (row, at) = ((part.col + c) / width, (part.col + c) % width);
                let len = (width - at).min(part.cols - c);
                let offset = (row / self.widths[0]) as isize * self.strides[0]
                    + (row % self.widths[0]) as isize * self.strides[1]
                    + at as isize * self.strides[2];
                let store = &self.store;
                let to = store.at(part.batch, part.row + r, 0).wrapping_offset(offset);
                for i in 0..len {
                    // SAFETY: the part and the result are valid; positions of one phase are written once.
                    unsafe {
                        let x = part.data.add(r * part.row_stride + c + i).read().times(store.scale);
                        let to = to.offset(i as isize * self.strides[2]);
                        let kept = store.keep != E::ZERO;
                        to.write(if kept { to.read().mul_add(store.keep, x) } else { x });
                    }
                }
                c += len;
            }
        }
    }
}

/// Gives a sink of `(image, channel, position)` the batch order of the engine: groups outside, images inside.
struct Grouped<'a, E: Scalar> {
    sink: &'a Sink<'a, E>,
    epilogue: Regroup<'a, E>,
    groups: usize,
    images: usize,
    rows: usize,
}

/// Turns `(group, image)` batch entries with rows of a group into images with rows of all groups.
struct Regroup<'a, E> {
    inner: Option<&'a dyn Epilogue<E>>,
    images: usize,
    rows: usize,
}

impl<'a, E: Scalar> Grouped<'a, E> {
    fn new(sink: &'a Sink<'a, E>, groups: usize, images: usize, rows: usize) -> Self {
        let inner = match sink {
            Sink::Epilogue(inner) => Some(*inner),
            Sink::Store(_) => None,
        };
        Grouped { sink, epilogue: Regroup { inner, images, rows }, groups, images, rows }
    }

    fn sink(&self) -> Sink<'_, E> {
        match self.sink {
            Sink::Epilogue(inner) if self.groups == 1 => Sink::Epilogue(*inner),
            Sink::Epilogue(_) => Sink::Epilogue(&self.epilogue),
            Sink::Store(store) => {
                let image = if self.images > 1 { store.batch.at(1) } else { 0 };
                let group = store.row * self.rows as isize;
                Sink::Store(Store { batch: Offsets::new(&[(self.groups, group), (self.images, image)]), ..store.clone() })
            }
        }
    }
}

impl<E: Scalar> Epilogue<E> for Regroup<'_, E> {
    unsafe fn finish(&self, part: &Finished<E>) {
        let Some(inner) = self.inner else { return };
        let part = Finished { batch: part.batch % self.images, row: part.batch / self.images * self.rows + part.row, ..*part };
        // SAFETY: as the caller's.
        unsafe { inner.finish(&part) }
    }
}
