//! How parameters start.

use kiln_module::config::Config;
use kiln_nn::{Initializer, LinearConfig};
use kiln_tensor::{Device, Tensor, Tolerance};

use crate::graded::panic_of;

/// Mean, standard deviation, least and greatest value.
fn statistics(initializer: &Initializer, seed: u64) -> [f64; 4] {
    let device = Device::default();
    device.seed(seed);
    let values = initializer.init_with::<2, _>([200, 100], Some(200), Some(100), &device).val().into_data();
    let values: Vec<f64> = values.iter::<f64>().collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    [mean, spread.sqrt(), least, most]
}

#[test]
fn distributions_have_their_moments_and_bounds() {
    let third = 1.0 / 3f64.sqrt();
    let uniform = |bound: f64| (0.0, bound * third, bound);
    let normal = |std: f64| (0.0, std, 6.0 * std);
    let cases = [
        (Initializer::Uniform { min: -0.5, max: 0.5 }, uniform(0.5)),
        (Initializer::Normal { mean: 0.0, std: 0.3 }, normal(0.3)),
        (Initializer::KaimingUniform { gain: third, fan_out_only: false }, uniform(1.0 / 200f64.sqrt())),
        (Initializer::KaimingUniform { gain: 2.0, fan_out_only: true }, uniform(2.0 * (3.0 / 100f64).sqrt())),
        (Initializer::KaimingNormal { gain: 2.0, fan_out_only: false }, normal(2.0 / 200f64.sqrt())),
        (Initializer::XavierUniform { gain: 1.5 }, uniform(1.5 * (6.0 / 300f64).sqrt())),
        (Initializer::XavierNormal { gain: 1.5 }, normal(1.5 * (2.0 / 300f64).sqrt())),
    ];
    for (seed, (initializer, (mean, spread, bound))) in cases.into_iter().enumerate() {
        let [found_mean, found_spread, least, most] = statistics(&initializer, seed as u64);
        assert!((found_mean - mean).abs() < 0.05 * spread, "{initializer:?}: mean {found_mean}");
        assert!((found_spread / spread - 1.0).abs() < 0.03, "{initializer:?}: spread {found_spread}, expected {spread}");
        assert!(least >= -bound && most <= bound, "{initializer:?}: {least} to {most}, expected within {bound}");
    }
}

#[test]
fn constants_are_exact() {
    assert_eq!(statistics(&Initializer::Zeros, 0), [0.0; 4]);
    assert_eq!(statistics(&Initializer::Ones, 0), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(statistics(&Initializer::Constant { value: 2.5 }, 0), [2.5, 0.0, 2.5, 2.5]);
}

#[test]
fn orthogonal_rows_or_columns_are_orthonormal() {
    let device = Device::default();
    for shape in [[3, 5], [5, 3], [4, 4], [1, 7]] {
        let matrix: Tensor<2> = Initializer::Orthogonal { gain: 2.0 }.init(shape, &device).val();
        let square = if shape[0] <= shape[1] { matrix.clone().matmul(matrix.transpose()) } else { matrix.clone().transpose().matmul(matrix) };
        let size = shape[0].min(shape[1]);
        let expected = Tensor::<2>::eye(size, &device) * 4.0;
        square.into_data().assert_approx_eq(&expected.into_data(), Tolerance::<f32>::absolute(1e-5));
    }
}

#[test]
fn a_seed_fixes_the_parameters() {
    let device = Device::default();
    let draw = || {
        device.seed(11);
        LinearConfig::new(4, 4).init(&device).weight.val().into_data()
    };
    draw().assert_eq(&draw(), true);
}

#[test]
fn initializers_survive_their_text() {
    for initializer in
        [Initializer::Zeros, Initializer::Uniform { min: -1.0, max: 2.0 }, Initializer::KaimingNormal { gain: 1.0, fan_out_only: true }]
    {
        let text = initializer.to_string();
        assert_eq!(Initializer::load_binary(text.as_bytes()).unwrap(), initializer);
    }
}

#[test]
fn a_missing_fan_is_named() {
    let message = panic_of(|| Initializer::XavierNormal { gain: 1.0 }.init::<2, _>([2, 2], &Device::default()));
    assert!(message.contains("init_with"), "{message}");
}
