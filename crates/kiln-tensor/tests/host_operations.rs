//! The functions of `linalg` and `signal` as a table like that of the operations: over layouts, sizes, dtypes and special values against the interpreter, and gradients
//! against central differences. Batches are their matrices and signals one by one.

use std::collections::BTreeSet;

use kiln_ir::DType;
use kiln_tensor::kind::{Numeric, Ordered};
use kiln_tensor::linalg::*;
use kiln_tensor::raw::RawTensor;
use kiln_tensor::signal::*;
use kiln_tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::operations::{Parts, Row, differing_slopes, other, rows, sweep_with};
use crate::{compiled, cpu};

/// A square part of a matrix, with twos added to its diagonal.
fn square(x: &Tensor<2>) -> Tensor<2> {
    let k = x.dims()[0].min(x.dims()[1]);
    let twos = Tensor::<2, Bool>::diag_mask([k, k], 0, &x.device()).bool_not();
    let twos = x.clone().slice([0..k, 0..k]).zeros_like().mask_fill(twos, 2.0);
    x.clone().slice([0..k, 0..k]).add(twos)
}

/// The matrix, turned so that it is at least as high as wide.
fn tall(x: Tensor<2>) -> Tensor<2> {
    if x.dims()[0] < x.dims()[1] { x.transpose() } else { x }
}

/// Two matrices, as a batch.
fn both(x: &Tensor<2>) -> Tensor<3> {
    Tensor::stack(vec![x.clone(), other(x)], 0)
}

fn numeric<K: Numeric>() -> Vec<Row<K>> {
    rows! {
        "l0_norm": |x| (l0_norm(x.clone(), 0), l0_norm(x, -1)),
        "l0_norm_dims": |x| (l0_norm_dims(x.clone(), &[0, 1]), l0_norm_dims::<2, _, i64>(x, &[])),
        "l1_norm": |x| (l1_norm(x.clone(), 0), l1_norm(x, -1)),
        "l1_norm_dims": |x| l1_norm_dims(x, &[1, 0]),
        "diag": |x| { let y: Tensor<1, K> = diag(x.clone()); let z: Tensor<2, K> = diag(Tensor::stack::<3>(vec![x.clone(), x], 0)); (y, z) },
        "matvec": |x| { let v: Tensor<1, K> = x.clone().slice_dim(0, 0..x.dims()[0].min(1)).sum_dim(0).squeeze_dim(0); matvec(x, v) },
        "outer": |x| { let y: Tensor<3, K> = outer(x.clone().slice_dim(1, 0..x.dims()[1].min(3)), other(&x)); y },
        "outer_dim": |x| { let y: Tensor<3, K> = outer_dim(x.clone(), other(&x), 0); y },
    }
}

fn ordered<K: Ordered>() -> Vec<Row<K>> {
    rows! {
        "max_abs_norm": |x| (max_abs_norm(x.clone(), 0), max_abs_norm(x, 1)),
        "max_abs_norm_dims": |x| max_abs_norm_dims(x, &[0, 1]),
        "min_abs_norm": |x| (min_abs_norm(x.clone(), 0), min_abs_norm(x, 1)),
        "min_abs_norm_dims": |x| min_abs_norm_dims(x, &[0, 1]),
    }
}

