//! Matrix products of every size, layout, type and sink.

use super::fixture::{Rng, Threads, close};
use kiln_cpu::contract::*;
use std::sync::Mutex;

const SIZES: [usize; 12] = [0, 1, 2, 3, 5, 8, 17, 31, 33, 64, 127, 200];

/// Element types as the tests need them.
trait Value: Scalar {
    const EPSILON: f64;
    fn from_unit(x: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Value for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
    fn from_unit(x: f64) -> f32 {
        x as f32
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
}

impl Value for f64 {
    const EPSILON: f64 = f64::EPSILON;
    fn from_unit(x: f64) -> f64 {
        x
    }
    fn to_f64(self) -> f64 {
        self
    }
}

impl Value for i64 {
    const EPSILON: f64 = 0.0;
    fn from_unit(x: f64) -> i64 {
        (x * 100.0) as i64
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
}

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Rows,
    Columns,
    Padded,
    Scattered,
    Reversed,
    Broadcast,
}

const LAYOUTS: [Layout; 6] = [Layout::Rows, Layout::Columns, Layout::Padded, Layout::Scattered, Layout::Reversed, Layout::Broadcast];

/// A batch of matrices `[batch][rows][cols]` with its memory.
struct Matrix<E> {
    memory: Vec<E>,
    start: isize,
    row: isize,
    col: isize,
    batch: isize,
}

impl<E: Value> Matrix<E> {
    fn new(rng: &mut Rng, rows: usize, cols: usize, batch: usize, layout: Layout, moves: bool) -> Self {
        let (r, c) = (rows as isize, cols as isize);
        let (row, col, size, start) = match layout {
            Layout::Rows => (c, 1, r * c, 0),
            Layout::Columns => (1, r, r * c, 0),
            Layout::Padded => (c + 3, 1, r * (c + 3), 0),
            Layout::Scattered => (2 * c + 1, 2, r * (2 * c + 1), 0),
            Layout::Reversed => (-c, 1, r * c, (r - 1).max(0) * c),
            Layout::Broadcast => (0, 1, c, 0),
        };
        let count = if moves { batch } else { 1 };
        let memory = (0..size as usize * count).map(|_| E::from_unit(rng.unit())).collect();
        Matrix { memory, start, row, col, batch: if moves { size } else { 0 } }
    }

    fn at(&self, b: usize, r: usize, c: usize) -> E {
        let at = self.start + b as isize * self.batch + r as isize * self.row + c as isize * self.col;
        self.memory[at as usize]
    }

    fn ptr(&self) -> *const E {
        self.memory.as_ptr().wrapping_offset(self.start)
    }
}

struct Case {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
    a: Layout,
    b: Layout,
    a_moves: bool,
    b_moves: bool,
}

/// Runs one case with a plain store, a scaled store, a transposed store and an epilogue.
fn check<E: Value>(case: &Case, rng: &mut Rng, pool: &dyn ParallelFor) {
    let &Case { batch, m, n, k, .. } = case;
    let a = Matrix::<E>::new(rng, m, k, batch, case.a, case.a_moves);
    let b = Matrix::<E>::new(rng, k, n, batch, case.b, case.b_moves);
    let mut want = vec![0.0; batch * m * n];
    for (i, want) in want.iter_mut().enumerate() {
        let (z, r, c) = (i / (m * n), i / n % m, i % n);
        *want = (0..k).map(|p| a.at(z, r, p).to_f64() * b.at(z, p, c).to_f64()).sum();
    }
    let what = format!("{} [{batch}] {m} x {n} x {k}, {:?} x {:?}", std::any::type_name::<E>(), case.a, case.b);
    let left = Strided::new(a.ptr(), a.row, a.col, Offsets::new(&[(batch, a.batch)]));
    let right = Strided::new(b.ptr(), b.col, b.row, Offsets::new(&[(batch, b.batch)]));
    let run = |sink: Sink<E>| {
        let job = Contraction { batch, m, n, k, a: &left, b: &right, sink };
        // SAFETY: the operands and results are vectors of the sizes described.
        unsafe { contract(&job, pool) };
    };
    let size = (m * n) as isize;
    let to_f64 = |out: &[E]| out.iter().map(|x| x.to_f64()).collect::<Vec<_>>();

    let mut out = vec![E::from_unit(0.5); batch * m * n];
    run(Sink::Store(Store::new(out.as_mut_ptr(), n as isize, 1, Offsets::new(&[(batch, size)]))));
    close(&what, &to_f64(&out), &want, k, E::EPSILON);

    // result = 2 * sum + 3 * result
    let mut scaled = vec![E::from_unit(0.5); batch * m * n];
    let (two, three) = (E::ONE.plus(E::ONE), E::ONE.plus(E::ONE).plus(E::ONE));
    let store = Store::new(scaled.as_mut_ptr(), n as isize, 1, Offsets::new(&[(batch, size)]));
    run(Sink::Store(Store { scale: two, keep: three, ..store }));
    let kept = E::from_unit(0.5).to_f64() * 3.0;
    let expected: Vec<f64> = want.iter().map(|x| 2.0 * x + kept).collect();
    close(&format!("{what}, scaled"), &to_f64(&scaled), &expected, k, 2.0 * E::EPSILON);

    // result = sum + result
    let mut added = vec![E::from_unit(0.5); batch * m * n];
    let store = Store::new(added.as_mut_ptr(), n as isize, 1, Offsets::new(&[(batch, size)]));
    run(Sink::Store(Store { keep: E::ONE, ..store }));
    let expected: Vec<f64> = want.iter().map(|x| x + E::from_unit(0.5).to_f64()).collect();
    close(&format!("{what}, added"), &to_f64(&added), &expected, k, 2.0 * E::EPSILON);

    let mut turned = vec![E::from_unit(0.5); batch * m * n];
    run(Sink::Store(Store::new(turned.as_mut_ptr(), 1, m as isize, Offsets::new(&[(batch, size)]))));
    let back: Vec<f64> = (0..batch * m * n).map(|i| turned[i / (m * n) * m * n + i % n * m + i / n % m].to_f64()).collect();
    close(&format!("{what}, transposed"), &back, &want, k, E::EPSILON);

    let seen = Collect { out: Mutex::new(vec![None; batch * m * n]), m, n };
    run(Sink::Epilogue(&seen));
    let seen = seen.out.into_inner().unwrap();
    let got: Vec<f64> = seen.iter().map(|x| x.expect("element never visited")).collect();
    close(&format!("{what}, epilogue"), &got, &want, k, E::EPSILON);
}

/// Records each element, once.
struct Collect {
    out: Mutex<Vec<Option<f64>>>,
    m: usize,
    n: usize,
}

impl<E: Value> Epilogue<E> for Collect {
    unsafe fn finish(&self, part: &Finished<E>) {
        let mut out = self.out.lock().unwrap();
        for r in 0..part.rows {
            for c in 0..part.cols {
                // SAFETY: inside the part.
                let x = unsafe { *part.data.add(r * part.row_stride + c) };
                let to = (part.batch * self.m + part.row + r) * self.n + part.col + c;
                assert!(out[to].replace(x.to_f64()).is_none(), "element visited twice");
            }
        }
    }
}

fn sweep<E: Value>(seed: u64, rounds: usize) {
    let mut rng = Rng::new(seed);
    for round in 0..rounds {
        let case = Case {
            batch: rng.pick(&[1, 1, 2, 5]),
            m: rng.pick(&SIZES),
            n: rng.pick(&SIZES),
            k: rng.pick(&SIZES),
            a: rng.pick(&LAYOUTS),
            b: rng.pick(&LAYOUTS),
            a_moves: rng.below(3) > 0,
            b_moves: rng.below(3) > 0,
        };
        check::<E>(&case, &mut rng, if round % 2 == 0 { &Serial } else { &Threads(3) });
    }
}

#[test]
fn random_f32_products_match_plain_loops() {
    sweep::<f32>(1, 300);
}

#[test]
fn large_f32_products_of_every_layout_match_plain_loops() {
    let mut rng = Rng::new(9);
    for round in 0..18 {
        let (m, n, k) = (rng.pick(&[257, 288, 301]), rng.pick(&[280, 320, 415]), rng.pick(&[128, 150, 401, 800]));
        let (a, b) = (LAYOUTS[round % 6], LAYOUTS[(round + round / 6) % 6]);
        let case = Case { batch: 1 + round % 2, m, n, k, a, b, a_moves: round % 4 > 1, b_moves: rng.below(2) > 0 };
        check::<f32>(&case, &mut rng, &Threads(2));
    }
}

#[test]
fn random_f64_products_match_plain_loops() {
    sweep::<f64>(2, 120);
}

#[test]
fn random_integer_products_match_plain_loops() {
    sweep::<i64>(4, 120);
}

#[test]
fn long_sums_and_wide_results_match_plain_loops() {
    let mut rng = Rng::new(5);
    let sizes = [(64, 100, 5000), (9, 33, 20_000), (300, 700, 600), (15, 1500, 1030), (40, 500, 70), (1, 3000, 300), (3000, 1, 300)];
    for (m, n, k) in sizes {
        for b in [Layout::Rows, Layout::Columns] {
            let case = Case { batch: 1, m, n, k, a: Layout::Rows, b, a_moves: true, b_moves: true };
            check::<f32>(&case, &mut rng, &Threads(2));
        }
    }
}

#[test]
fn narrower_instruction_sets_match_plain_loops() {
    for isa in [Isa::Avx512, Isa::Avx2, Isa::Plain] {
        cap_isa(isa);
        sweep::<f32>(6, 120);
        sweep::<f64>(7, 60);
    }
    cap_isa(Isa::Best);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut rng = Rng::new(8);
    for (m, n, k) in [(130, 250, 300), (64, 60, 9000), (700, 300, 40), (400, 500, 450), (1, 900, 700), (5, 4000, 260)] {
        let (a, b) = (rng.f32s(m * k), rng.f32s(k * n));
        let product = |pool: &dyn ParallelFor| {
            let mut out = vec![0f32; m * n];
            let left = Strided::new(a.as_ptr(), k as isize, 1, Offsets::default());
            let right = Strided::new(b.as_ptr(), 1, n as isize, Offsets::default());
            let sink = Sink::Store(Store::new(out.as_mut_ptr(), n as isize, 1, Offsets::default()));
            // SAFETY: the vectors have the sizes described.
            unsafe { contract(&Contraction { batch: 1, m, n, k, a: &left, b: &right, sink }, pool) };
            out
        };
        let once = product(&Serial);
        for threads in [2, 3, 8, 40] {
            assert!(once == product(&Threads(threads)), "{m} x {n} x {k} with {threads} threads");
        }
    }
}

#[test]
fn infinities_and_nans_follow_ieee_rules() {
    for (m, n, k) in [(1, 40, 3), (20, 40, 3), (20, 1, 3)] {
        let mut a = vec![0f32; m * k];
        let mut b = vec![1f32; k * n];
        a[0] = 0.0;
        b[0] = f32::INFINITY; // 0 * inf in every row of column 0
        if n > 1 {
            b[1] = f32::NAN;
            b[2] = 7.0;
        }
        let left = Strided::new(a.as_ptr(), k as isize, 1, Offsets::default());
        let right = Strided::new(b.as_ptr(), 1, n as isize, Offsets::default());
        let mut out = vec![0f32; m * n];
        let sink = Sink::Store(Store::new(out.as_mut_ptr(), n as isize, 1, Offsets::default()));
        // SAFETY: the vectors have the sizes described.
        unsafe { contract(&Contraction { batch: 1, m, n, k, a: &left, b: &right, sink }, &Serial) };
        for (i, x) in out.iter().enumerate() {
            assert_eq!(x.is_nan(), i % n < 2, "element {i} of {m} x {n} is {x}");
        }
    }
}

#[test]
fn stored_garbage_is_not_read_without_keep() {
    let (m, n, k) = (30, 50, 300);
    let (a, b) = (vec![1f32; m * k], vec![1f32; k * n]);
    let left = Strided::new(a.as_ptr(), k as isize, 1, Offsets::default());
    let right = Strided::new(b.as_ptr(), 1, n as isize, Offsets::default());
    let mut out = vec![f32::NAN; m * n];
    let store = Store { scale: 2.0, ..Store::new(out.as_mut_ptr(), n as isize, 1, Offsets::default()) };
    let job = Contraction { batch: 1, m, n, k, a: &left, b: &right, sink: Sink::Store(store) };
    // SAFETY: the vectors have the sizes described.
    unsafe { contract(&job, &Serial) };
    assert!(out.iter().all(|x| *x == 600.0));
}

/// A size for the checker of memory accesses, `cargo +nightly miri`: every layout on both sides, sizes around the smallest register tiles.
fn small_sweep<E: Value>(seed: u64) {
    let mut rng = Rng::new(seed);
    for (round, a) in LAYOUTS.into_iter().enumerate() {
        for (m, n, k) in [(1, 1, 1), (2, 9, 3), (9, 2, 5), (1, 17, 4), (7, 1, 6)] {
            let case = Case { batch: 1 + round % 2, m, n, k, a, b: rng.pick(&LAYOUTS), a_moves: round % 3 > 0, b_moves: true };
            check::<E>(&case, &mut rng, &Serial);
        }
    }
}

#[test]
fn small_products_stay_in_bounds() {
    small_sweep::<f32>(21);
    small_sweep::<f64>(22);
    small_sweep::<i64>(23);
    let mut rng = Rng::new(24);
    let case = Case { batch: 2, m: 13, n: 18, k: 7, a: Layout::Padded, b: Layout::Scattered, a_moves: true, b_moves: false };
    check::<f32>(&case, &mut rng, &Threads(2));
}
