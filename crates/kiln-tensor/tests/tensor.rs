//! Typed tensors: creation, data in and out, printing, serialization, transactions, and the messages of mistakes.

use kiln_tensor::{
    Bool, DType, DataError, Device, FloatDType, Int, PrintOptions, Scalar, Tensor, TensorData, TensorReadError, Transaction, assert_shape,
    debug_assert_shape, read_sync, s, set_print_options,
};

use crate::check_panics;

fn device() -> Device {
    Device::default()
}

#[test]
fn data_goes_in_and_out_in_every_type() {
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        let x = Tensor::<1>::from_data([1.5, -2.0], (&device(), dtype));
        assert_eq!(x.dtype(), dtype);
        let data = x.into_data();
        assert_eq!(data.dtype(), dtype);
        assert_eq!(data.iter::<f32>().collect::<Vec<_>>(), [1.5, -2.0]);
    }
    for dtype in [DType::I64, DType::I32, DType::I16, DType::I8, DType::U64, DType::U32, DType::U16, DType::U8] {
        let x = Tensor::<1, Int>::from_data([7, 2], (&device(), dtype));
        assert_eq!(x.to_data().dtype(), dtype);
        assert_eq!(x.try_into_vec_as::<i64>().unwrap(), [7, 2]);
    }
    let x = Tensor::<1, Bool>::from_data([1, 0, 2], &device());
    assert_eq!(x.try_into_vec_as::<bool>().unwrap(), [true, false, true]);
}

#[test]
fn data_is_converted_on_request() {
    let x = Tensor::<1>::from_data([1.5, -2.0], &device());
    assert_eq!(x.to_data_as::<i32>(), TensorData::from([1i32, -2]));
    assert_eq!(x.to_data_dtype(DType::F64), TensorData::from([1.5f64, -2.0]));
    assert_eq!(x.try_to_vec_as::<u8>().unwrap(), [1, 0]);
    let quantized = DType::QFloat(Default::default());
    assert!(matches!(x.try_to_data_dtype(quantized), Err(TensorReadError::Data(DataError::UnsupportedConversion { .. }))));
    let result: Result<f32, _> = x.clone().try_into_scalar();
    assert!(matches!(result, Err(TensorReadError::InvalidShape { expected: 1, actual: 2 })));
    check_panics(|| x.clone().into_scalar::<f32>(), "expected 1 elements, the tensor has 2");
    assert_eq!(read_sync(x.clone().slice(s![1]).into_scalar_async::<i64>()).unwrap(), -2);
    assert_eq!(read_sync(x.to_data_async()).unwrap(), TensorData::from([1.5f32, -2.0]));
}

#[test]
fn a_transaction_keeps_the_order() {
    let x = Tensor::<1>::from_data([1.0, 2.0], &device());
    let data = Transaction::default().register(x.clone() + 1).register(x.clone().greater_scalar(1.5)).register(x.int()).execute();
    assert_eq!(data[0], TensorData::from([2.0f32, 3.0]));
    assert_eq!(data[1], TensorData::from([false, true]));
    assert_eq!(data[2], TensorData::from([1i32, 2]));
}

#[test]
fn printing_shows_values_and_type() {
    let _options = crate::printing::OPTIONS.write().unwrap();
    let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.25]], &device());
    let text = x.to_string();
    let expected = format!(
        "Tensor {{\n  data:\n[[1.0, 2.0],\n [3.0, 4.25]],\n  shape:  [2, 2],\n  device:  {:?},\n  kind:  \"Float\",\n  dtype:  \"f32\",\n}}",
        device()
    );
    assert_eq!(text, expected);
    assert!(format!("{x:.1}").contains("[3.0, 4.2]"), "{x:.1}");
    let many = Tensor::<1, Int>::arange(0..2000, &device());
    assert!(many.to_string().contains("[0, 1, 2, ..., 1997, 1998, 1999]"));
    assert!(many.to_string().contains("kind:  \"Int\""));
    set_print_options(PrintOptions { threshold: 3, edge_items: 1, precision: Some(3) });
    let text = Tensor::<1>::from_data([1.0, 2.0, 3.0, 4.0], &device()).to_string();
    set_print_options(PrintOptions::default());
    assert!(text.contains("[1.000, ..., 4.000]"), "{text}");
}

