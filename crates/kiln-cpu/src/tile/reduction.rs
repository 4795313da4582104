//! The loops of reductions: a tile into one cell (along the vector axis), or rows into a vector of accumulators (across it).
use core::marker::PhantomData;

use kiln_ir::ReduceOp;

use super::elementwise::Kind;
use super::stored::number;
use crate::math::Arith;
use crate::simd::{Level, Loop, LoopFn, compiled};

/// Bytes of the state of one reduction in progress.
pub(super) const CELL: usize = 16;

/// A reduction whose elements combine in any order.
trait Fold: 'static {
    /// Element of a tile, and of an accumulator.
    type T: Copy + 'static;
    /// The running result over tiles; wider where it helps accuracy. At most 8 bytes.
    type Wide: Copy + 'static;
    /// What nothing reduces to.
    const START: Self::T;
    /// The same, wide.
    const WIDE: Self::Wide;

    fn step(acc: Self::T, x: Self::T) -> Self::T;
    fn join(wide: Self::Wide, x: Self::T) -> Self::Wide;
    fn finish(wide: Self::Wide) -> Self::T;
}

struct Sum<T>(PhantomData<T>);
struct Prod<T>(PhantomData<T>);
struct Max<T>(PhantomData<T>);
struct Min<T>(PhantomData<T>);

macro_rules! fold {
    ($($name:ident<$t:ty> as $wide:ty: $start:expr, $step:expr, $join:expr;)*) => {
        $(
            impl Fold for $name<$t> {
                type T = $t;
                type Wide = $wide;
                const START: $t = $start as $t;
                const WIDE: $wide = $start as $wide;

                #[inline(always)]
                fn step(acc: $t, x: $t) -> $t {
                    let step: fn($t, $t) -> $t = $step;
                    step(acc, x)
                }

                #[inline(always)]
                fn join(wide: $wide, x: $t) -> $wide {
                    let join: fn($wide, $wide) -> $wide = $join;
                    join(wide, x as $wide)
                }

                #[inline(always)]
                fn finish(wide: $wide) -> $t {
                    wide as $t
                }
            }
        )*
    };
}

macro_rules! extremum {
    ($x:ident $op:tt $acc:ident) => {
        if ($x $op $acc) | $x.is_nan() { $x } else { $acc }
    };
}

fold! {
    Sum<f32> as f64: 0.0, |a, x| a + x, |a, x| a + x;
    Sum<f64> as f64: 0.0, |a, x| a + x, |a, x| a + x;
    Sum<i64> as i64: 0, |a, x| a.wrapping_add(x), |a, x| a.wrapping_add(x);
    Sum<u64> as u64: 0, |a, x| a.wrapping_add(x), |a, x| a.wrapping_add(x);
    Prod<f32> as f64: 1.0, |a, x| a * x, |a, x| a * x;
    Prod<f64> as f64: 1.0, |a, x| a * x, |a, x| a * x;
    Prod<i64> as i64: 1, |a, x| a.wrapping_mul(x), |a, x| a.wrapping_mul(x);
    Prod<u64> as u64: 1, |a, x| a.wrapping_mul(x), |a, x| a.wrapping_mul(x);
    Max<f32> as f32: f32::NEG_INFINITY, |a, x| extremum!(x > a), |a, x| extremum!(x > a);
    Max<f64> as f64: f64::NEG_INFINITY, |a, x| extremum!(x > a), |a, x| extremum!(x > a);
    Max<i64> as i64: i64::MIN, |a, x| if x > a { x } else { a }, |a, x| if x > a { x } else { a };
    Max<u64> as u64: 0, |a, x| if x > a { x } else { a }, |a, x| if x > a { x } else { a };
    Max<u8> as u8: 0, |a, x| a | x, |a, x| a | x;
    Min<f32> as f32: f32::INFINITY, |a, x| extremum!(x < a), |a, x| extremum!(x < a);
    Min<f64> as f64: f64::INFINITY, |a, x| extremum!(x < a), |a, x| extremum!(x < a);
    Min<i64> as i64: i64::MAX, |a, x| if x < a { x } else { a }, |a, x| if x < a { x } else { a };
    Min<u64> as u64: u64::MAX, |a, x| if x < a { x } else { a }, |a, x| if x < a { x } else { a };
    Min<u8> as u8: 1, |a, x| a & x, |a, x| a & x;
}

/// Reduces `x` in `LANES` accumulators and folds them in a fixed tree.
#[inline(always)]
fn fold_lanes<F: Fold, const LANES: usize>(x: &[F::T]) -> F::T {
    let mut acc = [F::START; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for k in 0..LANES {
            acc[k] = F::step(acc[k], block[k]);
        }
    }
    for (a, &x) in acc.iter_mut().zip(rest) {
        *a = F::step(*a, x);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for k in 0..width {
            acc[k] = F::step(acc[k], acc[k + width]);
        }
        width /= 2;
    }
    acc[0]
}

