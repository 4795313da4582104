//! Faults that users of deep-learning frameworks met: each test has the right value, worked out by hand.

use kiln_tensor::activation::{log_softmax, quiet_softmax, softmax};
use kiln_tensor::module::*;
use kiln_tensor::ops::*;
use kiln_tensor::{Bool, DType, Device, Distribution, FloatDType, IndexingUpdateOp, Int, IntDType, Tensor, TensorData, Tolerance, bf16, f16, s};

use crate::check_panics;

fn device() -> Device {
    Device::default()
}

fn t<const D: usize>(data: impl Into<TensorData>) -> Tensor<D> {
    Tensor::from_data(data, &device())
}

fn ti<const D: usize>(data: impl Into<TensorData>) -> Tensor<D, Int> {
    Tensor::from_data(data, &device())
}

fn tb<const D: usize>(data: impl Into<TensorData>) -> Tensor<D, Bool> {
    Tensor::from_data(data, &device())
}

#[track_caller]
fn same<const D: usize, K: kiln_tensor::kind::Basic>(got: Tensor<D, K>, expected: impl Into<TensorData>) {
    got.into_data().assert_eq(&expected.into(), false);
}

#[track_caller]
fn close<const D: usize>(got: Tensor<D>, expected: impl Into<TensorData>) {
    got.into_data().assert_approx_eq::<f32>(&expected.into(), Tolerance::rel_abs(1e-4, 1e-5));
}

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

#[test]
fn topk_takes_as_many_as_there_are() {
    let x = || ti::<2>([[12, -2, 3], [5, 3, 6]]);
    same(x().topk(2, 0), [[12, 3, 6], [5, -2, 3]]);
    same(x().topk(3, 1), [[12, 3, -2], [6, 5, 3]]);
    check_panics(|| x().topk(4, 1), "topk: 4 of 3 elements");
}

#[test]
fn reductions_of_nothing() {
    let x = || Tensor::<2>::zeros([3, 0], &device());
    same(x().sum(), [0.0f32]);
    same(x().prod(), [1.0f32]);
    same(x().mean(), [NAN]);
    same(x().sum_dim(1), [[0.0f32], [0.0], [0.0]]);
    same(x().prod_dim(1), [[1.0f32], [1.0], [1.0]]);
    same(x().mean_dim(1), [[NAN], [NAN], [NAN]]);
    let none = || Tensor::<1, Bool>::zeros([0], &device());
    same(none().any(), [false]);
    same(none().all(), [true]);
    assert_eq!(x().sum_dim(0).dims(), [1, 0]);
    check_panics(|| x().max_dim(1), "max");
    check_panics(|| x().min(), "min");
    check_panics(|| x().argmax(1), "argmax");
    assert_eq!(x().max_dim(0).dims(), [1, 0]);
}

#[test]
fn broadcasting_an_empty_axis() {
    let x = Tensor::<2>::zeros([2, 0], &device());
    assert_eq!((x + t([[1.0], [2.0]])).dims(), [2, 0]);
}

#[test]
fn nan_wins_extrema_wherever_it_is() {
    for row in [[NAN, 1.0, 2.0], [1.0, NAN, 2.0], [1.0, 2.0, NAN]] {
        let at = row.iter().position(|x| x.is_nan()).unwrap() as i64;
        same(t::<1>(row).max(), [NAN]);
        same(t::<1>(row).min(), [NAN]);
        same(t::<1>(row).max_abs(), [NAN]);
        same(t::<1>(row).argmax(0), [at]);
        same(t::<1>(row).argmin(0), [at]);
    }
    same(t::<2>([[1.0, NAN, 3.0, 2.0], [1.0, 4.0, 3.0, 2.0]]).max_dim(1), [[NAN], [4.0]]);
    same(t::<1>([1.0, 3.0, NAN, 2.0]).cummax(0), [1.0, 3.0, NAN, NAN]);
    same(t::<1>([1.0, 0.0, NAN, 2.0]).cummin(0), [1.0, 0.0, NAN, NAN]);
    same(t::<1>([2.0, NAN, 1.0]).sort(0), [1.0, 2.0, NAN]);
    same(t::<1>([2.0, NAN, 1.0]).median(0), [NAN]);
    same(t::<1>([2.0, NAN, NAN]).median_with_indices(0).1, [1i64]);
    same(t::<1>([2.0, NAN]).clamp(0, 1), [1.0, NAN]);
}

#[test]
fn argmax_of_large_magnitudes() {
    same(ti::<1>([-999_999, -999_997, -999_998]).argmax(0), [1i64]);
    same(ti::<1>([999_999, 999_998, 999_997]).argmin(0), [2i64]);
    same(t::<1>([-INF, -INF]).argmax(0), [0i64]);
    same(t::<1>([-INF, -INF]).max(), [-INF]);
}

#[test]
fn half_floats_accumulate_without_overflow() {
    let x = Tensor::<1>::from_data(TensorData::new((0..1024).map(|i| i as f32).collect(), [1024]), (&device(), DType::F16));
    same(x.clone().mean(), [f16::from_f32(511.5)]);
    same(x.mean_dim(0), [f16::from_f32(511.5)]);
    let large = Tensor::<1>::from_data([60000.0, 60000.0, -60000.0, -60000.0], (&device(), DType::F16));
    same(large.contains_nan(), [false]);
    let one = Tensor::<1>::from_data([1.0], (&device(), DType::BF16));
    same(one.clone() + one, [bf16::from_f32(2.0)]);
}

