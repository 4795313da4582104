//! The transducer loss against a sum over all alignments.

use kiln_nn::loss::{RNNTLossConfig, Reduction};
use kiln_tensor::{Device, Distribution, Int, Tensor, Tolerance};

/// The probability of the target from time `t` and state `u` on: emit the blank and go on in time, or the next symbol.
fn probability(p: &dyn Fn(usize, usize, usize) -> f64, target: &[usize], times: usize, t: usize, u: usize) -> f64 {
    let blank = p(t, u, 0);
    let ends = if t + 1 == times { f64::from(u == target.len()) } else { probability(p, target, times, t + 1, u) };
    let emits = if u < target.len() { p(t, u, target[u]) * probability(p, target, times, t, u + 1) } else { 0.0 };
    blank * ends + emits
}

#[test]
fn the_loss_sums_over_all_alignments() {
    let device = Device::default();
    let (times, states, classes) = (4, 3, 5);
    let logits = Tensor::<4>::random([3, times, states, classes], Distribution::Normal(0.0, 1.0), &device);
    let targets = [[1usize, 3], [2, 2], [4, 0]];
    let (logit_lengths, target_lengths) = ([4usize, 3, 2], [2usize, 2, 1]);
    let values = kiln_tensor::activation::softmax(logits.clone(), 3).into_data().try_to_vec::<f32>().unwrap();
    let loss = RNNTLossConfig::new().init();
    let ints = |values: [usize; 3]| Tensor::<1, Int>::from_ints(values.map(|value| value as i64), &device);
    let found = loss.forward(
        logits,
        Tensor::<2, Int>::from_ints(targets.map(|row| row.map(|token| token as i64)), &device),
        ints(logit_lengths),
        ints(target_lengths),
    );
    let found = found.into_data().try_to_vec::<f32>().unwrap();
    for batch in 0..3 {
        let p = |t: usize, u: usize, class: usize| f64::from(values[((batch * times + t) * states + u) * classes + class]);
        let target = &targets[batch][..target_lengths[batch]];
        let expected = -probability(&p, target, logit_lengths[batch], 0, 0).ln();
        assert!((f64::from(found[batch]) - expected).abs() < 1e-4, "{} {expected}", found[batch]);
    }
}

#[test]
fn the_gradient_is_that_of_finite_differences() {
    let device = Device::default().autodiff();
    let shape = [1, 3, 2, 3];
    let start = Tensor::<4>::random(shape, Distribution::Normal(0.0, 1.0), &device);
    let loss = |logits: Tensor<4>| {
        let one = |value: i64| Tensor::<1, Int>::from_ints([value], &device);
        RNNTLossConfig::new().init().forward_with_reduction(logits, Tensor::<2, Int>::from_ints([[2]], &device), one(3), one(1), Reduction::Sum)
    };
    let x = start.clone().require_grad();
    let gradient = x.grad(&loss(x.clone()).backward()).unwrap();
    let values = start.into_data().try_to_vec::<f32>().unwrap();
    let step = 1e-2;
    let differences: Vec<f32> = (0..values.len())
        .map(|index| {
            let at = |delta: f32| -> f32 {
                let mut moved = values.clone();
                moved[index] += delta;
                loss(Tensor::from_data(kiln_tensor::TensorData::new(moved, shape), &device)).into_scalar()
            };
            (at(step) - at(-step)) / (2.0 * step)
        })
        .collect();
    let expected = kiln_tensor::TensorData::new(differences, shape);
    gradient.into_data().assert_approx_eq(&expected, Tolerance::<f32>::rel_abs(1e-2, 1e-3));
}
