//! Layer operations against their definitions: CTC over all alignments, deformable convolution by loops.

use kiln_tensor::activation::log_softmax;
use kiln_tensor::module::{conv2d, ctc_loss, deform_conv2d};
use kiln_tensor::ops::{ConvOptions, DeformConvOptions};
use kiln_tensor::{Device, Distribution, Int, Tensor, TensorData, Tolerance};

use crate::check_panics;

fn device() -> Device {
    Device::default()
}

/// The probability of a label sequence, over every path of one class a step.
fn probability(log_probs: &[Vec<f64>], labels: &[usize], blank: usize) -> f64 {
    let (steps, classes) = (log_probs.len(), log_probs[0].len());
    let mut total = 0.0;
    for code in 0..classes.pow(steps as u32) {
        let path: Vec<usize> = (0..steps).map(|t| code / classes.pow(t as u32) % classes).collect();
        let mut spelled = path.clone();
        spelled.dedup();
        spelled.retain(|class| *class != blank);
        if spelled == labels {
            total += path.iter().zip(log_probs).map(|(class, row)| row[*class]).sum::<f64>().exp();
        }
    }
    total
}

#[test]
fn ctc_sums_over_all_alignments() {
    let (steps, classes) = (5, 3);
    let sequences: [(&[usize], usize); 6] = [(&[1, 2], 5), (&[1, 1], 5), (&[], 4), (&[2], 1), (&[1, 2, 1], 5), (&[1, 1, 1], 4)];
    let batch = sequences.len();
    for blank in [0, 2] {
        // With blank 2 the labels are 0 and 1.
        let label = |l: usize| if blank == 2 { l - 1 } else { l };
        let logits = Tensor::<3>::random([steps, batch, classes], Distribution::Normal(0.0, 1.0), &device());
        let log_probs = log_softmax(logits, 2);
        let values: Vec<f64> = log_probs.try_to_vec_as().unwrap();
        let longest = 3;
        let targets: Vec<i64> = sequences.iter().flat_map(|(s, _)| (0..longest).map(|i| s.get(i).map_or(0, |l| label(*l) as i64))).collect();
        let targets = Tensor::<2, Int>::from_data(TensorData::new(targets, [batch, longest]), &device());
        let lengths =
            |f: fn(&(&[usize], usize)) -> i64| Tensor::<1, Int>::from_data(sequences.iter().map(f).collect::<Vec<_>>().as_slice(), &device());
        let loss = ctc_loss(log_probs, targets, lengths(|s| s.1 as i64), lengths(|s| s.0.len() as i64), blank);
        for (b, (loss, (labels, length))) in loss.try_into_vec_as::<f64>().unwrap().into_iter().zip(sequences).enumerate() {
            let rows: Vec<Vec<f64>> = (0..length).map(|t| values[(t * batch + b) * classes..][..classes].to_vec()).collect();
            let labels: Vec<usize> = labels.iter().map(|l| label(*l)).collect();
            let expected = -probability(&rows, &labels, blank).ln();
            let close = (loss - expected).abs() < 1e-4 || (loss == expected && loss.is_infinite());
            assert!(close, "sequence {b}, blank {blank}: {loss}, expected {expected}");
        }
    }
}

#[test]
fn the_gradient_of_ctc_matches_differences() {
    let auto = device().autodiff();
    let (steps, classes) = (4, 3);
    let start: Vec<f64> = (0..steps * 2 * classes).map(|i| ((i * 37) % 11) as f64 / 5.0 - 1.0).collect();
    let targets = || Tensor::<2, Int>::from_data([[1, 2], [1, 1]], &device());
    let loss = |x: Tensor<3>| {
        let lengths = |a, b| Tensor::<1, Int>::from_data([a, b], &device());
        ctc_loss(log_softmax(x, 2), targets(), lengths(4, 3), lengths(2, 2), 0).sum()
    };
    let tensor =
        |values: Vec<f64>, device: &Device| Tensor::<3>::from_data(TensorData::new(values, [steps, 2, classes]), (device, kiln_tensor::DType::F64));
    let x = tensor(start.clone(), &auto).require_grad();
    let grad: Vec<f64> = x.grad(&loss(x.clone()).backward()).unwrap().try_into_vec_as().unwrap();
    let h = 1e-5;
    for (i, grad) in grad.iter().enumerate() {
        let at = |shift: f64| {
            let mut values = start.clone();
            values[i] += shift;
            loss(tensor(values, &device())).into_scalar::<f64>()
        };
        let difference = (at(h) - at(-h)) / (2.0 * h);
        assert!((grad - difference).abs() < 1e-6, "{i}: {grad} {difference}");
    }
}

#[test]
fn ctc_refuses_what_does_not_fit() {
    let one = || Tensor::<1, Int>::from_data([1], &device());
    let run = |blank| ctc_loss(Tensor::zeros([2, 1, 3], &device()), Tensor::zeros([2, 1], &device()), one(), one(), blank);
    check_panics(|| run(0), "ctc_loss: log_probs [2, 1, 3], targets [2, 1]");
}