#[test]
fn operations_on_a_transpose() {
    let x = || t::<2>([[1, 2, 3], [4, 5, 6]]).transpose();
    same(x().sum_dim(1), [[5.0f32], [7.0], [9.0]]);
    same(x().prod_dim(1), [[4.0f32], [10.0], [18.0]]);
    same(x().mean_dim(1), [[2.5f32], [3.5], [4.5]]);
    same(t::<2>([[1, 2], [3, 4]]).transpose().cumsum(1), [[1.0f32, 4.0], [2.0, 6.0]]);
    let x = t::<2>([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]).transpose();
    let e = (x.clone() - x.max_dim(1)).exp();
    let y = e.clone() / e.sum_dim(1);
    let row = [3.2932e-4f32, 1.79803e-2, 0.98169];
    close(y, [row; 4]);
}

#[test]
fn a_masked_softmax_row_by_row() {
    let (b, n) = (6, 96);
    let count = b * n * n;
    let values: Vec<f32> = (0..count).map(|i| -10.0 + 20.0 * i as f32 / (count - 1) as f32).collect();
    let x = Tensor::<3>::from_data(TensorData::new(values.clone(), [b, n, n]), &device());
    let mask = Tensor::<3, Bool>::tril_mask([b, n, n], 0, &device());
    let y = softmax(x.mask_fill(mask, -1e4), 2).try_into_vec_as::<f32>().unwrap();
    for (r, row) in y.chunks(n).enumerate() {
        let (q, x) = (r % n, &values[r * n..][..n]);
        let top = x[..=q].iter().cloned().fold(-INF, f32::max);
        let total: f64 = x[..=q].iter().map(|x| f64::from(x - top).exp()).sum();
        for (k, got) in row.iter().enumerate() {
            let expected = if k <= q { f64::from(x[k] - top).exp() / total } else { 0.0 };
            assert!((f64::from(*got) - expected).abs() < 1e-5, "row {r} key {k}: {got} {expected}");
        }
    }
}

#[test]
fn a_convolution_into_a_norm() {
    let x = Tensor::<3>::ones([128, 32, 1], &device());
    let weight = Tensor::<3>::ones([1, 32, 1], &device());
    let y = conv1d(x, weight, None, ConvOptions::new([1], [0], [1], 1));
    same(y.clone().sum(), [4096.0f32]);
    let x = Tensor::<3>::ones([128, 32, 1], &device());
    let g = (x.clone().powf_scalar(2).sum_dim(2) + 1e-5).sqrt();
    let out = (x.clone() * g.clone() / g.mean_dim(1) + x).sum();
    close(out, [8192.0f32]);
}

#[test]
fn mask_fill_after_a_swap() {
    let x = Tensor::<1, Int>::arange(0..16, &device()).reshape([2, 2, 4]).swap_dims(0, 2);
    let y = x.clone().mask_fill(x.lower_equal_elem(5), -5);
    same(y, [[[-5, 8], [-5, 12]], [[-5, 9], [-5, 13]], [[-5, 10], [6, 14]], [[-5, 11], [7, 15]]]);
}

#[test]
fn masks_select_and_never_blend() {
    let x = t::<2>([[-INF, -INF], [-INF, -INF]]);
    same(x.mask_fill(tb([[true, false], [false, true]]), 10), [[10.0, -INF], [-INF, 10.0]]);
    let y = t::<1>([1.0, 2.0]).mask_where(tb([false, false]), t([NAN, INF]));
    same(y, [1.0f32, 2.0]);
}

#[test]
fn mask_where_broadcasts_every_side() {
    let x = t::<3>([[[2, 3], [4, 5]]]);
    let mask =
        tb::<3>([[[true, false], [false, true]], [[false, true], [true, false]], [[false, false], [false, false]], [[true, true], [true, true]]]);
    let ones = Tensor::<3>::ones([4, 2, 2], &device());
    let expected = [[[1.0f32, 3.0], [4.0, 1.0]], [[2.0, 1.0], [1.0, 5.0]], [[2.0, 3.0], [4.0, 5.0]], [[1.0, 1.0], [1.0, 1.0]]];
    same(x.mask_where(mask, ones), expected);
    same(t::<1>([2, 3]).mask_where(tb([true, false]), t([1])), [1.0f32, 3.0]);
}

#[test]
fn infinities_are_equal() {
    let x = t::<2>([[0.0, 1.0, 2.0], [INF, 4.0, -INF]]);
    let y = t::<2>([[1.0, 1.0, 1.0], [INF, 3.0, -INF]]);
    same(x.clone().equal(y), [[false, true, false], [true, false, true]]);
    same(t::<1>([INF, INF, NAN, 1.0]).is_close(t([INF, -INF, NAN, INF]), None, None), [true, false, false, false]);
}

#[test]
fn writing_after_an_expand() {
    let x = t::<1>([1, 2, 3]).expand([2, 3]);
    same(x + 1, [[2.0f32, 3.0, 4.0], [2.0, 3.0, 4.0]]);
}

#[test]
fn a_tensor_with_its_own_transpose() {
    let x = tb::<2>([[true, false], [true, true]]);
    same(x.clone() & x.clone().transpose(), [[true, false], [false, true]]);
    same(x, [[true, false], [true, true]]);
}

