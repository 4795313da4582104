//! Convolutions in the schedule of a program.
use alloc::boxed::Box;
use alloc::string::ToString;
use core::ops::Range;

use kiln_ir::dims::numel;
use kiln_ir::expr::Inst;
use kiln_ir::kernel::{ConvKernel, ConvMode};
use kiln_ir::{Affine, BufId, Dims, Expr, IDims, Lane, Place, Program, RuntimeError};

use super::contraction::{ALONE, Epilogues, Finish, buffers};
use super::element::{Element, with_element};
use super::vector::{Body, vectorize};
use super::{Failure, Frame, Prepared};
use crate::contract::conv::{self, Spatial};
use crate::contract::{Epilogue, Finished, Offsets, ParallelFor, Scalar, Serial, Sink, Store};
use crate::math::Arith;
use crate::memory::{Cache, Storage};
use crate::pool::{Pool, span};
use crate::tile::{Region, TileExpr, TileRun};

/// A prepared convolution or one of its gradients.
pub(crate) struct Conv {
    kernel: ConvKernel,
    sizes: conv::Conv,
    finish: Ending,
    /// Elements of the operands.
    lens: [usize; 2],
    /// The input of the program that the second operand is, if it is one.
    input: Option<u32>,
    work: usize,
}

/// What becomes of the sums: rows are channels, columns all that follows them.
enum Ending {
    /// Columns are walked as one axis.
    Merged(Finish),
    /// The epilogue tells the axes of a column apart.
    Apart(Box<TileExpr>),
}

/// Prepares a convolution.
pub(crate) fn prepare(k: &ConvKernel, program: &Program) -> Result<Box<dyn Prepared>, RuntimeError> {
    let n = k.attrs.stride.len();
    let axes = core::array::from_fn(|d| match (d + n).checked_sub(3) {
        Some(s) => Spatial {
            input: k.x[s + 2],
            output: k.y[s + 2],
            kernel: k.w[s + 2],
            stride: k.attrs.stride[s],
            dilation: k.attrs.dilation[s],
            padding: k.attrs.padding[s].0,
        },
        None => Spatial::NONE,
    });
    let sizes = conv::Conv { images: k.x[0], groups: k.attrs.groups, inputs: k.x[1], outputs: k.w[0], axes };
    let (result, [a, b]) = match k.mode {
        ConvMode::Forward => (&k.y, [&k.x, &k.w]),
        ConvMode::InputGrad => (&k.x, [&k.y, &k.w]),
        ConvMode::WeightGrad => (&k.w, [&k.x, &k.y]),
    };
    let rows = row_axis(k.mode);
    let finish = match merge(&k.epilogue, result, rows + 1) {
        Some((expr, dims)) => Ending::Merged(Finish::new(&expr, &dims, k.dtype, program)?),
        None => {
            let expr = TileExpr::epilogue(&k.epilogue, result, k.dtype, &program.bufs).map_err(RuntimeError::Unsupported)?;
            Ending::Apart(Box::new(expr))
        }
    };
    let products = numel(&k.y) * numel(&k.w[1..]);
    let lens = [numel(a), numel(b)];
    let work = products / 8 + (lens[0] + lens[1] + numel(result)) * k.dtype.size();
    let input = match program.buf(k.b).place {
        Place::Input(n) => Some(n),
        Place::Output(_) | Place::Arena(_) | Place::Unused => None,
    };
    Ok(Box::new(Conv { sizes, finish, lens, input, work, kernel: k.clone() }))
}

/// The axis of the result that the engine calls rows.
fn row_axis(mode: ConvMode) -> usize {
    match mode {
        ConvMode::Forward | ConvMode::InputGrad => 1,
        ConvMode::WeightGrad => 0,
    }
}

