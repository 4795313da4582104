//! Each algorithm against PyTorch's values, or against its paper in plain double precision.

use kiln_module::module::{Module, Param};
use kiln_optim::decay::WeightDecayConfig;
use kiln_optim::momentum::MomentumConfig;
use kiln_optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, AdanConfig, AdjustLrFn, GradientsAccumulator, GradientsParams, LBFGSConfig, LambConfig,
    LineSearchFn, LionConfig, ModuleOptimizer, MuonConfig, RmsPropConfig, SgdConfig,
};
use kiln_tensor::{Device, Tensor, TensorData};

use crate::golden::{self, Case};
use crate::problem::{Free, MATRIX, VECTOR, close, device, gradients, panic_of, stepped};

/// One parameter.
#[derive(Module, Debug)]
struct One {
    at: Param<Tensor<2>>,
}

fn number(case: &Case, name: &str, default: f64) -> f64 {
    if case.has_attr(name) { case.number(name) } else { default }
}

fn decay_of(case: &Case) -> Option<WeightDecayConfig> {
    case.has_attr("weight_decay").then(|| WeightDecayConfig::new(case.number("weight_decay") as f32))
}

fn optimizer_of(case: &Case) -> ModuleOptimizer {
    let single = |name: &str| case.number(name) as f32;
    match case.name.as_str() {
        "adam" => AdamConfig::new()
            .with_beta_1(single("beta_1"))
            .with_beta_2(single("beta_2"))
            .with_epsilon(single("epsilon"))
            .with_amsgrad(case.has_attr("amsgrad"))
            .with_weight_decay(decay_of(case))
            .init(),
        "adamw" => AdamWConfig::new()
            .with_beta_1(single("beta_1"))
            .with_beta_2(single("beta_2"))
            .with_epsilon(single("epsilon"))
            .with_amsgrad(case.has_attr("amsgrad"))
            .with_weight_decay(single("weight_decay"))
            .init(),
        "sgd" => {
            let momentum = MomentumConfig::new()
                .with_momentum(number(case, "momentum", 0.0))
                .with_dampening(number(case, "dampening", 0.0))
                .with_nesterov(case.has_attr("nesterov"));
            SgdConfig::new().with_momentum(case.has_attr("momentum").then_some(momentum)).with_weight_decay(decay_of(case)).init()
        }
        "rmsprop" => RmsPropConfig::new()
            .with_alpha(single("alpha"))
            .with_momentum(single("momentum"))
            .with_epsilon(single("epsilon"))
            .with_centered(case.flag("centered"))
            .with_weight_decay(decay_of(case))
            .init(),
        "adagrad" => {
            AdaGradConfig::new().with_lr_decay(case.number("lr_decay")).with_epsilon(single("epsilon")).with_weight_decay(decay_of(case)).init()
        }
        name => panic!("no optimizer {name}"),
    }
}

#[test]
fn ten_steps_equal_pytorch() {
    let cases = golden::read(env!("CARGO_MANIFEST_DIR"), "optimizer.txt");
    let cases: Vec<&Case> = cases.iter().filter(|case| !case.name.starts_with("clip")).collect();
    assert!(cases.len() >= 14);
    for case in cases {
        let mut optimizer = optimizer_of(case);
        let start = case.tensor("param");
        let mut model = One { at: Param::from_tensor(Tensor::from_data(TensorData::new(start.f32(), start.shape.clone()), &device())) };
        let size = start.values.len();
        for (step, gradient) in case.tensor("grads").f32().chunks(size).enumerate() {
            let mut gradients = GradientsParams::new();
            let gradient = TensorData::new(gradient.to_vec(), start.shape.clone());
            gradients.register(model.at.id, Tensor::<2>::from_data(gradient, &Device::default()));
            model = optimizer.step(case.number("lr"), model, gradients);
            let found = model.at.val().into_data().try_to_vec::<f32>().unwrap();
            close(&found, &case.tensor("after").values[step * size..(step + 1) * size], 2e-6);
        }
    }
}