#[test]
fn long_booleans() {
    let (no, yes) = (Tensor::<1, Bool>::zeros([256], &device()), Tensor::<1, Bool>::ones([256], &device()));
    assert!((no.clone() | yes.clone()).all().into_scalar::<bool>());
    assert!((!no.clone()).all().into_scalar::<bool>() && !(!yes.clone()).any().into_scalar::<bool>(), "constants are negated");
    assert!(!(no & yes).any().into_scalar::<bool>());
}

#[test]
fn gather_with_a_broadcast_index() {
    let x = Tensor::<1, Int>::arange(0..24, &device()).reshape([3, 4, 2]);
    let index = ti::<1>([0, 2, 1, 3]).reshape([1, 4, 1]).expand([3, 4, 2]);
    let y = x.gather(1, index);
    same(y.slice(s![0]), [[[0, 1], [4, 5], [2, 3], [6, 7]]]);
}

#[test]
fn scatter_with_a_view_as_index() {
    let base = t::<3>([[[1]], [[2]], [[3]], [[4]]]);
    let index = ti::<1>([2, 0]).unsqueeze_dims::<3>(&[1, 2]).repeat(&[1, 1, 1]);
    let y = base.scatter(0, index, t([[[10]], [[20]]]), IndexingUpdateOp::Add);
    same(y, [[[21.0f32]], [[2.0]], [[13.0]], [[4.0]]]);
}

#[test]
fn scatter_nd_with_several_batches() {
    let indices: Vec<i64> = (0..2).flat_map(|i| (0..4).flat_map(move |j| [0, i, j, 0])).collect();
    let values: Vec<f32> = (0..8).map(|k| (k + 1) as f32 * 10.0).collect();
    let data = Tensor::<4>::zeros([1, 2, 4, 2], &device());
    let indices = Tensor::<5, Int>::from_data(TensorData::new(indices, [1, 2, 4, 1, 4]), &device());
    let values = Tensor::<4>::from_data(TensorData::new(values, [1, 2, 4, 1]), &device());
    let y = data.scatter_nd(indices, values, IndexingUpdateOp::Assign).try_into_vec_as::<f32>().unwrap();
    let expected: Vec<f32> = (0..8).flat_map(|k| [(k + 1) as f32 * 10.0, 0.0]).collect();
    assert_eq!(y, expected);
}

#[test]
fn repeats() {
    assert_eq!(Tensor::<3>::ones([2, 3, 4], &device()).repeat(&[1, 0, 2]).dims(), [2, 0, 8]);
    assert_eq!(Tensor::<3>::ones([2, 3, 4], &device()).repeat_dim(2, 0).dims(), [2, 3, 0]);
    assert_eq!(t::<2>([[1, 2], [3, 4]]).repeat(&[0, 2]).dims(), [0, 4]);
    same(t::<2>([[1, 2], [3, 4]]).repeat_dim(1, 2), [[1.0f32, 2.0, 1.0, 2.0], [3.0, 4.0, 3.0, 4.0]]);
}

#[test]
fn linear_of_one_row() {
    let y = linear(t::<1>([1, 2]), t([[3], [4]]), None);
    same(y, [11.0f32]);
}

#[test]
fn sorting() {
    same(ti::<1>([1, 2, 3, 4, 5]).sort_descending(0), [5, 4, 3, 2, 1]);
    let row = ti::<2>([[1, 2, 3], [30, 10, 20]]).slice(s![1]).squeeze::<1>();
    same(row.clone().argsort(0), [1i64, 2, 0]);
    same(row.sort(0), [10, 20, 30]);
    let n = 70_000;
    let rows = Tensor::<1, Int>::arange(0..2 * n, &device()).reshape([n as usize, 2]).flip([1]);
    let sorted = rows.sort(1).try_into_vec_as::<i64>().unwrap();
    assert!(sorted.iter().enumerate().all(|(i, x)| *x == i as i64));
}

#[test]
fn padding_keeps_the_type() {
    for dtype in [DType::F16, DType::F64, DType::BF16] {
        let x = || Tensor::<2>::from_data([[1, 2, 3], [4, 5, 6], [7, 8, 9]], (&device(), dtype));
        for (mode, first) in [(PadMode::Constant(0.0), [0; 5]), (PadMode::Reflect, [5, 4, 5, 6, 5]), (PadMode::Edge, [1, 1, 2, 3, 3])] {
            let y = x().pad((1, 1, 1, 1), mode);
            assert_eq!((y.dtype(), y.dims()), (dtype, [5, 5]));
            same(y.slice(s![0]), [first.map(|x| x as f32)]);
        }
    }
    same(t::<1>([1, 2]).pad([(1, 0)], -INF), [-INF, 1.0, 2.0]);
    check_panics(|| t::<1>([1, 2]).pad([(2, 0)], PadMode::Reflect), "pad");
    check_panics(|| t::<1>([1, 2]).pad([(1, 1), (1, 1)], 0), "2 pairs given for rank 1");
}

#[test]
fn joining_keeps_the_type() {
    let x = Tensor::<1>::from_data([1, 2], (&device(), DType::F16));
    let y = Tensor::cat(vec![x.clone(), x.clone()], 0);
    assert_eq!(y.dtype(), DType::F16);
    assert_eq!(x.clone().slice(s![0]).sum().dtype(), DType::F16);
    check_panics(|| Tensor::cat(vec![x, t::<1>([1])], 0), "f16");
    assert_eq!(Tensor::cat(vec![t::<1>([1]), Tensor::zeros([0], &device())], 0).dims(), [1]);
}

