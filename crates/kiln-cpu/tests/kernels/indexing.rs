//! Gather, scatter and sort.
use kiln_ir::{DType, Graph, Op, ScatterOp};
use smallvec::smallvec;

use crate::oracle::{Draw, check, check_fails, check_within};

const SHAPES: [&[usize]; 6] = [&[7], &[5, 6], &[3, 4, 5], &[2, 3, 4, 5], &[1, 1, 9], &[600, 3]];

#[test]
fn gather_picks_along_every_axis_in_every_dtype() {
    let mut draw = Draw(1);
    for dtype in DType::ALL {
        for dims in SHAPES {
            for axis in 0..dims.len() {
                let mut wanted = dims.to_vec();
                wanted[axis] = 1 + draw.below(2 * dims[axis]);
                let mut g = Graph::new();
                let x = g.input(dims, dtype);
                let i = g.input(&wanted, DType::I64);
                let y = g.add(Op::Gather { axis }, &[x, i]).unwrap();
                g.outputs = vec![y];
                let inputs = [draw.tensor(dtype, dims, (-50.0, 50.0)), draw.indices(DType::I64, &wanted, dims[axis])];
                check(&g, &inputs, &[]);
            }
        }
    }
}

#[test]
fn gather_of_rows_reads_broadcast_indices_of_every_dtype_and_views() {
    let mut draw = Draw(2);
    for index in DType::ALL.into_iter().filter(|d| d.is_int()) {
        for (rows, count, width) in [(50, 33, 24), (300, 700, 5), (3, 1, 1)] {
            let rows = rows.min(index.int_range().1.min(1 << 20) as usize);
            let mut g = Graph::new();
            let x = g.input(&[width, rows], DType::F32);
            let t = g.add(Op::Permute(smallvec![1, 0]), &[x]).unwrap();
            let plain = g.input(&[rows, width], DType::F32);
            let i = g.input(&[count, 1], index);
            let i = g.add_as(Op::Expand, &[i], &[count, width], index).unwrap();
            let (y, z) = (g.add(Op::Gather { axis: 0 }, &[t, i]).unwrap(), g.add(Op::Gather { axis: 0 }, &[plain, i]).unwrap());
            g.outputs = vec![y, z];
            let inputs = [
                draw.tensor(DType::F32, &[width, rows], (-1.0, 1.0)),
                draw.tensor(DType::F32, &[rows, width], (-1.0, 1.0)),
                draw.indices(index, &[count, 1], rows),
            ];
            check(&g, &inputs, &[]);
        }
    }
}

#[test]
fn scatter_combines_in_order_in_every_dtype() {
    let mut draw = Draw(3);
    let ops = [ScatterOp::Assign, ScatterOp::Add, ScatterOp::Mul, ScatterOp::Max, ScatterOp::Min];
    for dtype in DType::ALL {
        for op in ops {
            for dims in SHAPES {
                let axis = draw.below(dims.len());
                let mut given = dims.to_vec();
                given[axis] = 1 + draw.below(2 * dims[axis]);
                let mut g = Graph::new();
                let (x, i, v) = (g.input(dims, dtype), g.input(&given, DType::I32), g.input(&given, dtype));
                let y = g.add(Op::Scatter { axis, op }, &[x, i, v]).unwrap();
                g.outputs = vec![y];
                let range = if dtype.is_float() { (0.5, 1.5) } else { (0.0, 4.0) };
                let inputs = [draw.tensor(dtype, dims, range), draw.indices(DType::I32, &given, dims[axis]), draw.tensor(dtype, &given, range)];
                check_within(&g, &inputs, &[], 4.0);
                // In place, when the start is donated.
                g.donated[0] = true;
                check_within(&g, &inputs, &[], 4.0);
            }
        }
    }
}

#[test]
fn scatter_adds_rows_of_an_embedding_gradient() {
    let mut draw = Draw(4);
    for (dtype, rows, count, width) in [(DType::F32, 97, 1000, 64), (DType::BF16, 13, 300, 40), (DType::F64, 1000, 50, 3)] {
        let mut g = Graph::new();
        let zero = g.constant(dtype, 0);
        let x = g.add_as(Op::Expand, &[zero], &[rows, width], dtype).unwrap();
        let i = g.input(&[count], DType::I64);
        let i = g.add_as(Op::Reshape, &[i], &[count, 1], DType::I64).unwrap();
        let i = g.add_as(Op::Expand, &[i], &[count, width], DType::I64).unwrap();
        let v = g.input(&[count, width], dtype);
        let y = g.add(Op::Scatter { axis: 0, op: ScatterOp::Add }, &[x, i, v]).unwrap();
        g.outputs = vec![y];
        let inputs = [draw.indices(DType::I64, &[count], rows), draw.tensor(dtype, &[count, width], (-1.0, 1.0))];
        check_within(&g, &inputs, &[], 4.0);
    }
}

