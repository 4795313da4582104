//! Measures the thread pool, the allocator, the vector functions and the tile executor.
use std::time::{Duration, Instant};

use kiln_compiler::compile;
use kiln_compiler::null::Null;
use kiln_cpu::memory::{Cache, Storage};
use kiln_cpu::pool::Pool;
use kiln_cpu::simd::Level;
use kiln_cpu::tile::elementwise::{Kind, select};
use kiln_cpu::tile::{Buffers, FusedKernel};
use kiln_ir::{DType, Elementwise, Graph, Kernel, NodeId, Op, OutputSpec, Place, ReduceOp};

/// Median seconds of one call.
fn median(mut f: impl FnMut()) -> f64 {
    f();
    let (mut times, start) = (Vec::new(), Instant::now());
    while times.len() < 7 || start.elapsed() < Duration::from_millis(300) {
        let begin = Instant::now();
        f();
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn pool() {
    let pool = Pool::global();
    let hot = median(|| (0..1000).for_each(|_| pool.run(pool.threads(), &|_| {}))) / 1000.0;
    println!("pool: {} threads, empty region {:.0} ns", pool.threads(), hot * 1e9);
}

fn memory() {
    let cache = Cache::global();
    let small = median(|| (0..1000).for_each(|_| drop(cache.allocate(1000).unwrap()))) / 1000.0;
    println!("memory: hot allocation and free {:.0} ns", small * 1e9);
    const BYTES: usize = 64 << 20;
    let touch = |bytes: &mut [u8]| bytes.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let old = median(|| touch(cache.allocate(BYTES).unwrap().as_mut_slice()));
    let fresh = median(|| {
        touch(cache.allocate(BYTES).unwrap().as_mut_slice());
        cache.cleanup();
    });
    let system = median(|| touch(&mut vec![0; BYTES]));
    println!("memory: touch 64 MiB: cached {:.2} ms, fresh {:.2} ms, from the system allocator {:.2} ms", old * 1e3, fresh * 1e3, system * 1e3);
}

fn math() {
    use kiln_ir::Elementwise::*;
    const N: usize = 1024;
    let x: Vec<f32> = (0..N).map(|k| k as f32 / 200.0 - 2.5).collect();
    let mut out = vec![0f32; N];
    for &level in Level::available() {
        let mut line = format!("math: {:7} ns per 1024 elements:", level.name());
        for op in [Neg, Add, Mul, Max, Div, Sqrt, Recip, Exp, Log, Log1p, Tanh, Erf, Sin, Cos, Tan, Pow, Floor, Round, Atan] {
            let f = select(op, Kind::F32, 0, level).unwrap();
            // SAFETY: three arrays of N elements that do not overlap.
            let seconds =
                median(|| (0..100).for_each(|_| unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), N) }));
            line += &format!(" {} {:.0}", op.name(), seconds * 1e7);
        }
        println!("{line}");
    }
    let by = 3f32;
    let f = select(Div, Kind::F32, 2, Level::detect()).unwrap();
    // SAFETY: arrays of N elements and one number.
    let seconds =
        median(|| (0..100).for_each(|_| unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), (&raw const by).cast(), x.as_ptr().cast(), N) }));
    println!("math: division of 1024 elements by one number {:.0} ns", seconds * 1e7);
    let f = select(Add, Kind::F32, 0, Level::detect()).unwrap();
    for n in [1, 4, 16, 17, 64] {
        // SAFETY: as above.
        let seconds =
            median(|| (0..1000).for_each(|_| unsafe { f(out.as_mut_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), x.as_ptr().cast(), n) }));
        println!("math: add of {n} elements {:.1} ns", seconds * 1e6);
    }
}

/// A graph under construction.
struct Build(Graph);

impl Build {
    fn op(&mut self, op: Elementwise, x: &[NodeId]) -> NodeId {
        self.0.add(Op::Elementwise(op), x).unwrap()
    }

    fn reduce(&mut self, op: ReduceOp, x: NodeId, axes: u32) -> NodeId {
        self.0.add(Op::Reduce { op, axes }, &[x]).unwrap()
    }

    fn expand(&mut self, x: NodeId, like: NodeId) -> NodeId {
        let dims = self.0.node(like).dims.clone();
        self.0.add_as(Op::Expand, &[x], &dims, DType::F32).unwrap()
    }

    fn scalar(&mut self, v: f64) -> NodeId {
        self.0.constant(DType::F32, v.to_bits())
    }
}

