//! Values and shapes of the untyped ops, on every device.
use kiln_ir::{DType, Elementwise, ScatterOp};
use kiln_tensor::raw::{AttentionOptions, ConvOptions, ConvTransposeOptions, PoolOptions, RawTensor, SliceRange};
use kiln_tensor::{Device, Scalar};

use crate::{check_panics, devices};

fn floats(device: &Device, dims: &[usize], values: &[f32]) -> RawTensor {
    RawTensor::from_slice(device, dims, DType::F32, values)
}

fn ints(device: &Device, dims: &[usize], values: &[i64]) -> RawTensor {
    RawTensor::from_slice(device, dims, DType::I64, values)
}

#[track_caller]
fn close(x: &RawTensor, expected: &[f64]) {
    let got = x.to_f64s().unwrap();
    assert_eq!(got.len(), expected.len(), "{x:?}: {got:?}");
    for (g, e) in got.iter().zip(expected) {
        let same = g == e || (g.is_nan() && e.is_nan()) || (g - e).abs() <= 2e-6 * e.abs().max(1.0);
        assert!(same, "{got:?}, expected {expected:?}");
    }
}

#[test]
fn scalars_meet_their_dtype() {
    for device in devices() {
        for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Bool) {
            let x = RawTensor::full(&device, &[3], dtype, Scalar::Int(5));
            close(&x.add_scalar(Scalar::Int(2)).mul_scalar(Scalar::Float(3.0)), &[21.0; 3]);
            assert_eq!(x.add_scalar(Scalar::Int(2)).dtype(), dtype);
        }
        let truth = RawTensor::full(&device, &[2], DType::Bool, Scalar::Bool(true));
        close(&truth.not(), &[0.0, 0.0]);
        let big = RawTensor::full(&device, &[1], DType::U64, Scalar::UInt(u64::MAX));
        assert_eq!(big.to_bytes().unwrap(), [255; 8]);
        close(&RawTensor::full(&device, &[1], DType::U8, Scalar::Int(300)), &[44.0]);
    }
}

#[test]
fn creation() {
    for device in devices() {
        close(&RawTensor::arange(&device, 3, -2, 4, DType::I32), &[3.0, 1.0, -1.0, -3.0]);
        close(&RawTensor::eye(&device, 2, DType::F32), &[1.0, 0.0, 0.0, 1.0]);
        close(&RawTensor::iota(&device, &[2, 2], DType::F64, 0), &[0.0, 0.0, 1.0, 1.0]);
        assert!(RawTensor::zeros(&device, &[0, 3], DType::F32).to_bytes().unwrap().is_empty());
    }
}