#[test]
fn indices_out_of_range_are_errors_that_name_them() {
    let mut draw = Draw(5);
    let x = draw.tensor(DType::F32, &[4, 3], (0.0, 1.0));
    for bad in [-1, 4] {
        let i = kiln_ir::interp::Tensor::from_ints(DType::I64, &[2, 3], &[0, 1, 2, 3, bad, 0]);
        let mut g = Graph::new();
        let (a, b) = (g.input(&[4, 3], DType::F32), g.input(&[2, 3], DType::I64));
        let y = g.add(Op::Gather { axis: 0 }, &[a, b]).unwrap();
        g.outputs = vec![y];
        check_fails(&g, &[x.clone(), i.clone()], &[], &format!("gather: index {bad} is out of range for axis 0 of size 4"));
        let mut g = Graph::new();
        let (a, b, v) = (g.input(&[4, 3], DType::F32), g.input(&[2, 3], DType::I64), g.input(&[2, 3], DType::F32));
        let y = g.add(Op::Scatter { axis: 0, op: ScatterOp::Add }, &[a, b, v]).unwrap();
        g.outputs = vec![y];
        let v = draw.tensor(DType::F32, &[2, 3], (0.0, 1.0));
        check_fails(&g, &[x.clone(), i, v], &[], &format!("scatter: index {bad} is out of range for axis 0 of size 4"));
    }
}

#[test]
fn sort_is_stable_in_every_dtype_with_special_values() {
    let mut draw = Draw(6);
    for dtype in DType::ALL {
        for dims in [&[9][..], &[4, 7], &[3, 5, 2], &[2, 700], &[1300, 2], &[0, 3], &[3, 0]] {
            for descending in [false, true] {
                let axis = draw.below(dims.len());
                let mut g = Graph::new();
                let x = g.input(dims, dtype);
                let y = g.add(Op::Sort { axis, descending }, &[x]).unwrap();
                let i = g.get(y, 1).unwrap();
                g.outputs = vec![y, i];
                let mut t = draw.tensor(dtype, dims, (-9.0, 9.0));
                if dtype.is_float() {
                    let specials = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
                    for k in 0..t.len() {
                        if draw.below(3) == 0 {
                            t.set(k, kiln_ir::interp::Scalar::Float(specials[draw.below(5)]));
                        }
                    }
                }
                check(&g, std::slice::from_ref(&t), &[]);
                g.outputs = vec![i];
                check(&g, &[t], &[]);
            }
        }
    }
}

#[test]
fn small_gathers_and_scatters_stay_in_bounds() {
    let mut draw = Draw(7);
    for dtype in [DType::F32, DType::F16, DType::I64, DType::U8] {
        for dims in [&[5][..], &[2, 3], &[2, 1, 4]] {
            for axis in 0..dims.len() {
                let mut given = dims.to_vec();
                given[axis] = 1 + draw.below(4);
                let mut g = Graph::new();
                let (x, i, v) = (g.input(dims, dtype), g.input(&given, DType::I32), g.input(&given, dtype));
                let y = g.add(Op::Gather { axis }, &[x, i]).unwrap();
                let assigned = g.add(Op::Scatter { axis, op: ScatterOp::Assign }, &[x, i, v]).unwrap();
                let added = g.add(Op::Scatter { axis, op: ScatterOp::Add }, &[x, i, v]).unwrap();
                g.outputs = vec![y, assigned, added];
                let range = (0.5, 4.0);
                let inputs = [draw.tensor(dtype, dims, range), draw.indices(DType::I32, &given, dims[axis]), draw.tensor(dtype, &given, range)];
                check_within(&g, &inputs, &[], 4.0);
            }
        }
    }
    let mut g = Graph::new();
    let (x, i) = (g.input(&[3, 2], DType::F32), g.input(&[1, 2], DType::I64));
    let y = g.add(Op::Gather { axis: 0 }, &[x, i]).unwrap();
    g.outputs = vec![y];
    let inputs = [draw.tensor(DType::F32, &[3, 2], (0.0, 1.0)), kiln_ir::interp::Tensor::from_ints(DType::I64, &[1, 2], &[2, 3])];
    check_fails(&g, &inputs, &[], "gather: index 3 is out of range for axis 0 of size 3");
}