/// Compiles a graph of one input per entry of `inputs` and measures its fused kernels.
fn kernels(name: &str, inputs: &[usize], graph: Graph) {
    let program = compile(&graph, &Null::cpu_limits());
    let cache = Cache::global();
    let inputs: Vec<Storage> = inputs
        .iter()
        .map(|&n| {
            let mut storage = cache.allocate(n * 4).unwrap();
            for (k, x) in storage.as_mut_slice().chunks_exact_mut(4).enumerate() {
                x.copy_from_slice(&((k * 7919 % 1000) as f32 / 300.0 - 1.5).to_le_bytes());
            }
            storage
        })
        .collect();
    let outputs: Vec<Storage> =
        program.outputs.iter().map(|o| if let OutputSpec::New(n) = o { cache.allocate_zeroed(*n).unwrap() } else { panic!("{o:?}") }).collect();
    let arena = cache.allocate(program.arena).unwrap();
    let addresses: Vec<*mut u8> = program
        .bufs
        .iter()
        .map(|b| match b.place {
            Place::Input(n) => inputs[n as usize].as_ptr(),
            Place::Output(n) => outputs[n as usize].as_ptr(),
            Place::Arena(at) => arena.as_ptr().wrapping_add(at),
            Place::Unused => std::ptr::null_mut(),
        })
        .collect();
    let prepared: Vec<FusedKernel> = program
        .kernels()
        .map(|kernel| match kernel {
            Kernel::Fused(fused) => FusedKernel::new(fused, &program.bufs).unwrap(),
            other => panic!("{}", other.family()),
        })
        .collect();
    let buffers = Buffers { addresses: &addresses, args: &[] };
    let pool = Pool::global();
    let inner = if prepared[0].bytes() < 1 << 20 { 100 } else { 1 };
    let seconds = median(|| {
        for _ in 0..inner {
            // SAFETY: the addresses follow the program's plan.
            prepared.iter().for_each(|kernel| unsafe { kernel.run(buffers, pool).unwrap() });
        }
    }) / inner as f64;
    println!("{name}: {:.2} us, {} kernels", seconds * 1e6, prepared.len());
}

fn chain(n: usize) -> Graph {
    use Elementwise::*;
    let mut b = Build(Graph::new());
    let x = b.0.input(&[n], DType::F32);
    let (one, half, root, scale, shift) = (b.scalar(1.0), b.scalar(0.5), b.scalar(core::f64::consts::FRAC_1_SQRT_2), b.scalar(1.1), b.scalar(0.1));
    let u = b.op(Mul, &[x, scale]);
    let u = b.op(Add, &[u, shift]);
    let v = b.op(Mul, &[u, root]);
    let v = b.op(Erf, &[v]);
    let v = b.op(Add, &[v, one]);
    let w = b.op(Mul, &[u, half]);
    let gelu = b.op(Mul, &[w, v]);
    let s = b.op(Neg, &[x]);
    let s = b.op(Exp, &[s]);
    let s = b.op(Add, &[s, one]);
    let s = b.op(Recip, &[s]);
    let y = b.op(Mul, &[gelu, s]);
    b.0.outputs = vec![y];
    b.0
}

fn softmax(rows: usize, columns: usize) -> Graph {
    use Elementwise::*;
    let mut b = Build(Graph::new());
    let x = b.0.input(&[rows, columns], DType::F32);
    let m = b.reduce(ReduceOp::Max, x, 2);
    let m = b.expand(m, x);
    let d = b.op(Sub, &[x, m]);
    let e = b.op(Exp, &[d]);
    let s = b.reduce(ReduceOp::Sum, e, 2);
    let s = b.expand(s, x);
    let y = b.op(Div, &[e, s]);
    b.0.outputs = vec![y];
    b.0
}

fn layer_norm(rows: usize, columns: usize) -> Graph {
    use Elementwise::*;
    let mut b = Build(Graph::new());
    let x = b.0.input(&[rows, columns], DType::F32);
    let (gamma, beta) = (b.0.input(&[columns], DType::F32), b.0.input(&[columns], DType::F32));
    let (scale, eps) = (b.scalar(1.0 / columns as f64), b.scalar(1e-5));
    let sum = b.reduce(ReduceOp::Sum, x, 2);
    let mean = b.op(Mul, &[sum, scale]);
    let mean = b.expand(mean, x);
    let d = b.op(Sub, &[x, mean]);
    let square = b.op(Mul, &[d, d]);
    let variance = b.reduce(ReduceOp::Sum, square, 2);
    let variance = b.op(Mul, &[variance, scale]);
    let variance = b.op(Add, &[variance, eps]);
    let root = b.op(Sqrt, &[variance]);
    let root = b.expand(root, x);
    let y = b.op(Div, &[d, root]);
    let (gamma, beta) = (b.expand(gamma, x), b.expand(beta, x));
    let y = b.op(Mul, &[y, gamma]);
    let y = b.op(Add, &[y, beta]);
    b.0.outputs = vec![y];
    b.0
}

