//! Deformable convolution.

use kiln_ir::DType;
use kiln_ir::Elementwise::{Add, Mul};

use super::grid_sample::Image;
use crate::api::Tensor;
use crate::api::options::{DeformConvOptions, GridSampleOptions, InterpolateMode};
use crate::raw::RawTensor;

/// Convolution of `[batch, in, height, width]` whose kernel elements are moved by `offset` `[batch, 2 * groups * elements, height', width']`
/// (for each group and kernel element down, then right) and weighed by `mask` `[batch, groups * elements, height', width']`. `weight` is
/// `[out, in / weight_groups, kernel, kernel]`, `bias` `[out]`: `[batch, out, height', width']`. Positions and sampled values of half types are computed in `f32`.
///
/// X. Zhu et al., "Deformable ConvNets v2: more deformable, better results", 2018.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::deform_conv2d, ops::DeformConvOptions};
/// let device = Device::default();
/// let x = Tensor::<4>::from_data([[[[1.0, 2.0], [3.0, 4.0]]]], &device);
/// let offset = Tensor::<4>::full([1, 2, 2, 2], 0.5, &device);
/// let weight = Tensor::<4>::ones([1, 1, 1, 1], &device);
/// let options = DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1);
/// let y = deform_conv2d(x, offset, weight, None, None, options);
/// assert_eq!(y.try_to_vec_as::<f32>().unwrap(), [2.5, 1.5, 1.75, 1.0]);
/// ```
///
/// # Panics
/// When the shapes do not fit, or types or devices differ.
#[track_caller]
pub fn deform_conv2d(
    x: Tensor<4>,
    offset: Tensor<4>,
    weight: Tensor<4>,
    mask: Option<Tensor<4>>,
    bias: Option<Tensor<1>>,
    options: DeformConvOptions<2>,
) -> Tensor<4> {
    let (mask, bias) = (mask.as_ref().map(Tensor::as_raw), bias.as_ref().map(Tensor::as_raw));
    Tensor::from_raw(deform(&x.raw, &offset.raw, &weight.raw, mask, bias, &options))
}

#[track_caller]
fn deform(
    x: &RawTensor,
    offset: &RawTensor,
    weight: &RawTensor,
    mask: Option<&RawTensor>,
    bias: Option<&RawTensor>,
    options: &DeformConvOptions<2>,
) -> RawTensor {
    let [n, c] = [x.dims()[0], x.dims()[1]];
    let kernel = [weight.dims()[2], weight.dims()[3]];
    let out = weight.dims()[0];
    let elements = kernel[0] * kernel[1];
    let (groups, sharing) = (options.weight_groups, options.offset_groups);
    let mut size = [0; 2];
    // A closure would report its own line instead of the caller's.
    for i in 0..2 {
        assert!(
            kernel[i] > 0 && options.stride[i] > 0 && options.dilation[i] > 0,
            "deform_conv2d: stride {:?}, dilation {:?} and kernel {kernel:?} must be positive: input {:?}",
            options.stride,
            options.dilation,
            x.dims()
        );
        let span = kiln_ir::infer::span(kernel[i], options.dilation[i]);
        let padded = x.dims()[i + 2].saturating_add(options.padding[i].saturating_mul(2));
        assert!(span <= padded, "deform_conv2d: the kernel {kernel:?} covers more than the padded input {:?}", x.dims());
        size[i] = (padded - span) / options.stride[i] + 1;
    }
    let expected = |per_element: usize| [n, per_element * sharing * elements, size[0], size[1]];
    assert!(
        c.is_multiple_of(groups) && c.is_multiple_of(sharing) && out.is_multiple_of(groups) && weight.dims()[1] * groups == c,
        "deform_conv2d: input {:?}, weight {:?}, {groups} weight groups, {sharing} offset groups: the channels do not divide",
        x.dims(),
        weight.dims()
    );
    assert!(offset.dims() == expected(2), "deform_conv2d: offset {:?}, expected {:?}: input {:?}", offset.dims(), expected(2), x.dims());
    let other = [offset, weight].into_iter().chain(mask).find(|operand| operand.dtype() != x.dtype());
    if let Some(operand) = other {
        panic!("deform_conv2d: input {:?} of {}, operand {:?} of {}: the types differ", x.dims(), x.dtype(), operand.dims(), operand.dtype());
    }
    let mask_fits = mask.is_none_or(|mask| mask.dims() == expected(1));
    assert!(mask_fits, "deform_conv2d: mask {:?}, expected {:?}: input {:?}", mask.map(RawTensor::dims), expected(1), x.dims());

    // Channels that share offsets are read as one image each.
    let (images, places) = (n * sharing, size[0] * size[1]);
    let x = x.reshape(&[images, c / sharing, x.dims()[2], x.dims()[3]]);
    let offset = offset.reshape(&[images, elements, 2, places]);
    let image = Image::new(&x, elements * places, &GridSampleOptions::new(InterpolateMode::Bilinear).with_align_corners(true));
    let positions: [RawTensor; 2] = core::array::from_fn(|axis| {
        let grid = grid_positions(&x, image.precise(), axis, kernel, size, options);
        offset.narrow(2, axis, 1).reshape(&[images, elements, places]).cast(image.precise()).add(&grid).reshape(&[images, 1, elements * places])
    });
    let mut columns = image.bilinear(&positions[0], &positions[1]);
    if let Some(mask) = mask {
        columns = columns.mul(&mask.reshape(&[images, 1, elements * places]).cast(image.precise()));
    }
    let columns = columns.cast(x.dtype()).reshape(&[n, groups, c / groups * elements, places]);
    let weight = weight.reshape(&[1, groups, out / groups, c / groups * elements]);
    let y = weight.matmul(&columns).reshape(&[n, out, size[0], size[1]]);
    match bias {
        Some(bias) => {
            assert!(bias.dims() == [out], "deform_conv2d: bias {:?}, expected [{out}]", bias.dims());
            y.add(&bias.reshape(&[1, out, 1, 1]))
        }
        None => y,
    }
}

/// Where the elements of an undeformed kernel lie along an axis: `[1, elements, places]`.
fn grid_positions(x: &RawTensor, dtype: DType, axis: usize, kernel: [usize; 2], size: [usize; 2], options: &DeformConvOptions<2>) -> RawTensor {
    let device = x.device().without_autodiff();
    let dims = [kernel[0], kernel[1], size[0], size[1]];
    let count = |along: usize| RawTensor::iota(&device, &dims, dtype, along);
    let element = count(axis).with_constant(Mul, options.dilation[axis] as f64);
    let place = count(axis + 2).with_constant(Mul, options.stride[axis] as f64);
    let position = element.add(&place).with_constant(Add, -(options.padding[axis] as f64));
    position.reshape(&[1, kernel[0] * kernel[1], size[0] * size[1]])
}