#[inline(always)]
fn fold_slice<F: Fold>(x: &[F::T]) -> F::T {
    if x.len() >= 256 { fold_lanes::<F, 64>(x) } else { fold_lanes::<F, 16>(x) }
}

/// Joins the `n` elements of `a` to the cell `dst`.
struct Along<F>(PhantomData<F>);

impl<F: Fold> Loop for Along<F> {
    const ONCE: bool = size_of::<F::T>() == 1;
    const NARROW: bool = size_of::<F::T>() == 8;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable, and the cell is ours.
        let (x, cell) = unsafe { (core::slice::from_raw_parts(a as *const F::T, n), &mut *(dst as *mut F::Wide)) };
        *cell = F::join(*cell, fold_slice::<F>(x));
    }
}

/// Accumulators of a sum of f32.
const SUMS: usize = 64;

/// The sum of accumulators, by a fixed tree.
#[inline(always)]
fn total(mut acc: [f32; SUMS]) -> f64 {
    let mut width = SUMS / 2;
    while width > 0 {
        for k in 0..width {
            acc[k] += acc[k + width];
        }
        width /= 2;
    }
    acc[0] as f64
}

/// Joins the products of the `n` elements of `a` and `b` to the sum in the cell `dst`.
struct ProductsAlong;

impl Loop for ProductsAlong {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable in both, and the cell is ours.
        let (x, y, cell) =
            unsafe { (core::slice::from_raw_parts(a as *const f32, n), core::slice::from_raw_parts(b as *const f32, n), &mut *(dst as *mut f64)) };
        let mut acc = [0f32; SUMS];
        let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<SUMS>(), y.as_chunks::<SUMS>());
        for (x, y) in x.iter().zip(y) {
            for k in 0..SUMS {
                acc[k] += x[k] * y[k];
            }
        }
        for ((acc, x), y) in acc.iter_mut().zip(x_rest).zip(y_rest) {
            *acc += x * y;
        }
        *cell += total(acc);
    }
}

/// Joins the squares of the differences of the `n` elements of `a` and the element at `b` to the sum in the cell `dst`.
struct DeviationsAlong;

impl Loop for DeviationsAlong {
    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable at `a` and one at `b`, and the cell is ours.
        let (x, middle, cell) = unsafe { (core::slice::from_raw_parts(a as *const f32, n), *(b as *const f32), &mut *(dst as *mut f64)) };
        let mut acc = [0f32; SUMS];
        let (blocks, rest) = x.as_chunks::<SUMS>();
        for block in blocks {
            for k in 0..SUMS {
                acc[k] += (block[k] - middle) * (block[k] - middle);
            }
        }
        for (acc, x) in acc.iter_mut().zip(rest) {
            *acc += (x - middle) * (x - middle);
        }
        *cell += total(acc);
    }
}

/// The loop that joins a tile of products of f32 to a sum, like [`ReduceLoops::along`] after a multiplication.
pub(super) fn products_along(level: Level) -> LoopFn {
    compiled::<ProductsAlong>(level)
}

/// The loop that joins the squared differences of a tile of f32 and one number to a sum.
pub(super) fn deviations_along(level: Level) -> LoopFn {
    compiled::<DeviationsAlong>(level)
}

/// Joins `b` rows of `n` elements each at `a` to the `n` accumulators at `dst`.
struct Across<F>(PhantomData<F>);

impl<F: Fold> Loop for Across<F> {
    const ONCE: bool = size_of::<F::T>() == 1;
    const NARROW: bool = size_of::<F::T>() == 8;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: the accumulators are ours and apart from the rows.
        let acc = unsafe { core::slice::from_raw_parts_mut(dst as *mut F::T, n) };
        for row in 0..b.addr() {
            // SAFETY: `b` rows are readable.
            let x = unsafe { core::slice::from_raw_parts((a as *const F::T).add(row * n), n) };
            acc.iter_mut().zip(x).for_each(|(acc, &x)| *acc = F::step(*acc, x));
        }
    }
}

/// Sets `n` accumulators to the start.
struct Start<F>(PhantomData<F>);

impl<F: Fold> Loop for Start<F> {
    const ONCE: bool = size_of::<F::T>() == 1;
    const NARROW: bool = size_of::<F::T>() == 8;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, _: *const u8, _: *const u8, _: *const u8, n: usize) {
        // SAFETY: the accumulators are ours.
        unsafe { core::slice::from_raw_parts_mut(dst as *mut F::T, n) }.fill(F::START);
    }
}

