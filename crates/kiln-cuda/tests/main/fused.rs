//! Fused kernels and dots compute what the interpreter says: elementwise in every layout, reductions along rows and columns, row kernels, transposes, random graphs.
use kiln_compiler::fuzz::random_smooth_case;
use kiln_compiler::{Options, compile_with};
use kiln_cuda::steps::Chip;
use kiln_ir::interp::{self, Tensor};
use kiln_ir::op::OpInputs;
use kiln_ir::{DType, Dims, Elementwise, Graph, Limits, NodeId, Op, ReduceOp};

use crate::emulator;
use crate::oracle::{Draw, check, check_program, check_within, program};

/// A graph with an unary chain over `x` that reads a second operand broadcast along rows.
fn op(g: &mut Graph, op: Elementwise, x: &[NodeId]) -> NodeId {
    let (dims, dtype) = (g.node(x[0]).dims.clone(), g.node(x[0]).dtype);
    g.push(Op::Elementwise(op), OpInputs::from_slice(x), dims, dtype)
}

fn reduce(g: &mut Graph, op: ReduceOp, x: NodeId, axis: usize) -> NodeId {
    let mut dims = g.node(x).dims.clone();
    dims[axis] = 1;
    let dtype = if op.is_arg() { DType::I64 } else { g.node(x).dtype };
    g.push(Op::Reduce { op, axes: 1 << axis }, OpInputs::from_slice(&[x]), dims, dtype)
}

fn expand(g: &mut Graph, x: NodeId, dims: &[usize]) -> NodeId {
    let dtype = g.node(x).dtype;
    g.push(Op::Expand, OpInputs::from_slice(&[x]), Dims::from_slice(dims), dtype)
}

/// `exp(x - max) / sum` along an axis.
fn softmax(g: &mut Graph, x: NodeId, axis: usize) -> NodeId {
    let dims = g.node(x).dims.clone();
    let m = reduce(g, ReduceOp::Max, x, axis);
    let m = expand(g, m, &dims);
    let d = op(g, Elementwise::Sub, &[x, m]);
    let e = op(g, Elementwise::Exp, &[d]);
    let s = reduce(g, ReduceOp::Sum, e, axis);
    let s = expand(g, s, &dims);
    op(g, Elementwise::Div, &[e, s])
}

/// Sizes that take every path: few, odd, a warp, several warps, looped.
const ROWS: [[usize; 2]; 7] = [[3, 5], [40, 33], [7, 256], [5, 1000], [2, 4096], [300, 16], [2, 20_001]];

#[test]
fn softmax_is_right_along_rows_and_columns() {
    let mut draw = Draw(1);
    for dims in ROWS {
        for axis in 0..2 {
            let dtype = [DType::F32, DType::BF16, DType::F64][draw.below(3)];
            if draw.leaves_out() && dims != [5, 1000] {
                continue;
            }
            let mut g = Graph::new();
            let x = g.input(&dims, dtype);
            let y = softmax(&mut g, x, axis);
            g.outputs.push(y);
            let x = draw.tensor(dtype, &dims, (-3.0, 3.0));
            check(&g, &[x], &[]);
        }
    }
}

#[test]
fn long_rows_are_read_once() {
    let chip = Chip::of(90);
    for (seed, (dtype, columns)) in [(DType::BF16, 26_000), (DType::F32, 16_380), (DType::F16, 65_536)].into_iter().enumerate() {
        let mut g = Graph::new();
        let x = g.input(&[3, columns], dtype);
        let y = softmax(&mut g, x, 1);
        g.outputs.push(y);
        let x = Draw(20 + seed as u64).tensor(dtype, &[3, columns], (-3.0, 3.0));
        let program = compile_with(&g, &Limits { parallelism: 2, ..chip.limits() }, &Options::default());
        let kernels: Vec<_> = program.kernels().collect();
        let step = &kiln_cuda::render::render(kernels[0], &program, &chip).unwrap().steps[0];
        assert_eq!((kernels.len(), &step.source.entry[..]), (1, "row"), "{dtype}");
        check_program(&chip, (&g, &program), &[x], &[], 4.0);
    }
}

#[test]
fn every_reduction_is_right_along_rows_and_columns() {
    let mut draw = Draw(2);
    for dims in [[130, 70], [1, 4000], [600, 8]] {
        for axis in 0..2 {
            let dtype = [DType::F32, DType::I32, DType::F16, DType::I64, DType::U8][draw.below(5)];
            let mut g = Graph::new();
            let x = g.input(&dims, dtype);
            for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin] {
                let y = reduce(&mut g, op, x, axis);
                g.outputs.push(y);
            }
            let x = draw.tensor(dtype, &dims, if dtype.is_float() { (-1.0, 1.0) } else { (0.0, 100.0) });
            check_within(&g, &[x], &[], 20.0);
        }
    }
}

