//! The updates of a step in kernels: few launches, however many parameters there are.

use std::sync::{Arc, Mutex};

use kiln_compiler::observed::{Observed, Observer};
use kiln_cpu::CpuRuntime;
use kiln_ir::Program;
use kiln_module::module::{Module, Param, ParamGroup};
use kiln_optim::decay::WeightDecayConfig;
use kiln_optim::grad_clipping::{GradientClipping, GradientClippingConfig};
use kiln_optim::momentum::MomentumConfig;
use kiln_optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, AdanConfig, AdjustLrFn, GradientsParams, LambConfig, LionConfig, ModuleOptimizer,
    MuonConfig, RmsPropConfig, SgdConfig,
};
use kiln_tensor::{Device, Int, Tensor};

/// The launches and kernels of every program that was compiled.
#[derive(Default)]
struct Programs(Mutex<Vec<(usize, usize)>>);

impl Observer for Programs {
    fn compiling(&self, program: &Program) {
        self.0.lock().unwrap().push((program.launches.len(), program.kernels().count()));
    }
}

/// Parameters of different shapes.
#[derive(Module, Debug)]
struct Many {
    matrices: Vec<Param<Tensor<2>>>,
    vectors: Vec<Param<Tensor<1>>>,
}

impl Many {
    fn new(count: usize, width: usize, device: &Device) -> Self {
        let device = device.clone().autodiff();
        Self {
            matrices: (0..count).map(|n| Param::from_tensor(Tensor::ones([3 + n, width], &device))).collect(),
            vectors: (0..count).map(|n| Param::from_tensor(Tensor::ones([2 + n], &device))).collect(),
        }
    }
}

/// An optimizer's name, the launches and kernels of a step of 24 parameters in a program of their own, and how it is made. L-BFGS is not here: each of its steps
/// calls the user's closure, and how often depends on the losses that it reads in between.
type Make = (&'static str, usize, usize, fn() -> ModuleOptimizer);

fn decay() -> Option<WeightDecayConfig> {
    Some(WeightDecayConfig::new(0.01))
}

#[rustfmt::skip]
const OPTIMIZERS: &[Make] = &[
    ("sgd", 1, 24, || SgdConfig::new().init()),
    ("sgd, decay", 1, 24, || SgdConfig::new().with_weight_decay(decay()).init()),
    ("sgd, momentum", 1, 24, || SgdConfig::new().with_momentum(Some(MomentumConfig::new())).with_weight_decay(decay()).init()),
    ("sgd, nesterov", 1, 24, || SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_nesterov(true))).init()),
    ("sgd, clipped by value", 1, 24, || SgdConfig::new().with_gradient_clipping(Some(GradientClippingConfig::Value(0.5))).init()),
    ("adam", 1, 24, || AdamConfig::new().init()),
    ("adam, amsgrad, decay", 1, 24, || AdamConfig::new().with_amsgrad(true).with_weight_decay(decay()).init()),
    ("adamw", 1, 24, || AdamWConfig::new().init()),
    ("adamw, amsgrad", 1, 24, || AdamWConfig::new().with_amsgrad(true).init()),
    ("adamw, cautious", 1, 24, || AdamWConfig::new().with_cautious_weight_decay(true).init()),
    ("adan", 1, 24, || AdanConfig::new().with_weight_decay(0.01).init()),
    ("adan, no prox", 1, 24, || AdanConfig::new().with_weight_decay(0.01).with_no_prox(true).init()),
    ("adagrad", 1, 24, || AdaGradConfig::new().with_lr_decay(0.1).with_weight_decay(decay()).init()),
    ("rmsprop", 1, 24, || RmsPropConfig::new().init()),
    ("rmsprop, no momentum", 1, 24, || RmsPropConfig::new().with_momentum(0.0).with_weight_decay(decay()).init()),
    ("rmsprop, centered", 1, 24, || RmsPropConfig::new().with_centered(true).init()),
    ("lion", 1, 24, || LionConfig::new().init()),
    ("lion, decay", 1, 24, || LionConfig::new().with_weight_decay(0.1).init()),
    ("lamb", 1, 24, || LambConfig::new().with_weight_decay(0.01).init()),
    ("lamb, no trust ratio", 1, 24, || LambConfig::new().with_use_trust_ratio(false).init()),
    ("adafactor", 4, 60, || AdafactorConfig::new().init()),
    ("adafactor, unscaled", 4, 60, || AdafactorConfig::new().with_scale_parameter(false).with_relative_step(false).with_weight_decay(0.01).init()),
    ("muon for matrices, adamw", 183, 222, || {
        let matrices = ParamGroup::from_path("matrices");
        ModuleOptimizer::from(AdamWConfig::new().build()).with_group(matrices, MuonConfig::new().with_adjust_lr_fn(AdjustLrFn::MatchRmsAdamW).build(), None)
    }),
    ("adam, clipped by norm", 1, 24, || AdamConfig::new().init().with_grad_clipping(GradientClipping::Norm(1.0))),
    ("adam, clipped by the norm of all", 4, 73, || AdamConfig::new().init().with_global_norm_clipping(1.0)),
];

