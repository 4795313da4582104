//! Convolutions and transposed convolutions.

use kiln_ir::Op;
use kiln_ir::op::ConvAttrs;

use crate::api::Tensor;
use crate::api::options::{ConvOptions, ConvTransposeOptions};
use crate::raw::{self, RawTensor, apply_as};
use crate::trace::Operand;

#[track_caller]
fn conv<const N: usize>(x: &RawTensor, weight: &RawTensor, bias: Option<&RawTensor>, options: &ConvOptions<N>) -> RawTensor {
    let ConvOptions { stride, padding, dilation, groups } = options;
    x.conv(weight, bias, &raw::ConvOptions { stride, padding, dilation, groups: *groups })
}

#[track_caller]
fn transposed<const N: usize>(x: &RawTensor, weight: &RawTensor, bias: Option<&RawTensor>, options: &ConvTransposeOptions<N>) -> RawTensor {
    let ConvTransposeOptions { stride, padding, padding_out, dilation, groups } = options;
    x.conv_transpose(weight, bias, &raw::ConvTransposeOptions { stride, padding, padding_out, dilation, groups: *groups })
}

/// Convolution of `[batch, in, length]` with `weight` `[out, in / groups, kernel]` and `bias` `[out]`: `[batch, out, length']`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::conv1d, ops::ConvOptions};
/// let device = Device::default();
/// let x = Tensor::<3>::from_data([[[1, 2, 3, 4]]], &device);
/// let weight = Tensor::<3>::from_data([[[1, 1]]], &device);
/// let y = conv1d(x, weight, None, ConvOptions::new([1], [0], [1], 1));
/// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [3, 5, 7]);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn conv1d(x: Tensor<3>, weight: Tensor<3>, bias: Option<Tensor<1>>, options: impl Into<ConvOptions<1>>) -> Tensor<3> {
    Tensor::from_raw(conv(&x.raw, &weight.raw, bias.as_ref().map(Tensor::as_raw), &options.into()))
}

/// Convolution of `[batch, in, height, width]` with `weight` `[out, in / groups, kernel, kernel]` and `bias` `[out]`:
/// `[batch, out, height', width']`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::conv2d, ops::ConvOptions};
/// let device = Device::default();
/// let x = Tensor::<4>::from_data([[[[1, 2], [3, 4]]]], &device);
/// let weight = Tensor::<4>::ones([1, 1, 2, 2], &device);
/// let y = conv2d(x, weight, None, ConvOptions::new([1, 1], [0, 0], [1, 1], 1));
/// assert_eq!(y.into_scalar::<f32>(), 10.0);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn conv2d(x: Tensor<4>, weight: Tensor<4>, bias: Option<Tensor<1>>, options: impl Into<ConvOptions<2>>) -> Tensor<4> {
    Tensor::from_raw(conv(&x.raw, &weight.raw, bias.as_ref().map(Tensor::as_raw), &options.into()))
}

/// Convolution of `[batch, in, depth, height, width]` with `weight` `[out, in / groups, kernel, kernel, kernel]` and `bias` `[out]`:
/// `[batch, out, depth', height', width']`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::conv3d, ops::ConvOptions};
/// let device = Device::default();
/// let x = Tensor::<5>::ones([1, 1, 2, 2, 2], &device);
/// let weight = Tensor::<5>::ones([1, 1, 2, 2, 2], &device);
/// let y = conv3d(x, weight, None, ConvOptions::new([1; 3], [0; 3], [1; 3], 1));
/// assert_eq!(y.into_scalar::<f32>(), 8.0);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn conv3d(x: Tensor<5>, weight: Tensor<5>, bias: Option<Tensor<1>>, options: impl Into<ConvOptions<3>>) -> Tensor<5> {
    Tensor::from_raw(conv(&x.raw, &weight.raw, bias.as_ref().map(Tensor::as_raw), &options.into()))
}

