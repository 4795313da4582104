//! Fourier transforms of any length in plain `f64` code: what there is without the crates `rustfft` and `realfft`.

use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::{PI, TAU};

/// A complex number.
#[derive(Clone, Copy, Default)]
pub(super) struct Complex {
    pub re: f64,
    pub im: f64,
}

impl Complex {
    fn turn(angle: f64) -> Self {
        Self { re: libm::cos(angle), im: libm::sin(angle) }
    }

    fn times(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }

    fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    fn minus(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }

    pub fn conjugate(self) -> Self {
        Self { re: self.re, im: -self.im }
    }
}

/// What transforms of one length and sign share.
pub(super) struct Transform {
    /// The turns `exp(∓ 2πi k / size)` for half of the power of two that is computed.
    turns: Vec<Complex>,
    /// For a length that is no power of two: the chirp, and the transform of the filter that it is convolved with.
    chirp: Option<(Vec<Complex>, Vec<Complex>)>,
}

impl Transform {
    pub fn new(n: usize, inverse: bool) -> Self {
        let sign = if inverse { 1.0 } else { -1.0 };
        let turns = |size: usize, sign: f64| (0..size / 2).map(|k| Complex::turn(sign * TAU * k as f64 / size as f64)).collect();
        if n.is_power_of_two() {
            return Self { turns: turns(n, sign), chirp: None };
        }
        // L. Bluestein, "A linear filtering approach to the computation of the discrete Fourier transform", 1970: with
        // 2jk = j² + k² - (k - j)² the transform is a convolution, which a power of two computes.
        let size = (2 * n - 1).next_power_of_two();
        let turn = |k: usize| {
            // k² modulo 2n keeps the angle exact for long signals.
            let square = (k as u128 * k as u128 % (2 * n as u128)) as f64;
            Complex::turn(sign * PI * square / n as f64)
        };
        let chirp: Vec<Complex> = (0..n).map(turn).collect();
        let mut filter = vec![Complex::default(); size];
        for (k, turn) in chirp.iter().enumerate() {
            filter[k] = turn.conjugate();
            filter[(size - k) % size] = turn.conjugate();
        }
        let turns: Vec<Complex> = turns(size, -1.0);
        radix2(&mut filter, &turns);
        Self { turns, chirp: Some((chirp, filter)) }
    }

    pub fn apply(&self, signal: &mut [Complex]) {
        let Some((chirp, filter)) = &self.chirp else {
            return radix2(signal, &self.turns);
        };
        let size = filter.len();
        let mut work = vec![Complex::default(); size];
        for (slot, (x, turn)) in work.iter_mut().zip(signal.iter().zip(chirp)) {
            *slot = x.times(*turn);
        }
        radix2(&mut work, &self.turns);
        // The inverse transform is the conjugate of the transform of the conjugate.
        for (x, filter) in work.iter_mut().zip(filter) {
            *x = x.times(*filter).conjugate();
        }
        radix2(&mut work, &self.turns);
        for (x, (y, turn)) in signal.iter_mut().zip(work.iter().zip(chirp)) {
            let y = y.conjugate().times(*turn);
            *x = Complex { re: y.re / size as f64, im: y.im / size as f64 };
        }
    }
}

/// The transform of a power of two, in place (J. Cooley, J. Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965).
fn radix2(signal: &mut [Complex], turns: &[Complex]) {
    let n = signal.len();
    if n < 2 {
        return;
    }
    let shift = usize::BITS - n.trailing_zeros();
    for i in 0..n {
        let j = i.reverse_bits() >> shift;
        if i < j {
            signal.swap(i, j);
        }
    }
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for block in signal.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let turned = b.times(turns[k * stride]);
                (*a, *b) = (a.plus(turned), a.minus(turned));
            }
        }
        half *= 2;
    }
}
