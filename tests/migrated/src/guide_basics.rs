//! The tensor chapter of Burn 0.22's guide as a program: making tensors, every table of operations, conversion and display.

use burn::prelude::*;
use burn::tensor::{DType, Distribution, FloatDType, IndexingUpdateOp, IntDType, Tolerance};

fn device() -> Device {
    Device::flex()
}

fn t<const D: usize>(data: impl Into<TensorData>) -> Tensor<D> {
    Tensor::from_data(data, &device())
}

fn ti<const D: usize>(data: impl Into<TensorData>) -> Tensor<D, Int> {
    Tensor::from_data(data, &device())
}

#[track_caller]
fn floats<const D: usize>(got: Tensor<D>, want: &[f32]) {
    let shape = got.dims();
    let got = got.into_data().convert::<f32>().try_to_vec::<f32>().unwrap();
    assert_eq!(got.len(), want.len(), "{shape:?}");
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() <= 1e-4 * b.abs().max(1.0) || (a.is_nan() && b.is_nan()) || a == b, "{got:?} is not {want:?}");
    }
}

#[track_caller]
fn ints<const D: usize>(got: Tensor<D, Int>, want: &[i64]) {
    assert_eq!(got.try_into_vec_as::<i64>().unwrap(), want);
}

#[track_caller]
fn bools<const D: usize>(got: Tensor<D, Bool>, want: &[bool]) {
    assert_eq!(got.into_data().iter::<bool>().collect::<Vec<_>>(), want);
}

#[test]
fn creation() {
    let d = device();
    floats(Tensor::<1>::from_data([1.0, 2.0], &d), &[1.0, 2.0]);
    floats(Tensor::<2>::from_floats([[1.0, 2.0]], &d), &[1.0, 2.0]);
    ints(Tensor::<1, Int>::from_ints([3, 4], &d), &[3, 4]);
    bools(Tensor::<1, Bool>::from_bool([true, false], &d), &[true, false]);
    floats(Tensor::<1>::from_data(TensorData::from([3i32, 4]), &d), &[3.0, 4.0]);
    let from: Tensor<1> = Tensor::from([5.0f32, 6.0]);
    assert_eq!(from.dims(), [2]);
    let x = Tensor::<3>::empty([2, 3, 4], &d);
    assert_eq!((x.dims(), x.rank(), x.shape().num_elements()), ([2, 3, 4], 3, 24));
    assert_eq!(x.empty_like().dims(), [2, 3, 4]);
    floats(Tensor::<1>::zeros([2], &d).ones_like(), &[1.0, 1.0]);
    floats(Tensor::<1>::ones([2], &d).zeros_like(), &[0.0, 0.0]);
    floats(Tensor::<1>::full([2], 3.5, &d), &[3.5, 3.5]);
    floats(Tensor::<1>::ones([2], &d).full_like(2.0), &[2.0, 2.0]);
    ints(Tensor::<2, Int>::eye(2, &d), &[1, 0, 0, 1]);
    ints(Tensor::<1, Int>::arange(2..5, &d), &[2, 3, 4]);
    assert_eq!(Tensor::<1, Int>::arange(2..5, &d).into_data().try_to_vec::<i32>().unwrap(), [2, 3, 4]);
    assert_eq!(t::<2>([[1.0, 3.0, 2.0]]).argmax(1).into_data().try_to_vec::<i32>().unwrap(), [1]);
    assert_eq!(Tensor::<1, Int>::from_data([4i64, 5], &d).into_data(), TensorData::from([4i32, 5]));
    ints(Tensor::<1, Int>::arange_step(0..6, 2, &d), &[0, 2, 4]);
    ints(Tensor::<2, Int>::cartesian_grid::<_, 3>([1, 2], &d), &[0, 0, 0, 1]);
    let half = Tensor::<1>::zeros([2], (&d, DType::F16));
    assert_eq!(half.dtype(), DType::F16);
    let drawn = Tensor::<1>::random([1000], Distribution::Normal(2.0, 0.5), &d);
    assert!((drawn.clone().mean().into_scalar::<f32>() - 2.0).abs() < 0.1);
    let coins = drawn.random_like(Distribution::Bernoulli(0.5)).mean().into_scalar::<f32>();
    assert!((coins - 0.5).abs() < 0.1);
    let steps = Tensor::<1, Int>::random([100], Distribution::Uniform(0.0, 4.0), &d);
    assert!(!steps.greater_equal_elem(4).any().into_scalar::<bool>());
}