#[test]
fn tensors_are_serialized_as_their_data() {
    let x = Tensor::<2>::from_data([[1.0, 2.0]], (&device(), DType::F16));
    let text = serde_json::to_string(&x).unwrap();
    assert_eq!(text, serde_json::to_string(&x.to_data()).unwrap());
    let y: Tensor<2> = serde_json::from_str(&text).unwrap();
    assert_eq!(y.into_data(), x.into_data());
    let error = |text: &str| serde_json::from_str::<Tensor<1>>(text).unwrap_err().to_string();
    assert!(error(&text).contains("expected a tensor of rank 1, found shape [1, 2]"));
    let ints = serde_json::to_string(&TensorData::from([1i32])).unwrap();
    assert!(error(&ints).contains("expected a Float tensor, found i32"));
}

#[test]
fn operators_follow_the_methods() {
    let x = || Tensor::<1>::from_data([6.0, -3.0], &device());
    let y = || Tensor::<1>::from_data([2.0, 4.0], &device());
    let values = |x: Tensor<1>| x.try_into_vec_as::<f32>().unwrap();
    assert_eq!(values(x() + y()), [8.0, 1.0]);
    assert_eq!(values(x() - y()), [4.0, -7.0]);
    assert_eq!(values(x() * y()), [12.0, -12.0]);
    assert_eq!(values(x() / y()), [3.0, -0.75]);
    assert_eq!(values(x() % y()), [0.0, 1.0]);
    assert_eq!(values(x() % 4), [2.0, 1.0]);
    assert_eq!(values(-x()), [-6.0, 3.0]);
    assert_eq!(values(1.0f32 - x()), [-5.0, 4.0]);
    assert_eq!(values(2i32 * x()), [12.0, -6.0]);
    assert_eq!(values(1u64 + x()), [7.0, -2.0]);
    assert_eq!(values(12.0f64 / x()), [2.0, -4.0]);
    let n = Tensor::<1, Int>::from_data([1, 2], &device());
    assert_eq!((10i64 - n).try_into_vec_as::<i64>().unwrap(), [9, 8]);
}

#[test]
fn mistakes_name_the_shapes() {
    let x = || Tensor::<2>::zeros([2, 3], &device());
    let y = || Tensor::<2>::zeros([4, 5], &device());
    check_panics(|| x() + y(), "[2, 3], [4, 5]");
    check_panics(|| x().matmul(y()), "matmul: inner sizes differ: lhs [2, 3], rhs [4, 5]");
    check_panics(|| x().reshape([4, 2]), "reshape: element counts differ: from [2, 3] (6 elements) to [4, 2]");
    check_panics(|| x().sum_dim(2), "axis 2 is out of range for rank 2");
    check_panics(|| x().sum_dims(&[0, -2]), "axis 0 is named twice");
    check_panics(|| x().slice(s![0..3]), "slice: the end is out of range in slice ..3 of axis 0: shape [2, 3]");
    check_panics(|| x().slice(s![.., .., 0]), "3 slices given for shape [2, 3]");
    check_panics(|| x().narrow(1, 2, 2), "narrow: 2 positions from 2 on are not within axis 1: shape [2, 3]");
    check_panics(|| x().squeeze_dim::<1>(0), "squeeze: axis 0 has size 2: shape [2, 3]");
    check_panics(|| x().squeeze::<1>(), "squeeze: [2, 3] becomes [2, 3], which is not of rank 1");
    check_panics(|| x().expand([3, 3]), "expand");
    check_panics(|| x().permute([0, 0]), "permute: axis 0 is named twice in [0, 0]");
    check_panics(|| x().split_with_sizes(vec![1, 2], 0), "do not add up");
    check_panics(|| x().chunk(0, 0), "chunk");
    check_panics(|| Tensor::cat(vec![x(), y()], 0), "[4, 5]");
    check_panics(|| Tensor::stack::<3>(vec![x(), y()], 0), "stack: shapes differ: [2, 3], [4, 5]");
    check_panics(|| x().select_dim::<1>(0, 2), "select_dim: position 2 is out of range on axis 0: shape [2, 3]");
    check_panics(|| Tensor::<1>::from_data([[1.0]], &device()), "[1, 1] is not of rank 1");
    check_panics(|| x() + x().cast(FloatDType::F64), "f64");
    check_panics(|| x().require_grad(), "require_grad: autodiff is off");
    check_panics(|| x().backward(), "backward");
}