/// Gradient of a layer norm for its input, weight and bias.
fn layer_norm_gradient(rows: usize, columns: usize) -> Graph {
    use Elementwise::*;
    let mut b = Build(Graph::new());
    let (x, dy) = (b.0.input(&[rows, columns], DType::F32), b.0.input(&[rows, columns], DType::F32));
    let (mean, r, gamma) = (b.0.input(&[rows, 1], DType::F32), b.0.input(&[rows, 1], DType::F32), b.0.input(&[columns], DType::F32));
    let (mean, r, gamma) = (b.expand(mean, x), b.expand(r, x), b.expand(gamma, x));
    let d = b.op(Sub, &[x, mean]);
    let normal = b.op(Mul, &[d, r]);
    let g = b.op(Mul, &[dy, gamma]);
    let scale = b.scalar(1.0 / columns as f64);
    let gn = b.op(Mul, &[g, normal]);
    let s1 = b.reduce(ReduceOp::Sum, g, 2);
    let s1 = b.op(Mul, &[s1, scale]);
    let s1 = b.expand(s1, x);
    let s2 = b.reduce(ReduceOp::Sum, gn, 2);
    let s2 = b.op(Mul, &[s2, scale]);
    let s2 = b.expand(s2, x);
    let t = b.op(Mul, &[normal, s2]);
    let u = b.op(Sub, &[g, s1]);
    let u = b.op(Sub, &[u, t]);
    let dx = b.op(Mul, &[u, r]);
    let dn = b.op(Mul, &[dy, normal]);
    let dgamma = b.reduce(ReduceOp::Sum, dn, 1);
    let dbeta = b.reduce(ReduceOp::Sum, dy, 1);
    b.0.outputs = vec![dx, dgamma, dbeta];
    b.0
}

/// One step of Adam.
fn adam(n: usize) -> Graph {
    use Elementwise::*;
    let mut b = Build(Graph::new());
    let (p, g) = (b.0.input(&[n], DType::F32), b.0.input(&[n], DType::F32));
    let (m, v) = (b.0.input(&[n], DType::F32), b.0.input(&[n], DType::F32));
    let (b1, c1, b2, c2) = (b.scalar(0.9), b.scalar(0.1), b.scalar(0.999), b.scalar(0.001));
    let (rate, eps) = (b.scalar(1e-3), b.scalar(1e-8));
    let (m1, g1) = (b.op(Mul, &[m, b1]), b.op(Mul, &[g, c1]));
    let m = b.op(Add, &[m1, g1]);
    let (v1, gg) = (b.op(Mul, &[v, b2]), b.op(Mul, &[g, g]));
    let g2 = b.op(Mul, &[gg, c2]);
    let v = b.op(Add, &[v1, g2]);
    let root = b.op(Sqrt, &[v]);
    let root = b.op(Add, &[root, eps]);
    let step = b.op(Div, &[m, root]);
    let step = b.op(Mul, &[step, rate]);
    let p = b.op(Sub, &[p, step]);
    b.0.outputs = vec![p, m, v];
    b.0
}

/// Mean and variance of each channel of `[n, c, hw]`.
fn channel_statistics(n: usize, c: usize, hw: usize) -> Graph {
    use Elementwise::*;
    let mut b = Build(Graph::new());
    let x = b.0.input(&[n, c, hw], DType::F32);
    let scale = b.scalar(1.0 / (n * hw) as f64);
    let sum = b.reduce(ReduceOp::Sum, x, 5);
    let mean = b.op(Mul, &[sum, scale]);
    let e = b.expand(mean, x);
    let d = b.op(Sub, &[x, e]);
    let d = b.op(Mul, &[d, d]);
    let v = b.reduce(ReduceOp::Sum, d, 5);
    b.0.outputs = vec![mean, v];
    b.0
}

