//! Reductions and row kernels.
use kiln_ir::interp::Scalar;
use kiln_ir::{DType, Elementwise, Graph, NodeId, Op, ReduceOp};

use super::layouts::{Layout, starts};
use crate::oracle::{Draw, check_within};

const OPS: [ReduceOp; 8] =
    [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::ArgMax, ReduceOp::ArgMin, ReduceOp::Any, ReduceOp::All];

#[test]
fn reductions_match_over_every_set_of_axes() {
    let mut draw = Draw(51);
    for op in OPS {
        for dtype in DType::ALL {
            if (dtype == DType::Bool) != matches!(op, ReduceOp::Any | ReduceOp::All) {
                continue;
            }
            for (k, dims) in [&[4, 5, 6][..], &[130, 9], &[9, 130], &[2, 3, 4, 5], &[7], &[1, 1], &[2500]].into_iter().enumerate() {
                for axes in 1..1u32 << dims.len() {
                    let layout = Layout::ALL[(k + axes as usize + dtype as usize) % Layout::ALL.len()];
                    let mut g = Graph::new();
                    let mut inputs = Vec::new();
                    let range = match op {
                        ReduceOp::Prod if dtype.is_float() => (0.9, 1.1),
                        _ => (-3.0, 3.0),
                    };
                    let x = layout.operand(&mut g, &mut draw, dtype, dims, range, &mut inputs);
                    if dtype.is_float() && draw.below(3) == 0 {
                        let at = draw.below(inputs[0].len());
                        inputs[0].set(at, Scalar::Float(f64::NAN));
                    }
                    let y = g.add(Op::Reduce { op, axes }, &[x]).unwrap();
                    g.outputs = vec![y];
                    check_within(&g, &inputs, &starts(&g), 20.0);
                }
            }
        }
    }
}

#[test]
fn reductions_of_nothing_give_their_identity() {
    for (op, dtype) in [(ReduceOp::Sum, DType::F32), (ReduceOp::Prod, DType::I32), (ReduceOp::Any, DType::Bool), (ReduceOp::All, DType::Bool)] {
        for dims in [&[3, 0][..], &[0, 3], &[0]] {
            for axes in 1..1u32 << dims.len() {
                let mut g = Graph::new();
                let x = g.input(dims, dtype);
                let y = g.add(Op::Reduce { op, axes }, &[x]).unwrap();
                g.outputs = vec![y];
                check_within(&g, &[kiln_ir::interp::Tensor::zeros(dtype, dims)], &[], 1.0);
            }
        }
    }
}

/// Reduces the last axis and broadcasts the result back.
fn over_last(g: &mut Graph, op: ReduceOp, x: NodeId) -> NodeId {
    let (dims, dtype) = (g.node(x).dims.clone(), g.node(x).dtype);
    let r = g.add(Op::Reduce { op, axes: 1 << (dims.len() - 1) }, &[x]).unwrap();
    g.add_as(Op::Expand, &[r], &dims, dtype).unwrap()
}

fn op2(g: &mut Graph, op: Elementwise, x: NodeId, y: NodeId) -> NodeId {
    g.add(Op::Elementwise(op), &[x, y]).unwrap()
}

#[test]
fn rows_are_normalised_in_one_kernel_or_several() {
    let mut draw = Draw(52);
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        for dims in [&[6, 50][..], &[3, 4, 5], &[2, 3000], &[70, 1], &[1, 1]] {
            for layout in Layout::ALL {
                let mut g = Graph::new();
                let mut inputs = Vec::new();
                let x = layout.operand(&mut g, &mut draw, dtype, dims, (-2.0, 2.0), &mut inputs);
                let max = over_last(&mut g, ReduceOp::Max, x);
                let d = op2(&mut g, Elementwise::Sub, x, max);
                let e = g.add(Op::Elementwise(Elementwise::Exp), &[d]).unwrap();
                let sum = over_last(&mut g, ReduceOp::Sum, e);
                let softmax = op2(&mut g, Elementwise::Div, e, sum);
                let n = g.constant(dtype, (*dims.last().unwrap() as f64).to_bits());
                let total = over_last(&mut g, ReduceOp::Sum, x);
                let mean = op2(&mut g, Elementwise::Div, total, n);
                let c = op2(&mut g, Elementwise::Sub, x, mean);
                let squares = op2(&mut g, Elementwise::Mul, c, c);
                let var = over_last(&mut g, ReduceOp::Sum, squares);
                let one = g.constant(dtype, 1f64.to_bits());
                let var = op2(&mut g, Elementwise::Add, var, one);
                let root = g.add(Op::Elementwise(Elementwise::Sqrt), &[var]).unwrap();
                let norm = op2(&mut g, Elementwise::Div, c, root);
                g.outputs = vec![softmax, norm];
                check_within(&g, &inputs, &starts(&g), 8.0);
                g.outputs = vec![softmax];
                g.donated[0] = true;
                check_within(&g, &inputs, &starts(&g), 8.0);
            }
        }
    }
}
