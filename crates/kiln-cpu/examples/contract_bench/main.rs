//! Speed of the contraction engine on the workloads' shapes, against the measured peak.
//!
//! `cargo run --release -p kiln-cpu --example contract_bench -- [--threads N] [NAME-PART ...]`

mod pool;

use kiln_cpu::contract::conv::{Conv, Spatial, forward, input_gradient, weight_gradient};
use kiln_cpu::contract::*;
use std::hint::black_box;
use std::time::Instant;

struct Bench {
    wanted: Vec<String>,
    peak: f64,
}

impl Bench {
    /// Times `f` and prints its rate: the least and the median time of many samples.
    fn run(&self, name: &str, flops: f64, mut f: impl FnMut()) {
        if !self.wanted.is_empty() && !self.wanted.iter().any(|part| name.contains(part.as_str())) {
            return;
        }
        f();
        let start = Instant::now();
        let mut times = vec![];
        while times.len() < 7 || (start.elapsed().as_secs_f64() < 0.7 && times.len() < 2000) {
            let t = Instant::now();
            f();
            times.push(t.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        let (least, median) = (times[0], times[times.len() / 2]);
        let low = times[times.len() / 10];
        println!(
            "{name:44} min {:9.1} us  10% {:9.1}  median {:9.1}  {:7.1} GFLOP/s ({:5.1} % of peak, median {:5.1} %)",
            least * 1e6,
            low * 1e6,
            median * 1e6,
            flops / least / 1e9,
            100.0 * flops / least / self.peak,
            100.0 * flops / median / self.peak,
        );
    }
}

/// Numbers that begin at a cache line, as the runtime's buffers do.
struct Aligned(Vec<f32>, usize);

impl Aligned {
    fn new(len: usize) -> Aligned {
        let memory = vec![0f32; len + 16];
        let skip = memory.as_ptr().align_offset(64);
        Aligned(memory, skip)
    }

    fn as_ptr(&self) -> *const f32 {
        self.0[self.1..].as_ptr()
    }

    fn as_mut_ptr(&mut self) -> *mut f32 {
        self.0[self.1..].as_mut_ptr()
    }
}

/// Random numbers in [-1, 1).
fn numbers(n: usize, seed: u64) -> Aligned {
    let mut out = Aligned::new(n);
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for y in &mut out.0 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *y = (x >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
    }
    out
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn fma512(iters: usize) -> f32 {
    use std::arch::x86_64::*;
    let (x, y) = (_mm512_set1_ps(black_box(0.999)), _mm512_set1_ps(black_box(1e-3)));
    let mut acc = [_mm512_set1_ps(1.0); 16];
    for _ in 0..iters {
        for a in &mut acc {
            *a = _mm512_fmadd_ps(*a, x, y);
        }
    }
    acc.iter().map(|a| _mm512_reduce_add_ps(*a)).sum()
}

/// Measured multiply-add rate of one core in flop/s, with the widest registers.
fn core_peak() -> f64 {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512f") {
        let iters = 300_000;
        let mut least = f64::MAX;
        for _ in 0..15 {
            let t = Instant::now();
            // SAFETY: the feature was just detected.
            black_box(unsafe { fma512(iters) });
            least = least.min(t.elapsed().as_secs_f64());
        }
        return (iters * 16 * 16 * 2) as f64 / least;
    }
    1e11
}

/// A product of dense row-major matrices, `b` optionally given as `[n, k]`.
fn product(bench: &Bench, pool: &dyn ParallelFor, name: &str, (batch, m, k, n): (usize, usize, usize, usize), turned: [bool; 2]) {
    let (a, b) = (numbers(batch * m * k, 1), numbers(batch * k * n, 2));
    let mut out = Aligned::new(batch * m * n);
    let axis = |size: usize| Offsets::new(&[(batch, size as isize)]);
    let (outer, inner) = if turned[0] { (1, m as isize) } else { (k as isize, 1) };
    let left = Strided::new(a.as_ptr(), outer, inner, axis(m * k));
    let (outer, inner) = if turned[1] { (k as isize, 1) } else { (1, n as isize) };
    let right = Strided::new(b.as_ptr(), outer, inner, axis(k * n));
    let flops = 2.0 * (batch * m * k * n) as f64;
    let to = out.as_mut_ptr();
    bench.run(&format!("{name} kiln"), flops, || {
        let sink = Sink::Store(Store::new(to, n as isize, 1, axis(m * n)));
        let job = Contraction { batch, m, n, k, a: &left, b: &right, sink };
        // SAFETY: the vectors have the sizes described.
        unsafe { contract(black_box(&job), pool) };
    });
}

/// A square convolution in its three directions.
fn convolution(bench: &Bench, pool: &dyn ParallelFor, name: &str, conv: &Conv) {
    let sizes = |f: fn(&Spatial) -> usize| conv.axes.iter().map(f).product::<usize>();
    let (input, output, taps) = (sizes(|a| a.input), sizes(|a| a.output), sizes(|a| a.kernel));
    let inputs = conv.inputs / conv.groups;
    let x = numbers(conv.images * conv.inputs * input, 1);
    let w = numbers(conv.outputs * inputs * taps, 2);
    let dy = numbers(conv.images * conv.outputs * output, 3);
    let (mut y, mut dx) = (Aligned::new(conv.images * conv.outputs * output), Aligned::new(conv.images * conv.inputs * input));
    let mut dw = Aligned::new(conv.outputs * inputs * taps);
    let flops = 2.0 * (conv.images * conv.outputs * output * inputs * taps) as f64;
    let store = |to: *mut f32, images: usize, rows: usize, cols: usize| {
        let batch = Offsets::new(&[(images, (rows * cols) as isize)]);
        Sink::Store(Store::new(to, cols as isize, 1, batch))
    };
    let (y, dx, dw) = (y.as_mut_ptr(), dx.as_mut_ptr(), dw.as_mut_ptr());
    bench.run(&format!("{name} forward"), flops, || {
        let sink = store(y, conv.images, conv.outputs, output);
        // SAFETY: the vectors have the sizes of the convolution.
        unsafe { forward(black_box(conv), x.as_ptr(), w.as_ptr(), &sink, pool) };
    });
    bench.run(&format!("{name} input gradient"), flops, || {
        let sink = store(dx, conv.images, conv.inputs, input);
        // SAFETY: as above.
        unsafe { input_gradient(black_box(conv), dy.as_ptr(), w.as_ptr(), &sink, pool) };
    });
    bench.run(&format!("{name} weight gradient"), flops, || {
        let sink = store(dw, 1, conv.outputs, inputs * taps);
        // SAFETY: as above.
        unsafe { weight_gradient(black_box(conv), x.as_ptr(), dy.as_ptr(), &sink, pool) };
    });
}

fn square(images: usize, inputs: usize, outputs: usize, groups: usize, shape: [usize; 4]) -> Conv {
    let [input, kernel, stride, padding] = shape;
    let output = (input + 2 * padding - kernel) / stride + 1;
    let axis = Spatial { input, output, kernel, stride, dilation: 1, padding };
    Conv { images, groups, inputs, outputs, axes: [Spatial::NONE, axis, axis] }
}

fn main() {
    let mut wanted = vec![];
    let mut threads = 2;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--threads" {
            threads = args.next().and_then(|n| n.parse().ok()).expect("--threads takes a number");
        } else {
            wanted.push(arg);
        }
    }
    let peak = core_peak();
    println!("{} kernels, {:.1} GFLOP/s a core, {threads} threads", isa_name::<f32>(), peak / 1e9);
    let bench = Bench { wanted, peak: peak * threads as f64 };
    let spin = pool::Spin::new(threads);
    let pool: &dyn ParallelFor = if threads == 1 { &Serial } else { &spin };
    for size in [64, 128, 256, 512, 1024, 2048] {
        product(&bench, pool, &format!("sgemm {size}"), (1, size, size, size), [false; 2]);
    }
    product(&bench, pool, "sgemm 512 turned", (1, 512, 512, 512), [false, true]);
    product(&bench, pool, "sgemm 64x784x128", (1, 64, 784, 128), [false; 2]);
    product(&bench, pool, "sgemm 784x64x128", (1, 784, 64, 128), [false; 2]);
    product(&bench, pool, "mlp 512x784x512", (1, 512, 784, 512), [false; 2]);
    product(&bench, pool, "gpt 2048x384x1152", (1, 2048, 384, 1152), [false; 2]);
    product(&bench, pool, "gpt 2048x384x1536", (1, 2048, 384, 1536), [false; 2]);
    product(&bench, pool, "gpt 2048x1536x384", (1, 2048, 1536, 384), [false; 2]);
    product(&bench, pool, "gpt attention 48x256x64x256", (48, 256, 64, 256), [false, true]);
    product(&bench, pool, "gpt attention 48x256x256x64", (48, 256, 256, 64), [false; 2]);
    for (m, n) in [(384, 1536), (1536, 384), (384, 1152), (384, 384)] {
        product(&bench, pool, &format!("gpt weight gradient {m}x2048x{n}"), (1, m, 2048, n), [true, false]);
    }
    product(&bench, pool, "mlp weight gradient 784x64x512", (1, 784, 64, 512), [true, false]);
    product(&bench, pool, "mlp weight gradient 784x512x512", (1, 784, 512, 512), [true, false]);
    product(&bench, pool, "small sum 64x36864x288", (1, 64, 36864, 288), [false; 2]);
    product(&bench, pool, "gemv 1x4096x4096", (1, 1, 4096, 4096), [false; 2]);
    product(&bench, pool, "gemv 1x4096x4096 turned", (1, 1, 4096, 4096), [false, true]);
    product(&bench, pool, "gemv 1x384x1536", (1, 1, 384, 1536), [false; 2]);
    product(&bench, pool, "skinny 4x4096x4096", (1, 4, 4096, 4096), [false; 2]);
    product(&bench, pool, "skinny 8x4096x4096", (1, 8, 4096, 4096), [false; 2]);
    product(&bench, pool, "skinny 8x4096x4096 turned", (1, 8, 4096, 4096), [false, true]);
    product(&bench, pool, "skinny 16x4096x4096", (1, 16, 4096, 4096), [false; 2]);
    let layers: [(&str, Conv); 12] = [
        ("conv cnn 1", square(64, 1, 32, 1, [28, 3, 1, 0])),
        ("conv cnn 2", square(64, 32, 64, 1, [26, 3, 1, 0])),
        ("conv resnet stem", square(1, 3, 64, 1, [224, 7, 2, 3])),
        ("conv resnet 56", square(1, 64, 64, 1, [56, 3, 1, 1])),
        ("conv resnet 56 half", square(1, 64, 128, 1, [56, 3, 2, 1])),
        ("conv resnet 28", square(1, 128, 128, 1, [28, 3, 1, 1])),
        ("conv resnet 14", square(1, 256, 256, 1, [14, 3, 1, 1])),
        ("conv resnet 7", square(1, 512, 512, 1, [7, 3, 1, 1])),
        ("conv resnet 7 b8", square(8, 512, 512, 1, [7, 3, 1, 1])),
        ("conv resnet down", square(1, 64, 128, 1, [56, 1, 2, 0])),
        ("conv pointwise", square(8, 128, 128, 1, [28, 1, 1, 0])),
        ("conv depthwise", square(8, 128, 128, 128, [28, 3, 1, 1])),
    ];
    for (name, conv) in &layers {
        convolution(&bench, pool, name, conv);
    }
}
