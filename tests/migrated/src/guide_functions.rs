//! Functions on tensors, autodiff and devices, as programs for Burn 0.22 use them: the chapters on activations, grids, modules without parameters, gradients and devices.

use burn::prelude::*;
use burn::tensor::grid::{GridIndexing, GridOptions, GridSparsity, IndexPos, affine_grid_2d, meshgrid, meshgrid_stack};
use burn::tensor::ops::{
    AttentionModuleOptions, AvgPoolOptions, ConvOptions, ConvTransposeOptions, DeformConvOptions, GridSampleOptions, GridSamplePaddingMode,
    InterpolateMode, InterpolateOptions, MaxPoolOptions, PadMode, UnfoldOptions,
};
use burn::tensor::{
    DType, Distribution, FloatDType, GradientCheckpointingStrategy, Gradients, IntDType, Scalar, Tolerance, Transaction, activation, loss, module,
    read_sync, try_read_sync,
};

fn device() -> Device {
    Device::flex()
}

fn t<const D: usize>(data: impl Into<TensorData>) -> Tensor<D> {
    Tensor::from_data(data, &device())
}

#[track_caller]
fn floats<const D: usize>(got: Tensor<D>, want: &[f32]) {
    let got = got.try_into_vec_as::<f32>().unwrap();
    assert_eq!(got.len(), want.len());
    assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs().max(1.0)), "{got:?} is not {want:?}");
}

#[test]
fn activations() {
    let x = || t::<1>([-1.0, 0.5, 2.0]);
    floats(activation::relu(x()), &[0.0, 0.5, 2.0]);
    floats(activation::relu6(x() * 4.0), &[0.0, 2.0, 6.0]);
    floats(activation::leaky_relu(x(), 0.1), &[-0.1, 0.5, 2.0]);
    floats(activation::prelu(t::<2>([[-1.0, 2.0]]), t([0.5])), &[-0.5, 2.0]);
    floats(activation::hardtanh(x(), -0.5, 1.0), &[-0.5, 0.5, 1.0]);
    floats(activation::gelu(x()), &[-0.158655, 0.345731, 1.9545]);
    floats(activation::gelu_approximate(x()), &[-0.158808, 0.345714, 1.954598]);
    floats(activation::sigmoid(x()), &[0.268941, 0.622459, 0.880797]);
    floats(activation::log_sigmoid(x()), &[-1.313262, -0.474077, -0.126928]);
    floats(activation::hard_sigmoid(x(), 0.2, 0.5), &[0.3, 0.6, 0.9]);
    floats(activation::silu(x()), &[-0.268941, 0.311230, 1.761594]);
    floats(activation::hard_swish(x()), &[-0.333333, 0.291667, 1.666667]);
    floats(activation::mish(x()), &[-0.303401, 0.375245, 1.943959]);
    floats(activation::tanh(x()), &[-0.761594, 0.462117, 0.964028]);
    floats(activation::tanhshrink(x()), &[-0.238406, 0.037883, 1.035972]);
    floats(activation::elu(x(), 1.0), &[-0.632121, 0.5, 2.0]);
    floats(activation::celu(x(), 2.0), &[-0.786939, 0.5, 2.0]);
    floats(activation::selu(x()), &[-1.111331, 0.525350, 2.101402]);
    floats(activation::softplus(x(), 1.0), &[0.313262, 0.974077, 2.126928]);
    floats(activation::softplus_with_threshold(x(), 1.0, 1.0), &[0.313262, 0.974077, 2.0]);
    floats(activation::softsign(x()), &[-0.5, 0.333333, 0.666667]);
    floats(activation::threshold(x(), 0.5, 9.0), &[9.0, 9.0, 2.0]);
    floats(activation::thresholded_relu(x(), 1.0), &[0.0, 0.0, 2.0]);
    floats(activation::hard_shrink(x(), 0.6), &[-1.0, 0.0, 2.0]);
    floats(activation::soft_shrink(x(), 0.6), &[-0.4, 0.0, 1.4]);
    floats(activation::shrink(x(), 0.6, 0.1), &[-0.9, 0.0, 1.9]);
    floats(activation::softmax(x(), 0), &[0.039113, 0.175290, 0.785597]);
    floats(activation::log_softmax(x(), -1).exp().sum(), &[1.0]);
    floats(activation::softmin(x(), 0).sum(), &[1.0]);
    floats(activation::quiet_softmax(t::<1>([1.0, 7.0]), 0), &[0.0024704, 0.9966208]);
    floats(activation::glu(t::<1>([1.0, 2.0]), 0), &[0.880797]);
    floats(loss::cross_entropy_with_logits(t::<2>([[0.0, 0.0]]), t([[1.0, 0.0]])), &[2f32.ln()]);
}

