//! The tile executor against the interpreter: random graphs, and kernels of every shape at sizes that fill several tiles.
use kiln_compiler::fuzz::{Rng, random_case};
use kiln_compiler::null::Null;
use kiln_compiler::{Options, compile_with, print::print};
use kiln_cpu::memory::{Cache, Storage};
use kiln_cpu::pool::Pool;
use kiln_cpu::simd::Level;
use kiln_cpu::tile::{Buffers, FusedKernel};
use kiln_ir::dims::numel;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::op::{SliceAxis, word_from_f64, word_from_int};
use kiln_ir::{DType, Elementwise, Graph, Kernel, NodeId, Op, OutputSpec, Place, Program, RandomKind, ReduceOp};

/// Runs a program of fused kernels and copies on real memory; `None` if it has others.
fn run(program: &Program, inputs: &[Tensor], args: &[u64], pool: &Pool, level: Level) -> Option<Vec<Vec<u8>>> {
    let cache = Cache::global();
    let store = |bytes: &[u8]| {
        let mut storage = cache.allocate(bytes.len()).unwrap();
        storage.as_mut_slice().copy_from_slice(bytes);
        storage
    };
    let inputs: Vec<Storage> = inputs.iter().map(|x| store(&x.to_bytes())).collect();
    let outputs: Vec<Storage> = program
        .outputs
        .iter()
        .map(|o| match o {
            OutputSpec::New(bytes) => store(&vec![0xa5; *bytes]),
            OutputSpec::Donated(_) | OutputSpec::SameAs(_) | OutputSpec::SameAsOutput(_) => store(&[]),
        })
        .collect();
    let output = |mut n: usize| loop {
        match program.outputs[n] {
            OutputSpec::New(_) => return &outputs[n],
            OutputSpec::Donated(i) | OutputSpec::SameAs(i) => return &inputs[i as usize],
            OutputSpec::SameAsOutput(o) => n = o as usize,
        }
    };
    let arena = store(&vec![0x5a; program.arena]);
    let addresses: Vec<*mut u8> = program
        .bufs
        .iter()
        .map(|b| match b.place {
            Place::Input(n) => inputs[n as usize].as_ptr(),
            Place::Output(n) => output(n as usize).as_ptr(),
            Place::Arena(at) => arena.as_ptr().wrapping_add(at),
            Place::Unused => std::ptr::null_mut(),
        })
        .collect();
    for kernel in program.kernels() {
        match kernel {
            Kernel::Fused(fused) => {
                let kernel = FusedKernel::for_level(fused, &program.bufs, level).unwrap();
                // SAFETY: the addresses follow the program's plan.
                unsafe { kernel.run(Buffers { addresses: &addresses, args }, pool).unwrap() };
            }
            Kernel::Copy { from, to } => {
                let bytes = program.buf(*from).bytes();
                // SAFETY: both buffers have these bytes.
                unsafe { std::ptr::copy(addresses[from.index()], addresses[to.index()], bytes) };
            }
            _ => return None,
        }
    }
    Some((0..program.outputs.len()).map(|n| output(n).as_slice().to_vec()).collect())
}

fn compare(got: &Tensor, want: &Tensor, tolerance: f64) -> Result<(), String> {
    for i in 0..want.len() {
        let (g, w) = (got.get(i).float(), want.get(i).float());
        let close = if want.dtype.is_float() { (g - w).abs() <= tolerance * (1.0 + w.abs()) } else { got.get(i).int() == want.get(i).int() };
        if !(close || (g.is_nan() && w.is_nan()) || g == w) {
            return Err(format!("element {i} is {g}, not {w}"));
        }
    }
    Ok(())
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-9,
        DType::F16 => 2e-3,
        DType::BF16 => 1.6e-2,
        _ => 2e-5,
    }
}