/// The expression with the axes from `first` on as one, if it walks them so.
fn merge(expr: &Expr, dims: &[usize], first: usize) -> Option<(Expr, Dims)> {
    let merged = |index: &Affine| -> Option<Affine> {
        let mut unit = None;
        let mut size = 1isize;
        for d in (first..dims.len()).rev().filter(|d| dims[*d] != 1) {
            let step = *unit.get_or_insert(index.coeffs[d]);
            if index.coeffs[d] != step * size {
                return None;
            }
            size *= dims[d] as isize;
        }
        let mut coeffs = IDims::from_slice(&index.coeffs[..first]);
        coeffs.push(unit.unwrap_or(0));
        Some(Affine { coeffs, ..index.clone() })
    };
    let mut out = expr.clone();
    for load in &mut out.loads {
        load.index = merged(&load.index)?;
        for bound in &mut load.bounds {
            bound.index = merged(&bound.index)?;
        }
    }
    for value in &mut out.values {
        match &mut value.inst {
            Inst::Index(index) | Inst::Random(_, index, _) => *index = merged(index)?,
            Inst::Inside(bounds) => {
                for bound in bounds {
                    bound.index = merged(&bound.index)?;
                }
            }
            Inst::Load(_) | Inst::Arg(_) | Inst::Const(_) | Inst::Op(..) | Inst::Cast(_) | Inst::Reduce(..) | Inst::Acc => {}
        }
    }
    for store in &mut out.stores {
        store.index = merged(&store.index)?;
    }
    let sizes = dims[..first].iter().copied().chain([numel(&dims[first..])]).collect();
    Some((out, sizes))
}

/// An epilogue whose columns are several axes: it runs row by row of the innermost one.
struct Apart<'a> {
    run: TileRun<'a>,
    dims: &'a [usize],
    rows: usize,
    failure: &'a Failure,
}

impl<E: Scalar> Epilogue<E> for Apart<'_> {
    unsafe fn finish(&self, part: &Finished<E>) {
        let rank = self.dims.len();
        let width = self.dims[rank - 1];
        let mut coords = Dims::from_elem(0, rank);
        for r in 0..part.rows {
            coords[0] = part.batch;
            coords[self.rows] = part.row + r;
            let mut c = 0;
            while c < part.cols {
                let mut at = part.col + c;
                for d in (self.rows + 1..rank).rev() {
                    coords[d] = at % self.dims[d];
                    at /= self.dims[d];
                }
                let columns = (width - coords[rank - 1]).min(part.cols - c);
                let region = Region { batch: &coords[..rank - 2], row: coords[rank - 2], rows: 1, column: coords[rank - 1], columns };
                let data = part.data.wrapping_add(r * part.row_stride + c);
                // SAFETY: the part is valid for its extent.
                if let Err(e) = unsafe { self.run.region(region, data.cast(), part.row_stride) } {
                    return self.failure.report(e.to_string());
                }
                c += columns;
            }
        }
    }
}

/// Widens adjacent elements.
struct Widening<T: Element> {
    from: *const T,
    to: *mut T::Wide,
    n: usize,
}

impl<T: Element> Body for Widening<T> {
    type Out = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        for i in 0..self.n {
            // SAFETY: the maker's promise: `n` elements on both sides.
            unsafe { *self.to.add(i) = (*self.from.add(i)).widen() };
        }
    }
}

/// Where widened elements go; tasks write disjoint parts.
struct Target<E>(*mut E);

// SAFETY: see the type.
unsafe impl<E> Sync for Target<E> {}

impl<E> Target<E> {
    fn at(&self, i: usize) -> *mut E {
        self.0.wrapping_add(i)
    }
}