#[test]
fn grids() {
    let (x, y) = (t::<1>([1.0, 2.0]), t::<1>([3.0, 4.0, 5.0]));
    let [a, b] = meshgrid(&[x.clone(), y.clone()], GridOptions::default());
    assert_eq!((a.dims(), b.dims()), ([2, 3], [2, 3]));
    floats(a, &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    let [a, _] = meshgrid(&[x.clone(), y.clone()], GridOptions { indexing: GridIndexing::Cartesian, sparsity: GridSparsity::Dense });
    assert_eq!(a.dims(), [3, 2]);
    let stacked = meshgrid_stack::<2, 3, Float>(&[x.clone(), x], IndexPos::Last);
    assert_eq!(stacked.dims(), [2, 2, 2]);
    let identity = t::<3>([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]);
    let grid = affine_grid_2d(identity, [1, 1, 2, 2]);
    assert_eq!(grid.dims(), [1, 2, 2, 2]);
    let image = t::<4>([[[[1.0, 2.0], [3.0, 4.0]]]]);
    let options = GridSampleOptions::new(InterpolateMode::Bilinear).with_padding_mode(GridSamplePaddingMode::Border).with_align_corners(true);
    floats(image.grid_sample_2d(grid, options), &[1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn modules_without_parameters() {
    let x = Tensor::<1, Int>::arange(0..16, &device()).float().reshape([1, 1, 4, 4]);
    floats(module::max_pool2d(x.clone(), MaxPoolOptions::new([2, 2])), &[5.0, 7.0, 13.0, 15.0]);
    let (_, at) = module::max_pool2d_with_indices(x.clone(), MaxPoolOptions::new([2, 2]).with_stride([2, 2]));
    assert_eq!(at.try_into_vec_as::<i64>().unwrap(), [5, 7, 13, 15]);
    floats(module::avg_pool2d(x.clone(), AvgPoolOptions::new([2, 2])), &[2.5, 4.5, 10.5, 12.5]);
    let padded = AvgPoolOptions::new([3]).with_stride([1]).with_padding([1]).with_count_include_pad(false);
    floats(module::avg_pool1d(t([[[1.0, 2.0, 3.0]]]), padded), &[1.5, 2.0, 2.5]);
    floats(module::max_pool1d(t([[[1.0, 3.0, 2.0]]]), MaxPoolOptions::new([2]).with_stride([1])), &[3.0, 3.0]);
    floats(module::adaptive_avg_pool2d(x.clone(), [1, 1]), &[7.5]);
    floats(module::adaptive_avg_pool1d(t([[[1.0, 2.0, 3.0, 4.0]]]), 2), &[1.5, 3.5]);
    assert_eq!(module::adaptive_avg_pool3d(Tensor::ones([1, 1, 4, 4, 4], &device()), [2, 1, 2]).dims(), [1, 1, 2, 1, 2]);
    let nearest = InterpolateOptions::new(InterpolateMode::Nearest).with_output_size([2, 2]);
    floats(module::interpolate(x.clone(), nearest), &[0.0, 2.0, 8.0, 10.0]);
    let doubled = InterpolateOptions::new(InterpolateMode::Bilinear).with_scale_factor([2.0, 2.0]);
    assert_eq!(module::interpolate(x.clone(), doubled).dims(), [1, 1, 8, 8]);
    let cubic = InterpolateOptions::new(InterpolateMode::Bicubic).with_output_size([4, 4]).with_align_corners(true);
    floats(module::interpolate(x.clone(), cubic) - x.clone(), &[0.0; 16]);

    let kernel = Tensor::<4>::ones([1, 1, 2, 2], &device());
    floats(module::conv2d(x.clone(), kernel.clone(), None, ConvOptions::new([2, 2], [0, 0], [1, 1], 1)), &[10.0, 18.0, 42.0, 50.0]);
    let uneven = ConvOptions::new_with_padding([1, 1], [(1, 0), (0, 0)], [1, 1], 1);
    assert!(uneven.is_asymmetric());
    assert_eq!(module::conv2d(x.clone(), kernel.clone(), Some(t([1.0])), uneven).dims(), [1, 1, 4, 3]);
    floats(module::conv1d(t([[[1.0, 2.0, 3.0]]]), t([[[1.0, -1.0]]]), None, ConvOptions::new([1], [0], [1], 1)), &[-1.0, -1.0]);
    let volume = Tensor::<5>::ones([1, 2, 3, 3, 3], &device());
    let weight = Tensor::<5>::ones([4, 1, 2, 2, 2], &device());
    floats(module::conv3d(volume, weight, None, ConvOptions::new([1, 1, 1], [0, 0, 0], [1, 1, 1], 2)).mean(), &[8.0]);
    let up = ConvTransposeOptions::new([2, 2], [0, 0], [0, 0], [1, 1], 1);
    assert_eq!(module::conv_transpose2d(x.clone(), kernel.clone(), None, up).dims(), [1, 1, 8, 8]);
    floats(module::conv_transpose1d(t([[[1.0, 2.0]]]), t([[[1.0, 1.0]]]), None, ConvTransposeOptions::new([1], [0], [0], [1], 1)), &[1.0, 3.0, 2.0]);
    let still = Tensor::<4>::zeros([1, 8, 3, 3], &device());
    let moved = module::deform_conv2d(x.clone(), still, kernel.clone(), None, None, DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1));
    floats(moved - module::conv2d(x.clone(), kernel, None, ConvOptions::new([1, 1], [0, 0], [1, 1], 1)), &[0.0; 9]);
    let columns = module::unfold4d(x.clone(), [2, 2], UnfoldOptions::new([2, 2], [0, 0], [1, 1]));
    assert_eq!(columns.dims(), [1, 4, 4]);

    let table = t::<2>([[1.0, 2.0], [3.0, 4.0]]);
    floats(module::embedding(table.clone(), Tensor::from_ints([[1, 0]], &device())), &[3.0, 4.0, 1.0, 2.0]);
    floats(module::linear(t::<2>([[1.0, 1.0]]), table, Some(t([0.5, 0.5]))), &[4.5, 6.5]);
    let q = Tensor::<4>::random([1, 2, 3, 4], Distribution::Default, &device());
    let causal = AttentionModuleOptions { is_causal: true, ..Default::default() };
    let fused = module::attention(q.clone(), q.clone(), q.clone(), None, None, causal);
    let composed = module::attention_fallback(q.clone(), q.clone(), q.clone(), None, None, causal);
    fused.into_data().assert_approx_eq::<f32>(&composed.into_data(), Tolerance::permissive());
    floats(t::<2>([[1.0, 2.0]]).pad([(0, 1), (1, 1)], PadMode::Edge), &[1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]);
    floats(t::<2>([[1.0, 2.0]]).pad((1, 0, 0, 0), PadMode::Constant(7.0)), &[7.0, 1.0, 2.0]);
    let log_probs = Tensor::<3>::full([2, 1, 2], 0.5f32.ln(), &device());
    let one = |x: i64| Tensor::<1, Int>::from_data([x], &device());
    floats(module::ctc_loss(log_probs, Tensor::from_data([[1]], &device()), one(2), one(1), 0), &[-(0.75f32.ln())]);
}

#[test]
fn gradients() {
    let device = device().autodiff();
    assert!(device.is_autodiff());
    let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
    assert!(x.is_autodiff() && !x.is_tracked() && !x.is_require_grad());
    let x = x.require_grad();
    let w = Tensor::<2>::ones([2, 2], &device).require_grad();
    let y = x.clone().matmul(w.clone()).square().mean();
    assert!(y.is_tracked() && !y.is_require_grad());
    let mut grads: Gradients = y.backward();
    let dx = x.grad(&grads).expect("x is a leaf");
    assert!(!dx.is_autodiff());
    floats(dx, &[5.0 * 3.0 / 5.0, 3.0, 7.0, 7.0]);
    let dw = w.grad_remove(&mut grads).unwrap();
    assert!(w.grad(&grads).is_none());
    w.grad_replace(&mut grads, dw.clone() * 2.0);
    floats(w.grad(&grads).unwrap() - dw * 2.0, &[0.0; 4]);
    // Cut, and carried on.
    let cut = (x.clone() * 2.0).detach();
    assert!(!cut.is_tracked());
    let frozen = x.clone().set_require_grad(false);
    assert!(!frozen.is_tracked() && frozen.is_autodiff());
    let plain = x.clone().inner();
    assert!(!plain.is_autodiff());
    let again = Tensor::<2>::from_inner(plain.clone()).require_grad();
    assert!(again.is_autodiff() && plain.clone().autodiff().is_autodiff() && !again.clone().without_autodiff().is_autodiff());
    // A wider graph with less kept.
    let sparing = device.clone().gradient_checkpointing();
    assert_eq!(sparing.gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Balanced));
    let x = Tensor::<1>::from_data([0.5], &sparing).require_grad();
    assert_eq!(x.gradient_checkpointing_strategy(), Some(GradientCheckpointingStrategy::Balanced));
    let grads = x.clone().exp().log().exp().backward();
    floats(x.grad(&grads).unwrap(), &[0.5f32.exp()]);
    // Integers and truth values travel along.
    let ints = Tensor::<1, Int>::arange(0..3, &device);
    assert!(ints.is_autodiff() && !ints.inner().is_autodiff());
}

#[test]
fn mistakes_of_autodiff_panic() {
    let panics = |f: fn()| std::panic::catch_unwind(f).is_err();
    assert!(panics(|| drop(Tensor::<1>::ones([1], &Device::flex()).require_grad())));
    assert!(panics(|| drop((Tensor::<1>::ones([1], &Device::flex().autodiff()).require_grad() * 2.0).require_grad())));
    assert!(panics(|| drop(Tensor::<1>::ones([1], &Device::flex()).backward())));
}

#[test]
fn devices() {
    let device = Device::flex();
    assert_eq!(device, Device::flex().autodiff());
    device.seed(3);
    let first = Tensor::<1>::random([8], Distribution::Default, &device).into_data();
    device.seed(3);
    assert_eq!(Tensor::<1>::random([8], Distribution::Default, &device).into_data(), first);
    device.sync().unwrap();
    device.flush().unwrap();
    for dtype in [
        DType::F64,
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::I16,
        DType::I8,
        DType::U64,
        DType::U32,
        DType::U16,
        DType::U8,
    ] {
        assert!(device.supports_dtype(dtype), "{dtype:?}");
    }
    assert_eq!((device.settings().float_dtype, device.settings().int_dtype), (FloatDType::F32, IntDType::I32));
    assert!(Device::flex().configure(FloatDType::F64).is_err(), "a tensor was made before");
    let all = Device::enumerate(burn::tensor::DeviceType::Flex);
    assert_eq!(all.len(), 1);
    assert!(all.autodiff().into_vec().iter().all(Device::is_autodiff));
    device.memory_cleanup();
    let moved = Tensor::<1>::ones([1], &device.clone().autodiff()).to_device(&device);
    assert!(moved.is_autodiff() && moved.device() == device);
    let persistent = device.memory_persistent_allocations(2, |n: usize| Tensor::<1>::ones([n], &Device::flex()));
    assert_eq!(persistent.dims(), [2]);
}

#[test]
fn reading() {
    let x = t::<1>([1.0, 2.0]);
    let sum = read_sync(x.clone().sum().into_scalar_async::<f32>()).unwrap();
    assert_eq!(sum, 3.0);
    assert!(try_read_sync(x.to_data_async()).unwrap().is_ok());
    let [a, b]: [TensorData; 2] = Transaction::default().register(x.clone()).register(x.clone().greater_elem(1.0)).execute().try_into().unwrap();
    assert_eq!((a.num_elements(), b.iter::<bool>().collect::<Vec<_>>()), (2, vec![false, true]));
    let scalar = Scalar::new(2.5f32, &DType::F32);
    assert_eq!(scalar.elem::<f64>(), 2.5);
    floats(x * scalar.elem::<f32>(), &[2.5, 5.0]);
}
