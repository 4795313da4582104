//! Accuracy of the vector functions on every instruction set of this machine, against f64 references.
use kiln_cpu::math::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use kiln_cpu::simd::Level;
use kiln_cpu::tile::elementwise::{Kind, select};
use kiln_ir::Elementwise;

/// Runs the loop of a one-operand op.
fn map<T: Copy + Default>(op: Elementwise, kind: Kind, level: Level, x: &[T]) -> Vec<T> {
    let mut out = vec![T::default(); x.len()];
    let f = select(op, kind, 0, level).unwrap();
    // SAFETY: both slices hold `x.len()` elements of the kind and do not overlap.
    unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), std::ptr::null(), std::ptr::null(), x.len()) };
    out
}

fn map2(op: Elementwise, level: Level, x: &[f32], y: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    let f = select(op, Kind::F32, 0, level).unwrap();
    // SAFETY: as above.
    unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), y.as_ptr().cast(), std::ptr::null(), x.len()) };
    out
}

/// Distance in units in the last place of the reference, counting subnormal steps as units too; 0 when both are NaN or the same infinity.
fn ulps(got: f32, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let rounded = want as f32;
    if got == rounded {
        return if got == 0.0 && got.is_sign_negative() != rounded.is_sign_negative() { f64::INFINITY } else { 0.0 };
    }
    if rounded.is_infinite() || got.is_infinite() {
        // One step beyond the largest finite number is allowed as one unit.
        let finite = if got.is_infinite() { rounded } else { got };
        return if finite.abs() == f32::MAX { 1.0 } else { f64::INFINITY };
    }
    let exponent = ((want.abs() as f32).to_bits() >> 23).max(1) as i32 - 127 - 23;
    (got as f64 - want).abs() / 2f64.powi(exponent)
}

fn ulps64(got: f64, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() {
        return if want.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == want {
        return 0.0;
    }
    (got.to_bits() as i64 - want.to_bits() as i64).abs() as f64
}

/// Bit patterns across the whole range of f32, special values first.
fn patterns(step: usize) -> Vec<f32> {
    let special =
        [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX, f32::MIN, 1e-45, -1e-45, 88.72284, -103.9];
    special.into_iter().chain((0..=u32::MAX).step_by(step).map(f32::from_bits)).collect()
}

/// Checks an op on patterns and on a dense range where its results vary.
fn check(op: Elementwise, bound: f64, range: (f32, f32), reference: fn(f64) -> f64) {
    let mut x = patterns(4093);
    x.extend((0..1_000_003).map(|k| range.0 + (range.1 - range.0) * (k as f32 / 1e6)));
    for &level in Level::available() {
        let mut worst = (0.0, 0.0f32, 0.0f32);
        for (&x, &got) in x.iter().zip(&map(op, Kind::F32, level, &x)) {
            let error = ulps(got, reference(x as f64));
            if error > worst.0 {
                worst = (error, x, got);
            }
        }
        let (error, at, got) = worst;
        println!("{} {}: {error:.2} ulp at {at:e}", op.name(), level.name());
        assert!(error <= bound, "{} {}: {error} ulp at {at:e}: {got:e} for {:e}", op.name(), level.name(), reference(at as f64));
    }
}

#[test]
fn exp_is_within_2_ulp() {
    check(Elementwise::Exp, 2.0, (-104.0, 89.0), libm::exp);
}

#[test]
fn log_is_within_2_ulp() {
    check(Elementwise::Log, 2.0, (0.0, 4.0), libm::log);
}

#[test]
fn log1p_is_within_2_ulp() {
    check(Elementwise::Log1p, 2.0, (-1.0, 3.0), libm::log1p);
}

#[test]
fn tanh_is_within_2_ulp() {
    check(Elementwise::Tanh, 2.0, (-10.0, 10.0), libm::tanh);
}

#[test]
fn erf_is_within_2_ulp() {
    check(Elementwise::Erf, 2.0, (-4.0, 4.0), libm::erf);
}

#[test]
fn sin_and_cos_are_within_2_ulp() {
    check(Elementwise::Sin, 2.0, (-100.0, 100.0), libm::sin);
    check(Elementwise::Cos, 2.0, (-100.0, 100.0), libm::cos);
    check(Elementwise::Sin, 2.0, (-60_100.0, 60_100.0), libm::sin);
    check(Elementwise::Cos, 2.0, (-60_100.0, 60_100.0), libm::cos);
}

#[test]
fn tan_is_within_4_ulp() {
    check(Elementwise::Tan, 4.0, (-100.0, 100.0), libm::tan);
}

#[test]
fn inverse_and_hyperbolic_functions_are_within_4_ulp() {
    check(Elementwise::Asin, 4.0, (-1.0, 1.0), libm::asin);
    check(Elementwise::Acos, 4.0, (-1.0, 1.0), libm::acos);
    check(Elementwise::Atan, 4.0, (-9.0, 9.0), libm::atan);
    check(Elementwise::Sinh, 4.0, (-9.0, 9.0), libm::sinh);
    check(Elementwise::Cosh, 4.0, (-9.0, 9.0), libm::cosh);
    check(Elementwise::Asinh, 4.0, (-9.0, 9.0), libm::asinh);
    check(Elementwise::Acosh, 4.0, (1.0, 9.0), |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) });
    check(Elementwise::Atanh, 4.0, (-1.0, 1.0), libm::atanh);
}