/// Sets a cell to the start.
struct StartCell<F>(PhantomData<F>);

impl<F: Fold> Loop for StartCell<F> {
    const ONCE: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, _: *const u8, _: *const u8, _: *const u8, _: usize) {
        // SAFETY: the cell is ours.
        unsafe { *(dst as *mut F::Wide) = F::WIDE };
    }
}

/// Writes a cell's result as an element.
struct FinishCell<F>(PhantomData<F>);

impl<F: Fold> Loop for FinishCell<F> {
    const ONCE: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, _: usize) {
        // SAFETY: the cell is readable and the element writable.
        unsafe { *(dst as *mut F::T) = F::finish(*(a as *const F::Wide)) };
    }
}

/// The position of the best element: `M` is the fold of the best, `T` its element.
trait Rank: Copy + PartialOrd + 'static {
    fn is_nan(self) -> bool;
}

impl Rank for f32 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
}

impl Rank for f64 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
}

impl Rank for i64 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

impl Rank for u64 {
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

/// Whether `x` beats the earlier `best`.
#[inline(always)]
fn beats<T: Rank, const LARGEST: bool>(x: T, best: T) -> bool {
    (x.is_nan() & !best.is_nan()) | if LARGEST { x > best } else { x < best }
}

/// The state of a search: the position is -1 before the first element.
#[repr(C)]
struct Found<T> {
    best: T,
    position: i64,
}

/// Joins the `n` elements of `a`, the first of which has position `b`, to the search in the cell `dst`.
struct SearchAlong<F, const LARGEST: bool>(PhantomData<F>);

impl<F: Fold, const LARGEST: bool> Loop for SearchAlong<F, LARGEST>
where
    F::T: Rank,
{
    const ONCE: bool = size_of::<F::T>() == 1;
    const NARROW: bool = size_of::<F::T>() == 8;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: `n` elements are readable, and the cell is ours.
        let (x, found) = unsafe { (core::slice::from_raw_parts(a as *const F::T, n), &mut *(dst as *mut Found<F::T>)) };
        if n == 0 {
            return;
        }
        let best = fold_slice::<F>(x);
        if found.position < 0 || beats::<F::T, LARGEST>(best, found.best) {
            let place = x.iter().position(|&x| x == best || x.is_nan()).unwrap_or(0);
            *found = Found { best, position: b.addr() as i64 + place as i64 };
        }
    }
}

struct StartSearch<T>(PhantomData<T>);

impl<T: Rank> Loop for StartSearch<T> {
    const ONCE: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, _: *const u8, _: *const u8, _: *const u8, _: usize) {
        // SAFETY: the cell is ours; a position of -1 makes the other field meaningless.
        unsafe { (*(dst as *mut Found<T>)).position = -1 };
    }
}

struct FinishSearch<T>(PhantomData<T>);

impl<T: Rank> Loop for FinishSearch<T> {
    const ONCE: bool = true;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, _: *const u8, _: *const u8, _: usize) {
        // SAFETY: the cell is readable and the element writable.
        unsafe { *(dst as *mut i64) = (*(a as *const Found<T>)).position.max(0) };
    }
}

/// Where a search across rows keeps what it found.
#[repr(C)]
pub(super) struct SearchRows {
    /// The best elements so far.
    pub best: *mut u8,
    /// Position of the first row.
    pub position: i64,
    /// Number of rows.
    pub rows: usize,
}

/// Joins rows of `n` elements at `a` to `n` searches: positions at `dst`, the rest in the [`SearchRows`] `b`. At position 0 the searches start.
struct SearchAcross<T, const LARGEST: bool>(PhantomData<T>);

impl<T: Rank, const LARGEST: bool> Loop for SearchAcross<T, LARGEST> {
    const NARROW: bool = size_of::<T>() == 8;

    #[inline(always)]
    unsafe fn run<A: Arith>(dst: *mut u8, a: *const u8, b: *const u8, _: *const u8, n: usize) {
        // SAFETY: `b` refers to a `SearchRows`, whose arrays hold `n` elements and are ours.
        unsafe {
            let rows = &*(b as *const SearchRows);
            let best = core::slice::from_raw_parts_mut(rows.best as *mut T, n);
            let position = core::slice::from_raw_parts_mut(dst as *mut i64, n);
            for row in 0..rows.rows {
                let x = core::slice::from_raw_parts((a as *const T).add(row * n), n);
                let at = rows.position + row as i64;
                for ((best, position), &x) in best.iter_mut().zip(position.iter_mut()).zip(x) {
                    let better = (at == 0) | beats::<T, LARGEST>(x, *best);
                    *best = if better { x } else { *best };
                    *position = if better { at } else { *position };
                }
            }
        }
    }
}

