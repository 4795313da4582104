//! Tensor code as programs for Burn 0.22 have it.

use burn::tensor::distributed::{ReduceOperation, all_reduce};
use burn::tensor::kind::{BridgeTensor, Numeric};
use burn::tensor::module::{attention, conv2d, max_pool2d};
use burn::tensor::ops::{AttentionModuleOptions, ConvOptions, MaxPoolOptions};
use burn::tensor::{
    DType, Distribution, ExecutionError, FloatDType, IndexingUpdateOp, IntDType, PrintOptions, StreamId, Tolerance, Transaction, activation, capture,
    einsum, read_sync, set_print_options,
};

use burn::prelude::*;

/// Code over any kind of numbers.
fn twice<const D: usize, K: Numeric>(x: Tensor<D, K>) -> Tensor<D, K> {
    x.clone().add(x)
}

#[test]
fn creation_and_arithmetic() {
    let device = Device::flex();
    let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
    let y = Tensor::<2>::from_data([[1.0f64, 0.0], [0.0, 1.0]], (&device, DType::F64)).cast(FloatDType::F32);
    let z = (twice(x.clone()) - 1.0) / y.clone().add_scalar(1) + x.clone().matmul(y).powf_scalar(0.5);
    assert_eq!(z.dims(), [2, 2]);
    let ints = twice(Tensor::<1, Int>::arange(0..4, &device)).cast(IntDType::I32);
    assert_eq!(ints.clone().into_data(), TensorData::from([0i32, 2, 4, 6]));
    assert_eq!(ints.float().mean().into_scalar::<f32>(), 3.0);
    let noise = Tensor::<3>::random([2, 3, 4], Distribution::Uniform(-1.0, 1.0), &device);
    assert!(noise.clone().abs().lower_elem(1.0).all().into_scalar::<bool>());
    activation::softmax(noise, 2).sum_dim(2).into_data().assert_approx_eq::<f32>(&TensorData::ones::<f32, _>([2, 3, 1]), Tolerance::default());
}

#[test]
fn slices_masks_and_indices() {
    let device = Device::default();
    let x = Tensor::<2>::from_floats([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], &device);
    assert_eq!(x.clone().slice(s![.., 1..]).dims(), [2, 2]);
    assert_eq!(x.clone().slice(s![-1, ..;2]).into_data(), TensorData::from([[4.0f32, 6.0]]));
    let x = x.slice_assign(s![0..1, 0..2], Tensor::zeros([1, 2], &device));
    let mask = x.clone().equal_elem(0.0);
    assert_eq!(x.clone().mask_fill(mask.clone(), 9.0).max().into_scalar::<f32>(), 9.0);
    assert_eq!(x.clone().mask_where(mask, x.ones_like()).sum().into_scalar::<f32>(), 20.0);
    let at = Tensor::<1, Int>::from_ints([1, 0, 1], &device);
    let picked = x.clone().select(0, at.clone());
    assert_eq!(x.select_assign(0, at, picked, IndexingUpdateOp::Add).dims(), [2, 3]);
    assert_shape!(Tensor::<3>::zeros([2, 5, 3], &device), [2, _, 3]);
}

#[test]
fn modules_without_parameters() {
    let device = Device::flex();
    let image = Tensor::<4>::ones([1, 3, 8, 8], &device);
    let y = conv2d(image, Tensor::ones([4, 3, 3, 3], &device), None, ConvOptions::new([1, 1], [1, 1], [1, 1], 1));
    assert_eq!(max_pool2d(y, MaxPoolOptions::new([2, 2]).with_stride([2, 2])).dims(), [1, 4, 4, 4]);
    let q = Tensor::<4>::ones([1, 2, 4, 8], &device);
    let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
    assert_eq!(attention(q.clone(), q.clone(), q, None, None, options).dims(), [1, 2, 4, 8]);
    let (a, b) = (Tensor::<2>::ones([2, 3], &device), Tensor::<2>::ones([3, 4], &device));
    let c: Tensor<2> = einsum!("ij,jk->ik", a, b);
    assert_eq!(c.into_data(), TensorData::full([2, 4], 3.0f32));
}

#[test]
fn gradients_and_devices() -> Result<(), ExecutionError> {
    let device = Device::flex().autodiff();
    let x = Tensor::<1>::from_data([1.0, 2.0], &device).require_grad();
    let mut gradients = x.clone().square().sum().backward();
    let dx = x.grad_remove(&mut gradients).expect("a gradient");
    assert!(!dx.is_autodiff() && x.grad(&gradients).is_none());
    assert_eq!(dx.into_data(), TensorData::from([2.0f32, 4.0]));
    assert_eq!(x.clone().detach().inner().device(), Device::flex());
    device.flush()?;
    device.sync()?;
    let (value, time) = device.profile(|| 2 + 2)?;
    assert!(value == 4 && read_sync(time.resolve()).is_some());
    for device in Device::enumerate(burn::tensor::DeviceType::Flex).into_vec() {
        device.seed(7);
        assert!(device.supports_dtype(DType::F32));
    }
    Ok(())
}

#[test]
fn reads_streams_captures_and_bridges() {
    let device = Device::flex();
    let x = Tensor::<1>::from_data([1.0, 2.0], &device);
    let [a, b] = Transaction::default().register(x.clone()).register(x.clone() * 2).execute().try_into().expect("two results");
    assert_eq!((a, b), (TensorData::from([1.0f32, 2.0]), TensorData::from([2.0f32, 4.0])));
    assert_eq!(read_sync(x.clone().into_data_async()).unwrap().num_elements(), 2);
    let y = StreamId::allocate().executes(|| x.clone() + 1);
    let mut graph = capture(&device, || y.clone() * 2);
    assert_eq!(graph.output().to_data(), TensorData::from([4.0f32, 6.0]));
    // SAFETY: the tensors that the closure reads are alive.
    assert_eq!(unsafe { graph.replay() }.to_data(), TensorData::from([4.0f32, 6.0]));
    let bridge: BridgeTensor = x.into_bridge();
    assert!(bridge.is_float() && bridge.rank() == 1);
    let x = Tensor::<1>::from_bridge(bridge);
    let sum = all_reduce(x, ReduceOperation::Sum, vec![device]).resolve();
    set_print_options(PrintOptions { precision: Some(1), ..Default::default() });
    assert!(sum.to_string().contains("[1.0, 2.0]"));
}