fn training() {
    use Elementwise::*;
    kernels("layer norm 2048 x 384", &[2048 * 384, 384, 384], layer_norm(2048, 384));
    kernels("layer norm gradient 2048 x 384", &[2048 * 384, 2048 * 384, 2048, 2048, 384], layer_norm_gradient(2048, 384));
    kernels("softmax 12288 x 256", &[12288 * 256], softmax(12288, 256));
    kernels("gelu chain 2048 x 1536", &[2048 * 1536], chain(2048 * 1536));
    kernels("adam 590 k", &[589_824; 4], adam(589_824));
    kernels("statistics 64 x 32 x 784", &[64 * 32 * 784], channel_statistics(64, 32, 784));
    kernels("statistics 64 x 64 x 49", &[64 * 64 * 49], channel_statistics(64, 64, 49));
    for (rows, columns) in [(2048, 384), (2048, 1536), (64, 128), (65_536, 10)] {
        let mut b = Build(Graph::new());
        let x = b.0.input(&[rows, columns], DType::F32);
        let y = b.reduce(ReduceOp::Sum, x, 1);
        b.0.outputs = vec![y];
        kernels(&format!("sum over {rows} rows of {columns}"), &[rows * columns], b.0);
    }
    let mut b = Build(Graph::new());
    let (x, y) = (b.0.input(&[64, 32, 26, 26], DType::F32), b.0.input(&[32, 1, 1], DType::F32));
    let y = b.expand(y, x);
    let z = b.op(Add, &[x, y]);
    let zero = b.scalar(0.0);
    let z = b.op(Max, &[z, zero]);
    b.0.outputs = vec![z];
    kernels("bias and relu 64 x 32 x 676", &[64 * 32 * 676, 32], b.0);
    for perm in [[0u8, 2, 1, 3], [0, 1, 3, 2]] {
        let mut b = Build(Graph::new());
        let x = b.0.input(&[8, 256, 6, 64], DType::F32);
        let dims: Vec<usize> = perm.iter().map(|&p| [8, 256, 6, 64][p as usize]).collect();
        let y = b.0.add_as(Op::Permute(perm.into_iter().collect()), &[x], &dims, DType::F32).unwrap();
        b.0.outputs = vec![y];
        kernels(&format!("permute {perm:?} of 8 x 256 x 6 x 64"), &[8 * 256 * 6 * 64], b.0);
    }
}

fn tiles() {
    for n in [1 << 24, 4096, 16] {
        kernels(&format!("gelu(x a + b) sigmoid(x), {n}"), &[n], chain(n));
    }
    kernels("softmax 4096 x 1024", &[4096 * 1024], softmax(4096, 1024));
    kernels("softmax 4096 x 65", &[4096 * 65], softmax(4096, 65));
    kernels("softmax 512 x 10", &[512 * 10], softmax(512, 10));
    kernels("layer norm 4096 x 1024", &[4096 * 1024, 1024, 1024], layer_norm(4096, 1024));
    for axes in [1, 2, 3] {
        let mut b = Build(Graph::new());
        let x = b.0.input(&[4096, 4096], DType::F32);
        let y = b.reduce(ReduceOp::Sum, x, axes);
        b.0.outputs = vec![y];
        kernels(&format!("sum 4096 x 4096, axes {axes:02b}"), &[1 << 24], b.0);
    }
    let mut b = Build(Graph::new());
    let x = b.0.input(&[4096, 4096], DType::F32);
    let y = b.0.add_as(Op::Permute([1, 0].into_iter().collect()), &[x], &[4096, 4096], DType::F32).unwrap();
    b.0.outputs = vec![y];
    kernels("transpose 4096 x 4096", &[1 << 24], b.0);
    let mut b = Build(Graph::new());
    let (x, y) = (b.0.input(&[1 << 24], DType::F32), b.0.input(&[1 << 24], DType::F32));
    let z = b.op(Elementwise::Add, &[x, y]);
    b.0.outputs = vec![z];
    kernels("add 16 M", &[1 << 24, 1 << 24], b.0);
    let mut b = Build(Graph::new());
    let (x, y) = (b.0.input(&[16], DType::F32), b.0.input(&[16], DType::F32));
    let z = (0..1000).fold(x, |z, _| b.op(Elementwise::Add, &[z, y]));
    b.0.outputs = vec![z];
    kernels("1000 adds of 16", &[16, 16], b.0);
}

fn main() {
    let wanted = std::env::args().nth(1);
    let run = |name: &str| wanted.as_deref().is_none_or(|w| w == name);
    if run("pool") {
        pool();
    }
    if run("memory") {
        memory();
    }
    if run("math") {
        math();
    }
    if run("training") {
        training();
    }
    if run("tiles") {
        tiles();
    }
}
