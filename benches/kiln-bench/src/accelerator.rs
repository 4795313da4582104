//! The workloads of the GPU baselines: the same names, sizes and dtypes as the PyTorch program's, one JSON line each.

use std::time::{Duration, Instant};

use crate::amp::{Gpt, Sizes};
use crate::llama::Llama;
use crate::random::{floats, labels};
use crate::resnet50::ResNet50;
use crate::training::{Cnn, Mlp};
use kiln::module::Module;
use kiln::nn::LayerNormConfig;
use kiln::nn::loss::CrossEntropyLossConfig;
use kiln::optim::momentum::MomentumConfig;
use kiln::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer, SgdConfig};
use kiln::tensor::activation::{gelu, sigmoid, softmax};
use kiln::tensor::module::{attention, conv2d};
use kiln::tensor::ops::{AttentionModuleOptions, ConvOptions};
use kiln::tensor::{DType, Device, Distribution, Int, MatmulPrecision, Tensor};

/// What is measured, and where.
struct Bench<'a> {
    filter: &'a [String],
    list: bool,
    /// Whether steps are only printed.
    on_paper: bool,
    device: &'a Device,
}

fn ok<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|e| panic!("{e}"))
}

impl Bench<'_> {
    fn wants(&self, workload: &str) -> bool {
        if self.list {
            println!("{workload}");
            return false;
        }
        self.filter.is_empty() || self.filter.iter().any(|prefix| workload.starts_with(prefix.as_str()))
    }

    /// Times `f`, which starts its work on the device. `together`: how many starts a sample has before it waits, so that waiting does not count for short work.
    fn time(&self, workload: &str, dtype: &str, together: usize, figure: impl Fn(f64) -> String, mut f: impl FnMut()) {
        if self.on_paper {
            println!("== {workload} {dtype}");
            crate::paper::print(true);
            f();
            ok(self.device.flush());
            f();
            crate::paper::print(false);
            // What the host does for a step: recording, finding the program, handing it over.
            for _ in 0..20 {
                f();
            }
            let start = Instant::now();
            for _ in 0..200 {
                f();
            }
            return println!("host: {:.1} us a step", start.elapsed().as_secs_f64() * 1e6 / 200.0);
        }
        let start = Instant::now();
        f();
        ok(self.device.sync());
        let first = start.elapsed().as_secs_f64();
        for _ in 0..6 {
            f();
            ok(self.device.sync());
        }
        let (start, mut samples) = (Instant::now(), Vec::new());
        while samples.len() < 10 || (start.elapsed() < Duration::from_millis(700) && samples.len() < 3000) {
            let sample = Instant::now();
            for _ in 0..together {
                f();
            }
            ok(self.device.sync());
            samples.push(sample.elapsed().as_secs_f64() / together as f64);
            if samples.len() >= 3 && start.elapsed() > Duration::from_secs(6) {
                break;
            }
        }
        samples.sort_by(f64::total_cmp);
        let median = samples[samples.len() / 2];
        println!(
            "{{\"framework\": \"kiln\", \"workload\": \"{workload}\", \"dtype\": \"{dtype}\", \"median_s\": {median:e}, \"min_s\": {:e}, \"first_s\": {first:.3}, {}}}",
            samples[0],
            figure(median)
        );
    }

    fn random<const D: usize>(&self, dims: [usize; D], dtype: DType) -> Tensor<D> {
        let x: Tensor<D> = Tensor::<D>::random(dims, Distribution::Normal(0.0, 1.0), self.device).cast(dtype);
        ok(self.device.sync());
        x
    }

    /// Starts what `y` needs and lets it go.
    fn start<const D: usize>(&self, y: Tensor<D>) {
        ok(self.device.flush());
        drop(y);
    }
}

fn tflops(flops: f64) -> impl Fn(f64) -> String {
    move |s| format!("\"TFLOPs\": {:.1}", flops / s / 1e12)
}

fn gbps(bytes: f64) -> impl Fn(f64) -> String {
    move |s| format!("\"GBps\": {:.1}", bytes / s / 1e9)
}

fn rate(what: &'static str, count: f64) -> impl Fn(f64) -> String {
    move |s| format!("\"{what}\": {:.1}", count / s)
}

/// Runs the wanted workloads.
pub fn run(filter: &[String], list: bool, on_paper: bool, device: &Device) {
    let bench = Bench { filter, list, on_paper, device };
    println!("{{\"kiln\": \"{}\", \"gpu\": \"{}\"}}", env!("CARGO_PKG_VERSION"), device.info().name);
    products(&bench);
    chains(&bench);
    attentions(&bench);
    convolutions(&bench);
    dispatch(&bench);
    training(&bench);
    decoding(&bench);
}