/// The loops of a reduction.
#[derive(Clone, Copy)]
pub(super) struct ReduceLoops {
    /// Makes the cell `dst` empty.
    pub start_cell: LoopFn,
    /// Joins the tile `a` to the cell `dst`; its first element has position `b`.
    pub along: LoopFn,
    /// Writes the result of the cell `a`.
    pub finish_cell: LoopFn,
    /// Makes `n` accumulators at `dst` empty.
    pub start: LoopFn,
    /// Joins `b` rows of `n` elements at `a` to the accumulators `dst`; for a search `b` is a [`SearchRows`].
    pub across: LoopFn,
    /// Whether this is a search for a position.
    pub search: bool,
    /// Whether partial sums should be set aside now and then, lest rounding errors pile up.
    pub staged: bool,
}

fn fold<F: Fold>(level: Level, staged: bool) -> ReduceLoops {
    ReduceLoops {
        start_cell: compiled::<StartCell<F>>(level),
        along: compiled::<Along<F>>(level),
        finish_cell: compiled::<FinishCell<F>>(level),
        start: compiled::<Start<F>>(level),
        across: compiled::<Across<F>>(level),
        search: false,
        staged,
    }
}

fn search<F: Fold, const LARGEST: bool>(level: Level) -> ReduceLoops
where
    F::T: Rank,
{
    ReduceLoops {
        start_cell: compiled::<StartSearch<F::T>>(level),
        along: compiled::<SearchAlong<F, LARGEST>>(level),
        finish_cell: compiled::<FinishSearch<F::T>>(level),
        start: compiled::<Start<Sum<i64>>>(level),
        across: compiled::<SearchAcross<F::T, LARGEST>>(level),
        search: true,
        staged: false,
    }
}

/// The loops of a reduction of elements of `kind`, or `None` where it is not defined.
pub(super) fn select(op: ReduceOp, kind: Kind, level: Level) -> Option<ReduceLoops> {
    use ReduceOp as R;
    let level = if kind == Kind::F32 { level } else { level.min(Level::Avx2) };
    Some(match (op, kind) {
        (R::Sum, Kind::F32) => fold::<Sum<f32>>(level, true),
        (R::Sum, Kind::F64) => fold::<Sum<f64>>(level, true),
        (R::Sum, Kind::I64) => fold::<Sum<i64>>(level, false),
        (R::Sum, Kind::U64) => fold::<Sum<u64>>(level, false),
        (R::Prod, Kind::F32) => fold::<Prod<f32>>(level, false),
        (R::Prod, Kind::F64) => fold::<Prod<f64>>(level, false),
        (R::Prod, Kind::I64) => fold::<Prod<i64>>(level, false),
        (R::Prod, Kind::U64) => fold::<Prod<u64>>(level, false),
        (R::Max, Kind::F32) => fold::<Max<f32>>(level, false),
        (R::Max, Kind::F64) => fold::<Max<f64>>(level, false),
        (R::Max, Kind::I64) => fold::<Max<i64>>(level, false),
        (R::Max, Kind::U64) => fold::<Max<u64>>(level, false),
        (R::Min, Kind::F32) => fold::<Min<f32>>(level, false),
        (R::Min, Kind::F64) => fold::<Min<f64>>(level, false),
        (R::Min, Kind::I64) => fold::<Min<i64>>(level, false),
        (R::Min, Kind::U64) => fold::<Min<u64>>(level, false),
        (R::Any | R::Max | R::Sum, Kind::Bool) => fold::<Max<u8>>(level, false),
        (R::All | R::Min | R::Prod, Kind::Bool) => fold::<Min<u8>>(level, false),
        (R::ArgMax, Kind::F32) => search::<Max<f32>, true>(level),
        (R::ArgMax, Kind::F64) => search::<Max<f64>, true>(level),
        (R::ArgMax, Kind::I64) => search::<Max<i64>, true>(level),
        (R::ArgMax, Kind::U64) => search::<Max<u64>, true>(level),
        (R::ArgMin, Kind::F32) => search::<Min<f32>, false>(level),
        (R::ArgMin, Kind::F64) => search::<Min<f64>, false>(level),
        (R::ArgMin, Kind::I64) => search::<Min<i64>, false>(level),
        (R::ArgMin, Kind::U64) => search::<Min<u64>, false>(level),
        (R::Any | R::All, Kind::F32 | Kind::F64 | Kind::I64 | Kind::U64) | (R::ArgMax | R::ArgMin, Kind::Bool) => return None,
    })
}

/// The argument that tells [`ReduceLoops::across`] how many rows there are.
pub(super) fn rows(count: usize) -> *const u8 {
    number(count as isize)
}
