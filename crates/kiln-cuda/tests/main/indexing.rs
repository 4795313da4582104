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
                if draw.leaves_out() {
                    continue;
                }
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
                if draw.leaves_out() {
                    continue;
                }
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
                if draw.leaves_out() {
                    continue;
                }
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
fn sort_merges_long_lines() {
    let mut draw = Draw(7);
    for (dtype, dims, axis) in [
        (DType::F32, &[9_000][..], 0),
        (DType::I64, &[2, 2_049], 1),
        (DType::BF16, &[5_000, 2], 0),
        (DType::U8, &[2, 4_096], 1),
        (DType::F64, &[6_001], 0),
    ] {
        for descending in [false, true] {
            let mut g = Graph::new();
            let x = g.input(dims, dtype);
            let y = g.add(Op::Sort { axis, descending }, &[x]).unwrap();
            let i = g.get(y, 1).unwrap();
            g.outputs = vec![y, i];
            let mut t = draw.tensor(dtype, dims, (-90.0, 90.0));
            if dtype.is_float() {
                (0..40).for_each(|k| t.set(k * 37, kiln_ir::interp::Scalar::Float(f64::NAN)));
            }
            check(&g, &[t], &[]);
        }
    }
}

#[test]
fn scatter_of_one_long_line_and_of_many_lines() {
    let mut draw = Draw(8);
    // A single line, more destinations than a block owns, many lines, and indices out of order in every column.
    for (dims, count, axis) in [(&[5_000][..], 3_000, 0), (&[3, 2_000], 1_500, 1), (&[7, 20_000], 3, 0), (&[40, 30], 200, 0)] {
        for (dtype, op) in [(DType::F32, ScatterOp::Add), (DType::F16, ScatterOp::Mul), (DType::I32, ScatterOp::Assign), (DType::U8, ScatterOp::Add)]
        {
            let mut given = dims.to_vec();
            given[axis] = count;
            let mut g = Graph::new();
            let (x, i, v) = (g.input(dims, dtype), g.input(&given, DType::I64), g.input(&given, dtype));
            let y = g.add(Op::Scatter { axis, op }, &[x, i, v]).unwrap();
            g.outputs = vec![y];
            let range = if dtype.is_float() { (0.8, 1.2) } else { (0.0, 4.0) };
            let inputs = [draw.tensor(dtype, dims, range), draw.indices(DType::I64, &given, dims[axis]), draw.tensor(dtype, &given, range)];
            check_within(&g, &inputs, &[], 10.0);
        }
    }
}

#[test]
fn many_values_for_few_rows_are_summed_in_segments() {
    let mut draw = Draw(77);
    for dtype in [DType::F32, DType::BF16] {
        let mut g = Graph::new();
        let x = g.input(&[7, 40], dtype);
        let i = g.input(&[3000, 1], DType::I64);
        let i = g.add_as(Op::Expand, &[i], &[3000, 40], DType::I64).unwrap();
        let v = g.input(&[3000, 40], dtype);
        let y = g.add(Op::Scatter { axis: 0, op: ScatterOp::Add }, &[x, i, v]).unwrap();
        g.outputs = vec![y];
        let inputs =
            [draw.tensor(dtype, &[7, 40], (-1.0, 1.0)), draw.indices(DType::I64, &[3000, 1], 7), draw.tensor(dtype, &[3000, 40], (-1.0, 1.0))];
        crate::oracle::check_within(&g, &inputs, &[], 20.0);
    }
}