fn float() -> Vec<Row<kiln_tensor::Float>> {
    rows! {
        "l2_norm": |x| (l2_norm(x.clone(), 0), l2_norm(x, -1)),
        "l2_norm_dims": |x| l2_norm_dims(x, &[0, 1]),
        "lp_norm": |x| (lp_norm(x.clone(), 3.0, 0), lp_norm(x.abs().add_scalar(0.25), 0.5, 1)),
        "lp_norm_dims": |x| lp_norm_dims(x, 1.5, &[0, 1]),
        "vector_norm": |x| (vector_norm(x.clone(), Norm::LInf, 0), vector_norm(x, Norm::LNegInf, 1)),
        "vector_norm_dims": |x| (vector_norm_dims(x.clone(), 2, &[0]), vector_norm_dims::<2, i64>(x, 7, &[])),
        "vector_normalize": |x| vector_normalize(x, 2, 1, 0.05),
        "cosine_similarity": |x| (cosine_similarity(x.clone(), other(&x), 1, None), cosine_similarity(x.clone(), other(&x), 0, Some(0.5))),
        "trace": |x| { let (y, z): (Tensor<1>, Tensor<1>) = (trace(x.clone()), trace(both(&x))); (y, z) },
        "det": |x| { let (y, z): (Tensor<1>, Tensor<1>) = (det::<2, 1, 1>(square(&x)), det::<3, 2, 1>(both(&square(&x)))); (y, z) },
        "lu": |x| { let (_, l, u) = lu::<3, 2>(both(&square(&x))); (l, u) },
        "qr": |x| qr(both(&tall(x)), true),
        "svd": |x| {
            let (u, s, vt): (_, Tensor<2>, _) = svd(both(&x), 16);
            // Signs of vectors are free: their products aren't.
            ((u.clone() * u).matmul(vt.clone() * vt), s)
        },
        "rfft": |x| (rfft(x.clone(), 1, None), rfft(x, 0, Some(4))),
        "irfft": |x| (irfft(x.clone(), other(&x), 1, Some(5)), irfft(x.clone(), other(&x), 0, Some(6))),
        "cfft": |x| (cfft(x.clone(), other(&x), 0, None), cfft(x.clone(), other(&x), 1, Some(3))),
        "stft": |x| {
            let n = x.dims()[1];
            let window = hann_window(n, true, (&x.device().without_autodiff(), x.dtype()));
            let options = StftOptions { hop_length: 1, ..StftOptions::new(n) };
            (stft(x.clone(), Some(window), options), stft(x, None, StftOptions { center: false, onesided: false, ..StftOptions::new(2) }))
        },
        "istft": |x| {
            let options = StftOptions { hop_length: 1, ..StftOptions::new(2) };
            let spectra = Tensor::stack::<3>(vec![x.clone(), other(&x)], 0).slice_dim(2, 0..2).unsqueeze_dim::<4>(0);
            (istft(spectra.clone(), None, None, options), istft(spectra, None, Some(7), options))
        },
        "blackman_window": |x| { let w = blackman_window(x.dims()[1], false, (&x.device(), x.dtype())); x * w.unsqueeze() },
        "hamming_window": |x| { let w = hamming_window(x.dims()[1], true, (&x.device(), x.dtype())); x * w.unsqueeze() },
        "hann_window": |x| { let w = hann_window(x.dims()[1], false, (&x.device(), x.dtype())); x * w.unsqueeze() },
    }
}

/// Functions that have no answer for an axis without elements, or for a signal shorter than what is transformed, and say so.
fn may_refuse(name: &str, size: [usize; 2]) -> bool {
    let none = size.contains(&0);
    match name {
        "max_abs_norm" | "max_abs_norm_dims" | "min_abs_norm" | "min_abs_norm_dims" | "vector_norm" => none,
        "rfft" | "cfft" => size[1] == 0 || size[0] == 0,
        "stft" | "istft" => size[1] < 2 || size[0] == 0,
        _ => false,
    }
}

#[test]
fn functions_of_floats_agree_with_the_interpreter() {
    let dtypes = [(DType::F32, true), (DType::F64, false), (DType::F16, false), (DType::BF16, false)];
    sweep_with(&[numeric(), ordered(), float()].concat(), &dtypes, &[false, true], may_refuse);
}

#[test]
fn functions_of_integers_agree_with_the_interpreter() {
    sweep_with(&[numeric::<Int>(), ordered()].concat(), &[(DType::I32, true), (DType::I64, false)], &[false, true], may_refuse);
}

#[test]
fn gradients_of_functions_are_slopes() {
    let wrong = differing_slopes(&[numeric(), ordered(), float()].concat());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Names of the public functions in the sources.
fn public() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in ["linalg/factor", "linalg/norm", "linalg/product", "signal/fft", "signal/stft", "signal/window"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api").join(file).with_extension("rs");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        names.extend(text.lines().filter_map(|line| line.strip_prefix("pub fn ")).map(|rest| rest[..rest.find(['<', '(']).unwrap()].to_string()));
    }
    names
}

#[test]
fn every_function_has_a_row() {
    let rows: BTreeSet<String> = [numeric(), ordered(), float()].concat().iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(rows, public());
}

/// A matrix with something in it that is not finite.
fn planted<const D: usize>(shape: [usize; D], value: f64, device: &Device) -> Tensor<D> {
    let n: usize = shape.iter().product();
    let mut values: Vec<f64> = (0..n).map(|i| ((i * i * 13 + i * 29) % 101) as f64 / 25.0 - 2.0).collect();
    values[n / 3] = value;
    Tensor::from_data(TensorData::new(values, shape), (device, kiln_tensor::DType::F64))
}