/// Runs an algorithm in double precision on the problem of the tests; `update` gets the step, the parameter and its gradient.
fn reference(steps: usize, mut update: impl FnMut(usize, &mut [f64], &[f64], [usize; 2])) -> Vec<f64> {
    let model = Free::new(MATRIX, VECTOR);
    let mut matrix: Vec<f64> = MATRIX.iter().flatten().map(|value| f64::from(*value)).collect();
    let mut vector: Vec<f64> = VECTOR.iter().map(|value| f64::from(*value)).collect();
    for step in 0..steps {
        let all = gradients(step, &model);
        let values = |data: TensorData| data.iter::<f64>().collect::<Vec<f64>>();
        update(step + 1, &mut matrix, &values(all.get::<2>(model.matrix.id).unwrap().into_data()), [2, 3]);
        update(step + 1, &mut vector, &values(all.get::<1>(model.vector.id).unwrap().into_data()), [1, 2]);
    }
    matrix.extend(vector);
    matrix
}

/// Keeps a value for each element of both parameters, by the size of the parameter.
#[derive(Default)]
struct Memory(std::collections::BTreeMap<(usize, &'static str), Vec<f64>>);

impl Memory {
    fn get(&mut self, size: usize, name: &'static str) -> &mut Vec<f64> {
        self.0.entry((size, name)).or_insert_with(|| vec![0.0; size])
    }
}

fn after_ten(mut optimizer: ModuleOptimizer, lr: f64) -> Vec<f32> {
    stepped(&mut optimizer, Free::new(MATRIX, VECTOR), 0..10, lr).values()
}

#[test]
fn lion_follows_its_paper() {
    for (b1, b2, decay) in [(0.9, 0.99, 0.1), (0.8, 0.95, 0.0)] {
        let mut memory = Memory::default();
        let expected = reference(10, |_, x, g, _| {
            let m = memory.get(x.len(), "m");
            for i in 0..x.len() {
                let step = b1 * m[i] + (1.0 - b1) * g[i];
                x[i] -= 0.01 * (if step == 0.0 { 0.0 } else { step.signum() } + decay * x[i]);
                m[i] = b2 * m[i] + (1.0 - b2) * g[i];
            }
        });
        let config = LionConfig::new().with_beta_1(b1 as f32).with_beta_2(b2 as f32).with_weight_decay(decay as f32);
        close(&after_ten(config.init(), 0.01), &expected, 2e-6);
    }
}

#[test]
fn lamb_follows_its_paper() {
    for (b1, b2, epsilon, decay, trust) in [(0.9, 0.999, 1e-6, 0.05, true), (0.8, 0.99, 1e-3, 0.05, false), (0.85, 0.98, 1e-2, 0.0, true)] {
        let mut memory = Memory::default();
        let expected = reference(10, |t, x, g, _| {
            let size = x.len();
            let mut direction = vec![0.0; size];
            for i in 0..size {
                let m = memory.get(size, "m");
                m[i] = b1 * m[i] + (1.0 - b1) * g[i];
                let m = m[i] / (1.0 - f64::powi(b1, t as i32));
                let v = memory.get(size, "v");
                v[i] = b2 * v[i] + (1.0 - b2) * g[i] * g[i];
                let v = v[i] / (1.0 - f64::powi(b2, t as i32));
                direction[i] = m / (v.sqrt() + epsilon) + decay * x[i];
            }
            let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
            let ratio = if trust { norm(x) / norm(&direction) } else { 1.0 };
            for i in 0..size {
                x[i] -= 0.01 * ratio * direction[i];
            }
        });
        let config = LambConfig::new().with_beta_1(b1 as f32).with_beta_2(b2 as f32).with_epsilon(epsilon as f32);
        close(&after_ten(config.with_weight_decay(decay as f32).with_use_trust_ratio(trust).init(), 0.01), &expected, 5e-6);
    }
}

#[test]
fn adan_follows_its_paper() {
    for (no_prox, b1, b2, b3, epsilon) in [(false, 0.98, 0.92, 0.99, 1e-8), (true, 0.98, 0.92, 0.99, 1e-8), (false, 0.9, 0.8, 0.95, 1e-2)] {
        let mut memory = Memory::default();
        let expected = reference(10, |t, x, g, _| {
            let size = x.len();
            let started = |beta: f64| 1.0 - beta.powi(t as i32);
            for i in 0..size {
                let change = if t == 1 { 0.0 } else { g[i] - memory.get(size, "last")[i] };
                let m = memory.get(size, "m");
                m[i] = b1 * m[i] + (1.0 - b1) * g[i];
                let m = m[i] / started(b1);
                let d = memory.get(size, "d");
                d[i] = b2 * d[i] + (1.0 - b2) * change;
                let d = d[i] / started(b2);
                let n = memory.get(size, "n");
                n[i] = b3 * n[i] + (1.0 - b3) * (g[i] + b2 * change).powi(2);
                let n = n[i] / started(b3);
                let step = 0.01 * (m + b2 * d) / (n.sqrt() + epsilon);
                x[i] = if no_prox { x[i] * (1.0 - 0.01 * 0.1) - step } else { (x[i] - step) / (1.0 + 0.01 * 0.1) };
                memory.get(size, "last")[i] = g[i];
            }
        });
        let config = AdanConfig::new().with_weight_decay(0.1).with_no_prox(no_prox).with_epsilon(epsilon as f32);
        let config = config.with_beta_1(b1 as f32).with_beta_2(b2 as f32).with_beta_3(b3 as f32);
        close(&after_ten(config.init(), 0.01), &expected, 5e-6);
    }
}

#[test]
fn adafactor_follows_its_paper() {
    // Added to squares, least size of a parameter, greatest size of a step, decay, and whether rates are relative to time and to the parameter.
    let options = [
        (1e-30, 1e-3, 1.0, -0.8, true, false),
        (1e-30, 1e-3, 1.0, -0.8, true, true),
        (1e-30, 1e-3, 1.0, -0.8, false, false),
        (1e-2, 10.0, 0.5, -0.6, false, true),
    ];
    for (epsilon_1, epsilon_2, clip, power, relative, scale_parameter) in options {
        let mut memory = Memory::default();
        let expected = reference(10, |t, x, g, [rows, columns]| {
            let size = x.len();
            let keep = 1.0 - (t as f64).powf(power);
            let square: Vec<f64> = g.iter().map(|g| g * g + epsilon_1).collect();
            let mut step = vec![0.0; size];
            if rows > 1 {
                for row in 0..rows {
                    let mean = square[row * columns..(row + 1) * columns].iter().sum::<f64>() / columns as f64;
                    let average = &mut memory.get(size, "rows")[row];
                    *average = keep * *average + (1.0 - keep) * mean;
                }
                for column in 0..columns {
                    let mean = (0..rows).map(|row| square[row * columns + column]).sum::<f64>() / rows as f64;
                    let average = &mut memory.get(size, "columns")[column];
                    *average = keep * *average + (1.0 - keep) * mean;
                }
                let total = memory.get(size, "rows")[..rows].iter().sum::<f64>() / rows as f64;
                for i in 0..size {
                    let (row, column) = (memory.get(size, "rows")[i / columns], memory.get(size, "columns")[i % columns]);
                    step[i] = g[i] / (row / total * column).sqrt();
                }
            } else {
                for i in 0..size {
                    let average = &mut memory.get(size, "elements")[i];
                    *average = keep * *average + (1.0 - keep) * square[i];
                    step[i] = g[i] / average.sqrt();
                }
            }
            let rms = |values: &[f64]| (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt();
            let excess = (rms(&step) / clip).max(1.0);
            let mut rate = if relative { 0.5f64.min(1.0 / (t as f64).sqrt()) } else { 0.5 };
            if scale_parameter {
                rate *= rms(x).max(epsilon_2);
            }
            for i in 0..size {
                x[i] -= rate * 0.01 * x[i] + rate * step[i] / excess;
            }
        });
        let config = AdafactorConfig::new().with_weight_decay(0.01).with_scale_parameter(scale_parameter).with_relative_step(relative);
        let config = config.with_epsilon_1(epsilon_1 as f32).with_epsilon_2(epsilon_2 as f32).with_clip_threshold(clip as f32).with_decay_rate(power);
        close(&after_ten(config.init(), 0.5), &expected, 1e-4);
    }
}

#[test]
fn adamw_decays_with_caution_for_ten_steps() {
    let (b1, b2, epsilon, decay) = (0.8, 0.99, 1e-3, 0.5);
    for amsgrad in [false, true] {
        let mut memory = Memory::default();
        let expected = reference(10, |t, x, g, _| {
            let size = x.len();
            for i in 0..size {
                let m = memory.get(size, "m");
                m[i] = b1 * m[i] + (1.0 - b1) * g[i];
                let m = m[i] / (1.0 - f64::powi(b1, t as i32));
                let v = memory.get(size, "v");
                v[i] = b2 * v[i] + (1.0 - b2) * g[i] * g[i];
                let now = v[i];
                let most = &mut memory.get(size, "most")[i];
                *most = most.max(now);
                let v = if amsgrad { *most } else { now };
                let step = m / ((v / (1.0 - f64::powi(b2, t as i32))).sqrt() + epsilon);
                // Only what the step moves towards zero decays.
                let decayed = if step * x[i] < 0.0 { x[i] } else { x[i] * (1.0 - 0.1 * decay) };
                x[i] = decayed - 0.1 * step;
            }
        });
        let config = AdamWConfig::new().with_beta_1(b1 as f32).with_beta_2(b2 as f32).with_epsilon(epsilon as f32).with_amsgrad(amsgrad);
        let config = config.with_weight_decay(decay as f32).with_cautious_weight_decay(true);
        close(&after_ten(config.init(), 0.1), &expected, 1e-5);
    }
}

#[test]
fn muon_steps_are_nearly_orthogonal() {
    let model = One { at: Param::from_tensor(Tensor::zeros([3, 5], &device())) };
    let mut gradients = GradientsParams::new();
    let gradient: Vec<f32> = (0..15).map(|index| ((index * 7) % 13) as f32 - 6.0).collect();
    gradients.register(model.at.id, Tensor::<2>::from_data(TensorData::new(gradient, [3, 5]), &Device::default()));
    let model = MuonConfig::new().with_adjust_lr_fn(AdjustLrFn::Original).init().step(1.0, model, gradients);
    let step = model.at.val().without_autodiff();
    let square = step.clone().matmul(step.transpose()).into_data().try_to_vec::<f32>().unwrap();
    for row in 0..3 {
        for column in 0..3 {
            let value = square[row * 3 + column];
            // Five iterations bring singular values between about 0.7 and 1.2.
            let bounds = if row == column { 0.4..1.6 } else { -0.4..0.4 };
            assert!(bounds.contains(&value), "{square:?}");
        }
    }
}

/// `a · b` of row-major matrices, `[n, k] · [k, m]`.
fn product(a: &[f64], b: &[f64], [n, k, m]: [usize; 3]) -> Vec<f64> {
    (0..n * m).map(|at| (0..k).map(|i| a[at / m * k + i] * b[i * m + at % m]).sum()).collect()
}

fn transposed(a: &[f64], [n, m]: [usize; 2]) -> Vec<f64> {
    (0..n * m).map(|at| a[at % n * m + at / n]).collect()
}

/// The options of Muon.
#[derive(Clone, Copy)]
struct MuonOptions {
    adjust: AdjustLrFn,
    decay: f64,
    iterations: usize,
    nesterov: bool,
    momentum: f64,
    dampening: f64,
    epsilon: f64,
    coefficients: (f64, f64, f64),
}

const MUON: MuonOptions = MuonOptions {
    adjust: AdjustLrFn::Original,
    decay: 0.0,
    iterations: 5,
    nesterov: true,
    momentum: 0.95,
    dampening: 0.0,
    epsilon: 1e-7,
    coefficients: (3.4445, -4.775, 2.0315),
};

/// Ten steps of Muon in double precision; PyTorch's takes the same (its running average is this velocity times a constant, which the normalisation
/// takes away), in half precision.
fn muon(shape: [usize; 2], gradient: impl Fn(usize) -> Vec<f64>, start: &[f64], options: MuonOptions) -> Vec<f64> {
    let MuonOptions { adjust, decay, iterations, nesterov, momentum, dampening, epsilon, coefficients: (a, b, c) } = options;
    let lr = 0.1;
    let (rows, columns) = (shape[0] as f64, shape[1] as f64);
    let rate = match adjust {
        AdjustLrFn::Original => lr * (rows / columns).max(1.0).sqrt(),
        AdjustLrFn::MatchRmsAdamW => lr * 0.2 * rows.max(columns).sqrt(),
    };
    let (mut x, mut velocity) = (start.to_vec(), vec![0.0; start.len()]);
    for step in 0..10 {
        let g = gradient(step);
        let share = if step == 0 { 1.0 } else { 1.0 - dampening };
        velocity.iter_mut().zip(&g).for_each(|(v, g)| *v = momentum * *v + share * g);
        let ahead: Vec<f64> = velocity.iter().zip(&g).map(|(v, g)| if nesterov { g + momentum * v } else { *v }).collect();
        let wide = shape[0] <= shape[1];
        let [n, m] = if wide { shape } else { [shape[1], shape[0]] };
        let mut o = if wide { ahead } else { transposed(&ahead, shape) };
        let norm = o.iter().map(|o| o * o).sum::<f64>().sqrt() + epsilon;
        o.iter_mut().for_each(|o| *o /= norm);
        for _ in 0..iterations {
            let gram = product(&o, &transposed(&o, [n, m]), [n, m, n]);
            let square = product(&gram, &gram, [n, n, n]);
            let quintic: Vec<f64> = gram.iter().zip(square).map(|(gram, square)| b * gram + c * square).collect();
            o = product(&quintic, &o, [n, n, m]).iter().zip(&o).map(|(new, old)| a * old + new).collect();
        }
        let o = if wide { o } else { transposed(&o, [n, m]) };
        x.iter_mut().zip(o).for_each(|(x, o)| *x = *x * (1.0 - lr * decay) - rate * o);
    }
    x
}

#[test]
fn muon_follows_its_paper() {
    for shape in [[2, 3], [4, 2], [3, 3]] {
        let options = [
            MUON,
            MuonOptions { adjust: AdjustLrFn::MatchRmsAdamW, decay: 0.1, ..MUON },
            MuonOptions { decay: 0.1, iterations: 3, nesterov: false, ..MUON },
            MuonOptions { momentum: 0.8, dampening: 0.3, ..MUON },
            // An epsilon as large as the norm, which the iteration can't make up for in one step.
            MuonOptions { epsilon: 2.5, iterations: 1, ..MUON },
            MuonOptions { epsilon: 0.3, coefficients: (1.5, -0.5, 0.0), iterations: 4, ..MUON },
            MuonOptions { epsilon: 1e-2, coefficients: (3.0, -3.2, 1.2), iterations: 3, decay: 0.05, ..MUON },
        ];
        for options in options {
            let MuonOptions { adjust, decay, iterations, nesterov, momentum, dampening, epsilon, coefficients: (a, b, c) } = options;
            let count = shape[0] * shape[1];
            let gradient = |step: usize| (0..count).map(|at| ((step * 7 + at * 5 + 3) % 11) as f64 * 0.25 - 1.1).collect::<Vec<f64>>();
            let start: Vec<f64> = (0..count).map(|at| at as f64 * 0.5 - 1.0).collect();
            let single = |values: &[f64]| TensorData::new(values.iter().map(|value| *value as f32).collect::<Vec<f32>>(), shape);
            let mut model = One { at: Param::from_tensor(Tensor::from_data(single(&start), &device())) };
            let momentum = MomentumConfig::new().with_momentum(momentum).with_dampening(dampening).with_nesterov(nesterov);
            let config = MuonConfig::new().with_adjust_lr_fn(adjust).with_ns_steps(iterations).with_momentum(momentum);
            let config = config.with_epsilon(epsilon as f32).with_ns_coefficients((a as f32, b as f32, c as f32));
            let mut optimizer = config.with_weight_decay((decay > 0.0).then(|| WeightDecayConfig::new(decay as f32))).init();
            for step in 0..10 {
                let mut gradients = GradientsParams::new();
                gradients.register(model.at.id, Tensor::<2>::from_data(single(&gradient(step)), &Device::default()));
                model = optimizer.step(0.1, model, gradients);
            }
            let found = model.at.val().into_data().try_to_vec::<f32>().unwrap();
            close(&found, &muon(shape, gradient, &start, options), 2e-4);
        }
    }
}

#[test]
fn muon_steps_matrices_only() {
    let message = panic_of(|| {
        let model = Free::new(MATRIX, VECTOR);
        let gradients = gradients(0, &model);
        MuonConfig::new().init().step(0.1, model, gradients)
    });
    assert!(message.contains("with_group"), "{message}");
}

#[test]
fn cautious_decay_spares_what_the_step_moves_away_from_zero() {
    let step = |cautious: bool| {
        let model = One { at: Param::from_tensor(Tensor::from_floats([[1.0, -1.0]], &device())) };
        let mut gradients = GradientsParams::new();
        gradients.register(model.at.id, Tensor::<2>::from_floats([[1.0, 1.0]], &Device::default()));
        let config = AdamWConfig::new().with_weight_decay(0.5).with_cautious_weight_decay(cautious).with_epsilon(1e-12);
        let model = config.init().step(0.1, model, gradients);
        model.at.val().into_data().try_to_vec::<f32>().unwrap()
    };
    close(&step(false), &[0.95 - 0.1, -0.95 - 0.1], 1e-5);
    close(&step(true), &[0.95 - 0.1, -1.0 - 0.1], 1e-5);
}

#[test]
fn the_first_adam_step_has_the_size_of_the_learning_rate() {
    for mut optimizer in [AdamConfig::new().with_epsilon(1e-12).init(), AdamWConfig::new().with_epsilon(1e-12).with_weight_decay(0.0).init()] {
        let before = Free::new(MATRIX, VECTOR);
        let start = before.values();
        let after = stepped(&mut optimizer, before, 0..1, 0.01).values();
        for (start, after) in start.iter().zip(after) {
            assert!(((start - after).abs() - 0.01).abs() < 1e-5);
        }
    }
}

/// The Rosenbrock function, with its minimum at (1, 1).
fn rosenbrock(model: One) -> (f64, GradientsParams) {
    let at = model.at.val();
    let (x, y) = (at.clone().narrow(1, 0, 1), at.narrow(1, 1, 1));
    let loss = ((y - x.clone().square()).square() * 100.0 + (x - 1.0).square()).sum();
    let gradients = GradientsParams::from_grads(loss.backward(), &model);
    (f64::from(loss.into_scalar::<f32>()), gradients)
}

#[test]
fn lbfgs_finds_the_bottom_of_a_curved_valley() {
    let mut model = One { at: Param::from_tensor(Tensor::from_floats([[-1.2, 1.0]], &device())) };
    let mut optimizer = LBFGSConfig::new().with_line_search_fn(LineSearchFn::StrongWolfe).init();
    for _ in 0..3 {
        (model, _) = optimizer.step(1.0, model, rosenbrock);
    }
    let found = model.at.val().into_data().try_to_vec::<f32>().unwrap();
    close(&found, &[1.0, 1.0], 1e-3);
}

#[test]
fn lbfgs_without_a_search_solves_a_quadratic() {
    let model = One { at: Param::from_tensor(Tensor::from_floats([[3.0, -2.0]], &device())) };
    let mut optimizer = LBFGSConfig::new().with_max_iter(30).init();
    let (model, first) = optimizer.step(0.5, model, |model: One| {
        let weights = Tensor::<2>::from_floats([[1.0, 4.0]], &Device::default());
        let loss = (model.at.val().square() * weights).sum();
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        (f64::from(loss.into_scalar::<f32>()), gradients)
    });
    assert!((first - 25.0).abs() < 1e-4);
    close(&model.at.val().into_data().try_to_vec::<f32>().unwrap(), &[0.0, 0.0], 1e-3);
}

#[test]
fn ten_calls_of_lbfgs_equal_pytorchs() {
    for case in &golden::read(env!("CARGO_MANIFEST_DIR"), "lbfgs.txt") {
        let tensor = |name: &str, device: &Device| {
            let golden = case.tensor(name);
            Tensor::<2>::from_data(TensorData::new(golden.f32(), golden.shape.clone()), device)
        };
        let (weight, center) = (tensor("weight", &device()), tensor("center", &device()));
        let mut model = One { at: Param::from_tensor(tensor("param", &device())) };
        let search = if case.flag("wolfe") { LineSearchFn::StrongWolfe } else { LineSearchFn::None };
        let config = LBFGSConfig::new().with_max_iter(case.size("max_iter")).with_history_size(case.size("history"));
        let mut optimizer = config.with_line_search_fn(search).init();
        let (after, losses) = (&case.tensor("after").values, &case.tensor("losses").values);
        for step in 0..10 {
            let loss;
            (model, loss) = optimizer.step(case.number("lr"), model, |model: One| {
                let x = model.at.val();
                let loss = (weight.clone() * (x.clone() - center.clone()).square()).sum() + x.cosh().log().sum();
                let gradients = GradientsParams::from_grads(loss.backward(), &model);
                (f64::from(loss.into_scalar::<f32>()), gradients)
            });
            close(&[loss as f32], &losses[step..=step], 2e-4);
            close(&model.at.val().into_data().try_to_vec::<f32>().unwrap(), &after[step * 6..step * 6 + 6], 2e-3);
        }
    }
}

#[test]
fn lbfgs_stops_where_it_is_told() {
    let evaluations = |config: LBFGSConfig| {
        let mut count = 0;
        let model = One { at: Param::from_tensor(Tensor::from_floats([[-1.2, 1.0]], &device())) };
        config.init().step(0.001, model, |model| {
            count += 1;
            rosenbrock(model)
        });
        count
    };
    let config = || LBFGSConfig::new().with_max_iter(12);
    assert_eq!(evaluations(config()), 12);
    assert_eq!(evaluations(config().with_max_eval(Some(5))), 5);
    // The first gradient's greatest part is 215.6; a change of the parameters of one is more than any step here makes.
    assert_eq!(evaluations(config().with_tolerance_grad(300.0)), 1);
    assert!(evaluations(config().with_tolerance_change(1.0)) <= 2);
}

#[test]
fn lbfgs_goes_on_from_its_record_exactly() {
    let start = || One { at: Param::from_tensor(Tensor::from_floats([[-1.2, 1.0]], &device())) };
    let make = || LBFGSConfig::new().with_max_iter(3).init();
    let mut optimizer = make();
    let (mut model, _) = optimizer.step(0.001, start(), rosenbrock);
    let mut loaded = make().from_bytes(optimizer.into_bytes().unwrap()).unwrap();
    let mut copy = model.clone();
    for _ in 0..3 {
        (model, _) = optimizer.step(0.001, model, rosenbrock);
        (copy, _) = loaded.step(0.001, copy, rosenbrock);
    }
    copy.at.val().into_data().assert_eq(&model.at.val().into_data(), true);
}

#[test]
fn accumulated_gradients_are_sums() {
    let model = Free::new(MATRIX, VECTOR);
    let mut accumulator = GradientsAccumulator::new();
    accumulator.accumulate(&model, gradients(0, &model));
    accumulator.accumulate(&model, gradients(1, &model));
    let sum = accumulator.grads();
    let expected = gradients(0, &model).get::<1>(model.vector.id).unwrap() + gradients(1, &model).get::<1>(model.vector.id).unwrap();
    sum.get::<1>(model.vector.id).unwrap().into_data().assert_eq(&expected.into_data(), true);
    assert!(accumulator.grads().is_empty());
}

#[test]
fn parameters_without_gradient_stay() {
    let model = Free::new(MATRIX, VECTOR);
    let mut gradients = gradients(0, &model);
    gradients.remove::<2>(model.matrix.id);
    let model = SgdConfig::new().init().step(0.1, model, gradients);
    close(&model.values()[..6], &MATRIX.as_flattened().iter().map(|value| f64::from(*value)).collect::<Vec<f64>>(), 0.0);
    assert!(model.vector.is_require_grad(), "a stepped parameter is trained on");
}