#[test]
fn a_kernel_that_is_not_moved_is_a_convolution() {
    let random = |shape: [usize; 4]| Tensor::<4>::random(shape, Distribution::Normal(0.0, 1.0), &device());
    for (groups, sharing) in [(1, 1), (2, 1), (1, 2), (2, 4)] {
        let (x, weight) = (random([2, 4, 5, 6]), random([4, 4 / groups, 3, 2]));
        let options = DeformConvOptions::new([2, 1], [1, 0], [1, 2], groups, sharing);
        let size = [3, 4];
        let offset = Tensor::<4>::zeros([2, 2 * sharing * 6, size[0], size[1]], &device());
        let bias = Tensor::<1>::from_data([1, 2, 3, 4], &device());
        let y = deform_conv2d(x.clone(), offset, weight.clone(), None, Some(bias.clone()), options);
        let expected = conv2d(x, weight, Some(bias), ConvOptions::new([2, 1], [1, 0], [1, 2], groups));
        y.into_data().assert_approx_eq::<f32>(&expected.into_data(), Tolerance::rel_abs(1e-4, 1e-5));
    }
}

/// The value of a plane between its pixels; 0 outside.
fn between(plane: &[f32], size: [usize; 2], y: f64, x: f64) -> f64 {
    let pixel = |y: f64, x: f64| {
        let inside = y >= 0.0 && x >= 0.0 && y < size[0] as f64 && x < size[1] as f64;
        if inside { f64::from(plane[y as usize * size[1] + x as usize]) } else { 0.0 }
    };
    let (top, left) = (y.floor(), x.floor());
    let (down, right) = (y - top, x - left);
    let upper = pixel(top, left) * (1.0 - right) + pixel(top, left + 1.0) * right;
    let lower = pixel(top + 1.0, left) * (1.0 - right) + pixel(top + 1.0, left + 1.0) * right;
    upper * (1.0 - down) + lower * down
}

#[test]
fn moved_kernels_read_between_the_pixels() {
    let random = |shape: [usize; 4]| Tensor::<4>::random(shape, Distribution::Normal(0.0, 1.5), &device());
    let (c, out, kernel, size) = (4, 2, [2, 2], [3, 3]);
    let (groups, sharing) = (2, 2);
    let x = random([1, c, 4, 4]);
    let (offset, mask) = (random([1, 2 * sharing * 4, 3, 3]), random([1, sharing * 4, 3, 3]));
    let weight = random([out, c / groups, 2, 2]);
    let options = DeformConvOptions::new([1, 1], [0, 0], [1, 1], groups, sharing);
    let y = deform_conv2d(x.clone(), offset.clone(), weight.clone(), Some(mask.clone()), None, options).try_into_vec_as::<f64>().unwrap();
    let values = |t: Tensor<4>| t.try_into_vec_as::<f32>().unwrap();
    let (x, offset, mask, weight) = (values(x), values(offset), values(mask), values(weight));
    for (i, y) in y.iter().enumerate() {
        let (o, place) = (i / 9, i % 9);
        let mut expected = 0.0;
        for k in 0..c / groups {
            let channel = o / (out / groups) * (c / groups) + k;
            let group = channel / (c / sharing);
            for e in 0..kernel[0] * kernel[1] {
                let at = |axis: usize| f64::from(offset[((group * 4 + e) * 2 + axis) * 9 + place]);
                let py = (place / size[1] + e / 2) as f64 + at(0);
                let px = (place % size[1] + e % 2) as f64 + at(1);
                let value = between(&x[channel * 16..][..16], [4, 4], py, px);
                expected += value * f64::from(mask[(group * 4 + e) * 9 + place]) * f64::from(weight[(o * (c / groups) + k) * 4 + e]);
            }
        }
        assert!((y - expected).abs() < 1e-4, "{i}: {y} {expected}");
    }
}

#[test]
fn the_gradient_of_moved_kernels_reaches_everything() {
    let auto = device().autodiff();
    // Fixed values; offsets stay away from whole numbers, where the slope jumps.
    let fixed = |shape: [usize; 4], f: fn(f32) -> f32| {
        let values = (0..shape.iter().product()).map(|i: usize| f((i * 31 % 17) as f32 / 17.0)).collect();
        Tensor::<4>::from_data(TensorData::new(values, shape), &auto).require_grad()
    };
    let (x, offset) = (fixed([1, 2, 4, 4], |u| 2.0 * u - 1.0), fixed([1, 8, 3, 3], |u| 0.2 + 0.6 * u - (7.0 * u).floor() % 3.0));
    let (mask, weight) = (fixed([1, 4, 3, 3], |u| u + 0.1), fixed([2, 2, 2, 2], |u| u - 0.4));
    let f = |x: &Tensor<4>, offset: &Tensor<4>, mask: &Tensor<4>, weight: &Tensor<4>| {
        let options = DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1);
        let y = deform_conv2d(x.clone(), offset.clone(), weight.clone(), Some(mask.clone()), None, options);
        (y.clone() * y).sum()
    };
    let gradients = f(&x, &offset, &mask, &weight).backward();
    let h = 1e-3;
    for (which, tensor) in [&x, &offset, &mask, &weight].into_iter().enumerate() {
        let grad = tensor.grad(&gradients).unwrap();
        // The slope along the gradient's own direction is its squared length.
        let moved = |sign: f32| {
            let length = grad.clone().square().sum().sqrt().into_scalar::<f32>();
            let moved = tensor.clone().inner() + grad.clone() * (sign * h / length);
            let pick = |i: usize, t: &Tensor<4>| if i == which { moved.clone() } else { t.clone().inner() };
            f(&pick(0, &x), &pick(1, &offset), &pick(2, &mask), &pick(3, &weight)).into_scalar::<f64>()
        };
        let length = f64::from(grad.clone().square().sum().sqrt().into_scalar::<f32>());
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(h));
        assert!((slope - length).abs() < 0.03 * length.max(0.1), "input {which}: {slope} {length}");
    }
}