#[test]
fn every_kind_has_views_and_indexing() {
    let x = t::<2>([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    floats(x.clone().transpose(), &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    floats(x.clone().t(), &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    floats(x.clone().swap_dims(0, -1), &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(t::<3>([[[1.0], [2.0]]]).permute([2, 0, 1]).dims(), [1, 1, 2]);
    assert_eq!(t::<3>([[[1.0], [2.0]]]).movedim(0, 2).dims(), [2, 1, 1]);
    assert_eq!(t::<3>([[[1.0], [2.0]]]).movedim(vec![0, 1], vec![1, 0]).dims(), [2, 1, 1]);
    floats(x.clone().reshape([3, -1]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(x.clone().reshape([-1, 2]).dims(), [3, 2]);
    floats(x.clone().flip([0]), &[4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    assert_eq!(x.clone().flatten::<1>(0, 1).dims(), [6]);
    assert_eq!(x.clone().unsqueeze::<3>().dims(), [1, 2, 3]);
    assert_eq!(x.clone().unsqueeze_dim::<3>(1).dims(), [2, 1, 3]);
    assert_eq!(x.clone().unsqueeze_dims::<4>(&[0, -1]).dims(), [1, 2, 3, 1]);
    assert_eq!(t::<3>([[[1.0, 2.0]]]).squeeze::<1>().dims(), [2]);
    assert_eq!(t::<3>([[[1.0, 2.0]]]).squeeze_dim::<2>(0).dims(), [1, 2]);
    assert_eq!(t::<3>([[[1.0, 2.0]]]).squeeze_dims::<1>(&[0, 1]).dims(), [2]);
    floats(x.clone().roll(&[1], &[1]), &[3.0, 1.0, 2.0, 6.0, 4.0, 5.0]);
    floats(x.clone().roll_dim(-1, 0), &[4.0, 5.0, 6.0, 1.0, 2.0, 3.0]);
    floats(x.clone().slice([0..1, 1..3]), &[2.0, 3.0]);
    floats(x.clone().slice(s![.., -1]), &[3.0, 6.0]);
    floats(x.clone().slice(s![1, 0..;2]), &[4.0, 6.0]);
    floats(x.clone().slice_dim(1, 1..), &[2.0, 3.0, 5.0, 6.0]);
    floats(x.clone().slice_assign([0..1, 0..1], t([[9.0]])), &[9.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    floats(x.clone().slice_fill(s![.., 0], 0.0), &[0.0, 2.0, 3.0, 0.0, 5.0, 6.0]);
    floats(x.clone().select(1, ti([2, 0])), &[3.0, 1.0, 6.0, 4.0]);
    floats(x.clone().select_dim::<1>(0, 1), &[4.0, 5.0, 6.0]);
    floats(x.clone().select_assign(1, ti([0]), t([[1.0], [1.0]]), IndexingUpdateOp::Add), &[2.0, 2.0, 3.0, 5.0, 5.0, 6.0]);
    floats(x.clone().take::<1, 2>(0, ti::<1>([1])), &[4.0, 5.0, 6.0]);
    floats(x.clone().gather(1, ti([[2], [0]])), &[3.0, 4.0]);
    floats(x.clone().scatter(1, ti([[0], [0]]), t([[10.0], [20.0]]), IndexingUpdateOp::Add), &[11.0, 2.0, 3.0, 24.0, 5.0, 6.0]);
    floats(x.clone().gather_nd::<2, 1>(ti([[1, 2], [0, 0]])), &[6.0, 1.0]);
    floats(x.clone().scatter_nd::<2, 1>(ti([[1, 2]]), t([0.5]), IndexingUpdateOp::Assign), &[1.0, 2.0, 3.0, 4.0, 5.0, 0.5]);
    floats(x.clone().narrow(1, 1, 2), &[2.0, 3.0, 5.0, 6.0]);
    assert_eq!(x.clone().chunk(2, 1).iter().map(|part| part.dims()[1]).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(x.clone().split(2, 1).len(), 2);
    assert_eq!(x.clone().split_with_sizes(vec![1, 2], 1)[1].dims(), [2, 2]);
    assert_eq!(x.clone().iter_dim(0).map(|row| row.sum().into_scalar::<f32>()).collect::<Vec<_>>(), [6.0, 15.0]);
    floats(Tensor::cat(vec![x.clone(), x.clone()], 0).slice(s![2..]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(Tensor::stack::<3>(vec![x.clone(), x.clone()], 0).dims(), [2, 2, 3]);
    floats(t::<1>([1.0, 2.0]).expand([2, 2]), &[1.0, 2.0, 1.0, 2.0]);
    assert_eq!(x.clone().repeat(&[2, 1]).dims(), [4, 3]);
    assert_eq!(x.clone().repeat_dim(1, 2).dims(), [2, 6]);
    floats(t::<1>([1.0, 2.0, 3.0]).unfold::<2, _>(0, 2, 1), &[1.0, 2.0, 2.0, 3.0]);
    let mask = x.clone().greater_elem(4.0);
    floats(x.clone().mask_fill(mask.clone(), 0.0), &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    floats(x.clone().mask_where(mask.clone(), x.clone().neg()), &[1.0, 2.0, 3.0, 4.0, -5.0, -6.0]);
    floats(x.clone().mask_select(mask.clone()), &[5.0, 6.0]);
    bools(mask.clone().any(), &[true]);
    bools(mask.clone().any_dim(1), &[false, true]);
    bools(mask.clone().all(), &[false]);
    bools(mask.all_dim(1), &[false, false]);
    bools(x.clone().equal(x.clone()).all(), &[true]);
    bools(x.clone().not_equal(x.clone()).any(), &[false]);
    bools(x.clone().equal_elem(2.0), &[false, true, false, false, false, false]);
    bools(x.clone().not_equal_elem(2.0).all(), &[false]);
    bools(x.clone().equal_scalar(2.0).any(), &[true]);
    bools(x.clone().not_equal_scalar(9.0).all(), &[true]);
    let mut y = x.clone();
    y.inplace(|y| y * 2.0);
    floats(y.sum(), &[42.0]);
}

#[test]
fn numbers() {
    let (x, y) = (t::<1>([1.0, -2.0, 3.0]), t::<1>([2.0, 2.0, -2.0]));
    floats(x.clone() + y.clone(), &[3.0, 0.0, 1.0]);
    floats(x.clone().add(y.clone()) - (x.clone() + y.clone()), &[0.0; 3]);
    floats(x.clone() - y.clone(), &[-1.0, -4.0, 5.0]);
    floats(x.clone() * y.clone(), &[2.0, -4.0, -6.0]);
    floats(x.clone() / y.clone(), &[0.5, -1.0, -1.5]);
    floats(x.clone().remainder(y.clone()), &[1.0, 0.0, -1.0]);
    floats(x.clone() % 2.0, &[1.0, 0.0, 1.0]);
    floats(x.clone().add_scalar(1).sub_scalar(1).mul_scalar(2).div_scalar(2).remainder_scalar(2), &[1.0, 0.0, 1.0]);
    floats(2.0 + x.clone(), &[3.0, 0.0, 5.0]);
    floats(2.0 - x.clone(), &[1.0, 4.0, -1.0]);
    floats(2.0 * x.clone(), &[2.0, -4.0, 6.0]);
    floats(6.0 / x.clone(), &[6.0, -3.0, 2.0]);
    floats(-x.clone(), &[-1.0, 2.0, -3.0]);
    floats(x.clone().neg().sign(), &[-1.0, 1.0, -1.0]);
    floats(x.clone().abs(), &[1.0, 2.0, 3.0]);
    let m = t::<2>([[1.0, 2.0], [3.0, 4.0]]);
    floats(m.clone().matmul(m.clone()), &[7.0, 10.0, 15.0, 22.0]);
    floats(m.clone().mean(), &[2.5]);
    floats(m.clone().mean_dim(0), &[2.0, 3.0]);
    floats(m.clone().mean_dims(&[0, 1]), &[2.5]);
    floats(m.clone().sum_dim(-1), &[3.0, 7.0]);
    floats(m.clone().sum_dims(&[0, 1]), &[10.0]);
    floats(m.clone().sum_dims_squeeze::<1, _>(&[0]), &[4.0, 6.0]);
    floats(m.clone().prod(), &[24.0]);
    floats(m.clone().prod_dim(0), &[3.0, 8.0]);
    floats(m.clone().prod_dims(&[0, 1]), &[24.0]);
    floats(m.clone().cumsum(1), &[1.0, 3.0, 3.0, 7.0]);
    floats(m.clone().cumprod(0), &[1.0, 2.0, 3.0, 8.0]);
    floats(m.clone().triu(0), &[1.0, 2.0, 0.0, 4.0]);
    floats(m.clone().tril(-1), &[0.0, 0.0, 3.0, 0.0]);
    floats(m.clone().powi_scalar(2), &[1.0, 4.0, 9.0, 16.0]);
    ints(ti::<1>([2, 3]).powi(ti([3, 2])), &[8, 9]);
    bools(t::<1>([0.0, 2.0]).bool(), &[false, true]);
    floats(t::<1>([1.0, 2.0]).dot(t([3.0, 4.0])), &[11.0]);
    floats(m.clone().pad((1, 0, 0, 1), 9.0).slice(s![0]), &[9.0, 1.0, 2.0]);
    let product: Tensor<2> = burn::tensor::einsum!("ij,kj->ik", m.clone(), m.clone());
    floats(product, &[5.0, 11.0, 11.0, 25.0]);
}

#[test]
fn order() {
    let x = t::<2>([[3.0, 1.0, 2.0], [-6.0, 5.0, 4.0]]);
    floats(x.clone().sort(1), &[1.0, 2.0, 3.0, -6.0, 4.0, 5.0]);
    floats(x.clone().sort_descending(1), &[3.0, 2.0, 1.0, 5.0, 4.0, -6.0]);
    ints(x.clone().sort_with_indices(1).1, &[1, 2, 0, 0, 2, 1]);
    ints(x.clone().sort_descending_with_indices(1).1, &[0, 2, 1, 1, 2, 0]);
    ints(x.clone().argsort(1), &[1, 2, 0, 0, 2, 1]);
    ints(x.clone().argsort_descending(1), &[0, 2, 1, 1, 2, 0]);
    floats(x.clone().topk(2, 1), &[3.0, 2.0, 5.0, 4.0]);
    ints(x.clone().topk_with_indices(1, 1).1, &[0, 1]);
    ints(x.clone().argtopk(1, 1), &[0, 1]);
    floats(x.clone().max(), &[5.0]);
    floats(x.clone().max_dim(1), &[3.0, 5.0]);
    floats(x.clone().max_dims(&[0, 1]), &[5.0]);
    ints(x.clone().max_dim_with_indices(1).1, &[0, 1]);
    floats(x.clone().max_abs(), &[6.0]);
    floats(x.clone().max_abs_dim(1), &[3.0, 6.0]);
    floats(x.clone().max_abs_dims(&[0, 1]), &[6.0]);
    floats(x.clone().max_pair(x.clone().zeros_like()), &[3.0, 1.0, 2.0, 0.0, 5.0, 4.0]);
    floats(x.clone().min(), &[-6.0]);
    floats(x.clone().min_dim(1), &[1.0, -6.0]);
    floats(x.clone().min_dims(&[0, 1]), &[-6.0]);
    ints(x.clone().min_dim_with_indices(1).1, &[1, 0]);
    floats(x.clone().min_pair(x.clone().ones_like()), &[1.0, 1.0, 1.0, -6.0, 1.0, 1.0]);
    ints(x.clone().argmax(1), &[0, 1]);
    ints(x.clone().argmin(1), &[1, 0]);
    floats(x.clone().clamp(0.0, 3.0), &[3.0, 1.0, 2.0, 0.0, 3.0, 3.0]);
    floats(x.clone().clamp_min(2.0).clamp_max(4.0), &[3.0, 2.0, 2.0, 2.0, 4.0, 4.0]);
    floats(x.clone().cummax(1), &[3.0, 3.0, 3.0, -6.0, 5.0, 5.0]);
    floats(x.clone().cummin(1), &[3.0, 1.0, 1.0, -6.0, -6.0, -6.0]);
    let y = x.clone() * 0.0 + 2.0;
    bools(x.clone().greater(y.clone()), &[true, false, false, false, true, true]);
    bools(x.clone().greater_equal(y.clone()), &[true, false, true, false, true, true]);
    bools(x.clone().lower(y.clone()), &[false, true, false, true, false, false]);
    bools(x.clone().lower_equal(y), &[false, true, true, true, false, false]);
    bools(x.clone().greater_scalar(2.0), &[true, false, false, false, true, true]);
    bools(x.clone().greater_equal_elem(2.0), &[true, false, true, false, true, true]);
    bools(x.clone().lower_equal_scalar(2.0), &[false, true, true, true, false, false]);
    bools(x.lower_elem(2.0), &[false, true, false, true, false, false]);
    ints(ti::<1>([1, 0]).one_hot::<2>(3), &[0, 1, 0, 1, 0, 0]);
    ints(ti::<1>([1]).one_hot_fill::<2>(3, 5.0, 2.0, -1), &[2, 5, 2]);
}

#[test]
fn functions_of_floats() {
    let x = t::<1>([0.5]);
    let one = |y: Tensor<1>, want: f64| floats(y, &[want as f32]);
    let v = 0.5f64;
    one(x.clone().square(), v * v);
    one(x.clone().exp(), v.exp());
    one(x.clone().log(), v.ln());
    one(x.clone().log1p(), v.ln_1p());
    one(x.clone().sqrt(), v.sqrt());
    one(x.clone().sin(), v.sin());
    one(x.clone().cos(), v.cos());
    one(x.clone().tan(), v.tan());
    one(x.clone().sinh(), v.sinh());
    one(x.clone().cosh(), v.cosh());
    one(x.clone().tanh(), v.tanh());
    one(x.clone().asin(), v.asin());
    one(x.clone().acos(), v.acos());
    one(x.clone().atan(), v.atan());
    one(x.clone().asinh(), v.asinh());
    one((x.clone() + 1.0).acosh(), 1.5f64.acosh());
    one(x.clone().atanh(), v.atanh());
    one(x.clone().atan2(t([1.0])), v.atan2(1.0));
    one(x.clone().erf(), 0.5204998778);
    one(x.clone().hypot(t([1.2])), 1.3);
    one(x.clone().recip(), 2.0);
    one(t::<1>([180.0]).deg2rad(), std::f64::consts::PI);
    one(t::<1>([std::f64::consts::PI]).rad2deg(), 180.0);
    floats(t::<1>([2.5, -2.5, 1.4]).round(), &[2.0, -2.0, 1.0]);
    floats(t::<1>([1.5, -1.5]).floor(), &[1.0, -2.0]);
    floats(t::<1>([1.5, -1.5]).ceil(), &[2.0, -1.0]);
    floats(t::<1>([1.5, -1.5]).trunc(), &[1.0, -1.0]);
    floats(t::<1>([5.5, -5.5]).fmod(t([2.0, 2.0])), &[1.5, -1.5]);
    floats(t::<1>([5.5, -5.5]).fmod_scalar(2.0), &[1.5, -1.5]);
    floats(t::<1>([2.0, 3.0]).powf(t([3.0, 2.0])), &[8.0, 9.0]);
    floats(t::<1>([4.0]).powf_scalar(0.5), &[2.0]);
    let m = t::<2>([[1.0, 2.0, 6.0], [4.0, 4.0, 4.0]]);
    floats(m.clone().var(1), &[7.0, 0.0]);
    floats(m.clone().var_bias(1), &[14.0 / 3.0, 0.0]);
    floats(m.clone().var_mean(1).1, &[3.0, 4.0]);
    floats(m.clone().var_mean_bias(1).0, &[14.0 / 3.0, 0.0]);
    floats(m.clone().median(1), &[2.0, 4.0]);
    ints(m.clone().median_with_indices(1).1.slice(s![0, 0]), &[1]);
    floats(t::<2>([[1.0, 2.0], [3.0, 6.0]]).cov(1, 1), &[0.5, 1.5, 1.5, 4.5]);
    bools(t::<1>([f32::NAN, 1.0]).is_nan(), &[true, false]);
    bools(t::<1>([f32::NAN, 1.0]).contains_nan(), &[true]);
    bools(t::<1>([f32::INFINITY, 1.0]).is_inf(), &[true, false]);
    bools(t::<1>([f32::INFINITY, f32::NAN, 1.0]).is_finite(), &[false, false, true]);
    bools(t::<1>([1.0, 2.0]).is_close(t([1.0 + 1e-9, 3.0]), None, None), &[true, false]);
    assert!(t::<1>([1.0]).all_close(t([1.0 + 1e-7]), Some(1e-5), Some(1e-8)));
    floats(t::<2>([[1.0, 0.0, 0.0]]).cross(t([[0.0, 1.0, 0.0]]), 1), &[0.0, 0.0, 1.0]);
    let draws = t::<2>([[0.0, 1.0, 0.0]]).categorical(5);
    assert_eq!(draws.dims(), [1, 5]);
    assert!(draws.equal_elem(1).all().into_scalar::<bool>());
}

#[test]
fn integers_and_booleans() {
    let x = ti::<1>([5, 6]);
    ints(x.clone().bitwise_and(ti([3, 3])), &[1, 2]);
    ints(x.clone().bitwise_or(ti([3, 3])), &[7, 7]);
    ints(x.clone().bitwise_xor(ti([3, 3])), &[6, 5]);
    ints(x.clone().bitwise_not(), &[-6, -7]);
    ints(x.clone().bitwise_and_scalar(4), &[4, 4]);
    ints(x.clone().bitwise_or_scalar(1), &[5, 7]);
    ints(x.clone().bitwise_xor_scalar(1), &[4, 7]);
    ints(x.clone().bitwise_left_shift(ti([1, 2])), &[10, 24]);
    ints(x.clone().bitwise_right_shift(ti([1, 1])), &[2, 3]);
    ints(x.clone().bitwise_left_shift_scalar(1), &[10, 12]);
    ints(x.clone().bitwise_right_shift_scalar(1), &[2, 3]);
    ints(x.clone().square(), &[25, 36]);
    floats(x.clone().float() / 2.0, &[2.5, 3.0]);
    ints(t::<1>([2.9, -2.9]).int(), &[2, -2]);
    let b = Tensor::<1, Bool>::from_bool([true, false], &device());
    bools(b.clone().bool_not(), &[false, true]);
    bools(!b.clone(), &[false, true]);
    bools(b.clone().bool_and(!b.clone()), &[false, false]);
    bools(b.clone().bool_or(!b.clone()), &[true, true]);
    bools(b.clone().bool_xor(b.clone()), &[false, false]);
    bools(b.clone() & b.clone() | b.clone() ^ b.clone(), &[true, false]);
    ints(b.clone().int(), &[1, 0]);
    floats(b.clone().float(), &[1.0, 0.0]);
    ints(b.clone().argwhere(), &[0]);
    assert_eq!(b.nonzero().len(), 1);
    bools(Tensor::<2, Bool>::tril_mask([2, 2], 0, &device()), &[false, true, false, false]);
    bools(Tensor::<2, Bool>::triu_mask([2, 2], 0, &device()), &[false, false, true, false]);
    bools(Tensor::<2, Bool>::diag_mask([2, 2], 0, &device()), &[false, true, true, false]);
}

#[test]
fn conversion_and_data() {
    let x = t::<2>([[1.0, 2.5]]);
    assert_eq!(x.clone().cast(FloatDType::F64).dtype(), DType::F64);
    assert_eq!(x.clone().cast(IntDType::U8).dtype(), DType::U8);
    let data = x.to_data();
    assert_eq!((data.shape().clone(), data.dtype(), data.num_elements(), data.rank()), (Shape::new([1, 2]), DType::F32, 2, 2));
    assert_eq!(data.as_slice::<f32>().unwrap(), [1.0, 2.5]);
    assert_eq!(data.iter::<f64>().sum::<f64>(), 3.5);
    assert_eq!(data.clone().convert::<i32>().try_to_vec::<i32>().unwrap(), [1, 2]);
    assert_eq!(data.try_to_vec_as::<f64>().unwrap(), [1.0, 2.5]);
    assert!(data.try_to_vec::<f64>().is_err());
    data.assert_eq(&TensorData::from([[1.0f32, 2.5]]), true);
    data.assert_approx_eq::<f32>(&TensorData::from([[1.0f32, 2.500_001]]), Tolerance::default());
    data.assert_within_range(0.0f32..3.0);
    let (bytes, shape, dtype) = data.clone().into_parts();
    assert_eq!(TensorData::from_bytes(bytes, shape, dtype), data);
    assert!(TensorData::try_from_bytes_vec(vec![0; 3], [1], DType::F32).is_err());
    assert_eq!(x.clone().into_data_as::<f64>().dtype(), DType::F64);
    assert_eq!(x.to_data_dtype(DType::F16).dtype(), DType::F16);
    assert_eq!(x.clone().max().into_scalar::<f64>(), 2.5);
    assert!(x.clone().try_into_scalar::<f32>().is_err());
    let back: TensorData = serde_json::from_str(&serde_json::to_string(&data).unwrap()).unwrap();
    assert_eq!(back, data);
    let text = format!("{x:.1}");
    assert!(text.contains("[1.0, 2.5]") && text.contains("shape:  [1, 2]") && text.contains("Float") && text.contains("f32"), "{text}");
}