/// Transposed convolution of `[batch, in, length]` with `weight` `[in, out / groups, kernel]` and `bias` `[out]`: `[batch, out, length']`.
/// Only the products that are there are summed: no zero between or beside the elements of `x` meets an infinite weight.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::conv_transpose1d, ops::ConvTransposeOptions};
/// let device = Device::default();
/// let x = Tensor::<3>::from_data([[[1, 2]]], &device);
/// let weight = Tensor::<3>::from_data([[[1, 10]]], &device);
/// let y = conv_transpose1d(x, weight, None, ConvTransposeOptions::new([2], [0], [0], [1], 1));
/// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [1, 10, 2, 20]);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn conv_transpose1d(x: Tensor<3>, weight: Tensor<3>, bias: Option<Tensor<1>>, options: ConvTransposeOptions<1>) -> Tensor<3> {
    Tensor::from_raw(transposed(&x.raw, &weight.raw, bias.as_ref().map(Tensor::as_raw), &options))
}

/// Transposed convolution of `[batch, in, height, width]` with `weight` `[in, out / groups, kernel, kernel]` and `bias` `[out]`:
/// `[batch, out, height', width']`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::conv_transpose2d, ops::ConvTransposeOptions};
/// let device = Device::default();
/// let x = Tensor::<4>::from_data([[[[3]]]], &device);
/// let weight = Tensor::<4>::ones([1, 1, 2, 2], &device);
/// let y = conv_transpose2d(x, weight, None, ConvTransposeOptions::new([1; 2], [0; 2], [0; 2], [1; 2], 1));
/// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [3; 4]);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn conv_transpose2d(x: Tensor<4>, weight: Tensor<4>, bias: Option<Tensor<1>>, options: ConvTransposeOptions<2>) -> Tensor<4> {
    Tensor::from_raw(transposed(&x.raw, &weight.raw, bias.as_ref().map(Tensor::as_raw), &options))
}

/// Transposed convolution of `[batch, in, depth, height, width]` with `weight` `[in, out / groups, kernel, kernel, kernel]` and `bias`
/// `[out]`: `[batch, out, depth', height', width']`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::conv_transpose3d, ops::ConvTransposeOptions};
/// let device = Device::default();
/// let x = Tensor::<5>::ones([1, 1, 1, 1, 1], &device);
/// let weight = Tensor::<5>::ones([1, 2, 2, 2, 2], &device);
/// let y = conv_transpose3d(x, weight, None, ConvTransposeOptions::new([1; 3], [0; 3], [0; 3], [1; 3], 1));
/// assert_eq!(y.dims(), [1, 2, 2, 2, 2]);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn conv_transpose3d(x: Tensor<5>, weight: Tensor<5>, bias: Option<Tensor<1>>, options: ConvTransposeOptions<3>) -> Tensor<5> {
    Tensor::from_raw(transposed(&x.raw, &weight.raw, bias.as_ref().map(Tensor::as_raw), &options))
}

/// The gradient of [`conv2d`] for its weight, from the input, the weight (for its shape) and the gradient of the output.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::conv2d_weight_backward, ops::ConvOptions};
/// let device = Device::default();
/// let x = Tensor::<4>::from_data([[[[1, 2], [3, 4]]]], &device);
/// let weight = Tensor::<4>::ones([1, 1, 2, 2], &device);
/// let dy = Tensor::<4>::ones([1, 1, 1, 1], &device);
/// let dw = conv2d_weight_backward(x, weight, dy, ConvOptions::new([1, 1], [0, 0], [1, 1], 1));
/// assert_eq!(dw.try_to_vec_as::<i32>().unwrap(), [1, 2, 3, 4]);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn conv2d_weight_backward(x: Tensor<4>, weight: Tensor<4>, output_grad: Tensor<4>, options: ConvOptions<2>) -> Tensor<4> {
    let ConvOptions { stride, padding, dilation, groups } = options;
    let attrs = ConvAttrs {
        stride: stride.as_slice().into(),
        dilation: dilation.as_slice().into(),
        padding: padding.as_slice().into(),
        groups,
        channels_last: false,
    };
    let operands = [Operand::Tensor(&x.raw), Operand::Tensor(&output_grad.raw)];
    Tensor::from_raw(apply_as(Op::ConvWeightGrad(attrs), &operands, weight.raw.dims(), x.raw.dtype()))
}