fn products(bench: &Bench<'_>) {
    for (dtype, name) in [(DType::BF16, "bf16"), (DType::F32, "f32")] {
        for n in [512, 1024, 2048, 4096, 8192] {
            let workload = format!("matmul_{n}");
            if bench.wants(&workload) && (dtype == DType::BF16 || n <= 4096) {
                let (a, b) = (bench.random([n, n], dtype), bench.random([n, n], dtype));
                bench.time(&workload, name, 20, tflops(2.0 * (n * n * n) as f64), || bench.start(a.clone().matmul(b.clone())));
            }
        }
    }
}

fn chains(bench: &Bench<'_>) {
    if bench.wants("chain_256M") {
        let x = bench.random([1 << 28], DType::BF16);
        bench.time("chain_256M", "bf16", 10, gbps(4.0 * (1u64 << 28) as f64), || {
            bench.start(gelu(x.clone().mul_scalar(1.5).add_scalar(0.5)) * sigmoid(x.clone()));
        });
    }
    let square = [8192, 8192];
    let bytes = 4.0 * (8192.0 * 8192.0);
    if bench.wants("softmax_8192x8192") {
        let x = bench.random(square, DType::BF16);
        bench.time("softmax_8192x8192", "bf16", 20, gbps(bytes), || bench.start(softmax(x.clone(), 1)));
    }
    if bench.wants("softmax_4096x50304") {
        let x = bench.random([4096, 50304], DType::BF16);
        bench.time("softmax_4096x50304", "bf16", 10, gbps(4.0 * (4096 * 50304) as f64), || bench.start(softmax(x.clone(), 1)));
    }
    if bench.wants("layernorm_8192x8192") {
        let x = bench.random(square, DType::BF16);
        let norm = LayerNormConfig::new(8192).init(bench.device);
        bench.time("layernorm_8192x8192", "bf16", 20, gbps(bytes), || bench.start(norm.forward(x.clone().cast(DType::F32)).cast(DType::BF16)));
    }
    // The baselines count the input twice; here is what moves.
    for (name, dim) in [("sum0_8192x8192", 0), ("sum1_8192x8192", 1)] {
        if bench.wants(name) {
            let x = bench.random(square, DType::BF16);
            bench.time(name, "bf16", 20, gbps(bytes / 2.0), || bench.start(x.clone().sum_dim(dim)));
        }
    }
    if bench.wants("transpose_8192") {
        let x = bench.random(square, DType::BF16);
        bench.time("transpose_8192", "bf16", 20, gbps(bytes), || bench.start(x.clone().transpose()));
    }
}

fn attentions(bench: &Bench<'_>) {
    for (length, is_causal) in [(1024, true), (4096, true), (16384, true), (4096, false)] {
        let (batch, heads, width) = ((16384 / length).max(1), 16, 128);
        let flops = 4.0 * (batch * heads * length * length * width) as f64 * if is_causal { 0.5 } else { 1.0 };
        let dims = [batch, heads, length, width];
        let options = || AttentionModuleOptions { is_causal, ..Default::default() };
        let name = format!("sdpa_fwd_S{length}_causal{}", is_causal as u8);
        if bench.wants(&name) {
            let [q, k, v] = [0, 1, 2].map(|_| bench.random(dims, DType::BF16));
            bench.time(&name, "bf16", 5, tflops(flops), || bench.start(attention(q.clone(), k.clone(), v.clone(), None, None, options())));
        }
        let name = format!("sdpa_fwdbwd_S{length}_causal{}", is_causal as u8);
        if bench.wants(&name) {
            let [q, k, v] = [0, 1, 2].map(|_| Tensor::from_inner(bench.random(dims, DType::BF16)).require_grad());
            bench.time(&name, "bf16", 3, tflops(3.5 * flops), || {
                let y = attention(q.clone(), k.clone(), v.clone(), None, None, options());
                let grads = y.sum().backward();
                let all = [&q, &k, &v].map(|x| x.grad(&grads));
                ok(bench.device.flush());
                drop(all);
            });
        }
    }
}

/// Convolutions of 32-bit floats as residual networks have them, with both gradients.
fn convolutions(bench: &Bench<'_>) {
    for (channels, side, kernel) in [(64, 56, 3), (256, 14, 3), (256, 56, 1), (512, 7, 3)] {
        let name = format!("conv{kernel}x{kernel}_{channels}c_{side}_b64");
        if !bench.wants(&name) {
            continue;
        }
        let flops = 3.0 * 2.0 * (64 * channels * channels * side * side * kernel * kernel) as f64;
        let [x, w, dy] = [[64, channels, side, side], [channels, channels, kernel, kernel], [64, channels, side, side]]
            .map(|dims| Tensor::from_inner(bench.random(dims, DType::F32)));
        let (x, w) = (x.require_grad(), w.require_grad());
        let options = || ConvOptions::new([1, 1], [kernel / 2, kernel / 2], [1, 1], 1);
        bench.time(&name, "f32", 3, tflops(flops), || {
            let y = conv2d(x.clone(), w.clone(), None, options());
            let grads = (y.clone() * dy.clone()).sum().backward();
            let all = (x.grad(&grads), w.grad(&grads), y);
            ok(bench.device.flush());
            drop(all);
        });
    }
}

