//! Single operations: matrix products, chains, norms, reductions, dispatch.

use crate::harness::{Bench, Work};
use crate::random::floats;
use kiln::nn::LayerNormConfig;
use kiln::tensor::activation::{gelu, sigmoid, softmax};
use kiln::tensor::{Device, Tensor};

const GEMMS: [(&str, usize, usize, usize); 6] = [
    ("sgemm_256", 256, 256, 256),
    ("sgemm_512", 512, 512, 512),
    ("sgemm_1024", 1024, 1024, 1024),
    ("sgemm_2048", 2048, 2048, 2048),
    ("sgemm_64x784x128", 64, 784, 128),
    ("gemv_1x4096x4096", 1, 4096, 4096),
];

/// Computes `y` now. Kiln records and computes only what has an owner, so the result is held until the device is done.
fn done<const D: usize>(y: Tensor<D>, device: &Device) {
    device.sync().expect("the CPU does not fail");
    drop(y);
}

/// Runs the wanted workloads.
pub fn run(bench: &mut Bench, device: &Device) {
    for (name, m, k, n) in GEMMS {
        if bench.wants(name) {
            let (a, b) = (floats(device, [m, k], 0), floats(device, [k, n], 1));
            let flops = 2.0 * (m * k * n) as f64;
            bench.run(name, ((1e8 / flops) as usize).max(1), Work::Flops(flops), || {
                done(a.clone().matmul(b.clone()), device);
            });
        }
    }
    for (name, n, inner) in [("ew_chain_16m", 1 << 24, 1), ("ew_chain_4096", 4096, 100)] {
        if bench.wants(name) {
            let x = floats(device, [n], 0);
            bench.run(name, inner, Work::Bytes(8.0 * n as f64), || {
                let y = gelu(x.clone().mul_scalar(1.1).add_scalar(0.1)) * sigmoid(x.clone());
                done(y, device);
            });
        }
    }
    let bytes = 8.0 * (4096 * 1024) as f64;
    if bench.wants("softmax_4096x1024") {
        let x = floats(device, [4096, 1024], 0);
        bench.run("softmax_4096x1024", 1, Work::Bytes(bytes), || done(softmax(x.clone(), 1), device));
    }
    if bench.wants("layernorm_4096x1024") {
        let x = floats(device, [4096, 1024], 0);
        let norm = LayerNormConfig::new(1024).init(device);
        bench.run("layernorm_4096x1024", 1, Work::Bytes(bytes), || done(norm.forward(x.clone()), device));
    }
    let bytes = 4.0 * (4096 * 4096) as f64;
    for (name, dim) in [("sum0_4096", 0), ("sum1_4096", 1)] {
        if bench.wants(name) {
            let x = floats(device, [4096, 4096], 0);
            bench.run(name, 1, Work::Bytes(bytes), || done(x.clone().sum_dim(dim), device));
        }
    }
    if bench.wants("transpose_4096") {
        let x = floats(device, [4096, 4096], 0);
        // The result is held at the sync, so a dense transposed copy is written.
        bench.run("transpose_4096", 1, Work::Bytes(2.0 * bytes), || done(x.clone().transpose(), device));
    }
    dispatch(bench, device);
}

/// What an operation costs when there is next to nothing to compute.
fn dispatch(bench: &mut Bench, device: &Device) {
    let adds = |x: &Tensor<1>, a: &Tensor<1>| {
        let mut y = x.clone();
        for _ in 0..1000 {
            y = y + a.clone();
        }
        y
    };
    if bench.wants("add16_x1000") {
        let (x, a) = (floats(device, [16], 0), floats(device, [16], 1));
        bench.run("add16_x1000", 1, Work::None, || done(adds(&x, &a), device));
    }
    // Recording alone: the result is dropped before anything asks for it.
    if bench.wants("record_x1000") {
        let (x, a) = (floats(device, [16], 0), floats(device, [16], 1));
        bench.run("record_x1000", 1, Work::None, || drop(adds(&x, &a)));
    }
    if bench.wants("record_tape_x1000") {
        let tracked = device.clone().autodiff();
        let x = floats(&tracked, [16], 0).require_grad();
        let a = floats(&tracked, [16], 1);
        bench.run("record_tape_x1000", 1, Work::None, || drop(adds(&x, &a)));
    }
    // One cached program of one small kernel: lookup, launch, wait.
    if bench.wants("replay_1") {
        let (x, a) = (floats(device, [16], 0), floats(device, [16], 1));
        bench.run("replay_1", 100, Work::None, || done(x.clone() + a.clone(), device));
    }
}
