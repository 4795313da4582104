//! Products on the matrix unit, where the machine has one: errors of the size of register tiles', right for every value, the same on any number of threads.

use super::fixture::{Rng, Threads};
use kiln_cpu::contract::*;

/// `a [m, k]` times `b [k, n]`, with the instruction set given.
fn product(isa: Isa, [m, n, k]: [usize; 3], a: &[f32], b: &[f32], pool: &dyn ParallelFor) -> Vec<f32> {
    let mut out = vec![f32::NAN; m * n];
    let left = Strided::new(a.as_ptr(), k as isize, 1, Offsets::default());
    let right = Strided::new(b.as_ptr(), 1, n as isize, Offsets::default());
    let sink = Sink::Store(Store::new(out.as_mut_ptr(), n as isize, 1, Offsets::default()));
    cap_isa(isa);
    // SAFETY: the vectors have the sizes described.
    unsafe { contract(&Contraction { batch: 1, m, n, k, a: &left, b: &right, sink }, pool) };
    cap_isa(Isa::Best);
    out
}

/// The root of the mean square of a product's errors, each as a part of the sum of its terms' magnitudes, and the mean of the errors themselves.
fn errors(got: &[f32], [m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> (f64, f64) {
    let (mut square, mut mean) = (0.0, 0.0);
    for i in 0..m * n {
        let terms = (0..k).map(|p| a[i / n * k + p] as f64 * b[p * n + i % n] as f64);
        let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
        let error = (got[i] as f64 - sum) / size;
        square += error * error / (m * n) as f64;
        mean += error / (m * n) as f64;
    }
    (square.sqrt(), mean)
}

#[test]
fn errors_are_of_the_size_of_those_of_register_tiles() {
    let mut rng = Rng::new(31);
    for size in [[288, 300, 130], [260, 330, 500], [310, 270, 1500]] {
        let [m, n, k] = size;
        for (low, spread) in [(-1.0, 2.0), (0.5, 1.0)] {
            let mut numbers = |len: usize| (0..len).map(|_| (low + spread * (0.5 + 0.5 * rng.unit())) as f32).collect::<Vec<_>>();
            let (a, b) = (numbers(m * k), numbers(k * n));
            let best = errors(&product(Isa::Best, size, &a, &b, &Serial), size, &a, &b);
            let tiles = errors(&product(Isa::Avx512, size, &a, &b, &Serial), size, &a, &b);
            assert!(best.0 <= 1.5 * tiles.0, "{size:?} from {low}: {best:?} against {tiles:?}");
            assert!(best.1.abs() <= 1e-8, "{size:?} from {low}: {best:?} against {tiles:?}");
        }
    }
}

#[test]
fn integers_up_to_24_bits_are_multiplied_exactly() {
    // Sums of products of integers below 2^12 that stay below 2^24 are exact in any order.
    let [m, n, k] = [300, 310, 160];
    let mut rng = Rng::new(32);
    let mut integers = |len: usize, below: usize| (0..len).map(|_| rng.below(below) as f32).collect::<Vec<_>>();
    let (a, b) = (integers(m * k, 4096), integers(k * n, 16));
    let out = product(Isa::Best, [m, n, k], &a, &b, &Serial);
    for (i, x) in out.iter().enumerate() {
        let want: u64 = (0..k).map(|p| a[i / n * k + p] as u64 * b[p * n + i % n] as u64).sum();
        assert_eq!(*x as u64, want, "element {i}");
    }
}

#[test]
fn special_values_reach_what_they_reach_in_plain_sums() {
    let [m, n, k] = [270, 290, 300];
    let mut rng = Rng::new(33);
    let (ones, small) = (vec![1f32; k * n], vec![1e-38f32; k * n]);
    let same = |what: &str, a: &[f32], b: &[f32]| {
        let (got, want) = (product(Isa::Best, [m, n, k], a, b, &Threads(2)), product(Isa::Avx512, [m, n, k], a, b, &Serial));
        for (i, (x, y)) in got.iter().zip(&want).enumerate() {
            let near = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-5 * y.abs();
            assert!(near, "{what}: element {i} is {x}, with register tiles {y}");
        }
    };
    for value in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::from_bits(0x7fff_ffff), f32::MAX] {
        let mut a = vec![1f32; m * k];
        a[5 * k + 7] = value;
        a[50 * k] = -value;
        same(&format!("{value} times ones"), &a, &ones);
        let mut b = ones.clone();
        b[7 * n + 3] = 0.0;
        same(&format!("{value} times ones and a zero"), &a, &b);
    }
    // Sums that overflow though every factor is ordinary, in one row.
    let mut a = vec![1f32; m * k];
    a[3 * k..4 * k].fill(1e37);
    same("large numbers times tens", &a, &vec![10f32; k * n]);
    // Nothing but tiny numbers, on one side and on both.
    let a: Vec<f32> = (0..m * k).map(|_| (1.0 + rng.unit()) as f32).collect();
    same("ones by tiny numbers", &a, &small);
    let tiny: Vec<f32> = a.iter().map(|x| x * 1e-18).collect();
    same("small by small", &tiny, &ones.iter().map(|x| x * 1e-18).collect::<Vec<_>>());
    same("zeros by tiny numbers", &vec![0f32; m * k], &small);
}

/// Adds what it gets to a matrix.
struct Add {
    to: *mut f32,
    cols: usize,
}

// SAFETY: parts are disjoint.
unsafe impl Sync for Add {}

impl Epilogue<f32> for Add {
    unsafe fn finish(&self, part: &Finished<f32>) {
        for r in 0..part.rows {
            for c in 0..part.cols {
                // SAFETY: inside the part, and inside the matrix.
                unsafe { *self.to.add((part.row + r) * self.cols + part.col + c) += *part.data.add(r * part.row_stride + c) };
            }
        }
    }
}

#[test]
fn an_epilogue_sees_an_overflowing_strip_once() {
    let [m, n, k] = [290, 420, 900];
    let mut a = vec![1f32; m * k];
    a[40 * k..41 * k].fill(1e36);
    let b = vec![1f32; k * n];
    let mut out = vec![1f32; m * n];
    let left = Strided::new(a.as_ptr(), k as isize, 1, Offsets::default());
    let right = Strided::new(b.as_ptr(), 1, n as isize, Offsets::default());
    let add = Add { to: out.as_mut_ptr(), cols: n };
    // SAFETY: the vectors have the sizes described.
    unsafe { contract(&Contraction { batch: 1, m, n, k, a: &left, b: &right, sink: Sink::Epilogue(&add) }, &Threads(3)) };
    for (i, x) in out.iter().enumerate() {
        let want = if i / n == 40 { f32::INFINITY } else { 901.0 };
        assert_eq!(*x, want, "element {i}");
    }
}

#[test]
fn large_products_take_many_units_and_layers() {
    let [m, n, k] = [4200, 320, 3000];
    let mut rng = Rng::new(34);
    let a: Vec<f32> = (0..m * k).map(|i| ((i * 7) % 5) as f32 - 2.0).collect();
    let b: Vec<f32> = (0..k * n).map(|_| rng.below(9) as f32 - 4.0).collect();
    let out = product(Isa::Best, [m, n, k], &a, &b, &Threads(2));
    for row in [0, 31, 32, 2111, 2112, 3679, 3680, m - 1] {
        for col in 0..n {
            let want: f64 = (0..k).map(|p| a[row * k + p] as f64 * b[p * n + col] as f64).sum();
            assert_eq!(out[row * n + col] as f64, want, "row {row}, column {col}");
        }
    }
}

/// An operand that cannot be read where it lies.
struct Hidden(Strided<f32>);

impl Operand<f32> for Hidden {
    unsafe fn pack(&self, block: &Block, dst: *mut f32) {
        // SAFETY: as the caller's.
        unsafe { self.0.pack(block, dst) }
    }

    fn batch(&self) -> &Offsets {
        self.0.batch()
    }
}

#[test]
fn computed_operands_are_split_once_for_a_whole_batch() {
    let [batch, m, n, k] = [3, 100, 1100, 500];
    let mut rng = Rng::new(35);
    let mut integers = |len: usize| (0..len).map(|_| rng.below(9) as f32 - 4.0).collect::<Vec<_>>();
    let (a, b) = (integers(batch * m * k), integers(n * k));
    let left = Hidden(Strided::new(a.as_ptr(), k as isize, 1, Offsets::new(&[(batch, (m * k) as isize)])));
    let right = Hidden(Strided::new(b.as_ptr(), k as isize, 1, Offsets::new(&[(batch, 0)])));
    let mut out = vec![f32::NAN; batch * m * n];
    let sink = Sink::Store(Store::new(out.as_mut_ptr(), n as isize, 1, Offsets::new(&[(batch, (m * n) as isize)])));
    // SAFETY: the vectors have the sizes described.
    unsafe { contract(&Contraction { batch, m, n, k, a: &left, b: &right, sink }, &Threads(3)) };
    for (i, x) in out.iter().enumerate().step_by(13) {
        let want: f32 = (0..k).map(|p| a[i / n * k + p] * b[i % n * k + p]).sum();
        assert_eq!(*x, want, "element {i}");
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let [m, n, k] = [333, 700, 900];
    let mut rng = Rng::new(36);
    let mut numbers = |len: usize| (0..len).map(|_| rng.unit() as f32).collect::<Vec<_>>();
    let (mut a, b) = (numbers(m * k), numbers(k * n));
    // One row is tiny, one holds an infinity.
    a[70 * k..71 * k].iter_mut().for_each(|x| *x *= 1e-37);
    a[200 * k + 5] = f32::INFINITY;
    let bits = |pool: &dyn ParallelFor| product(Isa::Best, [m, n, k], &a, &b, pool).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let one = bits(&Serial);
    for threads in [2, 5] {
        assert!(one == bits(&Threads(threads)), "{threads} threads");
    }
}
