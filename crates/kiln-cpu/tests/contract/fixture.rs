//! Random numbers, a pool of scoped threads, and comparison of results.

use kiln_cpu::contract::ParallelFor;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A small generator with a fixed seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Uniform in [-1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub fn f32s(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit() as f32).collect()
    }
}

/// Starts threads for every run.
pub struct Threads(pub usize);

impl ParallelFor for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.0 {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= tasks {
                            return;
                        }
                        task(i);
                    }
                });
            }
        });
    }
}

/// Asserts that `got` is `want` up to rounding of sums of `k` terms no larger than one; NaN and infinities must agree exactly.
#[track_caller]
pub fn close(what: &str, got: &[f64], want: &[f64], k: usize, epsilon: f64) {
    assert_eq!(got.len(), want.len(), "{what}: lengths");
    let bound = epsilon * (8.0 + 0.5 * k as f64);
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = (g.is_nan() && w.is_nan()) || g == w || (g - w).abs() <= bound * w.abs().max(1.0);
        assert!(same, "{what}: element {i} is {g}, expected {w} (k = {k})");
    }
}
