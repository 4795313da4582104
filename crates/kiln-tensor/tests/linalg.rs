//! Linear algebra: factorisations multiply back to their matrix, gradients match differences, norms match their definitions.

use crate::gradients::check_twice_at;
use kiln_tensor::linalg::*;
use kiln_tensor::{DType, Device, Tensor, TensorData, Tolerance};

use crate::check_panics;

/// Fixed numbers without structure.
fn values(count: usize, salt: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * i * 13 + i * 29 + salt * 7) % 101) as f64 / 25.0 - 2.0).collect()
}

fn matrix<const D: usize>(shape: [usize; D], salt: usize) -> Tensor<D> {
    let data = TensorData::new(values(shape.iter().product(), salt), shape);
    Tensor::from_data(data, (&Device::default(), DType::F64))
}

#[track_caller]
fn close<const D: usize>(got: Tensor<D>, expected: Tensor<D>) {
    got.into_data().assert_approx_eq::<f64>(&expected.into_data(), Tolerance::rel_abs(1e-9, 1e-9));
}

#[track_caller]
fn orthonormal_columns(q: Tensor<3>) {
    let [batch, _, k] = q.dims();
    let eye = Tensor::<2>::eye(k, &Device::default()).cast(DType::F64).unsqueeze::<3>().expand([batch, k, k]);
    close(q.clone().transpose().matmul(q), eye);
}

const SIZES: [[usize; 2]; 7] = [[1, 1], [2, 2], [5, 5], [6, 3], [3, 6], [1, 4], [4, 1]];

#[test]
fn lu_multiplies_back() {
    for [m, n] in SIZES {
        let a = matrix([3, m, n], m + n);
        let (p, l, u) = lu::<3, 2>(a.clone());
        close(p.clone().matmul(l.clone()).matmul(u.clone()), a);
        close(l.clone().tril(0), l);
        close(u.clone().triu(0), u);
        orthonormal_columns(p);
    }
}

#[test]
fn qr_multiplies_back() {
    for [m, n] in SIZES {
        let a = matrix([2, m, n], 3 * m + n);
        for reduced in [true, false] {
            let (q, r) = qr(a.clone(), reduced);
            let k = if reduced { m.min(n) } else { m };
            assert_eq!((q.dims(), r.dims()), ([2, m, k], [2, k, n]));
            close(q.clone().matmul(r.clone()), a.clone());
            close(r.clone().triu(0), r);
            orthonormal_columns(q);
        }
    }
}

#[test]
fn svd_multiplies_back() {
    for [m, n] in SIZES {
        let a = matrix([2, m, n], m + 5 * n);
        let (u, s, vt): (_, Tensor<2>, _) = svd(a.clone(), 40);
        close((u.clone() * s.clone().unsqueeze_dim(1)).matmul(vt.clone()), a);
        orthonormal_columns(u);
        orthonormal_columns(vt.transpose());
        let s = s.try_into_vec_as::<f64>().unwrap();
        assert!(s.chunks(m.min(n)).all(|s| s.is_sorted_by(|a, b| a >= b) && s.iter().all(|x| *x >= 0.0)), "{s:?}");
    }
}

#[test]
fn svd_of_a_singular_matrix_has_orthonormal_vectors() {
    let zeros = Tensor::<3>::zeros([1, 4, 3], (&Device::default(), DType::F64));
    let rank_one = matrix([1, 4, 1], 2).matmul(matrix([1, 1, 3], 4));
    for a in [zeros, rank_one] {
        let (u, s, vt): (_, Tensor<2>, _) = svd(a.clone(), 40);
        orthonormal_columns(u.clone());
        orthonormal_columns(vt.clone().transpose());
        close((u * s.unsqueeze_dim(1)).matmul(vt), a);
    }
}

