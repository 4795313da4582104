//! Operations over a backend as a type, as extensions of Burn 0.22 write them.

use burn::backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, Dispatch, Flex};
#[cfg(feature = "libraries")]
use burn::linalg::LinalgOps;
use burn::prelude::*;
#[cfg(feature = "libraries")]
use burn::signal::SignalOps;
use burn::tensor::{AllocationProperty, BackendPrimitive, Bytes, DispatchKindConversion, DispatchTensor, PrimitiveConversionError};
#[cfg(feature = "libraries")]
use burn::tensor::{TensorMetadata, Tolerance};

/// An operation of the program's own.
trait Extension: Backend {
    /// `relu(lhs · rhs + bias)`, composed unless a backend knows better.
    fn fused_matmul_add_relu(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::relu(Self::float_add(Self::float_matmul(lhs, rhs), bias))
    }
}

impl Extension for Flex {}
impl<B: Extension> Extension for Autodiff<B> {}
impl Extension for Dispatch {}

/// The same for tensors of a backend.
fn on_backend<B: Extension>(lhs: Tensor<2>, rhs: Tensor<2>, bias: Tensor<2>) -> Result<Tensor<2>, PrimitiveConversionError>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let result = B::fused_matmul_add_relu(lhs.try_into_primitive::<B>()?, rhs.try_into_primitive::<B>()?, bias.try_into_primitive::<B>()?);
    Ok(Tensor::from_primitive::<B>(result))
}

/// For whichever device: what the program's other code calls.
fn matmul_add_relu(lhs: Tensor<2>, rhs: Tensor<2>, bias: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::fused_matmul_add_relu(lhs.into_dispatch(), rhs.into_dispatch(), bias.into_dispatch()))
}

/// The product of the factors that a backend finds.
#[cfg(feature = "libraries")]
fn rebuilt<B: LinalgOps>(x: Tensor<3>) -> Result<Tensor<3>, PrimitiveConversionError>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let primitive: <Float as BackendPrimitive<B>>::Primitive = x.try_into_primitive::<B>()?;
    assert_eq!(primitive.shape().num_dims(), 3);
    let (u, s, vt) = B::svd(primitive, 16, false);
    let (u, s, vt) = (Tensor::<3>::from_primitive::<B>(u), Tensor::<2>::from_primitive::<B>(s), Tensor::<3>::from_primitive::<B>(vt));
    Ok((u * s.unsqueeze_dim(1)).matmul(vt))
}

/// A signal without its frequencies from `keep` on.
#[cfg(feature = "libraries")]
fn low_pass<B: SignalOps>(x: Tensor<2>, keep: usize) -> Result<Tensor<2>, PrimitiveConversionError>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let n = x.dims()[1];
    let (re, im) = B::rfft(x.try_into_primitive::<B>()?, 1, None);
    let cut = |part| Tensor::<2>::from_primitive::<B>(part).slice_fill(s![.., keep..], 0.0).try_into_primitive::<B>();
    Ok(Tensor::from_primitive::<B>(B::irfft(cut(re)?, cut(im)?, 1, Some(n))))
}

fn operands(device: &Device) -> [Tensor<2>; 3] {
    [
        Tensor::from_data([[1.0, -2.0], [0.5, 1.0]], device),
        Tensor::from_data([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]], device),
        Tensor::from_data([[0.5, 0.5, -6.0]], device),
    ]
}

#[test]
fn extensions_compute_on_each_backend() {
    let device = Device::flex();
    let expected = TensorData::from([[1.5f32, 0.0, 0.0], [1.0, 1.5, 0.0]]);
    let [lhs, rhs, bias] = operands(&device);
    on_backend::<Flex>(lhs, rhs, bias).unwrap().into_data().assert_eq(&expected, true);
    let [lhs, rhs, bias] = operands(&device);
    on_backend::<Dispatch>(lhs, rhs, bias).unwrap().into_data().assert_eq(&expected, true);
    let [lhs, rhs, bias] = operands(&device);
    matmul_add_relu(lhs, rhs, bias).into_data().assert_eq(&expected, true);
    let [lhs, rhs, bias] = operands(&device.clone().autodiff());
    on_backend::<Autodiff<Flex>>(lhs, rhs, bias).unwrap().inner().into_data().assert_eq(&expected, true);
    assert_eq!(Flex::name(&device), "flex");
    assert!(!Flex::ad_enabled(&device) && <Autodiff<Flex>>::ad_enabled(&device));
}