fn programs_of_steps(count: usize, width: usize, make: fn() -> ModuleOptimizer) -> Vec<(usize, usize)> {
    let programs = Arc::new(Programs::default());
    let device = Device::with_runtime("cpu", Arc::new(Observed::new(CpuRuntime::global(), programs.clone())));
    let mut model = Many::new(count, width, &device);
    let mut optimizer = make();
    let mut all = Vec::new();
    for _ in 0..6 {
        let mut gradients = GradientsParams::new();
        model.matrices.iter().for_each(|param| gradients.register(param.id, Tensor::<2>::ones(param.lazy_shape(), &device)));
        model.vectors.iter().for_each(|param| gradients.register(param.id, Tensor::<1>::ones(param.lazy_shape(), &device)));
        device.sync().unwrap();
        programs.0.lock().unwrap().clear();
        model = optimizer.step(0.1, model, gradients);
        device.sync().unwrap();
        all.extend(programs.0.lock().unwrap().iter().copied());
    }
    all
}

/// Steps without momentum, or whose first step is unlike the later ones, are compiled up to three times; the last program is the one that goes on.
fn steady(count: usize, width: usize, make: fn() -> ModuleOptimizer) -> (usize, usize) {
    *programs_of_steps(count, width, make).last().unwrap()
}

#[test]
fn elementwise_updates_of_a_step_are_one_launch_of_one_kernel_a_parameter() {
    for (name, launches, kernels, make) in OPTIMIZERS.iter().filter(|row| row.1 == 1) {
        let programs = programs_of_steps(12, 5, *make);
        assert!(programs.iter().all(|(found, _)| found == launches), "{name}: {programs:?}");
        assert_eq!(programs.last().unwrap().1, *kernels, "{name}");
        assert_eq!(steady(3, 5, *make), (*launches, kernels / 4), "{name}");
    }
}

#[test]
fn updates_by_norms_and_averages_take_as_many_launches_for_any_number_of_parameters() {
    let grows = |name: &str| name.starts_with("muon");
    for (name, launches, kernels, make) in OPTIMIZERS.iter().filter(|row| row.1 > 1 && !grows(row.0)) {
        assert_eq!(steady(12, 5, *make), (*launches, *kernels), "{name}");
        assert_eq!(steady(3, 5, *make).0, *launches, "{name}");
    }
}

/// Elements are so many here that a sum over a parameter is taken in two stages, over all cores.
#[test]
fn updates_of_large_parameters_share_launches_too() {
    for (name, launches, _, make) in OPTIMIZERS.iter().filter(|row| row.1 <= 4) {
        let (few, many) = (steady(3, 30_000, *make).0, steady(12, 30_000, *make).0);
        match *name {
            // The direction of each parameter is in memory while its norm is taken. To share launches, all of them would have to be there at once.
            // So is each second moment; its sums over both axes are launches too.
            "adafactor" | "adafactor, unscaled" => assert!(few <= 3 * 3 + 1 && many <= 3 * 12, "{name}: {few}, {many}"),
            "adam, clipped by the norm of all" => assert_eq!((few, many), (5, 5), "{name}"),
            "lamb" => assert!(few <= 3 * 3 + 1 && many <= 2 * 12 + 1, "{name}: {few}, {many}"),
            // The partial sums of all norms, the norms, the updates.
            "adam, clipped by norm" => assert_eq!((few, many), (3, 3), "{name}"),
            _ => assert_eq!((few, many), (*launches, *launches), "{name}"),
        }
    }
}

