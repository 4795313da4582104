//! What recording, taping and replaying cost, on a device whose kernels do nothing.
//!
//! Budgets: 80 ns to record an op (drop and liveness scan included), 200 ns with tape, 1 µs for a cached flush plus 0.2 µs a kernel.
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use kiln_compiler::null::Null;
use kiln_ir::DType;
use kiln_tensor::Device;
use kiln_tensor::raw::{AttentionOptions, RawTensor};

/// Median nanoseconds of `f`, which does `n` things, for one of them.
fn measure(name: &str, n: usize, mut f: impl FnMut()) {
    for _ in 0..20 {
        f();
    }
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed().as_nanos() as f64 / n as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<60} {:>9.1} ns", times[times.len() / 2]);
}

fn main() {
    let device = Device::with_runtime("null", Arc::new(Null::new(Null::cpu_limits())));
    let input = |d: &Device| RawTensor::from_slice(d, &[16], DType::F32, &[1f32; 16]);
    let (x, y) = (input(&device), input(&device));
    let n = 1000;

    measure("record an addition, dropped and flushed as dead", n, || {
        let mut z = x.clone();
        for _ in 0..n {
            z = z.add(&y);
        }
        drop(z);
        device.flush().unwrap();
    });
    measure("record an addition, result flushed from the cache", n, || {
        let mut z = x.clone();
        for _ in 0..n {
            z = z.add(&y);
        }
        device.flush().unwrap();
        black_box(&z);
    });
    measure("record an addition with a scalar", n, || {
        let mut z = x.clone();
        for _ in 0..n {
            z = z.add_scalar(1.5);
        }
        drop(z);
        device.flush().unwrap();
    });
    measure("record a broadcast addition (two ops)", n, || {
        let row = y.reshape(&[1, 16]);
        let mut z = x.reshape(&[16, 1]).expand(&[16, 16]);
        for _ in 0..n {
            z = z.add(&row);
        }
        drop(z);
        device.flush().unwrap();
    });
    measure("record a reshape", n, || {
        let mut z = x.clone();
        for k in 0..n {
            z = z.reshape(if k % 2 == 0 { &[4, 4] } else { &[16] });
        }
        drop(z);
        device.flush().unwrap();
    });
    let tracked = input(&device.clone().autodiff()).require_grad();
    measure("record an addition with tape", n, || {
        let mut z = tracked.clone();
        for _ in 0..n {
            z = z.add(&y);
        }
        drop(z);
        device.flush().unwrap();
    });
    measure("record a product with tape", n, || {
        let mut z = tracked.clone();
        for _ in 0..n {
            z = z.mul(&y);
        }
        drop(z);
        device.flush().unwrap();
    });
    measure("record a product with tape, and its backward pass", n, || {
        let mut z = tracked.clone();
        for _ in 0..n {
            z = z.mul(&y);
        }
        black_box(z.backward());
        device.flush().unwrap();
    });
    measure("cached flush of one addition, recording included", 1, || {
        let z = x.add(&y);
        device.flush().unwrap();
        black_box(&z);
    });
    let many: Vec<RawTensor> = (0..100).map(|_| input(&device)).collect();
    measure("cached flush of 100 additions with 101 inputs, per addition", 100, || {
        let out: Vec<RawTensor> = many.iter().map(|m| m.add(&y)).collect();
        device.flush().unwrap();
        black_box(&out);
    });
    transformer(&device);
    let cpu = Device::with_runtime("cpu", kiln_cpu::CpuRuntime::global());
    let (x, y) = (input(&cpu), input(&cpu));
    let mut out = [0u8; 64];
    for chain in [1usize, 10, 100, 1000] {
        measure(&format!("on the CPU: {chain} chained additions of 16 elements, read; per addition"), chain, || {
            let mut z = x.clone();
            for _ in 0..chain {
                z = z.add(&y);
            }
            z.read_into(&mut out).unwrap();
        });
    }
    println!("{:?}", device.trace_stats());
}

/// A transformer block of 6 heads over `[8, 256, 384]`: how many ops it records, and what recording them and replaying the flush costs.
fn transformer(device: &Device) {
    let tracking = device.clone().autodiff();
    let sizes: [&[usize]; 12] =
        [&[384], &[384], &[384, 1152], &[1152], &[384, 384], &[384], &[384], &[384], &[384, 1536], &[1536], &[1536, 384], &[384]];
    let weights: Vec<RawTensor> = sizes.iter().map(|d| RawTensor::zeros(device, d, DType::F32)).collect();
    let moments: Vec<RawTensor> = sizes.iter().map(|d| RawTensor::zeros(device, d, DType::F32)).collect();
    let x = RawTensor::zeros(device, &[8, 256, 384], DType::F32);
    device.flush().unwrap();
    let step = |counts: &mut [usize; 3], reading: bool| {
        let mut last = device.pending_ops();
        let mut note = |k: usize| {
            if reading {
                counts[k] = device.pending_ops() - last;
                last += counts[k];
            }
        };
        let w: Vec<RawTensor> = weights.iter().map(|w| w.clone().autodiff().require_grad()).collect();
        let x = x.clone().autodiff();
        let h = x.layer_norm(&w[0], Some(&w[1]), 1e-5).linear(&w[2], Some(&w[3]));
        let head = |k: usize| h.narrow(2, k * 384, 384).reshape(&[8, 256, 6, 64]).permute(&[0, 2, 1, 3]);
        let options = AttentionOptions { causal: true, ..AttentionOptions::default() };
        let a = head(0).attention(&head(1), &head(2), None, None, options);
        let x = x.add(&a.permute(&[0, 2, 1, 3]).reshape(&[8, 256, 384]).linear(&w[4], Some(&w[5])));
        let f = x.layer_norm(&w[6], Some(&w[7]), 1e-5).linear(&w[8], Some(&w[9])).gelu().linear(&w[10], Some(&w[11]));
        let loss = x.add(&f).square().mean_all();
        drop((x, a, f));
        note(0);
        let mut grads = loss.backward();
        note(1);
        let updated: Vec<[RawTensor; 3]> = (w.iter().zip(&moments))
            .map(|(w, m)| {
                let g = grads.remove(w).expect("a gradient");
                let first = m.mul_scalar(0.9).add(&g.mul_scalar(0.1));
                let second = m.mul_scalar(0.999).add(&g.square().mul_scalar(0.001));
                let step = first.div_scalar(0.1).div(&second.div_scalar(0.001).sqrt().add_scalar(1e-8));
                [w.clone().without_autodiff().sub(&step.mul_scalar(1e-3)), first, second]
            })
            .collect();
        note(2);
        (loss, updated, tracking.clone())
    };
    let mut counts = [0; 3];
    let kept = step(&mut counts, true);
    let total: usize = counts.iter().sum();
    println!("transformer block: {} ops forward, {} backward, {} for 12 parameters of Adam", counts[0], counts[1], counts[2]);
    let start = Instant::now();
    device.flush().unwrap();
    println!("its first flush, compiling: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    drop(kept);
    measure("record the step, per op", total, || drop(black_box(step(&mut counts, false))));
    device.flush().unwrap();
    measure("record the step and replay it, per op", total, || {
        let kept = step(&mut counts, false);
        device.flush().unwrap();
        black_box(kept);
    });
}
