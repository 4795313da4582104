//! Pools.

use alloc::vec;
use alloc::vec::Vec;

use crate::api::Tensor;
use crate::api::kind::Int;
use crate::api::options::{AvgPoolOptions, MaxPoolOptions};
use crate::api::reduction::indices;
use crate::raw::{PoolOptions, RawTensor};

fn max_options<const N: usize>(options: &MaxPoolOptions<N>) -> PoolOptions<'_> {
    PoolOptions {
        kernel: &options.kernel_size,
        stride: &options.stride,
        dilation: &options.dilation,
        padding: &options.padding,
        count_include_pad: false,
        ceil_mode: options.ceil_mode,
    }
}

fn avg_options<const N: usize>(options: &AvgPoolOptions<N>) -> PoolOptions<'_> {
    PoolOptions {
        kernel: &options.kernel_size,
        stride: &options.stride,
        dilation: &[1; N],
        padding: &options.padding,
        count_include_pad: options.count_include_pad,
        ceil_mode: options.ceil_mode,
    }
}

/// Maximum over windows of `[batch, channels, length]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::max_pool1d, ops::MaxPoolOptions};
/// let x = Tensor::<3>::from_data([[[1, 4, 2, 3]]], &Device::default());
/// assert_eq!(max_pool1d(x, MaxPoolOptions::new([2])).try_to_vec_as::<i32>().unwrap(), [4, 3]);
/// ```
///
/// # Panics
/// When a window does not fit, a size is 0, or padding exceeds half a window.
#[track_caller]
pub fn max_pool1d(x: Tensor<3>, options: MaxPoolOptions<1>) -> Tensor<3> {
    Tensor::from_raw(x.raw.max_pool(&max_options(&options)))
}

/// Maximum over windows of `[batch, channels, height, width]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::max_pool2d, ops::MaxPoolOptions};
/// let x = Tensor::<4>::from_data([[[[1, 4], [2, 3]]]], &Device::default());
/// assert_eq!(max_pool2d(x, MaxPoolOptions::new([2, 2])).into_scalar::<f32>(), 4.0);
/// ```
///
/// # Panics
/// When a window does not fit, a size is 0, or padding exceeds half a window.
#[track_caller]
pub fn max_pool2d(x: Tensor<4>, options: MaxPoolOptions<2>) -> Tensor<4> {
    Tensor::from_raw(x.raw.max_pool(&max_options(&options)))
}

/// Maximum over windows of `[batch, channels, length]`, and its position in the input.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::max_pool1d_with_indices, ops::MaxPoolOptions};
/// let x = Tensor::<3>::from_data([[[1, 4, 2, 3]]], &Device::default());
/// let (_, indices) = max_pool1d_with_indices(x, MaxPoolOptions::new([2]));
/// assert_eq!(indices.try_to_vec_as::<i32>().unwrap(), [1, 3]);
/// ```
///
/// # Panics
/// As [`max_pool1d`].
#[track_caller]
pub fn max_pool1d_with_indices(x: Tensor<3>, options: MaxPoolOptions<1>) -> (Tensor<3>, Tensor<3, Int>) {
    let (values, positions) = x.raw.max_pool_with_indices(&max_options(&options));
    (Tensor::from_raw(values), indices(&positions))
}

/// Maximum over windows of `[batch, channels, height, width]`, and its row-major position in the input's plane.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::max_pool2d_with_indices, ops::MaxPoolOptions};
/// let x = Tensor::<4>::from_data([[[[1, 2], [4, 3]]]], &Device::default());
/// let (_, indices) = max_pool2d_with_indices(x, MaxPoolOptions::new([2, 2]));
/// assert_eq!(indices.into_scalar::<i32>(), 2);
/// ```
///
/// # Panics
/// As [`max_pool2d`].
#[track_caller]
pub fn max_pool2d_with_indices(x: Tensor<4>, options: MaxPoolOptions<2>) -> (Tensor<4>, Tensor<4, Int>) {
    let (values, positions) = x.raw.max_pool_with_indices(&max_options(&options));
    (Tensor::from_raw(values), indices(&positions))
}

