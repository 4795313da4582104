//! Sources compile: every elementwise op on every dtype, casts, reductions, and the fused kernels of random programs.
use kiln_compiler::fuzz::random_case;
use kiln_compiler::{Options, compile_with};
use kiln_cuda::render::render;
use kiln_cuda::steps::Chip;
use kiln_ir::op::OpInputs;
use kiln_ir::{DType, Elementwise, Graph, Limits, Op, Program, ReduceOp};

use crate::nvrtc::{all_compile, is_here};

/// What the compiler makes of a graph for this device.
fn program(graph: &Graph) -> Program {
    compile_with(
        graph,
        &Limits { parallelism: 264, epilogues: true, conv_epilogues: &DType::ALL, short_conv_epilogues: 0, channels_last: &[] },
        &Options::default(),
    )
}

/// Compiles every kernel of a graph that has a rendering.
#[track_caller]
fn check(graph: &Graph, sm: u32) -> usize {
    let program = program(graph);
    let mut count = 0;
    for kernel in program.kernels() {
        if let Ok(steps) = render(kernel, &program, &Chip::of(sm)) {
            all_compile(&steps, sm);
            count += steps.steps.len();
        }
    }
    count
}

#[test]
fn every_elementwise_op_compiles_for_every_dtype() {
    if !is_here() {
        return;
    }
    for dtype in DType::ALL {
        let mut g = Graph::new();
        let x = [g.input(&[64], dtype), g.input(&[64], dtype), g.input(&[64], dtype)];
        let c = g.input(&[64], DType::Bool);
        let mut outputs = Vec::new();
        for &op in Elementwise::ALL.iter().filter(|op| op.row().accepts.contains(dtype)) {
            let operands: Vec<_> = match op.arity() {
                3 => vec![c, x[0], x[1]],
                n => x[..n].to_vec(),
            };
            let result = if op.is_comparison() { DType::Bool } else { dtype };
            outputs.push(g.push(Op::Elementwise(op), OpInputs::from_slice(&operands), [64].into_iter().collect(), result));
        }
        for to in DType::ALL {
            outputs.push(g.push(Op::Cast, OpInputs::from_slice(&x[..1]), [64].into_iter().collect(), to));
        }
        g.outputs = outputs;
        assert!(check(&g, 90) > 0, "{dtype}");
    }
}

#[test]
fn every_reduction_compiles_along_rows_and_columns() {
    if !is_here() {
        return;
    }
    let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin];
    for dtype in [DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::U8, DType::I32] {
        for axis in 0..2 {
            let mut g = Graph::new();
            let x = g.input(&[384, 512], dtype);
            let dims: [usize; 2] = if axis == 0 { [1, 512] } else { [384, 1] };
            for op in ops {
                let result = if op.is_arg() { DType::I64 } else { dtype };
                let y = g.push(Op::Reduce { op, axes: 1 << axis }, OpInputs::from_slice(&[x]), dims.into_iter().collect(), result);
                g.outputs.push(y);
            }
            assert!(check(&g, 80) > 0, "{dtype}");
        }
    }
}

#[test]
fn fused_kernels_of_random_programs_compile() {
    if !is_here() {
        return;
    }
    let mut count = 0;
    for seed in 0..12 {
        let case = random_case(seed, 12);
        count += check(&case.graph, [80, 90, 100][seed as usize % 3]);
    }
    assert!(count > 12, "only {count} sources");
}
