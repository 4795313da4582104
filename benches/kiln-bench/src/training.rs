//! Training steps: forward, loss, backward and optimizer of an MLP, a CNN and the GPT.

#[cfg(not(feature = "cuda"))]
use crate::clocked::Clock;
#[cfg(not(feature = "cuda"))]
use crate::gpt::{Gpt, SEQ, VOCAB};
#[cfg(not(feature = "cuda"))]
use crate::harness::{Bench, Work};
#[cfg(not(feature = "cuda"))]
use crate::random::{floats, labels};
use kiln::module::Module;
use kiln::nn::conv::{Conv2d, Conv2dConfig};
#[cfg(not(feature = "cuda"))]
use kiln::nn::loss::CrossEntropyLossConfig;
use kiln::nn::pool::{MaxPool2d, MaxPool2dConfig};
use kiln::nn::{Dropout, DropoutConfig, Linear, LinearConfig};
#[cfg(not(feature = "cuda"))]
use kiln::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer};
use kiln::tensor::activation::relu;
use kiln::tensor::{Device, Tensor};

/// 784-512-256-10.
#[derive(Module, Debug)]
pub struct Mlp {
    a: Linear,
    b: Linear,
    c: Linear,
}

impl Mlp {
    /// With random weights.
    pub fn new(device: &Device) -> Self {
        let linear = |i, o| LinearConfig::new(i, o).init(device);
        Self { a: linear(784, 512), b: linear(512, 256), c: linear(256, 10) }
    }

    /// `[batch, 784]` to `[batch, 10]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let x = relu(self.a.forward(x));
        self.c.forward(relu(self.b.forward(x)))
    }
}

/// Two convolutions and two linear layers.
#[derive(Module, Debug)]
pub struct Cnn {
    c1: Conv2d,
    c2: Conv2d,
    pool: MaxPool2d,
    drop: Dropout,
    l1: Linear,
    l2: Linear,
}

impl Cnn {
    /// With random weights.
    pub fn new(device: &Device) -> Self {
        Self {
            c1: Conv2dConfig::new([1, 32], [3, 3]).init(device),
            c2: Conv2dConfig::new([32, 64], [3, 3]).init(device),
            pool: MaxPool2dConfig::new([2, 2]).with_strides([2, 2]).init(),
            drop: DropoutConfig::new(0.25).init(),
            l1: LinearConfig::new(9216, 128).init(device),
            l2: LinearConfig::new(128, 10).init(device),
        }
    }

    /// `[batch, 1, 28, 28]` to `[batch, 10]`.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = relu(self.c2.forward(relu(self.c1.forward(x))));
        let x = self.drop.forward(self.pool.forward(x)).flatten::<2>(1, 3);
        self.l2.forward(relu(self.l1.forward(x)))
    }
}

#[cfg(not(feature = "cuda"))]
/// How the steps of a workload are timed.
enum Timing<'a> {
    /// As a whole.
    Whole,
    /// The part outside of kernels, on the clock's device.
    Outside(&'a Clock),
}

#[cfg(not(feature = "cuda"))]
/// Times optimizer steps on one fixed batch.
fn train<M: Module>(
    bench: &mut Bench,
    (name, timing): (&str, &Timing<'_>),
    device: &Device,
    model: M,
    mut optimizer: ModuleOptimizer,
    loss: impl Fn(&M) -> Tensor<1>,
) {
    let mut model = Some(model);
    let step = || {
        let current = model.take().expect("the step puts the model back");
        let grads = GradientsParams::from_grads(loss(&current).backward(), &current);
        model = Some(optimizer.step(1e-3, current, grads));
        device.sync().expect("the CPU does not fail");
    };
    match timing {
        Timing::Whole => bench.run(name, 1, Work::None, step),
        Timing::Outside(clock) => clock.run(bench, name, step),
    }
}

#[cfg(not(feature = "cuda"))]
/// Runs the wanted workloads.
pub fn run(bench: &mut Bench, device: &Device) {
    steps(bench, device, &Timing::Whole, "");
    let clock = Clock::new();
    steps(bench, &clock.device, &Timing::Outside(&clock), "outside_");
}

#[cfg(not(feature = "cuda"))]
/// The steps, their names behind a prefix.
fn steps(bench: &mut Bench, device: &Device, timing: &Timing<'_>, prefix: &str) {
    let device = &device.clone().autodiff();
    let entropy = CrossEntropyLossConfig::new().init(device);
    for (name, batch) in [("mlp_train_b64", 64), ("mlp_train_b512", 512)] {
        let name = format!("{prefix}{name}");
        if bench.wants(&name) {
            let (x, y) = (floats(device, [batch, 784], 0), labels(device, [batch], 10, 0));
            let loss = |m: &Mlp| entropy.forward(m.forward(x.clone()), y.clone());
            train(bench, (&name, timing), device, Mlp::new(device), AdamConfig::new().init(), loss);
        }
    }
    let name = format!("{prefix}cnn_train_b64");
    if bench.wants(&name) {
        let (x, y) = (floats(device, [64, 1, 28, 28], 0), labels(device, [64], 10, 0));
        let loss = |m: &Cnn| entropy.forward(m.forward(x.clone()), y.clone());
        train(bench, (&name, timing), device, Cnn::new(device), AdamConfig::new().init(), loss);
    }
    let name = format!("{prefix}gpt_train_b8");
    if bench.wants(&name) {
        let x = labels(device, [8, SEQ], VOCAB as u64, 0);
        let y = labels(device, [8 * SEQ], VOCAB as u64, 1);
        let loss = |m: &Gpt| entropy.forward(m.forward(x.clone()).reshape([8 * SEQ, VOCAB]), y.clone());
        train(bench, (&name, timing), device, Gpt::new(device), AdamWConfig::new().init(), loss);
    }
}