#[test]
fn cross_product_on_a_middle_axis() {
    let x = t::<3>([[[1, 0], [0, 1], [0, 0]]]);
    let y = t::<3>([[[0, 1], [0, 0], [1, 0]]]);
    same(x.cross(y, 1), [[[0.0f32, 0.0], [-1.0, 0.0], [0.0, -1.0]]]);
}

#[test]
fn integer_remainders_take_the_sign_of_the_divisor() {
    let x = || ti::<1>([-3, -2, -1, 1, 2, 3]);
    same(x().remainder(ti([2, 3, 1, 2, 1, 3])), [1, 1, 0, 1, 0, 0]);
    same(x() % 2, [1, 0, 1, 1, 0, 1]);
    same(ti::<2>([[10, 20, 30]]).remainder(ti([[7]])), [[3, 6, 2]]);
    same(t::<1>([-3.5, 3.5]) % 2.0, [0.5f32, 1.5]);
    same(ti::<1>([i32::MIN]).abs(), [i32::MIN]);
    same(Tensor::<1, Int>::from_data([i64::MIN], (&device(), DType::I64)).abs(), [i64::MIN]);
}

#[test]
fn random_integers_are_below_the_bound() {
    let x = Tensor::<1, Int>::random([100_000], Distribution::Uniform(0.0, 5.0), &device());
    let mut seen = [0; 5];
    x.try_into_vec_as::<i64>().unwrap().into_iter().for_each(|i| seen[i as usize] += 1);
    assert!(seen.iter().all(|count| (19_000..21_000).contains(count)), "{seen:?}");
}

#[test]
fn a_seed_fixes_what_is_drawn() {
    let device = Device::interpreting("seeded", std::sync::Arc::new(kiln_tensor::HostRuntime::new()));
    let draw = || {
        let x = Tensor::<1>::random([64], Distribution::Default, &device);
        let y = Tensor::<1>::random([64], Distribution::Normal(1.0, 2.0), &device);
        let z = Tensor::<1, Int>::random([64], Distribution::Uniform(-3.0, 9.0), &device);
        (x.into_data(), y.into_data(), z.into_data())
    };
    device.seed(5);
    let first = draw();
    assert_ne!(draw(), first);
    device.seed(5);
    assert_eq!(draw(), first);
    first.2.assert_within_range(-3i32..9);
}

#[test]
fn powers_with_broadcasting() {
    let exponent = Tensor::<1, Int>::arange_step(0..64, 2, &device()).float() / 64.0;
    let base = Tensor::<1>::full([32], 10_000.0, &device());
    let frequencies = base.powf(-exponent).reshape([1, 32]);
    let positions = Tensor::<1, Int>::arange(0..8, &device()).float().reshape([8, 1]);
    let angles = positions * frequencies;
    let (cos, sin) = (angles.clone().cos(), angles.sin());
    for (p, (c, s)) in (cos.try_into_vec_as::<f32>().unwrap().iter().zip(sin.try_into_vec_as::<f32>().unwrap())).enumerate() {
        let angle = (p / 32) as f64 * 10_000f64.powf(-((p % 32) as f64) / 32.0);
        assert!((f64::from(*c) - angle.cos()).abs() < 1e-5 && (f64::from(s) - angle.sin()).abs() < 1e-5, "{p}");
    }
}

#[test]
fn a_requested_type_is_kept() {
    for dtype in [DType::I8, DType::I16, DType::I32, DType::U8, DType::U64] {
        assert_eq!(Tensor::<1, Int>::zeros([2], (&device(), dtype)).dtype(), dtype);
        assert_eq!(Tensor::<1, Int>::arange(0..2, (&device(), dtype)).dtype(), dtype);
        assert_eq!(Tensor::<1, Int>::from_data([1, 2], (&device(), dtype)).dtype(), dtype);
    }
    check_panics(|| Tensor::<1>::zeros([2], (&device(), DType::I32)), "i32 is no element type of Float tensors");
    check_panics(|| t::<1>([1.0]).cast(FloatDType::F64).add(t([1.0])), "f64");
}

#[test]
fn a_product_with_a_transposed_row() {
    let x = Tensor::<2>::ones([1024, 8], &device());
    let y = x.matmul(Tensor::<2>::ones([64, 8], &device()).transpose());
    y.into_data().assert_eq(&TensorData::full([1024, 64], 8.0f32), true);
}