/// Runs a graph fused and unfused, on every instruction set, on one and three threads, and compares with the interpreter. The number of
/// programs that had fused kernels only.
fn check_graph(graph: &Graph, inputs: &[Tensor], args: &[u64], pools: &[Pool], slack: f64) -> Result<usize, String> {
    let Ok(want) = interp::run(graph, inputs, args) else { return Ok(0) };
    let mut ran = 0;
    for fuse in [true, false] {
        let program = compile_with(graph, &Null::cpu_limits(), &Options { fuse, ..Options::default() });
        for pool in pools {
            for &level in Level::available() {
                let Some(got) = run(&program, inputs, args, pool, level) else { continue };
                ran += 1;
                for (n, (bytes, want)) in got.iter().zip(&want).enumerate() {
                    let got = Tensor::from_bytes(want.dtype, &want.dims, bytes);
                    compare(&got, want, tolerance(want.dtype) * slack).map_err(|e| {
                        format!(
                            "output {n} on {} with {} threads, fuse {fuse}: {e}\n{}\n{}",
                            level.name(),
                            pool.threads(),
                            graph.print(),
                            print(&program)
                        )
                    })?;
                }
            }
        }
    }
    Ok(ran)
}

fn pools() -> [Pool; 2] {
    [Pool::new(1), Pool::new(3)]
}

/// Checks a graph whose program must have fused kernels only.
#[track_caller]
fn check(graph: &Graph, inputs: &[Tensor], args: &[u64]) {
    match check_graph(graph, inputs, args, &pools(), 1.0) {
        Ok(ran) => assert!(ran > 0, "not a program of fused kernels"),
        Err(error) => panic!("{error}"),
    }
}

fn uniform(dtype: DType, dims: &[usize], low: f64, high: f64, seed: u64) -> Tensor {
    let mut rng = Rng::new(seed);
    let values: Vec<f64> = (0..numel(dims)).map(|_| if dtype.is_float() { rng.range(low, high) } else { rng.range(low, high).round() }).collect();
    Tensor::from_f64(dtype, dims, &values)
}

fn op(g: &mut Graph, op: Elementwise, x: &[NodeId]) -> NodeId {
    g.add(Op::Elementwise(op), x).unwrap()
}

fn reduce(g: &mut Graph, op: ReduceOp, axes: u32, x: NodeId) -> NodeId {
    g.add(Op::Reduce { op, axes }, &[x]).unwrap()
}

fn expand(g: &mut Graph, x: NodeId, like: NodeId) -> NodeId {
    let (dims, dtype) = (g.node(like).dims.clone(), g.node(x).dtype);
    g.add_as(Op::Expand, &[x], &dims, dtype).unwrap()
}

fn scalar(g: &mut Graph, dtype: DType, v: f64) -> NodeId {
    g.constant(dtype, word_from_f64(dtype, v))
}

#[test]
fn random_graphs_equal_the_interpreter() {
    let pools = pools();
    let mut ran = 0;
    for seed in 0..std::env::var("KILN_FUZZ").ok().and_then(|v| v.parse().ok()).unwrap_or(3000) {
        let case = random_case(seed, 3 + (seed % 20) as usize);
        let result = std::panic::catch_unwind(|| check_graph(&case.graph, &case.inputs, &case.args, &pools, 100.0));
        match result {
            Ok(Ok(n)) => ran += (n > 0) as usize,
            Ok(Err(error)) => panic!("seed {seed}: {error}"),
            Err(_) => panic!("seed {seed} panics:\n{}", case.graph.print()),
        }
    }
    println!("{ran} programs of fused kernels");
    assert!(ran > 100);
}

