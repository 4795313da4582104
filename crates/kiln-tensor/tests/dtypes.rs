//! Dtypes of tensors: what is asked for is what is said, through operations, gradients and reads.

use std::sync::Arc;

use kiln_tensor::activation::softmax;
use kiln_tensor::{Bool, BoolStore, DType, Device, Distribution, FloatDType, HostRuntime, Tensor, TensorData, flex32};

#[test]
fn flexible_floats_stay_flexible() {
    let device = Device::default();
    let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], (&device, DType::Flex32));
    assert_eq!(x.dtype(), DType::Flex32);
    let made = [
        Tensor::<2>::zeros([2, 2], (&device, DType::Flex32)),
        Tensor::full([2, 2], 3.0, (&device, DType::Flex32)),
        Tensor::random([2, 2], Distribution::Default, (&device, DType::Flex32)),
        Tensor::random([2, 2], Distribution::Normal(0.0, 2.0), (&device, DType::Flex32)),
        x.zeros_like(),
        x.ones_like(),
        x.full_like(2.0),
        x.random_like(Distribution::Default),
        x.clone() + 1.0,
        x.clone() * x.clone(),
        x.clone().matmul(x.clone()).exp().sum_dim(1).expand([2, 2]),
        softmax(x.clone(), 1),
        x.clone().transpose().slice([0..2, 0..2]),
        Tensor::cat(vec![x.clone(), x.clone()], 0).narrow(0, 1, 2),
        x.clone().mask_where(x.clone().greater_elem(2.0), x.zeros_like()),
        x.clone().sort(0),
    ];
    for (i, made) in made.into_iter().enumerate() {
        assert_eq!(made.dtype(), DType::Flex32, "case {i}");
        assert_eq!(made.into_data().dtype(), DType::Flex32, "case {i}");
    }
    assert_eq!(x.clone().greater_elem(1.0).dtype(), DType::Bool(BoolStore::Native));
    assert_eq!(x.clone().argmax(1).dtype(), DType::I32);
    assert_eq!(x.clone().int().float().dtype(), DType::F32);
    assert_eq!(x.clone().cast(FloatDType::F32).dtype(), DType::F32);
    assert_eq!(x.clone().cast(FloatDType::F32).cast(FloatDType::Flex32).dtype(), DType::Flex32);
    assert_eq!(x.clone().cast(FloatDType::F16).cast(FloatDType::F32).dtype(), DType::F32);
    assert_eq!(x.into_data().try_into_vec::<flex32>().unwrap()[3], flex32::from_f32(4.0));
}

#[test]
fn gradients_of_flexible_floats_are_flexible() {
    let device = Device::default().autodiff();
    let x = Tensor::<1>::from_data([1.0, 2.0], (&device, DType::Flex32)).require_grad();
    let gradients = (x.clone() * x.clone()).sum().backward();
    let grad = x.grad(&gradients).unwrap();
    assert_eq!(grad.dtype(), DType::Flex32);
    assert_eq!(grad.try_to_vec_as::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(x.inner().dtype(), DType::Flex32);
}

#[test]
fn stores_of_booleans_are_kept() {
    let device = Device::default();
    for store in [BoolStore::Native, BoolStore::U8, BoolStore::U32] {
        let dtype = DType::Bool(store);
        let x = Tensor::<1, Bool>::from_data(TensorData::from([true, false]).convert_dtype(dtype), (&device, dtype));
        assert_eq!(x.dtype(), dtype);
        assert_eq!(x.clone().bool_not().dtype(), dtype);
        assert_eq!(x.clone().bool_and(x.clone()).repeat_dim(0, 2).dtype(), dtype);
        assert_eq!(x.clone().any().dtype(), dtype);
        let data = x.clone().into_data();
        assert_eq!((data.dtype(), data.as_bytes().len()), (dtype, 2 * dtype.size()));
        assert_eq!(data.iter::<bool>().collect::<Vec<_>>(), [true, false]);
        assert_eq!(x.clone().float().greater_elem(0.5).dtype(), DType::Bool(BoolStore::Native));
        assert_eq!(x.int().dtype(), DType::I32);
    }
}

#[test]
fn results_have_the_store_that_the_device_is_configured_for() {
    let mut device = Device::with_runtime("configured", Arc::new(HostRuntime::new()));
    device.configure(BoolStore::U32).unwrap();
    let x = Tensor::<1>::from_data([1.0, 2.0], &device);
    let mask = x.greater_elem(1.5);
    assert_eq!(mask.dtype(), DType::Bool(BoolStore::U32));
    assert_eq!(mask.into_data().as_bytes().len(), 8);
    assert_eq!(Tensor::<1, Bool>::zeros([2], &device).dtype(), DType::Bool(BoolStore::U32));
}

#[test]
fn devices_of_tensors_make_tensors_of_the_default_type() {
    let x = Tensor::<1>::from_data([1.0], (&Device::default(), DType::Flex32));
    assert_eq!(Tensor::<1>::zeros([1], &x.device()).dtype(), DType::F32);
    assert_eq!(Tensor::<1>::zeros([1], &x.autodiff().device()).dtype(), DType::F32);
}
