//! Measures attention, indexing, sorts, scans and pools, and the overhead of a program's run.
use std::sync::Arc;
use std::time::Instant;

use kiln_compiler::compile;
use kiln_cpu::CpuRuntime;
use kiln_ir::op::{AttentionAttrs, PoolAttrs};
use kiln_ir::{Buffer, DType, Elementwise, Graph, Op, OutputSpec, ReduceOp, Runtime, ScanOp, ScatterOp};
use smallvec::smallvec;

/// Seconds this thread has run, where the system says so, else seconds on the clock.
fn clock(start: Instant) -> f64 {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = spent.and_then(|s| s.split(' ').next()?.parse::<u64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |n| n as f64 * 1e-9)
}

/// Seconds of the fastest of several rounds of calls. With `KILN_NUM_THREADS=1` these are seconds of this thread, so that a busy machine does no harm.
fn fastest(mut f: impl FnMut()) -> f64 {
    f();
    let start = Instant::now();
    f();
    let single = CpuRuntime::global().limits().parallelism == 1;
    // The thread's clock is coarse.
    let (round, rounds) = if single { (0.1, 2) } else { (0.002, 50) };
    let calls = (round / start.elapsed().as_secs_f64()).ceil().max(1.0) as usize;
    let now = || if single { clock(start) } else { start.elapsed().as_secs_f64() };
    let (mut best, mut count) = (f64::INFINITY, 0);
    while count < rounds {
        let begin = now();
        (0..calls).for_each(|_| f());
        best = best.min((now() - begin) / calls as f64);
        count += 1;
    }
    best
}

/// Seconds of one run of a graph, its inputs filled by `fill(input, element)`.
fn seconds(graph: &Graph, fill: impl Fn(usize, usize) -> f64) -> f64 {
    let cpu = CpuRuntime::global();
    let program = Arc::new(compile(graph, cpu.limits()));
    let executable = cpu.compile(program.clone()).unwrap();
    let mut inputs = Vec::new();
    for node in &graph.nodes {
        if let Op::Input(n) = node.op {
            let len: usize = node.dims.iter().product();
            let mut bytes = vec![0; len * node.dtype.size()];
            for i in 0..len {
                let v = kiln_ir::interp::value::cast(kiln_ir::interp::Scalar::Float(fill(n as usize, i)), node.dtype);
                kiln_ir::interp::value::write(node.dtype, &mut bytes, i, v);
            }
            inputs.push(cpu.upload(&bytes).unwrap());
        }
    }
    let outputs: Vec<Buffer> = (program.outputs.iter())
        .map(|o| match o {
            OutputSpec::New(bytes) => cpu.alloc(*bytes).unwrap(),
            OutputSpec::Donated(i) | OutputSpec::SameAs(i) => inputs[*i as usize].clone(),
            OutputSpec::SameAsOutput(_) => panic!("a bench has no equal outputs"),
        })
        .collect();
    fastest(|| cpu.run(&*executable, &inputs, &outputs, &[]).unwrap())
}

/// Numbers without pattern.
fn noise(input: usize, i: usize) -> f64 {
    let x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(input as u32 * 7 + 11).wrapping_mul(0xd134_2543_de82_ef95);
    (x >> 40) as f64 / (1u64 << 24) as f64 - 0.5
}