#[test]
fn factors_and_spectra_of_what_is_not_finite_end_and_are_not_finite() {
    for device in [cpu(), compiled()] {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            // From 32 on libraries may compute them.
            for n in [1, 3, 40] {
                let x = || planted([n, n], value, &device);
                let (_, l, u) = lu::<2, 1>(x());
                let (q, r) = qr(x(), true);
                let (a, s, b): (_, Tensor<1>, _) = svd(x(), 8);
                let flat = |x: Tensor<2>| x.flatten::<1>(0, 1);
                let results = [
                    ("lu", Tensor::cat(vec![flat(l), flat(u)], 0)),
                    ("qr", Tensor::cat(vec![flat(q), flat(r)], 0)),
                    ("svd", Tensor::cat(vec![flat(a), s, flat(b)], 0)),
                    ("det", det::<2, 1, 1>(x())),
                    ("rfft", flat(rfft(x(), 1, None).0)),
                    ("irfft", flat(irfft(x(), x(), 0, Some(n)))),
                ];
                for (name, y) in results {
                    assert!(!y.is_finite().all().into_scalar::<bool>(), "{name} of {n} by {n} with {value} on {device:?} is finite");
                }
            }
        }
    }
}

#[test]
fn gradients_of_what_is_not_finite_end() {
    for value in [f64::NAN, f64::INFINITY] {
        for n in [2, 40] {
            let x = planted([n, n], value, &cpu().autodiff()).require_grad();
            let (_, l, u) = lu::<2, 1>(x.clone());
            let (q, r) = qr(x.clone(), true);
            let (a, s, b): (_, Tensor<1>, _) = svd(x.clone(), 8);
            let (re, im) = rfft(x.clone(), 1, None);
            let sums = [l, u, q, r, a, b, re, im].into_iter().map(Tensor::sum).chain([s.sum(), det::<2, 1, 1>(x.clone())]);
            let total = sums.reduce(|a, b| a.add(b)).expect("there are sums");
            let dx = x.grad(&total.backward()).expect("a gradient").try_into_vec_as::<f64>().expect("it can be computed");
            assert!(dx.iter().any(|dx| !dx.is_finite()), "{n} by {n} with {value}");
        }
    }
}

#[test]
fn each_matrix_of_a_batch_is_factored_as_if_alone() {
    let device = cpu();
    let x = planted([2, 3, 5, 4], 0.5, &device);
    let raw = |x: Tensor<2>| x.into_raw().to_f64s().expect("it can be computed");
    for (i, j) in (0..2).flat_map(|i| (0..3).map(move |j| (i, j))) {
        let one: Tensor<2> = x.clone().select_dim::<3>(0, i).select_dim(0, j);
        let pick = |y: Tensor<4>| raw(y.select_dim::<3>(0, i).select_dim(0, j));
        let (p, l, u) = lu::<4, 3>(x.clone());
        let (p1, l1, u1) = lu::<2, 1>(one.clone());
        assert_eq!([pick(p), pick(l), pick(u)], [p1, l1, u1].map(raw));
        let (q, r) = qr(x.clone(), false);
        let (q1, r1) = qr(one.clone(), false);
        assert_eq!([pick(q), pick(r)], [q1, r1].map(raw));
        let (a, s, b): (_, Tensor<3>, _) = svd(x.clone(), 16);
        let (a1, s1, b1): (_, Tensor<1>, _) = svd(one.clone(), 16);
        assert_eq!([pick(a), pick(b), pick(s.unsqueeze_dim(2))], [raw(a1), raw(b1), raw(s1.unsqueeze_dim(0))]);
        let (re, im) = cfft(x.clone(), x.clone().flip([3]), 3, None);
        let (re1, im1) = cfft(one.clone(), one.flip([1]), 1, None);
        assert_eq!([pick(re), pick(im)], [re1, im1].map(raw));
    }
}

#[test]
fn matrices_without_elements_have_factors() {
    for device in [cpu(), Device::reference()] {
        for [b, m, n] in [[0, 2, 2], [2, 0, 3], [2, 3, 0], [1, 0, 0]] {
            let x: Tensor<3> = Tensor::from_raw(RawTensor::zeros(&device, &[b, m, n], DType::F32));
            let (p, l, u) = lu::<3, 2>(x.clone());
            let k = m.min(n);
            assert_eq!((p.dims(), l.dims(), u.dims()), ([b, m, m], [b, m, k], [b, k, n]));
            let (q, r) = qr(x.clone(), false);
            assert_eq!((q.dims(), r.dims()), ([b, m, m], [b, m, n]));
            let (a, s, v): (_, Tensor<2>, _) = svd(x.clone(), 4);
            assert_eq!((a.dims(), s.dims(), v.dims()), ([b, m, k], [b, k], [b, k, n]));
            // Nothing above a diagonal of ones: Q is the identity.
            assert_eq!(q.sum().into_scalar::<f32>(), (b * m) as f32);
            if m == n {
                assert_eq!(det::<3, 2, 1>(x).try_into_vec_as::<f32>().unwrap(), vec![if m == 0 { 1.0 } else { 0.0 }; b]);
            }
        }
    }
}