fn dispatch(bench: &Bench<'_>) {
    if bench.wants("dispatch_1000_adds") {
        let (x, one) = (bench.random([16], DType::F32), bench.random([16], DType::F32));
        bench.time("dispatch_1000_adds", "f32", 1, rate("runs_per_s", 1.0), || {
            let mut y = x.clone();
            for _ in 0..1000 {
                y = y + one.clone();
            }
            bench.start(y);
        });
    }
}

/// Times whole optimizer steps on one fixed batch.
fn train<M: Module>(
    bench: &Bench<'_>,
    (name, dtype): (&str, &str),
    model: M,
    mut optimizer: ModuleOptimizer,
    figure: impl Fn(f64) -> String,
    loss: impl Fn(&M) -> Tensor<1>,
) {
    let mut model = Some(model);
    bench.time(name, dtype, 1, figure, || {
        let current = model.take().expect("the step puts the model back");
        let grads = GradientsParams::from_grads(loss(&current).backward(), &current);
        model = Some(optimizer.step(1e-3, current, grads));
    });
}

fn training(bench: &Bench<'_>) {
    let device = &bench.device.clone().autodiff();
    let entropy = CrossEntropyLossConfig::new().init(device);
    let both = [("", MatmulPrecision::Highest), ("_tf32", MatmulPrecision::High)];
    for (batch, (mode, precision)) in [64, 1024].into_iter().flat_map(|b| both.map(|p| (b, p))) {
        bench.device.set_matmul_precision(precision);
        let name = format!("mlp_train_b{batch}{mode}");
        if bench.wants(&name) {
            let x = floats(device, [batch, 784], 0);
            let y = labels(device, [batch], 10, 0);
            let loss = |m: &Mlp| entropy.forward(m.forward(x.clone()), y.clone());
            train(bench, (&name, "f32"), Mlp::new(device), AdamConfig::new().init(), rate("steps_per_s", 1.0), loss);
        }
        let name = format!("cnn_train_b{batch}{mode}");
        if bench.wants(&name) {
            let x = floats(device, [batch, 1, 28, 28], 0);
            let y = labels(device, [batch], 10, 0);
            let loss = |m: &Cnn| entropy.forward(m.forward(x.clone()), y.clone());
            train(bench, (&name, "f32"), Cnn::new(device), AdamConfig::new().init(), rate("steps_per_s", 1.0), loss);
        }
    }
    bench.device.set_matmul_precision(MatmulPrecision::Highest);
    if bench.wants("resnet50_train_b256") {
        let x: Tensor<4> = Tensor::<4>::random([256, 3, 224, 224], Distribution::Normal(0.0, 1.0), device).cast(DType::BF16);
        let y = labels(device, [256], 1000, 0);
        let loss = |m: &ResNet50| entropy.forward(m.forward(x.clone()), y.clone());
        let sgd = SgdConfig::new().with_momentum(Some(MomentumConfig::new().with_momentum(0.9))).init();
        train(bench, ("resnet50_train_b256", "bf16-amp"), ResNet50::new(device), sgd, rate("images_per_s", 256.0), loss);
    }
    let chars = Sizes { layers: 6, width: 384, heads: 6, vocab: 65, length: 256 };
    let gpt2 = Sizes { layers: 12, width: 768, heads: 12, vocab: 50304, length: 1024 };
    for (name, sizes, batch) in [("chargpt_10M_train_b64", chars, 64), ("gpt2_124M_train_b32", gpt2, 32)] {
        if bench.wants(name) {
            let x = labels(device, [batch, sizes.length], sizes.vocab as u64 - 40, 0);
            let y = labels(device, [batch * sizes.length], sizes.vocab as u64 - 40, 1);
            let loss = |m: &Gpt| entropy.forward(m.forward(x.clone()), y.clone());
            let tokens = rate("tokens_per_s", (batch * sizes.length) as f64);
            train(bench, (name, "bf16-amp"), Gpt::new(sizes, device), AdamWConfig::new().init(), tokens, loss);
        }
    }
}

fn decoding(bench: &Bench<'_>) {
    if bench.wants("llama1.2B_decode_b1") {
        let mut model = Llama::new(bench.device);
        let token = Tensor::<1, Int>::from_data([5], bench.device);
        let figure = |s: f64| format!("\"tokens_per_s\": {:.1}, \"GBps\": {:.1}", 1.0 / s, Llama::bytes() / s / 1e9);
        bench.time("llama1.2B_decode_b1", "bf16", 1, figure, || {
            let next = model.decode(token.clone(), 700);
            ok(bench.device.flush());
            drop(next);
        });
    }
}