impl Conv {
    /// An operand as elements that are summed: itself, or a widened copy held by the storage.
    fn operand<E: Scalar>(&self, frame: &Frame<'_>, buf: BufId, len: usize, pool: &dyn ParallelFor) -> Option<(*const E, Option<Storage>)> {
        let dtype = self.kernel.dtype;
        if dtype.size() == core::mem::size_of::<E>() {
            return Some((frame.ptr::<E>(buf), None));
        }
        let storage = match Cache::global().allocate(len * core::mem::size_of::<E>()) {
            Ok(storage) => storage,
            Err(e) => {
                frame.failure.report(e.to_string());
                return None;
            }
        };
        let tasks = (len >> 14).clamp(1, 4 * pool.threads());
        // Operands have their length; tasks write disjoint parts of the copy.
        with_element!(dtype, T => {
            let (from, to) = (Target(frame.ptr::<T>(buf)), Target(storage.as_ptr().cast::<<T as Element>::Wide>()));
            pool.run(tasks, &|task| {
                let part = span(len, 16, tasks, task);
                vectorize(Widening::<T> { from: from.at(part.start), to: to.at(part.start), n: part.len() });
            });
        });
        Some((storage.as_ptr().cast(), Some(storage)))
    }

    unsafe fn typed<E: Scalar>(&self, frame: &Frame<'_>, pool: &dyn ParallelFor) {
        let k = &self.kernel;
        // SAFETY: the frame's buffers have the extents of the kernel, and the plan keeps results apart from operands.
        unsafe {
            let Some((a, _held_a)) = self.operand::<E>(frame, k.a, self.lens[0], pool) else { return };
            let Some((b, _held_b)) = self.operand::<E>(frame, k.b, self.lens[1], pool) else { return };
            let rows = row_axis(k.mode);
            let result = match k.mode {
                ConvMode::Forward => &k.y,
                ConvMode::InputGrad => &k.x,
                ConvMode::WeightGrad => &k.w,
            };
            let batch = &result[..rows];
            let (merged, apart);
            let sink = match &self.finish {
                Ending::Merged(Finish::Plain(store)) => {
                    let index = &store.index;
                    let ptr = frame.ptr::<E>(store.buf).wrapping_offset(index.origin(frame.args));
                    let images: Offsets = if rows == 1 { Offsets::new(&[(batch[0], index.coeffs[0])]) } else { Offsets::new(&[]) };
                    Sink::Store(Store::new(ptr, index.coeffs[rows], index.coeffs[rows + 1], images))
                }
                Ending::Merged(Finish::Epilogue(expr)) => {
                    merged = Epilogues::new(expr, frame, k.dtype, batch);
                    Sink::Epilogue(&merged)
                }
                Ending::Apart(expr) => {
                    apart = Apart { run: expr.start(buffers(frame)), dims: result, rows, failure: frame.failure };
                    Sink::Epilogue(&apart)
                }
            };
            match k.mode {
                ConvMode::Forward => {
                    let packed = self.input.filter(|_| k.dtype.size() == size_of::<E>()).and_then(|n| frame.packed(n));
                    conv::forward_with(&self.sizes, a, b, packed, &sink, pool)
                }
                ConvMode::InputGrad => conv::input_gradient(&self.sizes, a, b, &sink, pool),
                ConvMode::WeightGrad => conv::weight_gradient(&self.sizes, a, b, &sink, pool),
            }
        }
    }

    unsafe fn on(&self, frame: &Frame<'_>, pool: &dyn ParallelFor) {
        // SAFETY: as the caller's; inference admits floats only.
        unsafe {
            match self.kernel.dtype.lane() {
                Lane::F64 => self.typed::<f64>(frame, pool),
                Lane::F32 | Lane::Int | Lane::Bool => self.typed::<f32>(frame, pool),
            }
        }
    }
}

impl Prepared for Conv {
    fn pieces(&self) -> usize {
        1
    }

    fn work(&self) -> usize {
        self.work
    }

    unsafe fn run(&self, frame: &Frame<'_>, pieces: Range<usize>) {
        if !pieces.is_empty() {
            // SAFETY: as the caller's.
            unsafe { self.on(frame, &Serial) }
        }
    }

    fn is_alone(&self) -> bool {
        self.work >= ALONE
    }

    unsafe fn run_all(&self, frame: &Frame<'_>, pool: &Pool) {
        // SAFETY: as the caller's.
        unsafe { self.on(frame, pool) }
    }
}