#[test]
fn determinants() {
    let a = Tensor::<3>::from_data([[[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]], [[2.0, 4.0], [1.0, 2.0]]], (&Device::default(), DType::F64));
    let d: Tensor<1> = det::<3, 2, 1>(a);
    d.into_data().assert_approx_eq::<f64>(&TensorData::from([-2.0f64, -1.0, 0.0]), Tolerance::absolute(1e-12));
    let a = matrix([4, 4], 9);
    let (p, l, u) = lu::<2, 1>(a.clone());
    let product = det::<2, 1, 1>(p).into_scalar::<f64>() * det::<2, 1, 1>(l).into_scalar::<f64>() * det::<2, 1, 1>(u).into_scalar::<f64>();
    assert!((det::<2, 1, 1>(a).into_scalar::<f64>() - product).abs() < 1e-9);
    check_panics(|| det::<2, 1, 1>(matrix([2, 3], 1)), "det: the matrices are not square: shape [2, 3]");
}

/// Compares the gradient of a scalar function with differences.
#[track_caller]
fn check_gradient<const D: usize>(x: Tensor<D>, f: impl Fn(Tensor<D>) -> Tensor<1>) {
    let start = x.clone().into_data().try_into_vec::<f64>().unwrap();
    let shape = x.dims();
    let tracked = x.autodiff().require_grad();
    let grad = tracked.grad(&f(tracked.clone()).backward()).unwrap().try_into_vec_as::<f64>().unwrap();
    let h = 1e-5;
    for (i, grad) in grad.iter().enumerate() {
        let at = |shift: f64| {
            let mut values = start.clone();
            values[i] += shift;
            f(Tensor::from_data(TensorData::new(values, shape), (&Device::default(), DType::F64))).into_scalar::<f64>()
        };
        let difference = (at(h) - at(-h)) / (2.0 * h);
        assert!((grad - difference).abs() < 1e-5 * (1.0 + difference.abs()), "{shape:?} {i}: {grad} {difference}");
    }
}

/// A weighted sum, so that every element has its own slope.
fn weighted<const D: usize>(x: Tensor<D>, salt: usize) -> Tensor<1> {
    let weights = matrix(x.dims(), salt);
    (x * weights).sum()
}

#[test]
fn gradients_of_factorisations() {
    check_gradient(matrix([2, 3, 3], 1), |a| {
        let (_, l, u) = lu::<3, 2>(a);
        weighted(l, 2) + weighted(u, 3)
    });
    for [m, n] in [[3, 3], [5, 3]] {
        check_gradient(matrix([2, m, n], 4), |a| {
            let (q, r) = qr(a, true);
            weighted(q, 5) + weighted(r, 6)
        });
    }
    for [m, n] in [[3, 3], [4, 2], [2, 4]] {
        check_gradient(matrix([1, m, n], 8), |a| {
            let (u, s, vt): (_, Tensor<2>, _) = svd(a, 40);
            // The signs of a pair of vectors may flip together, so that only products of both are functions of the matrix.
            let [_, k] = s.dims();
            let pairs = u.slice([0..1, 0..m, 0..k]).matmul(vt);
            weighted(pairs, 7) + weighted(s, 8)
        });
    }
    check_gradient(matrix([2, 3, 3], 11), |a| weighted(det::<3, 2, 1>(a), 12));
    let singular = Tensor::<2>::from_data([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.5, 1.0, -1.0]], (&Device::default(), DType::F64));
    check_gradient(singular, det::<2, 1, 1>);
}