#[test]
fn views_compose_with_writes() {
    let x = Tensor::<1, Int>::arange(0..24, &device()).reshape([2, 3, 4]);
    let y = x.clone().swap_dims(0, 2).slice(s![1.., ..; -1, 0]);
    assert_eq!(y.dims(), [3, 3, 1]);
    assert_eq!(y.try_into_vec_as::<i32>().unwrap(), [9, 5, 1, 10, 6, 2, 11, 7, 3]);
    let written = x.clone().slice_assign(s![1, 1.., ..; -2], Tensor::<3, Int>::from_data([[[-1, -2], [-3, -4]]], &device()));
    let expected: Vec<i32> =
        (0..24).map(|i| [(19, -1), (17, -2), (23, -3), (21, -4)].iter().find(|(at, _)| *at == i).map_or(i, |(_, v)| *v)).collect();
    assert_eq!(written.try_into_vec_as::<i32>().unwrap(), expected);
    assert_eq!(x.try_into_vec_as::<i32>().unwrap(), (0..24).collect::<Vec<_>>());
}

#[test]
fn iterating_over_an_axis_from_both_ends() {
    let x = Tensor::<2, Int>::from_data([[1, 2], [3, 4], [5, 6]], &device());
    let mut rows = x.iter_dim(0);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows.next_back().unwrap().try_into_vec_as::<i32>().unwrap(), [5, 6]);
    assert_eq!(rows.next().unwrap().try_into_vec_as::<i32>().unwrap(), [1, 2]);
    assert_eq!((rows.next().is_some(), rows.next().is_none()), (true, true));
}

#[test]
fn gradients_are_read_and_replaced() {
    let auto = device().autodiff();
    let x = Tensor::<1>::from_data([1.0, 2.0], &auto).require_grad();
    let mut gradients = (x.clone() * 3).sum().backward();
    assert_eq!(x.grad(&gradients).unwrap().try_into_vec_as::<f32>().unwrap(), [3.0, 3.0]);
    x.grad_replace(&mut gradients, Tensor::from_data([7.0, 8.0], &device()));
    assert_eq!(x.grad_remove(&mut gradients).unwrap().try_into_vec_as::<f32>().unwrap(), [7.0, 8.0]);
    assert!(x.grad(&gradients).is_none());
    assert!(x.is_require_grad() && x.is_tracked() && x.is_autodiff());
    let y = x.clone() * 2;
    assert!(y.is_tracked() && !y.is_require_grad());
    check_panics(|| y.clone().require_grad(), "require_grad");
    assert!(!y.detach().is_tracked());
    assert!(!x.inner().is_autodiff());
}

#[test]
fn shapes_are_asserted_by_pattern() {
    let x = Tensor::<3>::zeros([2, 5, 8], &device());
    let [batch, length, _] = x.dims();
    assert_shape!(x, [batch, length, 8]);
    assert_shape!(&x, [_, 5, 4 * batch]);
    assert_shape!(x, [2, ..]);
    assert_shape!(x, [.., 8]);
    assert_shape!(x, [2, .., 8]);
    assert_shape!(x, [..]);
    assert_shape!(x, [_, _, _, ..]);
    debug_assert_shape!(x, [2, 5, 8,]);
    check_panics(|| assert_shape!(x, [batch, length, 9]), "axis 2 of `x` has size 8, expected 9: shape [2, 5, 8], pattern [batch, length, 9]");
    check_panics(|| assert_shape!(x, [.., 5, 9]), "axis 2 of `x` has size 8, expected 9");
    check_panics(|| assert_shape!(x, [_, _, _, _, ..]), "has shape [2, 5, 8] of rank 3, the pattern is");
}

#[test]
fn an_index_out_of_range_is_an_error_of_the_read() {
    let x = Tensor::<1>::from_data([1.0, 2.0], &device());
    let y = x.select(0, Tensor::<1, Int>::from_data([5], &device()));
    let error = y.try_into_data().unwrap_err();
    assert!(error.to_string().contains('5'), "{error}");
}

#[test]
fn scalars_take_the_type_of_the_tensor() {
    let x = Tensor::<1, Int>::from_data([1, 2], &device());
    assert_eq!((x * 2.9).try_into_vec_as::<i64>().unwrap(), [2, 4]);
    let x = Tensor::<1>::full([1], i64::MAX, (&device(), DType::F64));
    assert_eq!(x.into_scalar::<f64>(), i64::MAX as f64);
    let x = Tensor::<1, Int>::full([1], u64::MAX, (&device(), DType::U64));
    assert_eq!(x.into_scalar::<u64>(), u64::MAX);
    assert!(matches!(Scalar::from(true), Scalar::Bool(true)));
}