fn attention(sizes: [usize; 6], causal: bool, dtype: DType) {
    let [b, h, g, t, s, d] = sizes;
    let attrs = AttentionAttrs { scale: (1.0 / (d as f64).sqrt()).to_bits(), softcap: 0, causal, has_mask: false, has_bias: false };
    let mut graph = Graph::new();
    let q = graph.input(&[b, h, t, d], dtype);
    let k = graph.input(&[b, g, s, d], dtype);
    let v = graph.input(&[b, g, s, d], dtype);
    let out = graph.add(Op::Attention(attrs), &[q, k, v]).unwrap();
    let lse = graph.get(out, 1).unwrap();
    graph.outputs = vec![out, lse];
    let forward = seconds(&graph, noise);
    let pairs = if causal && t == s { t * (t + 1) / 2 } else { t * s } * b * h;
    let bytes = (2 * b * g * s * d + 2 * b * h * t * d) * dtype.size();
    print!(
        "attention {sizes:?} causal={causal} {dtype}: {:.3} ms, {:.1} GFLOP/s, {:.1} GB/s",
        forward * 1e3,
        pairs as f64 * 4.0 * d as f64 / forward / 1e9,
        bytes as f64 / forward / 1e9
    );
    if t > 1 {
        let mut graph = Graph::new();
        let x: Vec<_> = [[b, h, t, d], [b, g, s, d], [b, g, s, d], [b, h, t, d]].iter().map(|dims| graph.input(dims, dtype)).collect();
        let lse = graph.input(&[b, h, t], if dtype == DType::F64 { dtype } else { DType::F32 });
        let dout = graph.input(&[b, h, t, d], dtype);
        let dq = graph.add(Op::AttentionGrad(attrs), &[x[0], x[1], x[2], x[3], lse, dout]).unwrap();
        let (dk, dv) = (graph.get(dq, 1).unwrap(), graph.get(dq, 2).unwrap());
        graph.outputs = vec![dq, dk, dv];
        let backward = seconds(&graph, |n, i| if n == 4 { 6.0 } else { noise(n, i) });
        print!("; backward {:.3} ms, {:.1} GFLOP/s", backward * 1e3, pairs as f64 * 10.0 * d as f64 / backward / 1e9);
    }
    println!();
}

fn one(name: &str, bytes: usize, make: impl FnOnce(&mut Graph) -> Vec<kiln_ir::NodeId>, fill: impl Fn(usize, usize) -> f64) {
    let mut graph = Graph::new();
    graph.outputs = make(&mut graph);
    let s = seconds(&graph, fill);
    println!("{name}: {:.3} ms, {:.1} GB/s", s * 1e3, bytes as f64 / s / 1e9);
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    if wanted.is_empty() || wanted == "attention" {
        attentions();
    }
    if wanted.is_empty() || wanted == "kernels" {
        kernels();
    }
}

fn attentions() {
    let f = DType::F32;
    attention([8, 6, 6, 256, 256, 64], true, f);
    attention([8, 6, 6, 256, 256, 64], false, f);
    attention([1, 8, 8, 2048, 2048, 64], true, f);
    attention([1, 4, 4, 2048, 2048, 128], false, f);
    attention([8, 6, 6, 256, 256, 64], true, DType::BF16);
    attention([1, 2, 2, 512, 512, 64], false, DType::F64);
    attention([1, 32, 8, 1, 4096, 128], false, f);
    attention([8, 12, 12, 1, 1024, 64], false, f);
    attention([1, 1, 1, 1, 65536, 64], false, DType::BF16);
}