#[test]
fn transposes_are_right() {
    let mut draw = Draw(3);
    for (dims, dtype) in [([130, 150], DType::F32), ([256, 128], DType::BF16), ([128, 200], DType::U8)] {
        let mut g = Graph::new();
        let x = g.input(&dims, dtype);
        let y = g.input(&[dims[1], dims[0]], dtype);
        let t = g.push(Op::Permute([1, 0].into_iter().collect()), OpInputs::from_slice(&[x]), Dims::from_slice(&[dims[1], dims[0]]), dtype);
        let z = op(&mut g, Elementwise::Add, &[t, y]);
        g.outputs.push(z);
        let inputs = [draw.tensor(dtype, &dims, (0.0, 9.0)), draw.tensor(dtype, &[dims[1], dims[0]], (0.0, 9.0))];
        check(&g, &inputs, &[]);
    }
}

#[test]
fn elementwise_runs_of_any_length_are_right() {
    let mut draw = Draw(4);
    for (n, dtype) in [(1, DType::F32), (4097, DType::BF16), (5000, DType::F32), (9000, DType::U8), (77, DType::F16)] {
        let mut g = Graph::new();
        let x = [g.input(&[n], dtype), g.input(&[n], dtype)];
        let y = op(&mut g, Elementwise::Mul, &x);
        let z = op(&mut g, Elementwise::Add, &[y, x[0]]);
        g.outputs = vec![y, z];
        let inputs = [draw.tensor(dtype, &[n], (0.0, 5.0)), draw.tensor(dtype, &[n], (0.0, 5.0))];
        check(&g, &inputs, &[]);
    }
}

#[test]
fn dots_of_every_kind_of_dtype_are_right() {
    let mut draw = Draw(5);
    for (m, k, n, dtype) in
        [(5, 7, 9, DType::F32), (70, 33, 40, DType::F64), (33, 20, 100, DType::I32), (20, 65, 17, DType::BF16), (4, 0, 3, DType::F32)]
    {
        let mut g = Graph::new();
        let (x, y) = (g.input(&[2, m, k], dtype), g.input(&[1, k, n], dtype));
        let d = g.push(Op::Dot, OpInputs::from_slice(&[x, y]), Dims::from_slice(&[2, m, n]), dtype);
        let b = g.input(&[2, m, n], dtype);
        let z = op(&mut g, Elementwise::Add, &[d, b]);
        g.outputs.push(z);
        let inputs =
            [draw.tensor(dtype, &[2, m, k], (-1.0, 2.0)), draw.tensor(dtype, &[1, k, n], (-1.0, 2.0)), draw.tensor(dtype, &[2, m, n], (-1.0, 2.0))];
        check_within(&g, &inputs, &[], 4.0);
    }
}

/// Number of random graphs: `KILN_FUZZ` for more.
fn graphs() -> u64 {
    std::env::var("KILN_FUZZ").ok().and_then(|v| v.parse().ok()).unwrap_or(10)
}

#[test]
fn random_graphs_run_on_the_emulated_gpu_as_the_interpreter_says() {
    if crate::gpu::device().is_some() || !emulator::available() {
        return;
    }
    for seed in 0..graphs() {
        let case = random_smooth_case(seed, 3 + (seed % 12) as usize);
        let Ok(expected) = interp::run(&case.graph, &case.inputs, &case.args) else { continue };
        let program = program(&case.graph, seed % 4 != 0);
        let context = || format!("seed {seed}\n{}\n{}", case.graph.print(), kiln_compiler::print::print(&program));
        let outputs = emulator::run(&program, &case.inputs, &case.args, &Chip::of(80)).unwrap_or_else(|e| panic!("{e} {}", context()));
        for (o, (got, want)) in outputs.iter().zip(&expected).enumerate() {
            let got = Tensor::from_bytes(want.dtype, &want.dims, got);
            let tolerance = if want.dtype == DType::F64 { 1e-9 } else { 3e-3 };
            for i in 0..want.len() {
                let (g, w) = (got.get(i).float(), want.get(i).float());
                let close = (g - w).abs() <= tolerance * (1.0 + w.abs()) || (g.is_nan() && w.is_nan()) || g == w;
                assert!(close, "output {o}, element {i} is {g}, not {w}: {}", context());
            }
        }
    }
}
