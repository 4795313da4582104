//! Every row of the elementwise table, casts, constants and random numbers.
use kiln_ir::interp::{Scalar, Tensor};
use kiln_ir::table::Accepts;
use kiln_ir::{DType, Elementwise, Graph, Op, RandomKind};

use super::layouts::{Layout, starts};
use crate::oracle::{Draw, check, check_within};

const SHAPES: [&[usize]; 7] = [&[4, 5, 6], &[3, 70], &[1100], &[2, 1, 3], &[1], &[], &[3, 0, 2]];

/// The range for an op's operands of a dtype.
fn range(op: Elementwise, dtype: DType) -> (f64, f64) {
    let row = op.row();
    if dtype.is_float() {
        row.domain
    } else if row.accepts == Accepts::Int {
        (0.0, 7.0)
    } else {
        (-90.0, 90.0)
    }
}

#[test]
fn rows_match_in_every_dtype_and_layout() {
    let mut draw = Draw(41);
    for &op in Elementwise::ALL {
        for dtype in DType::ALL.into_iter().filter(|d| op.row().accepts.contains(*d)) {
            for (k, dims) in SHAPES.into_iter().enumerate() {
                let layout = Layout::ALL[(k + op as usize + dtype as usize) % Layout::ALL.len()];
                for layout in [Layout::Contiguous, layout] {
                    let mut g = Graph::new();
                    let mut inputs = Vec::new();
                    let mut x = Vec::new();
                    for n in 0..op.arity() {
                        let d = if n == 0 && op.arity() == 3 { DType::Bool } else { dtype };
                        // The first operand is in the layout under test, the others are dense or scalars.
                        let (layout, dims) = match n {
                            0 => (layout, dims),
                            1 if k % 2 == 0 && op.arity() == 2 => (Layout::Contiguous, &[][..]),
                            _ => (Layout::Contiguous, dims),
                        };
                        x.push(layout.operand(&mut g, &mut draw, d, dims, range(op, dtype), &mut inputs));
                    }
                    let y = g.add(Op::Elementwise(op), &x).unwrap();
                    g.outputs = vec![y];
                    check_within(&g, &inputs, &starts(&g), 2.0);
                }
            }
        }
    }
}

#[test]
fn rows_know_special_values() {
    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 88.0, -110.0, 1e-40, 3e38];
    let n = specials.len();
    for &op in Elementwise::ALL.iter().filter(|op| op.row().accepts.contains(DType::F32)) {
        let mut g = Graph::new();
        let mut inputs = Vec::new();
        let mut x = Vec::new();
        for k in 0..op.arity() {
            let dtype = if k == 0 && op.arity() == 3 { DType::Bool } else { DType::F32 };
            x.push(g.input(&[n, n], dtype));
            let values: Vec<f64> = (0..n * n).map(|i| specials[if k == 1 { i % n } else { i / n }]).collect();
            inputs.push(Tensor::from_f64(dtype, &[n, n], &values));
        }
        let y = g.add(Op::Elementwise(op), &x).unwrap();
        g.outputs = vec![y];
        check(&g, &inputs, &[]);
    }
}

#[test]
fn integer_edges_wrap() {
    for &op in Elementwise::ALL {
        for dtype in DType::ALL.into_iter().filter(|d| d.is_int() && op.row().accepts.contains(*d)) {
            let (lo, hi) = dtype.int_range();
            let edges = [lo, lo + 1, hi, hi - 1, 0, 1, dtype.wrap(-1), 2, 3, 7];
            let n = edges.len();
            let mut g = Graph::new();
            let mut inputs = Vec::new();
            let mut x = Vec::new();
            for k in 0..op.arity() {
                let d = if k == 0 && op.arity() == 3 { DType::Bool } else { dtype };
                x.push(g.input(&[n * n], d));
                let values: Vec<i128> = (0..n * n).map(|i| edges[if k == 1 { i % n } else { i / n }]).collect();
                inputs.push(Tensor::from_ints(d, &[n * n], &values));
            }
            let y = g.add(Op::Elementwise(op), &x).unwrap();
            g.outputs = vec![y];
            check(&g, &inputs, &[]);
        }
    }
}

#[test]
fn casts_match_between_all_dtypes() {
    let mut draw = Draw(42);
    let specials =
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e30, -1e30, 300.7, -300.7, 65_519.9, 65_520.0, 1e-7, 2_147_483_648.0, -1.0, 0.5];
    for from in DType::ALL {
        for to in DType::ALL {
            for dims in [&[5, 7][..], &[300], &[]] {
                let mut g = Graph::new();
                let x = g.input(dims, from);
                let y = g.add_as(Op::Cast, &[x], dims, to).unwrap();
                g.outputs = vec![y];
                let mut t = draw.tensor(from, dims, (-400.0, 400.0));
                for (k, v) in specials.iter().enumerate().take(t.len()) {
                    t.set(k, kiln_ir::interp::value::cast(Scalar::Float(*v), from));
                }
                check(&g, &[t], &[]);
            }
        }
    }
}

#[test]
fn iota_constants_and_scalars_fill_every_dtype() {
    for dtype in DType::ALL {
        let mut g = Graph::new();
        let a = g.arg(dtype);
        let c = g.constant(dtype, kiln_ir::op::word_from_f64(dtype, 1.0));
        let a = g.add_as(Op::Expand, &[a], &[3, 4], dtype).unwrap();
        let c = g.add_as(Op::Expand, &[c], &[3, 4], dtype).unwrap();
        g.outputs = vec![a, c];
        if dtype != DType::Bool {
            let i = g.add_as(Op::Iota { axis: 0 }, &[], &[3, 4], dtype).unwrap();
            let j = g.add_as(Op::Iota { axis: 1 }, &[], &[3, 40], dtype).unwrap();
            let sum = g.add(Op::Elementwise(Elementwise::Add), &[i, a]).unwrap();
            g.outputs.extend([sum, j]);
        }
        check(&g, &[], &[kiln_ir::op::word_from_f64(dtype, 5.0)]);
    }
}

#[test]
fn random_numbers_equal_the_reference() {
    let kinds = [
        (RandomKind::Uniform, &[DType::F32, DType::F64, DType::F16, DType::BF16][..]),
        (RandomKind::Normal, &[DType::F32, DType::F64, DType::F16, DType::BF16]),
        (RandomKind::Bits, &[DType::I64, DType::U64, DType::U32]),
    ];
    for (kind, dtypes) in kinds {
        for &dtype in dtypes {
            for dims in [&[7, 11][..], &[1000], &[2, 3, 64], &[]] {
                let mut g = Graph::new();
                let seed = g.arg(DType::U64);
                let y = g.add_as(Op::Random(kind), &[seed], dims, dtype).unwrap();
                g.outputs = vec![y];
                check(&g, &[], &[0x1234_5678_9abc_def0]);
            }
        }
    }
}
