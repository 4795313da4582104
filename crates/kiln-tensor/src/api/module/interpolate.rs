//! Images at other sizes.

use alloc::vec::Vec;

use crate::api::Tensor;
use crate::api::options::{InterpolateMode, InterpolateOptions};
use crate::raw::RawTensor;

/// Images `[batch, channels, height, width]` at another size.
///
/// ```
/// use kiln_tensor::{Device, Tensor, module::interpolate, ops::{InterpolateMode, InterpolateOptions}};
/// let x = Tensor::<4>::from_data([[[[0, 4]]]], &Device::default());
/// let options = InterpolateOptions::new(InterpolateMode::Bilinear).with_output_size([1, 5]);
/// assert_eq!(interpolate(x, options).try_to_vec_as::<i32>().unwrap(), [0, 1, 2, 3, 4]);
/// ```
///
/// # Panics
/// When the options hold neither a size nor a factor or both, the input is empty, or the output would be.
#[track_caller]
pub fn interpolate(x: Tensor<4>, options: InterpolateOptions) -> Tensor<4> {
    Tensor::from_raw(resize(&x.raw, &options))
}

#[track_caller]
fn resize(x: &RawTensor, options: &InterpolateOptions) -> RawTensor {
    let size = [x.dims()[2], x.dims()[3]];
    let output = match (options.output_size, options.scale_factor) {
        (Some(output), None) => output,
        (None, Some(scale)) => core::array::from_fn(|i| (size[i] as f64 * f64::from(scale[i])) as usize),
        (None, None) => panic!("interpolate: give an output size or a scale factor: shape {:?}", x.dims()),
        (Some(_), Some(_)) => panic!("interpolate: give an output size or a scale factor, not both: shape {:?}", x.dims()),
    };
    assert!(!size.contains(&0) && !output.contains(&0), "interpolate: no image between {size:?} and {output:?}: shape {:?}", x.dims());
    let mut y = x.clone();
    for i in 0..2 {
        if size[i] != output[i] {
            y = resize_axis(&y, i + 2, output[i], options);
        }
    }
    y
}

/// The positions that one output is made of, and their weights.
type Taps = Vec<(isize, f64)>;

/// One axis at another size: a sum of few picked slices, each times a weight.
#[track_caller]
fn resize_axis(x: &RawTensor, axis: usize, output: usize, options: &InterpolateOptions) -> RawTensor {
    let size = x.dims()[axis];
    let taps: Vec<Taps> = (0..output).map(|i| taps(i, size, output, options)).collect();
    let device = x.device().without_autodiff();
    let mut dims = alloc::vec![1; x.rank()];
    dims[axis] = output;
    let mut sum: Option<RawTensor> = None;
    for tap in 0..taps[0].len() {
        let positions: Vec<i64> = taps.iter().map(|taps| taps[tap].0.clamp(0, size as isize - 1) as i64).collect();
        let picked = x.select(axis, &RawTensor::from_slice(&device, &[output], kiln_ir::DType::I64, &positions));
        if taps[0].len() == 1 {
            return picked;
        }
        let weights: Vec<f64> = taps.iter().map(|taps| taps[tap].1).collect();
        let weights = RawTensor::from_slice(&device, &dims, kiln_ir::DType::F64, &weights).cast(x.dtype());
        let part = picked.mul(&weights);
        sum = Some(match sum {
            Some(sum) => sum.add(&part),
            None => part,
        });
    }
    sum.expect("there is at least one tap")
}

/// What output `i` is made of. The number of taps depends on the mode only.
fn taps(i: usize, size: usize, output: usize, options: &InterpolateOptions) -> Taps {
    let place = if options.align_corners {
        if output > 1 { i as f64 * (size - 1) as f64 / (output - 1) as f64 } else { 0.0 }
    } else {
        (i as f64 + 0.5) * size as f64 / output as f64 - 0.5
    };
    let start = libm::floor(place);
    let offset = place - start;
    match options.mode {
        // Whole numbers, so that no rounding moves a pixel.
        InterpolateMode::Nearest => [((i * size / output) as isize, 1.0)].into(),
        InterpolateMode::NearestExact => [(((2 * i + 1) * size / (2 * output)) as isize, 1.0)].into(),
        InterpolateMode::Bilinear => {
            let place = place.max(0.0);
            let start = libm::floor(place);
            let offset = place - start;
            [(start as isize, 1.0 - offset), (start as isize + 1, offset)].into()
        }
        InterpolateMode::Bicubic => (-1..=2).map(|k| (start as isize + k, cubic(offset - k as f64))).collect(),
        InterpolateMode::Lanczos3 => {
            let mut taps: Taps = (-2..=3).map(|k| (start as isize + k, lanczos3(offset - k as f64))).collect();
            let total: f64 = taps.iter().map(|(_, weight)| weight).sum();
            taps.iter_mut().for_each(|(_, weight)| *weight /= total);
            taps
        }
    }
}

/// The kernel of cubic convolution with a slope of -0.75 at 1 (R. Keys, "Cubic convolution interpolation for digital image processing", 1981).
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    let x = x.abs();
    if x <= 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
    } else {
        0.0
    }
}

/// The sinc function times a sinc window that ends at 3 (C. Duchon, "Lanczos filtering in one and two dimensions", 1979).
fn lanczos3(x: f64) -> f64 {
    let sinc = |x: f64| if x == 0.0 { 1.0 } else { libm::sin(core::f64::consts::PI * x) / (core::f64::consts::PI * x) };
    if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}