#[test]
fn grouped_convolution() {
    let x = t::<4>([[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]);
    let weight = Tensor::<1, Int>::arange(0..32 * 9, &device()).float().reshape([32, 1, 3, 3]);
    let y = conv2d(x, weight, None, ConvOptions::new([1, 1], [1, 1], [1, 1], 2));
    same(y.slice(s![.., 0..2]), [[[[43.0f32, 37.0], [25.0, 19.0]], [[97.0, 91.0], [79.0, 73.0]]]]);
}

#[test]
fn an_infinite_weight_meets_zero_padding() {
    let x = Tensor::<4>::ones([1, 1, 2, 2], &device());
    let weight = t::<4>([[[[INF, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]]]);
    let y = conv2d(x, weight, None, ConvOptions::new([1, 1], [1, 1], [1, 1], 1));
    same(y, [[[[NAN, NAN], [NAN, INF]]]]);
}

#[test]
fn gradients_have_the_shape_of_their_tensor() {
    let auto = device().autodiff();
    let x = Tensor::<3>::ones([1, 1, 11], &auto).require_grad();
    let y = conv1d(x.clone(), Tensor::ones([1, 1, 4], &auto), None, ConvOptions::new([4], [0], [1], 1));
    let grad = x.grad(&y.sum().backward()).unwrap();
    same(grad, [[[1.0f32, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]]);
    let x = Tensor::<3>::ones([1, 2, 4], &auto).require_grad();
    let options = ConvTransposeOptions::new([1], [0], [0], [1], 1);
    let y = conv_transpose1d(x.clone(), Tensor::ones([2, 1, 3], &auto), None, options);
    assert_eq!(x.grad(&y.sum().backward()).unwrap().dims(), [1, 2, 4]);
}

#[test]
fn asymmetric_padding_of_a_mean() {
    let options = AvgPoolOptions::new([2, 2]).with_stride([1, 1]).with_padding_pairs([(1, 0), (1, 0)]).with_count_include_pad(false);
    let y = avg_pool2d(t([[[[1, 2], [3, 4]]]]), options);
    same(y, [[[[1.0f32, 1.5], [2.0, 2.5]]]]);
}

#[test]
fn max_pool_gradients_follow_the_dilation() {
    let auto = device().autodiff();
    let grad = |dilation| {
        let x = Tensor::<4>::from_data(TensorData::new((0..30).map(|i| (i * 7 % 30) as f32).collect(), [1, 1, 5, 6]), &auto).require_grad();
        let y = max_pool2d(x.clone(), MaxPoolOptions::new([2, 2]).with_stride([1, 1]).with_dilation(dilation));
        x.grad(&y.sum().backward()).unwrap().into_data()
    };
    assert_ne!(grad([1, 2]), grad([1, 1]));
    assert_eq!(grad([1, 2]).iter::<f32>().sum::<f32>(), 16.0);
}

#[test]
fn nearest_upsampling_takes_the_floor() {
    for h in [214usize, 220, 227, 235, 255] {
        let x = Tensor::<1, Int>::arange(0..h as i64, &device()).float().reshape([1, 1, h, 1]);
        let options = InterpolateOptions::new(InterpolateMode::Nearest).with_output_size([2 * h, 1]);
        let y = interpolate(x, options).try_into_vec_as::<f32>().unwrap();
        assert!(y.iter().enumerate().all(|(i, y)| *y == (i * h / (2 * h)) as f32), "{h}");
    }
}

#[test]
fn bilinear_reaches_the_last_row() {
    let x = Tensor::<1, Int>::arange(0..112, &device()).float().reshape([1, 1, 28, 4]);
    let y = interpolate(x, InterpolateOptions::new(InterpolateMode::Bilinear).with_output_size([24, 2]));
    let rows = [[0.0f32, 3.0], [4.6957, 7.6957], [9.3913, 12.3913]];
    close(y.clone().slice(s![0, 0, 0..3]).reshape([3, 2]), rows);
    close(y.slice(s![0, 0, -1]).reshape([1, 2]), [[108.0f32, 111.0]]);
}

#[test]
fn sampling_at_infinity_takes_the_border() {
    let x = Tensor::<1, Int>::arange(0..9, &device()).float().reshape([1, 1, 3, 3]);
    let options = GridSampleOptions::new(InterpolateMode::Bilinear).with_padding_mode(GridSamplePaddingMode::Border).with_align_corners(true);
    same(x.grid_sample_2d(t([[[[0.0, INF]]]]), options), [[[[7.0f32]]]]);
}

#[test]
fn a_query_that_sees_nothing_gives_zero() {
    let q = || Tensor::<4>::ones([1, 1, 2, 3], &device());
    let mask = || tb::<4>([[[[true, true], [false, true]]]]);
    for f in [attention, attention_fallback] {
        let v = t::<4>([[[[1.0], [5.0]]]]);
        let y = f(q(), q(), v, Some(mask()), None, AttentionModuleOptions::default());
        same(y, [[[[0.0f32], [1.0]]]]);
    }
}

#[test]
fn grouped_heads_repeat_the_keys() {
    let random = |shape: [usize; 4]| Tensor::<4>::random(shape, Distribution::Normal(0.0, 1.0), &device());
    for groups in [1, 2] {
        let (q, k, v) = (random([2, 4, 3, 5]), random([2, groups, 6, 5]), random([2, groups, 6, 2]));
        let spread = |x: Tensor<4>| {
            let [b, g, s, d] = x.dims();
            x.unsqueeze_dim::<5>(2).expand([b, g, 4 / g, s, d]).reshape([b, 4, s, d])
        };
        let options = AttentionModuleOptions { is_causal: true, softcap: Some(2.0), ..Default::default() };
        let y = attention(q.clone(), k.clone(), v.clone(), None, None, options);
        let expected = attention_fallback(q, spread(k), spread(v), None, None, options);
        y.into_data().assert_approx_eq::<f32>(&expected.into_data(), Tolerance::rel_abs(1e-4, 1e-5));
    }
}

#[test]
fn attention_bias_is_broadcast() {
    let q = Tensor::<4>::random([2, 3, 4, 5], Distribution::Default, &device());
    for shape in [[1, 1, 4, 4], [2, 1, 4, 4], [2, 3, 4, 4]] {
        let bias = Tensor::<4>::random(shape, Distribution::Default, &device());
        let y = attention(q.clone(), q.clone(), q.clone(), None, Some(bias.clone()), AttentionModuleOptions::default());
        let full = bias.expand([2, 3, 4, 4]);
        let expected = attention_fallback(q.clone(), q.clone(), q.clone(), None, Some(full), AttentionModuleOptions::default());
        y.into_data().assert_approx_eq::<f32>(&expected.into_data(), Tolerance::rel_abs(1e-4, 1e-5));
    }
}

/// The gradient of the sum of `f` at `x`.
#[track_caller]
fn gradient<const D: usize, const D2: usize>(x: impl Into<TensorData>, f: impl Fn(Tensor<D>) -> Tensor<D2>) -> Tensor<D> {
    let x = Tensor::<D>::from_data(x, &device().autodiff()).require_grad();
    x.grad(&f(x.clone()).sum().backward()).expect("a gradient")
}

#[test]
fn products_with_zeros_have_gradients() {
    same(gradient::<1, 1>([2.0, 0.0, 3.0, 4.0], |x| x.cumprod(0)), [1.0f32, 32.0, 0.0, 0.0]);
    same(gradient::<1, 1>([0.0, 0.0, 3.0], |x| x.cumprod(0)), [1.0f32, 0.0, 0.0]);
    same(gradient::<1, 1>([1.0, 2.0, 3.0], |x| x.cumprod(0)), [9.0f32, 4.0, 2.0]);
    same(gradient::<1, 1>([2.0, 0.0, 3.0, 4.0], |x| x.prod()), [0.0f32, 24.0, 0.0, 0.0]);
    same(gradient::<1, 1>([2.0, 0.0, 3.0, 0.0, 5.0], |x| x.prod()), [0.0f32; 5]);
}

#[test]
fn joining_with_an_untracked_part() {
    let auto = device().autodiff();
    let a = Tensor::<1>::from_data([1], &auto).require_grad();
    let b = Tensor::<1>::from_data([10, 20], &auto);
    let c = Tensor::<1>::from_data([100, 200, 300], &auto).require_grad();
    let y = Tensor::cat(vec![a.clone(), b, c.clone()], 0) * Tensor::from_data([1, 2, 3, 4, 5, 6], &auto);
    let gradients = y.sum().backward();
    same(a.grad(&gradients).unwrap(), [1.0f32]);
    same(c.grad(&gradients).unwrap(), [4.0f32, 5.0, 6.0]);
}

#[test]
fn casts_and_windows_keep_the_graph() {
    same(gradient::<2, 2>([[1.0, 2.0], [3.0, 4.0]], |x| x.cast(FloatDType::F64)), [[1.0f32; 2]; 2]);
    same(gradient::<1, 2>([1.0, 2.0, 3.0], |x| x.unfold(0, 2, 1)), [1.0f32, 2.0, 1.0]);
    let x = Tensor::<1>::from_data([1.0, 2.0, 3.0], (&device().autodiff(), DType::F64)).require_grad();
    same(x.grad(&x.clone().powi_scalar(2).sum().backward()).unwrap(), [2.0f64, 4.0, 6.0]);
}

#[test]
fn gradients_of_repeats_and_broadcasts() {
    let auto = device().autodiff();
    let a = Tensor::<2>::from_data([[1, 7], [-2, -3]], &auto).require_grad();
    let b = Tensor::<2>::from_data([[4, 2], [2, 4]], &auto).require_grad();
    let y = a.clone().matmul(b.clone().repeat_dim(1, 3));
    same(b.grad(&y.sum().backward()).unwrap(), [[-3.0f32, -3.0], [12.0, 12.0]]);
    let x = Tensor::<2>::from_data([[1], [2]], &auto).require_grad();
    let bias = Tensor::<2>::from_data([[1, 2, 3]], &auto).require_grad();
    let gradients = (x + bias.clone()).sum().backward();
    same(bias.grad(&gradients).unwrap(), [[2.0f32, 2.0, 2.0]]);
    let x = Tensor::<2>::ones([2, 1], &auto).require_grad();
    let y = Tensor::<2>::ones([1, 1], &auto).require_grad();
    let at = Tensor::<1, Int>::from_data([1], &auto);
    let w = x.clone().select_assign(0, at, y.clone(), IndexingUpdateOp::Add);
    let gradients = w.clone().matmul(w.transpose()).sum().backward();
    same(y.grad(&gradients).unwrap(), [[6.0f32]]);
    let at = Tensor::<1, Int>::from_data([1], &auto);
    let (x, y) = (Tensor::<2>::ones([1, 1], &auto).require_grad(), Tensor::<2>::ones([2, 1], &auto).require_grad());
    let w = y.clone().select_assign(0, at, x.clone(), IndexingUpdateOp::Add);
    let gradients = w.matmul(y.clone().transpose()).sum().backward();
    same(x.grad(&gradients).unwrap(), [[2.0f32]]);
    same(y.grad(&gradients).unwrap(), [[5.0f32], [5.0]]);
}

#[test]
fn fewer_indices_than_places_write_nothing_else() {
    for n in [3usize, 64, 1000] {
        let x = Tensor::<2>::zeros([n, 3], &device());
        let y = x.select_assign(0, ti([1]), Tensor::ones([1, 3], &device()), IndexingUpdateOp::Add);
        let values = y.try_into_vec_as::<f32>().unwrap();
        assert!(values.iter().enumerate().all(|(i, v)| *v == f32::from(u8::from((3..6).contains(&i)))), "{n}");
    }
}

#[test]
fn a_batched_product_of_waves() {
    let wave = |shape: [usize; 4], step: f32| {
        let n: usize = shape.iter().product();
        let values: Vec<f32> = (0..n).map(|i| (i as f32 * step).sin()).collect();
        Tensor::<4>::from_data(TensorData::new(values, shape), &device())
    };
    let (a, b) = (wave([1, 8, 512, 512], 0.001), wave([1, 8, 512, 32], 0.003));
    let y = a.clone().matmul(b.clone()).try_into_vec_as::<f32>().unwrap();
    let (a, b) = (a.try_into_vec_as::<f64>().unwrap(), b.try_into_vec_as::<f64>().unwrap());
    for place in [[0, 0, 0], [3, 17, 5], [7, 511, 31], [4, 256, 16]] {
        let [head, i, j] = place;
        let expected: f64 = (0..512).map(|k| a[(head * 512 + i) * 512 + k] * b[(head * 512 + k) * 32 + j]).sum();
        let got = f64::from(y[(head * 512 + i) * 32 + j]);
        assert!((got - expected).abs() < 1e-3 * expected.abs().max(1.0), "{place:?}: {got}, expected {expected}");
    }
}

#[test]
fn a_wide_convolution_has_gradients() {
    let x = Tensor::<4>::ones([1, 1, 3, 700], &device().autodiff()).require_grad();
    let weight = Tensor::<4>::ones([1, 1, 3, 301], &device().autodiff()).require_grad();
    let y = conv2d(x.clone(), weight.clone(), None, ConvOptions::new([1, 1], [0, 0], [1, 1], 1));
    assert_eq!(y.dims(), [1, 1, 1, 400]);
    let gradients = y.sum().backward();
    same(weight.grad(&gradients).unwrap(), TensorData::full([1, 1, 3, 301], 400.0f32));
    let dx = x.grad(&gradients).unwrap().try_into_vec_as::<f32>().unwrap();
    // A column is under as many windows as fit around it.
    assert!(dx.iter().enumerate().all(|(i, v)| *v as usize == [i % 700 + 1, 301, 700 - i % 700].into_iter().min().unwrap()));
}

#[test]
fn two_branches_of_half_convolutions_fused_and_not() {
    let random = |shape: [usize; 4]| Tensor::<4>::random(shape, Distribution::Normal(0.0, 1.0), (&device(), DType::F16));
    let (x, left, right) = (random([2, 3, 9, 7]), random([5, 3, 3, 3]), random([5, 3, 1, 1]));
    let branch = |weight: &Tensor<4>, pad: usize, apart: bool| {
        let settle = |x: Tensor<4>| if apart { Tensor::from_data(x.into_data(), (&device(), DType::F16)) } else { x };
        let y = settle(conv2d(x.clone(), weight.clone(), None, ConvOptions::new([1, 1], [pad, pad], [1, 1], 1)));
        let mean = settle(y.clone().mean_dims(&[0, 2, 3]));
        let var = settle(y.clone().sub(mean.clone()).square().mean_dims(&[0, 2, 3]));
        settle((y - mean) / (var + 1e-3).sqrt())
    };
    let fused = branch(&left, 1, false) + branch(&right, 0, false);
    let apart = branch(&left, 1, true) + branch(&right, 0, true);
    fused.into_data().assert_approx_eq::<f32>(&apart.into_data(), Tolerance::rel_abs(1e-2, 1e-2));
}

#[test]
fn no_fused_operation_cuts_the_graph() {
    let auto = device().autodiff();
    type Layer = fn(Tensor<2>, Tensor<1>) -> Tensor<2>;
    let layers: [(&str, Layer); 6] = [
        ("rms norm", |x, w| Tensor::from_raw(x.into_raw().rms_norm(w.as_raw(), 1e-5))),
        ("layer norm", |x, w| layer_norm(x, w, None, 1e-5)),
        ("softmax", |x, w| softmax(x * w.unsqueeze(), 1)),
        ("log softmax", |x, w| log_softmax(x * w.unsqueeze(), 1)),
        ("quiet softmax", |x, w| quiet_softmax(x * w.unsqueeze(), 1)),
        ("rotation", |x, w| {
            let half = x.clone().narrow(1, 2, 2);
            Tensor::cat(vec![half.neg(), x.narrow(1, 0, 2)], 1) * w.unsqueeze()
        }),
    ];
    for (name, layer) in layers {
        let upstream = Tensor::<2>::from_data([[0.3, -0.2, 0.5, 0.1], [0.7, 0.4, -0.6, 0.2]], &auto).require_grad();
        let weight = Tensor::<1>::from_data([1.0, 0.5, 2.0, 1.5], &auto).require_grad();
        let loss = layer(upstream.clone().exp(), weight.clone()).powi_scalar(3).sum();
        let gradients = loss.backward();
        for gradient in [upstream.grad(&gradients).map(Tensor::into_raw), weight.grad(&gradients).map(Tensor::into_raw)] {
            let gradient = gradient.unwrap_or_else(|| panic!("{name}: a gradient is lost")).to_f64s().unwrap();
            assert!(gradient.iter().all(|v| v.is_finite()) && gradient.iter().any(|v| *v != 0.0), "{name}: {gradient:?}");
        }
    }
}

#[test]
fn slopes_at_special_points() {
    same(gradient::<1, 1>([1000.0, -1000.0], kiln_tensor::activation::sigmoid), [0.0f32, 0.0]);
    same(gradient::<1, 1>([0.0], |x| x.powf_scalar(2.0)), [0.0f32]);
    same(gradient::<1, 1>([0.0], |x| x.powi_scalar(2)), [0.0f32]);
    same(gradient::<1, 1>([0.0], |x| x.abs()), [0.0f32]);
    same(gradient::<1, 1>([0.0], kiln_tensor::activation::silu), [0.5f32]);
    same(gradient::<1, 1>([-1000.0, 1000.0], |x| kiln_tensor::activation::elu(x, 1.0)), [0.0f32, 1.0]);
    same(gradient::<1, 1>([-1000.0, 1000.0], |x| kiln_tensor::activation::softplus(x, 1.0)), [0.0f32, 1.0]);
}

#[test]
fn products_of_nothing() {
    let auto = device().autodiff();
    let a = Tensor::<2>::ones([2, 0], &auto).require_grad();
    let b = Tensor::<2>::ones([0, 3], &auto).require_grad();
    let y = a.clone().matmul(b.clone());
    same(y.clone(), [[0.0f32; 3]; 2]);
    let gradients = y.sum().backward();
    assert_eq!(a.grad(&gradients).unwrap().dims(), [2, 0]);
    assert_eq!(b.grad(&gradients).unwrap().dims(), [0, 3]);
}

#[test]
fn quiet_softmax_adds_one_to_the_sum() {
    close(quiet_softmax(t::<1>([1, 7]), 0), [0.0024704f32, 0.9966208]);
    close(quiet_softmax(t::<1>([-10, -20]), 0), [4.53979e-5f32, 2.0611e-9]);
    close(quiet_softmax(t::<1>([-3, -3]), 0), [0.0452785f32, 0.0452785]);
}

#[test]
fn logarithms_of_sums_keep_their_range() {
    let lse = |x: [f32; 3]| {
        let x = t::<1>(x);
        let top = x.clone().max();
        (x - top.clone()).exp().sum().log() + top
    };
    close(lse([-1000.0, -999.0, -1001.0]), [-998.5924f32]);
    close(lse([1000.0, 999.0, 1001.0]), [1001.4076f32]);
    close(log_softmax(t::<1>([1000.0, 999.0, 1001.0]), 0), [-1.4076f32, -2.4076, -0.4076]);
}

#[test]
fn empty_axes_in_index_arithmetic() {
    let x = || Tensor::<3>::zeros([2, 0, 3], &device());
    assert_eq!(x().select(0, ti([1])).dims(), [1, 0, 3]);
    assert_eq!(x().gather(2, Tensor::<3, Int>::zeros([2, 0, 2], &device())).dims(), [2, 0, 2]);
    assert_eq!(x().slice(s![.., .., 1..]).dims(), [2, 0, 2]);
    assert_eq!(x().permute([1, 2, 0]).dims(), [0, 3, 2]);
    assert_eq!(x().flip([0, 1]).dims(), [2, 0, 3]);
    assert_eq!(x().sort(2).dims(), [2, 0, 3]);
    assert_eq!(x().cumsum(1).dims(), [2, 0, 3]);
    assert_eq!(softmax(x(), 2).dims(), [2, 0, 3]);
    assert_eq!(x().reshape([0, 6]).dims(), [0, 6]);
    assert!(Tensor::<1, Bool>::zeros([0], &device()).argwhere().dims() == [0, 1]);
}

#[test]
fn types_of_conversions() {
    same(t::<1>([2.9, -2.9, NAN, INF]).cast(IntDType::I8), [2i8, -2, 0, 127]);
    same(t::<1>([0.5, 0.0, NAN]).bool(), [true, false, true]);
    same(ti::<1>([300]).cast(IntDType::U8), [44u8]);
    check_panics(|| t::<1>([1.0]).cast(DType::I32), "i32 is no element type of Float tensors");
}

#[test]
fn a_device_goes_on_after_memory_ran_out() {
    let device = crate::cpu();
    let (x, y) = (Tensor::<1>::ones([4], &device), Tensor::<1>::ones([1usize << 50], &device));
    let z = x.clone() + 1;
    assert!(device.flush().is_err());
    assert!(y.try_into_scalar::<f32>().is_err());
    assert!((x + z).sum().try_into_scalar::<f32>().is_err(), "what was computed in the same run is lost");
    same(Tensor::<1>::ones([4], &device).sum(), [4.0f32]);
    device.sync().unwrap();
}

/// The rows of the list beside this file name tests of this crate.
#[test]
fn every_fault_of_the_list_has_a_test() {
    let rows: Vec<&str> = include_str!("faults.md").lines().filter(|line| line.starts_with("| ") && !line.starts_with("| nr")).collect();
    assert!(rows.len() > 70);
    for row in rows {
        let column = row.trim_end_matches(" |").rsplit('|').next().unwrap_or_default();
        let tests: Vec<&str> = column.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let (module, name) = test.split_once("::").expect("a module and a test");
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{module}.rs"));
            let source = std::fs::read_to_string(path).unwrap();
            assert!(source.contains(&format!("#[test]\nfn {name}()")), "{test} is no test");
        }
    }
}