#[test]
fn exact_functions_are_exact() {
    let range = (-9.0, 9.0);
    check(Elementwise::Neg, 0.0, range, |x| -x);
    check(Elementwise::Abs, 0.0, range, f64::abs);
    check(Elementwise::Floor, 0.0, range, libm::floor);
    check(Elementwise::Ceil, 0.0, range, libm::ceil);
    check(Elementwise::Round, 0.0, range, libm::rint);
    check(Elementwise::Trunc, 0.0, range, libm::trunc);
    check(Elementwise::Sqrt, 0.5, (0.0, 9.0), libm::sqrt);
    check(Elementwise::Recip, 0.5, range, |x| 1.0 / x);
    check(Elementwise::Sign, 0.0, range, |x| if x.is_nan() || x == 0.0 { x.abs() } else { x.signum() });
}

#[test]
fn pow_is_within_2_ulp_with_ieee_special_values() {
    let special =
        [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e-40, 1e38, -1e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 16_777_217.0];
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for &a in &special {
        for &b in &special {
            x.push(a);
            y.push(b);
        }
    }
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    for _ in 0..500_000 {
        x.push((draw() - 0.1) * 10.0);
        y.push((draw() - 0.5) * 60.0);
        x.push((draw() - 0.5) * 8.0);
        y.push(((draw() - 0.5) * 60.0).round());
    }
    for &level in Level::available() {
        for ((&x, &y), &got) in x.iter().zip(&y).zip(&map2(Elementwise::Pow, level, &x, &y)) {
            let want = libm::pow(x as f64, y as f64);
            assert!(ulps(got, want) <= 2.0, "{}: {x:e} ^ {y:e} = {got:e}, not {want:e}", level.name());
        }
    }
}

#[test]
fn f64_functions_are_within_4_ulp() {
    type Case = (Elementwise, f64, f64, fn(f64) -> f64);
    let cases: [Case; 5] = [
        (Elementwise::Exp, -745.0, 710.0, libm::exp),
        (Elementwise::Log, 0.0, 5.0, libm::log),
        (Elementwise::Log1p, -1.0, 3.0, libm::log1p),
        (Elementwise::Tanh, -20.0, 20.0, libm::tanh),
        (Elementwise::Erf, -6.0, 6.0, libm::erf),
    ];
    for (op, low, high, reference) in cases {
        let mut x: Vec<f64> = (0..200_001).map(|k| low + (high - low) * (k as f64 / 2e5)).collect();
        x.extend([0.0, -0.0, 1e-300, -1e-300, 5e-324, 1e-20, -1e-20, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN]);
        for &level in Level::available() {
            for (&x, &got) in x.iter().zip(&map(op, Kind::F64, level, &x)) {
                let error = ulps64(got, reference(x));
                assert!(error <= 4.0, "{} {}: {error} ulp at {x:e}: {got:e} for {:e}", op.name(), level.name(), reference(x));
            }
        }
    }
}