/// Newton and Schulz's five iterations are fifteen products, each in a launch of its own: of a stack for matrices of one shape, of which there is one here for
/// each of twelve shapes.
#[test]
fn orthogonalised_updates_take_a_launch_for_each_product_of_a_stack() {
    for (name, launches, kernels, make) in OPTIMIZERS.iter().filter(|row| row.0.starts_with("muon")) {
        assert_eq!(steady(12, 5, *make), (*launches, *kernels), "{name}");
        assert!(*launches <= 15 * 12 + 3, "{name}");
        assert!(steady(3, 5, *make).0 <= 15 * 3 + 3, "{name}");
    }
    let launches = |count: usize, wide: bool| {
        let shape = if wide { [4, 6] } else { [6, 4] };
        let model = |device: &Device| Alike { matrices: (0..count).map(|_| Param::from_tensor(Tensor::ones(shape, device))).collect() };
        programs_of(model, |model| model.matrices.iter().collect(), || MuonConfig::new().init()).last().unwrap().0
    };
    for wide in [true, false] {
        let (few, many) = (launches(3, wide), launches(12, wide));
        assert!(few == many && many <= 15 + 4, "{few} and {many} launches");
    }
}

/// Matrices of one shape.
#[derive(Module, Debug)]
struct Alike {
    matrices: Vec<Param<Tensor<2>>>,
}

fn programs_of<M: Module>(
    model: impl Fn(&Device) -> M,
    matrices: impl Fn(&M) -> Vec<&Param<Tensor<2>>>,
    make: impl Fn() -> ModuleOptimizer,
) -> Vec<(usize, usize)> {
    let programs = Arc::new(Programs::default());
    let device = Device::with_runtime("cpu", Arc::new(Observed::new(CpuRuntime::global(), programs.clone())));
    let mut model = model(&device.clone().autodiff());
    let mut optimizer = make();
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut gradients = GradientsParams::new();
        matrices(&model).iter().for_each(|param| gradients.register(param.id, Tensor::<2>::ones(param.lazy_shape(), &device)));
        device.sync().unwrap();
        programs.0.lock().unwrap().clear();
        model = optimizer.step(0.1, model, gradients);
        device.sync().unwrap();
        all.extend(programs.0.lock().unwrap().iter().copied());
    }
    all
}

/// The kernels of whole steps on tables that rows are taken from, whose gradients are in memory.
fn kernels_of_scattered_steps(make: fn() -> ModuleOptimizer) -> usize {
    let programs = Arc::new(Programs::default());
    let device = Device::with_runtime("cpu", Arc::new(Observed::new(CpuRuntime::global(), programs.clone())));
    let mut model = Many::new(4, 5, &device);
    let mut optimizer = make();
    for _ in 0..6 {
        let rows = Tensor::<1, Int>::from_ints([0, 2, 2], &device);
        let losses = model.matrices.iter().map(|table| table.val().select(0, rows.clone()).square().sum());
        let loss = losses.reduce(|a, b| a + b).unwrap();
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.1, model, gradients);
        device.sync().unwrap();
    }
    programs.0.lock().unwrap().last().unwrap().1
}

#[test]
fn updates_by_scattered_gradients_are_one_kernel_each() {
    // The update of plain descent is one expression.
    let least = kernels_of_scattered_steps(|| SgdConfig::new().init());
    for (name, _, _, make) in OPTIMIZERS.iter().filter(|row| row.1 == 1) {
        assert_eq!(kernels_of_scattered_steps(*make), least, "{name}");
    }
}
