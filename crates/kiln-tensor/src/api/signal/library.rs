//! Fourier transforms by the crates `rustfft` and `realfft`: 64-bit floats in 64 bits, the others in 32.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use half::{bf16, f16};
use kiln_ir::DType;
use kiln_ir::op::HostTensor;
use realfft::{FftNum, RealFftPlanner};
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use super::host::Kind;

/// The plans of a thread, which are kept.
struct Planners<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
}

impl<T: FftNum> Planners<T> {
    fn new() -> RefCell<Self> {
        RefCell::new(Planners { complex: FftPlanner::new(), real: RealFftPlanner::new() })
    }
}

std::thread_local! {
    static NARROW: RefCell<Planners<f32>> = Planners::new();
    static WIDE: RefCell<Planners<f64>> = Planners::new();
}

/// Transforms every row of `x` into the rows of `out`.
pub(super) fn run(kind: Kind, n: usize, x: &HostTensor<'_>, out: &mut [u8]) -> Result<(), String> {
    match x.dtype {
        DType::F64 => WIDE.with_borrow_mut(|plans| {
            rows(plans, (kind, n), x.bytes, out, 8, bytemuck::pod_read_unaligned, |b, v: f64| b.copy_from_slice(&v.to_ne_bytes()))
        }),
        DType::F16 => NARROW.with_borrow_mut(|plans| {
            let read = |b: &[u8]| bytemuck::pod_read_unaligned::<f16>(b).to_f32();
            rows(plans, (kind, n), x.bytes, out, 2, read, |b, v| b.copy_from_slice(&f16::from_f32(v).to_ne_bytes()))
        }),
        DType::BF16 => NARROW.with_borrow_mut(|plans| {
            let read = |b: &[u8]| bytemuck::pod_read_unaligned::<bf16>(b).to_f32();
            rows(plans, (kind, n), x.bytes, out, 2, read, |b, v| b.copy_from_slice(&bf16::from_f32(v).to_ne_bytes()))
        }),
        _ => NARROW.with_borrow_mut(|plans| {
            rows(plans, (kind, n), x.bytes, out, 4, bytemuck::pod_read_unaligned, |b, v: f32| b.copy_from_slice(&v.to_ne_bytes()))
        }),
    }
}

fn rows<T: FftNum>(
    plans: &mut Planners<T>,
    (kind, n): (Kind, usize),
    bytes: &[u8],
    out: &mut [u8],
    size: usize,
    read: impl Fn(&[u8]) -> T,
    write: impl Fn(&mut [u8], T),
) -> Result<(), String> {
    let half = n / 2 + 1;
    let zero = Complex { re: T::zero(), im: T::zero() };
    let store = |target: &mut [u8], values: &mut dyn Iterator<Item = T>| {
        for (place, value) in target.chunks_exact_mut(size).zip(values) {
            write(place, value);
        }
    };
    // Real parts, then imaginary ones.
    let pairs = |source: &[u8], into: &mut [Complex<T>]| {
        let (re, im) = source.split_at(source.len() / 2);
        for ((slot, re), im) in into.iter_mut().zip(re.chunks_exact(size)).zip(im.chunks_exact(size)) {
            *slot = Complex { re: read(re), im: read(im) };
        }
    };
    let refused = |error: realfft::FftError| error.to_string();
    match kind {
        Kind::Complex | Kind::ComplexBack => {
            let plan = if kind == Kind::Complex { plans.complex.plan_fft_forward(n) } else { plans.complex.plan_fft_inverse(n) };
            let (mut row, mut scratch) = (vec![zero; n], vec![zero; plan.get_inplace_scratch_len()]);
            for (source, target) in bytes.chunks_exact(2 * n * size).zip(out.chunks_exact_mut(2 * n * size)) {
                pairs(source, &mut row);
                plan.process_with_scratch(&mut row, &mut scratch);
                store(target, &mut row.iter().map(|y| y.re).chain(row.iter().map(|y| y.im)));
            }
        }
        Kind::Real => {
            let plan = plans.real.plan_fft_forward(n);
            let (mut row, mut spectrum, mut scratch): (Vec<T>, _, _) = (vec![T::zero(); n], plan.make_output_vec(), plan.make_scratch_vec());
            for (source, target) in bytes.chunks_exact(n * size).zip(out.chunks_exact_mut(2 * half * size)) {
                for (slot, bytes) in row.iter_mut().zip(source.chunks_exact(size)) {
                    *slot = read(bytes);
                }
                plan.process_with_scratch(&mut row, &mut spectrum, &mut scratch).map_err(refused)?;
                store(target, &mut spectrum.iter().map(|y| y.re).chain(spectrum.iter().map(|y| y.im)));
            }
        }
        Kind::RealBack => {
            let plan = plans.real.plan_fft_inverse(n);
            let (mut spectrum, mut row, mut scratch) = (vec![zero; half], plan.make_output_vec(), plan.make_scratch_vec());
            for (source, target) in bytes.chunks_exact(2 * half * size).zip(out.chunks_exact_mut(n * size)) {
                pairs(source, &mut spectrum);
                // The ends have no imaginary part.
                spectrum[0].im = T::zero();
                if n.is_multiple_of(2) {
                    spectrum[half - 1].im = T::zero();
                }
                plan.process_with_scratch(&mut spectrum, &mut row, &mut scratch).map_err(refused)?;
                store(target, &mut row.iter().copied());
            }
        }
    }
    Ok(())
}