#[test]
fn every_elementwise_op_runs_on_every_dtype() {
    for &e in Elementwise::ALL {
        for dtype in DType::ALL {
            if !e.row().accepts.contains(dtype) {
                continue;
            }
            let mut g = Graph::new();
            let (low, high) = e.row().domain;
            let low = if dtype.is_unsigned() || dtype == DType::Bool { 0.0 } else { low };
            let high = if dtype == DType::Bool { 1.0 } else { high };
            let dims = [3, 700];
            let mut inputs = Vec::new();
            let mut nodes = Vec::new();
            for k in 0..e.arity() {
                let condition = e == Elementwise::Where && k == 0;
                let of = if condition { DType::Bool } else { dtype };
                inputs.push(uniform(of, &dims, if condition { 0.0 } else { low }, if condition { 1.0 } else { high }, k as u64 + 1));
                nodes.push(g.input(&dims, of));
            }
            let y = op(&mut g, e, &nodes);
            g.outputs = vec![y];
            match check_graph(&g, &inputs, &[], &pools()[..1], if dtype == DType::BF16 || dtype == DType::F16 { 4.0 } else { 1.0 }) {
                Ok(ran) => assert!(ran > 0),
                Err(error) => panic!("{} on {dtype}: {error}", e.name()),
            }
        }
    }
}

#[test]
fn casts_between_all_dtypes_follow_the_interpreter() {
    for from in DType::ALL {
        let values = [0.0, 1.0, -1.0, 2.5, -2.5, 0.1, 127.6, 128.0, 255.0, 256.0, 40_000.0, -40_000.0, 70_000.0, 3e9, -3e9, 1e19, -1e19, 1e-9];
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let x: Vec<f64> = if from.is_float() { values.into_iter().chain(special).collect() } else { values.to_vec() };
        let x = if from.is_float() {
            Tensor::from_f64(from, &[x.len()], &x)
        } else {
            let (low, high) = from.int_range();
            Tensor::from_ints(from, &[x.len()], &x.iter().map(|&v| (v as i128).clamp(low, high)).collect::<Vec<_>>())
        };
        for to in DType::ALL {
            let mut g = Graph::new();
            let a = g.input(&x.dims, from);
            let y = g.add_as(Op::Cast, &[a], &x.dims, to).unwrap();
            g.outputs = vec![y];
            if let Err(error) = check_graph(&g, std::slice::from_ref(&x), &[], &pools()[..1], 0.0) {
                panic!("{from} to {to}: {error}");
            }
        }
    }
}

#[test]
fn layouts_of_loads_agree_with_the_interpreter() {
    for dims in [[37, 41, 5], [2, 700, 3], [1, 3, 2500], [130, 1, 70], [65, 64, 33]] {
        for perm in [[0u8, 1, 2], [0, 2, 1], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
            let mut g = Graph::new();
            let moved: Vec<usize> = perm.iter().map(|&p| dims[p as usize]).collect();
            let a = g.input(&dims, DType::F32);
            let b = g.input(&[moved[2]], DType::F32);
            let c = g.input(&[moved[0], 1, 1], DType::F16);
            let a2 = g.add_as(Op::Permute(perm.iter().copied().collect()), &[a], &moved, DType::F32).unwrap();
            let b2 = g.add_as(Op::Expand, &[b], &moved, DType::F32).unwrap();
            let c2 = g.add_as(Op::Cast, &[c], &[moved[0], 1, 1], DType::F32).unwrap();
            let c2 = g.add_as(Op::Expand, &[c2], &moved, DType::F32).unwrap();
            let y = op(&mut g, Elementwise::Mul, &[a2, b2]);
            let y = op(&mut g, Elementwise::Add, &[y, c2]);
            // Flipped and padded on top.
            let n = moved[1];
            let last = g.constant(DType::I64, word_from_int(DType::I64, n as i128 - 1));
            let flip = Op::Slice(std::iter::once(SliceAxis { axis: 1, step: -1 }).collect());
            let flipped = g.add_as(flip, &[y, last], &moved, DType::F32).unwrap();
            let fill = scalar(&mut g, DType::F32, 7.0);
            let padded: Vec<usize> = vec![moved[0], moved[1] + 3, moved[2] + 2];
            let z = g.add_as(Op::Pad([(0, 0), (1, 2), (2, 0)].into_iter().collect()), &[flipped, fill], &padded, DType::F32).unwrap();
            g.outputs = vec![y, z];
            let inputs = [
                uniform(DType::F32, &dims, -1.0, 1.0, 1),
                uniform(DType::F32, &[moved[2]], -1.0, 1.0, 2),
                uniform(DType::F16, &[moved[0], 1, 1], -1.0, 1.0, 3),
            ];
            check(&g, &inputs, &[]);
        }
    }
}