#[test]
fn views_and_slices() {
    for device in devices() {
        let x = floats(&device, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        close(&x.transpose(), &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        close(&x.slice(&[SliceRange { axis: 1, start: 2, len: 2, step: -2 }]), &[3.0, 1.0, 6.0, 4.0]);
        close(&x.flip(&[0, 1]), &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        close(&x.roll(1, 1), &[3.0, 1.0, 2.0, 6.0, 4.0, 5.0]);
        close(&x.unfold(1, 2, 1), &[1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 5.0, 6.0]);
        close(&x.repeat(0, 0), &[]);
        assert_eq!(x.repeat(0, 0).dims(), [0, 3]);
        close(&x.repeat(1, 2), &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0]);
        close(&x.slice_assign(&[SliceRange::new(0, 1, 1)], &floats(&device, &[1], &[9.0])), &[1.0, 2.0, 3.0, 9.0, 9.0, 9.0]);
        close(&floats(&device, &[3], &[1.0, 2.0, 3.0]).expand(&[2, 3]).add_scalar(1.0), &[2.0, 3.0, 4.0, 2.0, 3.0, 4.0]);
        let square = floats(&device, &[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).cast(DType::F16);
        let pads = [(1, 1), (1, 1)];
        close(&square.pad_reflect(&pads).narrow(0, 0, 1), &[5.0, 4.0, 5.0, 6.0, 5.0]);
        close(&square.pad_edge(&pads).narrow(0, 0, 1), &[1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(square.pad_constant(&pads, Scalar::Float(0.0)).dtype(), DType::F16);
        close(&x.triu(1), &[0.0, 2.0, 3.0, 0.0, 0.0, 6.0]);
        close(&x.tril(0), &[1.0, 0.0, 0.0, 4.0, 5.0, 0.0]);
    }
}

#[test]
fn empty_tensors_are_ordinary() {
    for device in devices() {
        let e = RawTensor::zeros(&device, &[2, 0], DType::F32);
        assert_eq!(e.add(&floats(&device, &[2, 1], &[1.0, 2.0])).dims(), [2, 0]);
        close(&e.sum(&[1]), &[0.0, 0.0]);
        close(&e.prod(&[1]), &[1.0, 1.0]);
        close(&e.mean(&[1]), &[f64::NAN, f64::NAN]);
        close(&e.any(&[1]), &[0.0, 0.0]);
        close(&e.all(&[1]), &[1.0, 1.0]);
        close(&e.matmul(&RawTensor::zeros(&device, &[0, 3], DType::F32)), &[0.0; 6]);
        check_panics(|| e.max(&[1]), "max: an empty axis");
        close(&RawTensor::cat(&[e.clone(), floats(&device, &[2, 1], &[1.0, 2.0])], 1), &[1.0, 2.0]);
        close(&floats(&device, &[3], &[1.0, 2.0, 3.0]).narrow(0, 3, 0), &[]);
    }
}

#[test]
fn nan_wins_extrema() {
    for device in devices() {
        for v in [[f32::NAN, 1.0, 2.0], [1.0, f32::NAN, 2.0], [1.0, 2.0, f32::NAN]] {
            let x = floats(&device, &[3], &v);
            close(&x.max(&[0]), &[f64::NAN]);
            close(&x.min(&[0]), &[f64::NAN]);
            let at = v.iter().position(|x| x.is_nan()).unwrap() as f64;
            close(&x.argmax(0), &[at]);
            close(&x.argmin(0), &[at]);
        }
        close(&floats(&device, &[3], &[-999_999.0, -999_997.0, -999_998.0]).argmax(0), &[1.0]);
        close(&floats(&device, &[4], &[1.0, 3.0, f32::NAN, 5.0]).cummax(0), &[1.0, 3.0, f64::NAN, f64::NAN]);
        let inf = floats(&device, &[3], &[f32::INFINITY, 4.0, f32::NEG_INFINITY]);
        close(&inf.eq(&floats(&device, &[3], &[f32::INFINITY, 3.0, f32::NEG_INFINITY])), &[1.0, 0.0, 1.0]);
    }
}

#[test]
fn half_floats_are_summed_wide() {
    for device in devices() {
        let x = RawTensor::iota(&device, &[1024], DType::F16, 0);
        close(&x.mean(&[0]), &[511.5]);
        assert_eq!(x.mean(&[0]).dtype(), DType::F16);
        let (var, mean) = RawTensor::iota(&device, &[8], DType::BF16, 0).var_mean(&[0], 1);
        close(&var, &[6.0]);
        close(&mean, &[3.5]);
    }
}

#[test]
fn integer_powers() {
    for device in devices() {
        let base = ints(&device, &[8], &[2, -3, 0, 1, -1, -1, 2, 5]);
        let exponent = ints(&device, &[8], &[10, 3, 0, -7, -7, -8, -1, 0]);
        close(&base.powi(&exponent), &[1024.0, -27.0, 1.0, 1.0, -1.0, 1.0, 0.0, 1.0]);
        close(&base.powi_scalar(3), &[8.0, -27.0, 0.0, 1.0, -1.0, -1.0, 8.0, 125.0]);
        close(&base.powi_scalar(-1), &[0.0, 0.0, 0.0, 1.0, -1.0, -1.0, 0.0, 0.0]);
        close(&ints(&device, &[1], &[-1]).powi(&ints(&device, &[1], &[101])), &[-1.0]);
        let bytes = RawTensor::full(&device, &[1], DType::U8, Scalar::Int(3));
        close(&bytes.powi_scalar(6), &[729.0 - 512.0]);
        close(&floats(&device, &[2], &[2.0, -2.0]).powi(&ints(&device, &[2], &[3, 3])), &[8.0, -8.0]);
        close(&floats(&device, &[2], &[4.0, 9.0]).powf_scalar(0.5), &[2.0, 3.0]);
        close(&floats(&device, &[2], &[2.0, 4.0]).powf_scalar(-2.0), &[0.25, 0.0625]);
        close(&floats(&device, &[2], &[0.0, 4.0]).powf_scalar(0.0), &[1.0, 1.0]);
    }
}

#[test]
fn remainders_take_the_divisors_sign() {
    for device in devices() {
        let x = ints(&device, &[6], &[-3, -2, -1, 1, 2, 3]);
        close(&x.rem(&ints(&device, &[6], &[2, 3, 1, 2, 1, 3])), &[1.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
        close(&x.rem_scalar(Scalar::Int(2)), &[1.0, 0.0, 1.0, 1.0, 0.0, 1.0]);
        close(&floats(&device, &[2], &[-3.5, 3.5]).rem_scalar(2.0), &[0.5, 1.5]);
        close(&floats(&device, &[2], &[-3.5, 3.5]).fmod_scalar(2.0), &[-1.5, 1.5]);
    }
}

#[test]
fn selections_do_not_leak() {
    for device in devices() {
        let x = RawTensor::full(&device, &[2, 2], DType::F32, Scalar::Float(f64::NEG_INFINITY));
        let mask = RawTensor::from_bytes(&device, &[2, 2], DType::Bool, &[1, 0, 0, 1]);
        let inf = f64::NEG_INFINITY;
        close(&x.mask_fill(&mask, Scalar::Float(10.0)), &[10.0, inf, inf, 10.0]);
        let nan = RawTensor::full(&device, &[1], DType::F32, Scalar::Float(f64::NAN));
        close(&x.mask_where(&mask.not(), &nan), &[inf, f64::NAN, f64::NAN, inf]);
        close(&floats(&device, &[2], &[2.0, 3.0]).mask_where(&mask.narrow(0, 1, 1), &floats(&device, &[1], &[1.0])), &[2.0, 1.0]);
        close(&floats(&device, &[3], &[-2.0, 0.5, f32::NAN]).clamp(Some(Scalar::Float(-1.0)), Some(Scalar::Float(0.0))), &[-1.0, 0.0, f64::NAN]);
    }
}

#[test]
fn saturated_forms_stay_finite() {
    for device in devices() {
        let x = floats(&device, &[3], &[-1000.0, 0.0, 1000.0]);
        let ln2 = core::f64::consts::LN_2;
        close(&x.sigmoid(), &[0.0, 0.5, 1.0]);
        close(&x.softplus(1.0, 20.0), &[0.0, ln2, 1000.0]);
        close(&x.log_sigmoid(), &[-1000.0, -ln2, 0.0]);
        close(&x.log_sum_exp(&[0]), &[1000.0]);
        close(&x.softmax(0), &[0.0, 0.0, 1.0]);
        close(&x.log_softmax(0), &[-2000.0, -1000.0, 0.0]);
        close(&x.gelu(), &[0.0, 0.0, 1000.0]);
        close(&x.silu(), &[0.0, 0.0, 1000.0]);
        let nothing = RawTensor::full(&device, &[2], DType::F32, Scalar::Float(f64::NEG_INFINITY));
        close(&nothing.log_sum_exp(&[0]), &[f64::NEG_INFINITY]);
        close(&nothing.masked_softmax(0), &[0.0, 0.0]);
        close(&floats(&device, &[2], &[0.0, 0.0]).quiet_softmax(0), &[1.0 / 3.0, 1.0 / 3.0]);
        close(&floats(&device, &[2], &[3e30, 4e30]).norm2(&[0]).div_scalar(1e30), &[5.0]);
        close(&floats(&device, &[2], &[3e30, 0.0]).hypot(&floats(&device, &[2], &[4e30, 0.0])).div_scalar(1e30), &[5.0, 0.0]);
    }
}

#[test]
fn layer_norm_adds_eps_to_the_variance() {
    let x = [-0.6897, -2.7106, 2.2222, -1.0330, -0.8933, 1.1765, 0.0601, 1.5252, -0.3630, 0.6728];
    let expected = [-0.4863, -1.9180, 1.5766, -0.7295, -0.6305, 0.8358, 0.0449, 1.0828, -0.2548, 0.4790];
    for device in devices() {
        let y = floats(&device, &[1, 10], &x).layer_norm(&RawTensor::ones(&device, &[10], DType::F32), None, 0.1);
        for (g, e) in y.to_f64s().unwrap().iter().zip(expected) {
            assert!((g - e).abs() < 2e-4, "{g} {e}");
        }
    }
}

#[test]
fn matrix_products_of_any_rank() {
    for device in devices() {
        let a = RawTensor::iota(&device, &[2, 2, 3], DType::F32, 2).add_scalar(1.0);
        let b = RawTensor::iota(&device, &[3, 2], DType::F32, 1).add_scalar(1.0);
        let y = a.matmul(&b);
        assert_eq!(y.dims(), [2, 2, 2]);
        close(&y, &[6.0, 12.0, 6.0, 12.0, 6.0, 12.0, 6.0, 12.0]);
        close(&floats(&device, &[1, 2], &[1.0, 2.0]).matmul(&floats(&device, &[2, 1], &[3.0, 4.0])), &[11.0]);
        assert_eq!(b.unsqueeze(0).expand(&[5, 3, 2]).matmul(&b.transpose()).dims(), [5, 3, 3]);
        close(&ints(&device, &[1, 2], &[3, 4]).matmul(&ints(&device, &[2, 1], &[5, 6])), &[39.0]);
        check_panics(|| a.matmul(&a), "matmul: inner sizes differ: lhs [2, 2, 3], rhs [2, 2, 3]");
        check_panics(|| a.matmul(&b.cast(DType::F64)), "matmul: dtypes differ");
    }
}

#[test]
fn mistakes_name_the_op_and_both_sides() {
    let device = Device::reference();
    let (a, b) = (RawTensor::zeros(&device, &[2, 3], DType::F32), RawTensor::zeros(&device, &[4, 5], DType::F32));
    check_panics(|| a.add(&b), "add: shapes don't broadcast: [2, 3], [4, 5]");
    check_panics(|| a.add(&a.cast(DType::I64)), "add: dtypes differ: f32[2, 3], i64[2, 3]");
    check_panics(|| a.reshape(&[7]), "reshape: [7] has 7 elements, the tensor has 6");
    check_panics(|| a.expand(&[3, 3]), "expand: [2, 3] does not broadcast to [3, 3]");
    check_panics(|| a.narrow(1, 2, 2), "narrow: 2 elements from 2 by 1 on axis 1 of [2, 3]");
    check_panics(|| a.sum(&[2]), "sum: axis 2 is out of range for a tensor of rank 2: [2, 3]");
    check_panics(|| a.permute(&[0, 0]), "permute: [0, 0] is not a permutation");
    check_panics(|| RawTensor::cat(&[a.clone(), b.clone()], 0), "cat: sizes of other axes differ: axis 0 of f32[2, 3], f32[4, 5]");
    check_panics(|| RawTensor::from_bytes(&device, &[2], DType::F32, &[0]), "from_bytes: f32[2] needs 8 bytes, not 1");
    check_panics(|| a.cast(DType::Bool).unary(Elementwise::Exp), "exp: does not take bool");
    check_panics(|| a.topk(1, 4, true), "topk: 4 of 3 elements");
}

#[test]
fn reads_and_writes_by_index() {
    for device in devices() {
        let x = floats(&device, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        close(&x.gather(0, &ints(&device, &[1, 2], &[2, 0])), &[5.0, 2.0]);
        close(&x.select(0, &ints(&device, &[4], &[2, 0, 0, 1])), &[5.0, 6.0, 1.0, 2.0, 1.0, 2.0, 3.0, 4.0]);
        close(&x.select(1, &ints(&device, &[1], &[1])), &[2.0, 4.0, 6.0]);
        let ones = RawTensor::ones(&device, &[2, 2], DType::F32);
        close(&x.select_assign(0, &ints(&device, &[2], &[1, 1]), &ones, ScatterOp::Add), &[1.0, 2.0, 5.0, 6.0, 5.0, 6.0]);
        close(&x.gather_nd(&ints(&device, &[2, 2], &[0, 1, 2, 0])), &[2.0, 5.0]);
        assert_eq!(x.gather_nd(&ints(&device, &[4, 1], &[0, 1, 2, 0])).dims(), [4, 2]);
        let y = x.scatter_nd(&ints(&device, &[1, 1], &[1]), &floats(&device, &[1, 2], &[10.0, 20.0]), ScatterOp::Assign);
        close(&y, &[1.0, 2.0, 10.0, 20.0, 5.0, 6.0]);
        close(&ints(&device, &[2], &[1, 0]).one_hot(3, DType::F32), &[0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
        // Base [4,1,1] with an index that is a broadcast view (a stride of 0).
        let base = floats(&device, &[4, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
        let index = ints(&device, &[2], &[2, 0]).reshape(&[2, 1, 1]);
        let add = floats(&device, &[2, 1, 1], &[10.0, 20.0]);
        close(&base.scatter(0, &index, &add, ScatterOp::Add), &[21.0, 2.0, 13.0, 4.0]);
    }
}

#[test]
fn sorting() {
    for device in devices() {
        let x = floats(&device, &[2, 3], &[12.0, -2.0, 3.0, 5.0, 3.0, 6.0]);
        close(&x.topk(0, 2, true).0, &[12.0, 3.0, 6.0, 5.0, -2.0, 3.0]);
        close(&x.topk(1, 3, true).0, &[12.0, 3.0, -2.0, 6.0, 5.0, 3.0]);
        close(&x.sort(1, false).1, &[1.0, 2.0, 0.0, 1.0, 0.0, 2.0]);
        close(&floats(&device, &[3], &[f32::NAN, 2.0, 1.0]).sort(0, false).0, &[1.0, 2.0, f64::NAN]);
    }
}

#[test]
fn convolutions_and_pools() {
    for device in devices() {
        let x = RawTensor::ones(&device, &[1, 2, 2, 2], DType::F32);
        let w = RawTensor::ones(&device, &[4, 1, 3, 3], DType::F32);
        let bias = floats(&device, &[4], &[0.0, 1.0, 2.0, 3.0]);
        let o = ConvOptions { stride: &[1, 1], padding: &[(1, 1), (1, 1)], dilation: &[1, 1], groups: 2 };
        let y = x.conv(&w, Some(&bias), &o);
        assert_eq!(y.dims(), [1, 4, 2, 2]);
        close(&y.narrow(1, 3, 1), &[7.0; 4]);
        // Zero padding meets an infinite weight: 0 * inf is NaN.
        let bad = w.mask_fill(&w.eq_scalar(1.0), Scalar::Float(f64::INFINITY));
        assert!(x.conv(&bad, None, &o).to_f64s().unwrap().iter().all(|v| v.is_nan()));
        let t = ConvTransposeOptions { stride: &[2], padding: &[0], padding_out: &[1], dilation: &[1], groups: 1 };
        let up = floats(&device, &[1, 1, 2], &[1.0, 2.0]).conv_transpose(&floats(&device, &[1, 1, 2], &[1.0, 10.0]), None, &t);
        close(&up, &[1.0, 10.0, 2.0, 20.0, 0.0]);
        let p = PoolOptions {
            kernel: &[2, 2],
            stride: &[1, 1],
            dilation: &[1, 1],
            padding: &[(1, 0), (1, 0)],
            count_include_pad: false,
            ceil_mode: false,
        };
        let image = floats(&device, &[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
        close(&image.avg_pool(&p), &[1.0, 1.5, 2.0, 2.5]);
        let (values, indices) = image.max_pool_with_indices(&p);
        close(&values, &[1.0, 2.0, 3.0, 4.0]);
        close(&indices, &[0.0, 1.0, 2.0, 3.0]);
    }
}

#[test]
fn attention_equals_its_composed_form() {
    for device in devices() {
        let random = |dims: &[usize]| {
            let n: usize = dims.iter().product();
            floats(&device, dims, &(0..n).map(|i| ((i * 37 % 23) as f32 - 11.0) / 9.0).collect::<Vec<_>>())
        };
        let (q, k, v) = (random(&[2, 4, 3, 5]), random(&[2, 2, 6, 5]), random(&[2, 2, 6, 4]));
        let mut bits = [0u8; 18];
        bits[6..12].fill(1);
        let mask = RawTensor::from_bytes(&device, &[1, 1, 3, 6], DType::Bool, &bits);
        let bias = random(&[1, 4, 3, 6]);
        for causal in [false, true] {
            let o = AttentionOptions { scale: None, softcap: Some(2.0), causal };
            let fused = q.attention(&k, &v, Some(&mask), Some(&bias), o);
            let composed = q.attention_composed(&k, &v, Some(&mask), Some(&bias), o);
            close(&fused, &composed.to_f64s().unwrap());
            close(&fused.narrow(2, 1, 1), &[0.0; 32]);
        }
    }
}

#[test]
fn softmax_by_hand_on_a_transposed_view() {
    for device in devices() {
        let x = RawTensor::iota(&device, &[12], DType::F32, 0).reshape(&[3, 4]).transpose();
        let e = x.sub(&x.max(&[1])).exp();
        let y = e.div(&e.sum(&[1]));
        for row in y.to_f64s().unwrap().chunks(3) {
            for (g, want) in row.iter().zip([3.2932e-4, 1.79803e-2, 0.98169]) {
                assert!((g - want).abs() < 1e-5);
            }
        }
    }
}
