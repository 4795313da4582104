//! Matrices that are stepped together move as they do one after the other.

use kiln_module::module::{Module, Param, ParamGroup};
use kiln_optim::decay::WeightDecayConfig;
use kiln_optim::grad_clipping::GradientClipping;
use kiln_optim::lr_scheduler::constant::ConstantLr;
use kiln_optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use kiln_optim::{GradientsParams, ModuleOptimizer, MuonConfig};
use kiln_tensor::{Device, Tensor, TensorData, Tolerance};

use crate::problem::device;

/// Matrices of two shapes, in no order.
#[derive(Module, Debug)]
struct Mixed {
    first: Vec<Param<Tensor<2>>>,
    last: Param<Tensor<2>>,
}

const SHAPES: [[usize; 2]; 5] = [[2, 3], [3, 2], [2, 3], [2, 3], [3, 2]];

/// Numbers that differ by matrix and step.
fn numbers(matrix: usize, step: usize) -> TensorData {
    let values: Vec<f32> = (0..6).map(|at| ((matrix * 5 + step * 7 + at * 3) % 11) as f32 * 0.25 - 1.1).collect();
    TensorData::new(values, SHAPES[matrix])
}

fn start() -> Mixed {
    let param = |matrix: usize| Param::from_tensor(Tensor::from_data(numbers(matrix, 100), &device()));
    Mixed { first: (0..4).map(param).collect(), last: param(4) }
}

/// The matrices after each of six steps; gradients are there for those that `steps` names.
fn run(mut optimizer: ModuleOptimizer, steps: &[usize], reload: Option<fn() -> ModuleOptimizer>) -> Vec<TensorData> {
    let mut model = start();
    let mut rates = ModuleLrScheduler::new(ConstantLr::new(0.1)).with_group(ParamGroup::from_path("first.2"), 0.03);
    let mut seen = Vec::new();
    for step in 0..6 {
        let mut gradients = GradientsParams::new();
        for matrix in steps {
            let param = model.first.get(*matrix).unwrap_or(&model.last);
            gradients.register(param.id, Tensor::<2>::from_data(numbers(*matrix, step), &Device::default()));
        }
        if let (3, Some(reload)) = (step, reload) {
            optimizer = reload().from_bytes(optimizer.into_bytes().unwrap()).unwrap();
        }
        model = optimizer.step(rates.step(), model, gradients);
        assert!(model.last.is_autodiff(), "a parameter stays trained");
        seen.extend(steps.iter().map(|matrix| model.first.get(*matrix).unwrap_or(&model.last).val().into_data()));
    }
    seen
}

fn optimizer() -> ModuleOptimizer {
    MuonConfig::new().with_weight_decay(Some(WeightDecayConfig::new(0.1))).init().with_grad_clipping(GradientClipping::Value(0.8))
}

#[test]
fn matrices_stepped_together_move_as_they_do_alone() {
    let together = run(optimizer(), &[0, 1, 2, 3, 4], None);
    let loaded = run(optimizer(), &[0, 1, 2, 3, 4], Some(optimizer));
    for matrix in 0..5 {
        let alone = run(optimizer(), &[matrix], None);
        for (step, alone) in alone.iter().enumerate() {
            together[step * 5 + matrix].assert_approx_eq(alone, Tolerance::<f32>::rel_abs(1e-4, 1e-5));
        }
    }
    for (found, expected) in loaded.iter().zip(&together) {
        found.assert_eq(expected, true);
    }
}

/// More elements than are stacked at once: several stacks, the last with what is left.
#[test]
fn stacks_are_bounded() {
    let shape = [1024, 1024];
    let param = || Param::from_tensor(Tensor::<2>::zeros(shape, &device()));
    let model = Mixed { first: (0..5).map(|_| param()).collect(), last: param() };
    let mut gradients = GradientsParams::new();
    let values = |n: usize| TensorData::new((0..1 << 20).map(|at| ((at * 7 + n) % 1013) as f32 / 500.0 - 1.0).collect::<Vec<f32>>(), shape);
    for (n, param) in model.first.iter().chain([&model.last]).enumerate() {
        // The last is the first again.
        gradients.register(param.id, Tensor::<2>::from_data(values(n % 5), &Device::default()));
    }
    let model = MuonConfig::new().with_ns_steps(1).init().step(1.0, model, gradients);
    let moved = |param: &Param<Tensor<2>>| param.val().into_data();
    moved(&model.first[0]).assert_approx_eq(&moved(&model.last), Tolerance::<f32>::rel_abs(1e-4, 1e-6));
    assert!(model.first[1].val().abs().sum().into_scalar::<f32>() > 0.0);
    assert_ne!(moved(&model.first[0]), moved(&model.first[1]));
}