#[test]
fn reductions_over_any_axes_agree_with_the_interpreter() {
    let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin];
    for dims in [[7, 300, 11], [70, 9, 80], [2, 3, 2100], [1500, 2, 2], [1, 1, 5], [33, 65, 1]] {
        for axes in 1..8u32 {
            for dtype in [DType::F32, DType::F64, DType::I32, DType::U64, DType::BF16] {
                let mut g = Graph::new();
                let a = g.input(&dims, dtype);
                g.outputs = ops.iter().map(|&o| reduce(&mut g, o, axes, a)).collect();
                // Products of many numbers near one, and many equal extrema.
                let x = if dtype.is_float() { uniform(dtype, &dims, 0.9, 1.1, axes as u64) } else { uniform(dtype, &dims, 0.0, 6.0, axes as u64) };
                if let Err(error) = check_graph(&g, &[x], &[], &pools(), 20.0) {
                    panic!("{dims:?} axes {axes:b} {dtype}: {error}");
                }
            }
            let mut g = Graph::new();
            let a = g.input(&dims, DType::Bool);
            g.outputs = [ReduceOp::Any, ReduceOp::All].iter().map(|&o| reduce(&mut g, o, axes, a)).collect();
            check(&g, &[uniform(DType::Bool, &dims, 0.0, 1.0, 5)], &[]);
        }
    }
}

#[test]
fn nan_wins_extrema_and_searches() {
    for dims in [[5, 400], [400, 5], [90, 90]] {
        let mut x = uniform(DType::F32, &dims, -1.0, 1.0, 9);
        for at in [3, 77, 401, 900] {
            x.set(at, interp::Scalar::Float(f64::NAN));
        }
        for axes in 1..4 {
            let mut g = Graph::new();
            let a = g.input(&dims, DType::F32);
            g.outputs = [ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin].iter().map(|&o| reduce(&mut g, o, axes, a)).collect();
            check(&g, std::slice::from_ref(&x), &[]);
        }
    }
}

/// Softmax and layer norm with weights over the axes of a mask.
fn row_kernels(dims: &[usize], axes: u32, dtype: DType) -> Graph {
    let mut g = Graph::new();
    let a = g.input(dims, dtype);
    let gamma = g.input(&[dims[dims.len() - 1]], dtype);
    let gamma = expand(&mut g, gamma, a);
    let m = reduce(&mut g, ReduceOp::Max, axes, a);
    let m = expand(&mut g, m, a);
    let d = op(&mut g, Elementwise::Sub, &[a, m]);
    let e = op(&mut g, Elementwise::Exp, &[d]);
    let s = reduce(&mut g, ReduceOp::Sum, axes, e);
    let s = expand(&mut g, s, a);
    let softmax = op(&mut g, Elementwise::Div, &[e, s]);

    let count: usize = dims.iter().enumerate().filter(|(k, _)| axes >> k & 1 == 1).map(|(_, d)| d).product();
    let scale = scalar(&mut g, dtype, 1.0 / count as f64);
    let eps = scalar(&mut g, dtype, 1e-5);
    let sum = reduce(&mut g, ReduceOp::Sum, axes, a);
    let mean = op(&mut g, Elementwise::Mul, &[sum, scale]);
    let mean2 = expand(&mut g, mean, a);
    let d = op(&mut g, Elementwise::Sub, &[a, mean2]);
    let square = op(&mut g, Elementwise::Mul, &[d, d]);
    let variance = reduce(&mut g, ReduceOp::Sum, axes, square);
    let variance = op(&mut g, Elementwise::Mul, &[variance, scale]);
    let shifted = op(&mut g, Elementwise::Add, &[variance, eps]);
    let root = op(&mut g, Elementwise::Sqrt, &[shifted]);
    let recip = op(&mut g, Elementwise::Recip, &[root]);
    let r = expand(&mut g, recip, a);
    let normal = op(&mut g, Elementwise::Mul, &[d, r]);
    let norm = op(&mut g, Elementwise::Mul, &[normal, gamma]);
    g.outputs = vec![softmax, norm, mean, recip];
    g
}