/// Mean over windows of `[batch, channels, length]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::avg_pool1d, ops::AvgPoolOptions};
/// let x = Tensor::<3>::from_data([[[1, 3, 2, 4]]], &Device::default());
/// assert_eq!(avg_pool1d(x, AvgPoolOptions::new([2])).try_to_vec_as::<f32>().unwrap(), [2.0, 3.0]);
/// ```
///
/// # Panics
/// When a window does not fit, a size is 0, or padding exceeds half a window.
#[track_caller]
pub fn avg_pool1d(x: Tensor<3>, options: AvgPoolOptions<1>) -> Tensor<3> {
    Tensor::from_raw(x.raw.avg_pool(&avg_options(&options)))
}

/// Mean over windows of `[batch, channels, height, width]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::avg_pool2d, ops::AvgPoolOptions};
/// let x = Tensor::<4>::from_data([[[[1, 2], [3, 4]]]], &Device::default());
/// assert_eq!(avg_pool2d(x, AvgPoolOptions::new([2, 2])).into_scalar::<f32>(), 2.5);
/// ```
///
/// # Panics
/// When a window does not fit, a size is 0, or padding exceeds half a window.
#[track_caller]
pub fn avg_pool2d(x: Tensor<4>, options: AvgPoolOptions<2>) -> Tensor<4> {
    Tensor::from_raw(x.raw.avg_pool(&avg_options(&options)))
}

/// The gradient of [`avg_pool2d`] for its input.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::avg_pool2d_backward};
/// let device = Device::default();
/// let x = Tensor::<4>::zeros([1, 1, 2, 2], &device);
/// let dx = avg_pool2d_backward(x, Tensor::ones([1, 1, 1, 1], &device), [2, 2], [2, 2], [0, 0], true, false);
/// assert_eq!(dx.try_to_vec_as::<f32>().unwrap(), [0.25; 4]);
/// ```
///
/// # Panics
/// When the shapes do not fit.
#[track_caller]
pub fn avg_pool2d_backward(
    x: Tensor<4>,
    grad: Tensor<4>,
    kernel_size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    count_include_pad: bool,
    ceil_mode: bool,
) -> Tensor<4> {
    let options = AvgPoolOptions::new(kernel_size)
        .with_stride(stride)
        .with_padding(padding)
        .with_count_include_pad(count_include_pad)
        .with_ceil_mode(ceil_mode);
    Tensor::from_raw(grad.raw.avg_pool_backward(x.raw.dims(), &avg_options(&options)))
}

/// The gradient of [`max_pool2d_with_indices`] for its input.
///
/// ```
/// use kiln_tensor::{Device, Int, Tensor, module::max_pool2d_with_indices_backward};
/// let device = Device::default();
/// let x = Tensor::<4>::zeros([1, 1, 2, 2], &device);
/// let at = Tensor::<4, Int>::from_data([[[[2]]]], &device);
/// let dy = Tensor::<4>::ones([1, 1, 1, 1], &device);
/// let dx = max_pool2d_with_indices_backward(x, [2, 2], [2, 2], [0, 0], [1, 1], false, dy, at);
/// assert_eq!(dx.try_to_vec_as::<i32>().unwrap(), [0, 0, 1, 0]);
/// ```
///
/// # Panics
/// When the shapes do not fit.
#[allow(clippy::too_many_arguments)]
#[track_caller]
pub fn max_pool2d_with_indices_backward(
    x: Tensor<4>,
    kernel_size: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    ceil_mode: bool,
    output_grad: Tensor<4>,
    indices: Tensor<4, Int>,
) -> Tensor<4> {
    let options = MaxPoolOptions::new(kernel_size).with_stride(stride).with_padding(padding).with_dilation(dilation).with_ceil_mode(ceil_mode);
    let positions = indices.raw.cast(RawTensor::INDEX);
    Tensor::from_raw(output_grad.raw.max_pool_backward(&positions, x.raw.dims(), &max_options(&options)))
}

