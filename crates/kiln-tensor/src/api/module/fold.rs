//! Images unfolded into their windows, and windows folded into images.

use kiln_ir::op::WindowAxis;

use crate::api::Tensor;
use crate::api::options::UnfoldOptions;
use crate::raw::RawTensor;

fn windows(kernel: [usize; 2], options: &UnfoldOptions) -> [WindowAxis; 2] {
    let axis = |i: usize| WindowAxis { axis: i as u8 + 2, size: kernel[i], stride: options.stride[i], dilation: options.dilation[i] };
    [axis(0), axis(1)]
}

/// The number of windows along each axis of a padded image.
#[track_caller]
fn counts(op: &str, shape: &[usize], padded: [usize; 2], kernel: [usize; 2], options: &UnfoldOptions) -> [usize; 2] {
    let mut counts = [0; 2];
    // A closure would report its own line instead of the caller's.
    for i in 0..2 {
        let steps = [("kernel", kernel), ("stride", options.stride), ("dilation", options.dilation)];
        if let Some((name, sizes)) = steps.iter().find(|(_, sizes)| sizes[i] == 0) {
            panic!("{op}: the {name} {sizes:?} contains 0: shape {shape:?}");
        }
        let span = kiln_ir::infer::span(kernel[i], options.dilation[i]);
        assert!(span <= padded[i], "{op}: the kernel {kernel:?} covers more than the padded image {padded:?}: shape {shape:?}");
        counts[i] = (padded[i] - span) / options.stride[i] + 1;
    }
    counts
}

/// The windows of images `[batch, channels, height, width]`: `[batch, channels * kernel elements, windows]`.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::unfold4d, ops::UnfoldOptions};
/// let x = Tensor::<4>::from_data([[[[1, 2, 3], [4, 5, 6]]]], &Device::default());
/// let y = unfold4d(x, [2, 2], UnfoldOptions::new([1, 1], [0, 0], [1, 1]));
/// assert_eq!(y.dims(), [1, 4, 2]);
/// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [1, 2, 2, 3, 4, 5, 5, 6]);
/// ```
///
/// # Panics
/// When a window is larger than the padded image.
#[track_caller]
pub fn unfold4d(x: Tensor<4>, kernel_size: [usize; 2], options: UnfoldOptions) -> Tensor<3> {
    Tensor::from_raw(unfold(&x.raw, kernel_size, &options))
}

#[track_caller]
fn unfold(x: &RawTensor, kernel: [usize; 2], options: &UnfoldOptions) -> RawTensor {
    let [ph, pw] = options.padding;
    let x = x.pad_zeros(&[(0, 0), (0, 0), (ph, ph), (pw, pw)]);
    let (n, c, h, w) = (x.dims()[0], x.dims()[1], x.dims()[2], x.dims()[3]);
    let [oh, ow] = counts("unfold4d", x.dims(), [h, w], kernel, options);
    let windows = x.windows(&windows(kernel, options)).permute(&[0, 1, 4, 5, 2, 3]);
    windows.reshape(&[n, c * kernel[0] * kernel[1], oh * ow])
}

/// The images that windows `[batch, channels * kernel elements, windows]` add up to: `[batch, channels, height, width]`. The adjoint of
/// [`unfold4d`].
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::fold4d, ops::UnfoldOptions};
/// let x = Tensor::<3>::ones([1, 4, 2], &Device::default());
/// let y = fold4d(x, [2, 3], [2, 2], UnfoldOptions::new([1, 1], [0, 0], [1, 1]));
/// assert_eq!(y.try_to_vec_as::<i32>().unwrap(), [1, 2, 1, 1, 2, 1]);
/// ```
///
/// # Panics
/// When the sizes do not fit.
#[track_caller]
pub fn fold4d(x: Tensor<3>, output_size: [usize; 2], kernel_size: [usize; 2], options: UnfoldOptions) -> Tensor<4> {
    Tensor::from_raw(fold(&x.raw, output_size, kernel_size, &options))
}

#[track_caller]
fn fold(x: &RawTensor, output: [usize; 2], kernel: [usize; 2], options: &UnfoldOptions) -> RawTensor {
    let padded: [usize; 2] = core::array::from_fn(|i| output[i] + 2 * options.padding[i]);
    let [oh, ow] = counts("fold4d", x.dims(), padded, kernel, options);
    let (n, rows) = (x.dims()[0], x.dims()[1]);
    let elements = kernel[0] * kernel[1];
    assert!(
        rows.is_multiple_of(elements) && x.dims()[2] == oh * ow,
        "fold4d: windows of shape {:?} do not fold into an image of {output:?} with kernel {kernel:?}: expected [{n}, channels * {elements}, {}]",
        x.dims(),
        oh * ow
    );
    let c = rows / elements;
    let windowed = x.reshape(&[n, c, kernel[0], kernel[1], oh, ow]).permute(&[0, 1, 4, 5, 2, 3]);
    let image = windowed.fold(&windows(kernel, options), &[n, c, padded[0], padded[1]]);
    image.narrow(2, options.padding[0], output[0]).narrow(3, options.padding[1], output[1])
}