#[test]
fn norms_follow_their_definitions() {
    let x = matrix([3, 4], 2);
    let rows: Vec<Vec<f64>> = x.clone().try_into_vec_as::<f64>().unwrap().chunks(4).map(<[f64]>::to_vec).collect();
    let by_definition = |p: f64| -> Vec<f64> {
        let of = |row: &Vec<f64>| match p {
            0.0 => row.iter().filter(|x| **x != 0.0).count() as f64,
            f64::INFINITY => row.iter().fold(0.0, |a: f64, x| a.max(x.abs())),
            f64::NEG_INFINITY => row.iter().fold(f64::INFINITY, |a: f64, x| a.min(x.abs())),
            p => row.iter().map(|x| x.abs().powf(p)).sum::<f64>().powf(1.0 / p),
        };
        rows.iter().map(of).collect()
    };
    for p in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, f64::INFINITY, f64::NEG_INFINITY] {
        let expected = Tensor::<2>::from_data(TensorData::new(by_definition(p), [3, 1]), (&Device::default(), DType::F64));
        close(vector_norm(x.clone(), p, 1), expected.clone());
        close(lp_norm(x.clone(), p, -1), expected);
    }
    close(vector_norm_dims(x.clone(), 2, &[] as &[isize]), x.abs());
    let zero = Tensor::<1>::zeros([3], (&Device::default().autodiff(), DType::F64)).require_grad();
    for p in [2.0, 3.0] {
        let grad = zero.grad(&vector_norm(zero.clone(), p, 0).backward()).unwrap();
        assert_eq!(grad.try_into_vec_as::<f64>().unwrap(), [0.0; 3]);
    }
    check_gradient(matrix([6], 3), |x| vector_norm(x, 3.0, 0));
    check_gradient(matrix([6], 3), |x| l2_norm(x, 0));
}

#[test]
fn similarities_products_and_diagonals() {
    let (x, y) = (matrix([3, 4], 5), matrix([3, 4], 6));
    let plain = (x.clone() * y.clone()).sum_dim(1) / (x.clone().square().sum_dim(1).sqrt() * y.clone().square().sum_dim(1).sqrt());
    close(cosine_similarity(x.clone(), y.clone(), 1, None), plain);
    let zeros = Tensor::<1>::zeros([3], &Device::default());
    assert_eq!(cosine_similarity(zeros.clone(), zeros, 0, None).into_scalar::<f32>(), 0.0);
    let a = matrix([2, 3, 3], 7);
    let expected = (a.clone() * Tensor::<2>::eye(3, &Device::default()).cast(DType::F64).unsqueeze()).sum_dims(&[1, 2]).reshape([2]);
    close(trace::<3, 1>(a.clone()), expected);
    assert_eq!(diag::<3, 2, _>(matrix([2, 3, 5], 1)).dims(), [2, 3]);
    close(outer::<2, 3, _>(x.clone(), y.clone()), x.clone().unsqueeze_dim(2) * y.clone().unsqueeze_dim(1));
    close(matvec(a.clone(), x.clone().slice([0..2, 0..3])), a.matmul(x.slice([0..2, 0..3]).unsqueeze_dim(2)).squeeze_dim(2));
    check_panics(|| matvec(matrix([3, 3], 1), matrix([2], 1)), "matmul");
}

#[test]
fn second_derivatives_of_factorisations() {
    fn weighted<const D: usize>(x: Tensor<D>, salt: usize) -> Tensor<1> {
        let weights = matrix(x.dims(), salt).to_device(&x.device().inner());
        (x * weights).sum()
    }
    fn twice(name: &str, [m, n]: [usize; 2], f: fn(Tensor<2>) -> Tensor<1>) {
        let values = matrix([m, n], 4).into_data().try_into_vec::<f64>().unwrap();
        check_twice_at(name, &[m, n], &values, |x| f(Tensor::from_raw(x.clone())).into_raw());
    }
    twice("lu", [3, 3], |a| {
        let (_, l, u) = lu::<2, 1>(a);
        weighted(l.powi_scalar(2), 2) + weighted(u.powi_scalar(2), 3)
    });
    twice("qr", [4, 3], |a| {
        let (q, r) = qr(a, true);
        weighted(q.powi_scalar(2), 5) + weighted(r.powi_scalar(2), 6)
    });
    twice("svd", [3, 2], |a| {
        let (u, s, vt): (_, Tensor<1>, _) = svd(a, 40);
        weighted(u.matmul(vt), 7) + weighted(s.powi_scalar(2), 8)
    });
    twice("det", [4, 4], |a| det::<2, 1, 1>(a).square());
    twice("det of one element", [1, 1], |a| det::<2, 1, 1>(a).square());
    let singular = [1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 0.5, 1.0, -1.0];
    check_twice_at("det of a singular matrix", &[3, 3], &singular, |x| det::<2, 1, 1>(Tensor::from_raw(x.clone())).square().into_raw());
}