fn kernels() {
    let f = DType::F32;
    let (rows, count, width) = (50_000, 8192, 384);
    let random_index = move |n: usize, i: usize| if n == 1 { ((noise(1, i) + 0.5) * rows as f64).floor() } else { noise(n, i) };
    let spread = |g: &mut Graph, count: usize, width: usize| {
        let i = g.input(&[count, 1], DType::I64);
        g.add_as(Op::Expand, &[i], &[count, width], DType::I64).unwrap()
    };
    one(
        "gather 8192 rows of 384",
        2 * count * width * 4,
        |g| {
            let x = g.input(&[rows, width], f);
            let i = spread(g, count, width);
            vec![g.add(Op::Gather { axis: 0 }, &[x, i]).unwrap()]
        },
        random_index,
    );
    one(
        "scatter-add 8192 rows of 384 into 50000",
        (rows + 2 * count) * width * 4,
        |g| {
            let x = g.input(&[rows, width], f);
            let i = spread(g, count, width);
            let v = g.input(&[count, width], f);
            vec![g.add(Op::Scatter { axis: 0, op: ScatterOp::Add }, &[x, i, v]).unwrap()]
        },
        random_index,
    );
    one(
        "gather 1M single elements",
        (1 << 20) * 16,
        |g| {
            let x = g.input(&[1 << 20], f);
            let i = g.input(&[1 << 20], DType::I64);
            vec![g.add(Op::Gather { axis: 0 }, &[x, i]).unwrap()]
        },
        |n, i| if n == 1 { ((noise(1, i) + 0.5) * (1 << 20) as f64).floor() } else { noise(n, i) },
    );
    for (dims, axis) in [([1, 1 << 20], 1), ([1024, 1024], 1), ([1024, 1024], 0), ([16384, 64], 1)] {
        one(&format!("sort {dims:?} axis {axis}"), (1 << 20) * 16, |g| sorted(g, &dims, axis), noise);
        one(
            &format!("cumsum {dims:?} axis {axis}"),
            (1 << 20) * 8,
            |g| {
                let x = g.input(&dims, f);
                vec![g.add(Op::Scan { op: ScanOp::Sum, axis }, &[x]).unwrap()]
            },
            noise,
        );
    }
    let pool = |kernel: usize, stride: usize, pad: usize| PoolAttrs {
        kernel: smallvec![kernel, kernel],
        stride: smallvec![stride, stride],
        dilation: smallvec![1, 1],
        padding: smallvec![(pad, pad), (pad, pad)],
        count_include_pad: true,
        ceil_mode: false,
        channels_last: false,
    };
    let image = [32, 64, 56, 56];
    let len: usize = image.iter().product();
    for (kernel, stride, pad) in [(2, 2, 0), (3, 2, 1), (3, 1, 1)] {
        let name = format!("{kernel}x{kernel} stride {stride}");
        one(&format!("max pool {name}"), len * 4, |g| pooled(g, &image, Op::MaxPool(pool(kernel, stride, pad)), false), noise);
        one(&format!("max pool with indices {name}"), len * 4, |g| pooled(g, &image, Op::MaxPool(pool(kernel, stride, pad)), true), noise);
        one(&format!("avg pool {name}"), len * 4, |g| pooled(g, &image, Op::AvgPool(pool(kernel, stride, pad)), false), noise);
    }

    // What a run costs beyond its kernels: a chain of tiny ones that cannot be fused.
    for kernels in [1, 10, 100] {
        let mut g = Graph::new();
        let mut x = g.input(&[4], f);
        for _ in 0..kernels {
            x = g.add(Op::Scan { op: ScanOp::Sum, axis: 0 }, &[x]).unwrap();
        }
        g.outputs = vec![x];
        println!("run of {kernels} tiny scans: {:.2} us", seconds(&g, noise) * 1e6);
        let mut g = Graph::new();
        let mut x = g.input(&[4, 4], f);
        for _ in 0..kernels {
            let sum = g.add(Op::Reduce { op: ReduceOp::Sum, axes: 1 }, &[x]).unwrap();
            let sum = g.add_as(Op::Expand, &[sum], &[4, 4], f).unwrap();
            let y = g.add(Op::Elementwise(Elementwise::Mul), &[x, sum]).unwrap();
            x = g.add(Op::Permute(smallvec![1, 0]), &[y]).unwrap();
        }
        g.outputs = vec![x];
        println!("run of {kernels} tiny fused kernels or so: {:.2} us", seconds(&g, noise) * 1e6);
    }
}

fn sorted(g: &mut Graph, dims: &[usize], axis: usize) -> Vec<kiln_ir::NodeId> {
    let x = g.input(dims, DType::F32);
    let y = g.add(Op::Sort { axis, descending: false }, &[x]).unwrap();
    let i = g.get(y, 1).unwrap();
    vec![y, i]
}

fn pooled(g: &mut Graph, dims: &[usize], op: Op, indices: bool) -> Vec<kiln_ir::NodeId> {
    let x = g.input(dims, DType::F32);
    let y = g.add(op, &[x]).unwrap();
    if indices {
        let i = g.get(y, 1).unwrap();
        return vec![y, i];
    }
    vec![y]
}