/// Means over windows of `[batch, channels, length]` that are chosen so that `output_size` of them cover the input.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::adaptive_avg_pool1d};
/// let x = Tensor::<3>::from_data([[[1, 2, 3]]], &Device::default());
/// assert_eq!(adaptive_avg_pool1d(x, 2).try_to_vec_as::<f32>().unwrap(), [1.5, 2.5]);
/// ```
///
/// # Panics
/// When the input is empty.
#[track_caller]
pub fn adaptive_avg_pool1d(x: Tensor<3>, output_size: usize) -> Tensor<3> {
    Tensor::from_raw(adaptive(&x.raw, &[output_size]))
}

/// Means over windows of `[batch, channels, height, width]` that are chosen so that `output_size` of them cover the input.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::adaptive_avg_pool2d};
/// let x = Tensor::<4>::from_data([[[[1, 2], [3, 4]]]], &Device::default());
/// assert_eq!(adaptive_avg_pool2d(x, [1, 2]).try_to_vec_as::<f32>().unwrap(), [2.0, 3.0]);
/// ```
///
/// # Panics
/// When the input is empty.
#[track_caller]
pub fn adaptive_avg_pool2d(x: Tensor<4>, output_size: [usize; 2]) -> Tensor<4> {
    Tensor::from_raw(adaptive(&x.raw, &output_size))
}

/// Means over windows of `[batch, channels, depth, height, width]` that are chosen so that `output_size` of them cover the input.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::adaptive_avg_pool3d};
/// let x = Tensor::<5>::ones([1, 1, 2, 3, 4], &Device::default());
/// assert_eq!(adaptive_avg_pool3d(x, [1, 1, 1]).into_scalar::<f32>(), 1.0);
/// ```
///
/// # Panics
/// When the input is empty.
#[track_caller]
pub fn adaptive_avg_pool3d(x: Tensor<5>, output_size: [usize; 3]) -> Tensor<5> {
    Tensor::from_raw(adaptive(&x.raw, &output_size))
}

/// Means along each of the last axes in turn. Window `i` of `n` covers the positions from `floor(i * size / n)` to `ceil((i + 1) * size / n)`.
#[track_caller]
fn adaptive(x: &RawTensor, output: &[usize]) -> RawTensor {
    let first = x.rank() - output.len();
    assert!(x.dims()[first..].iter().all(|size| *size > 0), "adaptive_avg_pool: the input is empty: shape {:?}", x.dims());
    let mut y = x.clone();
    for (i, &count) in output.iter().enumerate() {
        y = adaptive_axis(&y, first + i, count);
    }
    y
}

#[track_caller]
fn adaptive_axis(x: &RawTensor, axis: usize, count: usize) -> RawTensor {
    let size = x.dims()[axis];
    if count == size {
        return x.clone();
    }
    if count > 0 && size.is_multiple_of(count) {
        // Windows of one size that do not overlap: a mean over an axis of its own.
        let mut dims = x.dims().to_vec();
        dims[axis] = count;
        dims.insert(axis + 1, size / count);
        return x.reshape(&dims).mean(&[axis + 1]).squeeze(axis + 1);
    }
    // Otherwise the means are the product with a matrix of weights.
    let mut weights: Vec<f64> = vec![0.0; size * count];
    for window in 0..count {
        let (start, end) = (window * size / count, ((window + 1) * size).div_ceil(count));
        for position in start..end {
            weights[position * count + window] = 1.0 / (end - start) as f64;
        }
    }
    let last = x.rank() - 1;
    let device = x.device().without_autodiff();
    let weights = RawTensor::from_slice(&device, &[size, count], kiln_ir::DType::F64, &weights).cast(x.dtype());
    x.swap_dims(axis, last).matmul(&weights).swap_dims(axis, last)
}