#[test]
fn row_kernels_agree_with_the_interpreter() {
    for (dims, axes) in [
        (vec![9, 1000], 2),
        (vec![64, 10], 2),
        (vec![300, 7], 2),
        (vec![3, 5000], 2),
        (vec![1000, 9], 1),
        (vec![40, 600], 1),
        (vec![6, 12, 70], 6),
        (vec![6, 12, 70], 5),
        (vec![2, 3, 4, 5], 13),
        (vec![1, 70_000], 2),
    ] {
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let g = row_kernels(&dims, axes, dtype);
            let inputs = [uniform(dtype, &dims, -3.0, 3.0, 1), uniform(dtype, &dims[dims.len() - 1..], 0.5, 1.5, 2)];
            if let Err(error) = check_graph(&g, &inputs, &[], &pools(), 4.0) {
                panic!("{dims:?} axes {axes:b} {dtype}: {error}");
            }
        }
    }
}

#[test]
fn random_and_counting_leaves_agree_with_the_interpreter() {
    for dims in [vec![5000], vec![3, 1000], vec![40, 7, 9]] {
        let mut g = Graph::new();
        let seed = g.arg(DType::U64);
        let mut outputs = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            outputs.push(g.add_as(Op::Random(RandomKind::Uniform), &[seed], &dims, dtype).unwrap());
            outputs.push(g.add_as(Op::Random(RandomKind::Normal), &[seed], &dims, dtype).unwrap());
        }
        for dtype in [DType::I64, DType::U32] {
            outputs.push(g.add_as(Op::Random(RandomKind::Bits), &[seed], &dims, dtype).unwrap());
        }
        for dtype in [DType::F32, DType::I64, DType::U8, DType::BF16] {
            outputs.push(g.add_as(Op::Iota { axis: dims.len() - 1 }, &[], &dims, dtype).unwrap());
            outputs.push(g.add_as(Op::Iota { axis: 0 }, &[], &dims, dtype).unwrap());
        }
        g.outputs = outputs;
        check(&g, &[], &[0x0123_4567_89ab_cdef]);
    }
}

#[test]
fn donated_inputs_are_updated_in_place() {
    let dims = [3, 2000];
    let mut g = Graph::new();
    let (a, b) = (g.input(&dims, DType::F32), g.input(&dims, DType::F32));
    g.donated = vec![true, true];
    let sum = op(&mut g, Elementwise::Add, &[a, b]);
    let product = op(&mut g, Elementwise::Mul, &[a, sum]);
    let row = reduce(&mut g, ReduceOp::Sum, 2, product);
    let row = expand(&mut g, row, a);
    let last = op(&mut g, Elementwise::Sub, &[product, row]);
    g.outputs = vec![sum, last];
    check(&g, &[uniform(DType::F32, &dims, -1.0, 1.0, 1), uniform(DType::F32, &dims, -1.0, 1.0, 2)], &[]);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let dims = [300, 3000];
    let mut g = Graph::new();
    let a = g.input(&dims, DType::F32);
    g.outputs = (1..4).map(|axes| reduce(&mut g, ReduceOp::Sum, axes, a)).collect();
    let x = [uniform(DType::F32, &dims, -1.0, 1.0, 4)];
    let program = compile_with(&g, &Null::cpu_limits(), &Options::default());
    let run = |threads| run(&program, &x, &[], &Pool::new(threads), Level::detect()).unwrap();
    let one = run(1);
    for threads in [2, 3, 5, 8] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}
