//! Fourier transforms as operations that the host computes, for every row of a batch.

use alloc::format;
use alloc::string::String;
use alloc::vec;
#[cfg(not(feature = "rustfft"))]
use alloc::vec::Vec;

use kiln_ir::op::{HostOp, HostShapes, HostTensor};
use kiln_ir::{DType, Dims, Op};

#[cfg(not(feature = "rustfft"))]
use super::transform::{Complex, Transform};
#[cfg(not(feature = "rustfft"))]
use crate::api::host_float::{read, write};
use crate::raw::{RawTensor, apply};
use crate::trace::Operand;

/// Which transform. The number is the operation's first attribute, the length of the signal its second.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Complex `[.., 2, n]` to complex.
    Complex = 0,
    /// The same with the other sign in the exponent.
    ComplexBack = 1,
    /// Real `[.., n]` to the frequencies `[.., 2, n / 2 + 1]`.
    Real = 2,
    /// Frequencies `[.., 2, n / 2 + 1]` to real `[.., n]`, without a factor.
    RealBack = 3,
}

impl Kind {
    fn of(attrs: &[u64]) -> (Self, usize) {
        let kind = match attrs[0] {
            0 => Self::Complex,
            1 => Self::ComplexBack,
            2 => Self::Real,
            _ => Self::RealBack,
        };
        (kind, attrs[1] as usize)
    }
}

/// The transform of the last axis, or of the last two where the first of them is real and imaginary part.
#[track_caller]
pub(super) fn transformed(x: &RawTensor, kind: Kind, n: usize) -> RawTensor {
    let op = HostOp { name: "fft", attrs: [kind as u64, n as u64].into_iter().collect(), infer, run };
    apply(Op::Host(op), &[Operand::Tensor(x)])
}

fn infer(attrs: &[u64], operands: &[(&[usize], DType)]) -> Result<HostShapes, String> {
    let (kind, n) = Kind::of(attrs);
    let half = n / 2 + 1;
    let &[(dims, dtype)] = operands else {
        return Err("fft: needs one operand".into());
    };
    let out = match (kind, dims) {
        _ if !dtype.is_float() || n == 0 => None,
        (Kind::Complex | Kind::ComplexBack, [.., 2, size]) if *size == n => Some(Dims::from_slice(dims)),
        (Kind::Real, [rest @ .., size]) if *size == n => Some(rest.iter().copied().chain([2, half]).collect()),
        (Kind::RealBack, [rest @ .., 2, size]) if *size == half => Some(rest.iter().copied().chain([n]).collect()),
        _ => None,
    };
    match out {
        Some(out) => Ok(vec![(out, dtype)]),
        None => Err(format!("fft: signals of {n} floats do not fit {dtype}{dims:?}")),
    }
}

#[cfg(feature = "rustfft")]
fn run(attrs: &[u64], operands: &[HostTensor<'_>], results: &mut [&mut [u8]]) -> Result<(), String> {
    let (kind, n) = Kind::of(attrs);
    super::library::run(kind, n, &operands[0], results[0])
}

#[cfg(not(feature = "rustfft"))]
fn run(attrs: &[u64], operands: &[HostTensor<'_>], results: &mut [&mut [u8]]) -> Result<(), String> {
    let (kind, n) = Kind::of(attrs);
    let (x, out) = (&operands[0], &mut *results[0]);
    let (size, half) = (x.dtype.size(), n / 2 + 1);
    let (taken, given) = match kind {
        Kind::Complex | Kind::ComplexBack => (2 * n, 2 * n),
        Kind::Real => (n, 2 * half),
        Kind::RealBack => (2 * half, n),
    };
    let transform = Transform::new(n, matches!(kind, Kind::ComplexBack | Kind::RealBack));
    for (source, target) in x.bytes.chunks_exact(taken * size).zip(out.chunks_exact_mut(given * size)) {
        let value = |i: usize| read(x.dtype, &source[i * size..][..size]);
        let element = |i: usize| match kind {
            Kind::Complex | Kind::ComplexBack => Complex { re: value(i), im: value(n + i) },
            Kind::Real => Complex { re: value(i), im: 0.0 },
            // The other half are the conjugates, in reverse; the ends have no imaginary part.
            Kind::RealBack if i == 0 || 2 * i == n => Complex { re: value(i), im: 0.0 },
            Kind::RealBack if i < half => Complex { re: value(i), im: value(half + i) },
            Kind::RealBack => Complex { re: value(n - i), im: -value(half + n - i) },
        };
        let mut signal: Vec<Complex> = (0..n).map(element).collect();
        transform.apply(&mut signal);
        let kept = if kind == Kind::Real { half } else { n };
        for (i, y) in signal[..kept].iter().enumerate() {
            write(x.dtype, &mut target[i * size..][..size], y.re);
            if kind != Kind::RealBack {
                write(x.dtype, &mut target[(kept + i) * size..][..size], y.im);
            }
        }
    }
    Ok(())
}