#[test]
fn half_conversions_round_to_nearest_even() {
    for h in 0..=u16::MAX {
        let (f16, bf16) = (half::f16::from_bits(h), half::bf16::from_bits(h));
        let (x, y) = (f16_to_f32(h), bf16_to_f32(h));
        assert!(x.to_bits() == f16.to_f32().to_bits() || x.is_nan() && f16.is_nan(), "{h:x}");
        assert!(y.to_bits() == bf16.to_f32().to_bits() || y.is_nan() && bf16.is_nan(), "{h:x}");
        if !x.is_nan() {
            assert_eq!(f32_to_f16(x), h);
        }
        if !y.is_nan() {
            assert_eq!(f32_to_bf16(y), h);
        }
    }
    for x in patterns(997) {
        let (a, b) = (f32_to_f16(x), f32_to_bf16(x));
        if x.is_nan() {
            assert!(half::f16::from_bits(a).is_nan() && half::bf16::from_bits(b).is_nan());
        } else {
            assert_eq!(a, half::f16::from_f32(x).to_bits(), "{x:e}");
            assert_eq!(b, half::bf16::from_f32(x).to_bits(), "{x:e}");
        }
    }
}

#[test]
fn short_and_uneven_lengths_agree_with_long_ones() {
    let x: Vec<f32> = (0..100).map(|k| k as f32 * 0.07 - 3.0).collect();
    for &level in Level::available() {
        for &op in &[Elementwise::Exp, Elementwise::Erf, Elementwise::Neg, Elementwise::Sin, Elementwise::Atan] {
            let long = map(op, Kind::F32, level, &x);
            for n in 0..x.len() {
                assert_eq!(map(op, Kind::F32, level, &x[..n]), long[..n], "{} {n}", op.name());
            }
        }
    }
}

#[test]
fn division_by_one_number_is_exact() {
    let x = patterns(9973);
    for by in [1.0, 3.0, -7.0, 0.1, 1e-3, 65_535.0, 1.0 / 3.0, 1e18, -1e-18, 1e30, 1e-30, 0.0, f32::INFINITY, f32::NAN, 1.999_999_9, f32::MAX, 1e-45]
    {
        for &level in Level::available() {
            let f = select(Elementwise::Div, Kind::F32, 2, level).unwrap();
            let mut out = vec![0f32; x.len()];
            // SAFETY: the slices have the same length, and the divisor is one number.
            unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), (&raw const by).cast(), std::ptr::null(), x.len()) };
            for (&x, &got) in x.iter().zip(&out) {
                let want = x / by;
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{}: {x:e} / {by:e} = {got:e}, not {want:e}", level.name());
            }
        }
    }
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f32::from_bits(((state >> 41) as u32 & 0x7f_ffff) | 0x3f80_0000)
    };
    let x: Vec<f32> = (0..4096).map(|_| draw()).collect();
    let f = select(Elementwise::Div, Kind::F32, 2, Level::detect()).unwrap();
    let mut out = vec![0f32; x.len()];
    for _ in 0..1000 {
        let by = draw();
        // SAFETY: as above.
        unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), (&raw const by).cast(), std::ptr::null(), x.len()) };
        for (&x, &got) in x.iter().zip(&out) {
            assert_eq!(got, x / by, "{x:e} / {by:e}");
        }
    }
}