#[test]
fn gradients_flow_through_extensions() {
    let device = Device::flex().autodiff();
    let [lhs, rhs, bias] = operands(&device).map(Tensor::require_grad);
    let grads = on_backend::<Autodiff<Flex>>(lhs.clone(), rhs.clone(), bias.clone()).unwrap().sum().backward();
    // The kept places are (0,0), (1,0) and (1,1).
    bias.grad(&grads).unwrap().into_data().assert_eq(&TensorData::from([[2.0f32, 1.0, 0.0]]), true);
    lhs.grad(&grads).unwrap().into_data().assert_eq(&TensorData::from([[1.0f32, 0.0], [1.0, 1.0]]), true);
    rhs.grad(&grads).unwrap().into_data().assert_eq(&TensorData::from([[1.5f32, 0.5, 0.0], [-1.0, 1.0, 0.0]]), true);
}

#[cfg(feature = "libraries")]
#[test]
fn factorisations_and_transforms_compute_on_each_backend() {
    let device = Device::flex();
    let x = Tensor::<3>::from_data([[[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], [[-1.0, 0.5, 2.0], [2.0, 2.0, 0.0]]], &device);
    for y in [rebuilt::<Flex>(x.clone()), rebuilt::<Dispatch>(x.clone()), rebuilt::<Autodiff<Flex>>(x.clone().autodiff()).map(Tensor::inner)] {
        y.unwrap().into_data().assert_approx_eq::<f32>(&x.to_data(), Tolerance::absolute(1e-4));
    }
    let x = Tensor::<2>::from_data([[3.0, 1.0, 3.0, 1.0], [1.0, 2.0, 3.0, 2.0]], &device);
    let expected = TensorData::from([[2.0f32, 2.0, 2.0, 2.0], [1.0, 2.0, 3.0, 2.0]]);
    for y in
        [low_pass::<Flex>(x.clone(), 2), low_pass::<Dispatch>(x.clone(), 2), low_pass::<Autodiff<Flex>>(x.clone().autodiff(), 2).map(Tensor::inner)]
    {
        y.unwrap().into_data().assert_approx_eq::<f32>(&expected, Tolerance::absolute(1e-5));
    }
    let x = Tensor::<2>::from_data([[1.0, 2.0, 3.0, 4.0]], &device.autodiff()).require_grad();
    let weights = Tensor::<2>::from_data([[1.0, 0.0, 0.0, 0.0]], &x.device());
    let grads = (low_pass::<Autodiff<Flex>>(x.clone(), 1).unwrap() * weights).sum().backward();
    // Only the mean passes, and every element is a quarter of it.
    x.grad(&grads).unwrap().into_data().assert_approx_eq::<f32>(&TensorData::full([1, 4], 0.25f32), Tolerance::absolute(1e-6));
}

#[test]
fn primitives_of_another_backend_or_kind_are_refused() {
    let device = Device::flex();
    let tracked = Tensor::<1>::ones([2], &device.clone().autodiff());
    assert!(matches!(tracked.clone().try_into_primitive::<Flex>(), Err(PrimitiveConversionError::BackendMismatch(_))));
    assert!(tracked.clone().try_into_primitive::<Autodiff<Flex>>().is_ok() && tracked.try_into_primitive::<Dispatch>().is_ok());
    let plain = Tensor::<1>::ones([2], &device);
    assert!(matches!(plain.clone().try_into_primitive::<Autodiff<Flex>>(), Err(PrimitiveConversionError::BackendMismatch(_))));
    assert!(plain.try_into_primitive::<Flex>().is_ok());
    let checkpointed = Tensor::<1>::ones([2], &device.clone().gradient_checkpointing());
    assert!(checkpointed.clone().try_into_primitive::<Autodiff<Flex>>().is_err());
    assert!(checkpointed.try_into_primitive::<Autodiff<Flex, burn::backend::BalancedCheckpointing>>().is_ok());

    let ints: IntTensor<Flex> = Tensor::<1, Int>::from_ints([1, 2], &device).try_into_primitive::<Flex>().unwrap();
    let refused = <Float as BackendPrimitive<Flex>>::try_into_primitive(<Int as BackendPrimitive<Flex>>::from_primitive(ints.clone()));
    assert_eq!(refused.unwrap_err(), PrimitiveConversionError::KindMismatch("expected Float, found Int".into()));
    assert_eq!(
        Tensor::<1, Int>::from_primitive::<Flex>(ints).into_data(),
        TensorData::from([1i64, 2]).convert_dtype(device.settings().int_dtype.into())
    );
    let bools: BoolTensor<Dispatch> = Tensor::<1, Bool>::from_bool([true, false], &device).try_into_primitive::<Dispatch>().unwrap();
    assert!(Tensor::<1, Bool>::from_primitive::<Dispatch>(bools).any().into_scalar::<bool>());
}

#[test]
fn a_checkpointing_backend_keeps_its_strategy() {
    let device = Device::flex();
    let x = Tensor::<1>::ones([2], &device.clone().gradient_checkpointing());
    let x = x.try_into_primitive::<Autodiff<Flex, burn::backend::BalancedCheckpointing>>().unwrap();
    let x = Tensor::<1>::from_primitive::<Autodiff<Flex, burn::backend::BalancedCheckpointing>>(x);
    assert_eq!(x.device().gradient_checkpointing_strategy(), device.gradient_checkpointing().gradient_checkpointing_strategy());
}

#[test]
fn bytes_are_split_read_and_written() {
    use burn::tensor::{AccessPolicy, Reader, SplitPolicy, Writer};
    let bytes = Bytes::from_elems(vec![1u32, 2, 3]);
    let (bytes, error) = bytes.split(4, SplitPolicy::InPlace).unwrap_err();
    assert!(error.to_string().contains("not shared"));
    let (bytes, error) = bytes.split(13, SplitPolicy::Share).unwrap_err();
    assert!(error.to_string().contains("13") && error.to_string().contains("12"));
    let (mut head, tail) = bytes.split(4, SplitPolicy::Share).unwrap();
    let strict = AccessPolicy::deny_copy();
    assert_eq!(tail.read(Reader::new().with_policy(strict)).unwrap().len(), 8);
    assert!(head.write(Writer::new().with_policy(strict)).is_err());
    head.write(Writer::new()).unwrap()[0] = 9;
    assert_eq!((head[0], tail[0]), (9, 2));
    let (mut first, second) = tail.split(4, SplitPolicy::Copy).unwrap();
    first.write(Writer::new().with_policy(strict)).unwrap()[0] = 7;
    assert_eq!((first[0], second[0], first.property()), (7, 3, AllocationProperty::Native));
    let missing = Bytes::from_file("/nonexistent/weights", 4, 0);
    assert!(missing.read(Reader::new().with_policy(strict)).unwrap_err().to_string().contains("forbidden"));
    assert!(missing.read(Reader::new()).unwrap_err().to_string().contains("/nonexistent/weights"));
}

#[test]
fn a_configuration_is_there_without_a_file() {
    let config: std::sync::Arc<burn::BurnConfig> = burn::runtime_config();
    assert!(config.fusion().max_graph_size.is_none() && !config.autodiff().logger.stdout && !config.remote().logger.stderr);
    let text = serde_json::to_string(&*config).unwrap();
    let again: burn::BurnConfig = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
}
